"""GAIN against numbers of its authors' code (jsyoon0823/GAIN), on a small stored table: see fidelity/README.md."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pagnn_bench.baselines.gain import NOISE, Game, perceptron, rounded, with_constants
from pagnn_bench.methods.learning import UnitRange
from pagnn_bench.nn.noise import Noise
from tests.methods.fidelity import TensorFlowAdam, incomplete, stored

PUBLIC = stored("gain") | {"adjacency": np.zeros((24, 24))}
PLAYERS = {"G": "generator", "D": "discriminator"}
ONES, ZEROS = 2, 3  # columns in which only ones, only zeros were observed
VARIED = np.delete(np.arange(7), [ONES, ZEROS])


def weights(who, moment):
    """The layers of a player as torch has them: W [out, in] and b, three times."""
    return [
        torch.from_numpy(PUBLIC[f"{moment}_{who}_{kind}{layer}"].T.copy())
        for layer in (1, 2, 3)
        for kind in ("W", "b")
    ]


def play(moment="start"):
    d = PUBLIC["features"].shape[1]
    players = [perceptron(d, d, torch.Generator().manual_seed(0)) for _ in PLAYERS]
    game = Game(*players, alpha=float(PUBLIC["alpha"]), noise=Noise(0, torch.device("cpu")))
    for who, player in PLAYERS.items():
        put(getattr(game, player), weights(who, moment))
    return game


def put(player, values):
    with torch.no_grad():
        for parameter, value in zip(player.parameters(), values, strict=True):
            parameter.copy_(value)


def batch(k):
    """x ⊙ m, m and the hint of iteration k, and the noise that stood at the missing entries."""
    x, m, hint = (torch.from_numpy(PUBLIC[f"{name}_{k}"]) for name in ("x", "m", "hint"))
    return (x * m, m, hint), x * (1 - m) / NOISE


def assert_gradients(player, who):
    for parameter, expected in zip(player.parameters(), weights(who, "grad"), strict=True):
        torch.testing.assert_close(parameter.grad, expected, atol=1e-5, rtol=1e-4)


def test_both_losses_and_their_gradients():
    """D_loss, G_loss and MSE_loss of gain(): D moves first, and G is judged by the D that has moved."""
    game = play()
    (x, m, hint), noise = batch(0)
    game.random = lambda like: noise
    guess = game.generate(x, m)
    loss = game.discriminator_loss(x, m, hint, guess.detach())
    assert loss.item() == pytest.approx(float(PUBLIC["D_loss_0"]), rel=1e-5)
    loss.backward()
    assert_gradients(game.discriminator, "D")
    put(game.discriminator, weights("D", "moved"))
    loss = game.generator_loss(x, m, hint, guess)
    expected = float(PUBLIC["G_fooled_0"] + PUBLIC["alpha"] * PUBLIC["G_error_0"])
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward(inputs=list(game.generator.parameters()))
    assert_gradients(game.generator, "G")


@pytest.mark.parametrize(("adam", "atol"), [(TensorFlowAdam, 1e-5), (torch.optim.Adam, 2e-4)])
def test_three_iterations_end_in_the_same_weights(adam, atol):
    """The loop of gain(). With TensorFlow's Adam the weights are the same; torch's, which we use, has another ε."""
    game = play()
    adam_d, adam_g = (adam(p.parameters(), lr=1e-3) for p in (game.discriminator, game.generator))
    for k in range(3):
        (x, m, hint), noise = batch(k)
        game.random = lambda like, noise=noise: noise
        guess = game.generate(x, m)
        game.discriminator.zero_grad()
        loss = game.discriminator_loss(x, m, hint, guess.detach())
        assert loss.item() == pytest.approx(float(PUBLIC[f"D_loss_{k}"]), rel=atol)
        loss.backward()
        adam_d.step()
        game.generator.zero_grad()
        loss = game.generator_loss(x, m, hint, guess)
        expected = float(PUBLIC[f"G_fooled_{k}"] + PUBLIC["alpha"] * PUBLIC[f"G_error_{k}"])
        assert loss.item() == pytest.approx(expected, rel=atol)
        loss.backward(inputs=list(game.generator.parameters()))
        adam_g.step()
    for who, player in PLAYERS.items():
        for parameter, end in zip(getattr(game, player).parameters(), weights(who, "end"), strict=True):
            torch.testing.assert_close(parameter.detach(), end, atol=atol, rtol=1e-5)


def test_scale_of_the_features():
    """normalization() of utils.py, but for columns in which only one value was observed.

    Theirs divides by the span + 1e-6, which is all of the difference elsewhere.
    """
    graph = incomplete(PUBLIC, PUBLIC["observed"])
    unit = UnitRange.of(graph)
    np.testing.assert_allclose(unit.scaled(graph)[:, VARIED], PUBLIC["normalised"][:, VARIED], atol=2e-6)
    np.testing.assert_allclose(unit.low[VARIED], PUBLIC["low"][VARIED])
    np.testing.assert_allclose(unit.span[VARIED], PUBLIC["span"][VARIED], rtol=1e-6)
    # Only ones, or only zeros: theirs becomes 0 with a span of 1e-6, ours stays a word with a span of 1.
    assert PUBLIC["span"][[ONES, ZEROS]].tolist() == [0, 0]
    assert not PUBLIC["normalised"][:, [ONES, ZEROS]].any()
    assert unit.span[[ONES, ZEROS]].tolist() == [1, 1]
    assert unit.scaled(graph)[PUBLIC["observed"][:, ONES], ONES].all()


def test_what_is_filled_in():
    """The last pass of gain(), renormalization() and rounding().

    Rounding is equal at the missing entries; at the observed ones theirs rounds, too, which ours puts back (the columns
    that it rounds are those with fewer than 20 distinct values, here all).
    """
    game, observed = play("end"), PUBLIC["observed"]
    graph = incomplete(PUBLIC, observed)
    x, m = torch.from_numpy(PUBLIC["final_x"]), torch.from_numpy(observed.astype(np.float32))
    game.random = lambda like: x * (1 - m) / NOISE
    guess = game.generate(x * m, m).detach().numpy()
    np.testing.assert_allclose(guess, PUBLIC["final_guess"], atol=1e-5)
    filled = rounded(with_constants(UnitRange.of(graph).restored(guess), graph), graph)
    there, missing = PUBLIC["imputed"], ~observed
    np.testing.assert_array_equal(filled[missing], there[missing])
    np.testing.assert_array_equal(there[:, ONES], 1)
    np.testing.assert_array_equal(there[:, ZEROS], 0)
    np.testing.assert_array_equal(there[observed], np.round(graph.features.toarray()[observed]))
