"""What finds the same spots in two images: features through LoCUS's matching, keypoints, or the truth itself."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.evaluation.methods import Competitor, Method
from locus.evaluation.scene_patches import ScenePatches
from locus.scenes.patches import patch_centres
from locus.tasks.matching import Matches, Rule, match

Image = UInt8[ndarray, "height width 3"]
KEYPOINT_PIXELS = 1.5  # that a keypoint's match may lie off its epipolar line, in images of 640×480


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Spots of an image and what they look like."""

    pixels: Float[ndarray, "n 2"]
    descriptors: Float[Tensor, "n c"]


class Matcher(Competitor):
    """What gives matches and no features of its own."""

    @abstractmethod
    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        """Of two frames (rows of the scene's patches)."""

    def tolerance(self, matches: Matches) -> float | None:
        """Pixels that a right match may be off; None: a quarter of a patch."""
        return KEYPOINT_PIXELS * min(matches.size_b) / 480


class FeatureMatcher(Matcher):
    """The matches of a method's features."""

    def __init__(self, method: Method, radius: float, rule: Rule = Rule()) -> None:  # noqa: B008  frozen
        self.label = method.label
        self.method = method
        self.radius = radius
        self.rule = rule
        self._features: tuple[ScenePatches, Tensor] | None = None

    @property
    def fingerprint(self) -> str:
        return f"{self.method.fingerprint} {self.rule} {self.radius}"

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        if self._features is None or self._features[0] is not patches:
            self._features = patches, self.method.features(patches, self.radius)
        features = self._features[1]
        return match(features[a : a + 1], features[b : b + 1], patches.size(a), patches.size(b), self.rule)

    def tolerance(self, matches: Matches) -> float | None:
        return None


class TrueMatcher(Matcher):
    """The ceiling: every patch of A that B sees, matched to where depth and poses put it."""

    label = "ground truth"
    bound = True
    fingerprint: ClassVar[str] = "true matches 1"

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        seen, pixels_b = patches.seen_from(a, b)
        pixels_a = patch_centres(patches.grid, *patches.size(a)).reshape(-1, 2)[seen]
        return pixel_matches(patches, a, b, pixels_a, pixels_b, np.ones(len(pixels_a)))


class SiftRatio(Matcher):
    """SIFT with Lowe's ratio test."""

    label = "SIFT, ratio 0.8"
    fingerprint: ClassVar[str] = "sift ratio 0.8 1"
    RATIO: ClassVar[float] = 0.8

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        first, second = (self.detect(patches.frame(row).image) for row in (a, b))
        nearest, ratio = nearest_two(first, second)
        kept = np.flatnonzero(ratio < self.RATIO)
        return pixel_matches(patches, a, b, first.pixels[kept], second.pixels[nearest[kept]], 1 - ratio[kept])

    def detect(self, image: Image) -> Keypoints:
        keypoints, descriptors = cv2.SIFT.create().detectAndCompute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
        if descriptors is None:
            return Keypoints(np.zeros((0, 2)), torch.zeros(0, 128))
        pixels = np.array([keypoint.pt for keypoint in keypoints]) + 0.5  # OpenCV has a pixel's centre at whole numbers
        return Keypoints(pixels, torch.from_numpy(descriptors))


def nearest_two(first: Keypoints, second: Keypoints) -> tuple[ndarray, Float[ndarray, " n"]]:
    """Of each first keypoint: its nearest in the second image, and their distance over the next one's."""
    if not len(first.pixels) or len(second.pixels) < 2:
        return np.zeros(0, int), np.zeros(0)
    distances, order = torch.cdist(first.descriptors, second.descriptors).topk(2, dim=1, largest=False)
    ratio = distances[:, 0] / distances[:, 1].clamp(min=1e-9)
    return order[:, 0].numpy(), ratio.double().numpy()


def pixel_matches(
    patches: ScenePatches,
    a: int,
    b: int,
    pixels_a: Float[ndarray, "n 2"],
    pixels_b: Float[ndarray, "n 2"],
    scores: Float[ndarray, " n"],
) -> Matches:
    """Matches between pixels, as if each pixel were a patch; the best score first."""
    sizes = [patches.size(row) for row in (a, b)]
    order = np.argsort(-scores, kind="stable")
    pixels_a, pixels_b = pixels_a[order].astype(np.float64), pixels_b[order].astype(np.float64)
    cells = [
        (pixels.astype(int).clip(0, np.array(size) - 1) * [1, size[0]]).sum(axis=1)
        for pixels, size in zip((pixels_a, pixels_b), sizes, strict=True)
    ]
    grids = [(height, width) for width, height in sizes]
    return Matches(pixels_a, pixels_b, scores[order], *cells, sizes[0], sizes[1], grids[0], grids[1])
