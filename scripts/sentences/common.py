"""What the pages share: their names, groups of methods and graphs, and where a sentence is entered."""

from __future__ import annotations

from itertools import product

from prose import Numbers, Sentences

from pagnn_bench.analysis.paper import DATASETS, METHODS, TABLES

README, REPRODUCTION = "README.md", "docs/reproduction.md"
PAGNN = ("pagnn_n", "pagnn_m")
LOW, HIGH = (0.1, 0.3, 0.5), 0.9
GRAPHS = tuple(product(TABLES.values(), DATASETS))  # (missing, data)
CITATION = ("cora", "citeseer")
CITATION_GRAPHS = tuple(product(TABLES.values(), CITATION))
FILLINGS = (*(method for method in METHODS if method not in PAGNN), "zero")  # and GCNmf
DECAYS = (0.0005, 0.005, 0.02, 0.08)  # the values of experiment=weight_decay
WEAKEST, STRONGEST = DECAYS[0], DECAYS[-1]
TUNED = tuple(product(CITATION_GRAPHS, ("mf", "zero", "fp", "gcnmf", *PAGNN), (0.5, HIGH)))
LOSS = "paper[stopping=val_loss]"

SENTENCES = Sentences()
says = SENTENCES.says


def means_at(n: Numbers, missing: str, data: str, rate: float) -> dict[str, float]:
    """Of the paper's methods."""
    methods = [method for method in METHODS if (missing, method) != ("type2", "sat")]
    return {method: n.mean(missing, data, method, rate) for method in methods}


def pagnn_leads(n: Numbers, rival: str, under: str) -> list[float]:
    """Of PaGNN-N at rate 0.9 on the citation graphs: Cora and Citeseer in turn."""
    return [n.lead(*graph, "pagnn_n", rival, HIGH, under) for graph in CITATION_GRAPHS]
