"""What tasks find exact spots with: XFeat keypoints with LoCUS features at them, and the network that matches them."""

import warnings
from functools import cache

from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.keypoints import Detector, Keypoints, detector
from locus.keypoints.fusion import PlacedKeypoints, point_scales
from locus.keypoints.place_glue import PlaceGlue
from locus.landmarks import LandmarkMap
from locus.tasks.matching import Matches, matched_pixels

KEYPOINTS = 1400  # of an image at most: with more, matching takes longer than all the rest


@cache
def point_detector() -> Detector:
    """What finds keypoints, in images and for maps; an error says why there is none."""
    return detector("xfeat", KEYPOINTS)


def detector_or_reason() -> tuple[Detector | None, str]:
    """What finds the points of a map; or none, and the end of a sentence about a map that is made without."""
    try:
        return point_detector(), ""
    except LocusError as error:
        return None, f"without points, which would make poses exact: {error}"


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


def points_fingerprint() -> str:
    """Of all that changes what is found and matched here; it also tells where there is nothing to do it with."""
    try:
        return f"{point_detector().fingerprint} {point_matcher().fingerprint}"
    except LocusError:
        return "no points"


def placed_points(
    image: UInt8[ndarray, "height width 3"], features: Float[Tensor, "scales rows columns c"]
) -> PlacedKeypoints:
    """An image's keypoints, with its own LoCUS features, of `point_scales`, at them."""
    return PlacedKeypoints.of(point_detector().detect(image), features)


def match_points(a: PlacedKeypoints, b: PlacedKeypoints) -> Matches:
    """The matches of two images' keypoints; scores are probabilities."""
    rows, likely = point_matcher().match(a, b)
    pixels = a.keypoints.pixels[rows[:, 0]], b.keypoints.pixels[rows[:, 1]]
    return matched_pixels(*pixels, likely, a.keypoints.size, b.keypoints.size)


def query_points(
    world: LandmarkMap, image: UInt8[ndarray, "height width 3"], features: Float[Tensor, "scales rows columns c"]
) -> PlacedKeypoints | None:
    """Those of an image to localize, if there are `query_keypoints`."""
    keypoints = query_keypoints(world, image)
    return None if keypoints is None else query_placed(world, keypoints, features)


def query_keypoints(world: LandmarkMap, image: UInt8[ndarray, "height width 3"]) -> Keypoints | None:
    """None if the map has no points, or none that can be used, which a warning says. No features are needed yet."""
    if world.points is None:
        return None
    try:
        point_matcher()
        if point_detector().fingerprint != world.points.detector:
            raise LocusError("they were found with other weights or another number of them; build the map again")
    except LocusError as error:
        warnings.warn(f"the points of the map are not used: {error}", stacklevel=2)
        return None
    return point_detector().detect(image)


def query_placed(
    world: LandmarkMap, keypoints: Keypoints, features: Float[Tensor, "scales rows columns c"]
) -> PlacedKeypoints:
    """Keypoints with the features that the map's points have."""
    return PlacedKeypoints.of(keypoints, features[point_scales(world.radii)])
