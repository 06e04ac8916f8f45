"""Published numbers to compare ours with: the paper's, and those of later papers for ``protocol=extreme``."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pagnn_bench.analysis.paper import DATASETS, METHODS, RATES, TABLES, PaperEntry, paper_entries
from pagnn_bench.config.names import Name

Place = tuple[str, str, str, float]  # missing, data, method, rate


@dataclass(frozen=True)
class Published:
    """Numbers that were published under one protocol.

    Attributes:
        name: what ``tables --compare`` calls them, and our protocol that corresponds to theirs.
        row: the heading of their rows.
        whose: what goes before "number" in a sentence.
        where: what goes after "entries" in a sentence.
        titles: missing type → title of its table.
        methods, datasets: name → label, in the order of tables.
        rates: the columns of tables.
        entries: the numbers.
        notes: what a reader should know about them.
    """

    name: str
    row: str
    whose: str
    where: str
    titles: Mapping[str, str]
    methods: Mapping[str, str]
    datasets: Mapping[str, str]
    rates: tuple[float, ...]
    entries: Mapping[Place, PaperEntry]
    notes: tuple[str, ...] = ()

    def entry(self, missing: str, data: str, method: str, rate: float) -> PaperEntry | None:
        """The number of a cell, if there is one."""
        return self.entries.get((missing, data, method, rate))


# Methods and datasets for protocol=extreme. GRAFENNE, ITR and ASD-VAE are not implemented here.
EXTREME_METHODS = {
    "zero": "Zero filling",
    "pagcn": "PaGCN",
    "grafenne": "GRAFENNE",
    "itr": "ITR",
    "asd_vae": "ASD-VAE",
    "fp": "FP",
    "pcfi": "PCFI",
    "fsdcap": "FSD-CAP",
    "full": "Full features",
}
EXTREME_DATASETS = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "PubMed", **DATASETS}
SOURCES = {  # as the column `source` of extreme.csv has them
    "FSD-CAP": "all from the table of FSD-CAP's repository (github.com/ssjcode/FSD-CAP; arXiv 2601.18938): means of 10 "
    "splits, ± their standard deviation where it was read as well"
}


@cache
def published() -> dict[str, Published]:
    """All of them by name."""
    paper = Published(
        name="paper",
        row="paper",
        whose="the paper's",
        where="of the paper's Tables 2 and 3",
        titles={
            missing: f"Table {number}: Type {number_of}"
            for number_of, (number, missing) in enumerate(TABLES.items(), 1)
        },
        methods=METHODS,
        datasets=DATASETS,
        rates=RATES,
        entries=paper_entries(),
        notes=("* copied by the paper from the GCNmf paper.",),
    )
    extreme = Published(
        name="extreme",
        row="published",
        whose="the published",
        where="published under this protocol",
        titles={"type1": "Type 1", "type2": "Type 2"},
        methods=EXTREME_METHODS,
        datasets=EXTREME_DATASETS,
        rates=(0.995,),
        entries=_extreme_entries(),
        notes=(
            f"Published numbers: {'; '.join(SOURCES.values())}.",
            "FSD-CAP's code uses validation labels to fill in attributes; here no method sees them.",
        ),
    )
    return {each.name: each for each in (paper, extreme)}


def published_under(protocol: str) -> Published:
    """The published numbers to compare results under a protocol with: the paper's, for all but a few protocols."""
    return published().get(Name.parse(protocol).plain, published()["paper"])


def _extreme_entries() -> dict[Place, PaperEntry]:
    text = files("pagnn_bench.analysis").joinpath("extreme.csv").read_text(encoding="utf-8")
    return {
        (row["missing"], row["data"], row["method"], float(row["rate"])): PaperEntry(
            float(row["accuracy"]), copied=False, spread=float(row["spread"]) if row["spread"] else None
        )
        for row in csv.DictReader(text.splitlines())
    }
