"""Scalars for TensorBoard, for those who like to look there; an option that needs the extra ``tensorboard``."""

from __future__ import annotations

from pathlib import Path

from pagnn_bench.backends.extras import need
from pagnn_bench.backends.work import Outcome

SCORES = ("test_acc", "val_acc", "val_loss", "best_epoch", "epochs")


class ScalarLog:
    """Writes one TensorBoard run a trial: its scores, and its training loss epoch by epoch if ``train_curve=true``.

    Args:
        folder: where ``tensorboard --logdir`` is going to look.
    """

    def __init__(self, folder: str) -> None:
        need("tensorboard", extra="tensorboard")
        self.folder = Path(folder)

    def add(self, outcome: Outcome) -> None:
        """Log the trials of a batch that has been saved."""
        from torch.utils.tensorboard import SummaryWriter

        batch = outcome.batch
        for record in outcome.records:
            run = self.folder / batch.cell.id / f"mask{batch.mask}-seed{record['seed']}"
            with SummaryWriter(run) as writer:
                for key in SCORES:
                    if key in record:
                        writer.add_scalar(key, record[key], record.get("best_epoch", 0))
                for epoch, loss in enumerate(record.get("curve", ()), start=1):
                    if loss is not None:
                        writer.add_scalar("train_loss", loss, epoch)
