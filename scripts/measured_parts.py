"""The measured parts of README.md and the pages in docs/, each a function of the results.

:mod:`write_docs` puts them into the pages.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from fidelity_parts import FIDELITY_PARTS
from field_parts import FIELD_PARTS
from performance_parts import PERFORMANCE_PARTS
from plain_table import body, plain_table

from pagnn_bench.analysis.claims import check_claims
from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, TABLES
from pagnn_bench.analysis.report.content import verdict_sentences
from pagnn_bench.analysis.summary import Summary
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.leads import PROTOCOLS, leads_table
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
from pagnn_bench.analysis.tables.search import search_table
from pagnn_bench.analysis.tables.timing import read_timings, timing_table
from pagnn_bench.config.text import count, duration

GRID = "grid"  # the protocol's name in experiment=protocol_grid
DECAY = "weight_decay"  # the protocol's name in experiment=weight_decay
CONTROLS = ("zero", "fp", "pcfi", "mask_concat", "full")
SPELLED = {1: "one", 2: "two", 4: "four", 8: "eight"}
# Protocols that the tuned results are compared with, and their headings.
COMPARED = {
    "paper": "`paper`",
    "shared": "`shared`",
    "documented": "`documented`",
    "shared[stopping=val_loss]": "`shared`, stopping on loss",
    "literal": "`literal`",
}
NOTHING = "Nothing run yet."

GridLine = dict[float, list[float]]  # weight decay → validation accuracies in percent

# ---- docs/protocol.md


def grid(results: Results) -> str:
    """Mean validation accuracy of the grid, a table per feature normalisation."""
    lines: dict[tuple[str, str, str, float], GridLine] = defaultdict(dict)
    for result in results.all:
        if result.cell is None or result.cell.protocol["name"] != GRID:
            continue
        protocol, cell = result.cell.protocol, result.cell
        place = (protocol["feature_norm"], cell.data["name"], cell.missing["name"], cell.rate)
        accuracies = [100 * trial.record["val_acc"] for trial in result.trials if trial.ok]
        lines[place][protocol["weight_decay"]] = accuracies
    decays = sorted({decay for line in lines.values() for decay in line})
    head = ["weight decay", *(f"{decay:g}" for decay in decays)]
    texts = []
    for norm, title in {"none": "Raw features", "row": "Rows normalised (observed entries only)"}.items():
        rows = []
        for data, label in DATASETS.items():
            places = sorted(place for place in lines if place[:2] == (norm, data))
            for place in places:
                seeds = max(map(len, lines[place].values()))
                name = f"{label}, {LABELS[place[2]]}, rate {place[3]:g} ({count(seeds, 'seed')})"
                rows.append([name, *_grid_row(lines[place], decays)])
            if len(places) > 1:
                means = _grid_means([lines[place] for place in places], decays)
                rows.append([f"**{label}, mean of these**", *means])
        texts.append(f"{title}:\n\n" + plain_table(head, rows))
    return "\n\n".join(texts)


def _grid_row(line: GridLine, decays: list[float]) -> list[str]:
    """Mean and standard error by weight decay, the best in bold."""
    means = {decay: statistics.fmean(values) for decay, values in line.items()}
    best = max(means, key=lambda decay: means[decay])
    texts = []
    for decay in decays:
        if decay not in means:
            texts.append("")
            continue
        error = statistics.stdev(line[decay]) / len(line[decay]) ** 0.5 if len(line[decay]) > 1 else 0.0
        texts.append(f"{_bold_if(decay == best, f'{means[decay]:.2f}')} ±{error:.2f}")
    return texts


def _grid_means(lines: list[GridLine], decays: list[float]) -> list[str]:
    """The mean over lines for every weight decay that all of them have, the best in bold."""
    shared = set.intersection(*map(set, lines))
    means = {decay: statistics.fmean(statistics.fmean(line[decay]) for line in lines) for decay in shared}
    best = max(means, key=lambda decay: means[decay])
    return [_bold_if(decay == best, f"{means[decay]:.2f}") if decay in means else "" for decay in decays]


def _bold_if(condition: bool, text: str) -> str:
    return f"**{text}**" if condition else text


def _body(table: Table | None) -> str:
    """A table without its title, or a sentence where there is nothing to show."""
    return body(table) if table and table.parts else NOTHING


# ---- docs/reproduction.md


def _accuracy(number: str, protocol: str, compare: bool) -> Callable[[Results], str]:
    def part(results: Results) -> str:
        return _body(accuracy_table(results.under(protocol), TABLES[number], compare=compare))

    return part


def verdicts(results: Results) -> str:
    """How many entries agree, by missing type and dataset, after three summary sentences."""
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
            sizes = map(len, (here, run, agree, differ, alone, too_few, close))
            rows.append([LABELS[missing], DATASETS[data], *map(str, sizes), mean])
    head = ["", "dataset", "entries", "run", "agree", "differ", "of these on one mask", "too few masks"]
    head += ["within one point", "mean difference"]
    sentences = verdict_sentences(under, check_claims(under, read_timings(results)), "paper")
    return "\n".join([*sentences, "", plain_table(head, rows)])


def claims(results: Results) -> str:
    """Every claim as published, tuned and shared, where that was run."""
    timings = read_timings(results)
    names = [name for name in PROTOCOLS if name in results.protocols]
    checked = {name: check_claims(results.under(name), timings) for name in names}
    texts = []
    for number, claim in enumerate(checked[names[0]]):
        texts.append(f"### {claim.text}")
        for name in names:
            own = checked[name][number]
            # Times are the same under every protocol, and one under which nothing was run needs no table.
            if name == names[0] or (own != claim and any(part.was_run for part in own.parts)):
                rows = [
                    [part.title, f"{part.outcome}. {part.note}".strip(" ."), *own.row(part)]
                    for part in own.parts
                    if part.was_run or name == names[0]
                ]
                texts.append(f"Under `protocol={name}`: **{own.verdict}**. {own.summary}")
                texts.append(plain_table(["comparison", "verdict", *own.columns], rows))
    return "\n\n".join(texts)


def tuned(results: Results) -> str:
    """Results and chosen settings under protocol=tuned, compared with other protocols on the same cells."""
    under = results.under("tuned")
    means = {
        (name, r.key.missing, r.key.data, r.key.method, r.key.rate): f"{r.mean:.2f}"
        for name in COMPARED
        for r in results.under(name)
        if r.mean is not None
    }
    rows = []
    for result in under:
        if result.mean is None or result.cell is None:
            continue
        key = result.key
        others = [means.get((name, key.missing, key.data, key.method, key.rate), "") for name in COMPARED]
        names = [result.labels[key] for key in ("missing", "data", "method")]
        ours = f"{result.mean:.2f} ±{result.summary.mask_std or 0:.2f}"
        chosen = result.cell.protocol["tuning"]["chosen"]
        setting = ", ".join(f"{key.partition('.')[2]} {value}" for key, value in chosen.items())
        printed = f"{result.paper:.2f}" if result.paper is not None else ""
        rows.append([*names, f"{result.key.rate:g}", ours, *others, printed, setting])
    head = ["", "dataset", "method", "rate", "tuned", *COMPARED.values(), "the paper", "chosen"]
    return plain_table(head, rows) if rows else NOTHING


def search(results: Results) -> str:
    """What the searches of protocol=tuned gained, and how far they can be trusted."""
    return _body(search_table(results))


def decay(results: Results) -> str:
    """Accuracy by weight decay, the paper's number, and how far PaGNN-N is ahead of the others on the same masks."""
    lines: dict[tuple[str, str, float, str], dict[float, Result]] = defaultdict(dict)
    for result in results.all:
        if result.cell is not None and result.cell.protocol["name"] == DECAY and result.mean is not None:
            place = (result.key.missing, result.labels["data"], result.key.rate, result.cell.method["label"])
            lines[place][result.cell.protocol["weight_decay"]] = result
    decays = sorted({value for line in lines.values() for value in line})
    rows = []
    for (missing, data, rate, method), line in sorted(lines.items(), key=lambda item: _place(*item[0])):
        ours = lines.get((missing, data, rate, METHODS["pagnn_n"]), {})
        texts = [_with_lead(line.get(v), ours.get(v) if line is not ours else None) for v in decays]
        paper = next(iter(line.values())).paper
        rows.append([LABELS[missing], data, f"{rate:g}", method, *texts, f"{paper:.1f}" if paper else ""])
    head = ["", "dataset", "rate", "method", *(f"{v:g}" for v in decays), "the paper"]
    return plain_table(head, rows) if rows else NOTHING


def _place(missing: str, data: str, rate: float, method: str) -> tuple[str, int, float, int]:
    """The sort key of a row: datasets and methods in the paper's order, then controls."""
    methods = [*METHODS.values()]
    number = methods.index(method) if method in methods else len(methods)
    return missing, [*DATASETS.values()].index(data), rate, number


def _with_lead(result: Result | None, leader: Result | None) -> str:
    """Mean and spread over masks, and the lead of ``leader`` on the masks that both have."""
    if result is None:
        return ""
    lead = f" ({statistics.fmean(paired_differences(leader, result)):+.1f})" if leader else ""
    spread = f" ±{result.summary.mask_std:.1f}" if result.summary.mask_std is not None else ""
    return f"{result.mean:.1f}{spread}{lead}"


def timing(results: Results) -> str:
    """Time per epoch."""
    return to_markdown(timing_table(read_timings(results))).partition("\n\n")[2]


def not_run(results: Results) -> str:
    """The empty cells, and the numbers of trials in the others."""
    run = {
        (r.key.missing, r.key.data, r.key.method, r.key.rate): r.summary
        for r in results.under("paper")
        if r.trials
    }
    lines = []
    for missing in TABLES.values():
        for data, label in DATASETS.items():
            methods = [name for name in (*METHODS, *CONTROLS) if (name, missing) != ("sat", "type2")]
            empty = {
                method: [rate for rate in RATES if (missing, data, method, rate) not in run]
                for method in methods
            }
            texts = [_empty_cells(method, rates) for method, rates in empty.items() if rates]
            lines.append([LABELS[missing], label, ", ".join(texts) or "none"])
    counts = sorted(map(_size, run.values()))
    sizes = ", ".join(f"{size} ({counts.count(size)})" for size in dict.fromkeys(counts))
    return (
        plain_table(["", "dataset", "empty cells"], lines)
        + f"\n\nMasks x seeds behind the cells that were run (number of cells): {sizes}."
    )


def _size(summary: Summary) -> str:
    """Masks x mean number of seeds."""
    return f"{summary.masks} x {round(summary.trials / summary.masks, 1):g}"


def _empty_cells(method: str, rates: list[float]) -> str:
    if len(rates) == len(RATES):
        return f"`{method}`"
    return f"`{method}` at {', '.join(f'{rate:g}' for rate in rates)}"


# ---- README.md


def leads(results: Results) -> str:
    """How far PaGNN-N is ahead of every rival under each protocol, and the number and time of the trials."""
    run = [r for name in PROTOCOLS for r in results.under(name) if r.mean is not None]
    batches = {trial.batch.path: trial.batch for result in run for trial in result.trials}
    spent: dict[str, float] = defaultdict(float)
    for batch in batches.values():
        spent[_trained_on(batch.provenance)] += batch.facts.get("total_seconds", 0.0)
    times = " and ".join(f"{duration(seconds)} {where}" for where, seconds in sorted(spent.items()))
    trials = count(sum(result.summary.trials for result in run), "trial")
    return _body(leads_table(results)) + f"\nThe three protocols comprise {trials}, {times}."


def _trained_on(provenance: dict[str, Any]) -> str:
    """Where a batch was trained, according to its record."""
    if gpu := provenance.get("gpu"):
        return f"on {gpu['name']}"
    threads, cores = (
        count(number, thing).replace(f"{number} ", f"{SPELLED.get(number, number)} ")
        for number, thing in ((provenance["threads"], "thread"), (provenance["platform"]["cpus"], "core"))
    )
    return f"in processes of {threads} on {cores}"


PARTS = {
    "grid": grid,
    "table2": _accuracy("2", "paper", compare=True),
    "table3": _accuracy("3", "paper", compare=True),
    "shared2": _accuracy("2", "shared", compare=False),
    "shared3": _accuracy("3", "shared", compare=False),
    "verdicts": verdicts,
    "claims": claims,
    "timing": timing,
    "tuned": tuned,
    "search": search,
    "decay": decay,
    "not_run": not_run,
    "leads": leads,
    **FIDELITY_PARTS,
    **FIELD_PARTS,
    **PERFORMANCE_PARTS,
}
