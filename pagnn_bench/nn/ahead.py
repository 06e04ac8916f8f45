"""Random words that the host draws for another device, ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

Request = TypeVar("Request", bound=Hashable)


class _Sent(NamedTuple):
    """A tensor on its way; the event marks its arrival, None if there is nothing to wait for."""

    tensor: Tensor
    arrived: torch.cuda.Event | None


class _Guess(NamedTuple, Generic[Request]):
    """A request that is expected next, and its answer in the making with the state of the generators before it."""

    request: Request
    future: Future[tuple[list[Tensor], _Sent]]


class Ahead(Generic[Request]):
    """Draws what a training will request next while the device computes.

    Every epoch makes the same requests in the same order. So a thread draws what followed a request the last time, and
    also sends it: from pinned memory, on its own stream, so that the copy overlaps the products. A wrong guess only
    costs time, because the generators are reset: the words are those that would have been drawn on demand.

    Args:
        draw: the answer to a request, on the CPU.
        generators: the CPU generators that it draws from.
        device: where the answers are needed.
    """

    def __init__(
        self,
        draw: Callable[[Request], Tensor],
        generators: Sequence[torch.Generator],
        device: torch.device,
    ) -> None:
        self._draw, self._generators, self._device = draw, generators, device
        self._pool = ThreadPoolExecutor(1)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._last: Request | None = None
        self._follows: dict[Request, Request] = {}
        self._guess: _Guess[Request] | None = None

    def take(self, request: Request) -> Tensor:
        """The answer, on the device."""
        if self._guess is None or self._guess.request != request:
            self.take_back()
            self._begin(request)
        assert self._guess is not None
        _, sent = self._guess.future.result()
        self._guess = None
        if self._last is not None:
            self._follows[self._last] = request
        self._last = request
        if request in self._follows:
            self._begin(self._follows[request])
        return self._received(sent)

    def take_back(self) -> None:
        """Undo what was drawn ahead; call this before using the generators for anything else."""
        if self._guess is None:
            return
        states, _ = self._guess.future.result()
        for generator, state in zip(self._generators, states):
            generator.set_state(state)
        self._guess = None

    def _begin(self, request: Request) -> None:
        self._guess = _Guess(request, self._pool.submit(self._prepare, request))

    def _prepare(self, request: Request) -> tuple[list[Tensor], _Sent]:
        states = [generator.get_state() for generator in self._generators]
        drawn = self._draw(request)
        if self._stream is None:
            return states, _Sent(drawn, None)
        with torch.cuda.stream(self._stream):
            # Torch does not reuse the pinned memory before the copy is done.
            on_device = drawn.pin_memory().to(self._device, non_blocking=True)
            return states, _Sent(on_device, self._stream.record_event())

    def _received(self, sent: _Sent) -> Tensor:
        if sent.arrived is None:
            return sent.tensor.to(self._device, non_blocking=True)
        products = torch.cuda.current_stream(self._device)
        products.wait_event(sent.arrived)  # the device waits, not the host
        sent.tensor.record_stream(products)  # its memory was allocated on the other stream
        return sent.tensor
