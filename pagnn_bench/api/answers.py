"""The predictions of one method's networks for a graph, as tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.applying import Application, Network, as_module

if TYPE_CHECKING:
    import torch

PARTS = ("train", "val", "test")


class Answers:
    """The predictions of one method's networks for a graph.

    Tables have one row per node, indexed by the ids of the user's file if it has any.

    Args:
        application: the engine's result.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    @cached_property
    def nodes(self) -> pd.Index:
        """The ids of the nodes."""
        names, num_nodes = self.application.names, self.application.graph.num_nodes
        return pd.Index(range(num_nodes) if names.ids is None else names.ids, name=names.node)

    @cached_property
    def classes(self) -> list[Any]:
        """The names of the classes, or their numbers if they have none."""
        names = self.application.names.classes
        return list(range(self.application.graph.num_classes)) if names is None else list(names)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Class probabilities of every node from every seed that succeeded, float32 [S, n, C]."""
        return np.stack(list(self.application.probabilities.values()))

    @property
    def mean(self) -> np.ndarray:
        """The mean over seeds of the probabilities, float64 [n, C]."""
        return self.probabilities.mean(axis=0, dtype=np.float64)

    @property
    def spread(self) -> np.ndarray:
        """Their standard deviation over seeds, float64 [n, C]; NaN for a single seed."""
        if len(self.probabilities) == 1:
            return np.full(self.probabilities.shape[1:], np.nan)
        return self.probabilities.std(axis=0, ddof=1, dtype=np.float64)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The likeliest class, the given class and part of the split, and the probability of every class.

        ``p_CLASS`` is the mean over seeds, ``sd_CLASS`` the standard deviation.
        """
        graph, mean, spread = self.application.graph, self.mean, self.spread
        names = pd.array(self.classes)  # its type allows missing labels
        part = np.full(graph.num_nodes, "", dtype=object)
        for name in PARTS:
            part[getattr(graph.split, name)] = name
        columns: dict[str, Any] = {
            "predicted": names.take(mean.argmax(axis=1)),
            "given": names.take(graph.labels, allow_fill=True),
            "part": part,
        }
        columns |= {f"p_{name}": mean[:, k] for k, name in enumerate(self.classes)}
        columns |= {f"sd_{name}": spread[:, k] for k, name in enumerate(self.classes)}
        return pd.DataFrame(columns, index=self.nodes)

    @cached_property
    def attributes(self) -> pd.DataFrame | None:
        """The attributes with missing ones filled in, in the units and categories of the user's file.

        Observed ones are as given; a column without any observed entry stays NaN. None if the method fills in nothing
        (:attr:`why_no_attributes`).
        """
        completed, names = self.application.completed, self.application.names
        if completed is None:
            return None
        frame = pd.DataFrame(completed.values, index=self.nodes, columns=self._columns)
        for place, categories in (names.categories or {}).items():
            codes = completed.values[:, place]
            filled = [None if np.isnan(code) else categories[int(code)] for code in codes]
            frame[self._columns[place]] = pd.Series(filled, index=self.nodes, dtype=object)
        return frame

    @property
    def observed(self) -> pd.DataFrame | None:
        """Which of :attr:`attributes` the method saw; it filled in the others."""
        completed = self.application.completed
        if completed is None:
            return None
        return pd.DataFrame(completed.observed, index=self.nodes, columns=self._columns)

    @property
    def why_no_attributes(self) -> str:
        """Why :attr:`attributes` is None; empty if it is not."""
        return self.application.why_not

    @property
    def _columns(self) -> list[str]:
        completed, names = self.application.completed, self.application.names.columns
        assert completed is not None
        return list(names) if names is not None else [str(k) for k in range(completed.values.shape[1])]

    @property
    def best_seeds(self) -> list[int]:
        """The seeds whose weights were kept, the highest validation accuracy first."""
        return [network.seed for network in self.application.best]

    @property
    def embeddings(self) -> pd.DataFrame | None:
        """The last hidden layer of the best seed; None if the method has none."""
        return self.embeddings_of(self.best_seeds[0])

    def embeddings_of(self, seed: int) -> pd.DataFrame | None:
        """The last hidden layer of one of the best seeds. Axes differ between seeds, so a mean makes no sense."""
        hidden = self._network(seed).hidden
        if hidden is None:
            return None
        return pd.DataFrame(hidden, index=self.nodes, columns=[f"h{k}" for k in range(hidden.shape[1])])

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per seed: its record, and in ``record`` how it compares with the results folder.

        ``new``: was not recorded; ``equal``: same test accuracy; ``differs``: the record has ``recorded_test_acc``.
        """
        rows = []
        for seed, record in self.application.records.items():
            row = {"seed": seed, **{key: value for key, value in record.items() if key != "curve"}}
            earlier = self.application.recorded.get(seed)
            if earlier is None:
                row["record"] = "new"
            else:
                row["record"] = "equal" if earlier["test_acc"] == record.get("test_acc") else "differs"
                row["recorded_test_acc"] = earlier["test_acc"]
            rows.append(row)
        return pd.DataFrame(rows)

    def model(self, seed: int | None = None) -> torch.nn.Module:
        """The network of one of the best seeds (default: the best) as an ordinary torch module.

        Call it with :meth:`model_inputs`: ``applied.model()(**applied.model_inputs())``.

        Raises:
            RequestError: no ready-made module computes what the method computes, or the seed was not kept.
        """
        portable = self.application.portable
        if portable is None:
            raise RequestError(
                f"method={self.application.cell.method['name']}: no ready-made torch module computes the same."
            )
        return as_module(portable, self._network(self.best_seeds[0] if seed is None else seed).state)

    def model_inputs(self) -> dict[str, torch.Tensor]:
        """The arguments for :meth:`model`: the graph as the method sees it, with its scaling."""
        import torch

        portable = self.application.portable
        return (
            {} if portable is None else {name: torch.from_numpy(v) for name, v in portable.inputs().items()}
        )

    def _network(self, seed: int) -> Network:
        for network in self.application.best:
            if network.seed == seed:
                return network
        kept = ", ".join(map(str, self.best_seeds))
        raise RequestError(f"seed={seed}: only {kept} kept weights; apply(best=N) keeps more.")

    def __repr__(self) -> str:
        cell, seeds = self.application.cell, len(self.application.probabilities)
        return f"<{type(self).__name__}: {cell}, mask {self.application.mask}, {seeds} seeds>"
