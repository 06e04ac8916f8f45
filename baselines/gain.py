"""Generative adversarial imputation nets (GAIN), one of the imputations of the paper's comparison."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import LearnedImputation
from pagnn_bench.methods.learning import BestWeights, UnitRange, hold_out
from pagnn_bench.methods.likelihood import ModelScale
from pagnn_bench.methods.values import flag, fraction, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.narrow import narrow_layers
from pagnn_bench.nn.noise import Noise

NOISE = 0.01  # missing inputs are drawn from U(0, 0.01), as in the authors' code
EPSILON = 1e-8  # inside the logarithms, as in the authors' code
CHECK_EVERY = 100  # iterations between two looks at the held-out entries
ROUND_BELOW = 20  # columns with fewer distinct observed values can be rounded, as in the authors' code


class GAIN(LearnedImputation):
    """GAIN (Yoon, Jordon and van der Schaar, ICML 2018, arXiv 1806.02920), then GCN.

    The generator G fills the missing entries; the discriminator D tells observed entries from filled ones, helped by a
    hint. With x in [0, 1], mask m, noise z and b ~ Bernoulli(hint_rate) for every entry::

        x̂ = m ⊙ x + (1 − m) ⊙ G(m ⊙ x + (1 − m) ⊙ z, m)            p = D(x̂, m ⊙ b)
        L_D = −mean[m log p + (1 − m) log(1 − p)]
        L_G = −mean[(1 − m) log p] + alpha Σ m (x − G)² / Σ m

    G and D are perceptrons 2d → width → width → d with ReLU and a sigmoid at the end; each batch gives one step of D
    and one of G. A share of the observed entries can be held out (m = 0 for both players): the generator that
    predicts them best, by cross entropy, is kept, while the authors keep the last one. Numbers (columns with observed
    values other than 0 and 1) are scaled to [0, 1] by their range, as by the authors; their score is half the squared
    error, in standard deviations. The model does not see edges: all nodes without any attribute (type 1) get the same
    row, up to the noise.

    Args:
        width: units of the hidden layers, at most d, the number of attributes; None means d.
        iterations: maximum number of batches to train on.
        patience: training stops after this many iterations without a better prediction of the held-out entries.
        held_out: share of the observed entries that is held out; 0 trains for all iterations.
        batch: nodes per batch.
        alpha: weight of the reconstruction in L_G.
        hint_rate: share of the entries of m that D sees.
        model_lr: learning rate of both Adams.
        round: round the filled values of columns with few distinct values to whole numbers.
        **common: see :class:`LearnedImputation`.
    """

    finishing: ClassVar[tuple[str, ...]] = ("round",)

    def __init__(
        self,
        width: int | None,
        iterations: int,
        patience: int,
        held_out: float,
        batch: int,
        alpha: float,
        hint_rate: float,
        model_lr: float,
        round: bool,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.width = None if width is None else whole("width", width)
        self.iterations, self.patience = whole("iterations", iterations), whole("patience", patience)
        self.held_out, self.batch = fraction("held_out", held_out), whole("batch", batch)
        self.alpha, self.model_lr = positive("alpha", alpha), positive("model_lr", model_lr)
        self.hint_rate = fraction("hint_rate", hint_rate)
        self.round = flag("round", round)

    def learn(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        unit, observed = UnitRange.of(graph), graph.observed.dense()
        masks = observed, np.zeros_like(observed)
        if self.held_out > 0:
            rng = np.random.default_rng(seed_for("held out", seed=context.seed))
            masks = hold_out(observed, self.held_out, rng)
        x, known, learned, held = (
            torch.from_numpy(np.ascontiguousarray(array)).to(context.device)
            for array in (unit.scaled(graph), observed, *masks)
        )
        generator = torch.Generator().manual_seed(seed_for("weights and order", seed=context.seed))
        noise = Noise(seed_for("noise", seed=context.seed), context.device)
        width = min(self.width or x.shape[1], x.shape[1])
        players = [perceptron(x.shape[1], width, generator).to(context.device) for _ in range(2)]
        if context.narrow:
            for player in players:
                narrow_layers(player)
        game = Game(*players, alpha=self.alpha, noise=noise)
        score = Score.of(graph, unit, context.device)
        self._train(game, x, learned, held, generator, context, score)
        return unit.restored(self._generate(game, x, known).cpu().numpy())

    def finish(self, learned: np.ndarray, graph: IncompleteGraph, context: Context) -> np.ndarray:
        filled = with_constants(learned, graph)
        return rounded(filled, graph) if self.round else filled

    def _train(
        self,
        game: Game,
        x: Tensor,
        learned: Tensor,
        held: Tensor,
        generator: torch.Generator,
        context: Context,
        score: Score,
    ) -> None:
        """Train both players; restore the best generator if there are held-out entries to score it."""
        players = game.generator, game.discriminator
        adam_g, adam_d = (torch.optim.Adam(p.parameters(), lr=self.model_lr, fused=True) for p in players)
        best = BestWeights(game.generator, self.patience)
        x_judge, m_judge, judge = (part[held.any(dim=1)] for part in (x, learned, held))
        for iteration in range(1, self.iterations + 1):
            context.report(f"GAIN {iteration}/{self.iterations}")
            batch = torch.randperm(len(x), generator=generator)[: self.batch].to(x.device, non_blocking=True)
            m = learned[batch].to(x.dtype)
            rows, hint = x[batch] * m, m * (game.random(m) < self.hint_rate)
            guess = game.generate(rows, m)
            # D moves first and does not change G, so both steps share one pass through G.
            adam_d.zero_grad(set_to_none=True)
            game.discriminator_loss(rows, m, hint, guess.detach()).backward()
            adam_d.step()
            adam_g.zero_grad(set_to_none=True)
            game.generator_loss(rows, m, hint, guess).backward(inputs=list(game.generator.parameters()))
            adam_g.step()
            if self.held_out > 0 and (iteration % CHECK_EVERY == 0 or iteration == self.iterations):
                guess = self._generate(game, x_judge, m_judge)
                if best.is_over(score(guess, x_judge, judge), iteration):
                    break
        if self.held_out > 0:
            best.restore()

    def _generate(self, game: Game, x: Tensor, m: Tensor) -> Tensor:
        """G of all nodes, [n, d], from the entries in ``m`` (bool [n, d])."""
        with torch.no_grad():
            batches = zip(x.split(self.batch), m.split(self.batch))
            return torch.cat([game.generate(rows * mask, mask.to(x.dtype)) for rows, mask in batches])


class Game:
    """The two players and their losses; all arguments are float [b, d], x is 0 where m is 0."""

    def __init__(self, generator: nn.Module, discriminator: nn.Module, alpha: float, noise: Noise) -> None:
        self.generator, self.discriminator, self.alpha, self.noise = generator, discriminator, alpha, noise

    def random(self, like: Tensor) -> Tensor:
        """U(0, 1) of this shape."""
        return self.noise.uniform(*like.shape)

    def generate(self, x: Tensor, m: Tensor) -> Tensor:
        """G, for observed and missing entries alike."""
        return self.generator(torch.cat((x + (1 - m) * NOISE * self.random(m), m), dim=1))

    def discriminator_loss(self, x: Tensor, m: Tensor, hint: Tensor, guess: Tensor) -> Tensor:
        p = self._judge(x, m, hint, guess)
        return -(m * (p + EPSILON).log() + (1 - m) * (1 - p + EPSILON).log()).mean()

    def generator_loss(self, x: Tensor, m: Tensor, hint: Tensor, guess: Tensor) -> Tensor:
        p = self._judge(x, m, hint, guess)
        fooled = -((1 - m) * (p + EPSILON).log()).mean()
        error = (m * (x - guess)).square().sum() / m.sum().clamp(min=1)  # a batch may have nothing observed
        return fooled + self.alpha * error

    def _judge(self, x: Tensor, m: Tensor, hint: Tensor, guess: Tensor) -> Tensor:
        return self.discriminator(torch.cat((x + (1 - m) * guess, hint), dim=1))


@dataclass(frozen=True)
class Score:
    """The error of predicted values: cross entropy of words, half the squared error of numbers in standard deviations.

    Attributes:
        words: bool [d].
        spread: [d], the standard deviation of a number in [0, 1]; 1 for words.
    """

    words: Tensor
    spread: Tensor

    @classmethod
    def of(cls, graph: IncompleteGraph, unit: UnitRange, device: torch.device) -> Self:
        scale = ModelScale.of(graph)
        usable = ~scale.words & (scale.span > 0) & (unit.span > 0)
        spread = np.divide(scale.span, unit.span, out=np.ones_like(unit.span), where=usable)
        return cls(torch.from_numpy(scale.words).to(device), torch.from_numpy(spread).to(device))

    def __call__(self, p: Tensor, x: Tensor, judged: Tensor) -> float:
        """Mean over the judged entries (bool), all [m, d]; NaN if any is, which on a GPU would crash the process."""
        if p.isnan().any():
            return float("nan")
        if self.words.all():
            return float(F.binary_cross_entropy(p[judged], x[judged]))
        error = 0.5 * ((x - p) / self.spread).square()
        return float(
            torch.where(self.words, F.binary_cross_entropy(p, x, reduction="none"), error)[judged].mean()
        )


def perceptron(features: int, width: int, generator: torch.Generator) -> nn.Sequential:
    """2d → width → width → d with ReLU, ReLU, sigmoid; weights N(0, 2 / fan-in), biases 0."""
    sizes = (2 * features, width, width, features)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
        nn.init.kaiming_normal_(layer.weight, generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Sigmoid())


def with_constants(filled: np.ndarray, graph: IncompleteGraph) -> np.ndarray:
    """Fill columns with a single observed value with that value, as in the authors' code; [n, d] → [n, d].

    In that code such a column has no span, so that the generator's output is scaled to zero.
    """
    values, observed = graph.features.toarray(), graph.observed.dense()
    low = values.min(axis=0, where=observed, initial=np.inf)
    high = values.max(axis=0, where=observed, initial=-np.inf)
    return np.where(low == high, low, filled).astype(filled.dtype)


def rounded(filled: np.ndarray, graph: IncompleteGraph) -> np.ndarray:
    """Whole numbers in the columns with few distinct observed values; [n, d] → [n, d]."""
    values, observed = graph.features.toarray(), graph.observed.dense()
    discrete = [len(np.unique(column[seen])) < ROUND_BELOW for column, seen in zip(values.T, observed.T)]
    return np.where(discrete, np.round(filled), filled)
