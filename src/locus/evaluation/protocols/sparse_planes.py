"""SparsePlanes' pairs of Matterport3D (Jin et al. 2021), which the paper's Table 3 is of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.protocols.image_pairs import ImagePair, PairedImage, PairPoses, PairScene
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera, invert, pose_error, pose_matrices, rigid
from locus.opening import read_json
from locus.scenes import Convention, SceneReading

CAMERA = Camera(640, 480, 517.97, 517.97, 320.0, 240.0)
"""What Habitat rendered the images with."""
HABITAT = Convention(axes="opengl")
FILE = Path("mp3d_planercnn_json") / "cached_set_test.json"
AGREE = (0.05, 2.0)  # metres and degrees that the two cameras of a pair may differ from the motion beside them


@dataclass(frozen=True)
class SparsePlanes(PairPoses):
    """SparsePlanes' pairs of Matterport3D, which see little of each other: the paper's Table 3.

    SCENE: one folder with mp3d_planercnn_json/cached_set_test.json and rgb/HOUSE/*.png, as SparsePlanes' archives have
    them. Its depth is pickled, and not needed.
    """

    name = "sparseplanes"

    def load(self, path: Path, reading: SceneReading) -> PairScene:
        file = path / FILE
        images: dict[str, PairedImage] = {}
        pairs = []
        try:
            for number, entry in enumerate(read_json(file)["data"]):
                poses = [HABITAT.world_from_camera(_pose(entry[side]["camera"])) for side in "01"]
                _check(poses, entry["rel_pose"], number)
                names = ["/".join(Path(entry[side]["file_name"]).parts[-2:]) for side in "01"]
                for name, pose in zip(names, poses, strict=True):
                    if name not in images:
                        size = CAMERA.width, CAMERA.height
                        images[name] = PairedImage.of(name, path / "rgb" / name, CAMERA, size, pose)
                pairs.append(ImagePair(names[0], names[1], invert(poses[1]) @ poses[0]))
        except LocusError as error:
            raise EvaluationError(f"{file}: {error}") from None
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise EvaluationError(f"{file} is not SparsePlanes' list of pairs (at {error})") from None
        if not pairs:
            raise EvaluationError(f"{file} has no pair")
        return PairScene(path.resolve().name, "pairs", list(images.values()), folder=path, pairs=tuple(pairs))


def _pose(said: Any) -> Float[ndarray, "4 4"]:
    """From a position and a quaternion, w first."""
    w, x, y, z = said["rotation"]
    return rigid(pose_matrices(np.array([[*said["position"], x, y, z, w]], np.float64))[0])


def _check(poses: list[Float[ndarray, "4 4"]], said: Any, number: int) -> None:
    """The list tells every motion twice; how far and how much it turns does not depend on the axes of its frames."""
    between, told = invert(poses[1]) @ poses[0], _pose(said)
    apart = abs(np.linalg.norm(between[:3, 3]) - np.linalg.norm(told[:3, 3]))
    turned = abs(pose_error(np.eye(4), between)[1] - pose_error(np.eye(4), told)[1])
    if apart > AGREE[0] or turned > AGREE[1]:
        raise EvaluationError(f"pair {number}: its two cameras and its rel_pose say different motions")
