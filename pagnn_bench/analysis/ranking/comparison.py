"""A comparison as a whole: which methods on which data, the ranking, who was left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pagnn_bench.analysis.ranking.advice import advise
from pagnn_bench.analysis.ranking.order import Contender, Ranking, rank
from pagnn_bench.analysis.ranking.table import ranking_records, ranking_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.config.identity import Cell

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """Methods on one graph, ranked.

    Attributes:
        cell: one of their cells; data, missing type, rate and protocol are the same for all.
        contenders: the methods with their trials.
        left_out: name → why a method was not trained.
        notes: what else a reader should know, as sentences.
    """

    cell: Cell
    contenders: tuple[Contender, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def ranking(self) -> Ranking:
        return rank(self.contenders)

    @property
    def sentence(self) -> str:
        """Which method to use and how sure that is."""
        return advise(self.ranking)

    @property
    def name(self) -> str:
        """For file names."""
        cell = self.cell
        return f"{cell.data['name']}-{cell.missing['name']}-{cell.rate:g}-{cell.protocol['name']}"

    @property
    def title(self) -> str:
        data, share = self.cell.data.get("label", self.cell.data["name"]), self._missing_share
        missing = "" if share is None else f" ({100 * share:.3g} % of the attributes missing)"
        return f"{data}, {self.cell.missing['name']}, rate {self.cell.rate:g}{missing}"

    @property
    def _missing_share(self) -> float | None:
        trials = (trial for contender in self.contenders for trial in contender.trials if trial.ok)
        return next((trial.batch.facts.get("missing_share") for trial in trials), None)

    @property
    def remarks(self) -> list[str]:
        """The notes, what was left out and why, and why trials failed."""
        failed = [f"{each.label} failed: {each.reason}." for each in self.contenders if each.reason]
        return [*remarks_of(self.notes, self.left_out), *failed]

    def table(self) -> Table:
        """For :mod:`pagnn_bench.analysis.tables.render`."""
        return ranking_table(self.ranking, self.title, self.remarks)

    def records(self) -> list[dict[str, Any]]:
        """One entry per method, best first; accuracies in percent."""
        return ranking_records(self.ranking)

    def frame(self) -> pd.DataFrame:
        """The records as a data frame."""
        import pandas as pd  # half a second, and the command line needs none of it

        return pd.DataFrame(self.records())

    def document(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        ranking, cell = self.ranking, self.cell
        return {
            "data": cell.data["name"],
            "missing": cell.missing["name"],
            "rate": cell.rate,
            "protocol": cell.protocol["name"],
            "sentence": self.sentence,
            "compared": len(ranking.ranked),
            "unit": ranking.unit,
            "masks": list(ranking.masks),
            "methods": self.records(),
            "left_out": self.left_out,
            "notes": list(self.notes),
        }


def remarks_of(notes: Iterable[str], left_out: Mapping[str, str]) -> list[str]:
    """The notes, and a sentence about the methods that were left out."""
    listed = "; ".join(f"{name} ({reason})" for name, reason in left_out.items())
    return [*notes, *([f"Left out: {listed}."] if listed else [])]
