"""Is what has gone from one spot what is new at another? By kind and by height, seen by one frame each."""

from dataclasses import replace

import numpy as np
import pytest
from jaxtyping import Float

from locus.landmarks.coarse_depth import KINDS, grid_camera
from locus.tasks.changed_surfaces import ChangedSurface
from locus.tasks.same_thing import same_thing
from tests.tasks.test_seen_through import LENS, frame

DISTANCE = 2.0


def wall(*patches):
    """A frame of a wall, on which each patch, (rows, columns) of the grid of kinds, is of the kind of that number."""
    kind = np.zeros((1, *KINDS), np.int8)
    kind[..., 63] = 127
    for number, rows, columns in patches:
        kind[0, rows, columns] = 127 * np.eye(64)[number]
    return replace(frame(DISTANCE), kind=kind)


def on(rows, columns) -> ChangedSurface:
    """The surface that fills a patch of the wall."""
    camera = grid_camera(LENS)
    points: Float[np.ndarray, "60 80 3"] = camera.unproject(camera.pixel_grid(), np.full((60, 80), DISTANCE))
    filled = points[4 * rows.start : 4 * rows.stop, 4 * columns.start : 4 * columns.stop]
    return ChangedSurface(filled.reshape(-1, 3), np.array([0]), np.array([0]), (1.0, 1.0))


LEFT, RIGHT, HIGH = (
    (slice(4, 9), slice(1, 6)),
    (slice(4, 9), slice(12, 17)),
    (slice(0, 9), slice(12, 17)),
)


def test_things_of_one_kind_and_height_are_one_and_others_are_not():
    before, gone = wall((0, *LEFT)), [on(*LEFT)]
    (same,) = same_thing(before, gone, wall((0, *RIGHT)), [on(*RIGHT)])[0]
    (other_kind,) = same_thing(before, gone, wall((1, *RIGHT)), [on(*RIGHT)])[0]
    (higher,) = same_thing(before, gone, wall((0, *HIGH)), [on(*HIGH)])[0]
    assert same > 0.8 > 0.5 > higher
    assert other_kind < 0.1


@pytest.mark.parametrize("unknown", ["before", "after"])
def test_what_is_of_unknown_kind_is_not_told_to_be_the_same(unknown):
    frames = {"before": wall((0, *LEFT)), "after": wall((0, *RIGHT))}
    frames[unknown] = replace(frames[unknown], kind=np.zeros_like(frames[unknown].kind))
    assert same_thing(frames["before"], [on(*LEFT)], frames["after"], [on(*RIGHT)]).tolist() == [[0.0]]
