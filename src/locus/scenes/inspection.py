"""`inspect`: is this scene sound? Its frames are loaded once, and the result fits on one screen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32, Int
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.progress import track
from locus.scenes.consistency import (
    ENOUGH,
    NEAR,
    SOUND,
    Carried,
    Diagnosis,
    camera_doubt,
    consistency_of_frames,
    diagnose,
)
from locus.scenes.covisibility import overlap_of
from locus.scenes.frame_summary import FrameSummary, without_name
from locus.scenes.scene import Convention, Scene
from locus.scenes.visibility import GRID, FrameGeometry, each_frame

ODD = 0.75  # a frame less consistent with those that see most of it than this deserves a look
MOST_READ = 5000  # frames; of a longer scene so many, evenly spread, are read
MOST_COMPARED = 500  # frames compared with each other, evenly spread too
MOVES = 1.0  # metres in all: what a camera that moves more leaves open, it does not for lack of motion
SAMPLE, APART = 24, 10  # frames that `doubt` compares, and the most frames from one to the next


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`."""

    scene: Scene
    read: int
    """How many of its frames were read: all, or a sample of them."""
    summaries: Sequence[FrameSummary]
    unreadable: dict[str, str]
    """Frames that could not be read, and why."""
    unlabelled: dict[str, str]
    """Frames whose labels alone could not be read, and why."""
    compared: Sequence[int]
    """Which of the summaries were compared with each other."""
    geometries: Sequence[FrameGeometry]
    """Of those."""
    overlap: Float32[ndarray, "c c"]
    diagnosis: Diagnosis
    frame_consistency: Float32[ndarray, "c"]
    """Of each compared frame with those that see most of it."""

    @property
    def sampled(self) -> bool:
        return self.read < len(self.scene)

    @property
    def sound(self) -> bool:
        return self.diagnosis.sound

    @property
    def repair(self) -> dict[str, str | float]:
        """The arguments of `load_scene` that would make the scene consistent; empty if none is needed or known."""
        return self.diagnosis.repair.differences(self.scene.convention) if self.diagnosis.repair else {}

    @property
    def options(self) -> str:
        """The same for the command line."""
        return " ".join(
            f"--{name.replace('_', '-')} {value if isinstance(value, str) else f'{value:g}'}"
            for name, value in self.repair.items()
        )

    @property
    def verdict(self) -> str:
        """One sentence: sound or not, why, and what to do."""
        diagnosis = self.diagnosis
        share = f"{np.nan_to_num(diagnosis.as_read.consistency):.0%}"
        on_surface = "of the pixels that another frame should see lie on the surface it sees"
        if diagnosis.repair is not None and diagnosis.repaired is not None:
            return (
                f"Not sound as read: only {share} {on_surface}. With {self.options} it is "
                f"{diagnosis.repaired.consistency:.0%}. Convert the scene once, with "
                f"`locus convert SCENE {self.options} --out FOLDER`, and use the result."
            )
        if not diagnosis.conclusive:
            return (
                "Cannot tell: too few pixels of one frame land in another, or the camera hardly moves. The frames may "
                "not overlap, or have too little depth; look at the overlap and the pictures."
            )
        if diagnosis.sound:
            text = f"Sound: {share} {on_surface}."
            open_questions = [name.replace("_", " ") for name in diagnosis.undecided]
            if open_questions:
                little = "moves too little" if self._path() < MOVES else "sees too little from different places"
                text += f" But the camera {little} to check this: {', '.join(open_questions)}."
            return text
        return (
            f"Not sound: only {share} {on_surface} (sound data reach {SOUND:.0%}), and none of the usual mistakes "
            "explains it. Drifting poses, depth that is not aligned with colour, or a wrong calibration look like this."
        )

    def odd_frames(self) -> dict[str, str]:
        """Frames that can be read but deserve a look, and why."""
        odd = {}
        for summary in self.summaries:
            if summary.coverage < 0.05:
                odd[summary.name] = f"depth is known at {summary.coverage:.0%} of its pixels"
            elif summary.contrast < 3:
                odd[summary.name] = "its image has only one colour"
        best = self.best_overlap()
        for row, index in enumerate(self.compared):
            name, own = self.summaries[index].name, self.frame_consistency[row]
            if name in odd:
                continue
            if self.sound and own < ODD:
                odd[name] = f"only {own:.0%} of its pixels agree with other frames: is its pose wrong?"
            elif self.sound and len(self.compared) == len(self.summaries) and best[row] < 0.05:
                odd[name] = "no other frame sees any of it"
        return odd

    def best_overlap(self) -> Float32[ndarray, "c"]:
        """For each compared frame, the largest share of it that another one sees."""
        others = np.where(np.eye(len(self.overlap), dtype=bool), 0, self.overlap)
        return others.max(axis=1, initial=0)

    def cloud(self) -> Float32[ndarray, "n 3"]:
        """The world points of all valid patches of the compared frames."""
        return np.concatenate([np.empty((0, 3), np.float32), *(geometry.points for geometry in self.geometries)])

    def facts(self) -> list[tuple[str, str]]:
        """What was found, as (subject, sentence)."""
        frames = f"{len(self.scene)} in the format {self.scene.format}, "
        if self.sampled:
            frames += f"a sample of {self.read} looked at, evenly spread, "
        frames += f"{len(self.summaries)} of them readable"
        return [
            ("frames", frames),
            ("images", self._images()),
            ("camera", self._camera()),
            ("depth", self._depth()),
            ("extent", self._extent()),
            ("overlap", self._overlap()),
            ("labels", self._labels()),
            ("skipped", _listed(self.scene.skipped)),
            ("unreadable", _listed(self.unreadable)),
            ("odd", _listed(self.odd_frames())),
            ("read as", _described(self.scene.convention)),
            ("consistency", self._consistency()),
        ]

    def _images(self) -> str:
        sizes = Counter((s.camera.width, s.camera.height) for s in self.summaries)
        return ", ".join(f"{w}×{h} pixels ({count})" for (w, h), count in sizes.most_common(3))

    def _camera(self) -> str:
        values = np.array([[s.camera.fx, s.camera.fy, s.camera.cx, s.camera.cy] for s in self.summaries])
        shown = (_range(column) for column in values.T)
        wide = self.summaries[0].camera
        angles = (
            2 * np.degrees(np.arctan(size / 2 / f)) for size, f in ((wide.width, wide.fx), (wide.height, wide.fy))
        )
        text = " ".join(f"{name} {value}" for name, value in zip(("fx", "fy", "cx", "cy"), shown, strict=True))
        text += "; field of view " + " × ".join(f"{angle:.0f}°" for angle in angles)
        return "; ".join(filter(None, [text, camera_doubt(wide)]))

    def _depth(self) -> str:
        depths = np.array([s.depths for s in self.summaries])
        coverage = np.array([s.coverage for s in self.summaries])
        if np.isnan(depths).all():
            return "none at all"
        low, middle, high = np.nanmin(depths[:, 0]), np.nanmedian(depths[:, 1]), np.nanmax(depths[:, 2])
        points = len(self.cloud()) / max(1, len(self.geometries) * GRID[0] * GRID[1])
        return (
            f"{low:.2f} to {high:.2f} m, median {middle:.2f} m; known at {coverage.mean():.0%} of pixels "
            f"({coverage.min():.0%} to {coverage.max():.0%} a frame); {points:.0%} of patches have a 3D point"
        )

    def _path(self) -> float:
        """Metres that the camera moves."""
        positions = np.array([s.position for s in self.summaries])
        return float(np.linalg.norm(np.diff(positions, axis=0), axis=1).sum())

    def _extent(self) -> str:
        cloud = self.cloud()
        moves = f"the camera moves {'at least ' if self.sampled else ''}{self._path():.1f} m in all"
        if not len(cloud):
            return moves
        size = " × ".join(f"{side:.1f}" for side in np.percentile(cloud, 99, axis=0) - np.percentile(cloud, 1, axis=0))
        return f"{size} m seen; {moves}"

    def _overlap(self) -> str:
        best = self.best_overlap()
        lonely = int((best < 0.2).sum())
        if len(best) < 2:
            return "there is no other frame to compare with"
        text = f"for the median frame, the best other frame sees {np.median(best):.0%} of it"
        return text + f"; {lonely} of {len(best)} frames have no other that sees 20%"

    def _labels(self) -> str:
        problems = f"; not readable: {_listed(self.unlabelled)}" if self.unlabelled else ""
        total = sum((s.labels for s in self.summaries), Counter())
        if not total:
            return "none" + problems
        names = {label.id: label.name for label in self.scene.classes}
        pixels = sum(total.values())
        seen = Counter({names[id]: count for id, count in total.items() if id})
        shown = ", ".join(f"{name} {count / pixels:.0%}" for name, count in seen.most_common(4))
        return f"{len(seen)} classes seen: {shown}{' …' if len(seen) > 4 else ''}{problems}"

    def _consistency(self) -> str:
        a = self.diagnosis.as_read
        return (
            f"of {self.diagnosis.points:,} pixels projected into other frames, {a.agree:.0%} land on the surface seen "
            f"there, {a.behind:.0%} behind it (hidden), {a.before:.1%} in front of it (wrong); the rest fall outside "
            "the image or where no depth is known"
        )


def inspect(scene: Scene, progress: bool = False) -> Inspection:
    """Load every frame once and tell whether poses, depth and intrinsics fit together, and what else is odd.

    Of a scene of more than 5000 frames, so many are looked at, evenly spread.
    """
    if not len(scene):
        raise SceneError(f"{scene.name} has no frames to inspect")
    sample = replace(scene, sources=[scene.sources[index] for index in _spread(len(scene), MOST_READ)])
    kept = {sample.sources[index].name for index in _spread(len(sample), MOST_COMPARED)}
    looks = each_frame(lambda frame: FrameSummary.of(frame, frame.name in kept), sample)
    summaries: list[FrameSummary] = []
    unreadable: dict[str, str] = {}
    for source, look in zip(sample.sources, track(looks, "reading frames", len(sample), progress), strict=True):
        if isinstance(look, LocusError):
            unreadable[source.name] = without_name(look, source.name)
        else:
            summaries.append(look)
    if not summaries:
        name, reason = next(iter(unreadable.items()))
        raise SceneError(f"none of the {len(sample)} frames of {scene.name} can be read; {name}: {reason}")
    geometries = [summary.geometry for summary in summaries if summary.geometry is not None]
    return Inspection(
        scene=scene,
        read=len(sample),
        summaries=summaries,
        unreadable=unreadable,
        unlabelled={summary.name: summary.label_problem for summary in summaries if summary.label_problem},
        compared=[row for row, summary in enumerate(summaries) if summary.geometry is not None],
        geometries=geometries,
        overlap=(shares := overlap_of(len(geometries), lambda: enumerate(geometries), len(geometries)).toarray()),
        diagnosis=diagnose(geometries, scene.convention),
        frame_consistency=consistency_of_frames(geometries, shares, scene.convention),
    )


def doubt(scene: Scene) -> str:
    """Why a scene should not be used as it is read, by a sample of its frames; empty if nothing speaks against it."""
    first = max(0, (len(scene) - SAMPLE * APART) // 2)
    part = scene[first : first + SAMPLE * APART]
    sample = replace(part, sources=[part.sources[index] for index in _spread(len(part), SAMPLE)])
    looks = each_frame(FrameGeometry.of, sample)
    geometries = [look for look in looks if not isinstance(look, LocusError)]
    as_read = Carried(geometries, scene.convention).agreement(scene.convention, NEAR)
    if as_read.agree < ENOUGH or as_read.consistency < SOUND:  # so it is worth to look for the mistake
        found = inspect(sample) if geometries else None
        if found is not None and found.diagnosis.conclusive and not found.sound:
            return found.verdict
    return camera_doubt(geometries[0].camera) if geometries else ""


def _spread(count: int, most: int) -> Int[ndarray, " n"]:
    """Which of so many things to take, evenly spread, if not all can be taken."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _described(convention: Convention) -> str:
    plain = convention.differences(Convention())
    mistakes = "".join(f", {name} {plain[name]}" for name in ("rotation", "intrinsics") if name in plain)
    return (
        f"{convention.pose} poses, {convention.axes} axes, {convention.depth_scale:g} depth units per metre{mistakes}"
    )


def _range(values: Float[ndarray, "n"]) -> str:
    low, high = values.min(), values.max()
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f}–{high:.1f}"


def _listed(reasons: Mapping[str, str]) -> str:
    if not reasons:
        return "none"
    shown = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3])
    return f"{len(reasons)} ({shown}{' …' if len(reasons) > 3 else ''})"
