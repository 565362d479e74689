"""Polycam's raw data: `keyframes/` with `images/`, `cameras/` and `depth/`, named alike.

Where the app has optimised a scan there are `corrected_images/` and `corrected_cameras/`, which are used. A camera's
JSON has world_from_camera with OpenGL axes as `t_00` … `t_23`, and intrinsics that count from the image's corner as
ours do. Depth is in millimetres and may be smaller than the image; where `confidence/` is 0 it is unknown.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import read_json
from locus.scenes.reading import believed
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import FileSource

KEYFRAMES = "keyframes"
FOLDERS = (("corrected_images", "corrected_cameras"), ("images", "cameras"))
POSE = [f"t_{row}{column}" for row in range(3) for column in range(4)]
INTRINSICS = ("width", "height", "fx", "fy", "cx", "cy")


def detect(path: Path) -> bool:
    return folders(path) is not None


def folders(path: Path) -> tuple[Path, Path] | None:
    """Where the images and the cameras are."""
    pairs = ((path / KEYFRAMES / images, path / KEYFRAMES / cameras) for images, cameras in FOLDERS)
    return next((pair for pair in pairs if all(folder.is_dir() for folder in pair)), None)


def read(path: Path, allow_outside: bool) -> Scene:
    found = folders(path)
    if found is None:
        raise SceneError(f"{path} holds no raw data of Polycam: it has no {KEYFRAMES} with images and cameras")
    images, cameras = found
    skipped: dict[str, str] = {}
    sources = []
    for image in sorted(images.iterdir(), key=lambda file: (len(file.stem), file.stem)):  # numbers, in their order
        if image.suffix.lower() not in (".jpg", ".jpeg", ".png"):
            continue
        camera = cameras / f"{image.stem}.json"
        if not camera.is_file():
            skipped[image.stem] = f"no file in {cameras.name}"
            continue
        maps = [path / KEYFRAMES / kind / f"{image.stem}.png" for kind in ("depth", "confidence")]
        depth, confidence = (file if file.is_file() else None for file in maps)
        sources.append(PolycamFrame(image.stem, image, depth, camera, confidence))
    return Scene(path.name, "polycam", sources, Convention(axes="opengl"), skipped=skipped)


@dataclass(frozen=True, eq=False)
class PolycamFrame(FileSource):
    camera_path: Path
    confidence_path: Path | None

    def depth(self) -> Num[ndarray, "h w"]:
        return believed(super().depth(), self.confidence_path)

    def depth_state(self) -> str:
        return self._state(self.depth_path, self.confidence_path)

    def camera(self) -> Camera:
        width, height, *numbers = self.numbers(INTRINSICS).tolist()
        return Camera(int(width), int(height), *numbers)

    def pose(self) -> Float[ndarray, "4 4"]:
        return np.vstack([self.numbers(POSE).reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])

    def numbers(self, keys: tuple[str, ...] | list[str]) -> Float[ndarray, "n"]:
        content = read_json(self.camera_path)
        try:
            numbers = np.array([content[key] for key in keys], dtype=np.float64)
        except (KeyError, TypeError, ValueError, IndexError):
            numbers = np.empty(0)
        if numbers.shape != (len(keys),) or not np.isfinite(numbers).all():
            raise LocusError(f'{self.camera_path} should hold finite numbers as "{keys[0]}" … "{keys[-1]}"')
        return numbers
