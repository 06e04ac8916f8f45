"""The measured parts of README.md, docs/protocol.md and docs/reproduction.md, each a function of the results.

:mod:`write_docs` puts them into the pages.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable

from pagnn_bench.analysis.claims import check_claims
from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, TABLES
from pagnn_bench.analysis.report.content import verdict_sentences
from pagnn_bench.analysis.summary import Summary
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.render import to_markdown
from pagnn_bench.analysis.tables.results import (
    DIFFERS,
    INSIDE,
    LABELS,
    TOLERATED,
    TOO_FEW,
    Result,
    Results,
    paired_differences,
)
from pagnn_bench.analysis.tables.timing import measure, timing_protocol, timing_table
from pagnn_bench.config.text import count, duration

GRID = "grid"  # the protocol's name in experiment=protocol_grid
DECAY = "weight_decay"  # the protocol's name in experiment=weight_decay
CONTROLS = ("zero", "fp", "pcfi", "mask_concat", "full")
# Protocols with one setting for all methods, beside which the tuned results stand, and how they are called there.
SHARED = {
    "paper": "`paper`",
    "documented": "`documented`",
    "paper[stopping=val_loss]": "`paper`, stopping on loss",
    "literal": "`literal`",
}


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---- docs/protocol.md


def grid(results: Results) -> str:
    """Mean validation accuracy of the grid, a table per feature normalisation."""
    found: dict[tuple[str, str, str, float], dict[float, list[float]]] = defaultdict(dict)
    for result in results.all:
        if result.cell is None or result.cell.protocol["name"] != GRID:
            continue
        protocol, cell = result.cell.protocol, result.cell
        place = (protocol["feature_norm"], cell.data["name"], cell.missing["name"], cell.rate)
        accuracies = [100 * trial.record["val_acc"] for trial in result.trials if trial.ok]
        found[place][protocol["weight_decay"]] = accuracies
    decays = sorted({decay for line in found.values() for decay in line})
    texts = []
    for norm, title in {"none": "Raw features", "row": "Rows normalised (observed entries only)"}.items():
        rows = []
        for data, label in DATASETS.items():
            places = sorted(place for place in found if place[:2] == (norm, data))
            for place in places:
                seeds = max(len(values) for values in found[place].values())
                name = f"{label}, {LABELS[place[2]]}, rate {place[3]:g} ({count(seeds, 'seed')})"
                rows.append([name, *_validation(found[place], decays)])
            if len(places) > 1:
                shared = set.intersection(*(set(found[place]) for place in places))
                means = {
                    decay: statistics.fmean(statistics.fmean(found[place][decay]) for place in places)
                    for decay in shared
                }
                best = max(means, key=lambda decay: means[decay])
                texts_of = [_strong(f"{means[d]:.2f}", d == best) if d in means else "" for d in decays]
                rows.append([f"**{label}, mean of these**", *texts_of])
        texts.append(f"{title}:\n\n" + _table(["weight decay", *(f"{decay:g}" for decay in decays)], rows))
    return "\n\n".join(texts)


def _validation(line: dict[float, list[float]], decays: list[float]) -> list[str]:
    means = {decay: statistics.fmean(values) for decay, values in line.items()}
    best = max(means, key=lambda decay: means[decay])
    texts = []
    for decay in decays:
        if decay not in means:
            texts.append("")
            continue
        error = statistics.stdev(line[decay]) / len(line[decay]) ** 0.5 if len(line[decay]) > 1 else 0.0
        texts.append(f"{_strong(f'{means[decay]:.2f}', decay == best)} ±{error:.2f}")
    return texts


def _strong(text: str, really: bool) -> str:
    return f"**{text}**" if really else text


# ---- docs/reproduction.md


def _accuracy(number: str) -> Callable[[Results], str]:
    def part(results: Results) -> str:
        table = accuracy_table(results.under("paper"), TABLES[number], compare=True)
        return to_markdown(table).partition("\n\n")[2] if table.parts else "Nothing run yet."

    return part


def verdicts(results: Results) -> str:
    """How many entries agree, by missing type and dataset, after three sentences on the whole."""
    under = results.under("paper")
    counted = [result for result in under if result.paper is not None and result.is_default]
    rows = []
    for missing in TABLES.values():
        for data in DATASETS:
            here = [r for r in counted if (r.key.missing, r.key.data) == (missing, data)]
            run = [result for result in here if result.verdict is not None]
            agree = [result for result in run if result.verdict in (INSIDE, TOLERATED)]
            differ = [result for result in run if result.verdict == DIFFERS]
            alone = [result for result in differ if result.summary.masks == 1]
            too_few = [result for result in run if result.verdict == TOO_FEW]
            close = [result for result in run if abs(result.difference or 0) <= 1]
            mean = f"{statistics.fmean(r.difference or 0 for r in run):+.2f}" if run else ""
            rows.append(
                [
                    LABELS[missing],
                    DATASETS[data],
                    *map(str, map(len, (here, run, agree, differ, alone, too_few, close))),
                    mean,
                ]
            )
    head = ["", "dataset", "entries", "run", "agree", "differ", "of these on one mask", "too few masks"]
    head += ["within one point", "mean difference"]
    sentences = verdict_sentences(under, check_claims(under, _timings(results)), "paper")
    return "\n".join([*sentences, "", _table(head, rows)])


def claims(results: Results) -> str:
    """Every claim, under the paper's protocol and, as far as that was run, with every method tuned."""
    timings = _timings(results)
    names = [name for name in ("paper", "tuned") if name in results.protocols]
    checked = {name: check_claims(results.under(name), timings) for name in names}
    texts = []
    for number, claim in enumerate(checked[names[0]]):
        texts.append(f"### {claim.text}")
        for name in names:
            told = checked[name][number]
            # Times are the same whatever the protocol, and one under which nothing was run needs no table.
            if name == names[0] or (told != claim and any(part.was_run for part in told.parts)):
                rows = [
                    [part.what, f"{part.outcome}. {part.note}".strip(" ."), *told.row(part)]
                    for part in told.parts
                    if part.was_run or name == names[0]
                ]
                texts.append(f"Under `protocol={name}`: **{told.verdict}**. {told.summary}")
                texts.append(_table(["comparison", "verdict", *told.columns], rows))
    return "\n\n".join(texts)


def tuned(results: Results) -> str:
    """The tables under protocol=tuned, beside protocols with one setting for all methods on the same cells."""
    under = results.under("tuned")
    found = {
        (name, r.key.missing, r.key.data, r.key.method, r.key.rate): f"{r.mean:.2f}"
        for name in SHARED
        for r in results.under(name)
        if r.mean is not None
    }
    rows = []
    for result in under:
        if result.mean is None or result.cell is None:
            continue
        key = result.key
        others = [found.get((name, key.missing, key.data, key.method, key.rate), "") for name in SHARED]
        names = [result.labels[key] for key in ("missing", "data", "method")]
        ours = f"{result.mean:.2f} ±{result.summary.mask_std or 0:.2f}"
        chosen = result.cell.protocol["tuning"]["chosen"]
        setting = ", ".join(f"{key.partition('.')[2]} {value}" for key, value in chosen.items())
        printed = f"{result.paper:.2f}" if result.paper is not None else ""
        rows.append([*names, f"{result.key.rate:g}", ours, *others, printed, setting])
    head = ["", "dataset", "method", "rate", "`tuned`", *SHARED.values(), "the paper", "chosen"]
    return _table(head, rows) if rows else "Nothing run yet."


def decay(results: Results) -> str:
    """Accuracy by weight decay, the paper's number, and how far PaGNN-N is ahead of the others on the same masks."""
    found: dict[tuple[str, float, str], dict[float, Result]] = defaultdict(dict)
    for result in results.all:
        if result.cell is not None and result.cell.protocol["name"] == DECAY and result.mean is not None:
            place = (result.labels["data"], result.key.rate, result.cell.method["label"])
            found[place][result.cell.protocol["weight_decay"]] = result
    decays = sorted({value for line in found.values() for value in line})
    rows = []
    for (data, rate, method), line in sorted(found.items(), key=lambda item: _place(*item[0])):
        ours = found.get((data, rate, METHODS["pagnn_n"]), {})
        texts = [_with_lead(line.get(v), ours.get(v) if line is not ours else None) for v in decays]
        paper = next(iter(line.values())).paper
        rows.append([data, f"{rate:g}", method, *texts, f"{paper:.1f}" if paper else ""])
    head = ["dataset", "rate", "method", *(f"{v:g}" for v in decays), "the paper"]
    return _table(head, rows) if rows else "Nothing run yet."


def _place(data: str, rate: float, method: str) -> tuple[int, float, int]:
    """Datasets and methods in the paper's order, controls behind."""
    methods = [*METHODS.values()]
    return (
        [*DATASETS.values()].index(data),
        rate,
        methods.index(method) if method in methods else len(methods),
    )


def _with_lead(result: Result | None, leader: Result | None) -> str:
    """Mean and spread over masks, and the leader's distance on the masks that both have."""
    if result is None:
        return ""
    lead = f" ({statistics.fmean(paired_differences(leader, result)):+.1f})" if leader else ""
    spread = f" ±{result.summary.mask_std:.1f}" if result.summary.mask_std is not None else ""
    return f"{result.mean:.1f}{spread}{lead}"


def timing(results: Results) -> str:
    """Time per epoch."""
    return to_markdown(timing_table(_timings(results), timing_protocol(results))).partition("\n\n")[2]


def not_run(results: Results) -> str:
    """What is empty, and what has fewer trials than the paper names."""
    have = {
        (r.key.missing, r.key.data, r.key.method, r.key.rate): r.summary
        for r in results.under("paper")
        if r.trials
    }
    lines = []
    for missing in TABLES.values():
        for data, label in DATASETS.items():
            methods = [name for name in (*METHODS, *CONTROLS) if (name, missing) != ("sat", "type2")]
            empty = {
                method: [rate for rate in RATES if (missing, data, method, rate) not in have]
                for method in methods
            }
            texts = [_some(method, rates) for method, rates in empty.items() if rates]
            lines.append([LABELS[missing], label, ", ".join(texts) or "none"])
    counts = sorted(map(_size, have.values()))
    sizes = ", ".join(f"{size} ({counts.count(size)})" for size in dict.fromkeys(counts))
    return (
        _table(["", "dataset", "empty cells"], lines)
        + f"\n\nMasks x seeds behind the cells that were run (number of cells): {sizes}."
    )


def _size(summary: Summary) -> str:
    """Masks x seeds, these on average."""
    return f"{summary.masks} x {round(summary.trials / summary.masks, 1):g}"


def _some(method: str, rates: list[float]) -> str:
    return (
        f"`{method}`" if len(rates) == len(RATES) else f"`{method}` at {', '.join(f'{r:g}' for r in rates)}"
    )


def _timings(results: Results) -> list:
    timed = timing_protocol(results)
    return measure(results.under(timed)) if timed else []


# ---- README.md


def headline(results: Results) -> str:
    """Ours and, in brackets, the paper's."""
    found = {
        (r.key.missing, r.key.data, r.key.method, r.key.rate): r
        for r in results.under("paper")
        if r.mean is not None
    }
    rows = []
    sizes: dict[str, set[str]] = {}
    for data in DATASETS:
        for method in ("mf", "pagnn_m", "pagnn_n"):
            line = [found.get(("type1", data, method, rate)) for rate in RATES]
            if any(line):
                rows.append([DATASETS[data], METHODS[method], *map(_ours_and_theirs, line)])
                sizes.setdefault(DATASETS[data], set()).update(_size(r.summary) for r in line if r)
    trials = [trial for result in found.values() for trial in result.trials]
    batches = {trial.batch.path: trial.batch for trial in trials}
    seconds = sum(batch.facts.get("total_seconds", 0.0) for batch in batches.values())
    head = ["type 1", "method", *(f"{rate:g}" for rate in RATES)]
    return (
        _table(head, rows)
        + "\n\nMasks x seeds behind each of these numbers: "
        + ", ".join(f"{data} {' or '.join(sorted(some))}" for data, some in sizes.items())
        + f".\nBehind the two tables stand {count(len(found), 'cell')} with {count(len(trials), 'trial')}, "
        + f"{duration(seconds)} in processes of one thread, on a machine with two cores."
    )


def _ours_and_theirs(result: Result | None) -> str:
    return "" if result is None else f"{result.mean:.1f} ({result.paper:.1f})"


PARTS = {
    "grid": grid,
    "table2": _accuracy("2"),
    "table3": _accuracy("3"),
    "verdicts": verdicts,
    "claims": claims,
    "timing": timing,
    "tuned": tuned,
    "decay": decay,
    "not_run": not_run,
    "headline": headline,
}
