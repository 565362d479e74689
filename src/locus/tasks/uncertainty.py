"""How exact is a pose? Its covariance, from the Jacobian of the residuals of its inliers.

One parametrisation for all poses: the true pose is `pose @ exp(ξ)`. ξ has six numbers: a rotation vector in radians and
a translation in metres, both along the axes of the camera that the pose carries points from, which is the camera of
`world_from_camera` and camera A of `b_from_a`. On this side the translation is how far that camera's position is off,
wherever the origin of the world lies. A covariance is that of ξ, 6×6. Where a translation has length 1 because its
length is not known, translations are in that unit, and the covariance has rank 5: nothing along the translation.

Poses are found by least squares over inliers. Their noise is independent, except for inliers of one spot (as patches of
one landmark), which share it. How large it is, is measured by the inliers themselves; but never below a floor, because
errors of the calibration or of the map are common to all inliers and do not show in their residuals.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.geometry import Camera, invert, transform

PIXELS = 0.5  # the least standard deviation of a pixel's coordinate
SHARE_OF_DEPTH = 0.005  # the least standard deviation of a point's coordinate, for every metre of its depth
NORMAL = 1.4826  # standard deviations of a normal distribution for each median absolute deviation
# Standard deviations before any match: they keep the covariance finite where inliers leave a motion free.
WIDEST = np.array([np.pi] * 3 + [100.0] * 3)
TURNS = np.cross(np.eye(3)[:, None], np.eye(3)[None]).swapaxes(
    1, 2
)  # TURNS[k] @ x is the cross product of axis k and x

Residuals = tuple[Float[ndarray, "n k"], Float[ndarray, "n k 6"]]
"""Of n inliers, and how they change with ξ."""


def offset(pose: Float[ndarray, "4 4"], truth: Float[ndarray, "4 4"]) -> Float[ndarray, " 6"]:
    """The ξ of `truth = pose @ exp(ξ)`, to first order in its translation: what the covariance of the pose predicts."""
    difference = invert(pose) @ truth
    return np.concatenate([Rotation.from_matrix(difference[:3, :3]).as_rotvec(), difference[:3, 3]])


def deviations(covariance: Float[ndarray, "6 6"]) -> tuple[float, float]:
    """How far a pose is off, the root of the mean square: metres (or lengths of its translation) and degrees."""
    turned, moved = np.sqrt(np.diag(covariance).reshape(2, 3).sum(axis=1))
    return float(moved), float(np.degrees(turned))


def absolute_covariance(
    pixels: Float[ndarray, "n 2"],
    points_world: Float[ndarray, "n 3"],
    camera: Camera,
    world_from_camera: Float[ndarray, "4 4"],
    spots: Int[ndarray, " n"] | None = None,
    floor: float = PIXELS,
) -> Float[ndarray, "6 6"]:
    """Of a `world_from_camera` found from inliers: pixels, and the points in the world that they show.

    `spots` numbers the spot of each inlier; by default each has its own.
    """
    residuals = reprojection(pixels, points_world, camera, world_from_camera)
    return _covariance(residuals, np.ones(len(pixels)), spots, floor)


def relative_covariance(
    pixels_a: Float[ndarray, "n 2"],
    pixels_b: Float[ndarray, "n 2"],
    camera_a: Camera,
    camera_b: Camera,
    b_from_a: Float[ndarray, "4 4"],
    floor: float = PIXELS,
) -> Float[ndarray, "6 6"]:
    """Of a `b_from_a` whose translation has length 1, found from inliers that are pixels in both images: of rank 5."""
    known = b_from_a[:3, :3].T @ b_from_a[:3, 3]  # the translation, along the axes of camera A
    across = np.linalg.svd(known[None])[2][1:].T  # the two directions that it can turn to
    tangent = np.zeros((6, 5))
    tangent[:3, :3], tangent[3:, 3:] = np.eye(3), across
    residuals = sampson(pixels_a, pixels_b, camera_a, camera_b, b_from_a)
    return _covariance(residuals, np.ones(len(pixels_a)), None, floor, tangent)


def rotation_covariance(
    pixels_b: Float[ndarray, "n 2"],
    rays_a: Float[ndarray, "n 3"],
    camera_b: Camera,
    b_from_a: Float[ndarray, "4 4"],
    floor: float = PIXELS,
) -> Float[ndarray, "6 6"]:
    """Of a `b_from_a` that is a rotation alone, found from inliers: directions from A and pixels in B.

    Of rank 3, and along camera B's axes.
    """
    residuals = reprojection(pixels_b, rays_a, camera_b, invert(b_from_a))
    return _covariance(residuals, np.ones(len(pixels_b)), None, floor, np.eye(6)[:, :3])


def rigid_covariance(
    points_a: Float[ndarray, "n 3"],
    points_b: Float[ndarray, "n 3"],
    depths: Float[ndarray, " n"],
    b_from_a: Float[ndarray, "4 4"],
    spots: Int[ndarray, " n"] | None = None,
    floor: float = SHARE_OF_DEPTH,
) -> Float[ndarray, "6 6"]:
    """Of a `b_from_a` found from inliers that are points in both frames, every one with the same weight.

    The noise of a pair of points is the same along every axis, with a standard deviation that is proportional to its
    depth: an error of so many pixels, seen so far away. If both points are seen by cameras, the depth of the pair is
    the root of the sum of both squares.
    """
    return _covariance(rigid_residuals(points_a, points_b, b_from_a), depths, spots, floor)


def reprojection(
    pixels: Float[ndarray, "n 2"],
    points_world: Float[ndarray, "n 3"],
    camera: Camera,
    world_from_camera: Float[ndarray, "4 4"],
) -> Residuals:
    """Where points are seen, less where they should be, in pixels."""
    points = transform(invert(world_from_camera), points_world)
    (x, y), z = points[:, :2].T, points[:, 2]
    zero = np.zeros_like(z)
    projection = np.array([[camera.fx / z, zero, -camera.fx * x / z**2], [zero, camera.fy / z, -camera.fy * y / z**2]])
    # In the camera that moves by ξ, a point p moves by p × ω − v.
    moved = np.concatenate([_cross(points), np.broadcast_to(-np.eye(3), (len(points), 3, 3))], axis=2)
    return pixels - camera.project(points)[0], -np.einsum("rcn,nck->nrk", projection, moved)


def sampson(
    pixels_a: Float[ndarray, "n 2"],
    pixels_b: Float[ndarray, "n 2"],
    camera_a: Camera,
    camera_b: Camera,
    b_from_a: Float[ndarray, "4 4"],
) -> Residuals:
    """Sampson's error: how far two pixels are, together, from ones that fit the epipolar geometry, to first order."""
    rotation, translation = b_from_a[:3, :3], b_from_a[:3, 3]
    essential = np.tensordot(translation, TURNS, 1) @ rotation
    changed = np.concatenate([essential @ TURNS, rotation @ TURNS])
    left, right = np.linalg.inv(camera_b.matrix).T, np.linalg.inv(camera_a.matrix)
    fundamental, changed = left @ essential @ right, left @ changed @ right
    a, b = (np.concatenate([pixels, np.ones((len(pixels), 1))], axis=1) for pixels in (pixels_a, pixels_b))
    lines = np.concatenate([a @ fundamental.T, b @ fundamental], axis=1)
    lines_changed = np.concatenate([np.einsum("kij,nj->nki", changed, a), np.einsum("kji,nj->nki", changed, b)], axis=2)
    product, product_changed = (b * lines[:, :3]).sum(axis=1), np.einsum("ni,nki->nk", b, lines_changed[..., :3])
    slopes = [0, 1, 3, 4]  # the gradient of the product by the four coordinates of the pixels
    length = np.linalg.norm(lines[:, slopes], axis=1)
    length_changed = np.einsum("ni,nki->nk", lines[:, slopes], lines_changed[..., slopes]) / length[:, None]
    error = product / length
    return error[:, None], ((product_changed - error[:, None] * length_changed) / length[:, None])[:, None]


def rigid_residuals(
    points_a: Float[ndarray, "n 3"], points_b: Float[ndarray, "n 3"], b_from_a: Float[ndarray, "4 4"]
) -> Residuals:
    """Points in frame b, less where the motion carries their partners to, in metres."""
    moved = np.concatenate([-_cross(points_a), np.broadcast_to(np.eye(3), (len(points_a), 3, 3))], axis=2)
    return points_b - transform(b_from_a, points_a), -b_from_a[:3, :3] @ moved


def _cross(points: Float[ndarray, "n 3"]) -> Float[ndarray, "n 3 3"]:
    """The matrices that give the cross product of each point and a vector."""
    return np.tensordot(points, TURNS, 1)


def _covariance(
    residuals: Residuals,
    noise: Float[ndarray, " n"],
    spots: Int[ndarray, " n"] | None,
    floor: float,
    free: Float[ndarray, "6 p"] = np.eye(6),  # noqa: B008  never written to
) -> Float[ndarray, "6 6"]:
    """Of the ξ in the span of `free` with the least sum of squares, if residuals have noise in these proportions."""
    error, jacobian = residuals[0], residuals[1] @ free
    rows, parameters = error.shape[1], free.shape[1]
    of_spot = np.arange(len(error)) if spots is None else np.unique(spots, return_inverse=True)[1]
    observed = rows * (of_spot.max() + 1)
    # As many residuals as there are parameters can be made 0 by the fit, whatever the noise.
    freedom = max(observed - parameters, 1) / observed
    scale = max(floor, float(NORMAL * np.median(np.abs(error / noise[:, None])) / np.sqrt(freedom)))
    together = np.zeros((of_spot.max() + 1, rows, parameters))
    np.add.at(together, of_spot, noise[:, None, None] * jacobian)
    before = free.T @ np.diag(WIDEST**-2) @ free
    curvature, spread = (np.einsum("nri,nrj->ij", each, each) / scale**2 + before for each in (jacobian, together))
    inverse = free @ np.linalg.inv(curvature)
    return inverse @ spread @ inverse.T
