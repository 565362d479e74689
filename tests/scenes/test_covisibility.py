"""The sparse overlap against its definition, written out for every pair; and what it costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locus
from locus.geometry import Camera
from locus.scenes import covisibility, overlap
from locus.scenes.covisibility import overlap_of
from locus.scenes.visibility import FrameGeometry
from tests.scenes import layouts, room


def definition(geometries: list[FrameGeometry]) -> np.ndarray:
    """Every point of every frame against every camera, in double precision."""
    shares = np.zeros((len(geometries), len(geometries)))
    for b, seer in enumerate(geometries):
        rotation, eye = seer.world_from_camera[:3, :3], seer.world_from_camera[:3, 3]
        height, width = seer.depth.shape
        for a, shown in enumerate(geometries):
            for point in shown.points.astype(np.float64):
                x, y, z = rotation.T @ (point - eye)
                if z <= 0:
                    continue
                column = np.floor(x / z * seer.camera.fx + seer.camera.cx)
                row = np.floor(y / z * seer.camera.fy + seer.camera.cy)
                if 0 <= column < width and 0 <= row < height:
                    surface = seer.depth[int(row), int(column)] or 3 * seer.depth.max()
                    shares[a, b] += z <= surface * 1.05 + 0.05
            shares[a, b] /= max(1, len(shown.points))
    return shares


def random_frame(random: np.random.Generator, spread: float, unknown: float) -> FrameGeometry:
    """A camera anywhere, turned any way, that sees depths of any kind, some of them unknown; its points do not fit."""
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(random.normal(size=(3, 3)))[0]
    pose[:3, :3] *= np.linalg.det(pose[:3, :3])
    pose[:3, 3] = random.uniform(-spread, spread, 3)
    depth = random.uniform(0.3, random.uniform(0.5, 6), (6, 8)).astype(np.float32)
    depth[random.random(depth.shape) < unknown] = 0
    camera = Camera(8, 6, *random.uniform(3, 12, 2), *random.uniform(1, 6, 2))
    pixels = random.uniform(0, (8, 6), (int(random.integers(0, 12)), 2))
    local = camera.unproject(pixels, random.uniform(0.3, 6, len(pixels)))
    return FrameGeometry((local @ pose[:3, :3].T + pose[:3, 3]).astype(np.float32), depth, camera, pose)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from((0.5, 4.0, 30.0)), st.sampled_from((0.0, 0.3, 0.9)))
def test_is_the_definition_for_any_cameras(seed, frames, spread, unknown):
    random = np.random.default_rng(seed)
    geometries = [random_frame(random, spread, unknown) for _ in range(frames)]
    shares = overlap_of(frames, lambda: enumerate(geometries))
    np.testing.assert_allclose(shares.toarray(), definition(geometries), atol=1e-6)


@pytest.mark.parametrize("kept", [0, 1000])
def test_is_the_definition_in_a_furnished_room(tmp_path, kept, monkeypatch):
    monkeypatch.setattr(covisibility, "KEPT", kept)
    layouts.nerfstudio(tmp_path, room.shots(6))
    scene = locus.load_scene(tmp_path)
    expected = definition([FrameGeometry.of(frame, (6, 8)) for frame in scene])
    assert (expected > 0).mean() > 0.3
    np.testing.assert_allclose(overlap(scene, (6, 8)).toarray(), expected, atol=1e-6)


def corridor(frames: int, step: float) -> list[FrameGeometry]:
    """A camera that walks sideways along a wall 2 m away."""
    geometries = []
    for number in range(frames):
        pose = np.eye(4)
        pose[0, 3] = number * step
        pixels = np.stack(np.meshgrid(np.arange(8) + 0.5, np.arange(6) + 0.5), axis=-1).reshape(-1, 2)
        camera = Camera(8, 6, 8.0, 8.0, 4.0, 3.0)
        points = camera.unproject(pixels, np.full(48, 2.0)) + pose[:3, 3]
        geometries.append(FrameGeometry(points.astype(np.float32), np.full((6, 8), 2, np.float32), camera, pose))
    return geometries


@pytest.mark.parametrize("step", [0.25, 0.0])
def test_costs_memory_and_work_in_proportion_to_the_frames(step, monkeypatch):
    """Of a walk and of a standstill, where all frames see the same."""
    looked_at, sizes = [], []
    visible = covisibility.visible

    def counted(points: np.ndarray, geometry: FrameGeometry) -> np.ndarray:
        looked_at.append(len(points))
        return visible(points, geometry)

    monkeypatch.setattr(covisibility, "visible", counted)
    for frames in (200, 400):
        looked_at.clear()
        geometries = corridor(frames, step)
        shares = overlap_of(frames, lambda walk=geometries: enumerate(walk), most=32)
        sizes.append((sum(looked_at), shares.nnz))
    assert sizes[1][0] <= 2.1 * sizes[0][0]
    assert sizes[1][1] <= 2.1 * sizes[0][1]


def test_a_standstill_is_drawn_from_evenly_and_both_ways():
    geometries = corridor(400, 0.0)
    shares = overlap_of(400, lambda: enumerate(geometries), most=32)
    np.testing.assert_array_equal(shares.data, 1)
    partners = np.diff(shares.indptr)
    assert partners.min() >= 16
    assert partners.max() <= 64
    both = shares.minimum(shares.T).nnz / shares.nnz
    assert both > 0.9
    near_in_time = np.abs(np.subtract(*shares.nonzero())) < 40
    assert near_in_time.mean() < 0.3  # drawn from the whole recording, and not the neighbours in time
