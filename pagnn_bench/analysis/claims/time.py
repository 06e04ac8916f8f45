"""Claims about the time per epoch: the ratio of two methods, dataset by dataset."""

from __future__ import annotations

from pagnn_bench.analysis.claims.parts import FAILS, HOLDS, UNDECIDED, ClaimPart
from pagnn_bench.analysis.paper import DATASETS, METHODS
from pagnn_bench.analysis.tables.timing import Timing, Timings


def time_part(timings: Timings, own: str, rival: str, low: float, high: float) -> ClaimPart:
    """Is the ratio of times between ``low`` and ``high`` in every dataset?"""
    title = f"{METHODS[own]} against {METHODS[rival]}"
    verdicts: dict[str, str] = {}  # on the datasets where both were timed
    ratios: dict[str, str] = {}
    names: dict[str, str] = {}
    for place in timings.places:
        here, data = timings.at(place), place[0]
        names[data] = next(iter(here.values())).labels["data"]
        ratios[names[data]] = ""
        if own in here and rival in here:
            ratio = here[own].median / here[rival].median
            ratios[names[data]] = f"{ratio:{'.2f' if ratio >= 0.1 else '.1g'}}"
            verdicts[data] = _verdict(here[own], here[rival], ratio, low, high)
    if not verdicts:
        return ClaimPart(
            title, UNDECIDED, note="Not timed: pagnn-bench run -m experiment=timing", was_run=False
        )
    distinct = set(verdicts.values())
    verdict = FAILS if FAILS in distinct else HOLDS if distinct == {HOLDS} else UNDECIDED
    everywhere = verdict == UNDECIDED or verdicts.keys() >= DATASETS.keys()
    where = "" if everywhere else f"on {', '.join(names[data] for data in verdicts)}"
    return ClaimPart(title, verdict, ratios, where=where)


def _verdict(own: Timing, rival: Timing, ratio: float, low: float, high: float) -> str:
    (own_low, own_high), (rival_low, rival_high) = own.quartiles, rival.quartiles
    repeated = min(len(own.repeats), len(rival.repeats)) > 1
    apart = own_high < rival_low or rival_high < own_low
    if not repeated or not apart:
        return UNDECIDED
    return HOLDS if low < ratio < high else FAILS
