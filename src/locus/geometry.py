"""Cameras and rigid poses.

Conventions (docs/conventions.md): metres; `world_from_camera` is 4×4; camera axes are OpenCV's (x right, y down,
z forward); pixel coordinates put the centre of the top-left pixel at (0.5, 0.5).
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Num
from numpy import ndarray
from numpy.typing import ArrayLike
from PIL import ExifTags, Image
from scipy.spatial.transform import Rotation

from locus.errors import LocusError

# Flips y and z: the same camera described with OpenGL (and Blender) axes, x right, y up, z backward. Its own inverse.
OPENGL_FROM_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])

LARGEST_LENGTH = 1e9  # metres or pixels; a file that says more is damaged or forged, and its squares would overflow


@dataclass(frozen=True)
class Camera:
    """A pinhole camera; intrinsics in pixels, the centre of the top-left pixel at (0.5, 0.5)."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        if not (0 < self.width < LARGEST_LENGTH and 0 < self.height < LARGEST_LENGTH):
            raise LocusError(f"an image size must be positive and sensible, not {self.width}×{self.height}")
        if not all(abs(number) < LARGEST_LENGTH for number in (self.fx, self.fy, self.cx, self.cy)):
            raise LocusError(
                f"intrinsics must be finite and sensible, not fx={self.fx} fy={self.fy} cx={self.cx} cy={self.cy}"
            )
        if self.fx <= 1 / LARGEST_LENGTH or self.fy <= 1 / LARGEST_LENGTH:
            raise LocusError(f"a focal length must be positive, not fx={self.fx:g} fy={self.fy:g}")

    @classmethod
    def from_opencv(cls, matrix: ArrayLike, width: int, height: int) -> "Camera":
        """From K as OpenCV, ROS and most calibrations have it: the centre of the top-left pixel is at (0, 0) there."""
        try:
            stated = np.asarray(matrix, np.float64)
        except (TypeError, ValueError):
            stated = np.zeros(0)
        if stated.shape != (3, 3) or not np.allclose(stated[[0, 1, 2, 2, 2], [1, 0, 0, 1, 2]], [0, 0, 0, 0, 1]):
            raise LocusError(f"K is a matrix fx 0 cx, 0 fy cy, 0 0 1, not {matrix}")
        cx, cy = stated[:2, 2] + 0.5
        if not (0 <= cx <= width and 0 <= cy <= height):
            raise LocusError(
                f"K puts the principal point at ({cx:.0f}, {cy:.0f}), outside the {width}×{height} image; "
                "was the image resized after the calibration?"
            )
        return cls(width, height, float(stated[0, 0]), float(stated[1, 1]), float(cx), float(cy))

    @classmethod
    def from_fov(cls, width: int, height: int, degrees: float) -> "Camera":
        """From the horizontal field of view; square pixels, and the principal point in the middle."""
        if not 1 <= degrees < 180:
            raise LocusError(f"a field of view is at least 1 and less than 180 degrees, not {degrees:g}")
        focal = float(width / 2 / np.tan(np.radians(degrees) / 2))
        return cls(width, height, focal, focal, width / 2, height / 2)

    @classmethod
    def from_exif(cls, image: str | PathLike[str] | Image.Image) -> "Camera":
        """From what a photo's file says of its focal length, for the photo as it is meant to be seen, upright.

        Lens distortion is not known, and the principal point is put in the middle: good to a few percent.
        """
        try:
            with Image.open(image) if isinstance(image, str | PathLike) else nullcontext(image) as opened:
                size, tags = opened.size, opened.getexif()
                turned = tags.get(ExifTags.Base.Orientation) in (5, 6, 7, 8)
                focal = _exif_focal(size, dict(tags.get_ifd(ExifTags.IFD.Exif)))
        except (OSError, SyntaxError, AttributeError) as error:
            raise LocusError(f"{image} is not an image that can be read ({error})") from None
        if focal is None:
            raise LocusError(f"{image} does not say its focal length in EXIF; give K, or a field of view")
        width, height = size[::-1] if turned else size
        return cls(width, height, focal, focal, width / 2, height / 2)

    @classmethod
    def from_camera_info(cls, message: Any, rectified: bool = False) -> "Camera":
        """From a ROS `sensor_msgs/CameraInfo`, of ROS 1 or 2: K, or P for the image that ROS has rectified."""
        try:
            d, k, p = (np.asarray(getattr(message, name, getattr(message, name.upper(), ()))) for name in "dkp")
            matrix, size = (p.reshape(3, 4)[:, :3] if rectified else k.reshape(3, 3)), (message.width, message.height)
        except (AttributeError, ValueError):
            raise LocusError(f"a CameraInfo has k, p, d, width, height; this is a {type(message).__name__}") from None
        if not matrix[0, 0]:
            raise LocusError(f"the camera is not calibrated: {'P' if rectified else 'K'} of its CameraInfo is zero")
        if d.any() and not rectified:
            raise LocusError("its lens distorts; give the rectified image, and say rectified=True here")
        return read_out(cls.from_opencv(matrix, *size), message)

    @property
    def matrix(self) -> Float[ndarray, "3 3"]:
        """K with the centre of the top-left pixel at (0.5, 0.5); for OpenCV's, subtract 0.5 from the last column."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def resized(self, width: int, height: int) -> "Camera":
        """The same camera for its image resized to width × height."""
        x, y = width / self.width, height / self.height
        return Camera(width, height, self.fx * x, self.fy * y, self.cx * x, self.cy * y)

    def swapped(self) -> "Camera":
        """x and y intrinsics exchanged: undoes a calibration that was written the wrong way round."""
        return replace(self, fx=self.fy, fy=self.fx, cx=self.cy, cy=self.cx)

    def pixel_grid(self) -> Float[ndarray, "h w 2"]:
        """The centre of every pixel, (x, y)."""
        x, y = np.arange(self.width) + 0.5, np.arange(self.height) + 0.5
        return np.stack(np.meshgrid(x, y), axis=-1)

    def unproject(self, pixels: Num[ndarray, "*n 2"], depth: Num[ndarray, "*n"]) -> Float[ndarray, "*n 3"]:
        """Pixels at a depth z, as points in the camera's frame."""
        x = (pixels[..., 0] - self.cx) / self.fx * depth
        y = (pixels[..., 1] - self.cy) / self.fy * depth
        return np.stack([x, y, depth], axis=-1)

    def project(self, points_camera: Float[ndarray, "*n 3"]) -> tuple[Float[ndarray, "*n 2"], Float[ndarray, "*n"]]:
        """Pixels and depths z of points in the camera's frame; pixels mean nothing where z is not positive."""
        z = points_camera[..., 2]
        scale = 1.0 / np.where(z > 0, z, 1.0)
        x = points_camera[..., 0] * scale * self.fx + self.cx
        y = points_camera[..., 1] * scale * self.fy + self.cy
        return np.stack([x, y], axis=-1), z


def read_out(camera: Camera, message: Any) -> Camera:
    """The part of a sensor that a ROS CameraInfo says was read from it, then binned."""
    roi = message.roi
    if roi.width and roi.height:
        cx, cy = camera.cx - roi.x_offset, camera.cy - roi.y_offset
        camera = replace(camera, width=roi.width, height=roi.height, cx=cx, cy=cy)
    columns, rows = max(message.binning_x, 1), max(message.binning_y, 1)
    return camera.resized(camera.width // columns, camera.height // rows)


def _exif_focal(size: tuple[int, int], tags: dict[int, Any]) -> float | None:
    """The focal length in pixels, None if EXIF does not say it."""

    def number(tag: int) -> float:
        try:
            value = float(tags.get(tag, 0))
        except (TypeError, ValueError, ZeroDivisionError):
            return 0.0
        return value if np.isfinite(value) and value > 0 else 0.0

    if film := number(ExifTags.Base.FocalLengthIn35mmFilm):  # defined by the diagonal, which is 43.3 mm on film
        return film * float(np.hypot(*size) / np.hypot(36, 24))
    unit = {2: 25.4, 3: 10.0}.get(int(number(ExifTags.Base.FocalPlaneResolutionUnit)) or 2, 0.0)  # mm
    focal, density = number(ExifTags.Base.FocalLength), number(ExifTags.Base.FocalPlaneXResolution)
    if not (unit and focal and density):
        return None
    taken = number(ExifTags.Base.ExifImageWidth) or size[0]  # the density is of the image as it was taken
    return focal * density / unit * size[0] / taken


def transform(b_from_a: Float[ndarray, "4 4"], points_a: Float[ndarray, "*n 3"]) -> Float[ndarray, "*n 3"]:
    """Points carried from frame a to frame b, in the points' precision."""
    b_from_a = b_from_a.astype(points_a.dtype, copy=False)
    return points_a @ b_from_a[:3, :3].T + b_from_a[:3, 3]


def invert(b_from_a: Float[ndarray, "*n 4 4"]) -> Float[ndarray, "*n 4 4"]:
    """The inverse of rigid transforms."""
    rotation = np.swapaxes(b_from_a[..., :3, :3], -1, -2)
    a_from_b = np.zeros_like(b_from_a)
    a_from_b[..., :3, :3] = rotation
    a_from_b[..., :3, 3] = -(rotation @ b_from_a[..., :3, 3:])[..., 0]
    a_from_b[..., 3, 3] = 1.0
    return a_from_b


def rigid(pose: Float[ndarray, "4 4"], tolerance: float = 0.02) -> Float[ndarray, "4 4"]:
    """`pose` with its rotation made exactly orthonormal; an error where it is not a rigid transform to begin with.

    Files round rotations to a few digits, and the inverse of a rotation is only its transpose where it is exact.
    """
    if not (np.abs(pose) < LARGEST_LENGTH).all():
        raise LocusError("the pose has values that are not finite, or too large to be metres")
    rotation = pose[:3, :3]
    deviation = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if deviation > tolerance:
        raise LocusError(f"the pose is not rigid: its rotation part is off orthonormal by {deviation:.3g}")
    if np.linalg.det(rotation) < 0:
        raise LocusError("the pose is not rigid: its rotation part mirrors (determinant -1)")
    if np.abs(pose[3] - [0, 0, 0, 1]).max() > 1e-6:
        row = " ".join(f"{value:g}" for value in pose[3])
        hint = "; is the matrix stored column by column?" if np.array_equal(pose[:, 3], [0, 0, 0, 1]) else ""
        raise LocusError(f"the pose is not rigid: its last row is {row}, not 0 0 0 1{hint}")
    if deviation <= 1e-9:
        return pose
    u, _, vt = np.linalg.svd(rotation)
    exact = pose.copy()
    exact[:3, :3] = u @ vt
    return exact


def pose_matrices(values: Float[ndarray, "n 7"]) -> Float[ndarray, "n 4 4"]:
    """Poses from positions and quaternions, x y z w. Where a row is no pose, so is its matrix: `rigid` refuses it."""
    sound = are_poses(values)
    poses = np.tile(np.eye(4), (len(values), 1, 1))
    poses[:, :3, 3] = values[:, :3]
    poses[~sound, :3] = np.nan
    if sound.any():
        poses[sound, :3, :3] = Rotation.from_quat(values[sound, 3:]).as_matrix()
    return poses


def are_poses(values: Float[ndarray, "n 7"]) -> Bool[ndarray, " n"]:
    """Which rows of positions and quaternions are poses: finite, the quaternion not far from unit length."""
    longest = np.abs(values[:, 3:]).max(axis=1)  # of huge numbers the norm would overflow
    return (np.abs(values) < LARGEST_LENGTH).all(axis=1) & (longest > 1e-6) & (longest < 1e6)


def align(
    points_a: Float[ndarray, "*n k 3"],
    points_b: Float[ndarray, "*n k 3"],
    weights: Float[ndarray, "*n k"] | None = None,
) -> Float[ndarray, "*n 4 4"]:
    """The rigid `b_from_a` that carries points onto their partners with the least squared error (Kabsch, 1976).

    Of fewer than three points, or points on a line, one of the many solutions.
    """
    share = np.ones(points_a.shape[:-1]) if weights is None else weights
    share = (share / share.sum(axis=-1, keepdims=True))[..., None]
    centre_a, centre_b = ((share * points).sum(axis=-2, keepdims=True) for points in (points_a, points_b))
    covariance = np.swapaxes(share * (points_b - centre_b), -1, -2) @ (points_a - centre_a)
    u, _, vt = np.linalg.svd(covariance)
    u[..., :, 2] *= np.linalg.det(u @ vt)[..., None]  # a rotation, not a reflection
    rotation = u @ vt
    b_from_a = np.zeros((*rotation.shape[:-2], 4, 4))
    b_from_a[..., :3, :3] = rotation
    b_from_a[..., :3, 3] = (centre_b - centre_a @ np.swapaxes(rotation, -1, -2))[..., 0, :]
    b_from_a[..., 3, 3] = 1.0
    return b_from_a


def upwards(poses: Float[ndarray, "n 4 4"]) -> Float[ndarray, " 3"]:
    """Where the tops of images with these `world_from_camera` point on average; +z if the cameras roll all ways."""
    up = -poses[:, :3, 1].mean(axis=0)
    length = np.linalg.norm(up)
    return up / length if length > 0.1 else np.array([0.0, 0.0, 1.0])


def pose_error(a: Float[ndarray, "4 4"], b: Float[ndarray, "4 4"]) -> tuple[float, float]:
    """How far apart two poses are: metres between their origins, degrees between their rotations."""
    difference = a[:3, :3].T @ b[:3, :3]
    # The arc tangent is exact for small angles, where the arc cosine of the trace loses half of the digits.
    skew = difference - difference.T
    sine = np.sqrt(skew[2, 1] ** 2 + skew[0, 2] ** 2 + skew[1, 0] ** 2) / 2
    angle = np.arctan2(sine, (np.trace(difference) - 1) / 2)
    return float(np.linalg.norm(a[:3, 3] - b[:3, 3])), float(np.degrees(angle))
