"""``pagnn-bench apply``: train on a graph, and write what people take home."""

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
KEY=VALUE are the keys of `pagnn-bench run`; one combination, on mask 0 unless masks=[K] names another:

  pagnn-bench apply method=fp data=custom data.path=mygraph.npz missing=natural seeds=5 -o out

Records hold no weights, so trials that are recorded are trained again, and compared with what is recorded; others are
recorded. Exit codes: as of `pagnn-bench run`."""


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
    _tell(applied, args.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="pagnn-bench apply",
        description="Predict every node, complete the attributes and keep the weights of the best networks.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="what to train: method=..., data=...")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="a new folder, for everything")
    parser.add_argument(
        "--format",
        default="npz",
        metavar="FORMAT",
        help=f"of the tables: {', '.join(FORMATS)} (default: npz)",
    )
    parser.add_argument(
        "--best",
        type=_number,
        default=1,
        metavar="N",
        help="keep weights and embeddings of the N best seeds (default: 1)",
    )
    parser.add_argument("--config-dir", metavar="DIR", help="look for choices in DIR, too")
    return parser


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise RequestError(f"--best {text}: give a whole number of at least 1.")
    return int(text)


def _tell(applied: Applied, folder: str) -> None:
    """What came out, for a person."""
    made = applied.application
    graph, name = made.graph, made.cell.method.get("label", made.cell.method["name"])
    scores = {
        part: accuracy(applied.mean, graph.labels, getattr(graph.split, part)) for part in ("val", "test")
    }
    print(
        f"{name} on {made.cell.data['name']}: {count(graph.num_nodes, 'node')} predicted by "
        f"{count(len(made.probabilities), 'network')}; validation accuracy of their mean {100 * scores['val']:.2f} %, "
        f"test accuracy {100 * scores['test']:.2f} %"
    )
    if failed := len(made.records) - len(made.probabilities):
        print(f"  {count(failed, 'training')} diverged and left out")
    if found := differences(made):
        equal = sum(value == 0 for value in found.values())
        told = f"  {equal} of {count(len(found), 'recorded trial')} trained again with the same test accuracy"
        if equal < len(found):
            largest = max(found.values(), key=abs)
            told += f"; the largest difference is {100 * largest:+.2f} points (another machine or version?)"
        print(told)
    if made.completed is None:
        print(f"  no completed attributes: {made.why_not}")
    else:
        empty = f", {made.completed.left_empty:,} left empty" if made.completed.left_empty else ""
        print(f"  {made.completed.filled_in:,} attributes filled in{empty}")
    print(f"In {folder}: README.md says what is what")
