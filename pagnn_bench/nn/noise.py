"""Random numbers of a training, the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor


class Noise:
    """Normal and uniform numbers that the host draws, float32.

    Args:
        seed: of the stream.
        device: where the numbers are wanted.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self.generator, self._device = torch.Generator().manual_seed(seed), device

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1)."""
        return self._there(torch.randn(shape, generator=self.generator))

    def uniform(self, *shape: int) -> Tensor:
        """U(0, 1)."""
        return self._there(torch.rand(shape, generator=self.generator))

    def _there(self, values: Tensor) -> Tensor:
        if self._device.type == "cuda":
            values = values.pin_memory()  # else the copy holds up the host
        return values.to(self._device, non_blocking=True)
