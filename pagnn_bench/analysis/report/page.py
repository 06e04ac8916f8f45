"""One self-contained page, and the same tables and figures as files beside it."""

from __future__ import annotations

import base64
import mimetypes
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from pagnn_bench.analysis.figures import draw_all
from pagnn_bench.analysis.figures.canvas import save_figure
from pagnn_bench.analysis.report.content import Download, page_content
from pagnn_bench.analysis.tables.render import to_latex
from pagnn_bench.analysis.tables.results import Results
from pagnn_bench.analysis.tables.selection import accuracy_tables, flat_records, to_csv, to_json
from pagnn_bench.analysis.tables.timing import Timings, read_timings, timing_table

PAGE = "index.html"
CURVES = "convergence"  # protocol of experiment=convergence


def write_report(results: Results, protocol: str, folder: Path) -> Path:
    """Write ``index.html`` and the files it offers for download; returns the path of the page."""
    timings = read_timings(results)
    under = results.under(protocol)
    with_curves = CURVES if CURVES in results.protocols else protocol
    figures = draw_all(results, under, timings, results.under(with_curves))
    downloads = {"tables": _write_tables(results, protocol, timings, folder)}
    for figure in figures:
        downloads[figure.name] = [_download(path) for path in save_figure(figure, folder)]
    content = page_content(results, protocol, timings, figures, downloads)
    page = folder / PAGE
    page.write_text(render(content), encoding="utf-8")
    return page


def _write_tables(results: Results, protocol: str, timings: Timings, folder: Path) -> list[Download]:
    records = flat_records(results, "all", None, protocol)
    tables = [*accuracy_tables(results, protocol), *accuracy_tables(results, protocol, compare=True)]
    tables += [timing_table(timings)] if timings.all else []
    files = {
        "results.csv": to_csv(records),
        "results.json": to_json(records),
        "tables.tex": "\n".join(map(to_latex, tables)),
    }
    paths = []
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return [_download(path) for path in paths]


def _download(path: Path) -> Download:
    return embedded(path.name, path.read_bytes())


def embedded(name: str, content: bytes) -> Download:
    """A file embedded in the page."""
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    return Download(name, f"data:{kind};base64,{base64.b64encode(content).decode()}")


def render(content: dict[str, object], template: str = "page.html.j2") -> str:
    """A page; everything that is not Markup is escaped."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assets = {"style": Markup(_asset("style.css")), "script": Markup(_asset("script.js"))}
    return environment.get_template(template).render(**content, **assets)


def _asset(name: str) -> str:
    return resources.files("pagnn_bench.analysis.report").joinpath(name).read_text(encoding="utf-8")
