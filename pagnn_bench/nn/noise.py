"""Random numbers for training, the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor


class Noise:
    """Normal and uniform numbers, float32, drawn on the host.

    Args:
        seed: of the stream.
        device: where the numbers are needed.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self.generator, self._device = torch.Generator().manual_seed(seed), device

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1)."""
        return self._send(torch.randn(shape, generator=self.generator))

    def uniform(self, *shape: int) -> Tensor:
        """U(0, 1)."""
        return self._send(torch.rand(shape, generator=self.generator))

    def _send(self, values: Tensor) -> Tensor:
        if self._device.type == "cuda":
            values = values.pin_memory()  # otherwise the host waits for the copy
        return values.to(self._device, non_blocking=True)
