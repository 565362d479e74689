"""Voxels, segments, and the objects that they are grouped into, in a room whose geometry is known."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from locus.tasks.objects import GEOMETRY, Curve, Grouping
from locus.tasks.segments import SurfaceSegments, felzenszwalb, membership
from locus.tasks.voxels import voxels
from tests.landmarks import places
from tests.scenes import room


@pytest.fixture(scope="module")
def seen():
    return places.seen(places.scene(room.shots(10)))


@pytest.fixture(scope="module")
def surfaces(seen):
    return voxels(seen)


def thing_of(points):
    """The number of the box of the room that each point is on; 0 for floor and walls."""
    found = np.zeros(len(points), int)
    for low, high, _, number in room.BOXES[1:]:
        on = ((points > np.array(low) - 0.02) & (points < np.array(high) + 0.02)).all(axis=1) & (points[:, 2] > 0.04)
        found[on] = number
    return found


def test_voxels_lie_on_the_surfaces_and_their_normals_point_into_the_room(surfaces):
    low, high = (np.array(corner) for corner in room.BOXES[0][:2])
    structure = thing_of(surfaces.position) == 0
    position, normal = surfaces.position[structure], surfaces.normal[structure]
    to_wall = np.concatenate([position - low, high - position], axis=1)
    assert np.median(to_wall.min(axis=1)) < 0.005
    inwards = np.concatenate([np.eye(3), -np.eye(3)])[to_wall.argmin(axis=1)]
    assert np.median((normal * inwards).sum(axis=1)) > 0.99


def test_points_are_looked_up_in_their_voxel(surfaces):
    np.testing.assert_array_equal(surfaces.rows(surfaces.position), np.arange(len(surfaces)))
    assert surfaces.rows(np.array([[100.0, 0, 0], [np.nan, 0, 0]])).tolist() == [-1, -1]


def test_every_pixel_is_shared_among_patches_as_a_whole(surfaces):
    np.testing.assert_allclose(surfaces.patches.sum(axis=1), surfaces.frames.sum(axis=1))


def test_a_group_of_voxels_has_the_feature_of_the_patches_that_show_it(seen, surfaces):
    near = np.linalg.norm(surfaces.position - [0, 0, 0.7], axis=1) < 0.15  # on the table
    feature = surfaces.shown(seen.features[0], csr_matrix(near[None].astype(float)))[0]
    similarity = places.perfect(np.array([[0, 0, 0.7], [1.25, 0.75, 0.9]])).numpy() @ feature
    assert similarity[0] > 0.8 > 0.3 > similarity[1]


def test_two_crowds_joined_by_a_weak_edge_are_two_segments():
    inside = [(a, b) for a in range(6) for b in range(a)]
    pairs = np.array([*inside, *((a + 6, b + 6) for a, b in inside), (0, 6)])
    differences = np.array([0.01] * (2 * len(inside)) + [5.0])
    assert felzenszwalb(12, pairs, differences).tolist() == [0] * 6 + [1] * 6
    differences[-1] = 0.01
    assert set(felzenszwalb(12, pairs, differences)) == {0}


def test_a_curve_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(0)
    cues = random.normal(size=(400, 3)) * [1, 20, 0.1] + [0, 5, 2]
    true = cues[:, 0] + cues[:, 1] / 20 + random.normal(size=400) > 0
    curve = Curve.fit(cues, true)
    standard = (cues - cues.mean(axis=0)) / cues.std(axis=0)
    # Softmax of two rows shares a weight between them, so the penalty of the difference is half as large.
    referee = linear_model.LogisticRegression(C=1 / (400 * 0.01 / 2), tol=1e-8).fit(standard, true)
    np.testing.assert_allclose(curve(cues), referee.predict_proba(standard)[:, 1], atol=2e-3)


@dataclass
class Fitted:
    grouping: Grouping
    surfaces: object
    truth: np.ndarray


@pytest.fixture(scope="module")
def fitted(seen, surfaces):
    """Fitted to other views of the room."""
    other = voxels(places.seen(places.scene(places.wanderer(12))))
    segments = SurfaceSegments.of(other, None)
    votes = membership(segments.number) @ np.eye(5)[thing_of(other.position)]
    return Fitted(Grouping.fit([(segments, votes.argmax(axis=1))], False), surfaces, thing_of(surfaces.position))


def test_the_table_and_the_chairs_are_found_each_as_one_object(seen, fitted):
    objects = fitted.grouping.objects(fitted.surfaces, seen)
    for thing in (2, 3, 4):
        here = fitted.truth == thing
        best = np.bincount(objects.number[here & (objects.number >= 0)]).argmax()
        found = objects.number == best
        assert (found & here).sum() / (found | here).sum() > 0.5
    assert (np.diff(objects.confidence) <= 0).all()


def test_curves_are_kept_with_all_that_they_need(fitted):
    described = fitted.grouping.described()
    assert len(described["thing"]) == 1 + len(fitted.grouping.thing.weight)


def test_a_model_that_no_grouping_was_fitted_for_is_grouped_by_geometry():
    unknown = Grouping.of("nobody's")
    assert not unknown.by_features
    np.testing.assert_array_equal(unknown.thing.weight, Grouping.of(GEOMETRY).thing.weight)


def test_the_shipped_model_has_a_grouping_by_features(small_weights):
    from locus.model import LoCUS

    assert Grouping.of(LoCUS.from_pretrained("locus-small").fingerprint).by_features
