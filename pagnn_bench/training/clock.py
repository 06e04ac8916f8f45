"""Seconds of a device, measured without holding it up."""

from __future__ import annotations

import time
from typing import TypeAlias

import torch

Moment: TypeAlias = "float | torch.cuda.Event"


def wait_for(device: torch.device) -> None:
    """Wait until a device has done all that it was asked to do; not for the inside of a loop."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Clock:
    """Takes the time of what a device does; a GPU notes it down itself, on its way.

    Args:
        device: whose time it is.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def now(self) -> Moment:
        """When the device has done all that it was asked to do."""
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    @staticmethod
    def between(start: Moment, end: Moment) -> float:
        """Seconds between two moments that the device has passed: something later was read from it."""
        if isinstance(start, float) or isinstance(end, float):
            return float(end) - float(start)  # type: ignore[arg-type]
        return start.elapsed_time(end) / 1000
