"""The GCN behind the fillings against numbers of Kipf and Welling's code (tkipf/gcn): see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from pagnn_bench.baselines.mf import MeanFilling
from pagnn_bench.methods.base import Context
from pagnn_bench.nn.propagate import symmetric_operator
from pagnn_bench.training.optimiser import StackedAdam
from tests.methods.fidelity import CPU, TensorFlowAdam, incomplete, stored

PUBLIC = stored("gcn")
DECAY = 5e-4


@pytest.fixture
def network():
    """Ours without biases, features divided by their row sums, the public weights, nothing missing."""
    graph = incomplete(PUBLIC, np.ones(PUBLIC["features"].shape, dtype=bool), feature_norm="row")
    np.testing.assert_allclose(graph.features.toarray(), PUBLIC["rows"], atol=1e-6)
    method = MeanFilling(hidden=16, dropout=0.0, input_dropout="post", bias=False)
    network = method.prepare(graph, Context(seed=0, device=CPU)).network([0], 1.0)
    network.replace({name: torch.from_numpy(PUBLIC[name].copy())[None] for name in ("weight1", "weight2")})
    return network


def penalised(network, part):
    """Cross entropy and L2 of the first layer's weights."""
    labels = torch.from_numpy(PUBLIC["labels"][PUBLIC[part]])
    return F.cross_entropy(network(part, None)[0], labels) + DECAY / 2 * network.weight1.square().sum()


def test_operator():
    """preprocess_adj of utils.py."""
    operator = symmetric_operator(sp.csr_array(PUBLIC["adjacency"])).toarray()
    np.testing.assert_allclose(operator, PUBLIC["operator"], atol=1e-6)


def test_logits_loss_and_gradients(network):
    """GCN of models.py without dropout: outputs, loss with its L2 term, gradients of both weights."""
    for part in ("train", "val", "test"):
        logits = network(part, None)[0].detach()
        np.testing.assert_allclose(logits, PUBLIC["logits"][PUBLIC[part]], atol=1e-5, rtol=1e-5)
    loss = penalised(network, "train")
    assert loss.item() == pytest.approx(float(PUBLIC["train_loss"]), rel=1e-5)
    loss.backward()
    for k in (1, 2):
        found = getattr(network, f"weight{k}").grad[0]
        np.testing.assert_allclose(found, PUBLIC[f"gradient{k}"], atol=1e-5, rtol=1e-4)


def test_five_epochs_end_in_the_same_weights(network):
    """The loop of train.py without dropout, with TensorFlow's Adam."""
    adam = TensorFlowAdam(network.parameters(), lr=0.01)
    for epoch in range(5):
        network.zero_grad()
        penalised(network, "train").backward()
        adam.step()
        if epoch == 0:  # their validation loss includes the L2 term
            assert penalised(network, "val").item() == pytest.approx(float(PUBLIC["val_loss"]), rel=1e-5)
    for k in (1, 2):
        found = getattr(network, f"weight{k}").detach()[0]
        np.testing.assert_allclose(found, PUBLIC[f"end{k}"], atol=1e-5, rtol=1e-5)


def test_our_adam_takes_the_same_way(network):
    """The same with what we train with: ``decay=first`` is their L2 term, and torch's ε is all of the difference.

    Five steps of up to 0.01 each; units that are nearly dead have gradients so small that ε counts.
    """
    adam = StackedAdam(network, [0.01], [DECAY], "first")
    labels = torch.from_numpy(PUBLIC["labels"][PUBLIC["train"]])
    for _ in range(5):
        network.zero_grad(set_to_none=True)
        F.cross_entropy(network("train", None)[0], labels).backward()
        adam.step()
    for k in (1, 2):
        found = getattr(network, f"weight{k}").detach()[0].numpy()
        np.testing.assert_allclose(found, PUBLIC[f"end{k}"], atol=2e-3)
        assert np.median(np.abs(found - PUBLIC[f"end{k}"])) < 1e-5
