"""``pagnn_bench.apply``: train on a graph; get predictions, completed attributes and weights."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pagnn_bench.api.answers import Answers
from pagnn_bench.api.folder import save
from pagnn_bench.api.running import silence
from pagnn_bench.api.words import Key, configurations
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.schema import whole
from pagnn_bench.engine.applying import apply_cell


class Applied(Answers):
    """The result of :func:`apply`: all tables and networks, and a way to save them."""

    def save(self, folder: str | PathLike[str], format: str = "npz") -> Path:
        """Write everything into a folder, all or nothing.

        Args:
            folder: new, empty, or written by an earlier call.
            format: of the tables: ``npz``, ``csv`` or ``parquet``.

        Raises:
            RequestError: the folder holds other files or cannot be written to, or the format is unknown.
        """
        return save(self, Path(folder), format)


def apply(
    *words: str,
    best: int = 1,
    progress: bool = True,
    config_dir: str | PathLike[str] | None = None,
    **keys: Key,
) -> Applied:
    """Train the seeds of one cell on one mask; predict every node, complete the attributes, keep the best weights.

    ::

        applied = apply(method="fp", data="custom", data__path="graph.npz", missing="natural", seeds=5)
        applied.predictions, applied.attributes, applied.embeddings, applied.model()
        applied.save("out")

    Records do not hold weights, so recorded trials are trained again, which gives the same digits
    (:attr:`Applied.trials` compares them); new trials are recorded.

    Args:
        *words, progress, config_dir, **keys: as in :func:`pagnn_bench.run`, for a single combination and, unless
            ``masks`` is given, the first mask.
        best: keep weights and embeddings of this many seeds, by validation accuracy.

    Raises:
        RequestError: the request was wrong; the message says how in one sentence.
        Unfinished: a training failed, or none succeeded.
    """
    whole(1).check("best", best)
    configs = configurations(words, {"masks": 1, **keys}, config_dir)
    if len(configs) > 1:
        raise RequestError(f"{len(configs)} combinations: apply takes one method on one graph.")
    with silence(not progress):
        return Applied(apply_cell(configs[0], best))
