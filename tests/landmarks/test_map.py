"""Maps of a room whose features are perfect: where landmarks are, and what further frames and maps change."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist, pdist

from locus.landmarks import LandmarkMap, MapError, merge
from locus.landmarks.chance import chance
from locus.landmarks.observations import patches
from locus.model import LoCUS
from locus.scenes import LabelClass
from tests.landmarks import places
from tests.scenes import room

RADIUS = places.RADIUS


def surface_distance(points):
    """From each point to the nearest face of the room or of a thing in it."""
    nearest = np.full(len(points), np.inf)
    for low, high, *_ in room.BOXES:
        outside = np.maximum(np.maximum(low - points, points - high), 0)
        inside = np.minimum(points - low, high - points).min(axis=1)
        nearest = np.minimum(nearest, np.where(outside.any(axis=1), np.linalg.norm(outside, axis=1), np.abs(inside)))
    return nearest


def same_landmarks(a, b):
    """Whether two maps have the same landmarks, in whatever order."""
    away, partner = KDTree(b.landmarks.position).query(a.landmarks.position)
    return (
        len(a) == len(b)
        and len(set(partner)) == len(b)
        and away.max() < 1e-5
        and np.allclose(a.landmarks.mean, b.landmarks.mean[partner], atol=1e-5)
        and np.allclose(a.landmarks.score, b.landmarks.score[partner], atol=1e-4)
        and np.array_equal(a.landmarks.views, b.landmarks.views[partner])
    )


def part(seen, frames):
    """Some of the frames."""
    return replace(
        seen, indices=[seen.indices[f] for f in frames], features=seen.features[:, frames], points=seen.points[frames]
    )


def test_landmarks_lie_on_surfaces_apart_and_are_seen_again(world):
    assert len(world) > 300
    away = surface_distance(world.landmarks.position.astype(float))
    assert np.median(away) < 1e-3
    assert away.max() < RADIUS / 2  # the mean of patches on both sides of a corner lies before it
    assert pdist(world.landmarks.position.astype(float)).min() >= RADIUS - 1e-6
    assert world.landmarks.views.min() >= 2
    assert np.corrcoef(world.landmarks.worth, np.arange(len(world)))[0, 1] < -0.9  # but views are counted once more
    assert world.landmarks.score.max() <= 1 + 1e-6
    assert world.environments == ("room",)
    assert (world.landmarks.radius == np.float32(RADIUS)).all()


def test_every_surface_that_is_seen_twice_has_a_landmark_near(world, seen):
    of = patches(seen)
    shown = cdist(of.point, of.point) <= RADIUS
    often = [len(np.unique(of.frame[row])) >= 4 for row in shown]
    away = KDTree(world.landmarks.position).query(of.point[often])[0]
    assert (away < 2 * RADIUS).all()


def test_sightings_are_the_patches_within_the_radius(world, seen):
    assert np.array_equal(world.sightings.toarray(), counted(world, patches(seen)))
    assert np.array_equal(world.landmarks.views, (world.sightings.toarray() > 0).sum(axis=0))


def test_chance_is_far_below_what_a_landmark_looks_like(world):
    assert world.frames.chance.shape == (16, 1)
    assert 0 < world.frames.chance.min() <= world.frames.chance.max() < 0.5


def test_normals_point_to_where_the_cameras_were(world):
    floor = (world.landmarks.position[:, 2] < 1e-3) & (world.landmarks.views > 2)
    assert (world.landmarks.normal[floor, 2] > 0.2).all()
    assert (world.landmarks.cone < 90).all()


def test_the_order_of_the_frames_does_not_matter(model, seen, world):
    order = np.random.default_rng(0).permutation(len(seen)).tolist()
    assert same_landmarks(LandmarkMap.build(model, part(seen, order)), world)


def test_fewer_are_the_best(model, seen, world):
    few = LandmarkMap.build(model, seen, most=20)
    assert np.array_equal(few.landmarks.position, world.landmarks.position[:20])


def test_classes_are_those_of_the_surfaces(world):
    assert world.classes == ("wall", "floor", "chair", "table")
    label = np.array(world.classes)[world.landmarks.label]
    position = world.landmarks.position
    assert (label[(position[:, 2] < 1e-4)] == "floor").all()
    top = (np.abs(position[:, 2] - 0.7) < 1e-4) & (np.abs(position[:, :2]) < 0.3).all(axis=1)
    assert top.any()
    assert (label[top] == "table").all()
    assert (world.landmarks.votes.sum(axis=1) == world.landmarks.patches).all()


def test_two_classes_of_one_name_are_one(model, seen):
    classes = [LabelClass(1, "wall", "stuff"), LabelClass(2, "wall", "stuff"), *seen.scene.classes[2:]]
    several = LandmarkMap.build(model, replace(seen, scene=replace(seen.scene, classes=classes)), most=50)
    assert several.classes == ("wall", "chair", "table")
    assert (several.landmarks.votes.sum(axis=1) == several.landmarks.patches).all()
    assert merge([several, other_room(model)]).environment(0).landmarks.votes.sum() == several.landmarks.votes.sum()


def test_scales_have_their_own_landmarks():
    radii = (0.4, 0.2)
    model = places.model(radii)
    seen = places.seen(places.scene(room.shots(8)), scales=2)
    both = LandmarkMap.build(model, seen)
    assert both.frames.chance.shape == (8, 2)
    for scale, radius in enumerate(radii):
        own = both.landmarks.scale == scale
        assert (both.landmarks.radius[own] == np.float32(radius)).all()
        assert pdist(both.landmarks.position[own].astype(float)).min() >= radius - 1e-6
        found = both.search(both.landmarks.embedding[own], 1, scale)[1][:, 0]
        assert np.array_equal(found, np.flatnonzero(own))
    assert (both.landmarks.scale == 1).sum() > 2 * (both.landmarks.scale == 0).sum()


def test_frames_are_added_to_the_landmarks_that_stay(model, seen):
    first, second = part(seen, range(0, 16, 2)), part(seen, range(1, 16, 2))
    before = LandmarkMap.build(model, first)
    after = before.add(model, second)
    of = patches(second)
    features = of.features(second, 0)
    near = cdist(of.point.astype(float), before.landmarks.position.astype(float)) <= RADIUS
    known = before.landmarks
    for row in range(0, len(before), 9):
        own = near[:, row]
        total = known.patches[row] + own.sum()
        assert after.landmarks.patches[row] == total
        for name, values in (("mean", features), ("position", of.point), ("colour", of.colour)):
            expected = (getattr(known, name)[row] * known.patches[row] + values[own].sum(axis=0)) / total
            assert np.allclose(getattr(after.landmarks, name)[row], expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(after.landmarks.score[: len(before)], known.score)
    assert after.sightings.shape == (16, len(after))
    assert np.array_equal(after.sightings[:8, : len(before)].toarray(), before.sightings.toarray())
    assert [scene["frames"] for scene in after.provenance["scenes"]] == [8, 8]


def test_new_landmarks_are_only_where_there_was_none(model, seen):
    before = LandmarkMap.build(model, part(seen, range(6)))
    after = before.add(model, part(seen, range(6, 16)))
    new = after.landmarks.position[len(before) :].astype(float)
    assert len(new) > 50
    assert cdist(new, after.landmarks.position[: len(before)].astype(float)).min() >= RADIUS - 1e-6
    assert pdist(new).min() >= RADIUS - 1e-6
    assert (after.landmarks.views[len(before) :] >= 2).all()
    assert len(before.add(model, part(seen, range(6, 16)), most=10)) == len(before) + 10


def test_frames_that_show_nothing_new_add_hardly_a_landmark(model, seen, world):
    renamed = [replace(source, name=f"again-{source.name}") for source in seen.scene.sources]
    after = world.add(model, replace(seen, scene=replace(seen.scene, sources=renamed)))
    # Of the same views, what is left are patches of two frames that lie just beyond the radius of every landmark.
    assert len(after) < 1.1 * len(world)


def test_frames_are_not_added_twice(model, seen, world):
    with pytest.raises(MapError, match="1 of the frames are in the map already, 000003"):
        world.add(model, part(seen, [3]))


def test_another_model_is_refused(seen, world):
    with pytest.raises(MapError, match="build the map again"):
        world.add(places.model(seed=1), seen)


def test_landmarks_are_scored_with_the_kappa_and_tau_of_the_model(model, seen, world):
    for change in ({"kappa": 2.0}, {"tau": 0.1}):
        other = LoCUS(model.backbone, dimension=places.DIMENSION, radii=model.radii, head="linear", **change)
        other.head.load_state_dict(model.head.state_dict())
        assert other.fingerprint == world.model
        scored = LandmarkMap.build(other, seen)
        away, partner = KDTree(world.landmarks.position).query(scored.landmarks.position)
        same = away < 1e-5
        assert same.sum() > 50
        assert np.abs(scored.landmarks.score[same] - world.landmarks.score[partner[same]]).max() > 0.01


def test_a_place_seen_once_has_no_landmarks(model, seen):
    with pytest.raises(MapError, match="no spot of room is seen by 2 frames"):
        LandmarkMap.build(model, part(seen, [0]))


def test_a_place_without_depth_cannot_be_mapped(model, seen):
    with pytest.raises(MapError, match="no patch with valid depth"):
        LandmarkMap.build(model, replace(seen, points=np.full_like(seen.points, np.nan)))


def test_maps_of_one_world_are_merged_where_they_meet(model, seen):
    halves = [LandmarkMap.build(model, part(seen, frames)) for frames in (range(8), range(8, 16))]
    both = merge(halves)
    assert both.environments == ("room",)
    assert max(map(len, halves)) < len(both) < sum(map(len, halves))
    assert pdist(both.landmarks.position.astype(float)).min() >= RADIUS - 1e-6
    assert both.sightings.shape == (16, len(both))
    assert both.frame_names == (*halves[0].frame_names, *halves[1].frame_names)
    for half in halves:  # what is gone has another near
        assert KDTree(both.landmarks.position).query(half.landmarks.position)[0].max() < 1.5 * RADIUS
    assert (both.landmarks.votes.sum(axis=1) == both.landmarks.patches).all()


def test_merged_maps_know_nearly_what_a_map_of_all_frames_knows(model, seen, world):
    both = merge([LandmarkMap.build(model, part(seen, range(start, 16, 2))) for start in (0, 1)])
    assert len(both) > 0.75 * len(world)
    assert both.landmarks.views.mean() > 0.9 * world.landmarks.views.mean()
    assert both.landmarks.patches.mean() > 0.9 * world.landmarks.patches.mean()
    # Perfect features: a landmark's mean is that of the spot where it says it is.
    there = places.perfect(both.landmarks.position).numpy()
    assert (both.landmarks.embedding * there).sum(axis=1).min() > 0.9


def counted(world, of):
    """How many patches of each frame lie within the radius of each landmark, from all patches."""
    near = cdist(of.point.astype(float), world.landmarks.position.astype(float)) <= np.float32(RADIUS)
    return np.stack([near[of.frame == frame].sum(axis=0) for frame in range(of.frames)])


@pytest.mark.parametrize("frames", [8, 4])
@pytest.mark.parametrize("how", ["merged", "added"])
def test_maps_made_in_parts_know_what_all_frames_say_of_their_landmarks(model, seen, how, frames):
    parts = [part(seen, range(start, start + frames)) for start in range(0, 16, frames)]
    maps = [LandmarkMap.build(model, each) for each in parts]
    world = merge(maps)
    if how == "added":
        world = maps[0]
        for each in parts[1:]:
            world = world.add(model, each)
    shown, of = world.sightings.toarray(), patches(seen)
    assert np.array_equal(world.landmarks.views, (shown > 0).sum(axis=0))
    # A new landmark is not looked for in the frames before: a map keeps no patches.
    assert np.abs(shown - counted(world, of)).sum() < 0.3 * counted(world, of).sum()
    of_frame = csr_matrix(np.arange(of.frames)[:, None] == of.frame)
    level = chance(world.landmarks, of.point, of.features(seen, 0), of_frame)
    of_parts = np.concatenate([each.frames.chance[:, 0] for each in maps])
    assert (of_parts < level - 0.005).mean() > 0.6  # fewer landmarks
    assert np.abs(world.frames.chance[:, 0] - level).mean() < 0.003


def test_what_two_landmarks_became_is_the_mean_of_both(model, world):
    """By hand: two landmarks 10 cm apart, 3 patches in two frames and 1 patch in one of them."""
    two = replace(
        world.landmarks.take(np.array([0, 0])),
        position=np.array([[0, 0, 0], [0.1, 0, 0]], np.float32),
        score=np.array([0.9, 0.5], np.float32),
        patches=np.array([3, 1], np.int32),
        views=np.array([2, 1], np.int32),
        colour=np.array([[40, 0, 0], [80, 0, 0]], np.float32),
    )
    seen = csr_matrix(np.array([[2, 0], [1, 1]], np.int32))
    close = replace(
        world, landmarks=two, sightings=seen, frames=world.frames.take(np.arange(2)), frame_names=("a", "b")
    )
    one = merge([close])
    assert one.landmarks.position == pytest.approx(np.array([[0.025, 0, 0]]))
    assert one.landmarks.colour == pytest.approx(np.array([[50, 0, 0]]))
    assert one.landmarks.score == pytest.approx([0.9])
    assert one.landmarks.patches == [4]
    assert one.landmarks.views == [2]
    assert one.sightings.toarray().tolist() == [[2], [1]]  # the one patch of b may be among those of the other


def other_room(model, name="hall", world=1, classes=None):
    scene = places.scene(room.shots(8), name)
    if classes is not None:
        scene = replace(scene, classes=classes)
    return LandmarkMap.build(model, places.seen(scene, world=world))


def test_other_places_stay_beside_one_another(model, world):
    hall = other_room(model)
    both = merge([world, hall])
    assert both.environments == ("room", "hall")
    assert len(both) == len(world) + len(hall)
    for number, alone in enumerate((world, hall)):
        only = both.environment(number)
        assert only.environments == alone.environments
        assert same_landmarks(only, alone)
        assert np.array_equal(only.sightings.toarray().sum(axis=1), alone.sightings.toarray().sum(axis=1))
        assert only.frame_names == alone.frame_names
    further = both.add(model, places.seen(places.scene(places.wanderer(4), "more"), world=1), environment="hall")
    assert len(further.environment(1).frames) == 12
    with pytest.raises(MapError, match="name the environment: the map has room, hall"):
        both.add(model, places.seen(places.scene(places.wanderer(2))))
    with pytest.raises(MapError, match="there is no environment attic"):
        both.environment_number("attic")


def test_classes_are_joined_by_name(model, world):
    names = ("cupboard", "wall", "table", "floor")
    classes = [LabelClass(number, name, "thing") for number, name in zip(room.CLASSES, names, strict=True)]
    hall = other_room(model, classes=classes)
    both = merge([world, hall])
    assert both.classes == ("wall", "floor", "chair", "table", "cupboard")
    for number, alone in enumerate((world, hall)):
        votes = both.environment(number).landmarks.votes.sum(axis=0)
        expected = dict(zip(alone.classes, alone.landmarks.votes.sum(axis=0), strict=True))
        assert votes.tolist() == [expected.get(name, 0) for name in both.classes]


def test_what_cannot_be_merged_is_refused(model, world):
    with pytest.raises(MapError, match="no maps"):
        merge([])
    other = other_room(places.model(seed=1))
    with pytest.raises(MapError, match="16 of the frames are in the map already, 000000 for one"):
        merge([world, world])
    with pytest.raises(MapError, match="room and of hall were made with different models"):
        merge([world, other])
