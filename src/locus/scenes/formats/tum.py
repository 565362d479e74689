"""TUM RGB-D: `rgb.txt`, `depth.txt` and `groundtruth.txt`, each a list of timestamps. Also what SLAM tools write.

Each colour image is paired with the depth image nearest in time, unless there is no `depth.txt`; its pose is
interpolated between the two nearest poses. The cameras of the benchmark and of Bonn's are known by the folder's name,
OpenLORIS's by its own files, and lens distortion is undone; for any other camera a `calibration.txt` holds
`fx fy cx cy` and, if the lens distorts, `k1 k2 p1 p2 k3`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes.formats.tum_rigs import LISTS, TumRig, lists_of, read_rig
from locus.scenes.lens import Lens
from locus.scenes.reading import camera_from_four, frame_name, names_file, path_inside, read_numbers
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import PosedFile
from locus.scenes.timing import TOGETHER, mutual_nearest, poses_at


def detect(path: Path) -> bool:
    return lists_of(path) is not None


def read(path: Path, allow_outside: bool) -> Scene:
    skipped: dict[str, str] = {}
    colour, depth_list, truth = lists_of(path) or LISTS
    rgb_times, rgb_files = read_list(path / colour, 1, skipped)
    has_depth = (path / depth_list).is_file()
    depth_times, depth_files = read_list(path / depth_list, 1, skipped) if has_depth else (np.zeros(0), [])
    pose_times, pose_rows = read_list(path / truth, 7, skipped)
    poses, posed = poses_at(rgb_times, pose_times, pose_numbers(pose_rows, path / truth))
    depth_of = mutual_nearest(rgb_times, depth_times, TOGETHER)
    rig = read_rig(path)
    sources = []
    for k, ((file,), depth) in enumerate(zip(rgb_files, depth_of, strict=True)):
        name = frame_name(file, colour.removesuffix(".txt"))
        image = path_inside(path, file, allow_outside)
        if has_depth and depth < 0:
            skipped[name] = f"no depth image within {TOGETHER * 1000:.0f} ms"
        elif not posed[k]:
            skipped[name] = f"no pose at its time {rgb_times[k]:.6f}"
        else:
            depth_image = path_inside(path, depth_files[depth][0], allow_outside) if has_depth else None
            sources.append(TumFrame(name, image, depth_image, poses[k] @ rig.base_from_camera, rig))
    return Scene(path.name, "tum", sources, Convention(depth_scale=rig.depth_scale), skipped=skipped)


def read_list(path: Path, columns: int, skipped: dict[str, str]) -> tuple[Float[ndarray, "n"], list[list[str]]]:
    """(times, the columns after the time), in the order of time; a time that comes again is skipped and counted."""
    entries: dict[float, list[str]] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
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


def calibration_numbers(path: Path) -> tuple[float, ...]:
    numbers = read_numbers(path)[0]
    if len(numbers) < 4:
        raise SceneError(f"{path} should hold 'fx fy cx cy' and perhaps 'k1 k2 p1 p2 k3' on one line")
    return tuple(numbers.tolist())


@dataclass(frozen=True, eq=False)
class TumFrame(PosedFile):
    rig: TumRig

    def camera(self) -> Camera:
        file = self.rig.calibration if isinstance(self.rig.calibration, Path) else "the known calibration"
        return camera_from_four(self.numbers()[:4], self.rig.size or self.image_size(), file)

    def lens(self) -> Lens:
        return Lens(*self.numbers()[4:9])

    def numbers(self) -> tuple[float, ...]:
        known = self.rig.calibration
        return calibration_numbers(known) if isinstance(known, Path) else known
