"""7-Scenes: `seq-*/frame-*.color.png`, or the same files flat in one folder (also 3DMatch's way).

Poses are world_from_camera, depth in millimetres. `camera-intrinsics.txt` (3×3, in the folder or the one above) is used
where there is one. The official release has none and leaves colour and depth unregistered; its authors give 585 pixels
and the image's centre, which is what stands here then.
"""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray

from locus.geometry import Camera
from locus.scenes.reading import camera_from_opencv, read_matrix
from locus.scenes.scene import Scene
from locus.scenes.source import FileSource

OFFICIAL = Camera(640, 480, 585.0, 585.0, 320.0, 240.0)
COLOUR = "frame-*.color.*"


def detect(path: Path) -> bool:
    return any(True for folder in folders(path) for _ in folder.glob(COLOUR))


def folders(path: Path) -> list[Path]:
    """The folders that hold frames: the sequences, or the folder itself."""
    return sorted(folder for folder in path.glob("seq-*") if folder.is_dir()) or [path]


def read(path: Path, allow_outside: bool) -> Scene:
    sources: list[FileSource] = []
    for folder in folders(path):
        beside = [f for f in (folder / "camera-intrinsics.txt", folder.parent / "camera-intrinsics.txt") if f.is_file()]
        prefix = "" if folder == path else f"{folder.name}/"
        for image in sorted(folder.glob(COLOUR)):
            stem = image.name.split(".")[0]
            depth, pose = folder / f"{stem}.depth.png", folder / f"{stem}.pose.txt"
            sources.append(SevenScenesFrame(prefix + stem, image, depth, pose, beside[0] if beside else None))
    return Scene(path.name, "7scenes", sources)


@dataclass(frozen=True, eq=False)
class SevenScenesFrame(FileSource):
    pose_path: Path
    intrinsics: Path | None

    def camera(self) -> Camera:
        if self.intrinsics is None:
            return OFFICIAL
        return camera_from_opencv(read_matrix(self.intrinsics, 3), self.image_size(), self.intrinsics)

    def pose(self) -> Float[ndarray, "4 4"]:
        return read_matrix(self.pose_path)
