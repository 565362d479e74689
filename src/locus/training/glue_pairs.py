"""Pairs of frames with placed keypoints and the true matches between them, to train a matcher on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float32, Int
from numpy import ndarray
from scipy.sparse import triu

from locus.errors import LocusError
from locus.features.dense import scene_features
from locus.geometry import Camera, invert, transform
from locus.keypoints import Detector
from locus.keypoints.fusion import PlacedKeypoints, point_scales
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.covisibility import overlap_of
from locus.scenes.visibility import FrameGeometry

OVERLAP = (0.06, 0.7)  # share that each frame of a pair sees of the other; pairs are drawn evenly between the two
SAME = 3.0  # pixels of an image of 480 rows: keypoints that project this close to each other are matches,
OTHER = 6.0  # and those with nothing this close have no partner; between the two nobody knows
HIDDEN = (0.05, 0.03)  # metres, and share of the depth: a point so far behind the surface is hidden
UNKNOWN, NONE = -2, -1  # instead of a partner
CROP = 0.6  # the smallest part of a side that a frame is cut to, which is a longer lens
FEWEST_KEYPOINTS, FEWEST_MATCHES = 64, 10  # of a pair to learn from


@dataclass(frozen=True, eq=False)
class PlacedFrame:
    """A frame as the matcher meets it: keypoints with features and points, and the depth that says what is seen."""

    placed: PlacedKeypoints
    points: Float[ndarray, "n 3"]
    """In the camera's frame, NaN where the depth is not known."""
    depth: Float32[ndarray, "height width"]
    camera: Camera
    world_from_camera: Float[ndarray, "4 4"]

    @classmethod
    def of(cls, frame: Frame, placed: PlacedKeypoints) -> "PlacedFrame":
        x, y = placed.keypoints.pixels.astype(int).clip(0, np.array(placed.keypoints.size) - 1).T
        depth = frame.depth[y, x]
        points = frame.camera.unproject(placed.keypoints.pixels, np.where(depth > 0, depth, np.nan))
        return cls(placed, points, frame.depth, frame.camera, frame.world_from_camera)

    def part(self, random: np.random.Generator, most: int) -> "tuple[PlacedFrame, PlacedKeypoints]":
        """At most so many of the keypoints, half of the time of a part of the image; and as that part alone shows them.

        The frame keeps the whole image's pixels, in which it is known what is seen where.
        """
        keypoints, whole = self.placed.keypoints, np.array(self.placed.keypoints.size)
        size = np.ceil(whole * (random.uniform(CROP, 1) if random.random() < 0.5 else 1)).astype(int)
        corner = np.floor(random.uniform(0, 1, 2) * (whole - size))
        inside = np.flatnonzero(((keypoints.pixels >= corner) & (keypoints.pixels < corner + size)).all(axis=1))
        rows = np.sort(random.choice(inside, min(most, len(inside)), replace=False))
        kept = replace(self, placed=self.placed[rows], points=self.points[rows])
        moved = replace(
            kept.placed.keypoints, pixels=kept.placed.keypoints.pixels - corner, size=(int(size[0]), int(size[1]))
        )
        return kept, replace(kept.placed, keypoints=moved)

    def seen_in(self, other: "PlacedFrame") -> tuple[Float[ndarray, "n 2"], Bool[ndarray, " n"]]:
        """Where another frame's image has the keypoints' points, and which of them can be seen there."""
        points = transform(invert(other.world_from_camera) @ self.world_from_camera, self.points)
        pixels, depth = other.camera.project(points)
        inside = np.isfinite(pixels).all(axis=1) & (depth > 0)
        inside &= ((pixels >= 0) & (pixels < [other.camera.width, other.camera.height])).all(axis=1)
        x, y = np.where(inside[:, None], pixels, 0).astype(int).T
        near = np.abs(other.depth[y, x] - depth) <= HIDDEN[0] + HIDDEN[1] * depth
        return pixels, inside & near


def true_matches(a: PlacedFrame, b: PlacedFrame) -> tuple[Int[ndarray, " n"], Int[ndarray, " m"]]:
    """Of each keypoint of A its partner in B, and the other way round; `NONE` or `UNKNOWN` where there is none."""
    away = []
    for here, there in ((a, b), (b, a)):
        pixels, seen = here.seen_in(there)
        distance = np.linalg.norm(pixels[:, None] - there.placed.keypoints.pixels, axis=-1)
        away.append(np.where(seen[:, None], distance, np.inf) * 480 / min(there.placed.keypoints.size))
    both = np.maximum(away[0], away[1].T)
    partner, back = both.argmin(axis=1), both.argmin(axis=0)
    rows = np.arange(len(partner))
    matched = (back[partner] == rows) & (both[rows, partner] <= SAME)
    of_a, of_b = (
        np.where(np.isfinite(frame.points).all(axis=1) & (distance.min(axis=1) > OTHER), NONE, UNKNOWN)
        for frame, distance in ((a, away[0]), (b, away[1]))
    )
    of_a[matched], of_b[partner[matched]] = partner[matched], rows[matched]
    return of_a, of_b


@dataclass(frozen=True, eq=False)
class GluePair:
    """What the matcher is given, and what it should say."""

    a: PlacedKeypoints
    b: PlacedKeypoints
    of_a: Int[ndarray, " n"]
    of_b: Int[ndarray, " m"]


@dataclass(frozen=True, eq=False)
class PlacedFrames:
    """All frames of a scene, and which overlap."""

    frames: Sequence[PlacedFrame]
    pairs: Int[ndarray, "pairs 2"]
    overlap: Float[ndarray, " pairs"]

    @classmethod
    def of(cls, scene: Scene, model: LoCUS, detector: Detector, progress: bool = False) -> "PlacedFrames":
        seen = scene_features(model, scene, progress=progress)
        scales = point_scales(model.radii)
        placed_frames, geometries = [], []
        for row in track(range(len(seen)), scene.name, len(seen), progress):
            frame = seen.frame(row)
            placed = PlacedKeypoints.of(detector.detect(frame.image), seen.features[scales, row])
            placed_frames.append(PlacedFrame.of(frame, placed))
            geometries.append(FrameGeometry.of(frame))
        shares = overlap_of(len(geometries), lambda: enumerate(geometries))
        shares = triu(shares.minimum(shares.T), 1, "csr").tocoo()
        wanted = (shares.data >= OVERLAP[0]) & (shares.data <= OVERLAP[1])
        return cls(placed_frames, np.stack(shares.coords, axis=1)[wanted], shares.data[wanted])

    def draw(self, random: np.random.Generator, most: int) -> GluePair | None:
        """Two frames, all overlaps alike, with at most so many keypoints each; None if there is too little to learn."""
        wanted = np.abs(self.overlap - random.uniform(*OVERLAP))
        near = np.argsort(wanted)[: max(8, len(wanted) // 20)]
        first, second = random.permutation(self.pairs[random.choice(near)])
        (a, given_a), (b, given_b) = (self.frames[index].part(random, most) for index in (first, second))
        if min(len(given_a), len(given_b)) < FEWEST_KEYPOINTS:
            return None
        of_a, of_b = true_matches(a, b)
        enough = (of_a >= 0).sum() >= FEWEST_MATCHES and (of_a == NONE).any() and (of_b == NONE).any()
        return GluePair(given_a, given_b, of_a, of_b) if enough else None


def draw_pair(scenes: Sequence[PlacedFrames], random: np.random.Generator, most: int, tries: int = 100) -> GluePair:
    """A pair of any scene."""
    for _ in range(tries):
        if (pair := scenes[int(random.integers(len(scenes)))].draw(random, most)) is not None:
            return pair
    raise LocusError(f"in {tries} draws no two frames share {FEWEST_MATCHES} keypoints; give scenes with more overlap")
