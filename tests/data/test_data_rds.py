"""R objects are read as written; anything else is refused with a message."""

from __future__ import annotations

import gzip
import struct
import zlib

import numpy as np
import pytest

from pagnn_bench.data.rds import RDataError, read_lazy, read_rdata, read_rds

HEADER = b"X\n" + struct.pack(">iii", 2, 0x040202, 0x020300)
ATTRIBUTES, TAG, NULL = 1 << 9, 1 << 10, struct.pack(">i", 254)


def ints(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def text(value: str | None) -> bytes:
    return ints(9, -1) if value is None else ints(9, len(value.encode())) + value.encode()


def texts(*values: str | None) -> bytes:
    return ints(16, len(values)) + b"".join(map(text, values))


def whole(*values: int, flags: int = 0) -> bytes:
    return ints(13 | flags, len(values), *values)


def real(*values: float) -> bytes:
    return ints(14, len(values)) + struct.pack(f">{len(values)}d", *values)


def symbol(name: str) -> bytes:
    return ints(1) + text(name)


def pairs(**values: bytes) -> bytes:
    return b"".join(ints(2 | TAG) + symbol(name) + value for name, value in values.items()) + NULL


def named_list(**values: bytes) -> bytes:
    return ints(19 | ATTRIBUTES, len(values)) + b"".join(values.values()) + pairs(names=texts(*values))


FACTOR = whole(2, 1, flags=ATTRIBUTES) + pairs(levels=texts("no", "yes"))
FRAME = HEADER + named_list(size=whole(7, -(2**31)), price=real(1.5, float("nan")), garage=FACTOR)


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_data_frame(packed):
    frame = read_rds(packed(FRAME))
    assert frame["size"].value.tolist() == [7, -(2**31)]
    np.testing.assert_array_equal(frame["price"].value, [1.5, np.nan])
    assert frame["price"].value.dtype == np.float64
    assert frame["garage"].attributes["levels"].value == ["no", "yes"]
    with pytest.raises(RDataError, match="no colour"):
        frame["colour"]


def test_an_s4_object_and_a_reference_to_an_earlier_symbol():
    # The second slot is tagged by the first symbol again: reference 1.
    slots = ints(2 | TAG) + symbol("data") + real(3) + ints(2 | TAG) + ints(255 | 1 << 8) + texts(None) + NULL
    found = read_rds(HEADER + ints(25 | ATTRIBUTES) + slots)
    assert found.value is None
    assert found.attributes["data"].value == [None]


def test_a_workspace():
    found = read_rdata(gzip.compress(b"RDX2\n" + HEADER + pairs(a=whole(1), b=texts("x"))))
    assert {name: list(item.value) for name, item in found.items()} == {"a": [1], "b": ["x"]}
    with pytest.raises(RDataError, match=r"save"):
        read_rdata(FRAME)


def database(name: str, item: bytes, length: int | None = None) -> tuple[bytes, bytes]:
    entry = struct.pack(">I", len(item) if length is None else length) + zlib.compress(item)
    index = named_list(variables=named_list(**{name: whole(3, len(entry))}), compressed=whole(1))
    return HEADER + index, b"pad" + entry


def test_an_object_of_an_installed_package():
    item = HEADER + whole(4, 5)
    assert read_lazy(*database("nb", item), "nb").value.tolist() == [4, 5]
    index, entries = database("nb", item, length=3)
    with pytest.raises(RDataError, match="does not have the length"):
        read_lazy(index, entries, "nb")
    with pytest.raises(RDataError, match="shorter than the index says"):
        read_lazy(index, entries[:-1], "nb")
    with pytest.raises(RDataError, match="no house"):
        read_lazy(index, entries, "house")


def test_every_way_to_cut_it_short_is_refused():
    for length in range(len(FRAME)):
        with pytest.raises(RDataError):
            read_rds(FRAME[:length])
    with pytest.raises(RDataError, match="bytes follow"):
        read_rds(FRAME + b"x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"A\n1\n", "not an R object"),
        (b"X\n" + ints(4, 0, 0), "format 4"),
        (HEADER + ints(3), "kind 3"),  # a function
        (HEADER + ints(255 | 9 << 8), "has no target"),
        (HEADER + ints(19, 1) * 300 + NULL, "nested too deeply"),
        (HEADER + ints(13, -5), "truncated"),
        (gzip.compress(FRAME)[:-9], "cannot be decompressed"),
    ],
)
def test_what_is_no_object_of_a_table(content, words):
    with pytest.raises(RDataError, match=words):
        read_rds(content)
