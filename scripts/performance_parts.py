"""The measured parts of docs/performance.md and docs/datasets.md; :mod:`measured_parts` passes them on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from plain_table import body, plain_table

from pagnn_bench.analysis.tables.layout import three_digits
from pagnn_bench.analysis.tables.precision import precision_table
from pagnn_bench.analysis.tables.results import Results
from pagnn_bench.bench.document import load_document
from pagnn_bench.bench.speed import CSR, OURS, PLAIN, Row, place_of, ratio, reference_of, rows_of, verdict
from pagnn_bench.bench.targets import MET, NOT_MET


def speed(_: Results) -> str:
    """The speed of every method compared with the plain loop, from the measurements in docs/measured."""
    folder = Path(__file__).resolve().parent.parent / "docs/measured"
    measured: dict[tuple[str, str, float, str], list[Row]] = {}
    labels: dict[str, str] = {}
    for name in ("speed_cora", "speed_other"):
        document = load_document(folder / f"{name}.json", name)
        labels |= {place["data"]: place["label"] for place in document["places"]}
        here: dict[tuple[str, str, float, str], list[Row]] = defaultdict(list)
        for row in rows_of(document):
            here[*place_of(row), row.method].append(row)
        measured |= here
    head = [
        "",
        "method",
        "plain loop",
        "ours, 1 seed",
        "ours, 20 seeds",
        "times plain",
        "times CSR",
        "target",
    ]
    return plain_table(head, [_speed_row(place, rows, labels) for place, rows in measured.items()])


def _speed_row(place: tuple[str, str, float, str], rows: list[Row], labels: dict[str, str]) -> list[str]:
    ours = {row.seeds: row for row in rows if row.side == OURS}
    plain, csr = (reference_of(ours[20], rows, form) for form in (PLAIN, CSR))
    ratios = [three_digits(ratio(ours[20], other)) if other else "" for other in (plain, csr)]
    judged = verdict(ours[20], plain)
    target = f"{MET if judged[1] else NOT_MET} (≥ {judged[0].ratio:g})" if judged else ""
    data, missing, rate, _ = place
    times = [three_digits(row.ms) if row else "" for row in (plain, ours[1], ours[20])]
    return [f"{labels[data]}, {missing}, rate {rate:g}", ours[1].label, *times, *ratios, target]


def datasets(_: Results) -> str:
    """The dataset cards, from the counts of measure_datasets.py."""
    file = Path(__file__).resolve().parent.parent / "docs/measured/datasets.json"
    cards = json.loads(file.read_text(encoding="utf-8")).values()
    head = ["", "nodes", "edges", "mean degree", "without edges", "homophily", "classes"]
    head += ["smallest, largest class"]
    graphs = [
        [
            *(card["label"], f"{card['nodes']:,}", f"{card['edges']:,}", f"{card['mean_degree']:.1f}"),
            *(f"{card['isolated']:,}", f"{card['homophily']:.2f}", f"{card['classes']}"),
            f"{100 * card['smallest_class']:.0f} %, {100 * card['largest_class']:.0f} %",
        ]
        for card in cards
    ]
    scales = {False: "no", True: "by training nodes", "observed": "by observed entries"}
    attributes = [
        [
            *(card["label"], f"{card['attributes']:,}", "words" if card["binary"] else "numbers"),
            *(f"{100 * card['density']:.1f} %", scales[card["standardise"]], card["split"]),
            "/".join(map(str, card["split_sizes"])),
        ]
        for card in cards
    ]
    more = ["", "attributes", "are", "density", "standardised", "split", "train/val/test"]
    origins = [
        f"* **{card['label']}**: {card['description']} Licence: {card['licence']}. "
        f"From {', or '.join(card['where'])}."
        for card in cards
    ]
    return "\n\n".join([plain_table(head, graphs), plain_table(more, attributes), "\n".join(origins)])


def precision(results: Results) -> str:
    """The effect of bfloat16 on accuracy."""
    if table := precision_table(results):
        return body(table)
    return "Nothing run yet in both precisions: no reported number should rest on bfloat16."


PERFORMANCE_PARTS: dict[str, Callable[[Results], str]] = {
    "speed": speed,
    "datasets": datasets,
    "precision": precision,
}
