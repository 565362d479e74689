"""The pairs of dense correspondence: ScanNet's by LoFTR's archive, and NAVI's objects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.protocols.dense_correspondence import DenseCorrespondence
from locus.evaluation.protocols.image_pairs import ImagePair, PairedImage, PairScene
from locus.evaluation.protocols.listed_pairs import archived_pairs
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera, invert, pose_error, pose_matrices, rigid
from locus.opening import read_json
from locus.scenes import SceneReading
from locus.scenes.reading import image_size

LARGEST_TURN = 120.0
EVERY = 4  # Probe3D asks about every fourth image of NAVI
LONGEST = 512  # pixels of NAVI's images as they are shown


@dataclass(frozen=True)
class Probe3D(DenseCorrespondence):
    """Probe3D's and LoCo's dense correspondence on ScanNet-1500, by viewpoint change.

    SCENE: one folder with test.npz and intrinsics.npz (LoFTR) and sceneXXXX_XX/color/N.jpg, depth/N.png, pose/N.txt.
    """

    name = "probe3d"
    pixels, unit, metres = (1.0, 5.0, 10.0, 20.0, 40.0), 4.0, ()
    turns, counted = (0.0, 15.0, 30.0, 60.0, 180.0), "10 px"

    def load(self, path: Path, reading: SceneReading) -> PairScene:
        scene = archived_pairs(path, path / "test.npz")
        sources = [
            replace(source, depth_path=path / source.name.split("/")[0] / "depth" / f"{source.image_path.stem}.png")
            for source in scene.sources
            if isinstance(source, PairedImage)
        ]
        return replace(scene, sources=sources)


@dataclass(frozen=True)
class Navi(DenseCorrespondence):
    """Probe3D's dense correspondence on NAVI: an object before other backgrounds, by viewpoint change.

    SCENE: folders of objects (navi_v1.0/*), each with wild_set/annotations.json, images/, depth/. The pairs are drawn
    here: Probe3D's depend on the order in which a disk lists files. Images are not cropped to the object.
    """

    seed: int = 8
    """Of the pairs."""

    name = "navi"
    pixels, unit, metres = (5.0, 25.0, 50.0), 1.0, (0.01, 0.02, 0.05)
    turns, counted = (0.0, 30.0, 60.0, 90.0, 120.0), "2 cm"

    def load(self, path: Path, reading: SceneReading) -> PairScene:
        folder = path / "wild_set"
        try:
            images = [_navi_image(folder, said) for said in read_json(folder / "annotations.json")]
        except LocusError as error:
            raise EvaluationError(f"{folder}: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise EvaluationError(f"{folder / 'annotations.json'} is not NAVI's (at {error})") from None
        pairs = self._pairs(sorted(images, key=lambda image: image.name))
        if not pairs:
            raise EvaluationError(f"{folder} has no two images within {LARGEST_TURN:g}° of each other")
        return PairScene(path.resolve().name, "pairs", images, folder=path, pairs=tuple(pairs))

    def _pairs(self, images: Sequence[PairedImage]) -> list[ImagePair]:
        """Every fourth image, with a random one that is turned by no more than 120°."""
        random = np.random.default_rng(self.seed)
        pairs = []
        for image in images[::EVERY]:
            turns = [pose_error(image.stored_pose, other.stored_pose)[1] for other in images]
            near = [k for k, turn in enumerate(turns) if 0 < turn <= LARGEST_TURN]
            if near:
                other = images[random.choice(near)]
                pairs.append(ImagePair(image.name, other.name, invert(other.stored_pose) @ image.stored_pose))
        return pairs


def _navi_image(folder: Path, said: Any) -> PairedImage:
    """The camera's pose in the object's frame, in metres; annotations map the object to the camera, in millimetres."""
    name = str(said["filename"])
    path = folder / "images" / Path(name).name
    camera = said["camera"]
    w, x, y, z = camera["q"]
    pose: Float[ndarray, "4 4"] = pose_matrices(np.array([[*camera["t"], x, y, z, w]], np.float64))[0]
    pose[:3, 3] /= 1000
    height, width = said["image_size"]
    focal = float(camera["focal_length"])
    scale = min(1.0, LONGEST / max(image_size(path)))
    shown = round(image_size(path)[0] * scale), round(image_size(path)[1] * scale)
    intrinsics = Camera(int(width), int(height), focal, focal, width / 2, height / 2)
    image = PairedImage.of(Path(name).stem, path, intrinsics, shown, invert(rigid(pose)))
    return replace(image, depth_path=folder / "depth" / f"{path.stem}.png")
