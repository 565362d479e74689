"""What tasks find exact spots with: XFeat keypoints with LoCUS features at them, and the network that matches them."""

from functools import cache

from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.keypoints import Detector, detector
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.place_glue import PlaceGlue
from locus.tasks.matching import Matches, matched_pixels

KEYPOINTS = 2048  # of an image at most


@cache
def point_detector() -> Detector:
    """What finds keypoints, in images and for maps; an error says why there is none."""
    return detector("xfeat", KEYPOINTS)


@cache
def point_matcher() -> PlaceGlue:
    """What matches them."""
    return PlaceGlue()


def available() -> str:
    """Why keypoints cannot be found or matched here, in one sentence; empty if they can."""
    try:
        point_detector(), point_matcher()
    except LocusError as error:
        return str(error)
    return ""


def placed_points(
    image: UInt8[ndarray, "height width 3"], features: Float[Tensor, "scales rows columns c"]
) -> PlacedKeypoints:
    """An image's keypoints, with its own LoCUS features at them."""
    return PlacedKeypoints.of(point_detector().detect(image), features)


def match_points(a: PlacedKeypoints, b: PlacedKeypoints) -> Matches:
    """The matches of two images' keypoints; scores are probabilities."""
    rows, likely = point_matcher().match(a, b)
    pixels = a.keypoints.pixels[rows[:, 0]], b.keypoints.pixels[rows[:, 1]]
    return matched_pixels(*pixels, likely, a.keypoints.size, b.keypoints.size)
