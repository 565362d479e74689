"""What a `sensor_msgs/CameraInfo` says of a camera."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locus.errors import LocusError, SceneError
from locus.geometry import Camera, read_out
from locus.scenes.lens import Lens
from locus.scenes.reading import camera_from_opencv

INFO = "sensor_msgs/msg/CameraInfo"
FISHEYE = ("equidistant", "fisheye")
COEFFICIENTS = {"plumb_bob": 5, "rational_polynomial": 8} | dict.fromkeys(FISHEYE, 4)


@dataclass(frozen=True)
class Optics:
    """A camera and its lens."""

    camera: Camera
    lens: Lens

    def agrees(self, other: "Optics") -> bool:
        """Whether both put the same point on the same pixel, at either's resolution."""
        resized = other.camera.resized(self.camera.width, self.camera.height)
        return self.lens == other.lens and np.allclose(self.camera.matrix, resized.matrix, rtol=1e-3)


def optics(message: Any, topic: str, rectified: bool) -> Optics:
    """Of an image as it was taken, or of one that was rectified: then by P, and without distortion."""
    d, k, p = (getattr(message, name if hasattr(message, name) else name.upper()) for name in "dkp")  # ROS 1: D, K, P
    matrix = p.reshape(3, 4)[:, :3] if rectified else k.reshape(3, 3)
    if matrix[0, 0] == 0:
        raise SceneError(f"{topic} says that its camera is not calibrated ({'P' if rectified else 'K'} is zero)")
    try:
        camera = camera_from_opencv(matrix, (message.width, message.height), Path(topic))
        return Optics(read_out(camera, message), Lens() if rectified else _lens(d, message.distortion_model))
    except SceneError:
        raise
    except LocusError as error:
        raise SceneError(f"{topic}: {error}") from None


def _lens(coefficients: np.ndarray, model: str) -> Lens:
    numbers = coefficients.tolist()
    if model in FISHEYE and np.isfinite(coefficients).all():
        k1, k2, k3, k4 = (numbers + [0.0] * 4)[:4]
        return Lens(k1, k2, k3=k3, k4=k4, fisheye=True)
    if not any(numbers):
        return Lens()
    known = COEFFICIENTS.get(model)
    if known is None or any(numbers[known:]) or not np.isfinite(coefficients).all():
        raise LocusError(f"its lens is {model} with {len(numbers)} coefficients; known are {', '.join(COEFFICIENTS)}")
    return Lens(*numbers[:known])
