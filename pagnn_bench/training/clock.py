"""Time what a device does without making it wait."""

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
    """Takes the time on a device; a GPU records events itself, as it works.

    Args:
        device: the device to time.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def now(self) -> Moment:
        """The moment at which the device has done everything requested so far."""
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    @staticmethod
    def between(start: Moment, end: Moment) -> float:
        """Seconds between two moments that the device has passed: something must have been read from it since."""
        if isinstance(start, float) or isinstance(end, float):
            return float(end) - float(start)  # type: ignore[arg-type]
        return start.elapsed_time(end) / 1000
