"""The step of ARB, and the search for its constants on observations that it does not start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from pagnn_bench.baselines.fp import BLOCK_ENTRIES
from pagnn_bench.baselines.sat_model import hold_out, recall
from pagnn_bench.missing import Observed

HELD_OUT = 0.1  # of the observations; the paper takes as many nodes
RECALL_AT = 10  # code of ARB, validators/estimation.py: the first of its ks
PRECISION = 0.01  # of the constants: utils.py, SearchPoints.search
SEARCH_ENTRIES = 1 << 22  # the search uses a random sample of the attributes with this many entries

Judge: TypeAlias = "Callable[[Tensor], float]"  # values diffused to the held-out entries → loss


def boost(
    matrix: Tensor, start: np.ndarray, known: np.ndarray, alpha: float, beta: float, steps: int
) -> Iterator[Tensor]:
    """X after each step; X⁽⁰⁾ [n, k] is 0 where not ``known`` (bool [n, k])."""
    device = matrix.device
    fixed = (1 - beta) * torch.from_numpy(np.where(known, start, np.float32(0))).to(device)
    factor = torch.from_numpy(np.where(known, np.float32(beta), np.float32(1))).to(device)
    x = torch.from_numpy(np.where(known, start, np.float32(0))).to(device)
    for _ in range(steps):
        mixed = (alpha * (matrix @ x)).add_((1 - alpha) * x.mean(dim=0))
        x = torch.addcmul(fixed, factor, mixed)
        yield x


def search_constants(
    observed: Observed,
    matrix: Tensor,
    start: np.ndarray,
    binary: bool,
    most: int,
    rng: np.random.Generator,
) -> tuple[float, float, int] | None:
    """(α, β, steps) with the lowest loss on a tenth of the observed nodes, or of entries if single ones are missing.

    Args:
        observed: M.
        matrix: S.
        start: X⁽⁰⁾ [n, d].
        binary: whether all attributes are 0 or 1.
        most: maximum number of steps.
        rng: draws the attributes and observations.

    Returns:
        None if only one node or entry is observed, or those held out contain no 1.
    """
    columns = rng.permutation(start.shape[1])[: max(1, SEARCH_ENTRIES // len(start))]
    known, start = observed.dense()[:, columns], start[:, columns]
    places = np.flatnonzero(known if observed.rows is None else observed.rows)
    if len(places) < 2:
        return None
    _, chosen = hold_out(places, HELD_OUT, rng)
    held = np.zeros(known.shape, dtype=bool)
    if observed.rows is None:
        held.flat[chosen] = True
    else:
        held[chosen] = True
    truth = torch.from_numpy(start[held])
    if not binary:
        judge = squared_error(truth)
    elif not truth.any():
        return None
    elif observed.rows is None:
        judge = missed_of_all(truth)
    else:
        depth = max(1, round(RECALL_AT * len(columns) / observed.shape[1]))
        judge = missed_of_nodes(truth, len(chosen), depth)
    return halving_search(held_out_losses(matrix, start, known & ~held, held, most, judge))


def squared_error(truth: Tensor) -> Judge:
    """Mean squared error."""
    return lambda scores: float((scores - truth).square().mean())


def missed_of_nodes(truth: Tensor, nodes: int, depth: int) -> Judge:
    """1 - Recall@depth, mean over the nodes."""
    return lambda scores: 1 - recall(scores.view(nodes, -1), truth.view(nodes, -1), depth)


def missed_of_all(truth: Tensor) -> Judge:
    """The share of zeros among the highest scores, as many as there are ones."""
    ones = int(truth.sum())
    return lambda scores: 1 - float(truth[scores.topk(ones).indices].mean())


def held_out_losses(
    matrix: Tensor, start: np.ndarray, learned: np.ndarray, held: np.ndarray, most: int, judge: Judge
) -> Callable[[float, float], np.ndarray]:
    """(α, β) → the losses [most] on the held-out entries after 1, 2, ..., ``most`` steps from the learned ones.

    Args:
        matrix: S.
        start: X⁽⁰⁾ [n, k].
        learned, held: bool [n, k], disjoint.
        most: number of steps.
        judge: loss of the scores of the held-out entries, in the order of ``start[held]``.
    """
    width = max(1, BLOCK_ENTRIES // len(start))
    node, attribute = np.nonzero(held)

    def losses(alpha: float, beta: float) -> np.ndarray:
        scores = torch.empty(most, len(node))
        for first in range(0, start.shape[1], width):
            part = slice(first, first + width)
            own = np.flatnonzero((attribute >= first) & (attribute < first + width))
            place = torch.from_numpy(node[own]), torch.from_numpy(attribute[own] - first)
            for step, x in enumerate(boost(matrix, start[:, part], learned[:, part], alpha, beta, most)):
                scores[step, own] = x.cpu()[place]
        return np.array([judge(each) for each in scores])

    return losses


def halving_search(losses: Callable[[float, float], np.ndarray]) -> tuple[float, float, int]:
    """(α, β, steps) of low loss: from (1/2, 1/2) to the best neighbour while it is better, then with half the step."""
    seen: dict[tuple[float, float], np.ndarray] = {}

    def lowest(place: tuple[float, float]) -> float:
        if place not in seen:
            seen[place] = losses(*place)
        return float(seen[place].min())

    best, step = (0.5, 0.5), 0.5
    while step > PRECISION:
        alpha, beta = best
        around = [(alpha - step, beta), (alpha + step, beta), (alpha, beta - step), (alpha, beta + step)]
        inside = [place for place in around if min(place) >= 0 and max(place) <= 1]
        nearest = min(inside, key=lowest)
        if lowest(nearest) < lowest(best):
            best = nearest
        else:
            step /= 2
    return *best, int(seen[best].argmin()) + 1
