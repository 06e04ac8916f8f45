"""The measured parts of docs/field.md; :mod:`measured_parts` passes them on to :mod:`write_docs`.

If nothing was run, a part is a sentence that says so, and how to run it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from audit_table import audit_table
from plain_table import body, plain_table

from pagnn_bench.analysis.published import published
from pagnn_bench.analysis.tables.accuracy import accuracy_table
from pagnn_bench.analysis.tables.layout import Table
from pagnn_bench.analysis.tables.mechanisms import (
    cost_table,
    mask_table,
    mechanism_table,
    unlabelled_table,
)
from pagnn_bench.analysis.tables.results import DIFFERS, INSIDE, TOLERATED, TOO_FEW, Result, Results
from pagnn_bench.analysis.tables.study import Study, read_study
from pagnn_bench.config.names import Name

EXTREME = "extreme"
NETWORKS = ("gcn", "sage", "gat")
DENSE = ("counties", "houses")
AUDIT = Path(__file__).resolve().parent.parent / "results/audits/fsdcap.json"
AUDIT_KIND = "audit of FSD-CAP"

Part = Callable[[Results], str]


def not_run(command: str) -> str:
    return f"Nothing has been run here yet: `{command}`."


def _under(results: Results, protocol: str) -> list[Result]:
    """The results of one protocol, without methods in other settings than the packaged ones."""
    return [result for result in results.under(protocol) if not Name.parse(result.key.method).settings]


def _run(results: Iterable[Result], missing: str) -> bool:
    return any(result.mean is not None and result.key.missing == missing for result in results)


# ---- almost nothing observed


def extreme_verdicts(results: Results) -> str:
    """How many of the published numbers were run, and how many of them agree."""
    under = [result for result in results.under(EXTREME) if result.paper is not None and result.is_default]
    counted = [result.verdict for result in under if result.verdict is not None]
    if not counted:
        return not_run("pagnn-bench run -m experiment=extreme")
    agree, differ, too_few = (
        sum(verdict in kinds for verdict in counted)
        for kinds in ((INSIDE, TOLERATED), (DIFFERS,), (TOO_FEW,))
    )
    return (
        f"Published numbers that were also run here: {len(counted)} of {len(under)}. In agreement (inside our 95 % "
        f"interval or within the tolerance): {agree}; different: {differ}; too few masks to tell: {too_few}."
    )


def extreme(missing: str) -> Part:
    def part(results: Results) -> str:
        under = _under(results, EXTREME)
        if not _run(under, missing):
            return not_run(f"pagnn-bench run -m experiment=extreme missing={missing}")
        abreast = len(published()[EXTREME].datasets)
        return body(accuracy_table(under, missing, compare=True, side_by_side=abreast))

    return part


# ---- mechanisms


def mechanisms(make: Callable[[Study], Table]) -> Part:
    def part(results: Results) -> str:
        study = read_study(_under(results, "paper"))
        return body(make(study)) if study.mechanisms else not_run("pagnn-bench run -m experiment=mechanisms")

    return part


def unlabelled(results: Results) -> str:
    study = read_study(_under(results, "paper"))
    command = "pagnn-bench run -m experiment=mechanisms missing=unlabelled rate=0 data.split=random"
    return body(unlabelled_table(study)) if study.unlabelled else not_run(command)


# ---- dense attributes


def dense(missing: str) -> Part:
    def part(results: Results) -> str:
        here = [r for r in _under(results, "paper") if Name.parse(r.key.data).plain in DENSE]
        if not _run(here, missing):
            return not_run(f"pagnn-bench run -m experiment=dense missing={missing}")
        return body(accuracy_table(here, missing))

    return part


# ---- another network behind a filling


def backbones(results: Results) -> str:
    """Mean and rank of every filling, by network and rate."""
    run = [result for result in results.under("backbones") if result.mean is not None]
    if not run:
        return not_run("pagnn-bench run -m experiment=backbones")
    means = {
        (Name.parse(result.labels["method"]).plain, _network(result.key.method), result.key.rate): result.mean
        for result in run
    }
    columns = sorted({place[1:] for place in means}, key=lambda place: (place[1], NETWORKS.index(place[0])))
    rows = []
    for method in dict.fromkeys(place[0] for place in means):
        entries = []
        for column in columns:
            own = means.get((method, *column))
            ahead = [mean for place, mean in means.items() if place[1:] == column and own and mean > own]
            entries.append("" if own is None else f"{own:.1f} ({1 + len(ahead)})")
        rows.append([method, *entries])
    table = plain_table(["", *(f"{network}, {rate:g}" for network, rate in columns)], rows)
    fewest, most = (pick(result.summary.masks for result in run) for pick in (min, max))
    masks = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{table}\n\nMasks per entry: {masks}."


def _network(method: str) -> str:
    settings = dict(part.split("=") for part in Name.parse(method).settings.split(",") if part)
    return settings.get("network", "gcn")


# ---- validation labels in the input of FSD-CAP


def audit(_: Results) -> str:
    """The measurements of audit_fsdcap.py."""
    if not AUDIT.is_file():
        return not_run("python scripts/audit_fsdcap.py")
    document = json.loads(AUDIT.read_bytes())
    if document["kind"] != AUDIT_KIND:
        raise ValueError(f"{AUDIT}: expected an {AUDIT_KIND}, found {document['kind']}")
    return body(audit_table(document["trials"]))


FIELD_PARTS: dict[str, Part] = {
    "extreme_verdicts": extreme_verdicts,
    "extreme1": extreme("type1"),
    "extreme2": extreme("type2"),
    "audit_fsdcap": audit,
    "mechanism_costs": mechanisms(cost_table),
    "mechanism_masks": mechanisms(mask_table),
    "mechanism_accuracies": mechanisms(mechanism_table),
    "unlabelled": unlabelled,
    "dense1": dense("type1"),
    "dense2": dense("type2"),
    "backbones": backbones,
}
