"""One thread that runs the network, on all images of one size that wait, at once."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from locus.model import LoCUS

Features = Float[Tensor, "scales rows columns c"]


@dataclass(frozen=True, eq=False)
class _Waiting:
    image: UInt8[Tensor, "3 height width"]
    answer: "Future[Features]" = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """The network and the thread that owns it. Features are the same as `LoCUS.features` gives, to 1e-5."""

    def __init__(
        self,
        model: LoCUS,
        batch: int = 8,
        gather: float = 0.005,
        observe: Callable[[int, float], None] = lambda images, seconds: None,
    ) -> None:
        """`batch` images at most at once; the first waits `gather` seconds for others; `observe` is told of each."""
        self.model = model
        self._batch, self._gather, self._observe = batch, gather, observe
        self._waiting: deque[_Waiting] = deque()
        self._changed = Condition()
        self._open = True
        self._thread = Thread(target=self._run, name="locus network", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, image: UInt8[Tensor, "3 height width"]) -> "Future[Features]":
        """The features, on the CPU, of an image as `LoCUS.prepare` makes it; cancelled before its turn, not at all."""
        waiting = _Waiting(image)
        with self._changed:
            if not self._open:
                raise RuntimeError("the network's thread was stopped")
            self._waiting.append(waiting)
            self._changed.notify()
        return waiting.answer

    def close(self) -> None:
        """Stop when all that waits is answered."""
        with self._changed:
            self._open = False
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while together := self._next():
            begun = [each for each in together if each.answer.set_running_or_notify_cancel()]
            if begun:
                self._answer(begun)

    def _next(self) -> list[_Waiting]:
        """The first image that waits and others of its size; none when all is done."""
        with self._changed:
            while self._open and not self._waiting:
                self._changed.wait()
            if not self._waiting:
                return []
            first = self._waiting[0]
            while self._open and len(self._alike(first)) < self._batch:
                left = first.since + self._gather - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            together = self._alike(first)
            for each in together:
                self._waiting.remove(each)
            return together

    def _alike(self, first: _Waiting) -> list[_Waiting]:
        return [each for each in self._waiting if each.image.shape == first.image.shape][: self._batch]

    @torch.no_grad()
    def _answer(self, together: list[_Waiting]) -> None:
        start = time.perf_counter()
        try:
            device = next(self.model.buffers()).device
            features = self.model(torch.stack([each.image for each in together]).to(device)).cpu()
        except Exception as error:  # whatever it is, those who wait must hear of it
            for each in together:
                each.answer.set_exception(error)
            return
        self._observe(len(together), time.perf_counter() - start)
        for each, of_image in zip(together, features.unbind(dim=1), strict=True):
            each.answer.set_result(of_image)
