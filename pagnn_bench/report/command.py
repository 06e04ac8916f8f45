"""``pagnn-bench report``: one self-contained page, and the same tables and figures as files beside it."""

from __future__ import annotations

import base64
import mimetypes
import webbrowser
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from pagnn_bench.arguments import Parser
from pagnn_bench.errors import RequestError
from pagnn_bench.figures import draw_all
from pagnn_bench.figures.canvas import save_figure
from pagnn_bench.report.content import Download, page_content
from pagnn_bench.tables.command import (
    accuracy_tables,
    add_results_options,
    choose_protocol,
    flat_records,
    read_results,
    to_csv,
    to_json,
)
from pagnn_bench.tables.render import to_latex
from pagnn_bench.tables.results import Results
from pagnn_bench.tables.timing import Timing, measure, timing_protocol, timing_table

PAGE = "index.html"
CURVES = "convergence"  # protocol of experiment=convergence


def report_command(arguments: Sequence[str]) -> int:
    """Write the page and say where it is; the exit code."""
    parser = Parser(prog="pagnn-bench report", description="One page that shows and explains all results.")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder to write to (default: RESULTS/report)")
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    add_results_options(parser)
    options = parser.parse_args(arguments)
    results = read_results(options.results)
    protocol = choose_protocol(results, options.protocol)
    folder = Path(options.output or Path(options.results or "results") / "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page = write_report(results, protocol, folder)
    except OSError as error:
        raise RequestError(f"-o {folder}: cannot be written ({error.strerror}).") from error
    print(f"Report: {page}")
    if options.open:
        webbrowser.open(page.resolve().as_uri())
    return 0


def write_report(results: Results, protocol: str, folder: Path) -> Path:
    """Write ``index.html`` and the files that can be downloaded from it; the path of the page."""
    timed_under = timing_protocol(results)
    timings = measure(results.under(timed_under)) if timed_under else []
    under = results.under(protocol)
    with_curves = CURVES if CURVES in results.protocols else protocol
    figures = draw_all(under, timings, results.under(with_curves))
    downloads = {"tables": _write_tables(results, protocol, timings, timed_under, folder)}
    for figure in figures:
        downloads[figure.name] = [_download(path) for path in save_figure(figure, folder)]
    content = page_content(results, protocol, timings, timed_under, figures, downloads)
    page = folder / PAGE
    page.write_text(render(content), encoding="utf-8")
    return page


def _write_tables(
    results: Results, protocol: str, timings: Sequence[Timing], timed_under: str | None, folder: Path
) -> list[Download]:
    records = flat_records(results, "all", None, protocol)
    tables = [*accuracy_tables(results, protocol), *accuracy_tables(results, protocol, compare=True)]
    tables += [timing_table(timings, timed_under)] if timings else []
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
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    return Download(path.name, f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}")


def render(content: dict[str, object]) -> str:
    """The page; whatever is not Markup is escaped."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assets = {"style": Markup(_asset("style.css")), "script": Markup(_asset("script.js"))}
    return environment.get_template("page.html.j2").render(**content, **assets)


def _asset(name: str) -> str:
    return resources.files("pagnn_bench.report").joinpath(name).read_text(encoding="utf-8")
