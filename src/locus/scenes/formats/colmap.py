"""A COLMAP model (`sparse/0`, `sparse` or the folder itself) with depth maps. Needs pycolmap: the extra `colmap`.

Depth comes from `stereo/depth_maps/*.geometric.bin` (COLMAP's own, in the model's unit), or from `depth/` beside
`images/`: PNGs in millimetres or .npy in the model's unit. Poses are camera_from_world; pixel centres lie at 0.5 as
ours do. A model from images alone has no metric scale: scale it first (`model_aligner`), or radii mean nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.scenes.files import MAX_PIXELS, frame_name, path_inside, read_depth, read_image
from locus.scenes.lens import Lens
from locus.scenes.scene import Convention, FileSource, Scene

# Where each model keeps fx, fy, cx, cy and then k1, k2, p1, p2 in its parameters.
MODELS = {
    "SIMPLE_PINHOLE": (0, 0, 1, 2),
    "PINHOLE": (0, 1, 2, 3),
    "SIMPLE_RADIAL": (0, 0, 1, 2, 3),
    "RADIAL": (0, 0, 1, 2, 3, 4),
    "OPENCV": (0, 1, 2, 3, 4, 5, 6, 7),
}


def model_folder(path: Path) -> Path | None:
    for folder in (path / "sparse" / "0", path / "sparse", path):
        if any((folder / f"cameras.{ending}").is_file() for ending in ("bin", "txt")):
            return folder
    return None


def detect(path: Path) -> bool:
    return model_folder(path) is not None


def read(path: Path, allow_outside: bool = False) -> Scene:
    try:
        import pycolmap
    except ImportError:
        raise SceneError("COLMAP models need pycolmap: pip install 'locus-features[colmap]'") from None
    folder = model_folder(path)
    try:
        model = pycolmap.Reconstruction(str(folder))
    except Exception as error:  # pycolmap raises whatever its C++ side meets
        raise SceneError(f"{folder} is not a COLMAP model that can be read ({str(error).splitlines()[-1]})") from None
    cameras = {i: (model_camera(camera), model_lens(camera)) for i, camera in model.cameras.items()}
    stereo = (path / "stereo" / "depth_maps").is_dir()
    sources = []
    for image in sorted((model.images[i] for i in model.reg_image_ids()), key=lambda image: image.name):
        file = path_inside(path / "images", image.name, allow_outside)
        camera, lens = cameras[image.camera_id]
        pose = np.vstack([image.cam_from_world().matrix(), [0.0, 0.0, 0.0, 1.0]])
        depth = path / "stereo" / "depth_maps" / f"{image.name}.geometric.bin" if stereo else depth_beside(path, image)
        sources.append(ColmapFrame(frame_name(image.name, "images"), file, depth, camera, lens, pose))
    millimetres = bool(sources) and sources[0].depth_path.suffix == ".png"
    convention = Convention(pose="camera_from_world", depth_scale=1000.0 if millimetres else 1.0)
    return Scene(path.name, "colmap", sources, convention)


def depth_beside(path: Path, image: Any) -> Path:
    stem = (path / "depth" / image.name).with_suffix("")
    array = stem.with_name(stem.name + ".npy")
    return array if array.is_file() else stem.with_name(stem.name + ".png")


def model_camera(camera: Any) -> Camera:
    if camera.model_name not in MODELS:
        raise SceneError(
            f"the COLMAP camera model {camera.model_name} is not supported; run colmap image_undistorter first"
        )
    fx, fy, cx, cy = (float(camera.params[i]) for i in MODELS[camera.model_name][:4])
    return Camera(camera.width, camera.height, fx, fy, cx, cy)


def model_lens(camera: Any) -> Lens:
    return Lens(*(float(camera.params[i]) for i in MODELS[camera.model_name][4:]))


@dataclass(frozen=True, eq=False)
class ColmapFrame(FileSource):
    depth_path: Path
    intrinsics: Camera
    lens: Lens
    camera_from_world: Float[ndarray, "4 4"]

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.lens.undistort_image(read_image(self.image_path), self.intrinsics)

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_path.suffix == ".bin":
            return read_dense_map(self.depth_path)
        return self.lens.undistort_map(read_depth(self.depth_path), self.intrinsics)

    def camera(self) -> Camera:
        return self.intrinsics

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.camera_from_world


def read_dense_map(path: Path) -> Float[ndarray, "h w"]:
    """COLMAP's dense maps: the text `width&height&channels&`, then float32 values, rows first."""
    try:
        header, _, rest = path.read_bytes().partition(b"&")
        height, _, rest = rest.partition(b"&")
        channels, _, values = rest.partition(b"&")
        shape = (int(height), int(header))
    except FileNotFoundError:
        raise LocusError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise LocusError(f"{path} is not a COLMAP depth map ({error})") from None
    pixels = shape[0] * shape[1]
    if channels != b"1" or not 0 < pixels <= MAX_PIXELS or len(values) != 4 * pixels:
        raise LocusError(f"{path} is not a whole COLMAP depth map of one channel")
    return np.frombuffer(values, "<f4").reshape(shape)
