"""ScanNet as its exporter writes it: `color/ depth/ pose/ intrinsic/`, and `label-filt/ instance-filt/` where unpacked.

Poses are world_from_camera, depth in millimetres. Colour and depth have cameras of their own; depth is carried to the
colour image through both. Labels become NYU40 classes where `scannetv2-labels.combined.tsv` lies in the scene's folder
or up to two above; without it they keep ScanNet's own numbers, unnamed.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int32, Num
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes.reading import camera_from_opencv, read_labels, read_matrix
from locus.scenes.scene import LabelClass, Scene, class_kind
from locus.scenes.source import FileSource

TABLE = "scannetv2-labels.combined.tsv"
OFF_CENTRE = 0.05  # of the image, both ways; real ones stay within 0.02, those for another image size do not
LAST_RAW_ID = 1357  # the highest id in that table


def detect(path: Path) -> bool:
    return all((path / name).is_dir() for name in ("color", "depth", "pose", "intrinsic"))


def read(path: Path, allow_outside: bool) -> Scene:
    images = sorted((path / "color").glob("*.[jp][pn]g"), key=lambda file: (len(file.stem), file.stem))
    tables = [folder / TABLE for folder in (path, path.parent, path.parent.parent) if (folder / TABLE).is_file()]
    labelled = (path / "label-filt").is_dir()
    table = tables[0] if tables and labelled else None
    classes: tuple[LabelClass, ...] = ()
    if table is not None:
        classes = read_table(table)[1]
    elif labelled:
        classes = tuple(LabelClass(i, f"ScanNet label {i}", "thing") for i in range(1, LAST_RAW_ID + 1))
    sources = [ScanNetFrame(i.stem, i, path / "depth" / f"{i.stem}.png", path, table) for i in images]
    return Scene(path.name, "scannet", sources, classes=classes)


@lru_cache(maxsize=4)
def read_table(path: Path) -> tuple[Int32[ndarray, "ids"], tuple[LabelClass, ...]]:
    """NYU40's id for each raw id (0 where there is none), and the NYU40 classes."""
    names: dict[int, str] = {}
    nyu40_of = np.zeros(65536, np.int32)
    try:
        for row in csv.DictReader(read_text(path).splitlines(), delimiter="\t"):
            raw, nyu40 = int(row["id"]), int(row["nyu40id"] or 0)
            nyu40_of[raw] = nyu40
            if nyu40 > 0:
                names[nyu40] = row["nyu40class"]
    except (KeyError, ValueError, IndexError, TypeError, OverflowError, csv.Error) as error:
        raise SceneError(f"{path} is not ScanNet's table of labels ({error})") from None
    return nyu40_of, tuple(LabelClass(i, names[i], class_kind(names[i])) for i in sorted(names))


def seen_by(colour: Camera, depth: Num[ndarray, "a b"], own: Camera) -> Num[ndarray, "h w"]:
    """A depth map of a camera that stands where the colour camera does, at each pixel of the colour image.

    The same ray in both images: the two cameras differ in their intrinsics alone.
    """
    rows, columns = depth.shape
    x = (np.arange(colour.width) + 0.5 - colour.cx) / colour.fx * own.fx + own.cx
    y = (np.arange(colour.height) + 0.5 - colour.cy) / colour.fy * own.fy + own.cy
    x, y = np.floor(x.clip(-1, columns)).astype(int), np.floor(y.clip(-1, rows)).astype(int)
    inside = ((y >= 0) & (y < rows))[:, None] & ((x >= 0) & (x < columns))
    return np.where(inside, depth[np.ix_(y.clip(0, rows - 1), x.clip(0, columns - 1))], depth.dtype.type(0))


@dataclass(frozen=True, eq=False)
class ScanNetFrame(FileSource):
    root: Path
    table: Path | None

    def depth(self) -> Num[ndarray, "h w"]:
        depth = super().depth()
        rows, columns = depth.shape
        return seen_by(self.camera(), depth, self.intrinsics("intrinsic_depth.txt", (columns, rows)))

    def depth_state(self) -> str:
        return self._state(self.depth_path, self.root / "intrinsic" / "intrinsic_depth.txt")

    def camera(self) -> Camera:
        return self.intrinsics("intrinsic_color.txt", self.image_size())

    def intrinsics(self, name: str, size: tuple[int, int]) -> Camera:
        file = self.root / "intrinsic" / name
        camera = camera_from_opencv(read_matrix(file, 3), size, file)
        right, down = camera.cx / camera.width - 0.5, camera.cy / camera.height - 0.5
        if min(abs(right), abs(down)) > OFF_CENTRE and right * down > 0:
            raise LocusError(
                f"{file} is not for images of {size[0]}×{size[1]}: its principal point would lie far from the centre; "
                "export the images at their own size, or scale the intrinsics with them"
            )
        return camera

    def pose(self) -> Float[ndarray, "4 4"]:
        return read_matrix(self.root / "pose" / f"{self.name}.txt")

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        raw = self.labels("label-filt")
        if raw is None or self.table is None:
            return raw
        nyu40_of, _ = read_table(self.table)
        unknown = np.setdiff1d(np.unique(raw), [0, *np.flatnonzero(nyu40_of)])
        if unknown.size:
            raise LocusError(
                f"its label-filt map holds ids without a NYU40 class in {self.table}: {unknown[:5].tolist()}"
            )
        return nyu40_of[raw]

    def instance(self) -> Int32[ndarray, "h w"] | None:
        return self.labels("instance-filt")

    def label_files(self) -> Sequence[Path]:
        maps = (self.root / folder / f"{self.name}.png" for folder in ("label-filt", "instance-filt"))
        return (*maps, *((self.table,) if self.table is not None else ()))

    def labels(self, folder: str) -> Int32[ndarray, "h w"] | None:
        return read_labels(self.root / folder / f"{self.name}.png") if (self.root / folder).is_dir() else None
