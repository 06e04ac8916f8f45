"""``pagnn-bench bench``: its command line. Imports torch only to measure."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

from pagnn_bench.bench.document import Document, check_writable, load_document
from pagnn_bench.config.catalogue import choices
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import PRECISIONS, parse_rate
from pagnn_bench.engine.plan import MAX_THREADS

EPILOG = """\
  pagnn-bench bench --data cora --methods pagnn_n,mf --seeds 1,20 -o speed.json --figure speed.svg
  pagnn-bench bench --growth -o growth.json                 cost against nodes, edges, features, hidden units, seeds
  pagnn-bench bench --parallel -o parallel.json             the default n_jobs=auto against one process
  pagnn-bench bench --show speed.json --figure speed.svg    table and figure of an earlier measurement

Run nothing else on the machine during a measurement.
"""
WRITERS = ("md", "latex", "html")


def bench_command(arguments: Sequence[str]) -> int:
    """Measure, or show an earlier measurement; return the exit code."""
    options = _parser().parse_args(arguments)
    if options.figure:
        from pagnn_bench.bench.figure import check_figure

        check_figure(options.figure)
        check_writable(options.figure, "--figure")
    check_writable(options.output, "-o")
    if options.show:
        if options.output:
            raise RequestError(f"-o {options.output}: writes a measurement; leave it out with --show.")
        document, code = load_document(options.show), 0
    else:
        document, code = _choose_measurement(options)(options)
    _show(document, options)
    return code


def _choose_measurement(options: argparse.Namespace) -> Callable[[argparse.Namespace], tuple[Document, int]]:
    from pagnn_bench.bench import run

    if options.parallel:
        return run.parallel
    return run.growth if options.growth else run.speed


def _show(document: Document, options: argparse.Namespace) -> None:
    from pagnn_bench.analysis.tables.render import to_html, to_latex, to_markdown
    from pagnn_bench.bench.layout import make_table

    render = dict(zip(WRITERS, (to_markdown, to_latex, to_html)))[options.format]
    print(render(make_table(document)), end="")
    if options.figure:
        from pagnn_bench.bench.figure import write_figure

        write_figure(document, options.figure)


def _parser() -> argparse.ArgumentParser:
    from pagnn_bench.config.arguments import Parser

    parser = Parser(
        prog="pagnn-bench bench",
        description="Speed and memory of training, compared with a plain torch_geometric loop.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--growth", action="store_true", help="cost against size, on synthetic graphs")
    mode.add_argument(
        "--parallel",
        action="store_true",
        help="throughput of a sweep on all cores, and beside busy neighbours",
    )
    mode.add_argument("--show", metavar="FILE", help="show an earlier measurement")
    parser.add_argument(
        "--data", type=_graphs, help="cora,citeseer,amaphoto; with --parallel the built-in graph"
    )
    parser.add_argument(
        "--methods",
        type=_names("--methods", "method"),
        help="all; with --growth pagnn_n, with --parallel zero,pagnn_m,pagnn_n,mf",
    )
    parser.add_argument("--missing", type=_names("--missing", "missing"), default="type1", help="%(default)s")
    parser.add_argument("--rate", type=_rate, default=0.5, help="missing rate, %(default)s")
    parser.add_argument(
        "--seeds", type=_numbers("--seeds"), default="1,5,20", help="seeds trained at once, %(default)s"
    )
    parser.add_argument(
        "--epochs",
        type=_number("--epochs"),
        default=100,
        help="maximal epochs of a contender in a round (%(default)s)",
    )
    parser.add_argument("--repeats", type=_number("--repeats"), default=5, help="rounds, %(default)s")
    parser.add_argument(
        "--threads",
        type=_number("--threads", MAX_THREADS),
        help="CPU threads (1, as in each process of `run`); with --parallel the cores to use (all)",
    )
    parser.add_argument(
        "--precision", type=_precisions, default="float32", help="float32, bfloat16 or both; %(default)s"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ...")
    parser.add_argument(
        "--reference",
        type=_reference,
        default="plain,csr",
        help="forms of the reference, %(default)s; or none",
    )
    parser.add_argument("--axes", type=_axes, default=None, help="what grows with --growth (all)")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not measure peak memory")
    parser.add_argument("--results", metavar="DIR", help="use the learned imputations of this results folder")
    parser.add_argument("-o", "--output", metavar="FILE", help="write every repeat as JSON")
    parser.add_argument("--figure", metavar="FILE", help="draw a figure: .svg, .pdf or .png")
    parser.add_argument("--format", choices=WRITERS, default="md", help="of the table, %(default)s")
    return parser


def _names(option: str, group: str) -> Callable[[str], list[str]]:
    """A list of names from a group of choices."""
    return lambda text: _chosen(option, text, list(choices(group)))


def _graphs(text: str) -> list[str]:
    """Datasets that need nothing but their name."""
    return _chosen(
        "--data", text, [name for name in choices("data") if name not in ("custom", "table", "pyg")]
    )


def _chosen(option: str, text: str, valid: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in valid:
            raise RequestError(
                f"{option} {text}: {name or 'an empty name'} is not one of {', '.join(valid)}."
            )
    return names


def _reference(text: str) -> list[str]:
    from pagnn_bench.bench.speed import CSR, PLAIN

    return [] if text == "none" else _chosen("--reference", text, (PLAIN, CSR))


def _precisions(text: str) -> list[str]:
    return _chosen("--precision", text, PRECISIONS)


def _axes(text: str) -> list[str]:
    from pagnn_bench.bench.growth import AXES

    return _chosen("--axes", text, list(AXES))


def _numbers(option: str) -> Callable[[str], list[int]]:
    parse_one = _number(option)
    return lambda text: sorted({parse_one(part) for part in text.split(",")})


def _number(option: str, at_most: float = math.inf) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if text.isascii() and text.isdecimal() and 0 < int(text) <= at_most:
            return int(text)
        bounds = f"of at least 1 and at most {at_most:g}" if at_most < math.inf else "of at least 1"
        raise RequestError(f"{option} {text}: give whole numbers {bounds}.")

    return parse


def _rate(text: str) -> float:
    try:
        return parse_rate(float(text))
    except (ValueError, RequestError) as error:
        raise RequestError(f"--rate {text}: give a number from 0 up to, but not including, 1.") from error
