"""Stray Scanner: `odometry.csv`, `rgb.mp4`, `camera_matrix.csv`, and PNGs in `depth/` and `confidence/`.

A line of `odometry.csv` is a frame of the video: its number and pose, world_from_camera with OpenCV axes, and in newer
recordings its intrinsics, for which `camera_matrix.csv` stands in older ones. Depth is in millimetres and has its
frame's number; depth of low confidence is unknown.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import pose_matrices
from locus.opening import read_text
from locus.scenes.reading import believed, read_depth, read_matrix
from locus.scenes.scene import Scene
from locus.scenes.video import Video, VideoFrame

TABLE = "odometry.csv"
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
INTRINSICS = ("fx", "fy", "cx", "cy")


def detect(path: Path) -> bool:
    return (path / TABLE).is_file() and (path / "rgb.mp4").is_file()


def read(path: Path, allow_outside: bool) -> Scene:
    video = Video(path / "rgb.mp4")
    _ = video.size  # a video that cannot be opened is found here
    columns = read_table(path / TABLE)
    numbers = columns["frame"].astype(int).tolist()
    poses = pose_matrices(np.stack([columns[name] for name in POSE], axis=1))
    if all(name in columns for name in INTRINSICS):
        intrinsics = np.stack([columns[name] for name in INTRINSICS], axis=1)
    else:
        matrix = read_matrix(path / "camera_matrix.csv", 3, ",")
        intrinsics = np.tile(matrix[[0, 1, 0, 1], [0, 1, 2, 2]], (len(numbers), 1))
    depths, confidences = (_numbered(path / folder) for folder in ("depth", "confidence"))
    sources = [
        StrayFrame(f"{number:06d}", video, number, pose, tuple(four), depths.get(number), confidences.get(number))
        for number, pose, four in zip(numbers, poses, intrinsics.tolist(), strict=True)
    ]
    return Scene(path.name, "strayscanner", sources)


def read_table(path: Path) -> dict[str, Float[ndarray, "n"]]:
    """Its columns by their names."""
    try:
        header, *rows = [row for row in csv.reader(read_text(path).splitlines(), skipinitialspace=True) if row]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
    except (ValueError, csv.Error) as error:
        raise SceneError(f"{path} is not a table of numbers below their names ({error})") from None
    columns = {name.strip(): table[:, column] for column, name in enumerate(header)}
    missing = [name for name in ("frame", *POSE) if name not in columns]
    if missing:
        raise SceneError(f"{path} has no column {' or '.join(missing)}")
    if not ((columns["frame"] >= 0) & (columns["frame"] < 2**31)).all():
        raise SceneError(f"{path}: the column frame should hold the numbers of frames")
    return columns


def _numbered(folder: Path) -> dict[int, Path]:
    """The files of a folder by the numbers that they are named by."""
    files = folder.iterdir() if folder.is_dir() else ()
    return {
        int(file.stem): file
        for file in files
        if file.suffix in (".png", ".npy") and file.stem.isascii() and file.stem.isdecimal()
    }


@dataclass(frozen=True, eq=False)
class StrayFrame(VideoFrame):
    depth_path: Path | None
    confidence_path: Path | None

    def has_depth(self) -> bool:
        return self.depth_path is not None

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_path is None:
            return super().depth()
        return believed(read_depth(self.depth_path), self.confidence_path)
