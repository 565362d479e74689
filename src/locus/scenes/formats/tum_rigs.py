"""The cameras of data sets in TUM's layout: intrinsics, the unit of depth, and what the stored poses are poses of."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from re import search

import cv2
import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import SceneError
from locus.opening import read_text

# fx fy cx cy k1 k2 p1 p2 k3 of the benchmark's and Bonn's colour cameras, for 640×480, from their documentation.
BENCHMARK = {
    "1": (517.3, 516.5, 318.6, 255.3, 0.2624, -0.9531, -0.0054, 0.0026, 1.1633),
    "2": (520.9, 521.0, 325.1, 249.7, 0.2312, -0.7849, -0.0033, -0.0001, 0.9172),
    "3": (535.4, 539.2, 320.1, 247.6),
}
BONN = (542.822841, 542.576870, 315.593520, 237.756098, 0.039903, -0.099343, -0.000730, -0.000144, 0.0)

# Bonn's poses are of the markers on the camera. Its documentation gives the camera's as T_ROS · pose · T_ROS · T_m; the
# first factor turns the world alone. T_m is as printed there, a rotation but for a scale of about 1.06.
T_ROS = np.array([[-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
T_M = np.array(
    [
        [1.0157, 0.1828, -0.2389, 0.0113],
        [0.0009, -0.8431, -0.6413, -0.0098],
        [-0.3009, 0.6147, -0.8085, 0.0111],
        [0.0, 0.0, 0.0, 1.0],
    ]
)

LISTS = ("rgb.txt", "depth.txt", "groundtruth.txt")
OPENLORIS_LISTS = ("color.txt", "aligned_depth.txt", "groundtruth.txt")
IN_MEMORY = cv2.FILE_STORAGE_READ | cv2.FILE_STORAGE_MEMORY
MOST_LISTS = 1000
OPENLORIS_CAMERA, OPENLORIS_BASE = "d400_color_optical_frame", "base_link"


@dataclass(frozen=True, eq=False)
class TumRig:
    calibration: tuple[float, ...] | Path
    """fx fy cx cy and perhaps k1 k2 p1 p2 k3, or the file that has them."""
    size: tuple[int, int] | None = (640, 480)
    """(width, height) that the calibration is for; None for the images' own."""
    base_from_camera: Float[ndarray, "4 4"] = field(default_factory=lambda: np.eye(4))
    """Where the colour camera is in what the stored poses are poses of."""
    depth_scale: float = 5000.0


def lists_of(path: Path) -> tuple[str, str, str] | None:
    """The lists of colour images, depth images and poses that a folder has; that of depth images need not be there."""
    known = (LISTS, OPENLORIS_LISTS)
    return next((names for names in known if all((path / name).is_file() for name in (names[0], names[2]))), None)


def read_rig(path: Path) -> TumRig:
    """By a folder's name or its files; `calibration.txt` has the last word on the intrinsics."""
    file = path / "calibration.txt"
    found = search(r"freiburg([123])|rgbd_bonn", path.name)
    if lists_of(path) == OPENLORIS_LISTS:
        rig = openloris_rig(path)
    elif found is None:
        rig = TumRig(())
    else:
        rig = TumRig(BENCHMARK[found[1]]) if found[1] else TumRig(BONN, base_from_camera=bonn_camera())
    if file.is_file():
        return replace(rig, calibration=file, size=None)
    if not rig.calibration:
        raise SceneError(
            f"{path.name} does not say which TUM camera took it: put freiburg1, freiburg2 or freiburg3 into the "
            f"folder's name, or, for another camera, write 'fx fy cx cy' and, if its lens distorts, 'k1 k2 p1 p2 k3' "
            f"on one line to {file}"
        )
    return rig


def bonn_camera() -> Float[ndarray, "4 4"]:
    u, _, vt = np.linalg.svd(T_M[:3, :3])
    markers_from_camera = T_M.copy()
    markers_from_camera[:3, :3] = u @ vt
    return T_ROS @ markers_from_camera


def opencv_file(path: Path) -> cv2.FileStorage:
    """OpenCV's YAML. Its parser calls itself for every bracket, and a hundred thousand would end the program."""
    text = read_text(path)
    if sum(map(text.count, ("[", "{", "- "))) > MOST_LISTS:
        raise ValueError
    return cv2.FileStorage(text, IN_MEMORY)


def openloris_rig(path: Path) -> TumRig:
    """`sensors.yaml` has the colour camera's fx cx fy cy, `trans_matrix.yaml` the way from the robot's base to it."""
    sensors, transforms = path / "sensors.yaml", path / "trans_matrix.yaml"
    for file in (sensors, transforms):
        if not file.is_file():
            raise SceneError(f"{file} is missing, which describes OpenLORIS's camera")
    try:
        storage = opencv_file(sensors)
        camera = storage.getNode(OPENLORIS_CAMERA)
        fx, cx, fy, cy = camera.getNode("intrinsics").mat().reshape(-1).tolist()
        distortion = camera.getNode("distortion_coefficients").mat()
        size = (int(camera.getNode("width").real()), int(camera.getNode("height").real()))
    except Exception:  # OpenCV's parser raises nearly anything, in many lines
        raise SceneError(f"{sensors} does not describe OpenLORIS's {OPENLORIS_CAMERA}") from None
    lens = () if distortion is None else distortion.reshape(-1)[:5].tolist()
    try:
        storage = opencv_file(transforms)
        links = storage.getNode("trans_matrix")
        parents = {
            link.getNode("child_frame").string(): (link.getNode("parent_frame").string(), link.getNode("matrix").mat())
            for link in map(links.at, range(links.size()))
        }
        base_from_camera, frame = np.eye(4), OPENLORIS_CAMERA
        while frame != OPENLORIS_BASE:
            frame, parent_from_frame = parents.pop(frame)
            base_from_camera = parent_from_frame.reshape(4, 4) @ base_from_camera
    except Exception:
        raise SceneError(f"{transforms} does not lead from {OPENLORIS_BASE} to {OPENLORIS_CAMERA}") from None
    return TumRig((fx, fy, cx, cy, *lens), size, base_from_camera, 1000.0)
