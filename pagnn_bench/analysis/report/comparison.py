"""The page of ``compare``: which method to use, the ranking, two figures, and how they were made."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from pagnn_bench import __version__
from pagnn_bench.analysis.figures.ranking import ranking_figures
from pagnn_bench.analysis.ranking import Comparison
from pagnn_bench.analysis.ranking.advice import how_to_be_surer
from pagnn_bench.analysis.report.content import environments, figure_content
from pagnn_bench.analysis.report.page import embedded, render
from pagnn_bench.analysis.tables.render import to_html
from pagnn_bench.analysis.tables.selection import to_csv, to_json
from pagnn_bench.config.atomic import write_atomically


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the page, a single file."""
    batches = {
        trial.batch.path: trial.batch for each in comparison.contenders for trial in each.trials
    }.values()
    files = {
        "ranking.csv": to_csv(comparison.records()),
        "ranking.json": to_json(comparison.document()),
    }
    content: dict[str, object] = {
        "version": __version__,
        "title": comparison.title,
        "sentence": comparison.sentence,
        "surer": how_to_be_surer(comparison.ranking),
        "table": Markup(to_html(comparison.table())),  # to_html escapes every text
        "figures": [figure_content(figure, []) for figure in ranking_figures(comparison.ranking)],
        "environments": environments(batch.provenance for batch in batches),
        "checksums": sorted({str(batch.provenance.get("data_checksum", "")) for batch in batches}),
        "downloads": [embedded(name, text.encode()) for name, text in files.items()],
    }
    write_atomically(path, render(content, "comparison.html.j2").encode())
