"""`locus eval objects`: its measures against scikit-learn, and a whole measurement of a small room."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.evaluation.methods import ModelMethod
from locus.evaluation.object_groups import (
    GeometryAlone,
    ObjectGroups,
    adjusted_rand,
    matched,
    ranked_precision,
    v_measure,
)
from locus.evaluation.outcome import MeasuredPart, Outcome
from locus.evaluation.scene_patches import EvaluationError, read_patches
from locus.scenes import Scene
from tests.landmarks import places
from tests.scenes import room

metrics = pytest.importorskip("sklearn.metrics")
labelled = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n).map(np.array)] * 2)
)


@given(labelled)
def test_groups_are_measured_as_scikit_learn_measures_them(both):
    assert v_measure(*both) == pytest.approx(metrics.v_measure_score(*both), abs=1e-9)
    assert adjusted_rand(*both) == pytest.approx(metrics.adjusted_rand_score(*both), abs=1e-9)


def test_precision_is_that_of_scikit_learn_where_all_things_are_found():
    random = np.random.default_rng(0)
    right, sure = random.random(50) < 0.4, random.random(50)
    found = ranked_precision(list(zip(sure.tolist(), right.tolist(), strict=True)), int(right.sum()))
    assert found == pytest.approx(metrics.average_precision_score(right, sure))
    assert ranked_precision([(0.5, True)], 4) == 0.25
    assert ranked_precision([], 4) == 0


def test_a_thing_is_found_once():
    overlap = np.array([[0.6, 0.1], [0.7, 0.0], [0.2, 0.4]])
    assert matched(overlap, 0.5) == [True, False, False]
    assert matched(overlap, 0.25) == [True, False, True]


@dataclass(frozen=True, eq=False)
class LabelledShot(places.ShotSource):
    def instance(self):
        return self.shot.instance


def patches(name):
    scene = places.scene(room.shots(8), name)
    sources = [LabelledShot(source.name, source.shot) for source in scene.sources]
    return read_patches(Scene(name, "memory", sources, scene.convention, scene.classes))


def test_a_room_and_its_visit_are_measured(monkeypatch):
    told = {
        "later-visit-000": {"changes": [{"change": "moved", "instance": 3}]},
        "later": {"rooms": [{"inner": [-2, -1.5, 2, 1.5]}]},
    }
    monkeypatch.setattr("locus.evaluation.object_groups._beside", lambda scene: told.get(scene.name, {}))
    benchmark = ObjectGroups()
    measured = benchmark.measure(GeometryAlone(), [patches("later"), patches("later-visit-000")])
    assert list(measured["groups"]) == ["later"]
    assert measured["groups"]["later"]["things"] == 3
    assert measured["again"] == [{"right": True, "moved": thing == 3} for thing in (2, 3, 4)]
    assert measured["rooms"] == [1.0]
    method = GeometryAlone()
    outcome = Outcome(benchmark, [method], [MeasuredPart(method.label, "all", "unseen", measured)], {}, 1)
    (table,) = benchmark.tables(outcome)
    assert table.rows[0].cells[3:] == [1.0, 1.0, 1.0]


def test_a_method_without_curves_of_its_own_is_refused():
    with pytest.raises(EvaluationError, match="--curves"):
        ObjectGroups().grouping(ModelMethod("other", places.model()))
