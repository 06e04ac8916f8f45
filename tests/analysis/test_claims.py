"""The paper's claims on fabricated results whose answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pagnn_bench.analysis.claims import FAILS, HOLDS, MIXED, UNDECIDED, Claim, ClaimPart, check_claims
from pagnn_bench.analysis.paper import DATASETS, RATES
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.analysis.tables.timing import Timings, read_timings
from pagnn_bench.records.store import Store
from tests.fabricate import like_the_paper, make_cell, save_trials

IMPUTATION, SAT, GCNMF, N_OVER_M, SLOWER, FASTER = range(6)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def wobble(method: str, mask: int, seed: int) -> float:
    return float(np.random.default_rng([*map(ord, method), mask, seed]).normal())


def accuracy(
    store: Store,
    levels: dict[str, float],
    kinds=("type1",),
    rates=(0.1, 0.5),
    masks=3,
    noise=0.2,
    datasets=tuple(DATASETS),
) -> None:
    """Each method around its level; the masks shift all methods alike, the methods wobble by ``noise``."""
    for method, missing, rate, data in itertools.product(levels, kinds, rates, datasets):
        save_trials(
            store,
            make_cell(method, data, missing, rate),
            lambda mask, seed, m=method: levels[m] + 5 * mask + noise * wobble(m, mask, seed),
            masks=range(masks),
            seeds=range(2),
        )


def check(store: Store, claim: int) -> Claim:
    results = load_results(store)
    return check_claims(results.under("paper"), read_timings(results))[claim]


def test_a_clear_difference_holds_however_much_the_masks_vary(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, masks=5)
    part = check(store, N_OVER_M).parts[0]
    assert part.verdict == HOLDS
    assert float(part.numbers["lead (95 % interval)"].split()[0]) == pytest.approx(1.0, abs=0.1)
    assert (part.numbers["ahead in"], part.numbers["beyond chance"]) == ("8 of 8", "8 : 0")
    assert part.numbers["p"] == "< 0.001"
    assert part.note == part.numbers["on two masks"] == ""


@pytest.mark.parametrize(
    ("places", "where"),
    [
        ({"datasets": ("cora", "amacomp"), "rates": RATES}, "on Cora, AmaComp"),
        ({"rates": (0.9,)}, "at rate 0.9"),
        ({"datasets": ("cora",), "rates": (0.5, 0.9)}, "on Cora at rates 0.5, 0.9"),
    ],
    ids=str,
)
def test_a_comparison_on_some_of_the_cells_says_so_and_decides_no_claim(store, places, where):
    accuracy(store, {"sat": 70.0, "pagnn_m": 72.0, "pagnn_n": 74.0}, **places)
    claim = check(store, SAT)
    assert [part.outcome for part in claim.parts] == [f"holds {where}"] * 2
    assert claim.verdict == UNDECIDED
    assert claim.summary == f"Of 2 comparisons: 2 hold {where}."


def test_a_single_cell_that_is_missing_is_a_restriction(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, rates=RATES[1:])
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, rates=RATES[:1], datasets=tuple(DATASETS)[1:])
    assert check(store, N_OVER_M).parts[0].outcome == "holds in 19 cells"


def test_two_masks_are_named(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, masks=2)
    assert check(store, N_OVER_M).parts[0].numbers["on two masks"] == "8"


def test_an_average_that_hangs_on_one_cell_with_two_masks_is_undecided(store):
    """Seven cells with a lead of 1 to a hair, and one of 20 and 12: on one degree of freedom in all, but p < 0.05."""
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, datasets=("cora", "citeseer", "amaphoto"), noise=0.01)
    for method, lead in {"pagnn_n": (20, 19.5), "pagnn_m": (0, 0)}.items():
        cell = make_cell(method, "amacomp", "type1", 0.9)
        save_trials(store, cell, lambda mask, seed, x=lead: 60 + x[mask], masks=range(2), seeds=[0])
    part = check(store, N_OVER_M).parts[0]
    assert float(part.numbers["p"]) < 0.05
    assert part.note == "It hinges on a cell with too few masks (1.0 degrees of freedom)."
    assert part.verdict == UNDECIDED


def test_the_reverse_does_not_hold(store):
    accuracy(store, {"pagnn_n": 71.0, "pagnn_m": 72.0}, rates=RATES)
    assert check(store, N_OVER_M).verdict == FAILS


def test_what_the_numbers_do_not_tell_is_undecided(store):
    accuracy(store, {"pagnn_n": 71.0, "gcnmf": 71.0, "pagnn_m": 71.0}, kinds=("type1", "type2"), noise=2.0)
    assert check(store, GCNMF).verdict == UNDECIDED


def test_a_single_mask_decides_nothing(store):
    accuracy(store, {"pagnn_n": 90.0, "pagnn_m": 10.0}, masks=1)
    part = check(store, N_OVER_M).parts[0]
    assert part.verdict == UNDECIDED
    assert "one mask" in part.note


def test_what_was_not_run_is_named_and_leaves_the_claim_undecided(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.9, "mf": 60.0}, kinds=("type1", "type2"))
    claim = check(store, IMPUTATION)
    assert claim.verdict == UNDECIDED
    verdicts = {part.title: part.verdict for part in claim.parts}
    assert verdicts["PaGNN-N against MF, Type 2"] == HOLDS
    assert verdicts["PaGNN-M against GAIN, Type 1"] == UNDECIDED
    assert next(part for part in claim.parts if "GAIN" in part.title).note == "Not run: GAIN."
    assert claim.summary == "Of 12 comparisons: 4 hold at rates 0.1, 0.5, 8 undecided."


def test_one_part_that_fails_is_enough(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 50.0, "sat": 60.0}, rates=RATES)
    claim = check(store, SAT)
    assert [part.verdict for part in claim.parts] == [HOLDS, FAILS]
    assert claim.verdict == FAILS


def test_a_large_lead_in_few_cells_is_mixed(store):
    accuracy(store, {"pagnn_n": 71.0, "pagnn_m": 71.1}, rates=(0.1, 0.3, 0.5), noise=2)
    accuracy(store, {"pagnn_n": 60.0, "pagnn_m": 40.0}, rates=(0.7, 0.9))
    claim = check(store, N_OVER_M)
    assert (claim.parts[0].verdict, claim.verdict) == (MIXED, MIXED)
    assert claim.parts[0].numbers["ahead in"] == "8 of 20"


@pytest.mark.parametrize(("other", "verdict"), [(71.5, MIXED), (70.5, HOLDS)])
def test_a_lead_that_turns_round_at_one_rate_is_mixed(store, other, verdict):
    accuracy(store, {"pagnn_n": 60.0, "pagnn_m": 40.0}, rates=(0.1, 0.3, 0.7, 0.9))
    accuracy(store, {"pagnn_n": 71.0, "pagnn_m": other}, rates=(0.5,), noise=0.05)
    part = check(store, N_OVER_M).parts[0]
    assert part.verdict == verdict
    assert float(part.numbers["at 0.5"]) == pytest.approx(71 - other, abs=0.1)
    assert part.numbers["ahead in"] == "16 of 20" or verdict == HOLDS


@pytest.mark.parametrize("sign", [1, -1])
def test_cells_that_are_level_are_on_neither_side(store, sign):
    """One large difference and three ties: most cells do not have its sign, whichever it is."""
    for rate, lead in {0.9: 20 * sign, 0.1: 0, 0.3: 0, 0.5: 0}.items():
        # On mask 0 and 1 the wobble is the same the other way round, so that ties are exact.
        save_trials(store, make_cell("pagnn_n", rate=rate), lambda m, s, x=lead: 60 + x + m, range(2), [0])
        save_trials(store, make_cell("pagnn_m", rate=rate), lambda m, s: 60.5, range(2), [0])
    assert check(store, N_OVER_M).parts[0].verdict == MIXED


@pytest.mark.parametrize(
    "changed",
    [
        {"method_": {"hidden": 32}},
        {"data_": {"split": "random"}},
        {"data": "synthetic"},
        {"rate": 0.95},
    ],
    ids=str,
)
def test_only_the_papers_cells_count(store, changed):
    save_trials(store, make_cell(**changed), lambda mask, seed: 90.0 + mask)
    rest = {key: value for key, value in changed.items() if key != "method_"}
    save_trials(store, make_cell("pagnn_m", **rest), lambda mask, seed: 50.0 + mask)
    part = check(store, N_OVER_M).parts[0]
    assert part.verdict == UNDECIDED
    assert part.note == ("Not run: PaGNN-N." if "method_" in changed else "Not run: PaGNN-N, PaGNN-M.")


def test_the_papers_own_numbers_stand_beside(store):
    part = check(store, SAT).parts[0]
    assert part.paper == {"paper's lead": "+2.10", "paper ahead in": "19 of 20"}
    accuracy(store, {"sat": 70.0, "pagnn_n": 74.0}, rates=(0.9,), datasets=("cora",))
    part = check(store, SAT).parts[0]
    assert part.paper == {"paper's lead": "+4.93", "paper ahead in": "1 of 1"}  # 56.60 and 51.67 in Table 2


def timed(store: Store, method: str, ms: float, repeats: int = 3, datasets=("cora",)) -> None:
    for data, seed in itertools.product(datasets, range(repeats)):
        record = {"seed": seed, "status": "ok", "test_acc": 0.7, "epochs": 100}
        facts = {"stack": 1, "train_seconds": ms * 0.1 * (1 + 0.01 * seed), "seed_epochs": 100}
        store.save(make_cell(method, data, protocol="timing"), 0, [record], facts, {})


@pytest.mark.parametrize(("ms", "verdict"), [(12.0, HOLDS), (25.0, FAILS), (8.0, FAILS), (10.05, UNDECIDED)])
def test_slightly_slower_than_mf(store, ms, verdict):
    timed(store, "mf", 10.0)
    timed(store, "pagnn_n", ms)
    part = check(store, SLOWER).parts[0]
    assert part.verdict == verdict
    assert part.numbers == {"Cora": f"{ms / 10:.2f}"} or verdict == UNDECIDED


@pytest.mark.parametrize(
    ("datasets", "verdict", "outcome"),
    [(("cora", "amaphoto"), UNDECIDED, "holds on Cora, AmaPhoto"), (tuple(DATASETS), HOLDS, "holds")],
)
def test_times_on_some_of_the_datasets_decide_no_claim(store, datasets, verdict, outcome):
    for method, ms in {"mf": 10.0, "pagnn_n": 12.0, "pagnn_m": 12.0}.items():
        timed(store, method, ms, datasets=datasets)
    claim = check(store, SLOWER)
    assert (claim.verdict, claim.parts[0].outcome) == (verdict, outcome)


def test_a_small_ratio_is_no_zero(store):
    timed(store, "mf", 1000.0)
    timed(store, "pagnn_n", 4.2)
    assert check(store, SLOWER).parts[0].numbers == {"Cora": "0.004"}


def test_faster_than_the_others_needs_repeats(store):
    timed(store, "gain", 100.0, repeats=1)
    timed(store, "gcnmf", 100.0)
    timed(store, "pagnn_n", 10.0)
    verdicts = {part.title: part.verdict for part in check(store, FASTER).parts}
    assert verdicts["PaGNN-N against GAIN"] == UNDECIDED
    assert verdicts["PaGNN-N against GCNmf"] == HOLDS
    assert verdicts["PaGNN-M against GCNmf"] == UNDECIDED


def test_nothing_run_decides_nothing():
    claims = check_claims([], Timings(None, []))
    assert len(claims) == 6
    assert {claim.verdict for claim in claims} == {UNDECIDED}


def test_a_claim_follows_from_its_parts():
    def claim(*verdicts: str) -> Claim:
        return Claim("", [ClaimPart("", verdict) for verdict in verdicts])

    assert claim(HOLDS, HOLDS).verdict == HOLDS
    assert claim(HOLDS, UNDECIDED).verdict == UNDECIDED
    assert claim(HOLDS, UNDECIDED, MIXED).verdict == MIXED
    assert claim(HOLDS, UNDECIDED, MIXED, FAILS).verdict == FAILS
    assert claim(HOLDS, HOLDS, MIXED, FAILS).summary == "Of 4 comparisons: 2 hold, 1 does not, 1 mixed."


def test_results_like_the_papers_give_the_papers_answers(store):
    for method in ("sat", "pagnn_m", "pagnn_n"):
        for rate in (0.1, 0.5, 0.9):
            cell = make_cell(method, rate=rate)
            save_trials(store, cell, like_the_paper(cell, spread=0.1), masks=range(3), seeds=range(2))
    claim = check(store, SAT)
    assert claim.parts[0].verdict == HOLDS


def test_only_columns_with_something_in_them_are_shown(store):
    accuracy(store, {"pagnn_n": 72.0, "pagnn_m": 71.0}, rates=(0.5, 0.9))
    claim = check(store, N_OVER_M)
    shown = ["lead (95 % interval)", "p", "at 0.5", "at 0.9", "ahead in", "beyond chance"]
    assert claim.columns == [*shown, "paper's lead", "paper ahead in"]
    first, second = (dict(zip(claim.columns, claim.row(part), strict=True)) for part in claim.parts)
    assert first["ahead in"] == "8 of 8"
    assert [second[name] for name in shown] == [""] * len(shown)  # type 2 was not run
    assert second["paper ahead in"] == "17 of 20"
