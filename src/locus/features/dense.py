"""Dense features of a whole scene: every patch of every frame, with the point of the world it shows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float16, Float32
from numpy import ndarray
from torch import Tensor

from locus.features.cache import cache_frames
from locus.features.frame_arrays import FrameTokens
from locus.features.kinds import kinds
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Frame, Scene, patch_points

FRAMES_AT_ONCE = 8
WINDOW = 1000  # frames whose features are kept at once: a few hundred megabytes


@dataclass(frozen=True, eq=False)
class ReadFrames:
    """The frames of a scene that could be read and are of one size, in the scene's order, and their patches."""

    scene: Scene
    indices: list[int]
    """Each frame's place in the scene."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the patches, NaN where there is none."""

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def grid(self) -> tuple[int, int]:
        """(rows, columns) of patches."""
        return self.points.shape[1], self.points.shape[2]

    def frame(self, row: int) -> Frame:
        """The frame that a row is of."""
        return self.scene[self.indices[row]]


@dataclass(frozen=True, eq=False)
class SceneFeatures(ReadFrames):
    """What a model sees of a scene."""

    features: Float[Tensor, "scales frames rows columns c"]
    """Unit length, on the CPU."""
    kinds: Float[Tensor, "frames rows columns k"] | None = None
    """What things are like wherever they stand (`locus.features.kinds`), if that is known for the backbone."""

    def take(self, rows: Sequence[int]) -> "SceneFeatures":
        """Some of the frames."""
        chosen = list(rows)
        like = None if self.kinds is None else self.kinds[chosen]
        indices = [self.indices[row] for row in chosen]
        return SceneFeatures(self.scene, indices, self.points[chosen], self.features[:, chosen], like)

    def windows(self) -> "Iterable[SceneFeatures]":
        """All frames at once."""
        return [self]


@dataclass(frozen=True, eq=False)
class StreamedFeatures(ReadFrames):
    """The same of a scene that is too long to keep the features of all its frames."""

    model: LoCUS
    tokens: FrameTokens | Float16[ndarray, "frames n d"]

    @property
    def long(self) -> bool:
        return len(self) > WINDOW

    def windows(self) -> Iterator[SceneFeatures]:
        """The features of `WINDOW` frames at a time, made from their tokens when they are asked for."""
        for first in range(0, len(self), WINDOW):
            yield self.part(slice(first, first + WINDOW))

    @torch.no_grad()
    def part(self, frames: slice, progress: bool = False) -> SceneFeatures:
        """The features of some frames."""
        device, indices = next(self.model.buffers()).device, self.indices[frames]
        starts = range(frames.start, frames.start + len(indices), FRAMES_AT_ONCE)
        parts, like = [], []
        for first in track(starts, "features", len(starts), progress):
            last = min(first + FRAMES_AT_ONCE, frames.start + len(indices))
            tokens = torch.from_numpy(np.asarray(self.tokens[first:last], np.float32))
            parts.append(self.model.head_features(tokens.to(device), self.grid).cpu())
            like.append(kinds(self.model.backbone, tokens, self.grid))
        together = None if like[0] is None else torch.cat(like)
        return SceneFeatures(self.scene, indices, self.points[frames], torch.cat(parts, dim=1), together)


def scene_features(model: LoCUS, scene: Scene, cache: Path | None = None, *, progress: bool = False) -> SceneFeatures:
    """The features of every frame, from the cache of the backbone's tokens, which is made if there is none.

    Frames that cannot be read, or are of another size than the first, are left out with a warning.
    """
    streamed = streamed_features(model, scene, cache, progress=progress)
    return streamed.part(slice(0, len(streamed)), progress)


def streamed_features(
    model: LoCUS, scene: Scene, cache: Path | None = None, *, progress: bool = False
) -> StreamedFeatures:
    """The same for those who go through the frames window by window."""
    cached = cache_frames(scene, model.backbone, model.resolution, folder=cache, progress=progress)
    places = {source.name: index for index, source in enumerate(scene.sources)}
    return StreamedFeatures(scene, [places[name] for name in cached.frames], cached.points, model, cached.tokens)


def frame_features(model: LoCUS, frame: Frame, scene: str) -> SceneFeatures:
    """The features of one frame of a recording of this name, as it comes; nothing is cached."""
    with torch.no_grad():
        tokens, grid = model.backbone(model.prepare(frame.image)[None].to(next(model.buffers()).device))
        features, like = model.head_features(tokens, grid).cpu(), kinds(model.backbone, tokens, grid)
    points = patch_points(frame, grid)[0].astype(np.float32)
    return SceneFeatures(frame.alone(scene), [0], points[None], features, like)
