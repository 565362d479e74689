"""The motion between two images of a published list, which brings intrinsics and true motions; no depth is needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray

from locus.evaluation.matchers import KeypointMatcher, keypoint_words
from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.metrics import error_of
from locus.evaluation.outcome import Outcome
from locus.evaluation.pose_tables import COUNTED, auc_table, errors_table, most
from locus.evaluation.predictions import PosePredictions
from locus.evaluation.protocols.frame_protocol import FrameProtocol, ProtocolScene
from locus.evaluation.scene_patches import EvaluationError
from locus.evaluation.specs import predictions
from locus.evaluation.table import Table
from locus.files import content_hash
from locus.geometry import Camera
from locus.keypoints.fusion import point_scales
from locus.scenes import Frame
from locus.scenes.lens import Lens
from locus.scenes.source import CalibratedFile
from locus.tasks.matching import PAPER, Matches, Rule, match, matched_pixels
from locus.tasks.placed_points import match_points, placed_points, points_fingerprint
from locus.tasks.relative_pose import relative_pose

KEPT = 64  # images whose features are kept: lists name the same ones close to each other

Ready = tuple[Callable[[Frame], Any], Callable[[Any, Any], Matches]]
"""What is made of one image, and what matches that of two."""


@dataclass(frozen=True)
class ImagePair:
    """Two images of a list, and the true motion between them."""

    a: str
    b: str
    b_from_a: Float[ndarray, "4 4"]


@dataclass(frozen=True, eq=False)
class PairScene(ProtocolScene):
    """The images that a list names, and its pairs."""

    pairs: tuple[ImagePair, ...] = ()

    def truth(self) -> object:
        return [(pair.a, pair.b, pair.b_from_a.tolist()) for pair in self.pairs]


@dataclass(frozen=True, eq=False)
class PairedImage(CalibratedFile):
    """An image as the protocol shows it to every method."""

    size: tuple[int, int]
    """(width, height) that it is resized to."""

    @classmethod
    def of(
        cls, name: str, path: Path, camera: Camera, size: tuple[int, int], pose: Float[ndarray, "4 4"] | None = None
    ) -> "PairedImage":
        """One that must be there, because leaving its pairs out would flatter. Only motions between images count."""
        if not path.is_file():
            raise EvaluationError(f"{path}, an image of the list, is missing")
        return cls(name, path, None, np.eye(4) if pose is None else pose, camera, Lens(), size)

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return cv2.resize(super().image(), self.size, interpolation=cv2.INTER_AREA)

    def image_size(self) -> tuple[int, int]:
        return self.size

    def image_state(self) -> str:
        return content_hash(super().image_state(), self.size)


@dataclass(frozen=True)
class PairPoses(FrameProtocol):
    """What all lists of pairs have in common."""

    rule: Literal["points", "mutual", "paper"] = "points"
    """What a model matches: keypoints; or patches, by mutual nearest neighbours or by the paper's filters."""
    radius: float = 0.2
    """Metres: which scale of a model of several is asked, where it matches patches."""
    seed: int = 0
    """Of RANSAC."""

    def fingerprint(self) -> Any:
        points = points_fingerprint() if self.rule == "points" else ""
        return [self.rule, self.radius, self.seed, points]  # where the list lies makes no difference

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return {**keypoint_words(given), **predictions(given, PosePredictions)}

    def measure(self, method: Competitor, scene: PairScene) -> dict[str, Any]:
        """Errors of every pair, None where there is no pose."""
        if isinstance(method, PosePredictions):
            poses = method.poses(scene.name, [(pair.a, pair.b) for pair in scene.pairs])
            found = [{"b_from_a": pose} for pose in poses]
        else:
            found = self._found(method, scene)
        return {"pairs": [_described(pair, **each) for pair, each in zip(scene.pairs, found, strict=True)]}

    def _found(self, method: Competitor, scene: PairScene) -> list[dict[str, Any]]:
        prepare, matched = self._ready(method)
        rows = {source.name: row for row, source in enumerate(scene.sources)}

        @lru_cache(maxsize=KEPT)
        def prepared(name: str) -> Any:
            frame = scene[rows[name]]
            return prepare(frame), frame.camera

        found = []
        for pair in scene.pairs:
            (a, camera_a), (b, camera_b) = prepared(pair.a), prepared(pair.b)
            matches = matched(a, b)
            answer = relative_pose(matches, camera_a, camera_b, seed=self.seed, min_probability=0)
            found.append({"b_from_a": answer.b_from_a, "matches": len(matches)})
        return found

    def _ready(self, method: Competitor) -> Ready:
        if isinstance(method, KeypointMatcher):

            def paired(a: Any, b: Any) -> Matches:
                rows, scores = method.pairing(a, b)
                return matched_pixels(a.pixels[rows[:, 0]], b.pixels[rows[:, 1]], scores, a.size, b.size)

            return lambda frame: method.detector.detect(frame.image), paired
        if not isinstance(method, ModelMethod):
            raise EvaluationError(f"{method.label} matches no images; name models, keypoints or predictions")
        model = method.model
        if self.rule == "points":
            scales = point_scales(model.radii)
            return lambda frame: placed_points(frame.image, model.features(frame.image).cpu()[scales]), match_points
        scale, rule = method.scale(self.radius), PAPER if self.rule == "paper" else Rule()

        def seen(frame: Frame) -> Any:
            return model.features(frame.image).cpu()[scale : scale + 1], (frame.camera.width, frame.camera.height)

        return seen, lambda a, b: match(a[0], b[0], a[1], b[1], rule)

    def tables(self, outcome: Outcome) -> list[Table]:
        """The area under the curve, and the paper's errors."""
        notes = [
            f"{most(outcome)} pairs; five points, {self.rule} matches, the true length of the translation.",
            *COUNTED,
        ]
        return [auc_table(outcome), errors_table(outcome, notes)]


def _described(pair: ImagePair, b_from_a: Float[ndarray, "4 4"] | None, **more: Any) -> dict[str, Any]:
    errors = None if b_from_a is None else error_of(b_from_a, pair.b_from_a, scale_from_truth=True)
    return {"frames": (pair.a, pair.b), "errors": errors, **more}
