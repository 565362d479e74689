"""Replica as rendered for NICE-SLAM: `results/frame*.jpg`, `results/depth*.png`, `traj.txt`, `cam_params.json`.

`traj.txt` holds one world_from_camera a line; `cam_params.json` (in the folder or the one above) the intrinsics and the
depth scale.
"""

from pathlib import Path

from locus.errors import SceneError
from locus.geometry import Camera
from locus.opening import read_json
from locus.scenes.lens import Lens
from locus.scenes.reading import read_numbers
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import CalibratedFile


def detect(path: Path) -> bool:
    return (path / "traj.txt").is_file() and (path / "results").is_dir()


def read(path: Path, allow_outside: bool) -> Scene:
    camera, depth_scale = read_parameters(path)
    poses = read_numbers(path / "traj.txt")
    if poses.shape[1] != 16:
        raise SceneError(f"{path / 'traj.txt'} has {poses.shape[1]} numbers a line; a 4×4 pose has 16")
    images = sorted((path / "results").glob("frame*.[jp][pn]g"))
    sources, skipped = [], {}
    for image in images:
        number = image.stem.removeprefix("frame")  # the line of its pose; people keep every tenth frame or so
        if number.isdecimal() and int(number) < len(poses):
            depth, pose = image.with_name(f"depth{number}.png"), poses[int(number)].reshape(4, 4)
            sources.append(CalibratedFile(image.stem, image, depth, pose, camera, Lens()))
        else:
            skipped[image.stem] = "traj.txt has no line for it"
    return Scene(path.name, "replica", sources, Convention(depth_scale=depth_scale), skipped=skipped)


def read_parameters(path: Path) -> tuple[Camera, float]:
    files = [folder / "cam_params.json" for folder in (path, path.parent)]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise SceneError(f"neither {path} nor the folder above has the cam_params.json that comes with the data set")
    try:
        stored = read_json(file)["camera"]
        size = (int(stored["w"]), int(stored["h"]))
        fx, fy, cx, cy, scale = (float(stored[key]) for key in ("fx", "fy", "cx", "cy", "scale"))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise SceneError(f'{file} should hold "camera": {{w, h, fx, fy, cx, cy, scale}}, finite numbers') from None
    # Stored with whole-numbered pixel centres: cx is 599.5 for a width of 1200.
    return Camera(*size, fx, fy, cx + 0.5, cy + 0.5), scale
