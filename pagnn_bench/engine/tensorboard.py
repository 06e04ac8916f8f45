"""Scalars for TensorBoard, an option that needs the extra ``tensorboard``."""

from __future__ import annotations

import logging
from pathlib import Path

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends.extras import need
from pagnn_bench.engine.outcome import Outcome

logger = logging.getLogger(__name__)

SCORES = ("test_acc", "val_acc", "val_loss", "best_epoch", "epochs")


class ScalarLog:
    """Writes one TensorBoard run per trial: its scores, and its training loss per epoch if ``train_curve=true``.

    Args:
        folder: the folder for ``tensorboard --logdir``.
    """

    def __init__(self, folder: str) -> None:
        need("tensorboard", extra="tensorboard")
        self.folder: Path | None = Path(str(folder)).expanduser()  # None after a write error
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"tensorboard={folder}: cannot be written to ({error.strerror}).") from error

    def add(self, outcome: Outcome) -> None:
        """Log the trials of a saved batch. Since they are saved, a log that fails does not end the sweep."""
        if self.folder is None:
            return
        try:
            self._add(outcome, self.folder)
        except OSError as error:
            logger.warning("%s: nothing more is written there (%s).", self.folder, error.strerror)
            self.folder = None

    def _add(self, outcome: Outcome, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        batch = outcome.batch
        for record in outcome.records:
            run = folder / batch.cell.id / f"mask{batch.mask}-seed{record['seed']}"
            with SummaryWriter(run) as writer:
                for key in SCORES:
                    if key in record:
                        writer.add_scalar(key, record[key], record.get("best_epoch", 0))
                for epoch, loss in enumerate(record.get("curve", ()), start=1):
                    if loss is not None:
                        writer.add_scalar("train_loss", loss, epoch)
