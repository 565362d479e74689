"""Maps of recordings that are too long to keep the features of all frames: made window by window."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import KDTree

from locus.features.dense import SceneFeatures, StreamedFeatures
from locus.landmarks import LandmarkMap
from locus.landmarks.observations import patches
from tests.landmarks import places
from tests.landmarks.test_map import counted


@pytest.fixture
def streaming(model, seen, monkeypatch):
    """Make the room a recording that is handed out in these windows."""

    def start(windows: list[SceneFeatures]) -> None:
        def windows_of(self: StreamedFeatures) -> Iterator[SceneFeatures]:
            return iter(windows)

        long = StreamedFeatures(seen.scene, seen.indices, seen.points, model, np.zeros((len(seen), 1, 1), np.float16))
        monkeypatch.setattr(StreamedFeatures, "windows", windows_of)
        monkeypatch.setattr(StreamedFeatures, "long", True)
        monkeypatch.setattr("locus.landmarks.map.streamed_features", lambda *_, **__: long)

    return start


@pytest.mark.parametrize("length", [5, 8])
def test_what_frames_say_is_exact_and_the_same_surfaces_have_landmarks(model, seen, world, streaming, length):
    streaming([seen.take(range(16)[first : first + length]) for first in range(0, 16, length)])
    built = LandmarkMap.build(model, seen.scene)
    assert built.frame_names == world.frame_names
    assert np.array_equal(built.sightings.toarray(), counted(built, patches(seen)))
    away = KDTree(built.landmarks.position).query(world.landmarks.position)[0]
    assert (away < 2 * places.RADIUS).mean() > 0.9
    few = LandmarkMap.build(model, seen.scene, most=10)
    assert len(few) == 10
    assert few.landmarks.score.mean() >= built.landmarks.score.mean()


def test_a_window_without_depth_adds_nothing(model, seen, streaming):
    blind = replace(seen, points=np.full_like(seen.points, np.nan))
    streaming([blind.take(range(4)), seen.take(range(4, 16))])
    built = LandmarkMap.build(model, seen.scene)
    assert not built.sightings[:4].nnz
    assert built.sightings[4:].nnz
    assert (built.frames.chance[:4] == 0).all()
