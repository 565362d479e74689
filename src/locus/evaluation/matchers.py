"""What finds the same spots in two images: features through LoCUS's matching, keypoints, or the truth itself."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from locus.evaluation.methods import Competitor, Method, ModelMethod
from locus.evaluation.scene_patches import ScenePatches
from locus.features.dense import SceneFeatures
from locus.keypoints import Detector, Keypoints, detector, glue
from locus.keypoints.fusion import PlacedKeypoints, point_scales
from locus.scenes.patches import patch_centres
from locus.tasks.matching import Matches, Rule, match, matched_pixels
from locus.tasks.placed_points import match_points, placed_points, point_detector, point_matcher

RATIO = 0.8
INCONSISTENT = 10.0  # pixels: FGINN compares with the next one that lies further than this from the nearest

Pairing = Callable[[Keypoints, Keypoints], tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]]
"""From the keypoints of two images to pairs of their rows, and how good each is."""


class Matcher(Competitor):
    """What gives matches and no features of its own."""

    @abstractmethod
    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        """Of two frames (rows of the scene's patches)."""


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

    def grid(self, width: int, height: int) -> tuple[int, int] | None:
        return self.method.grid(width, height)

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        if self._features is None or self._features[0] is not patches:
            self._features = patches, self.method.features(patches, self.radius)
        features = self._features[1]
        return match(features[a : a + 1], features[b : b + 1], patches.size(a), patches.size(b), self.rule)


class PointMatcher(Matcher):
    """The matches of keypoints with a model's features at them; they are found once in every frame."""

    def __init__(self, method: ModelMethod) -> None:
        self.label = method.label
        self.method = method
        self._seen: SceneFeatures | None = None
        self._placed: dict[int, PlacedKeypoints] = {}

    @property
    def fingerprint(self) -> str:
        return f"{self.method.fingerprint} {point_detector().fingerprint} {point_matcher().fingerprint}"

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        if self._seen is None or self._seen.scene is not patches.scene:
            self._seen, self._placed = self.method.seen(patches), {}
        return match_points(*(self._of(row) for row in (a, b)))

    def _of(self, row: int) -> PlacedKeypoints:
        assert self._seen is not None
        if row not in self._placed:
            features = self._seen.features[point_scales(self.method.model.radii), row]
            self._placed[row] = placed_points(self._seen.frame(row).image, features)
        return self._placed[row]


class TrueMatcher(Matcher):
    """The ceiling: every patch of A that B sees, matched to where depth and poses put it."""

    label = "ground truth"
    bound = True
    fingerprint: ClassVar[str] = "true matches 1"

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        seen, pixels_b = patches.seen_from(a, b)
        pixels_a = patch_centres(patches.grid, *patches.size(a)).reshape(-1, 2)[seen]
        return matched_pixels(pixels_a, pixels_b, np.ones(len(pixels_a)), patches.size(a), patches.size(b))


class KeypointMatcher(Matcher):
    """A detector's keypoints, found once in every frame, and a way to pair those of two frames."""

    def __init__(self, label: str, detector: Detector, pairing: Pairing, name: str) -> None:
        self.label = label
        self.detector = detector
        self.pairing = pairing
        self.name = name
        self._found: dict[int, Keypoints] = {}
        self._of: ScenePatches | None = None

    @property
    def fingerprint(self) -> str:
        return f"{self.detector.fingerprint} {self.name}"

    def keypoints(self, patches: ScenePatches, row: int) -> Keypoints:
        if self._of is not patches:
            self._found, self._of = {}, patches
        if row not in self._found:
            self._found[row] = self.detector.detect(patches.frame(row).image)
        return self._found[row]

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        first, second = (self.keypoints(patches, row) for row in (a, b))
        pairs, scores = self.pairing(first, second)
        pixels = first.pixels[pairs[:, 0]], second.pixels[pairs[:, 1]]
        return matched_pixels(*pixels, scores, first.size, second.size)


def mutual(first: Keypoints, second: Keypoints) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
    """Those that are each other's nearest, with their similarity."""
    if not len(first) or not len(second):
        return np.zeros((0, 2), int), np.zeros(0)
    similarity = first.descriptors @ second.descriptors.T
    best, nearest = similarity.max(dim=1)
    kept = (similarity.argmax(dim=0)[nearest] == torch.arange(len(first))).nonzero()[:, 0]
    return torch.stack([kept, nearest[kept]], dim=1).numpy(), best[kept].double().numpy()


def ratio(
    first: Keypoints, second: Keypoints, elsewhere: float = 0.0
) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
    """Lowe's test: the nearest, if it is much nearer than the next one.

    With `elsewhere`, FGINN (Mishkin et al. 2015): the next one that lies so many pixels from the nearest, because two
    detections of one corner do not speak against each other.
    """
    if not len(first) or len(second) < 2:
        return np.zeros((0, 2), int), np.zeros(0)
    distances = torch.cdist(first.descriptors, second.descriptors)
    best, nearest = distances.min(dim=1)
    positions = torch.from_numpy(second.pixels)
    same = torch.cdist(positions[nearest], positions) <= elsewhere
    same[torch.arange(len(first)), nearest] = True
    shares = best / distances.masked_fill(same, torch.inf).amin(dim=1).clamp(min=1e-9)
    kept = (shares < RATIO).nonzero()[:, 0]
    return torch.stack([kept, nearest[kept]], dim=1).numpy(), (1 - shares[kept]).double().numpy()


def _by_rule(label: str, name: str, rule: Pairing, word: str) -> KeypointMatcher:
    return KeypointMatcher(label, detector(name), rule, word)


def _by_glue(label: str, name: str) -> KeypointMatcher:
    network = glue(name)
    return KeypointMatcher(label, detector(name), network.match, network.fingerprint)


KEYPOINT_MATCHERS: dict[str, Callable[[], Competitor]] = {
    "sift-ratio": partial(_by_rule, "SIFT, ratio 0.8", "sift", ratio, "ratio 0.8"),
    "xfeat": partial(_by_rule, "XFeat, mutual", "xfeat", mutual, "mutual"),
    "xfeat-lighterglue": partial(_by_glue, "XFeat + LighterGlue", "xfeat"),
    "aliked-lightglue": partial(_by_glue, "ALIKED + LightGlue", "aliked"),
    "disk-lightglue": partial(_by_glue, "DISK + LightGlue", "disk"),
    "superpoint-nn": partial(_by_rule, "SuperPoint + NN", "superpoint", mutual, "mutual"),
    "superpoint-fginn": partial(
        _by_rule, "SuperPoint + FGINN", "superpoint", partial(ratio, elsewhere=INCONSISTENT), "fginn 0.8"
    ),
    "superpoint-lightglue": partial(_by_glue, "SuperPoint + LightGlue", "superpoint"),
}


def keypoint_words(given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
    """Every word that means keypoints, and those given as `superpoint-nn=FILE`, with weights that the user brings."""
    brought = {}
    for word in given:
        name, _, file = word.partition("=")
        made = KEYPOINT_MATCHERS.get(name)
        if file and isinstance(made, partial) and made.func is _by_rule:
            label, detected, *rest = made.args
            brought[word] = partial(_by_rule, label, f"{detected}={file}", *rest)
    return {**KEYPOINT_MATCHERS, **brought}
