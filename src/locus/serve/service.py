"""What is behind the pages: a model, maps, the thread of the network and those that answer."""

import asyncio
import base64
import io
import math
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from fastapi import HTTPException
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from PIL import Image
from torch import Tensor

from locus.errors import LocusError
from locus.keypoints import Keypoints
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.scenes.consistency import camera_doubt
from locus.serve.batching import Batcher
from locus.serve.instruments import Metrics
from locus.serve.limits import THE_LIMITS, Limits
from locus.serve.served_maps import ServedMaps
from locus.tasks.cosegmentation import check_similarity, feature_at, one_scale, region, similarity
from locus.tasks.localize import localize_features
from locus.tasks.matched_pair import MatchedPair
from locus.tasks.matching import PAPER, Rule
from locus.tasks.named_images import CalibratedImage
from locus.tasks.placed_points import query_placed
from locus.tasks.prior import Prior

PATCHES = 16_384  # of an image: the time of the network grows with their square
ANSWERING = 2  # threads: with points, what follows the network takes longer than it, and else it would have to wait
RULES = {"points": None, "mutual": Rule(), "paper": PAPER}
Result = TypeVar("Result")


class Service:
    """Answers requests. The network runs in a thread of its own, and what follows it in others, at the same time."""

    def __init__(self, maps: ServedMaps, limits: Limits = THE_LIMITS, batch: int = 8, gather: float = 0.005) -> None:
        self.maps, self.limits, self.metrics = maps, limits, Metrics()
        self.model: LoCUS = maps.model
        self.batcher = Batcher(self.model, batch, gather, self.metrics.passed)
        self.waiting = 0
        self._answering = ThreadPoolExecutor(ANSWERING, "locus answers")
        self._seconds = 0.0  # that an image takes, about
        self.metrics.landmarks.set(len(maps.world))

    def close(self) -> None:
        """Once no request is left."""
        self.batcher.close()
        self._answering.shutdown()

    @contextmanager
    def admitted(self, images: int) -> Generator[None, None, None]:
        """A place in the queue for so many images, or 503."""
        if self.waiting + images > self.limits.queue:
            seconds = max(1, math.ceil(self._seconds * self.waiting))
            sentence = f"{self.waiting} images wait already, and {self.limits.queue} may; try again in {seconds} s"
            raise HTTPException(503, sentence, {"Retry-After": str(seconds)})
        start, self.waiting = time.perf_counter(), self.waiting + images
        self.metrics.waiting.set(self.waiting)
        try:
            yield
            taken = (time.perf_counter() - start) / self.waiting
            self._seconds = taken if not self._seconds else 0.9 * self._seconds + 0.1 * taken
        finally:
            self.waiting -= images
            self.metrics.waiting.set(self.waiting)

    async def answer(
        self,
        read: Callable[[], Sequence[CalibratedImage]],
        work: Callable[..., Result],
        meanwhile: Callable[[Sequence[CalibratedImage]], Any] | None = None,
    ) -> Result:
        """What `work` makes of images and their features, lists of equal length.

        And of what `meanwhile` finds in the images, which takes no longer for it while the network is busy with them.
        """
        run = partial(asyncio.get_running_loop().run_in_executor, self._answering, self._timed)
        images, prepared = await asyncio.to_thread(self._prepared, read)
        features = [asyncio.wrap_future(self.batcher.submit(each)) for each in prepared]
        found = [] if meanwhile is None else [run(meanwhile, images)]
        await asyncio.gather(*features, *found)
        return await run(work, images, [each.result() for each in features], *(each.result() for each in found))

    def _prepared(
        self, read: Callable[[], Sequence[CalibratedImage]]
    ) -> tuple[Sequence[CalibratedImage], Sequence[UInt8[Tensor, "3 _ _"]]]:
        images = read()
        for image in images:
            rows, columns = self.model.grid(*image.size)
            if rows * columns > PATCHES:
                raise LocusError(
                    f"{image.name} is {image.size[0]}×{image.size[1]} pixels, which this model divides into "
                    f"{rows}×{columns} patches; {PATCHES} are allowed: make it smaller, or less long"
                )
        return images, [self.model.prepare(each.image) for each in images]

    def _timed(self, work: Callable[..., Result], *arguments: Any) -> Result:
        start = time.perf_counter()
        try:
            return work(*arguments)
        finally:
            self.metrics.answering.inc(time.perf_counter() - start)

    def part(self, environment: str | None) -> LandmarkMap:
        """The maps, or one of their environments alone."""
        world = self.maps.world
        return world if environment is None else world.environment(world.environment_number(environment))

    def localized(
        self,
        world: LandmarkMap,
        image: CalibratedImage,
        features: Float[Tensor, "scales rows columns c"],
        keypoints: Keypoints | None,
        prior: Prior | None = None,
        min_confidence: float | None = None,
    ) -> dict[str, Any]:
        """As `LandmarkMap.localize` says, if the answer is no farther from a prior pose than that allows.

        `keypoints` are `query_keypoints`.
        """
        near = world if prior is None else prior.narrowed(world)
        if prior is not None and not len(near.frames):
            location = prior.nowhere()
        else:
            placed = None if keypoints is None else query_placed(near, keypoints, features)
            location = localize_features(
                near, features, image.camera, image.depth, placed, min_confidence=min_confidence
            )
            location = image.trusted(location if prior is None else prior.checked(location))
        exact = {"confidence": location.confidence, "probability": location.probability}
        return location.described() | exact | {"doubt": camera_doubt(image.camera)}

    def matched(
        self, images: Sequence[CalibratedImage], features: Sequence[Float[Tensor, "scales _ _ c"]], rule: str
    ) -> dict[str, Any]:
        (a, b), (of_a, of_b) = images, features
        return MatchedPair.of_features(of_a, of_b, self.model.radii, a, b, RULES[rule]).described()

    def cosegmented(
        self,
        images: Sequence[CalibratedImage],
        features: Sequence[Float[Tensor, "scales _ _ c"]],
        at: tuple[float, float],
        min_similarity: float,
        scale: int,
    ) -> dict[str, Any]:
        """The spot at one pixel of the first image, in the others."""
        check_similarity(min_similarity)
        query = feature_at(one_scale(features[0], scale), *at, images[0].size)
        found = []
        for row, (image, of_image) in enumerate(zip(images[1:], features[1:], strict=True)):
            there = region(row, similarity(query, one_scale(of_image, scale)), image.size, min_similarity)
            found.append({"name": image.name, "score": there.score, "mask": _png(there.mask)})
        return {"min_similarity": min_similarity, "found": found}


def _png(mask: Bool[ndarray, "height width"]) -> str:
    buffer = io.BytesIO()
    Image.fromarray(np.where(mask, np.uint8(255), np.uint8(0))).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
