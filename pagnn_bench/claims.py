"""The claims of the paper (section 4.3), checked one by one on our numbers.

A claim has parts, such as «PaGNN-N against GAIN on type 2», and each part is decided by itself:

* accuracy: the paired difference on the same masks, averaged over those of the paper's cells that both methods have,
  differs from zero at 5 % (Holm's correction over the parts of the claim), and most of the cells have its sign; where
  the average differs from zero but most cells do not have its sign, the outcome is mixed;
* time: in every dataset that was timed the quartiles over repeats lie apart.

A claim holds if all its parts hold, does not if one of them does not, is mixed if one of them is, and is undecided
otherwise, be it because something was not run or because the numbers do not tell. A part that is decided on some of the
paper's datasets only says so, and does not decide the claim.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagnn_bench.paper import DATASETS, METHODS, paper_entries
from pagnn_bench.stats import CONFIDENCE, Comparison, compare, holm
from pagnn_bench.summary import count
from pagnn_bench.tables.results import LABELS, Result, by_method, in_order, paired_differences
from pagnn_bench.tables.timing import Timing, at, timed_places

HOLDS, FAILS, MIXED, UNDECIDED = "holds", "does not hold", "mixed", "undecided"
PAGNN = ("pagnn_n", "pagnn_m")
SLIGHTLY = 2.0  # «slightly slower»: less than twice the time; the paper gives no number


@dataclass(frozen=True)
class Part:
    """One comparison.

    Attributes:
        what: who against whom, and where.
        verdict: HOLDS, FAILS, MIXED or UNDECIDED.
        evidence: the numbers behind it, or what is missing.
        paper: what the paper's own numbers say, if it prints them.
        was_run: False if one of the two has no numbers at all.
        where: the datasets that it is about, where they are not all of the paper's.
    """

    what: str
    verdict: str
    evidence: str
    paper: str = ""
    was_run: bool = True
    where: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """The verdict, and what it is restricted to."""
        return _on(self.verdict, self.where)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and its parts."""

    text: str
    parts: list[Part]

    @property
    def verdict(self) -> str:
        told = {UNDECIDED if part.where else part.verdict for part in self.parts}
        return next(verdict for verdict in (FAILS, MIXED, UNDECIDED, HOLDS) if verdict in told)

    @property
    def summary(self) -> str:
        """How the parts came out, in one sentence."""
        counts = Counter((part.verdict, part.where) for part in self.parts)
        words = {HOLDS: ("holds", "hold"), FAILS: ("does not", "do not")}
        order = (HOLDS, FAILS, MIXED, UNDECIDED)
        texts = [
            f"{number} {_on(words.get(verdict, (verdict, verdict))[number > 1], where)}"
            for (verdict, where), number in sorted(
                counts.items(), key=lambda item: (order.index(item[0][0]), -len(item[0][1]), item[0][1])
            )
        ]
        return f"Of {count(len(self.parts), 'comparison')}: {', '.join(texts)}."


def _on(verdict: str, where: Sequence[str]) -> str:
    return f"{verdict} on {', '.join(where)}" if where else verdict


def check_claims(results: Sequence[Result], timings: Sequence[Timing]) -> list[Claim]:
    """All claims.

    Args:
        results: of one protocol.
        timings: of trials that were timed alone.
    """
    both = ("type1", "type2")
    return [
        Claim(
            "PaGNN performs better than the imputation methods MF, VAE and GAIN on both types.",
            _accuracy_parts(
                results, [(own, rival) for rival in ("mf", "vae", "gain") for own in PAGNN], both
            ),
        ),
        Claim(
            "PaGNN generally performs better than SAT on type 1.",
            _accuracy_parts(results, [(own, "sat") for own in PAGNN], ("type1",)),
        ),
        Claim(
            "PaGNN outperforms GCNmf.",
            _accuracy_parts(results, [(own, "gcnmf") for own in PAGNN], both),
        ),
        Claim(
            "PaGNN-N generally performs slightly better than PaGNN-M.",
            _accuracy_parts(results, [("pagnn_n", "pagnn_m")], both),
        ),
        Claim(
            "PaGNN is slightly slower per epoch than MF.",
            [_time_part(timings, own, "mf", 1.0, SLIGHTLY) for own in PAGNN],
        ),
        Claim(
            "PaGNN is faster per epoch than GAIN, VAE, SAT and GCNmf.",
            [
                _time_part(timings, own, rival, 0.0, 1.0)
                for rival in ("gain", "vae", "sat", "gcnmf")
                for own in PAGNN
            ],
        ),
    ]


# ---- accuracy


def _accuracy_parts(
    results: Sequence[Result], pairs: Sequence[tuple[str, str]], kinds: Sequence[str]
) -> list[Part]:
    methods = by_method(result for result in results if result.paper is not None and result.is_default)
    parts, comparisons = [], []
    for missing in kinds:
        for own, rival in pairs:
            ours, theirs = methods.get(own, {}), methods.get(rival, {})
            shared = [place for place in ours if place in theirs and place[0] == missing]
            absent = [
                METHODS[name]
                for name, cells in ((own, ours), (rival, theirs))
                if not any(p[0] == missing for p in cells)
            ]
            differences = {place: paired_differences(ours[place], theirs[place]) for place in shared}
            comparison = compare([*differences.values()])
            told = in_order(
                (data for (_, data, _), by_mask in differences.items() if len(by_mask) > 1), DATASETS
            )
            what = f"{METHODS[own]} against {METHODS[rival]}, {LABELS[missing]}"
            evidence = (
                f"Not run: {', '.join(absent)}." if absent else _evidence(comparison, told, bool(shared))
            )
            where = tuple(DATASETS[data] for data in told) if len(told) < len(DATASETS) else ()
            paper = _in_the_paper(own, rival, missing)
            parts.append(Part(what, UNDECIDED, evidence, paper, not absent, where))
            comparisons.append(comparison)
    corrected = iter(holm([found.average.p_value for found in comparisons if found.average is not None]))
    decided = []
    for part, comparison in zip(parts, comparisons):
        if comparison.average is not None:
            p = next(corrected)
            verdict = _verdict(comparison) if p < 1 - CONFIDENCE else UNDECIDED
            where = () if verdict == UNDECIDED else part.where
            text = f"{part.evidence} Corrected p {_p(p)}."
            part = replace(part, verdict=verdict, evidence=text, where=where)
        decided.append(part)
    return decided


def _verdict(comparison: Comparison) -> str:
    """Of a comparison whose average differs from zero: a large lead in few cells is no lead in general."""
    assert comparison.average is not None
    positive = comparison.average.interval.mean > 0
    of_its_sign = comparison.ahead if positive else comparison.behind
    if 2 * of_its_sign <= comparison.cells:
        return MIXED
    return HOLDS if positive else FAILS


def _evidence(comparison: Comparison, told: Sequence[str], shared: bool) -> str:
    if comparison.average is None:
        reason = (
            "no cell in common"
            if not shared
            else "a single mask in common, which tells nothing of its variation"
        )
        return f"{reason[0].upper()}{reason[1:]}."
    interval = comparison.average.interval
    thin = f" ({comparison.thin} have two masks, which hardly show anything)" if comparison.thin else ""
    return (
        f"{interval.mean:+.2f} points on average over {count(comparison.cells, 'cell')} "
        f"of {', '.join(DATASETS[data] for data in told)} "
        f"(95 % interval, uncorrected: {interval.low:+.2f} to {interval.high:+.2f}); ahead in {comparison.ahead} of "
        f"them, beyond chance in {comparison.wins}, behind beyond chance in {comparison.losses}{thin}."
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _in_the_paper(own: str, rival: str, missing: str) -> str:
    entries = paper_entries()
    differences = [
        entry.accuracy - entries[missing, data, rival, rate].accuracy
        for (kind, data, method, rate), entry in entries.items()
        if (kind, method) == (missing, own) and (missing, data, rival, rate) in entries
    ]
    ahead = sum(difference > 0 for difference in differences)
    return f"{statistics.fmean(differences):+.2f} on average, ahead in {ahead} of {count(len(differences), 'cell')}"


# ---- time


def _time_part(timings: Sequence[Timing], own: str, rival: str, low: float, high: float) -> Part:
    """Is the ratio of times between ``low`` and ``high`` in every dataset?"""
    what = f"{METHODS[own]} against {METHODS[rival]}"
    found, ratios = [], []
    for place in timed_places(timings):
        here = at(timings, place)
        if own in here and rival in here:
            ratio = here[own].median / here[rival].median
            ratios.append(f"{ratio:{'.2f' if ratio >= 0.1 else '.1g'}} on {here[own].labels['data']}")
            found.append(_time_verdict(here[own], here[rival], ratio, low, high))
    if not found:
        return Part(what, UNDECIDED, "Not timed: pagnn-bench run -m experiment=timing", was_run=False)
    verdict = FAILS if FAILS in found else HOLDS if set(found) == {HOLDS} else UNDECIDED
    return Part(what, verdict, f"Time per epoch as a multiple of {METHODS[rival]}'s: {', '.join(ratios)}.")


def _time_verdict(own: Timing, rival: Timing, ratio: float, low: float, high: float) -> str:
    (own_low, own_high), (rival_low, rival_high) = own.quartiles, rival.quartiles
    repeated = min(len(own.repeats), len(rival.repeats)) > 1
    apart = own_high < rival_low or rival_high < own_low
    if not repeated or not apart:
        return UNDECIDED
    return HOLDS if low < ratio < high else FAILS
