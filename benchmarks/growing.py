"""A map that grows frame by frame: is it the map of all frames at once, what does a frame cost, is drift corrected?

    python benchmarks/growing.py same SCENE...        # beside the batch map: landmarks, localization
    python benchmarks/growing.py cost [--frames 100 1000 5000]
    python benchmarks/growing.py drift SCENE... [--shares 0.01 0.05] [--seeds 3]
    python benchmarks/growing.py closures SCENE...    # of different environments: none may be closed with another

`same` maps every other frame and localizes the rest by landmarks, with depth. `cost` walks along a ring-shaped corridor
of 600 m, 0.3 m a frame, so that it comes round after 2,000 frames; features are made up, and no network runs. `drift`
gives each recording odometry whose steps and turns are off by a share of their lengths, and compares the absolute
trajectory error (evo: root mean square of positions after rigid alignment) before and after the pose graph.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from evo.core.metrics import APE, PoseRelation, StatisticsType
from evo.core.trajectory import PosePath3D
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from locus import Camera, Frame, LandmarkMap, LoCUS, load_scene
from locus.features.dense import SceneFeatures, scene_features
from locus.geometry import invert, pose_error, transform
from locus.keypoints import Detector, Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.landmarks import GrowingMap
from locus.model import load
from locus.model.shipped import DEFAULT
from locus.scenes import patch_points
from locus.tasks import loop_closure
from locus.tasks.localize import localize_features
from locus.tasks.localize_points import most_similar
from locus.tasks.loop_closure import LoopCloser, LoopClosure, closures_of, earlier_frames
from locus.tasks.placed_points import point_detector, point_matcher
from locus.tasks.pose_graph import corrected_poses

RIGHT = (0.5, 10.0)  # metres and degrees, of a localization
WRONG, EXACT = (0.5, 10.0), (0.1, 5.0)  # of a loop closure: certainly wrong, and what its probability is about
RING, STEP = 600.0, 0.3  # metres
LAST = 32  # frames that times are the mean of: two of the blocks after which landmarks are chosen
CAMERA, GRID = Camera(96, 72, 60.0, 60.0, 48.0, 36.0), (6, 8)
WAVES = [(np.random.default_rng(0).normal(size=(3, 64)) / reach, np.arange(64.0)) for reach in (0.2, 0.6)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("same", "cost", "drift", "closures"))
    parser.add_argument("scenes", nargs="*", type=Path)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--frames", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.05])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.what == "cost":
        cost(arguments.frames)
        return
    model = load(arguments.model)
    recordings = [scene_features(model, load_scene(path)) for path in arguments.scenes]
    work = {"same": same, "closures": closures}
    work["drift"] = partial(drift, shares=arguments.shares, seeds=arguments.seeds)
    work[arguments.what](model, recordings)


def same(model: LoCUS, recordings: list[SceneFeatures]) -> None:
    print("scene | map | landmarks by scale | near the other map's | sightings | localized | median error")
    for seen in recordings:
        mapped, asked = seen.take(range(0, len(seen), 2)), seen.take(range(1, len(seen), 2))
        empty = LandmarkMap.empty(model, seen.scene.name)
        worlds = {"batch": LandmarkMap.build(model, mapped), "grown": empty.update(model, mapped)}
        for name, other in (("batch", "grown"), ("grown", "batch")):
            world, beside = worlds[name], worlds[other].landmarks
            counts = [int((world.landmarks.scale == scale).sum()) for scale in range(len(world.radii))]
            near = [
                KDTree(beside.position[beside.scale == scale]).query(position)[0] <= radius
                for scale, radius in enumerate(world.radii)
                if len(position := world.landmarks.position[world.landmarks.scale == scale])
            ]
            errors = np.array(list(localized(world, asked)))
            right = (errors <= RIGHT).all(axis=1)
            metres, degrees = np.median(errors[right], axis=0)
            cells = (seen.scene.name, name, "+".join(map(str, counts)), f"{np.concatenate(near).mean():.3f}")
            cells += (str(world.sightings.nnz), f"{right.mean():.3f}", f"{metres:.3f} m {degrees:.2f}°")
            print(" | ".join(cells), flush=True)


def localized(world: LandmarkMap, asked: SceneFeatures) -> Iterator[tuple[float, float]]:
    """Metres and degrees that each frame's answer is off; without an answer, infinitely many."""
    for row in range(len(asked)):
        frame = asked.frame(row)
        pose = localize_features(world, asked.features[:, row], frame.camera, frame.depth).world_from_camera
        yield (np.inf, np.inf) if pose is None else pose_error(pose, frame.world_from_camera)


def cost(lengths: list[int]) -> None:
    """Milliseconds of a processor that a frame takes, the mean over the last ones before each length."""
    model = LoCUS("classic", dimension=64, radii=(0.2, 0.6), head="linear")
    growing, updated, ranked = GrowingMap(LandmarkMap.empty(model, "ring"), model, Scattered()), [], []
    print("frames | landmarks | the map | which earlier frames are similar | the map at a moment", flush=True)
    for number in range(max(lengths)):
        one = corridor(number)
        start = time.process_time()
        growing.update(one)
        updated.append(time.process_time() - start)
        if any(length - LAST <= number < length for length in lengths):
            start = time.process_time()
            shown = growing.points(number)
            assert shown is not None
            earlier = {row: growing.points(row) for row in earlier_frames(growing, number, shown)}
            most_similar({row: each for row, each in earlier.items() if each is not None}, shown.placed)
            ranked.append(time.process_time() - start)
        if number + 1 in lengths:
            update, rank = (1e3 * np.mean(spent[-LAST:]) for spent in (updated, ranked))
            start = time.process_time()
            world = growing.map()
            whole = time.process_time() - start
            print(f"{number + 1} | {len(world)} | {update:.0f} ms | {rank:.0f} ms | {whole:.1f} s", flush=True)


class Scattered(Detector):
    """Keypoints anywhere, so that a map has points without a network."""

    name, fingerprint, dimension = "scattered", "scattered 1", 64

    def found(self, image: np.ndarray) -> Keypoints:
        random = np.random.default_rng(0)
        size = image.shape[1], image.shape[0]
        descriptors = F.normalize(torch.from_numpy(random.normal(size=(480, 64))).float(), dim=-1)
        return Keypoints(random.uniform(0, size, (480, 2)), np.linspace(1, 0, 480), descriptors, size)


class Remembering(Detector):
    """What networks find and match, once for each image and pair of images: odometry does not change it."""

    def __init__(self) -> None:
        self._detector, self._matcher, self._known = point_detector(), point_matcher(), {}
        self.name, self.fingerprint = self._detector.name, self._detector.fingerprint
        self.dimension = self._detector.dimension

    def found(self, image: np.ndarray) -> Keypoints:
        return self._once(image.tobytes(), lambda: self._detector.detect(image))

    def match(self, a: PlacedKeypoints, b: PlacedKeypoints) -> tuple[np.ndarray, np.ndarray]:
        key = a.keypoints.pixels.tobytes(), b.keypoints.pixels.tobytes()
        return self._once(key, lambda: self._matcher.match(a, b))

    def _once(self, key: Any, work: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]


def corridor(number: int) -> SceneFeatures:
    """A frame in a corridor 3 m wide and 2.6 m high, bent to a ring; features change from spot to spot."""
    radius, yaw = RING / (2 * np.pi), 0.6 * np.sin(number / 7)
    angle = STEP * number / radius
    rays = CAMERA.unproject(CAMERA.pixel_grid(), np.ones((CAMERA.height, CAMERA.width)))
    local = transform(turn(yaw), rays)  # x right, y down, z forward
    with np.errstate(divide="ignore"):
        walls = [side / local[..., axis] for axis, side in ((0, 1.5), (0, -1.5), (1, 1.3), (1, -1.3))]
    depth = np.min([np.where(wall > 0, wall, np.inf) for wall in walls], axis=0)
    depth = np.where(depth < 8, depth, 0).astype(np.float32)
    pose = turn(-angle)
    pose[:3, 3] = radius * np.cos(angle), 0, radius * np.sin(angle)
    image = np.broadcast_to(np.arange(CAMERA.width, dtype=np.uint8)[:, None] // 2, (*depth.shape, 3))
    frame = Frame.of(str(number), image, depth, CAMERA, pose @ turn(yaw))
    points = patch_points(frame, GRID)[0].astype(np.float32)
    known = np.nan_to_num(points).astype(np.float64)
    noise = np.random.default_rng(number)
    features = [np.cos(known @ waves + phases) for waves, phases in WAVES]
    noisy = torch.from_numpy(np.stack(features) + 0.3 * noise.normal(size=(2, *GRID, 64))).float()
    return SceneFeatures(frame.alone("ring"), [0], points[None], F.normalize(noisy, dim=-1)[:, None])


def turn(yaw: float) -> np.ndarray:
    """A rotation about the axis that points down."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0, yaw, 0]).as_matrix()
    return pose


def drift(model: LoCUS, recordings: list[SceneFeatures], shares: list[float], seeds: int) -> None:
    print("scene | frames | path | share | seed | closures | wrong | left out | error before | after", flush=True)
    for seen in recordings:
        detector = Remembering()
        loop_closure.point_matcher = lambda detector=detector: detector
        truth = np.stack([seen.frame(row).world_from_camera for row in range(len(seen))])
        length = np.linalg.norm(np.diff(truth[:, :3, 3], axis=0), axis=1).sum()
        for share in shares:
            for seed in range(seeds):
                odometry = drifted(truth, share, seed)
                closures = closures_along(model, moved(seen, odometry), detector)
                found = corrected_poses(odometry, closures)
                wrong = [bool((np.array(off(truth, each)) > WRONG).any()) for each in closures]
                errors = [absolute_error(truth, poses) for poses in (odometry, found.poses)]
                cells = (seen.scene.name, len(seen), f"{length:.1f} m", f"{share:.0%}", seed, len(closures), sum(wrong))
                cells += (int((~found.agree).sum()), *(f"{error:.3f} m" for error in errors))
                print(" | ".join(map(str, cells)), flush=True)


def drifted(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Odometry that errs by a share of each step and turn: as much one and the same way, always, as at random."""
    random = np.random.default_rng(seed)
    always = random.normal(size=(2, 3))
    always /= np.linalg.norm(always, axis=1, keepdims=True)
    poses = [truth[0]]
    for before, after in pairwise(truth):
        step = invert(before) @ after
        metres, degrees = pose_error(np.eye(4), step)
        sizes = share * np.radians(degrees), share * metres
        turned, went = (
            size * (way + random.normal(size=3) / np.sqrt(3)) for size, way in zip(sizes, always, strict=True)
        )
        step[:3, :3] = step[:3, :3] @ Rotation.from_rotvec(turned).as_matrix()
        step[:3, 3] += went
        poses.append(poses[-1] @ step)
    return np.stack(poses)


def moved(seen: SceneFeatures, poses: np.ndarray) -> SceneFeatures:
    """The same frames with other poses."""
    before = [seen.frame(row).world_from_camera for row in range(len(seen))]
    points = [transform(now @ invert(old), each) for now, old, each in zip(poses, before, seen.points, strict=True)]
    read = replace(seen.scene, sources=[seen.scene.sources[index] for index in seen.indices])
    return SceneFeatures(read.moved(poses), list(range(len(seen))), np.stack(points), seen.features)


def closures_along(model: LoCUS, seen: SceneFeatures, detector: Detector) -> list[LoopClosure]:
    growing = GrowingMap(LandmarkMap.empty(model, seen.scene.name), model, detector)
    closer = LoopCloser(growing)
    for row in range(len(seen)):
        growing.update(seen.take([row]))
        closer.update()
    return closer.closures


def off(truth: np.ndarray, closure: LoopClosure) -> tuple[float, float]:
    return pose_error(closure.later_from_earlier, invert(truth[closure.later]) @ truth[closure.earlier])


def absolute_error(truth: np.ndarray, poses: np.ndarray) -> float:
    """Absolute trajectory error, by evo."""
    reference, estimate = PosePath3D(poses_se3=list(truth)), PosePath3D(poses_se3=list(poses))
    estimate.align(reference)
    error = APE(PoseRelation.translation_part)
    error.process_data((reference, estimate))
    return error.get_statistic(StatisticsType.rmse)


def closures(model: LoCUS, recordings: list[SceneFeatures]) -> None:
    """Walk through one environment after the other, 100 m from each other as odometry says."""
    growing = GrowingMap(LandmarkMap.empty(model, "all"), model, point_detector())
    closer, of_frame, found, plausible = LoopCloser(growing), [], [], []
    for number, seen in enumerate(recordings):
        poses = np.stack([seen.frame(row).world_from_camera for row in range(len(seen))])
        poses[:, 0, 3] += 100 * number
        away = moved(seen, poses)
        named = [replace(each, name=f"{number} {each.name}") for each in away.scene.sources]
        away = replace(away, scene=replace(away.scene, sources=named))
        for row in range(len(away)):
            growing.update(away.take([row]))
            of_frame.append(number)
            newest = closures_of(growing, len(growing) - 1)
            closer.add(newest)
            found += newest
            plausible += filter(closer.plausible, newest)
    truth = np.stack(growing.poses)
    for name, some in (("found", found), ("plausible", plausible), ("confirmed", closer.closures)):
        other = sum(of_frame[each.earlier] != of_frame[each.later] for each in some)
        wrong = sum(bool((np.array(off(truth, each)) > WRONG).any()) for each in some)
        print(f"{name}: {len(some)} closures, {wrong} wrong, {other} of them between environments")
    keypoints = np.array([each.keypoints for each in plausible])
    right = (np.array([off(truth, each) for each in plausible]) <= EXACT).all(axis=1)
    for least, most in pairwise((0, 15, 25, 40, 60, 100, 10_000)):
        some = (keypoints >= least) & (keypoints < most)
        print(f"{least} to {most} keypoints: {right[some].sum()} of {some.sum()} within 0.1 m and 5°")

    def surprise(values: np.ndarray) -> float:
        odds = values[1] * (np.log(keypoints) - values[0])
        return np.logaddexp(0, np.where(right, -odds, odds)).sum() + 0.5 * (values[1] / 10) ** 2

    half, steepness = minimize(surprise, [np.log(25), 3.0], method="Nelder-Mead").x
    print(f"right as often as not at {np.exp(half):.0f} keypoints, steepness {steepness:.1f}")


if __name__ == "__main__":
    main()
