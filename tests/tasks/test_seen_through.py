"""What frames see, see through and cannot know, against planes and boxes whose geometry is known in closed form."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.geometry import transform
from locus.landmarks.arrays import Frames
from locus.landmarks.coarse_depth import COLUMNS, KINDS, ROWS, UNIT, coarse_depth
from locus.rows import joined
from locus.tasks.changed_surfaces import changed_surfaces
from locus.tasks.seen_through import FAR, VOXEL, smooth, surface_points, votes
from tests.landmarks import places
from tests.scenes import room

LENS = np.array([70.0, 65.0, 39.0, 31.0], np.float32)

coordinates = st.floats(-5, 5)
motions = st.builds(
    lambda turn, shift: np.block([[Rotation.from_rotvec(turn).as_matrix(), np.array(shift)[:, None]], [0, 0, 0, 1]]),
    st.tuples(coordinates, coordinates, coordinates),
    st.tuples(coordinates, coordinates, coordinates),
)


def frame(depth, pose=None, lens=LENS):
    """One frame of a map, of a depth image in metres."""
    return Frames(
        environment=np.zeros(1, np.int32),
        world_from_camera=(np.eye(4) if pose is None else pose)[None],
        chance=np.zeros((1, 1), np.float32),
        surface=np.round(np.broadcast_to(depth, (ROWS, COLUMNS)) / UNIT).astype(np.uint16)[None],
        lens=lens[None],
        kind=np.zeros((1, *KINDS), np.int8),
    )


def frames(shots):
    """What a map would know of shots of the room."""
    return joined(
        [
            frame(surface * UNIT, shot.world_from_camera, lens)
            for shot, (surface, lens) in zip(shots, map(coarse_depth, places.scene(shots)), strict=True)
        ]
    )


def counted(points, seen_by):
    said = votes(points, seen_by)
    return [np.asarray(matrix.sum(axis=0)).ravel().tolist() for matrix in (said.seen, said.through)]


@given(wall=st.floats(1, 8), share=st.floats(0.05, 2), x=st.floats(-0.4, 0.4), y=st.floats(-0.3, 0.3), pose=motions)
def test_before_a_wall_is_seen_through_on_it_is_seen_and_behind_it_is_unknown(wall, share, x, y, pose):
    z = share * wall
    point = transform(pose, np.array([[x * z, y * z, z]]))
    (seen,), (through,) = counted(point, frame(wall, pose))
    if z > FAR:
        assert (seen, through) == (0, 0)
    elif z < 0.9 * wall - 0.1:
        assert (seen, through) == (0, 1)
    elif abs(z - wall) < 0.04:
        assert (seen, through) == (1, 0)
    elif z > 1.06 * wall + 0.06:
        assert (seen, through) == (0, 0)


@given(x=st.integers(2, COLUMNS - 3), y=st.integers(2, ROWS - 3), near=st.sampled_from([0.0, 1.0]))
def test_nothing_is_seen_through_beside_a_nearer_thing_or_beside_unknown_depth(x, y, near):
    depth = np.full((ROWS, COLUMNS), 4.0)
    depth[y, x] = near
    u, v = np.meshgrid(np.arange(COLUMNS) + 0.5, np.arange(ROWS) + 0.5)
    points = np.stack([(u - LENS[2]) / LENS[0], (v - LENS[3]) / LENS[1], np.ones_like(u)], axis=-1) * 2.0
    through = np.array(counted(points.reshape(-1, 3), frame(depth))[1]).reshape(ROWS, COLUMNS)
    expected = np.zeros((ROWS, COLUMNS))
    expected[1:-1, 1:-1] = 1  # beyond the border nothing is known
    expected[y - 1 : y + 2, x - 1 : x + 2] = 0
    np.testing.assert_array_equal(through, expected)


@given(normal=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)), distance=st.floats(1, 4))
def test_a_slanted_plane_is_smooth_and_its_points_lie_on_it(normal, distance):
    u, v = np.meshgrid(np.arange(COLUMNS) + 0.5, np.arange(ROWS) + 0.5)
    rays = np.stack([(u - LENS[2]) / LENS[0], (v - LENS[3]) / LENS[1], np.ones_like(u)], axis=-1)
    n = np.array([*normal, 1.0])
    depth = distance / (rays @ n)
    inner = smooth(depth)[1:-1, 1:-1]
    assert inner.all()
    edge = depth.copy()
    edge[:, 40:] *= 1.5
    assert not smooth(edge)[:, 39:41].any()
    points = surface_points(frame(depth))
    assert np.abs(points @ n - distance).max() < 0.01
    voxels = np.floor(points / VOXEL)  # means of points in a voxel lie in it, so there is one each
    assert len(np.unique(voxels, axis=0)) > 0.9 * len(points)  # rounding puts a mean on the border beyond it


@settings(max_examples=20)
@given(motion=motions)
def test_changes_do_not_depend_on_the_choice_of_coordinates(motion):
    points = surface_points(BEFORE)[::100]
    moved = replace(AFTER, world_from_camera=motion @ AFTER.world_from_camera)
    differ = np.array(counted(transform(motion, points), moved)) != np.array(counted(points, AFTER))
    assert differ.sum() <= 1  # a point on the border of two cells may fall into either


def test_a_chair_that_only_one_visit_sees_is_found_from_both_sides():
    """Referee: the boxes that the room is drawn from."""
    low, high = (np.array(corner) for corner in room.BOXES[-1][:2])
    for mine, other, expected in ((BEFORE, AFTER, 1), (AFTER, BEFORE, 0), (BEFORE, AGAIN, 0), (AGAIN, BEFORE, 0)):
        found = changed_surfaces(mine, other)
        assert len(found) == expected
        for surface in found:
            assert ((surface.points > low - 0.02) & (surface.points < high + 0.02)).all()
            assert np.ptp(surface.points, axis=0)[2] > 0.5
            assert surface.probability > 0.9
            assert 1 < len(surface.missed_by) <= len(other)


def test_frames_without_depth_say_nothing():
    blank = replace(AFTER, surface=np.zeros_like(AFTER.surface), lens=np.zeros_like(AFTER.lens))
    assert len(surface_points(blank)) == 0
    assert changed_surfaces(BEFORE, blank) == changed_surfaces(blank, BEFORE) == []


def _visits():
    """The room, the room without its last chair from other spots, and with it from these."""
    boxes = room.BOXES
    before, again = frames(room.shots(12)), frames(places.wanderer(12))
    try:
        room.BOXES = boxes[:-1]
        return before, frames(places.wanderer(12)), again
    finally:
        room.BOXES = boxes


BEFORE, AFTER, AGAIN = _visits()
