"""``data=counties`` and ``data=houses``: places and their neighbours, with dense attributes of the real world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pagnn_bench.data.dbf import read_dbf
from pagnn_bench.data.fetch import obtain
from pagnn_bench.data.files import data_root, read_checked
from pagnn_bench.data.graph import Graph
from pagnn_bench.data.raw import RawGraph, finish
from pagnn_bench.data.rds import RObject, read_lazy, read_rdata

# Not attributes of a county: the class, the count behind that rate, and numbers that only identify a place.
COUNTY_EXCLUDED = ("HR90", "HC90", "POLY_ID", "STFIPS", "COFIPS", "FIPSNO")
# Not attributes of a house: the class, the assessor's estimate of it, and a copy of the columns s1993 to s1998.
HOUSE_EXCLUDED = ("price", "avalue", "syear")
QUARTILES, QUINTILES = 4, 5


class Places(NamedTuple):
    """A graph, and which of its columns are category codes."""

    raw: RawGraph
    categorical: Sequence[int] = ()


def load_spatial(config: Mapping[str, Any]) -> Graph:
    """Read the counties or the houses; the graph is the same, bit for bit, whichever form is in the folder."""
    name = config["name"]
    root = data_root(config["root"])
    files, _ = obtain(root, name, "graph")
    places = READERS[name](read_checked(root, name, files))
    return finish(config, places.raw, places.categorical)


def read_counties(contents: Mapping[str, bytes]) -> Places:
    """US counties, linked if adjacent; the class is the quartile of the homicide rate of 1990."""
    columns = read_dbf(contents["natregimes.dbf"])
    edges = read_gal(contents["nat_queen.gal"], columns["FIPSNO"].astype(np.int64))
    features = np.stack([values for name, values in columns.items() if name not in COUNTY_EXCLUDED], axis=1)
    return Places(RawGraph(features, edges, quantile_classes(columns["HR90"], QUARTILES)))


def read_gal(content: bytes, names: np.ndarray) -> np.ndarray:
    """The edges [2, E] of a GAL file: a header line, then for each node its name, its number k of neighbours, and
    their k names.

    Args:
        content: the file.
        names: int64 [n], the name of each node.
    """
    node = {name: place for place, name in enumerate(names.tolist())}
    words = list(map(int, b" ".join(content.splitlines()[1:]).split()))
    edges, place = [], 0
    while place < len(words):
        name, count = words[place : place + 2]
        edges += [(node[name], node[other]) for other in words[place + 2 : place + 2 + count]]
        place += 2 + count
    return np.array(edges, dtype=np.int64).T


def read_houses(contents: Mapping[str, bytes]) -> Places:
    """Houses sold in Lucas County, linked to those nearby; the class is the quintile of the price."""
    if "house.rda" in contents:
        objects = read_rdata(contents["house.rda"])
        house, neighbours = objects["house"], objects["LO_nb"]
    else:
        files = contents["Rdata.rdx"], contents["Rdata.rdb"]
        house, neighbours = (read_lazy(*files, name) for name in ("house", "LO_nb"))
    table = house.attributes["data"]
    columns = [name for name in table.attributes["names"].value if name not in HOUSE_EXCLUDED]
    features = np.stack([table[name].value for name in columns], axis=1).astype(np.float64)
    factors = [place for place, name in enumerate(columns) if "levels" in table[name].attributes]
    labels = quantile_classes(table["price"].value, QUINTILES)
    return Places(RawGraph(features, _edges(neighbours), labels), factors)


def _edges(neighbours: RObject) -> np.ndarray:
    """The edges [2, E] of R's list of neighbours, which counts nodes from 1."""
    targets = [item.value for item in neighbours.value]
    source = np.repeat(np.arange(len(targets)), [len(target) for target in targets])
    return np.stack([source, np.concatenate(targets) - 1])


def quantile_classes(values: np.ndarray, parts: int) -> np.ndarray:
    """Classes 0..parts-1, [n], of sizes as equal as ties allow: the number of inner quantiles below each value."""
    inner = np.quantile(values, np.arange(1, parts) / parts)
    return np.searchsorted(inner, values, side="left")


READERS: dict[str, Callable[[Mapping[str, bytes]], Places]] = {
    "counties": read_counties,
    "houses": read_houses,
}
