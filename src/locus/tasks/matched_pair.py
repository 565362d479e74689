"""Two images matched, and how the camera moved between them: in sentences, and for machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from locus.geometry import invert, pose_error
from locus.keypoints.fusion import point_scales
from locus.model import LoCUS
from locus.scenes.patches import points_at
from locus.tasks.matching import Matches, Rule, match
from locus.tasks.named_images import CalibratedImage
from locus.tasks.placed_points import match_points, placed_points
from locus.tasks.relative_pose import RelativePose, relative_pose
from locus.tasks.uncertainty import deviations


@dataclass(frozen=True, eq=False)
class MatchedPair:
    """What two images share."""

    a: CalibratedImage
    b: CalibratedImage
    matches: Matches
    pose: RelativePose

    @classmethod
    def of(
        cls,
        model: LoCUS,
        a: CalibratedImage,
        b: CalibratedImage,
        rule: Rule | None = None,
        min_probability: float | None = None,
    ) -> "MatchedPair":
        """Match two images; the pose is from points in space where both have depth.

        Keypoints are matched, with the model's features at them; with a rule, the patches themselves by that rule. A
        pose that is less likely right than `min_probability` is none, as of `relative_pose`.
        """
        features = model.features(a.image), model.features(b.image)
        return cls.of_features(*features, model.radii, a, b, rule, min_probability)

    @classmethod
    def of_features(
        cls,
        features_a: Float[Tensor, "scales rows_a columns_a c"],
        features_b: Float[Tensor, "scales rows_b columns_b c"],
        radii: Sequence[float],
        a: CalibratedImage,
        b: CalibratedImage,
        rule: Rule | None = None,
        min_probability: float | None = None,
    ) -> "MatchedPair":
        """The same from the images' features, of a model with these radii."""
        scales = point_scales(radii) if rule is None else np.argsort(radii).tolist()
        features_a, features_b = features_a[scales], features_b[scales]
        if rule is None:
            matches = match_points(placed_points(a.image, features_a), placed_points(b.image, features_b))
        else:
            matches = match(features_a, features_b, a.size, b.size, rule)
        points = [
            None if each.depth is None else points_at(each.depth, each.camera, pixels)
            for each, pixels in ((a, matches.pixels_a), (b, matches.pixels_b))
        ]
        pose = relative_pose(matches, a.camera, b.camera, *points, min_probability=min_probability)
        return cls(a, b, matches, a.trusted(b.trusted(pose)))

    @property
    def true_b_from_a(self) -> Float[ndarray, "4 4"] | None:
        """Known of two frames of one scene."""
        a, b = self.a, self.b
        if a.scene is None or b.scene is None or a.scene.folder != b.scene.folder:
            return None
        assert a.world_from_camera is not None
        assert b.world_from_camera is not None
        return invert(b.world_from_camera) @ a.world_from_camera

    @property
    def errors(self) -> dict[str, float] | None:
        """Of the pose, if the true one is known."""
        truth, found = self.true_b_from_a, self.pose.b_from_a
        if truth is None or found is None:
            return None
        metres, degrees = pose_error(found, truth)
        errors = {"rotation_degrees": degrees}
        if self.pose.metric:
            errors["translation_metres"] = metres
        lengths = np.linalg.norm(found[:3, 3]) * np.linalg.norm(truth[:3, 3])
        if self.pose.direction_known and lengths > 1e-9:
            cosine = np.clip(found[:3, 3] @ truth[:3, 3] / lengths, -1, 1)
            errors["direction_degrees"] = float(np.degrees(np.arccos(cosine)))
        return errors

    @property
    def sentences(self) -> list[str]:
        """What was found, for people."""
        matches, pose = self.matches, self.pose
        stuck = f"; {matches.stuck:.0%} at the same image position (stuck there, or the camera hardly moved)"
        sentences = [f"matches: {len(matches)}{stuck if len(matches) else ''}"]
        if pose.b_from_a is None:
            return [*sentences, f"no pose: {pose.reason}"]
        right = "5° and 0.1 m" if pose.metric else "5°"
        likely = "" if pose.probability is None else f", right to {right} with probability {pose.probability:.2f}"
        agree = f"{pose.inliers.sum()} of {len(matches)} matches agree{likely}"
        turned = f"B sees A's camera turned by {pose_error(np.eye(4), pose.b_from_a)[1]:.1f}°"
        sentences += [f"pose by {pose.solver}: {agree}", f"  {turned}, {self._moved}"]
        if pose.covariance is not None:
            moved, degrees = deviations(pose.covariance)
            metres = f"{moved:.2f} m" if pose.metric else f"{np.degrees(np.arctan(moved)):.1f}° in direction"
            sentences.append(f"  ± {degrees:.1f}°, {metres}")
        if pose.reason:
            sentences.append(f"  mind: {pose.reason}")
        if (errors := self.errors) is not None:
            off = [f"{errors['rotation_degrees']:.1f}°"]
            if "direction_degrees" in errors:
                off.append(f"{errors['direction_degrees']:.1f}° in the direction of the translation")
            if "translation_metres" in errors:
                off.append(f"{errors['translation_metres']:.2f} m")
            sentences.append(f"off the true pose by {', '.join(off)}")
        return sentences

    @property
    def _moved(self) -> str:
        """Where camera A is, seen from B."""
        assert self.pose.b_from_a is not None
        if not self.pose.direction_known:
            return "the direction of the translation is not known"
        x, y, z = self.pose.b_from_a[:3, 3]
        if self.pose.metric:
            return f"at {x:.2f} {y:.2f} {z:.2f} m (right, down, forward)"
        return f"in the direction {x:.2f} {y:.2f} {z:.2f} (right, down, forward), how far is not known"

    def described(self) -> dict[str, Any]:
        """All of it, for machines."""
        matches, pose = self.matches, self.pose
        return {
            "images": [
                {"name": each.name, "size": each.size, "camera_guessed": each.guessed}
                | _listed(each.camera, "fx", "fy", "cx", "cy")
                for each in (self.a, self.b)
            ],
            "matches": _listed(matches, "pixels_a", "pixels_b", "patches_a", "patches_b", "scores")
            | {"inliers": pose.inliers.tolist(), "stuck": matches.stuck if len(matches) else None},
            "pose": _listed(pose, "b_from_a", "covariance", "probability", "solver")
            | _listed(pose, "metric", "direction_known", "reason", "alternative"),
            **_listed(self, "true_b_from_a", "errors"),
        }


def _listed(of: object, *names: str) -> dict[str, Any]:
    """Properties by their names, arrays as lists."""
    values = {name: getattr(of, name) for name in names}
    return {name: value.tolist() if isinstance(value, ndarray) else value for name, value in values.items()}
