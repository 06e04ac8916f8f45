"""SAT against numbers of its public code (xuChenSJTU/SAT-master-online) on a small graph: see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from pagnn_bench.baselines import sat as module
from pagnn_bench.baselines.sat import SAT, Training
from pagnn_bench.baselines.sat_model import recall
from pagnn_bench.nn.inputs import SparseInput
from pagnn_bench.nn.propagate import symmetric_operator
from tests.methods.fidelity import GivenDropout, incomplete, stored
from tests.methods.learners import context, shipped

PUBLIC = stored("sat")
LAMBDA_R, LAMBDA_C, LAMBDA_G = 1.0, 10.0, 1.0


def close(found, name, atol=1e-5, rtol=1e-5):
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    np.testing.assert_allclose(found, PUBLIC[name], atol=atol, rtol=rtol, err_msg=name)


def known_rows():
    return np.isin(np.arange(len(PUBLIC["features"])), [*PUBLIC["learned"], *PUBLIC["held"]])


def pairs(linked, others, nodes):
    row, column = np.concatenate((PUBLIC[linked], PUBLIC[others])).T
    target = np.repeat(np.array([1, 0], dtype=np.float32), (len(PUBLIC[linked]), len(PUBLIC[others])))
    return sp.csr_array((target, (row, column)), shape=(nodes, nodes))


@pytest.fixture
def training(monkeypatch):
    """Ours without dropout, with the public code's nodes, pairs, initial weights and noise."""
    mask = np.repeat(known_rows()[:, None], PUBLIC["features"].shape[1], axis=1)
    n, t = len(mask), len(PUBLIC["learned"])
    drawn = iter(
        [pairs("pairs", "other_pairs", n), pairs("learned_pairs", "learned_other_pairs", t)]
    )  # all nodes come first, then those with attributes
    monkeypatch.setattr(module, "hold_out", lambda *_: (PUBLIC["learned"], PUBLIC["held"]))
    monkeypatch.setattr(module, "sample_pairs", lambda *_: next(drawn))
    keys = shipped("sat", {"latent": 4, "model_dropout": 0.0})
    keys.pop("published", None)  # settings of the GCN behind it
    method = SAT(**keys)
    assert (method.lambda_r, method.lambda_c, method.lambda_g) == (LAMBDA_R, LAMBDA_C, LAMBDA_G)
    training = Training(method, incomplete(PUBLIC, mask), context())
    with torch.no_grad():
        for name, parameter in parameters(training):
            given = PUBLIC[f"start {name}"].astype(np.float32) / 128
            parameter.copy_(torch.from_numpy(given).reshape(parameter.shape))
    noise = iter(torch.from_numpy(PUBLIC["noise"]))
    monkeypatch.setattr(training.noise, "normal", lambda *_: next(noise))
    return training


def parameters(training):
    for owner in ("generator", "discriminator"):
        for name, parameter in getattr(training, owner).named_parameters():
            yield f"{owner}.{name}", parameter


def test_operator_weight_and_links(training):
    """new_load_data's normalised adjacency, pos_weight, and the linked pairs: the non-zeros, self loops included."""
    close(symmetric_operator(sp.csr_array(PUBLIC["adjacency"])).toarray(), "norm_adj", atol=1e-6)
    assert training.weight == pytest.approx(float(PUBLIC["pos_weight"]), rel=1e-6)
    learned = PUBLIC["learned"]
    inside = PUBLIC["norm_adj"][np.ix_(learned, learned)]
    for name, matrix in (("pairs", PUBLIC["norm_adj"]), ("learned_pairs", inside)):
        assert {tuple(pair) for pair in PUBLIC[name]} == set(zip(*(k.tolist() for k in matrix.nonzero())))
    assert len(PUBLIC["other_pairs"]) == len(PUBLIC["pairs"])
    assert len(PUBLIC["learned_other_pairs"]) == len(PUBLIC["learned_pairs"])


def test_both_codes_and_all_decodings(training):
    """LFI.forward: ae_z, gae_z, and features and links decoded from each."""
    generator = training.generator
    z_x, z_a, z_t = training._encode()
    close(z_x, "ae_z")
    close(z_a, "gae_z")
    np.testing.assert_allclose(z_t.detach(), PUBLIC["gae_z"][PUBLIC["learned"]], atol=1e-5)
    close(generator.decode_features(z_x, None), "ae_fts")
    close(generator.decode_features(z_a, None), "gae_fts")
    for z, name in ((z_x, "ae_adj"), (z_a, "gae_adj")):
        q = generator.decode_links(z, None)
        close(q @ q.T, name)
    missing = PUBLIC["missing"]
    np.testing.assert_allclose(training.logits(missing), PUBLIC["gae_fts"][missing], atol=1e-5)


def test_five_losses_of_the_generator(training):
    """fts_loss_discrete (twice), graph_loss_func (twice) and G_loss of NANG_main.py, each with its weight.

    Our feature loss has a gradient but, to save time, no value. The value is its documented formula here; that the
    gradient belongs to it is in test_sat_model.py, and that it is the public one in the next test.
    """
    generator = training.generator
    z_x, z_a, z_t = training._encode()
    target = torch.from_numpy(PUBLIC["features"][PUBLIC["learned"]])

    def of_features(z):
        logits, weight = generator.decode_features(z, None), torch.tensor(training.weight)
        return F.binary_cross_entropy_with_logits(logits, target, pos_weight=weight)

    close(LAMBDA_R * of_features(z_x), "fts_ae_loss")
    close(LAMBDA_C * of_features(z_t), "fts_gae_loss")
    close(LAMBDA_C * training.learned_pairs(generator.decode_links(z_x, None)), "adj_ae_loss")
    close(LAMBDA_R * training.all_pairs(generator.decode_links(z_a, None)), "adj_gae_loss")
    fooled = training._judge(z_x, real=True), training._judge(z_t, real=True)
    close(fooled[0], "G_loss_ae")
    close(fooled[1], "G_loss_gae")
    close(LAMBDA_G * sum(fooled), "G_loss")


def test_steps_of_both_players(training, monkeypatch):
    """Both steps of NANG_main.py's loop: gradient of every parameter by gene_loss and by D_loss, and D_loss itself."""
    losses, backward = [], torch.Tensor.backward

    def spy(self, **rest):
        losses.append(self.item())
        backward(self, **rest)

    monkeypatch.setattr(torch.Tensor, "backward", spy)
    training.generator_step()
    for name, parameter in parameters(training):
        if name.startswith("generator."):
            close(parameter.grad.reshape(PUBLIC[f"gradient {name}"].shape), f"gradient {name}", rtol=1e-4)
    without_features = PUBLIC["gene_loss"] - PUBLIC["fts_ae_loss"] - PUBLIC["fts_gae_loss"]
    assert losses == pytest.approx([without_features], rel=1e-5)

    training.generator_step()  # the public code has two steps of the generator before one of the discriminator
    training.discriminator_step()
    assert losses[2] == pytest.approx(float(PUBLIC["D_loss"]), rel=1e-5)
    for name, parameter in parameters(training):
        if name.startswith("discriminator."):
            close(parameter.grad, f"gradient {name}", rtol=1e-4)


def test_dropout_is_where_theirs_is(training, monkeypatch):
    """LFI.forward and the generator's step with dropout 0.5, under the masks that the public code drew.

    Theirs decodes the features of all nodes from z_a and takes the nodes with attributes, ours decodes these only.
    """
    keep = {name[5:]: mask for name, mask in PUBLIC.items() if name.startswith("keep ")}
    learned = PUBLIC["learned"]
    assert isinstance(training.generator.attributes.known, SparseInput)  # draws for the ones only
    order = [
        keep["structure"],
        keep["input"][PUBLIC["features"][learned] != 0],
        keep["attributes"],
        keep["features_from_attributes"],
        keep["links_from_structure"],
        keep["features_from_structure"][learned],
        keep["links_from_attributes"],
        keep["judged_attributes"],
        keep["judged_structure"],
    ]
    training.streams = GivenDropout(order, 0.5)
    for part in (*training.generator.modules(), training.discriminator):
        if hasattr(part, "rate"):
            part.rate = 0.5
    losses, backward = [], torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda self: (losses.append(self.item()), backward(self)))
    training.generator_step()
    assert not training.streams.masks
    expected = [float(PUBLIC[f"dropout {name}"]) for name in ("adj_ae_loss", "adj_gae_loss", "G_loss")]
    assert losses == pytest.approx([sum(expected)], rel=1e-5)  # our feature losses have the value 0
    compared = 0
    for name, parameter in parameters(training):
        if f"dropout gradient {name}" in PUBLIC:
            gradient = PUBLIC[f"dropout gradient {name}"]
            np.testing.assert_allclose(parameter.grad.reshape(gradient.shape), gradient, atol=1e-5, rtol=1e-4)
            compared += 1
    assert compared == 11


def test_three_epochs_end_in_the_same_weights(training):
    """The loop of NANG_main.py: one Adam that skips the resting half is the same as our two."""
    for _ in range(int(PUBLIC["epochs"])):
        training.generator_step()
        training.generator_step()
        training.discriminator_step()
    compared = [name for name, _ in parameters(training) if f"end {name}" in PUBLIC]
    assert len(compared) == 15
    for name, parameter in parameters(training):
        if name in compared:
            close(parameter.reshape(PUBLIC[f"end {name}"].shape), f"end {name}")
            assert np.abs(PUBLIC[f"end {name}"] * 128 - PUBLIC[f"start {name}"]).max() > 0.1


def test_recall():
    """RECALL_NDCG of evaluation.py."""
    missing = PUBLIC["missing"]
    scores, truth = (torch.from_numpy(PUBLIC[name][missing]) for name in ("gae_fts", "features"))
    for k, expected in zip(PUBLIC["recall_at"], PUBLIC["recall"]):
        assert recall(scores, truth, int(k)) == pytest.approx(float(expected), abs=1e-6)
