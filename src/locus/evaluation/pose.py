"""Relative pose (Table 3): the motion between two frames of unseen scenes, from matches alone or with depth."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.calibration import judged_motion
from locus.evaluation.matchers import FeatureMatcher, Matcher, PointMatcher, TrueMatcher, keypoint_words
from locus.evaluation.methods import Competitor, Method, ModelMethod
from locus.evaluation.metrics import error_of
from locus.evaluation.outcome import Outcome, SampledSpots
from locus.evaluation.pairs import OVERLAP, FramePair, draw_pairs, named_pairs, read_pairs
from locus.evaluation.pose_tables import NOTHING, RIGHT, pose_figures, pose_tables
from locus.evaluation.predictions import PosePredictions
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least, read_patches
from locus.evaluation.specs import predictions
from locus.evaluation.table import Table
from locus.files import atomic, content_hash
from locus.geometry import transform
from locus.model import LoCUS
from locus.scenes import SceneReading
from locus.scenes.patches import points_at
from locus.tasks.matching import PAPER, Rule
from locus.tasks.placed_points import points_fingerprint
from locus.tasks.relative_pose import relative_pose

PATCHES = "+patches"  # after a model's name


@dataclass(frozen=True)
class RelativePoses(SampledSpots):
    """How well is the motion between two frames found (the paper's Table 3)?

    A model matches keypoints with its features at them; MODEL+patches is the same model by its patches alone.
    Further methods: sift-ratio, xfeat, xfeat-lighterglue, aliked-lightglue, disk-lightglue, superpoint-nn,
    superpoint-fginn, superpoint-lightglue, and predictions:FILE, the answers of a system run elsewhere
    (docs/evaluation.md).
    """

    pairs: int = 50
    """Pairs drawn from each scene for each range of overlap, as far as there are any."""
    overlap: tuple[float, ...] = OVERLAP
    """Where ranges of overlap begin and end, from 0 to 1: the lesser share that each frame sees of the other."""
    baseline: float = 0.0
    """Metres that the two cameras of a drawn pair are apart, at least."""
    pairs_file: Path | None = None
    """Instead: a file of lines `name_a name_b`, or of SuperGlue's 38 values, whose motion and intrinsics then count."""
    solver: Literal["5-point", "3d-3d"] = "5-point"
    """5-point RANSAC from pixels, or 3D–3D alignment with the depth of both frames."""
    translation_scale: Literal["truth", "metric"] = "truth"
    """Length of the estimated translation: the true one (the paper's protocol), or as estimated, which takes depth."""
    rule: Literal["points", "mutual", "paper"] = "points"
    """What a model matches: keypoints; or patches, by mutual nearest neighbours or by the paper's filters."""
    runs: int = 1
    """How often the motion is found from the same matches, with other seeds of RANSAC; each counts as a pair."""

    name = "pose"

    def __post_init__(self) -> None:
        at_least(1, pairs=self.pairs, runs=self.runs)
        edges = self.overlap
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)) or edges[0] < 0 or edges[-1] > 1:
            raise EvaluationError(f"--overlap takes two or more rising shares from 0 to 1, not {edges}")
        if self.translation_scale == "metric" and self.solver != "3d-3d":
            raise EvaluationError(
                "pixels alone do not give a translation's length; --translation-scale metric takes --solver 3d-3d"
            )

    def measure(self, method: Competitor, patches: ScenePatches) -> dict[str, Any]:
        """Errors of every pair of one scene, None where there is no pose; and what its matches are worth."""
        pairs = self.compared(patches)
        if isinstance(method, PosePredictions):
            poses = method.poses(patches.scene.name, [pair.names for pair in pairs])
            return {"pairs": [self._described(pair, found) for pair, found in zip(pairs, poses, strict=True)]}
        if isinstance(method, ModelMethod) and self.rule == "points":
            method = PointMatcher(method)
        elif isinstance(method, Method):
            method = FeatureMatcher(method, self.radius, PAPER if self.rule == "paper" else Rule())
        if not isinstance(method, Matcher):
            raise EvaluationError(f"{method.label} gives neither features nor matches")
        return {"pairs": [found for pair in pairs for found in self._matched(method, patches, pair)]}

    def compared(self, patches: ScenePatches) -> list[FramePair]:
        """The pairs of one scene."""
        if self.pairs_file is None:
            pairs = draw_pairs(patches, self.pairs, self.seed, self.overlap, self.baseline)
        else:
            pairs = named_pairs(patches, read_pairs(self.pairs_file))
        if not pairs:
            shares = f"see {self.overlap[0]:.0%} to {self.overlap[-1]:.0%} of each other"
            what = shares if self.pairs_file is None else f"are in {self.pairs_file}"
            raise EvaluationError(f"no two frames of {patches.scene.name} {what}")
        return pairs

    def _matched(self, matcher: Matcher, patches: ScenePatches, pair: FramePair) -> list[dict[str, Any]]:
        matches = matcher.match(patches, pair.a, pair.b)
        points = [
            points_at(patches.frame(pair.a).depth, pair.cameras[0], matches.pixels_a),
            points_at(patches.frame(pair.b).depth, pair.cameras[1], matches.pixels_b),
        ]
        apart = np.linalg.norm(transform(pair.b_from_a, points[0]) - points[1], axis=1)
        apart = apart[np.isfinite(apart)]
        # In patches of the common grid, for keypoints too, so that it means the same for all.
        stuck = replace(matches, grid_a=patches.grid, grid_b=patches.grid).stuck
        worth = {
            "matches": len(matches),
            "right": float((apart <= RIGHT).mean()) if len(apart) else None,
            "stuck": stuck if len(matches) else None,
        }
        known = points if self.solver == "3d-3d" else []
        answers = [
            relative_pose(matches, *pair.cameras, *known, min_probability=0.0, seed=self.seed + run)
            for run in range(self.runs)
        ]
        judged = [judged_motion(answer, pair.b_from_a) for answer in answers]
        if pair.overlap < NOTHING:
            judged = [each and each | {"elsewhere": True} for each in judged]
        return [
            self._described(pair, answer.b_from_a) | {"trust": each, **worth}
            for answer, each in zip(answers, judged, strict=True)
        ]

    def _described(self, pair: FramePair, estimated: Float[ndarray, "4 4"] | None) -> dict[str, Any]:
        truth = self.translation_scale == "truth"
        errors = None if estimated is None else error_of(estimated, pair.b_from_a, scale_from_truth=truth)
        return {"frames": pair.names, "overlap": pair.overlap, "errors": errors, "line": pair.line}

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        patches = {word: partial(self._by_patches, word) for word in given if word.endswith(PATCHES)}
        return {"truth": TrueMatcher, **keypoint_words(given), **predictions(given, PosePredictions), **patches}

    def _by_patches(self, word: str) -> FeatureMatcher:
        """A model's patches, by mutual nearest neighbours, whatever the rule."""
        name = word.removesuffix(PATCHES)
        method = ModelMethod(f"{Path(name).name}, patches", LoCUS.from_pretrained(name))
        return FeatureMatcher(method, self.radius)

    def fingerprint(self) -> Any:
        """A pairs file stands for what is in it, and points for what finds and matches them."""
        file = "None" if self.pairs_file is None else content_hash(self.pairs_file)
        return asdict(self) | {"pairs_file": file, "points": points_fingerprint() if self.rule == "points" else ""}

    def tables(self, outcome: Outcome) -> list[Table]:
        """Table 3, the AUC, both by overlap, and what matches are worth and answers say of themselves."""
        return pose_tables(outcome)

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """The share of pairs whose rotation is right to so many degrees; and what probabilities are worth."""
        return pose_figures(outcome)


def write_template(path: Path, protocol: RelativePoses, scenes: Sequence[Path], reading: SceneReading) -> int:
    """A predictions file with every pair and no pose, and how many there are."""
    lines = []
    for folder in scenes:
        patches = read_patches(reading.load(folder))
        for pair in protocol.compared(patches):
            a, b = pair.names
            lines.append(json.dumps({"scene": patches.scene.name, "a": a, "b": b, "b_from_a": None}))
    with atomic(path) as file:
        file.write_text("\n".join(lines) + "\n")
    return len(lines)
