"""Learned keypoints and matchers of the transformers library: SuperPoint and LightGlue."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from locus.backbones.sources import locate
from locus.errors import WeightsError
from locus.evaluation.matchers import Image, Keypoints, Matcher, nearest_two, pixel_matches
from locus.evaluation.methods import Competitor
from locus.evaluation.scene_patches import ScenePatches
from locus.tasks.matching import Matches

SHORTER = 480  # pixels of the shorter side that these networks were trained for
WHOLE = 32  # sides are made multiples of this: the networks halve them
RATIO = 0.8
INCONSISTENT = 10.0  # pixels: FGINN compares with the next one that lies further than this from the nearest
SUPERPOINT = "magic-leap-community/superpoint"
LIGHTGLUE = "ETH-CVG/lightglue_superpoint"


class SuperPoint(Matcher):
    """SuperPoint's keypoints, matched to their nearest, or only where FGINN's ratio says that it is clear.

    FGINN (Mishkin et al. 2015) compares the nearest with the first neighbour that is somewhere else in the image: two
    detections of one corner do not speak against each other.
    """

    def __init__(self, test: Literal["nn", "fginn"], weights: str | Path = SUPERPOINT) -> None:
        self.label = f"SuperPoint + {test.upper()}"
        self.test = test
        self.network, self.source = pretrained("SuperPointForKeypointDetection", weights)

    @property
    def fingerprint(self) -> str:
        return f"superpoint {self.test} {self.source} 1"

    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        first, second = (self.detect(patches.frame(row).image) for row in (a, b))
        if self.test == "nn":
            nearest, ratio = nearest_two(first, second)
            back, _ = nearest_two(second, first)
            # One keypoint alone has no nearest two, and no score.
            kept = np.flatnonzero(back[nearest] == np.arange(len(nearest))) if len(back) else []
        else:
            nearest, ratio = fginn(first, second)
            kept = np.flatnonzero(ratio < RATIO)
        return pixel_matches(patches, a, b, first.pixels[kept], second.pixels[nearest[kept]], 1 - ratio[kept])

    @torch.inference_mode()
    def detect(self, image: Image) -> Keypoints:
        output = self.network(prepared(image)[None])
        there = output.mask[0].bool()
        return Keypoints(_pixels(output.keypoints[0][there], image), output.descriptors[0][there])


def fginn(first: Keypoints, second: Keypoints) -> tuple[ndarray, Float[ndarray, " n"]]:
    """The nearest of each first keypoint, and the ratio to the first geometrically inconsistent neighbour."""
    if not len(first.pixels) or not len(second.pixels):
        return np.zeros(0, int), np.zeros(0)
    distances = torch.cdist(first.descriptors, second.descriptors)
    best, nearest = distances.min(dim=1)
    positions = torch.from_numpy(second.pixels)
    elsewhere = torch.cdist(positions[nearest], positions) > INCONSISTENT
    other = distances.masked_fill(~elsewhere, torch.inf).amin(dim=1)
    return nearest.numpy(), (best / other.clamp(min=1e-9)).double().numpy()


class LightGlue(Matcher):
    """A network that looks at the SuperPoint keypoints of both images."""

    label = "SuperPoint + LightGlue"

    def __init__(self, weights: str | Path = LIGHTGLUE) -> None:
        self.network, self.source = pretrained("LightGlueForKeypointMatching", weights)

    @property
    def fingerprint(self) -> str:
        return f"lightglue {self.source} 1"

    @torch.inference_mode()
    def match(self, patches: ScenePatches, a: int, b: int) -> Matches:
        images = [patches.frame(row).image for row in (a, b)]
        output = self.network(torch.stack([prepared(image) for image in images])[None])
        partner, score = output.matches[0, 0], output.matching_scores[0, 0]
        found = (partner > -1).nonzero()[:, 0]
        other = partner[found].long()
        pixels = _pixels(output.keypoints[0, 0][found], images[0]), _pixels(output.keypoints[0, 1][other], images[1])
        return pixel_matches(patches, a, b, *pixels, score[found].double().numpy())


def prepared(image: Image) -> Float[Tensor, "3 h w"]:
    """Grey, three times over, at the size these networks expect."""
    height, width = image.shape[:2]
    factor = SHORTER / min(height, width)
    size = [max(1, round(side * factor / WHOLE)) * WHOLE for side in (width, height)]
    grey = cv2.cvtColor(cv2.resize(image, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    return torch.from_numpy(grey).float().div(255).expand(3, -1, -1)


def _pixels(relative: Float[Tensor, "n 2"], image: Image) -> Float[ndarray, "n 2"]:
    """From shares of the image's sides, where whole numbers of pixels are centres, to its own pixels."""
    half = 0.5 * image.shape[0] / SHORTER
    return relative.double().numpy() * [image.shape[1], image.shape[0]] + half


def pretrained(name: str, weights: str | Path) -> tuple[Any, str]:
    """A network of transformers, and the name of its weights."""
    import transformers

    located = locate(weights)
    try:
        network = getattr(transformers, name).from_pretrained(located.folder)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise WeightsError(f"{located.folder} holds no {name.rpartition('For')[0]}: {reason}") from None
    return network.eval(), located.name


LEARNED: dict[str, Callable[[], Competitor]] = {
    "superpoint-nn": partial(SuperPoint, "nn"),
    "superpoint-fginn": partial(SuperPoint, "fginn"),
    "superpoint-lightglue": LightGlue,
}
