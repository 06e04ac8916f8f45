"""The folder that ``apply`` writes, with a description inside; written whole or not at all."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pagnn_bench.api.about import ABOUT, INPUTS, describe, readme, weights_file
from pagnn_bench.api.answers import Answers
from pagnn_bench.config.atomic import write_atomically
from pagnn_bench.config.errors import RequestError, refuse

README = "README.md"
FORMATS = ("npz", "csv", "parquet")


def check_format(format: str) -> None:
    """Refuse an unknown format, or one whose package is missing; to be called before any training."""
    if format not in FORMATS:
        refuse("format", format, f"choose one of {', '.join(FORMATS)}")
    if format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise RequestError(
            "format=parquet: Parquet needs the package pyarrow: pip install 'pagnn-bench[parquet]'."
        )


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds other files or cannot be made; to be called before any training."""
    try:
        here = Path.cwd()
        if folder.absolute() in (here, *here.parents):
            raise RequestError(f"-o {folder}: this folder is in use; give the name of a new one.")
        if not folder.exists():
            above = next(path for path in folder.absolute().parents if path.exists())
            if not above.is_dir() or not os.access(above, os.W_OK):
                raise RequestError(f"-o {folder}: cannot be made, because {above} is not a writable folder.")
            return
        if not folder.is_dir():
            raise RequestError(f"-o {folder}: this is a file; give the name of a folder.")
        found = {path.name for path in folder.iterdir()}
        ours = _own_files(folder) if ABOUT in found else set()
    except OSError as error:
        raise RequestError(f"-o {folder}: cannot be read ({error.strerror}).") from error
    if foreign := sorted(found - ours):
        raise RequestError(
            f"-o {folder}: holds {foreign[0]}, which apply did not write; give a new or empty folder."
        )


def _own_files(folder: Path) -> set[str]:
    """The names of the files that an earlier call wrote."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return {ABOUT, *about["files"]}
    except (ValueError, KeyError, TypeError):  # a foreign file with the same name
        return set()


def save(applied: Answers, folder: Path, format: str) -> Path:
    """Write tables, weights and their description; the folder appears, or changes, once all files are written."""
    check_format(format)
    check_folder(folder)
    name, folder = folder, folder.absolute()
    new = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.tmp")
    try:
        hashes = {}
        for file, content in _files(applied, format):
            write_atomically(new / file, content)
            hashes[file] = hashlib.sha256(content).hexdigest()
        about = {**describe(applied), "files": hashes}
        page = readme(about, format).encode()
        write_atomically(new / README, page)
        hashes[README] = hashlib.sha256(page).hexdigest()
        write_atomically(new / ABOUT, (json.dumps(about, indent=2) + "\n").encode())
        _move_into_place(new, folder)
    except OSError as error:
        raise RequestError(f"-o {name}: cannot be written ({error.strerror}).") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def _move_into_place(new: Path, folder: Path) -> None:
    """Rename ``new`` to ``folder``; delete the old ``folder`` once that has worked."""
    if not folder.exists():
        os.rename(new, folder)
        return
    old = new.with_suffix(".old")
    os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _files(applied: Answers, format: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of all files except the descriptions."""
    import torch

    yield f"predictions.{format}", _predictions(applied, format)
    if (attributes := applied.attributes) is not None:
        observed = applied.observed
        assert observed is not None
        if format == "npz":
            yield "attributes.npz", _attributes(applied)
        else:
            yield f"attributes.{format}", _table(attributes, format)
            yield f"observed.{format}", _table(observed, format)
    for network in applied.application.best:
        if (embeddings := applied.embeddings_of(network.seed)) is not None:
            name = f"embeddings-seed{network.seed}.{format}"
            arrays = {"node": _ids(applied), "embeddings": embeddings.to_numpy()}
            yield name, _npz(arrays) if format == "npz" else _table(embeddings, format)
        if network.state:
            content = io.BytesIO()
            torch.save(network.state, content)
            yield weights_file(network.seed), content.getvalue()
    if (portable := applied.application.portable) is not None:
        yield INPUTS, _npz(portable.inputs())


def _predictions(applied: Answers, format: str) -> bytes:
    predictions = applied.predictions
    if format != "npz":
        return _table(predictions, format)
    arrays = {
        "node": _ids(applied),
        "classes": _plain(applied.classes),
        "mean": applied.mean,
        "spread": applied.spread,
        "predicted": applied.mean.argmax(axis=1),
        "given": applied.application.graph.labels,
        "part": predictions["part"].to_numpy().astype(str),
        "seeds": np.array(list(applied.application.probabilities)),
        "by_seed": applied.probabilities,
    }
    return _npz(arrays)


def _attributes(applied: Answers) -> bytes:
    """Categories as numbers, each column with an array of their names."""
    completed, attributes = applied.application.completed, applied.attributes
    assert completed is not None
    assert attributes is not None
    arrays = {
        "node": _ids(applied),
        "columns": _plain(list(attributes.columns)),
        "values": completed.values,
        "observed": completed.observed,
    }
    for place, categories in (applied.application.names.categories or {}).items():
        arrays[f"categories_{attributes.columns[place]}"] = _plain(list(categories))
    return _npz(arrays)


def _ids(applied: Answers) -> np.ndarray:
    return _plain(applied.nodes.tolist())


def _plain(values: list[Any]) -> np.ndarray:
    """Numbers as they are, everything else as text: an array of objects would be a pickle."""
    array = np.array(values)
    return array.astype(str) if array.dtype.kind == "O" else array


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **dict(arrays))  # type: ignore[arg-type]
    return content.getvalue()


def _table(frame: pd.DataFrame, format: str) -> bytes:
    content = io.BytesIO()
    if format == "csv":
        frame.to_csv(content, encoding="utf-8")
    else:
        frame.reset_index().to_parquet(content, index=False)
    return content.getvalue()
