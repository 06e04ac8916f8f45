"""What tables can show for a cell: test accuracy, or another number that newer records have.

Scores of predicted classes belong to a trial, scores of recovered attributes to a mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pagnn_bench.config.errors import RequestError
from pagnn_bench.records.store import Trial


@dataclass(frozen=True)
class Metric:
    """A number of a trial or of its mask.

    Attributes:
        name: for the command line.
        title: for people; also says the unit.
        key: its key in records.
        of_mask: whether it is one of the facts of a batch, the same for all trials of a mask.
        scale: what a recorded value is multiplied by for display: 100 for shares.
        lower_is_better: True for errors.
    """

    name: str
    title: str
    key: str
    of_mask: bool = False
    scale: float = 100.0
    lower_is_better: bool = False

    def printed(self, value: float) -> str:
        """With two decimals, or three where the unit is not percent."""
        return f"{value:.2f}" if self.scale == 100 else f"{value:.3f}"

    def values(self, trials: Iterable[Trial]) -> dict[int, list[float]]:
        """Mask → the values to show, from trials that did not fail and have it; a number of the mask itself once."""
        by_mask: dict[int, list[float]] = {}
        for trial in trials:
            value = (trial.batch.facts if self.of_mask else trial.record).get(self.key)
            if trial.ok and value is not None and not (self.of_mask and trial.mask in by_mask):
                by_mask.setdefault(trial.mask, []).append(self.scale * value)
        return by_mask


def _of_mask(name: str, title: str, scale: float = 1.0, lower_is_better: bool = False) -> Metric:
    return Metric(name, title, f"impute_{name}", True, scale, lower_is_better)


ACCURACY = Metric("accuracy", "Test accuracy in percent", "test_acc")
_ALL = (
    ACCURACY,
    Metric("macro_f1", "Macro-F1 on the test nodes in percent", "test_macro_f1"),
    Metric("balanced_acc", "Balanced test accuracy in percent", "test_balanced_acc"),
    *(_of_mask(f"recall@{k}", f"Recall@{k} of hidden words in percent", 100.0) for k in (10, 20, 50)),
    *(_of_mask(f"ndcg@{k}", f"nDCG@{k} of hidden words in percent", 100.0) for k in (10, 20, 50)),
    _of_mask("rmse", "Root mean squared error of filled-in attributes", lower_is_better=True),
    _of_mask("corr", "Correlation of filled-in attributes with the hidden ones, mean over columns"),
)
METRICS = {metric.name: metric for metric in _ALL}


def find_metric(name: str) -> Metric:
    """The metric of this name; refuses an unknown one."""
    if name not in METRICS:
        raise RequestError(f"--metric {name}: choose one of {', '.join(METRICS)}.")
    return METRICS[name]
