"""Variational autoencoder (VAE), one of the imputations of the paper's comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pagnn_bench.config.identity import seed_for
from pagnn_bench.methods.base import Context
from pagnn_bench.methods.imputation import LearnedImputation
from pagnn_bench.methods.learning import BestWeights, hold_out
from pagnn_bench.methods.likelihood import Likelihood, ModelScale
from pagnn_bench.methods.values import fraction, positive, whole
from pagnn_bench.missing import IncompleteGraph
from pagnn_bench.nn.dropout import DropoutStreams, dropout
from pagnn_bench.nn.narrow import narrow_layers
from pagnn_bench.nn.noise import Noise


class VAE(LearnedImputation):
    """Auto-encoding variational Bayes (Kingma and Welling, arXiv 1312.6114) on the observed entries, then GCN.

    With x the words and m the mask of a node, 0 where an entry is missing or held out::

        q(z | x) = N(μ, diag σ²),  (μ, log σ²) = encoder(m ⊙ x)        p = sigmoid(decoder(z))
        loss of a node = Σ_f m_f BCE(x_f, p_f) + KL(q(z | x) ‖ N(0, I))

    averaged over the nodes that have an observed entry. A share of the observed entries is held out, hidden from the
    encoder and from the loss, for early stopping. Missing entries become p at the posterior mean z = μ.
    Columns with observed values other than 0 and 1 are numbers: they are scaled to mean 0 and deviation 1 and filled
    with l = decoder(z), with the loss (x_f - l_f)² / 2 of N(l_f, 1) instead of BCE.
    The model does not see edges, so all nodes without any attribute (type 1) are encoded from the zero vector and get
    the same row.

    Args:
        width: units of the single hidden layer of encoder and decoder.
        latent: dimension of z.
        model_dropout: dropout on the input and on the decoder's hidden layer, while training.
        model_lr: learning rate of Adam.
        batch: nodes per step.
        epochs: maximum number of passes over the nodes.
        patience: training stops after this many epochs without a better prediction of the held-out entries.
        held_out: share of the observed entries that is held out; with 0, the score is that of the learned entries.
        **common: see :class:`LearnedImputation`.
    """

    def __init__(
        self,
        width: int,
        latent: int,
        model_dropout: float,
        model_lr: float,
        batch: int,
        epochs: int,
        patience: int,
        held_out: float,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.width, self.latent = whole("width", width), whole("latent", latent)
        self.model_dropout = fraction("model_dropout", model_dropout)
        self.model_lr, self.batch = positive("model_lr", model_lr), whole("batch", batch)
        self.epochs, self.patience = whole("epochs", epochs), whole("patience", patience)
        self.held_out = fraction("held_out", held_out)

    def learn(self, graph: IncompleteGraph, context: Context) -> np.ndarray:
        unit = ModelScale.of(graph)
        values, rng = unit.scaled(graph), np.random.default_rng(seed_for("held out", seed=context.seed))
        masks = hold_out(graph.observed.dense(), self.held_out, rng)
        x, learned, held = (
            torch.from_numpy(np.ascontiguousarray(array)).to(context.device) for array in (values, *masks)
        )
        generator = torch.Generator().manual_seed(seed_for("weights and order", seed=context.seed))
        likelihood = Likelihood(unit.words, context.device)
        model = Network(x.shape[1], self.width, self.latent, generator, likelihood)
        model.start_at(np.where(unit.words, smoothed_means(values, masks[0]), np.float32(0.5)))
        if context.narrow:
            narrow_layers(model)
        self._train(model.to(context.device), x, learned, held, generator, context)
        with torch.no_grad():  # here the encoder sees the held-out entries
            parts = [likelihood.mean(model(rows)) for rows in x.split(self.batch)]
        return unit.restored(torch.cat(parts).cpu().numpy())

    def _train(
        self,
        model: Network,
        x: Tensor,
        learned: Tensor,
        held: Tensor,
        generator: torch.Generator,
        context: Context,
    ) -> None:
        """Train until the prediction of the held-out entries stops improving; restore the best weights."""
        device = context.device
        noise = Noise(seed_for("noise", seed=context.seed), device)
        streams = DropoutStreams([seed_for("dropout", seed=context.seed)], device)
        adam = torch.optim.Adam(model.parameters(), lr=self.model_lr, fused=True)
        nodes = learned.any(dim=1).nonzero().squeeze(1).cpu()
        best = BestWeights(model, self.patience)
        judged = self._judged(*(part[held.any(dim=1)] for part in (x, learned, held)))
        for epoch in range(1, self.epochs + 1):
            context.report(f"VAE {epoch}/{self.epochs}")
            for batch in nodes[torch.randperm(len(nodes), generator=generator)].split(self.batch):
                index = batch.to(device, non_blocking=True)
                rows, m = x[index], learned[index]
                eps = noise.normal(len(batch), self.latent)
                adam.zero_grad(set_to_none=True)
                model.loss(rows * m, m, eps, streams, self.model_dropout).backward()
                adam.step()
            if best.is_over(self._surprise(model, judged), epoch):
                break
        best.restore()

    def _judged(
        self, x: Tensor, learned: Tensor, held: Tensor
    ) -> list[tuple[Tensor, Tensor, tuple[Tensor, ...]]]:
        """In batches: the visible entries of nodes, all their entries, [b, d], and the indices of held-out ones.

        Indices instead of masks, because in every epoch a GPU would have to wait while a mask is counted.
        """
        parts = zip(*(part.split(self.batch) for part in (x, learned, held)))
        return [(rows * m, rows, judge.nonzero(as_tuple=True)) for rows, m, judge in parts]

    def _surprise(self, model: Network, judged: Sequence[tuple[Tensor, Tensor, tuple[Tensor, ...]]]) -> float:
        """Mean cross entropy of the held-out entries; for numbers, half their squared error."""
        total: Tensor | float = 0.0
        with torch.no_grad():
            for visible, rows, places in judged:
                total = total + model.likelihood.surprise(model(visible), rows, places)
        return float(total / sum(len(places[0]) for _, _, places in judged))


class Network(nn.Module):
    """Encoder d → width → (μ, log σ²) and decoder latent → width → d, with ReLU.

    Calling it returns the logits [b, d] of p at the posterior mean (for numbers, their expected value).
    """

    def __init__(
        self,
        features: int,
        width: int,
        latent: int,
        generator: torch.Generator,
        likelihood: Likelihood | None = None,
    ) -> None:
        super().__init__()
        self.likelihood = likelihood or Likelihood()
        self.encoder = _linear(features, width, generator)
        self.posterior = _linear(width, 2 * latent, generator)
        self.decoder = _linear(latent, width, generator)
        self.output = _linear(width, features, generator)

    def start_at(self, means: np.ndarray) -> None:
        """Start the output at these probabilities [d]: mean filling, instead of 1/2 for every word (1/2 is l = 0)."""
        with torch.no_grad():
            self.output.bias.copy_(torch.from_numpy(means).logit())

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(μ, log σ²), each [b, latent]."""
        mean, log_variance = self.posterior(torch.relu(self.encoder(x))).chunk(2, dim=1)
        return mean, log_variance

    def forward(self, x: Tensor) -> Tensor:
        return self.output(torch.relu(self.decoder(self.encode(x)[0])))

    def loss(
        self, x: Tensor, m: Tensor, eps: Tensor, streams: DropoutStreams | None = None, rate: float = 0.0
    ) -> Tensor:
        """Reconstruction error plus divergence, averaged over the nodes, at z = μ + σ ⊙ ε.

        Args:
            x: m ⊙ x, [b, d].
            m: which entries are learned from, bool [b, d].
            eps: ε ~ N(0, I), [b, latent].
            streams, rate: dropout.
        """
        mean, log_variance = self.encode(dropout(x[None], streams, rate)[0])
        hidden = torch.relu(self.decoder(mean + torch.exp(0.5 * log_variance) * eps))
        error = self.likelihood.loss(self.output(dropout(hidden[None], streams, rate)[0]), x, m)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
        return (error + divergence) / len(x)


def smoothed_means(x: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Column means over the known entries, float32 [d], pulled slightly towards 1/2: never 0 or 1, 1/2 without any."""
    return ((x.sum(axis=0, where=known) + 0.5) / (known.sum(axis=0) + 1)).astype(np.float32)


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Xavier-uniform weights from our own generator, zero bias."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
