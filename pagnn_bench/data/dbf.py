"""Read dBASE tables (.dbf), which hold the attributes of maps."""

from __future__ import annotations

import struct

import numpy as np


def read_dbf(content: bytes) -> dict[str, np.ndarray]:
    """The numeric columns of a table, each float64 [n], by name; an empty cell is NaN.

    A header of 32 bytes gives the number of rows and the lengths of the header and of a row. Then come 32 bytes per
    column with its name, kind (N: a number as text) and width, and a byte 0x0D. Every row begins with a flag.
    """
    rows, header, width = struct.unpack_from("<IHH", content, 4)
    table = np.frombuffer(content, dtype=np.uint8, count=rows * width, offset=header).reshape(rows, width)
    columns, place = {}, 1
    for start in range(32, header - 1, 32):
        if content[start] == 0x0D:
            break
        name = content[start : start + 11].split(b"\0")[0].decode("ascii")
        kind, size = content[start + 11 : start + 12], content[start + 16]
        if kind == b"N":
            cells = np.ascontiguousarray(table[:, place : place + size]).view(f"S{size}")[:, 0]
            texts = np.char.strip(cells)
            columns[name] = np.where(texts == b"", b"nan", texts).astype(np.float64)
        place += size
    return columns
