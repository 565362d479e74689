"""Houses visited again: what the truth says has changed has, and nothing else."""

import json

import numpy as np
import pytest

from locus.cli import main
from locus.geometry import transform
from locus.houses import CLASSES
from locus.houses.changes import FAR, changed
from locus.houses.house import stream
from locus.scenes import load_scene

from .conftest import built

SEED = 3


def vertices(house):
    """Of every instance."""
    return {thing.instance: np.concatenate([part.vertices for part in thing.parts]) for thing in house.things}


def visit(number, moves=5):
    return changed(built(SEED), moves, stream(SEED, f"changes {number}"), built(SEED + 1))


@pytest.mark.parametrize("number", range(3))
def test_what_is_said_has_changed_and_nothing_else(number):
    later, changes = visit(number)
    before, after = vertices(built(SEED)), vertices(later)
    said = {what: {change.instance for change in changes if change.what == what} for what in ("moved", "gone", "new")}
    assert {what: len(instances) for what, instances in said.items()} == {"moved": 5, "gone": 2, "new": 2}
    assert before.keys() - after.keys() == said["gone"]
    assert after.keys() - before.keys() == said["new"]
    for instance in before.keys() & after.keys() - said["moved"]:
        assert np.array_equal(before[instance], after[instance])
    kinds = {
        thing.instance: CLASSES[thing.semantic - 1].name for house in (built(SEED), later) for thing in house.things
    }
    for change in changes:
        assert kinds[change.instance] == change.kind
        if change.what == "moved":
            expected = transform(change.after_from_before, before[change.instance].astype(float))
            assert np.abs(expected - after[change.instance]).max() < 1e-4
            assert np.linalg.norm(expected.mean(axis=0) - before[change.instance].mean(axis=0)) > FAR / 2
        for box, shape in ((change.before, before), (change.after, after)):
            if box is not None:
                points = shape[change.instance]
                assert (points >= box[:3] - 1e-3).all()
                assert (points <= box[3:] + 1e-3).all()


@pytest.mark.parametrize("number", range(3))
def test_things_stay_on_the_floor_apart_from_each_other_and_inside(number):
    later, changes = visit(number)
    shapes = vertices(later)
    first = len(later.things) - len(later.placed)
    boxes = {thing.instance: placed.boxes for thing, placed in zip(later.things[first:], later.placed, strict=True)}
    for change in changes:
        if change.after is None:
            continue
        assert 0 <= change.after[2] < 0.05
        inside = [room.inner for room in later.plan.rooms]
        x, y = shapes[change.instance][:, 0], shapes[change.instance][:, 1]
        assert any(
            x0 - 0.01 <= x.min() and x.max() <= x1 + 0.01 and y0 - 0.01 <= y.min() and y.max() <= y1 + 0.01
            for x0, y0, x1, y1 in inside
        )
        mine = boxes[change.instance]
        for instance, others in boxes.items():
            if instance != change.instance:
                shared = np.minimum(mine[:, None, 3:], others[None, :, 3:]) - np.maximum(
                    mine[:, None, :3], others[None, :, :3]
                )
                assert (shared.min(axis=-1) < 0.01).all()


def test_the_same_visit_is_the_same_and_another_is_another():
    first, again, other = ([change.described() for change in visit(number)[1]] for number in (0, 0, 1))
    assert first == again
    assert first != other


def test_without_moves_only_the_light_changes():
    later, changes = visit(0, moves=0)
    assert changes == []
    before, after = vertices(built(SEED)), vertices(later)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[instance], after[instance]) for instance in before)
    assert not np.array_equal(later.lights.outside.panorama, built(SEED).lights.outside.panorama)


@pytest.mark.usefixtures("reuse")
def test_the_command(tmp_path, capsys):
    words = ["houses", str(tmp_path), "--changed-from", str(SEED), "--moves", "4", "--frames-per-scene", "3"]
    assert main([*words, "--size", "64", "48"]) == 0
    assert "1 visit in" in capsys.readouterr().out
    scene = load_scene(tmp_path / f"house-{SEED:06d}-visit-000")
    truth = json.loads((tmp_path / f"{scene.name}.json").read_text())
    assert truth["changed from"] == SEED
    assert [change["change"] for change in truth["changes"]].count("moved") == 4
    shown = set(np.unique([frame.instance for frame in scene]).tolist())
    assert not shown & {change["instance"] for change in truth["changes"] if change["change"] == "gone"}
    assert main([*words[:-2], "--moves", "-1"]) == 2
    assert "must not be negative" in capsys.readouterr().err
