"""Relative pose of pairs of frames: the solvers with perfect features, a model, its bare backbone, SIFT, SuperPoint.

    python benchmarks/pose.py MODEL SCENE... [--pairs N] [--cache DIR]

Pairs are drawn by overlap: as many of little (0.1 to 0.25 of the patches seen by both), medium (to 0.5) and large
overlap, with cameras at least 10 cm apart. A pair without a pose counts as 180° and infinitely far. A five-point
translation is given its true length, as in the paper. AUC is of the larger one of the errors of rotation and direction.
PCA is fitted to the tokens of the tested frames. SuperPoint is run only where its weights can be had.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import torch
from locus.tasks.shift import shift_followed
from torch.nn.functional import normalize

from locus import load_scene
from locus.features.cache import cache_scene
from locus.features.dense import scene_features
from locus.geometry import invert, pose_error, transform
from locus.model import LoCUS
from locus.model.hub import hub_answers
from locus.model.pca import principal_components
from locus.scenes import Frame
from locus.scenes.patches import patch_points
from locus.tasks.matching import PAPER, Matches, Rule, match
from locus.tasks.relative_pose import RelativePose, points_at, relative_pose

OVERLAPS = (0.1, 0.25, 0.5, 1.01)
LEAST_BASELINE = 0.1
RIGHT = 0.3  # metres
FINE = 64  # patches across an image, of the finer grid that perfect features are also tried on
KEYPOINT_THRESHOLD = 1.5  # pixels off an epipolar line, for matches of keypoints
SUPERPOINT = "magic-leap-community/superpoint"


@dataclass(eq=False)
class View:
    """A frame and what the methods see of it."""

    frame: Frame
    learned: torch.Tensor
    reduced: torch.Tensor

    @property
    def size(self) -> tuple[int, int]:
        return self.frame.camera.width, self.frame.camera.height

    @property
    def grid(self) -> tuple[int, int]:
        return self.learned.shape[1], self.learned.shape[2]

    @cached_property
    def coarse(self) -> torch.Tensor:
        return perfect(self.frame, self.grid)

    @cached_property
    def fine(self) -> torch.Tensor:
        return perfect(self.frame, (FINE * self.size[1] // self.size[0], FINE))

    @cached_property
    def sift(self) -> tuple[np.ndarray, np.ndarray]:
        points, descriptors = cv2.SIFT_create().detectAndCompute(
            cv2.cvtColor(self.frame.image, cv2.COLOR_RGB2GRAY), None
        )
        # OpenCV puts the centre of the top-left pixel at (0, 0).
        return np.array([point.pt for point in points]).reshape(-1, 2) + 0.5, descriptors


@dataclass(frozen=True)
class Pair:
    a: View
    b: View
    overlap: float

    @property
    def b_from_a(self) -> np.ndarray:
        return invert(self.b.frame.world_from_camera) @ self.a.frame.world_from_camera


def perfect(frame: Frame, grid: tuple[int, int], width: float = 0.2, count: int = 128) -> torch.Tensor:
    """Random Fourier features of the true points: their cosine falls with the distance; 0 where there is no point."""
    waves = np.random.default_rng(0).normal(size=(3, count)) / width
    phases = patch_points(frame, grid)[0] @ waves
    features = np.concatenate([np.cos(phases), np.sin(phases)], axis=-1) / np.sqrt(count)
    return torch.from_numpy(np.nan_to_num(features)).float()[None]


def pairs_of(path: Path, model: LoCUS, cache: Path | None, count: int) -> Iterator[Pair]:
    scene = load_scene(path)
    cached = cache_scene(scene, model.backbone, model.resolution, folder=cache)
    learned = scene_features(model, scene, cache)
    tokens = torch.from_numpy(np.asarray(cached.tokens[:, cached.prefix :], np.float32))
    components = principal_components(tokens.flatten(0, 1), 64)
    reduced = normalize(components(tokens), dim=-1).unflatten(1, cached.grid)
    views: dict[int, View] = {}
    for row in range(len(learned)):
        views[row] = View(learned.frame(row), learned.features[:, row], reduced[None, row])
    poses = np.stack([views[row].frame.world_from_camera for row in range(len(learned))])
    apart = np.linalg.norm(poses[:, None, :3, 3] - poses[None, :, :3, 3], axis=-1) >= LEAST_BASELINE
    overlap = np.triu(np.minimum(cached.overlap, cached.overlap.T), 1) * apart
    random = np.random.default_rng(0)
    for low, high in pairwise(OVERLAPS):
        found = np.argwhere((overlap >= low) & (overlap < high))
        for a, b in found[random.permutation(len(found))[: count // 3]]:
            yield Pair(views[a], views[b], float(overlap[a, b]))


def of_maps(pair: Pair, kind: str, rule: Rule) -> Matches:
    return match(getattr(pair.a, kind), getattr(pair.b, kind), pair.a.size, pair.b.size, rule)


def of_keypoints(pair: Pair, pixels_a: np.ndarray, pixels_b: np.ndarray, scores: np.ndarray) -> Matches:
    """Keypoints as matches of patches of one pixel, but with the model's grid, so that `stuck` means the same."""
    flat = [y.astype(int) * 100_000 + x.astype(int) for x, y in (pixels_a.T, pixels_b.T)]
    return Matches(pixels_a, pixels_b, scores, *flat, pair.a.size, pair.b.size, pair.a.grid, pair.b.grid)


def of_sift(pair: Pair, ratio: float = 0.8) -> Matches:
    (pixels_a, a), (pixels_b, b) = pair.a.sift, pair.b.sift
    if a is None or b is None or len(b) < 2:
        return of_keypoints(pair, np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0))
    nearest = [(one, two) for one, two in cv2.BFMatcher().knnMatch(a, b, k=2) if one.distance < ratio * two.distance]
    index_a, index_b = (np.array([getattr(one, name) for one, _ in nearest], int) for name in ("queryIdx", "trainIdx"))
    scores = np.array([1 - one.distance / max(two.distance, 1e-9) for one, two in nearest])
    return of_keypoints(pair, pixels_a[index_a], pixels_b[index_b], scores)


def superpoint() -> Callable[[Pair], Matches]:
    """SuperPoint with mutual nearest neighbours; an OSError where its weights cannot be had."""
    from transformers import SuperPointForKeypointDetection

    network = SuperPointForKeypointDetection.from_pretrained(SUPERPOINT, local_files_only=not hub_answers()).eval()

    @torch.no_grad()
    def keypoints(view: View) -> tuple[np.ndarray, torch.Tensor]:
        found = network(torch.from_numpy(view.frame.image.transpose(2, 0, 1).copy())[None].float() / 255)
        present = found.mask[0].bool()
        relative = found.keypoints[0, present].double().numpy()  # in shares of the image's size
        return relative * np.array(view.size) + 0.5, normalize(found.descriptors[0, present], dim=-1)

    def matches(pair: Pair) -> Matches:
        (pixels_a, a), (pixels_b, b) = keypoints(pair.a), keypoints(pair.b)
        scores = a @ b.T
        forth, back = scores.argmax(dim=1), scores.argmax(dim=0)
        mutual = (back[forth] == torch.arange(len(a))).nonzero()[:, 0]
        pixels = pixels_a[mutual.numpy()], pixels_b[forth[mutual].numpy()]
        return of_keypoints(pair, *pixels, scores[mutual, forth[mutual]].double().numpy())

    return matches


@dataclass(frozen=True)
class Outcome:
    rotation: float
    translation: float
    direction: float
    answer: RelativePose
    matches: int
    right: float
    stuck: float
    overlap: float


def solve(pair: Pair, matches: Matches, solver: str, threshold: float | None) -> Outcome:
    frames = pair.a.frame, pair.b.frame
    pixels = matches.pixels_a, matches.pixels_b
    points = [points_at(frame.depth, frame.camera, where) for frame, where in zip(frames, pixels, strict=True)]
    cameras = [frame.camera for frame in frames]
    answer = relative_pose(matches, *cameras, *points, solver=solver, threshold=threshold)
    truth = pair.b_from_a
    off = np.linalg.norm(transform(truth, points[0]) - points[1], axis=1)
    off = off[np.isfinite(off)]
    rotation, translation, direction = 180.0, np.inf, 180.0
    if answer.b_from_a is not None:
        found, length = answer.b_from_a.copy(), np.linalg.norm(truth[:3, 3])
        cosine = found[:3, 3] @ truth[:3, 3] / max(np.linalg.norm(found[:3, 3]) * length, 1e-12)
        direction = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        if not answer.metric:
            found[:3, 3] *= length
        translation, rotation = pose_error(invert(found), invert(truth))  # between the cameras' places
    right = float(np.mean(off <= RIGHT)) if len(off) else np.nan
    return Outcome(rotation, translation, direction, answer, len(matches), right, matches.stuck, pair.overlap)


def auc(errors: np.ndarray, limit: float) -> float:
    """The area under the share of pairs with at most an error, up to a limit, as a share of the whole."""
    return float(np.mean(np.maximum(0, 1 - errors / limit)))


def row(name: str, outcomes: list[Outcome]) -> str:
    rotation, translation, direction, overlap = (
        np.array([getattr(each, key) for each in outcomes])
        for key in ("rotation", "translation", "direction", "overlap")
    )
    strata = [np.median(rotation[(overlap >= low) & (overlap < high)]) for low, high in pairwise(OVERLAPS)]
    worst = np.maximum(rotation, direction)
    cells = [
        f"{np.mean([each.answer.b_from_a is not None for each in outcomes]):.2f}",
        f"{np.median(rotation):.1f}",
        " / ".join(f"{value:.1f}" for value in strata),
        f"{np.mean(rotation <= 30):.2f}",
        f"{np.median(translation):.2f}",
        f"{np.mean(translation <= 1):.2f}",
        " / ".join(f"{auc(worst, limit):.2f}" for limit in (5, 10, 20)),
        f"{np.mean([each.matches for each in outcomes]):.0f}",
        f"{np.nanmean([each.right for each in outcomes]):.2f}",
        f"{np.nanmean([each.stuck for each in outcomes]):.2f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def calibration(name: str, outcomes: list[Outcome]) -> str:
    """Of the poses with so much confidence, the share whose rotation is right to 15°."""
    confidence, rotation = (
        np.array(values) for values in zip(*((each.answer.confidence, each.rotation) for each in outcomes), strict=True)
    )
    cells = []
    for low, high in ((0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1)):
        inside = (confidence > low) & (confidence <= high)
        cells.append(f"{np.mean(rotation[inside] <= 15):.2f} of {inside.sum()}" if inside.any() else "none")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a training run's folder, or a model's name on the hub")
    parser.add_argument("scenes", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=60, help="of each scene")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = LoCUS.from_pretrained(arguments.model)
    pairs = [pair for path in arguments.scenes for pair in pairs_of(path, model, arguments.cache, arguments.pairs)]
    near = Rule(min_score=0.7)  # perfect features of points that lie far apart are not alike
    five, aligned, opencv = "poselib", "3d-3d", "opencv"
    methods: dict[str, tuple[Callable[[Pair], Matches], tuple[str, ...]]] = {
        name: (partial(of_maps, kind=kind, rule=rule), solvers)
        for name, kind, rule, solvers in (
            ("perfect, the model's patches", "coarse", near, (five, aligned)),
            ("LoCUS, the paper's rule", "learned", PAPER, (five, opencv, aligned)),
            ("LoCUS, the paper's rule, tolerance 3", "learned", replace(PAPER, continuity=3.0), (five, aligned)),
            ("LoCUS, mutual", "learned", Rule(refine=False), (five, aligned)),
            ("LoCUS, mutual, refined", "learned", Rule(), (five, opencv, aligned)),
            ("LoCUS, mutual, refined, continuity 5", "learned", Rule(continuity=5.0), (five, aligned)),
            ("backbone, PCA-64, mutual, refined", "reduced", Rule(), (five, aligned)),
        )
    }
    methods["SIFT, ratio 0.8"] = (of_sift, (five, aligned))
    methods[f"perfect, {FINE} patches across"] = (partial(of_maps, kind="fine", rule=near), (five, aligned))
    missing = ""
    try:
        methods["SuperPoint, mutual"] = (superpoint(), (five, aligned))
    except OSError:
        missing = f"| SuperPoint, mutual | not run: the weights {SUPERPOINT} cannot be had here |"
    print(f"{len(pairs)} pairs of {len(arguments.scenes)} scenes; {model.name}\n")
    header = (
        "answered",
        "rotation, median °",
        "by overlap: little / medium / large",
        "≤ 30°",
        "translation, median m",
        "≤ 1 m",
        "AUC 5 / 10 / 20°",
        "matches",
        "right (0.3 m)",
        "stuck",
    )
    print("| |", " | ".join(header), "|")
    print("|---" * (len(header) + 1) + "|")
    every: dict[str, list[Outcome]] = {}
    for name, (matcher, solvers) in methods.items():
        matched = [matcher(pair) for pair in pairs]
        for solver in solvers:
            keypoints = name.startswith("S") and solver != aligned
            threshold = KEYPOINT_THRESHOLD if keypoints else None
            label = f"{name}: {solver}"
            every[label] = [solve(pair, found, solver, threshold) for pair, found in zip(pairs, matched, strict=True)]
            print(row(label, every[label]), flush=True)
    print(missing)
    print("\n| rotation right to 15°, by confidence | ≤ 0.1 | 0.1 to 0.5 | 0.5 to 0.9 | above |\n|---|---|---|---|---|")
    for name in every:
        if name.startswith(("LoCUS, mutual, refined: p", "LoCUS, mutual, refined: 3", "backbone", "SIFT")):
            print(calibration(name, every[name]))
    print("\n| an image shifted by 6 patches | follows | stuck |\n|---|---|---|")
    frames = [pair.a.frame for pair in pairs[:: max(1, len(pairs) // 12)]][:12]
    for name, network in (
        ("LoCUS", model),
        ("backbone", LoCUS(model.backbone, head="identity", resolution=model.resolution)),
    ):
        shifts = [shift_followed(network, frame.image) for frame in frames]
        print(f"| {name} | {np.mean([s.following for s in shifts]):.2f} | {np.mean([s.stuck for s in shifts]):.2f} |")


if __name__ == "__main__":
    main()
