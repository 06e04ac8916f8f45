"""Methods that fill in the missing entries first and then train a standard GCN."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from pagnn_bench.config.identity import canonical_json
from pagnn_bench.methods.backbones import backbone
from pagnn_bench.methods.base import OWN_NETWORK, Context, Prepared, Signal, TwoLayerMethod
from pagnn_bench.methods.module import ModuleRecipe
from pagnn_bench.methods.portable import Portable, convolutions, dense, edge_index
from pagnn_bench.methods.source import source_digest
from pagnn_bench.methods.values import flag
from pagnn_bench.missing import IncompleteGraph, Observed
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.records.cache import cached_array

Filled: TypeAlias = "sp.csr_array | np.ndarray"


class ImputationMethod(TwoLayerMethod):
    """X̂ = imputed features, then the two-layer GCN: G = Â X̂ and P = Â; or another network on X̂ (``network``).

    A subclass writes :meth:`impute`; observed entries must come back unchanged.
    """

    def _checked_network(self, network: str) -> str:
        if network != OWN_NETWORK:
            self._recipe(network)  # refuses an unknown one
        return network

    def _recipe(self, network: str) -> ModuleRecipe:
        return backbone(network, self.hidden, self.layers, self.dropout)

    def check(self, features: int, classes: int) -> None:
        if self.network != OWN_NETWORK:
            self._recipe(self.network).check(features, classes)

    def prepare(self, graph: IncompleteGraph, context: Context) -> Prepared:
        if self.network == OWN_NETWORK:
            return super().prepare(graph, context)
        signal = self.signal(graph, context)
        assert signal.factors is not None
        _, features, _ = signal.factors  # X̂ and any columns that the method adds
        recipe = self._recipe(self.network)
        # Nothing is aggregated before this network, so dropout on the input can only be on X̂.
        rate = 0.0 if self.input_dropout == "none" else self.dropout
        return recipe.prepared(graph, features, context, rate, facts=signal.facts, filled=signal.filled)

    def portable(self, graph: IncompleteGraph, signal: Signal) -> Portable:
        assert signal.factors is not None
        _, features, _ = signal.factors

        def inputs() -> dict[str, np.ndarray]:
            return {"x": dense(features), "edge_index": edge_index(graph.adjacency)}

        arguments = self.layer_arguments(features.shape[1], graph.num_classes)
        return Portable("torch_geometric.nn.GCN", arguments, convolutions, inputs)

    @abstractmethod
    def impute(self, graph: IncompleteGraph, context: Context) -> Filled:
        """The filled features X̂ [n, d], CSR where most entries are 0, dense otherwise."""

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        filled = self.impute(graph, context)
        if not self.oracle:
            _check_filled(type(self).__name__, filled, graph)
        return self.propagated(graph, filled)

    def propagated(
        self, graph: IncompleteGraph, filled: Filled, facts: dict[str, Any] | None = None
    ) -> Signal:
        """The GCN on filled features."""
        operator = symmetric_operator(graph.adjacency)
        aggregated = operator @ filled.astype(np.float64)
        if sp.issparse(aggregated):
            aggregated = sp.csr_array(aggregated)
            aggregated.sort_indices()
        before = (operator, filled, np.ones((filled.shape[0], 1)))
        return Signal(aggregated.astype(np.float32), operator, before, facts or {}, filled)


class LearnedImputation(ImputationMethod):
    """An imputation that is itself a trained model: VAE, GAIN, SAT.

    It is trained once per mask, seeded by the mask (or once per seed with ``per_seed``), and what it learned is cached
    in a file, so that a later sweep over more seeds or other GCN settings does not train it again. Filled values are
    rounded to half precision, whether they come from the file or not, so both ways give the same trial. Without missing
    entries, nothing is learned.

    A subclass writes :meth:`learn`. Cheap changes to the learned values go into :meth:`finish`, and the keys that
    control them into ``finishing``: settings that differ only in these share what was learned.

    Args:
        per_seed: train a separate model for every seed.
        **common: see :class:`TwoLayerMethod`.
    """

    finishing: ClassVar[tuple[str, ...]] = ()

    def __init__(self, per_seed: bool, **common: Any) -> None:
        super().__init__(**common)
        self.per_seed = flag("per_seed", per_seed)

    @abstractmethod
    def learn(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        """Train the model and return its reconstruction [n, d]; only its values at missing entries are used.

        With ``context.narrow``, dense products are in bfloat16 where the model supports it.
        """

    def finish(self, learned: np.ndarray, graph: IncompleteGraph, context: Context) -> np.ndarray:
        """Turn the learned values [n, d], 0 where observed, into those to fill in; unchanged by default."""
        return learned

    def settings(self) -> dict[str, Any]:
        """The hyper-parameters of the imputation model itself: the part of its YAML that changes what it learns."""
        of_network = {"hidden", "dropout", "input_dropout", "bias", "layers", "network"}
        irrelevant = {*of_network, "per_seed", *self.finishing}
        return {key: value for key, value in vars(self).items() if key not in irrelevant}

    def signal(self, graph: IncompleteGraph, context: Context) -> Signal:
        hidden = ~graph.observed.dense()
        if not hidden.any():
            return self.propagated(graph, graph.features, {"impute_seconds": 0.0, "cached_seconds": 0.0})

        def values() -> np.ndarray:
            learned = self.learn(graph, context)
            _check_array(f"{type(self).__name__}.learn", learned, hidden.shape)
            return _compact(learned[hidden])

        key = self._key(graph, context) if context.cache is not None else ""
        array = cached_array(context.cache, key, values, context.relearn)
        learned = np.zeros(hidden.shape, dtype=np.float32)
        learned[hidden] = array.values
        filled = graph.features.toarray()
        filled[hidden] = _compact(self.finish(learned, graph, context)[hidden])
        cached_seconds = array.seconds if array.hit else 0.0
        facts = {"impute_seconds": array.seconds, "cached_seconds": cached_seconds}
        return self.propagated(graph, filled, facts)

    def impute(self, graph: IncompleteGraph, context: Context) -> Filled:
        filled = self.signal(graph, context).filled
        assert filled is not None
        return filled

    def _key(self, graph: IncompleteGraph, context: Context) -> str:
        """A digest of what the learned values depend on: settings, seed, precision, graph with split and training
        labels, and the source of the class with the code that it uses.

        The rest of this package, torch and the device do not count; after a change there, ``force=true`` learns again.
        """
        cls = type(self)
        name = cls.__name__.lower()
        inputs = {
            "class": f"{cls.__module__}.{cls.__qualname__}",
            "source": source_digest(cls),
            "settings": self.settings(),
            "seed": context.seed,
            "shape": graph.observed.shape,
        }
        if context.narrow:  # only then, so that keys of float32 stay as they were
            inputs["precision"] = "bfloat16"
        digest = hashlib.sha256(canonical_json(inputs).encode())
        known, edges = graph.features, graph.adjacency
        mask = np.packbits(graph.observed.dense() if graph.observed.rows is None else graph.observed.rows)
        test = graph.split.test if graph.split.scored is None else graph.split.scored
        split = (graph.labels, graph.split.train, graph.split.val, test)
        for array in (known.data, known.indices, known.indptr, mask, edges.indices, edges.indptr, *split):
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"{name}-{digest.hexdigest()[:24]}"


def _check_array(who: str, values: Any, shape: tuple[int, ...], sparse: bool = False) -> None:
    if not (isinstance(values, np.ndarray) or (sparse and sp.issparse(values))):
        raise TypeError(f"{who} has to return a numpy array, not {type(values).__name__}")
    if values.shape != shape:
        raise ValueError(f"{who} has to return features of shape {shape}, not {values.shape}")


def _check_filled(method: str, filled: Filled, graph: IncompleteGraph) -> None:
    """Refuse filled features that are not finite, or change observed entries."""
    who, known = f"{method}.impute", graph.features
    _check_array(who, filled, known.shape, sparse=True)
    values = filled if isinstance(filled, np.ndarray) else filled.data
    if not np.isfinite(values).all():
        raise ValueError(f"{who} fills in values that are not finite numbers")
    if isinstance(filled, np.ndarray):
        kept = np.where(graph.observed.dense(), filled, 0) - known
    else:
        kept = graph.observed.apply(sp.csr_array(filled)) - known
    if abs(kept).max() > 1e-5 * max(1.0, float(abs(known).max())):
        raise ValueError(f"{who} changes observed entries")


def _compact(values: np.ndarray) -> np.ndarray:
    """Half precision, with an error of at most 1/2048 of the value or 3e-8; single precision for large values."""
    if not np.isfinite(values).all():
        raise FloatingPointError(
            "the imputation model diverged: it fills in values that are not finite numbers"
        )
    fits = np.abs(values).max(initial=0) <= np.finfo(np.float16).max
    return values.astype(np.float16 if fits else np.float32)


def imputation_error(
    filled: Filled, truth: sp.csr_array, observed: Observed, rows: int = 2048
) -> dict[str, float]:
    """How far filled values are from the hidden truth, over all hidden entries.

    Returns:
        ``impute_rmse``: root mean squared error; ``impute_bce``: mean binary cross entropy with the filled value,
        clipped to [1e-6, 1 - 1e-6], as the probability of a 1 (for binary features). Empty if nothing is hidden.
    """
    squared = entropy = 0.0
    count = 0
    binary = bool(np.isin(truth.data, (0.0, 1.0)).all())
    for start in range(0, filled.shape[0], rows):  # in blocks, to avoid a second dense copy of the matrix
        block = slice(start, start + rows)
        hidden = ~observed.dense()[block]
        guess = filled[block] if isinstance(filled, np.ndarray) else filled[block].toarray()
        x, p = truth[block].toarray()[hidden].astype(np.float64), guess[hidden].astype(np.float64)
        count += x.size
        squared += float(((p - x) ** 2).sum())
        if binary:
            p = p.clip(1e-6, 1 - 1e-6)
            entropy -= float((x * np.log(p) + (1 - x) * np.log1p(-p)).sum())
    if count == 0:
        return {}
    error = {"impute_rmse": (squared / count) ** 0.5}
    return error | {"impute_bce": entropy / count} if binary else error
