"""Read R's serialised objects without R, such as data frames, factors and lists of neighbours.

The format is that of "R Internals", section 1.8, in its binary form XDR: a header, then nested items, each preceded by
a word of flags. Vectors, lists, symbols and attributes are read; functions, environments with content and compact
vectors are refused, since tables contain none. Nothing is ever evaluated.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class RDataError(ValueError):
    """The bytes are not an R object, or one of an unsupported kind."""


@dataclass
class RObject:
    """A value and its attributes.

    Attributes:
        value: an array for numbers (NaN = NA; of whole numbers and logicals NA is -2³¹), a list for texts, lists and
            pairlists, None for R's NULL and for objects that are attributes only (S4).
        attributes: by name, such as ``names``, ``levels`` or the slots of an S4 object.
    """

    value: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> RObject:
        """The element of a named list, or the column of a data frame."""
        names = self.attributes["names"].value if "names" in self.attributes else []
        if name not in names:
            raise RDataError(f"the object has no {name}")
        found: RObject = self.value[names.index(name)]
        return found


# A word of flags: the kind of the item in its low byte, what comes with it in single bits.
_NULL, _SYMBOL, _PAIRLIST, _CALL, _TEXT, _LOGICAL, _WHOLE, _REAL = 0, 1, 2, 6, 9, 10, 13, 14
_TEXTS, _LIST, _S4, _NOTHING, _REFERENCE = 16, 19, 25, 254, 255
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10
_ENVIRONMENTS = (241, 242, 253)  # base, empty, global: stored without content
_NUMBERS = {_LOGICAL: ">i4", _WHOLE: ">i4", _REAL: ">f8"}
_DEEPEST = 200  # far beyond any table, and far from Python's own limit


def read_rds(content: bytes) -> RObject:
    """The object in a file of ``saveRDS``, compressed or not."""
    return _Reader(_unpacked(content)).whole()


def read_rdata(content: bytes) -> dict[str, RObject]:
    """The objects in a file of ``save`` (.rda), by name."""
    plain = _unpacked(content)
    if plain[:5] not in (b"RDX2\n", b"RDX3\n"):
        raise RDataError("not a file of R's save()")
    return _Reader(plain[5:]).whole().attributes


def read_lazy(index: bytes, database: bytes, name: str) -> RObject:
    """One object from the pair of files (.rdx, .rdb) that holds the data of an installed R package.

    The index gives the start and length of each object in the database: four bytes with its uncompressed length, then
    the object compressed by zlib.
    """
    contents = read_rds(index)
    start, length = contents["variables"][name].value
    entry = database[start : start + length]
    if len(entry) != length:
        raise RDataError("the database is shorter than the index says")
    if contents["compressed"].value[0] != 1:
        raise RDataError("the database is not compressed by zlib")
    try:
        plain = zlib.decompress(entry[4:])
    except zlib.error as error:
        raise RDataError(f"{name} cannot be decompressed") from error
    if len(plain) != int.from_bytes(entry[:4], "big"):
        raise RDataError(f"{name} does not have the length that it declares")
    return read_rds(plain)


def _unpacked(content: bytes) -> bytes:
    """The content of a file of R, which may be compressed by gzip, bzip2 or xz."""
    kinds: Mapping[bytes, Callable[[bytes], bytes]] = {
        b"\x1f\x8b": gzip.decompress,
        b"BZh": bz2.decompress,
        b"\xfd7zXZ": lzma.decompress,
    }
    unpack = next((unpack for start, unpack in kinds.items() if content.startswith(start)), bytes)
    try:
        return unpack(content)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise RDataError("the file cannot be decompressed") from error


class _Reader:
    """Reads one serialised object from its first byte to its last."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place, self.depth = content, 0, 0
        self.references: list[RObject] = []

    def whole(self) -> RObject:
        if self._take(2) != b"X\n":
            raise RDataError("not an R object in binary form")
        version = self._int()
        self._take(8)  # versions of R: the one that wrote it and the first that can read it
        if version == 3:
            self._take(self._int())  # the encoding of strings that do not name theirs
        elif version != 2:
            raise RDataError(f"format {version} of R objects is not supported")
        found = self._item()
        if self.place != len(self.content):
            raise RDataError("bytes follow the object")
        return found

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.content) - self.place:
            raise RDataError("the object is truncated")
        self.place += count
        return self.content[self.place - count : self.place]

    def _int(self) -> int:
        found: int = struct.unpack(">i", self._take(4))[0]
        return found

    def _item(self) -> RObject:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise RDataError("objects are nested too deeply")
        flags = self._int()
        kind = flags & 255
        if kind in (_NULL, _NOTHING) or kind in _ENVIRONMENTS:
            found = RObject()
        elif kind == _REFERENCE:
            found = self._reference(flags >> 8)
        elif kind == _SYMBOL:
            found = self._item()
            self.references.append(found)
        elif kind in (_PAIRLIST, _CALL):
            found = self._pairlist(flags)
        else:
            found = RObject(self._vector(kind))
            if flags & _HAS_ATTRIBUTES:
                found.attributes = self._item().attributes
        self.depth -= 1
        return found

    def _reference(self, number: int) -> RObject:
        number = number or self._int()
        if not 1 <= number <= len(self.references):
            raise RDataError("a reference has no target")
        return self.references[number - 1]

    def _pairlist(self, flags: int) -> RObject:
        """A chain of (attributes, tag, value) as one object: all values, and tagged ones also by name."""
        found = RObject([])
        while flags & 255 in (_PAIRLIST, _CALL):
            if flags & _HAS_ATTRIBUTES:
                self._item()  # attributes of the link itself, which we do not need
            tag = self._item().value if flags & _HAS_TAG else None
            value = self._item()
            found.value.append(value)
            if tag is not None:
                found.attributes[tag] = value
            flags = self._int()
        if flags & 255 != _NOTHING:
            raise RDataError("a list has no proper end")
        return found

    def _vector(self, kind: int) -> Any:
        if kind == _S4:
            return None
        if kind not in (_TEXT, _TEXTS, _LIST, *_NUMBERS):
            raise RDataError(f"objects of kind {kind} are not supported")
        length = self._int()
        if kind == _TEXT:
            return None if length == -1 else self._take(length).decode("utf-8", "replace")  # -1 is NA
        if kind in _NUMBERS:
            numbers = np.frombuffer(self._take(length * int(_NUMBERS[kind][-1])), _NUMBERS[kind])
            return numbers.astype(numbers.dtype.newbyteorder("="))
        items = [self._item() for _ in range(length)]
        return [item.value for item in items] if kind == _TEXTS else items
