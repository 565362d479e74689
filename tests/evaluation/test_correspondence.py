"""Correspondence: where points land in closed form; the ceiling, the floor, and pairs by viewpoint change."""

import numpy as np
import pytest

from locus.evaluation.correspondence import PIXELS, TURNS, Correspondence
from locus.evaluation.methods import Chance, Truth
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError
from tests.scenes import room

PROTOCOL = Correspondence(pairs=6)


def test_points_land_where_the_rooms_rays_say(patches):
    """Shot along the ray to where a point is said to land, the other camera must meet that very point."""
    checked = 0
    for a, b in ((0, 1), (3, 4), (6, 8)):
        seen, pixels = patches.seen_from(a, b)
        points = patches.points[a].reshape(-1, 3)[seen]
        pose = patches.frame(b).world_from_camera
        shot = room.shoot("", pose)
        for point, (x, y) in zip(points, pixels, strict=True):
            depth = shot.depth[int(y), int(x)]
            ray = np.array([(x - room.CX) / room.FX, (y - room.CY) / room.FY, 1.0])
            met = pose[:3, :3] @ (ray * depth) + pose[:3, 3]
            checked += np.linalg.norm(met - point) < 0.15
    total = sum(patches.seen_from(a, b)[0].sum() for a, b in ((0, 1), (3, 4), (6, 8)))
    assert checked > 0.9 * total


def test_the_ground_truth_lands_within_a_part_of_a_patch_and_chance_hardly_ever(patches):
    width = room.WIDTH / patches.grid[1]
    truth = PROTOCOL.measure(Truth(), patches)["pairs"]
    chance = PROTOCOL.measure(Chance(), patches)["pairs"]
    assert width > PIXELS[0]
    assert np.mean([pair["within"][0] for pair in truth]) > 0.85
    area = np.pi * PIXELS[0] ** 2 / (room.WIDTH * room.HEIGHT)
    assert np.mean([pair["within"][0] for pair in chance]) == pytest.approx(area, abs=0.02)


def test_pairs_are_drawn_by_how_much_the_view_turns(patches):
    turns = [turn for _, _, turn in PROTOCOL.drawn(patches)]
    counts, _ = np.histogram(turns, TURNS)
    assert (counts <= PROTOCOL.pairs).all()
    assert sum(counts) == len(turns) > 0
    for a, b, turn in PROTOCOL.drawn(patches):
        first, second = (patches.frame(row).world_from_camera[:3, :3] for row in (a, b))
        cosine = (np.trace(first.T @ second) - 1) / 2
        assert turn == pytest.approx(np.degrees(np.arccos(np.clip(cosine, -1, 1))), abs=1e-4)


def test_no_pair_is_one_sentence(patches):
    with pytest.raises(EvaluationError, match="no two frames"):
        Correspondence(overlap=1.1).measure(Truth(), patches)


def test_tables_tell_the_share_by_range(rooms, tmp_path):
    outcome = run(PROTOCOL, [Truth(), Chance()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    five, ten, twenty = PROTOCOL.tables(outcome)
    assert [column.name for column in five.columns] == ["0–15°", "15–30°", "30–60°", "60–180°", "all"]
    values = [table.rows[0].cells[-1].value for table in (five, ten, twenty)]
    assert values == sorted(values)
    assert "<svg" in PROTOCOL.figures(outcome)[0][1]
