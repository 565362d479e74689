"""ARKitScenes, raw: `lowres_wide/`, `lowres_depth/`, `confidence/`, `lowres_wide_intrinsics/` and `lowres_wide.traj`.

Files are named by their times. Each colour image has the depth map and the intrinsics nearest in time; its pose is
interpolated between those of the trajectory, which are ten a second. Depth is in millimetres; depth of low confidence
is unknown.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.scenes.reading import believed, camera_from_four, read_numbers
from locus.scenes.scene import Scene
from locus.scenes.source import PosedFile
from locus.scenes.timing import TOGETHER, mutual_nearest, nearest, poses_at

TRAJECTORY = "lowres_wide.traj"


def detect(path: Path) -> bool:
    return (frames_folder(path) / TRAJECTORY).is_file()


def frames_folder(path: Path) -> Path:
    """Where the files are: in the folder, or, of those for 3D object detection, one below it."""
    below = path / f"{path.name}_frames"
    return below if below.is_dir() else path


def read(path: Path, allow_outside: bool) -> Scene:
    root = frames_folder(path)
    image_times, images = timed_files(root, "lowres_wide")
    depth_times, depths = timed_files(root, "lowres_depth")
    camera_times, cameras = timed_files(root, "lowres_wide_intrinsics")
    if not cameras:
        raise SceneError(f"{root / 'lowres_wide_intrinsics'} holds no intrinsics; download that part as well")
    poses, posed = poses_at(image_times, *read_trajectory(root / TRAJECTORY))
    depth_of = mutual_nearest(image_times, depth_times, TOGETHER)
    camera_of = nearest(image_times, camera_times).tolist()
    sources, skipped = [], {}
    for k, image in enumerate(images):
        if not posed[k]:
            skipped[image.stem] = f"no pose at its time {image_times[k]:.3f}"
        elif abs(camera_times[camera_of[k]] - image_times[k]) > TOGETHER:
            skipped[image.stem] = f"no intrinsics within {TOGETHER * 1000:.0f} ms"
        else:
            depth = depths[depth_of[k]] if depth_of[k] >= 0 else None
            confidence = None
            if depth is not None and (root / "confidence" / depth.name).exists():
                confidence = root / "confidence" / depth.name
            sources.append(ARKitFrame(image.stem, image, depth, poses[k], cameras[camera_of[k]], confidence))
    return Scene(path.name, "arkitscenes", sources, skipped=skipped)


def timed_files(root: Path, folder: str) -> tuple[Float[ndarray, "n"], list[Path]]:
    """Files named like `41048190_3414.285.png`, and their times, in order."""
    files = (root / folder).iterdir() if (root / folder).is_dir() else ()
    found = ((re.fullmatch(r".*_([0-9]{1,12}\.[0-9]{1,9})\.(?:png|pincam)", file.name), file.name) for file in files)
    timed = sorted((float(match[1]), name) for match, name in found if match)
    return np.array([time for time, _ in timed]), [root / folder / name for _, name in timed]


def read_trajectory(path: Path) -> tuple[Float[ndarray, "n"], Float[ndarray, "n 7"]]:
    """(times, positions and quaternions of world_from_camera) of lines `time axis-angle translation`, the other way."""
    rows = read_numbers(path)
    if rows.shape[1] != 7:
        raise SceneError(f"{path}: each line should hold a time, three angles and a translation")
    rows = rows[np.isfinite(rows).all(axis=1)]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    camera_to_world = Rotation.from_rotvec(rows[:, 1:4]).inv() if len(rows) else Rotation.from_quat(np.empty((0, 4)))
    return rows[:, 0], np.hstack([-camera_to_world.apply(rows[:, 4:7]), camera_to_world.as_quat()])


@dataclass(frozen=True, eq=False)
class ARKitFrame(PosedFile):
    camera_path: Path
    confidence_path: Path | None

    def camera(self) -> Camera:
        numbers = read_numbers(self.camera_path)[0]
        if len(numbers) != 6 or not np.isfinite(numbers).all():
            raise LocusError(f"{self.camera_path} should hold 'width height fx fy cx cy'")
        return camera_from_four(numbers[2:].tolist(), (int(numbers[0]), int(numbers[1])), self.camera_path)

    def depth(self) -> Num[ndarray, "h w"]:
        return believed(super().depth(), self.confidence_path)

    def depth_state(self) -> str:
        return self._state(self.depth_path, self.confidence_path)
