"""TUM RGB-D: `rgb.txt`, `depth.txt` and `groundtruth.txt`, each a list of timestamps. Also what SLAM tools write.

Each colour image is paired with the depth image nearest in time, unless there is no `depth.txt`; its pose is
interpolated between the two nearest poses. The benchmark's three cameras are known by the folder's name and their lens
distortion is undone; for any other camera a `calibration.txt` holds `fx fy cx cy` and, if the lens distorts,
`k1 k2 p1 p2 k3`.
"""

from dataclasses import dataclass
from pathlib import Path
from re import search

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import Camera
from locus.scenes.lens import Lens
from locus.scenes.reading import camera_from_opencv, frame_name, names_file, path_inside, read_numbers
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import PosedFile
from locus.scenes.timing import TOGETHER, mutual_nearest, poses_at

# fx fy cx cy k1 k2 p1 p2 k3 of the benchmark's colour cameras, for 640×480, from its documentation.
BENCHMARK = {
    "1": (517.3, 516.5, 318.6, 255.3, 0.2624, -0.9531, -0.0054, 0.0026, 1.1633),
    "2": (520.9, 521.0, 325.1, 249.7, 0.2312, -0.7849, -0.0033, -0.0001, 0.9172),
    "3": (535.4, 539.2, 320.1, 247.6),
}
LISTS = ("rgb.txt", "groundtruth.txt")


def detect(path: Path) -> bool:
    return all((path / name).is_file() for name in LISTS)


def read(path: Path, allow_outside: bool) -> Scene:
    skipped: dict[str, str] = {}
    rgb_times, rgb_files = read_list(path / "rgb.txt", 1, skipped)
    has_depth = (path / "depth.txt").is_file()
    depth_times, depth_files = read_list(path / "depth.txt", 1, skipped) if has_depth else (np.zeros(0), [])
    pose_times, pose_rows = read_list(path / "groundtruth.txt", 7, skipped)
    poses, posed = poses_at(rgb_times, pose_times, pose_numbers(pose_rows, path / "groundtruth.txt"))
    depth_of = mutual_nearest(rgb_times, depth_times, TOGETHER)
    calibration = read_calibration(path)
    sources = []
    for k, ((file,), depth) in enumerate(zip(rgb_files, depth_of, strict=True)):
        name = frame_name(file, "rgb")
        image = path_inside(path, file, allow_outside)
        if has_depth and depth < 0:
            skipped[name] = f"no depth image within {TOGETHER * 1000:.0f} ms"
        elif not posed[k]:
            skipped[name] = f"no pose at its time {rgb_times[k]:.6f}"
        else:
            depth_image = path_inside(path, depth_files[depth][0], allow_outside) if has_depth else None
            sources.append(TumFrame(name, image, depth_image, poses[k], calibration))
    return Scene(path.name, "tum", sources, Convention(depth_scale=5000.0), skipped=skipped)


def read_list(path: Path, columns: int, skipped: dict[str, str]) -> tuple[Float[ndarray, "n"], list[list[str]]]:
    """(times, the columns after the time), in the order of time; a time that comes again is skipped and counted."""
    entries: dict[float, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), start=1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            time = float(fields[0])
        except ValueError:
            time = np.nan
        if not np.isfinite(time) or len(fields) < 1 + columns or not names_file(fields[1]):
            raise SceneError(f"{path}, line {number}: expected a time and {columns} more columns, found {line[:60]!r}")
        if time in entries:
            skipped[f"{path.name} line {number}"] = f"the time {fields[0]} is claimed by an earlier line already"
        else:
            entries[time] = fields[1 : 1 + columns]
    times = sorted(entries)
    return np.array(times), [entries[time] for time in times]


def pose_numbers(rows: list[list[str]], path: Path) -> Float[ndarray, "n 7"]:
    """Positions and quaternions, as the lines of a trajectory have them."""
    try:
        return np.array(rows, dtype=np.float64).reshape(-1, 7)
    except ValueError:
        raise SceneError(f"{path}: each line should hold a time, a position and a quaternion, all numbers") from None


def read_calibration(path: Path) -> tuple[float, ...] | Path:
    """The benchmark's numbers, or the file that holds this camera's."""
    file = path / "calibration.txt"
    if file.is_file():
        return file
    found = search(r"freiburg([123])", path.name)
    if found is None:
        raise SceneError(
            f"{path.name} does not say which TUM camera took it (freiburg1, 2 or 3); for another camera write "
            f"'fx fy cx cy' and, if its lens distorts, 'k1 k2 p1 p2 k3' on one line to {file}"
        )
    return BENCHMARK[found[1]]


@dataclass(frozen=True, eq=False)
class TumFrame(PosedFile):
    calibration: tuple[float, ...] | Path

    def camera(self) -> Camera:
        fx, fy, cx, cy = self.numbers()[:4]
        known = isinstance(self.calibration, tuple)
        size = (640, 480) if known else self.image_size()
        matrix = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        return camera_from_opencv(matrix, size, Path("the known calibration") if known else self.calibration)

    def lens(self) -> Lens:
        return Lens(*self.numbers()[4:9])

    def numbers(self) -> tuple[float, ...]:
        if isinstance(self.calibration, tuple):
            return self.calibration
        numbers = read_numbers(self.calibration)[0]
        if len(numbers) < 4:
            raise SceneError(f"{self.calibration} should hold 'fx fy cx cy' and perhaps 'k1 k2 p1 p2 k3' on one line")
        return tuple(numbers.tolist())
