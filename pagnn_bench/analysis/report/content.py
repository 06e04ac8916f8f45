"""Everything the page says, as plain data for its template."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pagnn_bench import __version__
from pagnn_bench.analysis.claims import FAILS, HOLDS, MIXED, UNDECIDED, Claim, check_claims
from pagnn_bench.analysis.figures.canvas import Figure, page_svgs
from pagnn_bench.analysis.paper import TABLES
from pagnn_bench.analysis.published import published_under
from pagnn_bench.analysis.report.statistics import statistics_tables
from pagnn_bench.analysis.tables.captions import describe_protocol, legend
from pagnn_bench.analysis.tables.layout import Table, signed
from pagnn_bench.analysis.tables.leads import PROTOCOLS, leads_table
from pagnn_bench.analysis.tables.render import to_html
from pagnn_bench.analysis.tables.results import DIFFERS, INSIDE, TOLERATED, TOO_FEW, Result, Results, in_order
from pagnn_bench.analysis.tables.selection import accuracy_tables, everything
from pagnn_bench.analysis.tables.timing import Timings, timing_table
from pagnn_bench.config.text import count, failure_reason


@dataclass(frozen=True)
class Download:
    """A file that the page offers for download: its name and a ``data:`` address."""

    name: str
    address: str


def page_content(
    results: Results,
    protocol: str,
    timings: Timings,
    figures: Sequence[Figure],
    downloads: dict[str, list[Download]],
) -> dict[str, Any]:
    """The variables of the template.

    Args:
        results: everything.
        protocol: the one behind verdict, claims, figures and statistics.
        timings: of trials that were timed alone.
        figures: drawn figures.
        downloads: files by group: ``tables``, and the name of each figure.
    """
    under = results.under(protocol)
    run = [result for result in under if result.mean is not None]
    claims = check_claims(under, timings)
    kinds = in_order((result.key.missing for result in run), TABLES.values())
    return {
        "version": __version__,
        "protocol": protocol,
        "empty": not results.all,
        "verdict": verdict_sentences(under, claims, protocol),
        "how": describe_protocol(run),
        "protocols": _protocols(results, protocol),
        "leads": _html(leads) if (leads := leads_table(results)) else None,
        "claims": claims,
        "claims_elsewhere": _elsewhere(results, protocol, timings),
        "legend": legend(published_under(protocol)),
        "tables": [_html(table) for table in accuracy_tables(results, protocol, compare=True, abreast=1)],
        "rows": [_row(result) for result in everything(results, protocol)],
        "figures": [figure_content(figure, downloads.get(figure.name, [])) for figure in figures],
        "statistics": [_html(table) for kind in kinds for table in statistics_tables(under, kind)],
        "timing": _html(timing_table(timings)),
        "failures": _failures(results.all),
        "damaged": [(path.name, reason) for path, reason in results.damaged.items()],
        "environments": environments(_provenances(results.all)),
        "checksums": _checksums(results.all),
        "downloads": downloads.get("tables", []),
    }


def _html(table: Table) -> Markup:
    return Markup(to_html(table))  # to_html escapes every text


def _elsewhere(results: Results, protocol: str, timings: Timings) -> dict[str, list[Claim]]:
    """The claims under the other protocols that answer the same question, where those were run."""
    others = [name for name in PROTOCOLS if name != protocol and name in results.protocols]
    return {PROTOCOLS[name]: check_claims(results.under(name), timings) for name in others}


# ---- the verdict


def verdict_sentences(results: Sequence[Result], claims: Sequence[Claim], protocol: str) -> list[str]:
    """The reproduction in three sentences: what was run, how close it is, which claims hold."""
    return [_coverage(results, protocol), _agreement(results, protocol), _standing(claims)]


def _coverage(results: Sequence[Result], protocol: str) -> str:
    run = [result for result in results if result.mean is not None]
    entries = sum(result.paper is not None and result.is_default for result in run)
    trials = sum(result.summary.trials for result in run)
    published = published_under(protocol)
    share = f"{entries} of the {len(published.entries)} entries {published.where}"
    if not run:
        return f"Nothing has been run under the protocol {protocol} yet."
    others = len(run) - entries
    more = f", plus {count(others, 'other cell')}" if others else ""
    return f"Under the protocol {protocol}, {share} were run{more}: {count(trials, 'trial')} in all."


def _agreement(results: Sequence[Result], protocol: str) -> str:
    whose = published_under(protocol).whose
    both = [result for result in results if result.difference is not None and result.is_default]
    if not both:
        return f"There is no number to compare with {whose} ones."
    verdicts = Counter(result.verdict for result in both)
    sizes = [abs(result.difference or 0.0) for result in both]
    farthest = max(both, key=lambda result: abs(result.difference or 0.0))
    inside = [result.summary.interval for result in both if result.verdict == INSIDE]
    halves = [(interval.high - interval.low) / 2 for interval in inside if interval is not None]
    width = f" (median half-width ±{statistics.median(halves):.2f} points)" if halves else ""
    place = ", ".join(farthest.labels[group] for group in ("method", "data", "missing"))
    return (
        f"In {verdicts[INSIDE]} {whose} number lies inside our 95 % interval{width}, in {verdicts[TOLERATED]} more "
        f"within the tolerance, in {verdicts[DIFFERS]} it differs, and {verdicts[TOO_FEW]} have too few masks to "
        f"tell; the median distance is {statistics.median(sizes):.2f} points, the largest "
        f"{signed(farthest.difference or 0.0)} ({place}, rate {farthest.key.rate:g})."
    )


def _standing(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    words = {
        HOLDS: ("holds", "hold"),
        FAILS: ("does not", "do not"),
        MIXED: ("is mixed", "are mixed"),
        UNDECIDED: ("is undecided", "are undecided"),
    }
    texts = [
        f"{counts[key]} {one if counts[key] == 1 else many}"
        for key, (one, many) in words.items()
        if counts[key]
    ]
    listed = " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
    return f"Of the paper's {len(claims)} claims, {listed} on these numbers."


# ---- the parts


def _protocols(results: Results, protocol: str) -> list[tuple[str, str]]:
    """Name and size of every other protocol with results; all settings of a protocol are counted together."""
    cells = Counter(result.key.protocol for result in results.all if result.key.protocol != protocol)
    sizes = {family: sum(cells[name] for name in names) for family, names in results.families.items()}
    names = {protocol: f"{protocol} with other settings"}
    return [(names.get(family, family), count(size, "cell")) for family, size in sizes.items() if size]


def _row(result: Result) -> dict[str, Any]:
    return {
        **result.values(),
        "labels": result.labels,
        "copied": result.copied,
        "failed": result.summary.failed + sum(len(failure.seeds) for failure in result.failures),
        "run": result.cell is not None,
    }


def figure_content(figure: Figure, downloads: Sequence[Download]) -> dict[str, Any]:
    """A figure for its macro."""
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "legend": figure.legend,
        "svgs": [Markup(svg) for svg in page_svgs(figure)],  # matplotlib escapes every text
        "downloads": downloads,
    }


def _failures(results: Iterable[Result]) -> list[dict[str, str]]:
    failures = []
    for result in results:
        labels = ", ".join(result.labels[group] for group in ("method", "data", "missing"))
        cell = f"{labels}, rate {result.key.rate:g}, protocol {result.key.protocol}"
        for failure in result.failures:
            which = f"mask {failure.mask}, {count(len(failure.seeds), 'seed')}"
            failures.append(
                {
                    "cell": cell,
                    "trials": which,
                    "reason": failure_reason(failure.error),
                    "trace": failure.traceback,
                }
            )
        for trial in result.trials:
            if not trial.ok:
                which, reason = f"mask {trial.mask}, seed {trial.seed}", trial.record.get("reason", "")
                failures.append({"cell": cell, "trials": which, "reason": reason, "trace": ""})
    return failures


def environments(provenances: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each combination of commit, versions and device once, with the number of batches it produced."""
    counted: Counter[tuple[tuple[str, str], ...]] = Counter()
    for provenance in provenances:
        git, machine = provenance.get("git") or {}, provenance.get("platform") or {}
        commit = (
            f"{str(git.get('commit'))[:10]}{' with changes' if git.get('dirty') else ''}"
            if git
            else "unknown"
        )
        packages = {"python": provenance.get("python"), **(provenance.get("packages") or {})}
        facts = {
            "commit": commit,
            "version": provenance.get("version", ""),
            "device": _device(provenance),
            "platform": " ".join(str(machine.get(key, "")) for key in ("system", "machine")),
            "packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        }
        counted[tuple((key, str(value)) for key, value in facts.items())] += 1
    return [{**dict(facts), "batches": str(number)} for facts, number in counted.most_common()]


def _device(provenance: Mapping[str, Any]) -> str:
    """Device and threads; for a GPU its name, driver and libraries."""
    threads = count(provenance.get("threads") or 0, "thread")
    if gpu := provenance.get("gpu"):
        tf32 = "on" if gpu["tf32"] else "off"
        libraries = f"driver {gpu['driver']}, CUDA {gpu['cuda']}, cuDNN {gpu['cudnn']}, TF32 {tf32}"
        return f"{gpu['name']}, {libraries}, {threads}"
    return f"{provenance.get('device', '')}, {threads}"


def _provenances(results: Iterable[Result]) -> Iterable[dict[str, Any]]:
    for result in results:
        yield from {trial.batch.path: trial.batch.provenance for trial in result.trials}.values()


def _checksums(results: Iterable[Result]) -> list[tuple[str, str, str]]:
    """Dataset, split and checksum of the graphs that were trained on."""
    checksums = {
        (result.labels["data"], str(result.cell.data.get("split", "")), provenance["data_checksum"])
        for result in results
        if result.cell is not None
        for provenance in _provenances([result])
        if provenance.get("data_checksum")
    }
    return sorted(checksums)
