"""What messages hold, as arrays: images, depth and cameras. Any object with a message's fields will do."""

from typing import Any

import cv2
import numpy as np
from jaxtyping import Float32, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera
from locus.scenes.lens import Lens

# Channels of an encoding, and how OpenCV makes RGB of them.
COLOUR = {
    "rgb8": (3, None),
    "bgr8": (3, cv2.COLOR_BGR2RGB),
    "rgba8": (4, cv2.COLOR_RGBA2RGB),
    "bgra8": (4, cv2.COLOR_BGRA2RGB),
    "mono8": (1, cv2.COLOR_GRAY2RGB),
}
DEPTH = {"16UC1": ("u2", 1000.0), "32FC1": ("f4", 1.0)}  # type, and units per metre (REP 118)
COEFFICIENTS = {"plumb_bob": 5, "rational_polynomial": 8}
FISHEYE = ("equidistant", "fisheye")


def stamp(message: Any) -> int:
    """Nanoseconds, from the header: when it was taken."""
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def colour_image(message: Any) -> UInt8[ndarray, "height width 3"]:
    """RGB."""
    if message.encoding not in COLOUR:
        raise LocusError(f"the image is encoded as {message.encoding}; {', '.join(COLOUR)} can be used")
    channels, conversion = COLOUR[message.encoding]
    pixels = _rows(message, "u1", channels)
    return np.ascontiguousarray(pixels) if conversion is None else cv2.cvtColor(pixels, conversion)


def depth_image(message: Any) -> Float32[ndarray, "height width"]:
    """z in metres, 0 where unknown."""
    if message.encoding not in DEPTH:
        raise LocusError(f"the depth is encoded as {message.encoding}; {', '.join(DEPTH)} can be used")
    kind, units = DEPTH[message.encoding]
    depth = _rows(message, kind, 1)[..., 0].astype(np.float32) / np.float32(units)
    depth[~(np.isfinite(depth) & (depth > 0))] = 0
    return depth


def camera_and_lens(message: Any) -> tuple[Camera, Lens]:
    """Of the image as it was taken: K and D. ROS puts the centre of the first pixel at (0, 0), LoCUS at (0.5, 0.5)."""
    matrix, numbers = np.asarray(message.k, float).reshape(3, 3), [float(each) for each in message.d]
    if not matrix[0, 0] > 0:
        raise LocusError("the camera is not calibrated: K of its camera_info is zero")
    (fx, _, cx), (_, fy, cy) = matrix[:2].tolist()
    camera = Camera(message.width, message.height, fx, fy, cx + 0.5, cy + 0.5)
    if message.distortion_model in FISHEYE:
        k1, k2, k3, k4 = (numbers + [0.0] * 4)[:4]
        return camera, Lens(k1, k2, k3=k3, k4=k4, fisheye=True)
    if not any(numbers):
        return camera, Lens()
    known = COEFFICIENTS.get(message.distortion_model)
    if known is None or any(numbers[known:]):
        raise LocusError(
            f"the lens is {message.distortion_model} with {len(numbers)} coefficients; known are "
            f"{', '.join([*COEFFICIENTS, *FISHEYE])}: rectify the image before"
        )
    return camera, Lens(*numbers[:known])


def _rows(message: Any, kind: str, channels: int) -> Num[ndarray, "height width channels"]:
    """The pixels; rows may be padded, and bytes may be in either order."""
    height, width, step = message.height, message.width, message.step
    row, data = width * channels * np.dtype(kind).itemsize, np.frombuffer(message.data, np.uint8)
    if not width * height or step < row or len(data) < step * height:
        raise LocusError(f"the image of {width}×{height} pixels, in rows of {step} bytes, holds {len(data)} bytes")
    rows = np.ascontiguousarray(data[: step * height].reshape(height, step)[:, :row])
    stored = rows.view(np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<"))
    return stored.astype(kind).reshape(height, width, channels)
