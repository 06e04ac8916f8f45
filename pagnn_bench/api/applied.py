"""``pagnn_bench.apply``: train on a graph and take home what the networks say of it."""

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
    """What :func:`apply` returns: everything that it found out, and a way to write it."""

    def save(self, folder: str | PathLike[str], format: str = "npz") -> Path:
        """Write everything into a folder, all or nothing.

        Args:
            folder: a new or empty one, or one that an earlier call has written.
            format: of the tables: ``npz``, ``csv`` or ``parquet``.

        Raises:
            RequestError: the folder holds something else, cannot be written to, or the format is none.
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

    Records do not hold weights, so trials that are recorded are trained again, which gives the same digits
    (:attr:`Applied.trials` says so for each); the others are recorded.

    Args:
        *words, progress, config_dir, **keys: as of :func:`pagnn_bench.run`, but for a single combination and, unless
            ``masks`` says otherwise, the first mask.
        best: of how many seeds to keep weights and embeddings; those of the highest validation accuracy.

    Raises:
        RequestError: the request was wrong; one sentence says how.
        Unfinished: a training broke off, or none ended well.
    """
    whole(1).check("best", best)
    configs = configurations(words, {"masks": 1, **keys}, config_dir)
    if len(configs) > 1:
        raise RequestError(f"{len(configs)} combinations: apply takes one method on one graph.")
    with silence(not progress):
        return Applied(apply_cell(configs[0], best))
