"""The paper's own numbers: every entry of its Tables 2 and 3, as printed, and its Table 1."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

# Names and labels in the order of the paper.
METHODS = {
    "mf": "MF",
    "vae": "VAE",
    "gain": "GAIN",
    "sat": "SAT",
    "gcnmf": "GCNmf",
    "pagnn_m": "PaGNN-M",
    "pagnn_n": "PaGNN-N",
}
DATASETS = {"cora": "Cora", "citeseer": "Citeseer", "amaphoto": "AmaPhoto", "amacomp": "AmaComp"}
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
TABLES = {"2": "type1", "3": "type2"}  # number of the table → missing type


@dataclass(frozen=True)
class PaperEntry:
    """One printed number.

    Attributes:
        accuracy: mean test accuracy in percent.
        copied: True for the starred rows, which the paper copied from the GCNmf paper.
        spread: its standard deviation, which the paper does not print.
    """

    accuracy: float
    copied: bool
    spread: float | None = None


@cache
def paper_entries() -> dict[tuple[str, str, str, float], PaperEntry]:
    """(missing, data, method, rate) → the paper's entry, 260 of them, in the order of the tables."""
    text = files("pagnn_bench.analysis").joinpath("paper.csv").read_text(encoding="utf-8")
    return {
        (row["missing"], row["data"], row["method"], float(row["rate"])): PaperEntry(
            float(row["accuracy"]), row["copied"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }


@cache
def paper_datasets() -> dict[str, dict[str, int]]:
    """Table 1: name → nodes, edges, features, classes. The numbers are kept with the datasets, in ``conf/data``."""
    folder = files("pagnn_bench.conf").joinpath("data")
    texts = {name: folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8") for name in DATASETS}
    return {name: yaml.safe_load(text)["paper"] for name, text in texts.items()}
