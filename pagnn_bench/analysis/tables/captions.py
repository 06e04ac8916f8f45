"""The caption of an accuracy table: how its numbers were made, and how to read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pagnn_bench.analysis.published import Published
from pagnn_bench.analysis.tables.results import DIFFERS, INSIDE, TOLERATED, TOO_FEW, Result
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.names import Name
from pagnn_bench.config.text import count

SYMBOLS = {INSIDE: "=", TOLERATED: "≈", DIFFERS: "≠", TOO_FEW: "?"}
CEILING = "full"  # sees the hidden features: shown, but never marked as the best


def legend(published: Published) -> str:
    """How to read differences from published numbers."""
    verdicts = (
        f"Difference: = {published.whose} number lies inside our 95 % interval, ≈ within tolerance (±0.5 up to rate "
        "0.5, ±1 up to 0.7, ±2.5 above), ≠ differs, ? too few masks to tell: inside an interval that extends more than "
        "two tolerances to each side, or on a single mask at most four tolerances off."
    )
    return " ".join((verdicts, *published.notes))


def usual_trials(results: Iterable[Result]) -> int | None:
    """The number of trials that most entries have."""
    counted = Counter(result.summary.trials for result in results)
    return counted.most_common(1)[0][0] if counted else None


def describe_trials(results: Sequence[Result], usual: int | None) -> list[str]:
    """What an entry is, which are bold, and how many trials are behind them."""
    if not results:
        return ["Nothing run yet."]
    metric = results[0].metric
    alike = len({frozenset(result.summary.by_mask) for result in results}) == 1
    extreme = "lowest" if metric.lower_is_better else "highest"
    best = (
        "best"
        if alike
        else f"{extreme}, provided it is also the {extreme} on common masks (methods with a single mask do not compete "
        "where others have several)"
    )
    units = {result.summary.unit for result in results if result.summary.trials}
    unit = units.pop() if len(units) == 1 else "mask"
    mean = f"mean over {unit}s" if metric.of_mask else f"mean of the means of {unit}s"
    text = [f"{metric.title}: {mean}, ± their standard deviation; in bold the {best}."]
    if any(Name.parse(result.key.method).plain == CEILING for result in results):
        text.append("Full features sees what is hidden and does not compete.")
    every = "in every entry" if all(result.summary.trials == usual for result in results) else "unless noted"
    masks = {result.summary.masks for result in results if result.summary.trials == usual}
    on = count(masks.pop(), unit) if len(masks) == 1 else f"{min(masks)} to {max(masks)} {unit}s"
    text.append(
        f"n = {on} {every}." if metric.of_mask else f"n = {count(usual or 0, 'trial')} on {on} {every}."
    )
    if failed := sum(result.summary.failed for result in results):
        text.append(f"{count(failed, 'trial')} failed and left out.")
    return text


def describe_protocol(results: Sequence[Result]) -> list[str]:
    """Training, stopping rule and split in words; where datasets differ, one value per dataset."""
    cells = {result.labels["data"]: result.cell for result in results if result.cell is not None}
    if not cells:
        return []
    texts = []
    splits = {name: _split(cell) for name, cell in cells.items()}
    if _as_published(results):
        return [
            "Training: every method with its own authors' settings (docs/fidelity.md).",
            f"Split: {_each(splits)}.",
        ]
    for key, words in {
        "lr": "learning rate {}",
        "weight_decay": "weight decay {}",
        "stopping": "stopping rule {}",
        "patience": "patience {}",
        "max_epochs": "at most {} epochs",
    }.items():
        texts.append(words.format(_each({name: _setting(cell, key) for name, cell in cells.items()})))
    return [f"Training: {', '.join(texts)}.", f"Split: {_each(splits)}."]


def _as_published(results: Sequence[Result]) -> bool:
    """Whether methods are trained with their authors' settings instead of those of a common search."""
    cells = [result.cell for result in results if result.cell is not None]
    return any(
        cell.protocol.get("published")
        and cell.protocol["published"] == cell.method.get("published")
        and not cell.protocol.get("tuning")
        for cell in cells
    )


def _split(cell: Cell) -> object:
    if sizes := cell.protocol.get("split"):
        per_class, development = sizes["train_per_class"], sizes["development"]
        return f"random, of {development} nodes {per_class} per class train and the others validate"
    return cell.data.get("split")


def _setting(cell: Cell, key: str) -> object:
    chosen = (cell.protocol.get("tuning") or {}).get("chosen", {})
    return "chosen per cell" if f"protocol.{key}" in chosen else cell.protocol.get(key)


def _each(values: dict[str, object]) -> str:
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return ", ".join(f"{text} ({', '.join(which)})" for text, which in names.items())
