"""``pagnn-bench apply``: train on a graph, and write predictions, attributes and weights."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pagnn_bench.api.applied import Applied, apply
from pagnn_bench.api.folder import FORMATS, check_folder, check_format
from pagnn_bench.config.arguments import Parser
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import count
from pagnn_bench.engine.applying import accuracy, differences
from pagnn_bench.engine.outcome import Unfinished

EPILOG = """\
KEY=VALUE are the keys of `pagnn-bench run`, for one combination, on mask 0 unless masks=[K] names another:

  pagnn-bench apply method=fp data=custom data.path=mygraph.npz missing=natural seeds=5 -o out

Records hold no weights, so recorded trials are trained again and compared with their records; new ones are recorded.
Exit codes: as for `pagnn-bench run`."""


def apply_command(argv: list[str]) -> int:
    """Run the command and return the exit code.

    Raises:
        RequestError: the request was wrong.
    """
    args = _parser().parse_intermixed_args(argv)
    folder = Path(args.output)
    check_format(args.format)
    check_folder(folder)
    try:
        applied = apply(*args.words, best=args.best, config_dir=args.config_dir)
    except Unfinished as error:
        print(f"pagnn-bench: {error}.", file=sys.stderr)
        return 1
    applied.save(folder, args.format)
    _print_summary(applied, args.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="pagnn-bench apply",
        description="Predict every node, complete the attributes and keep the weights of the best networks.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="what to train: method=..., data=...")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="a new folder for the results")
    parser.add_argument(
        "--format",
        default="npz",
        metavar="FORMAT",
        help=f"of the tables: {', '.join(FORMATS)} (default: npz)",
    )
    parser.add_argument(
        "--best",
        type=_at_least_one,
        default=1,
        metavar="N",
        help="keep weights and embeddings of the N best seeds (default: 1)",
    )
    parser.add_argument("--config-dir", metavar="DIR", help="a folder with your own methods or data")
    return parser


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise RequestError(f"--best {text}: give a whole number of at least 1.")
    return int(text)


def _print_summary(applied: Applied, folder: str) -> None:
    """Print the accuracy, what was reproduced and filled in, and where the files are."""
    application = applied.application
    graph, cell = application.graph, application.cell
    name = cell.method.get("label", cell.method["name"])
    scores = {
        part: accuracy(applied.mean, graph.labels, getattr(graph.split, part)) for part in ("val", "test")
    }
    print(
        f"{name} on {cell.data['name']}: {count(graph.num_nodes, 'node')} predicted by "
        f"{count(len(application.probabilities), 'network')}; their mean has validation accuracy "
        f"{100 * scores['val']:.2f} %, test accuracy {100 * scores['test']:.2f} %"
    )
    if failed := len(application.records) - len(application.probabilities):
        print(f"  left out {count(failed, 'trial')} that diverged")
    if by_seed := differences(application):
        print(f"  {_reproduction(by_seed)}")
    completed = application.completed
    if completed is None:
        print(f"  no completed attributes: {application.why_not}")
    else:
        empty = f", {completed.left_empty:,} left empty" if completed.left_empty else ""
        print(f"  {completed.filled_in:,} attributes filled in{empty}")
    print(f"Files: {folder} (README.md describes them)")


def _reproduction(by_seed: dict[int, float]) -> str:
    """Whether retrained trials reached the test accuracy of their records."""
    equal = sum(value == 0 for value in by_seed.values())
    sentence = f"{equal} of {count(len(by_seed), 'recorded trial')} retrained with the same test accuracy"
    if equal == len(by_seed):
        return sentence
    largest = max(by_seed.values(), key=abs)
    return f"{sentence}; the largest difference is {100 * largest:+.2f} points (another machine or version?)"
