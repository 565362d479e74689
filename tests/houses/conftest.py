"""Tests look at geometry, labels and files, not at the smoothness of light: a few rays per vertex do. And a house that
one test has built serves the next, but for those that need a fresh one."""

from functools import lru_cache

import pytest

from locus.houses import generation
from locus.houses.house import House, build
from locus.render import baking

light = House.lit


@lru_cache(maxsize=8)
def built(seed: int) -> House:
    return build(seed)


@lru_cache(maxsize=4)
def lit(house: House):
    return light(house)


@pytest.fixture(autouse=True, scope="package")
def little_light():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baking, "GATHER_RAYS", 3)
        patch.setattr(baking, "WINDOW_RAYS", (2, 1))
        patch.setattr(baking, "LAMP_RAYS", 1)
        patch.setattr(baking, "BOUNCES", 1)
        yield


@pytest.fixture
def reuse(monkeypatch):
    """Let `generation` take houses that are built and lit already."""
    monkeypatch.setattr(generation, "build", lambda seed, models, textures: built(seed))
    monkeypatch.setattr(House, "lit", lit)
