"""Writing the layout of the TUM RGB-D benchmark: `rgb.txt`, `depth.txt`, `groundtruth.txt` and `calibration.txt`.

Frames are listed by the times that name them; where their names are no times, one second apart. Depth is in 1/5000 m,
and there is one camera. Labels have no place in it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float
from numpy import ndarray

from locus.errors import SceneError
from locus.files import atomic_folder
from locus.geometry import Camera
from locus.progress import track
from locus.scenes.scene import Frame, Scene
from locus.scenes.trajectory import is_number, write_trajectory
from locus.scenes.writers.frame_files import save_depth, save_png, warn_of_far, write_readable

DEPTH_SCALE = 5000.0


class TumLine(NamedTuple):
    """What the lists say of one frame."""

    time: str
    file: str
    pose: Float[ndarray, "4 4"]
    has_depth: bool
    far: bool


def write(scene: Scene, path: Path, progress: bool = False) -> Path:
    names = [source.name for source in scene.sources]
    times = _times(names)
    # The lists are split at spaces, and by some programs at commas.
    stems = times if any(re.search(r"[\s,]", name) for name in names) else names
    listed = {name: (time, f"{stem}.png") for name, time, stem in zip(names, times, stems, strict=True)}
    cameras: list[Camera] = []

    def write_frame(frame: Frame) -> TumLine:
        image, pose = frame.image, frame.world_from_camera
        depth = frame.depth if frame.has_depth else None
        cameras.append(frame.camera)
        if frame.camera != cameras[0]:
            raise SceneError(
                f"frame {frame.name} has another camera than the first, and a TUM folder describes only one; "
                "use --to nerfstudio or --to colmap"
            )
        time, file = listed[frame.name]
        save_png(partial / "rgb" / file, image)
        far = depth is not None and save_depth(partial / "depth" / file, depth, DEPTH_SCALE)
        return TumLine(time, file, pose, depth is not None, far)

    with atomic_folder(path) as partial:
        lines = write_readable(track(scene, "writing frames", len(scene), progress), write_frame, path)
        for kind, listed_lines in (("rgb", lines), ("depth", [line for line in lines if line.has_depth])):
            rows = [f"{line.time} {kind}/{line.file}\n" for line in listed_lines]
            if rows:
                (partial / f"{kind}.txt").write_text("".join(["# time file\n", *rows]), encoding="utf-8")
        write_trajectory(partial / "groundtruth.txt", {line.time: line.pose for line in lines})
        # In OpenCV's convention, whose first pixel is at 0.
        numbers = (cameras[0].fx, cameras[0].fy, cameras[0].cx - 0.5, cameras[0].cy - 0.5)
        (partial / "calibration.txt").write_text(" ".join(map(repr, numbers)) + "\n", encoding="utf-8")
    warn_of_far(sum(line.far for line in lines), DEPTH_SCALE)
    return path


def _times(names: Sequence[str]) -> list[str]:
    if all(map(is_number, names)) and len({float(name) for name in names}) == len(names):
        return list(names)
    return [f"{number}.000000" for number in range(len(names))]
