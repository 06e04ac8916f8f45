"""SAT, the structure-attribute transformer: attributes of nodes without any, from the graph alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.special import expit
from torch import Tensor

from pagnn_bench.baselines.sat_model import (
    MLP,
    AdjacencyLoss,
    FeatureLoss,
    Generator,
    hold_out,
    recall,
    sample_pairs,
)
from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import LearnedImputation
from pagnn_bench.methods.learning import BestWeights
from pagnn_bench.methods.likelihood import Likelihood, ModelScale
from pagnn_bench.methods.values import flag, fraction, not_negative, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams
from pagnn_bench.nn.inputs import make_input
from pagnn_bench.nn.narrow import narrow_layers
from pagnn_bench.nn.noise import Noise
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.nn.sparse import SparseOperator

RECALL_AT = 10  # reference code: the epoch is chosen by Recall@10
KEEPS = ("last", "best")


class SAT(LearnedImputation):
    """Learning on attribute-missing graphs (Chen et al., arXiv 2011.01623, IEEE TPAMI 2022), then GCN.

    Two encoders share one latent space, which both decoders read: z_x [t, latent] comes from the attributes of the
    nodes T that have any, and z_a [n, latent] from the links of all nodes. A discriminator D pulls both towards N(0,
    I)::

        L_gen  = λr BCEw(dec_x(z_x), X_T)      + λr BCE(q(z_a) q(z_a)ᵀ, Â ≠ 0)
               + λc BCEw(dec_x(z_a[T]), X_T)   + λc BCE(q(z_x) q(z_x)ᵀ, Â[T, T] ≠ 0)
               + λg [BCE(D(z_x), 1) + BCE(D(z_a[T]), 1)]
        L_disc = λg/2 [2 BCE(D(noise), 1) + BCE(D(z_x), 0) + BCE(D(z_a[T]), 0)],  noise ~ N(0, I)

    All are means: BCEw over t x d, where ones weigh w = #zeros / #ones of X_T; links over the non-zeros of Â and as
    many other pairs, drawn once. Nodes without attributes become sigmoid(dec_x(z_a)). Some observed nodes are not in
    T: the Recall@10 of dec_x(z_a) on them can select the epoch. Numbers (columns with observed values other than 0
    and 1) are scaled to mean 0 and deviation 1 and cost (x - l)² / 2 with l = dec_x(z), since SAT's paper uses
    squared errors for them; w is that of the words. If there are numbers, the loss of dec_x(z_a) on the held-out
    nodes replaces the recall.

    Generator and discriminator have separate optimisers. (The reference has one for both, which in older versions of
    torch also changes parameters that are meant to be fixed.)

    Args:
        width: hidden units of both encoders and of the feature decoder.
        latent: dimension of z, and hidden units of the link decoder and the discriminator.
        model_dropout: dropout on the input and the hidden layers while training.
        model_lr, model_weight_decay: of Adam.
        lambda_r, lambda_c, lambda_g: weights of the losses: own kind, cross, adversarial.
        n_gene, n_disc: steps of generator and discriminator per epoch.
        epochs: number of epochs.
        keep: ``last``, the weights after all epochs, or ``best``, those with the highest score on the held-out nodes.
        held_out: share of the observed nodes that are not learned from.
        evaluate_every: epochs between evaluations on the held-out nodes; only for ``best``.
        patience: training stops after this many epochs without a better score; None: never. Only for ``best``.
        calibrated: undo the weight w, so that filled values are the model's probabilities.
        **common: see :class:`LearnedImputation`.
    """

    patterns: ClassVar[tuple[str, ...]] = ("rows",)
    patterns_reason: ClassVar[str] = (
        "SAT completes nodes that lack all attributes (missing=type1); it has no input for a node that lacks some"
    )
    finishing: ClassVar[tuple[str, ...]] = ("calibrated",)

    def __init__(
        self,
        width: int,
        latent: int,
        model_dropout: float,
        model_lr: float,
        model_weight_decay: float,
        lambda_r: float,
        lambda_c: float,
        lambda_g: float,
        n_gene: int,
        n_disc: int,
        epochs: int,
        keep: str,
        held_out: float,
        evaluate_every: int,
        patience: int | None,
        calibrated: bool,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.width, self.latent = whole("width", width), whole("latent", latent)
        self.model_dropout = fraction("model_dropout", model_dropout)
        self.held_out = fraction("held_out", held_out)
        self.model_lr = positive("model_lr", model_lr)
        self.model_weight_decay = not_negative("model_weight_decay", model_weight_decay)
        self.lambda_r, self.lambda_c = not_negative("lambda_r", lambda_r), not_negative("lambda_c", lambda_c)
        self.lambda_g = not_negative("lambda_g", lambda_g)
        self.n_gene, self.n_disc = whole("n_gene", n_gene), whole("n_disc", n_disc)
        self.epochs, self.evaluate_every = whole("epochs", epochs), whole("evaluate_every", evaluate_every)
        if keep not in KEEPS:
            raise RequestError(f"method.keep={keep}: choose one of {', '.join(KEEPS)}.")
        self.keep = keep
        self.patience = None if patience is None else whole("patience", patience)
        self.calibrated = flag("calibrated", calibrated)

    def learn(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        rows = graph.observed.rows
        if rows is None:
            raise ValueError(self.patterns_reason)
        training = Training(self, graph, context)
        best = BestWeights(training.generator, self.patience or self.epochs) if self.keep == "best" else None
        for epoch in range(1, self.epochs + 1):
            context.report(f"SAT {epoch}/{self.epochs}")
            for _ in range(self.n_gene):
                training.generator_step()
            for _ in range(self.n_disc):
                training.discriminator_step()
            evaluate = epoch % self.evaluate_every == 0 or epoch == self.epochs
            if best is not None and evaluate and best.is_over(training.error(), epoch):
                break
        if best is not None:
            best.restore()
        missing = np.flatnonzero(~rows)
        logits = np.zeros(graph.observed.shape, dtype=np.float32)
        logits[missing] = training.logits(missing).cpu().numpy()
        return logits

    def finish(self, learned: np.ndarray, graph: IncompleteGraph, context: Context) -> np.ndarray:
        """From logits to features: σ(l), or calibrated σ(l - log w), and l for numbers, in the units of the features.

        Weighting ones by w shifts the optimal logit by log w, which ``calibrated`` undoes.
        """
        known = Known.of(graph, self.held_out, context.seed)
        shift = math.log(known.weight) if self.calibrated else 0.0
        words = expit(learned - np.float32(shift))
        return known.unit.restored(words if known.binary else np.where(known.unit.words, words, learned))


@dataclass(frozen=True)
class Known:
    """What SAT learns from: some of the nodes that have attributes.

    Attributes:
        learned, held: the nodes T, and those that are held out.
        unit: the scale in which features are learned.
        features: the features of all nodes on this scale [n, d].
        binary: whether all columns are words.
        weight: w.
    """

    learned: np.ndarray
    held: np.ndarray
    unit: ModelScale
    features: np.ndarray
    binary: bool
    weight: float

    @classmethod
    def of(cls, graph: IncompleteGraph, held_out: float, seed: int) -> Self:
        assert graph.observed.rows is not None
        rng = np.random.default_rng(seed_for("sat nodes", seed=seed))
        learned, held = hold_out(np.flatnonzero(graph.observed.rows), held_out, rng)
        unit = ModelScale.of(graph)
        features = unit.scaled(graph)
        binary = bool(unit.words.all())
        words = features[learned] if binary else features[learned][:, unit.words]
        size, ones = words.size, float(words.sum())
        weight = (size - ones) / ones if 0 < ones < size else 1.0
        return cls(learned, held, unit, features, binary, weight)


class Training:
    """Networks, losses and optimisers of SAT on one incomplete graph.

    Attributes:
        generator: both encoders and both decoders.
        discriminator: D.
        learned, held: the nodes T, and the nodes that may select the epoch.
        weight: w.
        by_recall: whether the epoch is selected by Recall@10.
    """

    def __init__(self, settings: SAT, graph: IncompleteGraph, context: Context) -> None:
        self.settings, self.device = settings, context.device
        rng = np.random.default_rng(seed_for("sat pairs", seed=context.seed))
        weights = torch.Generator().manual_seed(seed_for("sat weights", seed=context.seed))
        self.noise = Noise(seed_for("sat noise", seed=context.seed), self.device)
        self.streams = DropoutStreams([seed_for("sat dropout", seed=context.seed)], self.device)

        known = Known.of(graph, settings.held_out, context.seed)
        self.learned, self.held, self.weight = known.learned, known.held, known.weight
        self.index = torch.from_numpy(self.learned).to(self.device)
        x, truth = (known.features[nodes] for nodes in (self.learned, self.held))
        self.by_recall = known.binary and bool(truth.any())
        self.truth = torch.from_numpy(truth).to(self.device)
        self.likelihood = Likelihood(known.unit.words, self.device)
        self.feature_loss = FeatureLoss(torch.from_numpy(x).to(self.device), self.weight, self.likelihood)

        operator = symmetric_operator(graph.adjacency)
        inside = sp.csr_array(operator[self.learned][:, self.learned])
        self.all_pairs, self.learned_pairs = (
            AdjacencyLoss(sample_pairs(part, rng), self.device) for part in (operator, inside)
        )
        source, propagate = make_input(sp.csr_array(x), self.device), SparseOperator(operator, self.device)
        sizes, rate = (*graph.observed.shape, settings.width, settings.latent), settings.model_dropout
        self.generator = Generator(source, propagate, sizes, rate, weights).to(self.device)
        self.discriminator = MLP((settings.latent, settings.latent, 1), rate, weights).to(self.device)
        if context.narrow:
            self.generator.to_bfloat16()
            narrow_layers(self.discriminator)
        lr, decay = settings.model_lr, settings.model_weight_decay
        self.generator_adam, self.discriminator_adam = (
            torch.optim.Adam(part.parameters(), lr=lr, weight_decay=decay, fused=True)
            for part in (self.generator, self.discriminator)
        )

    def generator_step(self) -> None:
        """One step on L_gen. D also gets gradients, but only its own optimiser updates it, after clearing them."""
        s, g = self.settings, self.generator
        z_x, z_a, z_t = self._encode()
        own = self.feature_loss(g.decode_features(z_x, self.streams))
        own = own + self.all_pairs(g.decode_links(z_a, self.streams))
        cross = self.feature_loss(g.decode_features(z_t, self.streams))
        cross = cross + self.learned_pairs(g.decode_links(z_x, self.streams))
        fooled = self._judge(z_x, real=True) + self._judge(z_t, real=True)
        self.generator_adam.zero_grad(set_to_none=True)
        (s.lambda_r * own + s.lambda_c * cross + s.lambda_g * fooled).backward()
        self.generator_adam.step()

    def discriminator_step(self) -> None:
        """One step on L_disc; nothing flows back into the generator."""
        with torch.no_grad():
            z_x, _, z_t = self._encode()
            noise = self.noise.normal(*z_x.shape)
        fakes = self._judge(z_x, real=False) + self._judge(z_t, real=False)
        self.discriminator_adam.zero_grad(set_to_none=True)
        (self.settings.lambda_g / 2 * (2 * self._judge(noise, real=True) + fakes)).backward()
        self.discriminator_adam.step()

    def _encode(self) -> tuple[Tensor, Tensor, Tensor]:
        """z_x, z_a and z_a[T], with dropout."""
        z_a = self.generator.structure(self.streams)
        return self.generator.attributes(self.streams), z_a, z_a.index_select(0, self.index)

    def _judge(self, z: Tensor, real: bool) -> Tensor:
        """BCE(D(z), 1) or BCE(D(z), 0)."""
        logits = self.discriminator(z, self.streams)
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))

    def error(self) -> float:
        """The error of attributes predicted from links alone on the held-out nodes: 1 - Recall@10, or the mean loss."""
        logits = self.logits(self.held)
        if self.by_recall:
            return 1 - recall(logits, self.truth, RECALL_AT)
        everything = torch.ones_like(self.truth, dtype=torch.bool)
        return float(self.likelihood.surprise(logits, self.truth, everything)) / self.truth.numel()

    def logits(self, nodes: np.ndarray) -> Tensor:
        """dec_x(z_a) of some nodes [m, d], without dropout."""
        with torch.no_grad():
            z = self.generator.structure(None)[torch.from_numpy(nodes).to(self.device)]
            logits = self.generator.decode_features(z, None)
        if not logits.isfinite().all():
            raise FloatingPointError(
                "SAT diverged: its logits are no longer finite numbers (method.model_lr is too high)"
            )
        return logits
