"""What patches say about spots, against loops over them."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, hstack, identity
from scipy.spatial.distance import cdist

from locus.landmarks.arrays import Landmarks
from locus.landmarks.chance import chance
from locus.landmarks.describe import by_frame, observed, pooled
from locus.landmarks.observations import ObservedPatches, patches, within
from locus.rows import joined
from tests.landmarks import places
from tests.scenes import room

CLASSES = 3


def some_patches(seed, count, first_frame=0):
    random = np.random.default_rng(seed)
    made = ObservedPatches(
        row=np.arange(count),
        frame=first_frame + np.sort(random.integers(0, 4, count)),
        point=random.uniform(-1, 1, (count, 3)).astype(np.float32),
        towards_camera=random.normal(size=(count, 3)).astype(np.float32),
        seen_at=random.random((count, 2)),
        colour=random.uniform(0, 255, (count, 3)).astype(np.float32),
        label=random.integers(-1, CLASSES, count).astype(np.int32),
        frames=8,
    )
    return made, random.normal(size=(count, 5)).astype(np.float32)


@given(st.integers(0, 2**31), st.integers(0, 40), st.integers(0, 60), st.floats(0.05, 2))
def test_within_is_every_distance_compared(seed, centres, count, radius):
    random = np.random.default_rng(seed)
    a, b = random.uniform(-1, 1, (centres, 3)), random.uniform(-1, 1, (count, 3))
    found = within(a, b, radius)
    assert found.shape == (centres, count)
    assert np.array_equal(found.toarray() > 0, cdist(a, b) <= radius)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 60))
def test_means_views_and_votes_are_those_of_a_loop(seed, count):
    of, features = some_patches(seed, count)
    spots = np.random.default_rng(seed).uniform(-1, 1, (7, 3))
    got = observed(within(spots, of.point, 0.7), of, features, CLASSES)
    for spot, centre in enumerate(spots):
        own = [k for k in range(count) if np.linalg.norm(of.point[k] - centre) <= 0.7]
        assert got.patches[spot] == len(own)
        assert got.views[spot] == len({int(of.frame[k]) for k in own})
        assert got.votes[spot].tolist() == [sum(of.label[k] == c for k in own) for c in range(CLASSES)]
        for name, values in (("position", of.point), ("mean", features), ("colour", of.colour)):
            expected = np.mean([values[k] for k in own], axis=0) if own else 0
            assert np.allclose(getattr(got, name)[spot], expected, rtol=1e-4, atol=1e-5)
        assert np.allclose(got.seen_at[spot], of.seen_at[own].mean(axis=0) if own else 0, atol=1e-5)
        assert np.allclose(got.seen_from[spot], of.towards_camera[own].mean(axis=0) if own else 0, atol=1e-5)


def test_a_scene_without_classes_has_no_votes():
    of, features = some_patches(0, 20)
    of = replace(of, label=np.full(20, -1, np.int32))
    got = observed(within(of.point[:4], of.point, 0.5), of, features, 0)
    assert got.votes.shape == (4, 0)
    assert got.label.tolist() == [-1] * 4


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(0, 30), st.integers(1, 30))
def test_pooled_is_observed_of_both(seed, first, second):
    a, features_a = some_patches(seed, first)
    b, features_b = some_patches(seed + 1, second, first_frame=4)
    names = [part.name for part in fields(ObservedPatches) if part.name != "frames"]
    both = ObservedPatches(**{name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in names}, frames=8)
    features = np.concatenate([features_a, features_b])
    spots = np.random.default_rng(seed).uniform(-1, 1, (6, 3))
    apart = [observed(within(spots, of.point, 0.8), of, f, CLASSES) for of, f in ((a, features_a), (b, features_b))]
    together = observed(within(spots, both.point, 0.8), both, features, CLASSES)
    itself = identity(6, np.int32)
    got = pooled(joined(apart), np.arange(6), csr_matrix(hstack([itself, itself])))
    for part in fields(Landmarks):
        if part.name == "views":  # they come from the map's sightings
            continue
        assert np.allclose(getattr(got, part.name), getattr(together, part.name), rtol=1e-4, atol=1e-5), part.name


def test_by_frame_counts():
    of, _ = some_patches(3, 50)
    shown = within(of.point[:5], of.point, 0.8)
    counts = by_frame(shown, of).toarray()
    assert counts.shape == (5, 8)
    for spot in range(5):
        own = of.frame[np.linalg.norm(of.point - of.point[spot], axis=1) <= 0.8]
        assert counts[spot].tolist() == [(own == frame).sum() for frame in range(8)]


def some_landmarks(seed, count):
    of, features = some_patches(seed, 80)
    spots = np.random.default_rng(seed).uniform(-1, 1, (count, 3))
    return observed(within(spots, of.point, 0.7), of, features, CLASSES)


def test_rows_are_taken_and_joined():
    a, b = some_landmarks(0, 6), some_landmarks(1, 4)
    together = joined([a, b])
    assert (len(a), len(b), len(together)) == (6, 4, 10)
    before = together.position.copy()
    for part in fields(Landmarks):
        get = lambda rows, name=part.name: getattr(rows, name)  # noqa: E731
        assert np.array_equal(get(together), np.concatenate([get(a), get(b)]))
        assert np.array_equal(get(together.take(np.array([8, 0, 3]))), get(together)[[8, 0, 3]])
    assert np.array_equal(together.position, before)


@pytest.mark.parametrize("angle", [1.0, 20.0, 75.0, 120.0, 170.0])
def test_the_cone_is_that_of_directions_evenly_spread_in_it(angle):
    random = np.random.default_rng(0)
    height = random.uniform(np.cos(np.radians(angle)), 1, 400_000)  # even on the sphere is even in height
    turn = random.uniform(0, 2 * np.pi, len(height))
    across = np.sqrt(1 - height**2)
    directions = np.stack([across * np.cos(turn), height, across * np.sin(turn)], axis=-1)
    one = replace(some_landmarks(0, 1), seen_from=directions.mean(axis=0)[None].astype(np.float32))
    assert one.cone[0] == pytest.approx(angle, rel=0.01)
    assert np.allclose(one.normal[0], [0, 1, 0], atol=0.3 if angle > 150 else 0.02)


def test_embeddings_have_unit_length_and_labels_are_the_most_votes():
    one = some_landmarks(0, 5)
    mean = one.mean.copy()
    mean[2] = 0
    votes = np.array([[0, 2, 1], [0, 0, 0], [5, 5, 0], [0, 0, 1], [1, 0, 0]], np.int32)
    one = replace(one, mean=mean, votes=votes)
    assert np.allclose(np.linalg.norm(one.embedding, axis=1), [1, 1, 0, 1, 1])
    assert one.label.tolist() == [1, -1, 0, 2, 0]


def test_chance_is_the_best_similarity_elsewhere():
    of, features = some_patches(5, 60)
    of = replace(of, point=of.point * 3)
    landmarks = replace(some_landmarks(1, 9), radius=np.full(9, 0.3, np.float32))
    of_frame = csr_matrix(np.arange(5)[:, None] == of.frame)
    got = chance(landmarks, of.point, features, of_frame)
    for frame in range(5):
        best = []
        for k in np.flatnonzero(of.frame == frame):
            far = np.linalg.norm(landmarks.position - of.point[k], axis=1) > 1.5
            if far.any():
                best.append((landmarks.embedding[far] @ features[k]).max())
        assert got[frame] == pytest.approx(np.mean(best) if best else 0, abs=1e-5)
    assert not chance(landmarks.take(np.arange(0)), of.point, features, of_frame).any()


def test_patches_have_the_points_colours_and_labels_of_their_frames():
    shots = room.shots(3)
    seen = places.seen(places.scene(shots))
    of = patches(seen)
    assert np.isfinite(of.point).all()
    assert len(of.row) == np.isfinite(seen.points).all(axis=-1).sum()
    rows, columns = places.GRID
    height, width = room.HEIGHT // rows, room.WIDTH // columns
    for k in range(0, len(of.row), 17):
        frame, rest = divmod(int(of.row[k]), rows * columns)
        y, x = divmod(rest, columns)
        shot = shots[frame]
        assert of.frame[k] == frame
        assert np.array_equal(of.point[k], seen.points[frame, y, x])
        assert np.allclose(of.seen_at[k], [(x + 0.5) / columns, (y + 0.5) / rows])
        window = np.s_[y * height : (y + 1) * height, x * width : (x + 1) * width]
        assert np.allclose(of.colour[k], shot.image[window].mean(axis=(0, 1)), atol=0.6)
        assert of.label[k] == shot.semantic[window][height // 2, width // 2]
        towards = shot.world_from_camera[:3, 3] - of.point[k]
        assert np.allclose(of.towards_camera[k], towards / np.linalg.norm(towards), atol=1e-5)
        assert np.allclose(of.features(seen, 0)[k], seen.features[0, frame, y, x])
