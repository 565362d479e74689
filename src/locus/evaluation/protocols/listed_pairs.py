"""ScanNet-1500 by SuperGlue's list or LoFTR's archive, and MegaDepth-1500 by glue-factory's list."""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num
from numpy import ndarray

from locus.evaluation.outcome import Outcome
from locus.evaluation.pairs import PairLine, read_pairs
from locus.evaluation.protocols.image_pairs import ImagePair, PairedImage, PairPoses, PairScene
from locus.evaluation.published import SCANNET_1500
from locus.evaluation.scene_patches import EvaluationError
from locus.evaluation.table import Table
from locus.geometry import Camera, invert, rigid
from locus.scenes import SceneReading
from locus.scenes.reading import camera_from_opencv, image_size, path_inside, read_matrix

SHOWN = (640, 480)  # what SuperGlue and LoFTR resize ScanNet's images to; LoFTR's intrinsics are for it
RECORDED = (1296, 968)  # what SuperGlue's intrinsics are for
SCANNET = re.compile(r"(scene\d{4}_\d{2}).*?(\d+)(?:\.color)?\.(?:jpg|png)$")
LARGEST = 2**26  # bytes that an archive of a few thousand pairs may unpack to


@dataclass(frozen=True)
class ScanNet1500(PairPoses):
    """ScanNet-1500: the motion between two images, AUC at 5°, 10° and 20°.

    SCENE: one folder with scannet_test_pairs_with_gt.txt (SuperGlue) or test.npz and intrinsics.npz (LoFTR), and the
    images: sceneXXXX_XX/color/N.jpg (with pose/N.txt for LoFTR's list), or as SuperGlue's list names them.
    """

    name = "scannet1500"

    def load(self, path: Path, reading: SceneReading) -> PairScene:
        listed, archive = path / "scannet_test_pairs_with_gt.txt", path / "test.npz"
        if archive.is_file() and not listed.is_file():
            return archived_pairs(path, archive)
        images: dict[str, PairedImage] = {}
        lines = _complete(listed)
        for line in lines:
            for name, matrix in _calibrated(line):
                if name not in images:
                    camera = camera_from_opencv(matrix, RECORDED, listed)
                    images[name] = PairedImage.of(name, _scannet_file(path, name, reading), camera, SHOWN)
        return _scene(path, images, lines)

    def tables(self, outcome: Outcome) -> list[Table]:
        return [*super().tables(outcome), SCANNET_1500]


@dataclass(frozen=True)
class MegaDepth1500(PairPoses):
    """MegaDepth-1500: the motion between two photographs, AUC at 5°, 10° and 20°.

    SCENE: one folder with pairs_calibrated.txt and images/, as glue-factory's megadepth1500.zip has them.
    """

    longest: int = 1600
    """Pixels of an image's longer side."""

    name = "megadepth1500"

    def load(self, path: Path, reading: SceneReading) -> PairScene:
        listed, images = path / "pairs_calibrated.txt", {}
        lines = _complete(listed)
        for line in lines:
            for name, matrix in _calibrated(line):
                if name not in images:
                    file = path_inside(path / "images", name, reading.allow_outside)
                    size = image_size(file)
                    scale = min(1.0, self.longest / max(size))
                    shown = round(size[0] * scale), round(size[1] * scale)
                    # The list keeps COLMAP's numbers, which count pixels from the image's corner as we do.
                    camera = Camera(*size, *matrix[[0, 1, 0, 1], [0, 1, 2, 2]].tolist())
                    images[name] = PairedImage.of(name, file, camera, shown)
        return _scene(path, images, lines)

    def fingerprint(self) -> Any:
        return [super().fingerprint(), self.longest]


def _complete(file: Path) -> list[PairLine]:
    """A list whose lines say everything."""
    lines = read_pairs(file)
    bare = next((line for line in lines if line.b_from_a is None), None)
    if bare is not None:
        raise EvaluationError(f"{file}: the pair {bare} comes without intrinsics and motion")
    return lines


def _calibrated(line: PairLine) -> list[tuple[str, Num[ndarray, "3 3"]]]:
    assert line.intrinsics is not None
    return list(zip((line.a, line.b), line.intrinsics, strict=True))


def _scene(path: Path, images: dict[str, PairedImage], lines: list[PairLine]) -> PairScene:
    pairs = tuple(ImagePair(line.a, line.b, line.b_from_a) for line in lines if line.b_from_a is not None)
    return PairScene(path.resolve().name, "pairs", list(images.values()), folder=path, pairs=pairs)


def _scannet_file(root: Path, name: str, reading: SceneReading) -> Path:
    """An image of SuperGlue's list: under its own name, or where ScanNet's exporter and LoFTR put it."""
    own, said = path_inside(root, name, reading.allow_outside), SCANNET.search(name)
    if said is None:
        return own
    number = int(said[2])
    places = [own, root / said[1] / "color" / f"{number}.jpg"]
    places += [root / said[1] / "sens" / f"frame-{number:06d}.color.jpg"]
    return next((place for place in places if place.is_file()), places[1])


def archived_pairs(root: Path, archive: Path) -> PairScene:
    """LoFTR's: rows of scene, recording, and the numbers of two frames; motions are of ScanNet's own poses."""
    named = _arrays(archive)
    rows = named.get("name", np.zeros(0))
    if rows.ndim != 2 or rows.shape[1] != 4 or rows.dtype.kind not in "iu":
        raise EvaluationError(f"{archive} should have an array `name` of whole numbers, (pairs, 4), not {rows.shape}")
    matrices = _arrays(archive.with_name("intrinsics.npz"))
    images: dict[str, PairedImage] = {}
    pairs = []
    for room, recording, *numbers in rows.tolist():
        scene = f"scene{room:04d}_{recording:02d}"
        names = [f"{scene}/{number}" for number in numbers]
        for name, number in zip(names, numbers, strict=True):
            if name not in images:
                matrix = matrices.get(scene, np.zeros(0))
                if matrix.size != 9 or matrix.dtype.kind not in "fiu":
                    raise EvaluationError(f"{archive.with_name('intrinsics.npz')} has no 3×3 matrix for {scene}")
                pose = rigid(read_matrix(root / scene / "pose" / f"{number}.txt"))
                camera = camera_from_opencv(matrix.reshape(3, 3).astype(np.float64), SHOWN, archive)
                images[name] = PairedImage.of(name, root / scene / "color" / f"{number}.jpg", camera, SHOWN, pose)
        a, b = (images[name].stored_pose for name in names)
        pairs.append(ImagePair(names[0], names[1], invert(b) @ a))
    return PairScene(root.resolve().name, "pairs", list(images.values()), folder=root, pairs=tuple(pairs))


def _arrays(path: Path) -> dict[str, ndarray]:
    """The arrays of an .npz file, which may come from a stranger: nothing pickled, nothing that fills the memory."""
    if not path.is_file():
        raise EvaluationError(f"{path} is missing")
    try:
        with zipfile.ZipFile(path) as members:
            if sum(member.file_size for member in members.infolist()) > LARGEST:
                raise EvaluationError(f"{path} would unpack to more than {LARGEST >> 20} MiB and is refused")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        if all(isinstance(each, ndarray) for each in arrays.values()):  # a member that is no array is given as bytes
            return arrays
    except EvaluationError:
        raise
    except Exception:  # an archive's headers are Python expressions, and may fail like any
        pass
    raise EvaluationError(f"{path} is not an archive of plain arrays; download it again")
