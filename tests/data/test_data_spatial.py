"""Tables of counties and houses, small enough to write down."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pagnn_bench.data.dbf import read_dbf
from pagnn_bench.data.spatial import quantile_classes, read_counties, read_gal

NAMES = np.array([101, 7, 55])


def dbf(columns: dict[str, tuple[str, int]], rows: list[str]) -> bytes:
    """A dBASE table of columns {name: (kind, width)} and rows of raw text."""
    fields = b"".join(
        name.encode().ljust(11, b"\0") + kind.encode() + bytes(4) + bytes([width]) + bytes(15)
        for name, (kind, width) in columns.items()
    )
    width = 1 + sum(width for _, width in columns.values())
    head = b"\3" + bytes(3) + struct.pack("<IHH", len(rows), 32 + len(fields) + 1, width) + bytes(20)
    return head + fields + b"\r" + b"".join(b" " + row.encode() for row in rows) + b"\x1a"


def test_numeric_columns_are_read_and_others_passed_over():
    found = read_dbf(dbf({"A": ("N", 5), "NAME": ("C", 3), "B": ("N", 2)}, ["  1.5abc-2", " 1e-3xy   "]))
    assert list(found) == ["A", "B"]
    assert found["A"].tolist() == [1.5, 0.001]
    np.testing.assert_array_equal(found["B"], [-2, np.nan])


def test_neighbours_by_name():
    gal = b"0 3 NAT FIPSNO\n101 2\n7 55\n7 1\n101\n55 1\n101\n"
    assert read_gal(gal, NAMES).tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]


def test_counties_keep_what_is_no_name_and_no_answer():
    columns = dict.fromkeys(
        ("FIPSNO", "HR80", "HR90", "HC90", "UE90", "STFIPS", "COFIPS", "POLY_ID"), ("N", 4)
    )
    rows = [f"{name:4}{k:4}{10 * k:4}{k:4}{k + 5:4}   1   1   1" for k, name in enumerate([*NAMES, 9])]
    content = {"natregimes.dbf": dbf(columns, rows), "nat_queen.gal": b"0 4 x y\n101 1\n9\n9 1\n101\n"}
    places = read_counties(content)
    assert places.raw.features.tolist() == [[0, 5], [1, 6], [2, 7], [3, 8]]
    assert places.raw.labels.tolist() == [0, 1, 2, 3]
    assert places.raw.edges.tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize(
    ("values", "parts", "classes"),
    [
        ([5, 1, 4, 2, 3], 5, [4, 0, 3, 1, 2]),
        ([0, 0, 0, 1], 2, [0, 0, 0, 1]),  # ties stay together
        ([1, 2, 3, 4, 5, 6, 7, 8], 4, [0, 0, 1, 1, 2, 2, 3, 3]),
    ],
)
def test_quantile_classes(values, parts, classes):
    assert quantile_classes(np.array(values), parts).tolist() == classes
