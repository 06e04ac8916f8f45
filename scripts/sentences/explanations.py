"""What docs/reproduction.md says of what may explain the differences."""

from __future__ import annotations

import statistics
from itertools import product

from prose import Numbers, are, span, within

from pagnn_bench.analysis.paper import DATASETS, METHODS, TABLES, paper_entries
from sentences.common import (
    CITATION,
    CITATION_GRAPHS,
    DECAYS,
    FILLINGS,
    HIGH,
    LOSS,
    LOW,
    PAGNN,
    REPRODUCTION,
    STRONGEST,
    WEAKEST,
    means_at,
    says,
)


@says(
    REPRODUCTION,
    "all fillings and GCNmf lose 19 to 27 points on Cora and 7 to 14 on Citeseer, PaGNN three at most",
)
def _(n: Numbers) -> bool:
    lost = {
        (d, m): n.mean("type1", d, m, HIGH, WEAKEST) - n.mean("type1", d, m, HIGH, STRONGEST)
        for d, m in product(CITATION, (*FILLINGS, *PAGNN))
    }
    cora, citeseer = ([lost[d, m] for m in FILLINGS] for d in CITATION)
    pagnn = max(lost[place] for place in product(CITATION, PAGNN))
    return span(cora, "19", "27") and span(citeseer, "7", "14") and are([pagnn], "3")


@says(REPRODUCTION, "PaGNN-N is within three points of every other method; with 0.02 it leads by 8 to 23")
def _(n: Numbers) -> bool:
    def leads(methods: tuple[str, ...], value: float) -> list[float]:
        return [n.lead("type1", d, "pagnn_n", m, HIGH, value) for d, m in product(CITATION, methods)]

    return within(leads((*FILLINGS, "pagnn_m"), WEAKEST), 3) and span(leads(FILLINGS, 0.02), "8", "23")


@says(
    REPRODUCTION,
    "zero filling, GAIN and GCNmf have 89 % with the weakest value, as PaGNN-N has, and 24 to 50",
)
@says(REPRODUCTION, "where PaGNN-N has 87; MF, VAE and SAT are behind with every value")
def _(n: Numbers) -> bool:
    weak, strong = (
        [n.mean("type1", "amaphoto", m, HIGH, value) for m in ("pagnn_n", "zero", "gain", "gcnmf")]
        for value in (WEAKEST, STRONGEST)
    )
    leads = [
        n.lead("type1", "amaphoto", "pagnn_n", m, HIGH, value)
        for m, value in product(("mf", "vae", "sat"), DECAYS)
    ]
    return (
        within((mean - 89 for mean in weak), 0.6)
        and span(strong[1:], "24", "50")
        and are(strong[:1], "87")
        and min(leads) > 2
    )


@says(REPRODUCTION, "has PaGNN ahead of MF at all three rates, as the paper has")
def _(n: Numbers) -> bool:
    return all(
        n.lead("type1", "citeseer", m, "mf", r, STRONGEST) > 0 for m, r in product(PAGNN, (0.1, 0.5, HIGH))
    )


@says(REPRODUCTION, "its nine numbers are 1.5 points off on average, those of 0.02 2.6")
def _(n: Numbers) -> bool:
    places = list(product(("mf", *PAGNN), (0.1, 0.5, HIGH)))
    off = [
        [abs(n.off("type1", "citeseer", *place, value)) for place in places] for value in (STRONGEST, 0.02)
    ]
    return are(map(statistics.fmean, off), "1.5", "2.6")


@says(
    REPRODUCTION,
    "is within two points everywhere but at rate 0.9, where MF is 19 points above the printed number",
)
def _(n: Numbers) -> bool:
    low = [n.off("type1", "cora", m, r, 0.005) for m, r in product(("mf", *PAGNN), (0.1, 0.5))]
    high = [n.off("type1", "cora", m, HIGH, 0.005) for m in ("mf", "pagnn_m")]
    return within(low, 2) and are(high, "19", "8")


@says(REPRODUCTION, "By the paper's words MF and zero filling lose up to five points more at rate 0.9")
@says(REPRODUCTION, "35.8, printed 35.1), PaGNN one at most; at rate 0.5 nothing changes by more than 0.7")
def _(n: Numbers) -> bool:
    def changes(methods: tuple[str, ...], rate: float) -> list[float]:
        return [n.change(*graph, m, rate, LOSS) for graph, m in product(CITATION_GRAPHS, methods)]

    fillings = ("mf", "zero")
    return (
        are([min(changes(fillings, HIGH)), n.mean("type1", "cora", "mf", HIGH, LOSS)], "-5", "35.8")
        and within(changes(PAGNN, HIGH), 1.05)
        and within(changes((*fillings, *PAGNN), 0.5), 0.75)
    )


@says(REPRODUCTION, "55.5 on Cora (printed 55.6), 41.5 on Citeseer (39.9)")
@says(REPRODUCTION, "it comes to 54.6 and 42.3, on type 2 to 60.2 and 45.3")
@says(REPRODUCTION, "(printed 63.5 and 47.8; the shared setting 41.3 and 42.5)")
def _(n: Numbers) -> bool:
    weak = n.mean("type1", "cora", "gcnmf", HIGH, WEAKEST), n.mean("type1", "citeseer", "gcnmf", HIGH, 0.005)
    tuned = (n.mean(*graph, "gcnmf", HIGH, "tuned") for graph in CITATION_GRAPHS)
    shared = (n.mean("type2", d, "gcnmf", HIGH) for d in CITATION)
    return are((*weak, *tuned, *shared), "55.5", "41.5", "54.6", "42.3", "60.2", "45.3", "41.3", "42.5")


@says(REPRODUCTION, "The average lead over every rival comes from rates 0.7 and 0.9")
@says(REPRODUCTION, "the averages over the four graphs are within 1.3 points of zero, for either PaGNN")
def _(n: Numbers) -> bool:
    def average(missing: str, own: str, rival: str, rate: float) -> float:
        return statistics.fmean(n.lead(missing, data, own, rival, rate) for data in DATASETS)

    rivals = [
        (t, m) for t, m in product(TABLES.values(), METHODS) if m not in PAGNN and (t, m) != ("type2", "sat")
    ]
    pairs = [(missing, own, rival) for (missing, rival), own in product(rivals, PAGNN)]
    low = [average(*pair, rate) for pair, rate in product(pairs, LOW)]
    return within(low, 1.3) and all(average(*pair, HIGH) > average(*pair, 0.7) > 0 for pair in pairs)


@says(REPRODUCTION, "on Citeseer MF is ahead from 0.3 to 0.7")
def _(n: Numbers) -> bool:
    places = product(TABLES.values(), PAGNN, (0.3, 0.5, 0.7))
    return all(n.lead(t, "citeseer", m, "mf", r) < 0 for t, m, r in places)


@says(REPRODUCTION, "they are within 1.5 points of MF up to rate 0.5 and within 4.4 above")
def _(n: Numbers) -> bool:
    low, high = (
        max(abs(n.lead("type1", d, m, "mf", r)) for d, m, r in product(CITATION, ("vae", "gain"), rates))
        for rates in (LOW, (0.7, HIGH))
    )
    return are((low, high), "1.5", "4.4")


@says(
    REPRODUCTION, "On type 2 VAE has the highest mean of the paper's methods in several cells up to rate 0.7"
)
@says(REPRODUCTION, "ahead of PaGNN-N by up to 4 points on Citeseer")
def _(n: Numbers) -> bool:
    cells = [means_at(n, "type2", d, r) for d, r in product(CITATION, (*LOW, 0.7))]
    best = [max(means, key=lambda method: means[method]) for means in cells]
    lead = max(n.lead("type2", "citeseer", "vae", "pagnn_n", r) for r in (*LOW, 0.7))
    return best.count("vae") >= 3 and are([lead], "4")


@says(
    REPRODUCTION, "within 2.5 points of the paper up to rate 0.5, and at 0.9 on Citeseer (32.7, printed 34.3)"
)
@says(REPRODUCTION, "behind it there by 18 points on Cora, 7 on AmaPhoto and 20 on AmaComp")
def _(n: Numbers) -> bool:
    low = [n.off("type1", d, "sat", r) for d, r in product(DATASETS, LOW)]
    high = [n.off("type1", d, "sat", HIGH) for d in ("cora", "amaphoto", "amacomp")]
    return within(low, 2.5) and are(
        [n.mean("type1", "citeseer", "sat", HIGH), *high], "32.7", "-18", "-7", "-20"
    )


@says(REPRODUCTION, "with the weakest value it has 53.1 (printed 51.7), and 39.6 on Citeseer")
@says(
    REPRODUCTION,
    "On AmaPhoto it gains little (85.4 instead of 83.9 on the two masks of that run, printed 89.0)",
)
def _(n: Numbers) -> bool:
    weak = (n.mean("type1", d, "sat", HIGH, WEAKEST) for d in (*CITATION, "amaphoto"))
    shared = n.get("type1", "amaphoto", "sat", HIGH).summary.mask_means
    return are((*weak, statistics.fmean((shared[0], shared[1]))), "53.1", "39.6", "85.4", "83.9")


@says(
    REPRODUCTION, "GCNmf as its public code trains is level with ours at rate 0.5, type 1, and 8 points lower"
)
@says(
    REPRODUCTION, "SAT without calibration 5 lower at both, and rounding changes GAIN by 1.1 points at most"
)
def _(n: Numbers) -> bool:
    def changes(form: str, *kinds: str) -> list[float]:
        method = form.partition("[")[0]
        return [n.lead(missing, "cora", form, method, r) for missing, r in product(kinds, (0.5, HIGH))]

    mixture = changes("gcnmf[reference_quirks=true]", "type1")
    return (
        within(mixture[:1], 0.5)
        and are((mixture[1], *changes("sat[calibrated=false]", "type1")), "-8", "-5", "-5")
        and within(changes("gain[round=true]", "type1", "type2"), 1.15)
    )


@says(REPRODUCTION, "two of six trials of MF and one of four of GCNmf end at 38 to 40 %")
@says(REPRODUCTION, "the other four of MF at 53 to 61")
def _(n: Numbers) -> bool:
    mf, gcnmf = (
        sorted(100 * trial.record["test_acc"] for trial in n.get("type1", "amacomp", m, HIGH).trials)
        for m in ("mf", "gcnmf")
    )
    return (
        (len(mf), len(gcnmf)) == (6, 4)
        and span([*mf[:2], gcnmf[0]], "38", "40")
        and span(mf[2:], "53", "61")
        and gcnmf[1] > 60
    )


@says(REPRODUCTION, "and so are their numbers (71 and 72 %, zero filling 71 %)")
def _(n: Numbers) -> bool:
    return are((n.mean("type1", "amacomp", m, HIGH) for m in ("vae", "gain", "zero")), "71", "72", "71")


@says(REPRODUCTION, "24 % of Cora's nodes and 45 % of Citeseer's see no observed attribute within two hops")
def _(n: Numbers) -> bool:
    shares = []
    for data in CITATION:
        trials = n.get("type1", data, "pagnn_n", HIGH).trials
        by_mask = {trial.mask: trial.batch.facts["blind_share"] for trial in trials}
        shares.append(100 * statistics.fmean(by_mask.values()))
    return are(shares, "24", "45")


@says(REPRODUCTION, "All 80 PaGNN entries of the paper end in an even second decimal")
@says(REPRODUCTION, "all 40 MF entries in 0, 3 or 7")
def _(n: Numbers) -> bool:
    last = {place: f"{entry.accuracy:.2f}"[-1] for place, entry in paper_entries().items()}
    pagnn, mf = ([digit for place, digit in last.items() if place[2] in m] for m in (PAGNN, ("mf",)))
    return (len(pagnn), len(mf)) == (80, 40) and set(pagnn) <= set("02468") and set(mf) <= set("037")


@says(
    REPRODUCTION, "Up to rate 0.5 the methods lie within five points of each other there; at 0.9 they do not"
)
def _(n: Numbers) -> bool:
    def spread(data: str, rate: float) -> float:
        means = means_at(n, "type2", data, rate).values()
        return max(means) - min(means)

    return all(spread(*place) <= 5 for place in product(CITATION, LOW)) and spread("cora", HIGH) > 5
