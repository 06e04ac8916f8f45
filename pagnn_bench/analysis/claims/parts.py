"""A claim of the paper and its comparisons, and how their verdicts decide that of the claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pagnn_bench.config.text import count

HOLDS, FAILS, MIXED, UNDECIDED = "holds", "does not hold", "mixed", "undecided"


@dataclass(frozen=True)
class ClaimPart:
    """One comparison.

    Attributes:
        title: who against whom, and where.
        verdict: HOLDS, FAILS, MIXED or UNDECIDED.
        numbers: the evidence, column by column; all parts of a claim that have numbers have the same columns.
        paper: what the paper's own numbers say, if it prints them, column by column.
        note: what the numbers do not show, as in "Not run: GAIN."
        was_run: False if one of the two has no numbers at all.
        where: what it is restricted to, as in "on Cora at rates 0.5, 0.9"; empty if all of the paper's cells are there.
    """

    title: str
    verdict: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    paper: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    was_run: bool = True
    where: str = ""

    @property
    def outcome(self) -> str:
        """The verdict, and what it is restricted to."""
        return f"{self.verdict} {self.where}".strip()


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and its parts."""

    text: str
    parts: list[ClaimPart]

    @property
    def verdict(self) -> str:
        verdicts = {UNDECIDED if part.where else part.verdict for part in self.parts}
        return next(verdict for verdict in (FAILS, MIXED, UNDECIDED, HOLDS) if verdict in verdicts)

    @property
    def summary(self) -> str:
        """The verdicts of the parts, in one sentence."""
        counts = Counter((part.verdict, part.where) for part in self.parts)
        words = {HOLDS: ("holds", "hold"), FAILS: ("does not", "do not")}
        order = (HOLDS, FAILS, MIXED, UNDECIDED)
        texts = []
        for verdict, where in sorted(counts, key=lambda key: (order.index(key[0]), key[1])):
            number = counts[verdict, where]
            word = words.get(verdict, (verdict, verdict))[number > 1]
            texts.append(f"{number} {word} {where}".strip())
        return f"Of {count(len(self.parts), 'comparison')}: {', '.join(texts)}."

    @property
    def columns(self) -> list[str]:
        """The columns that are not empty in every part: our numbers, then the paper's."""
        rows = [{**part.numbers, **part.paper} for part in self.parts]
        names = [*{name: None for part in self.parts for name in part.numbers}]
        names += [*{name: None for part in self.parts for name in part.paper}]
        return [name for name in names if any(row.get(name) for row in rows)]

    def row(self, part: ClaimPart) -> list[str]:
        """The numbers of a part in these columns."""
        return [{**part.numbers, **part.paper}.get(name, "") for name in self.columns]
