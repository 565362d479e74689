"""A house that one test has built serves the next, but for those that need a fresh one."""

from functools import lru_cache

import pytest

from locus.houses import generation
from locus.houses.house import House, build

light = House.lit


@lru_cache(maxsize=8)
def built(seed: int) -> House:
    return build(seed)


@lru_cache(maxsize=4)
def lit(house: House):
    return light(house)


@pytest.fixture(autouse=True, scope="module")
def only_little_light(little_light):
    """In all of these tests."""


@pytest.fixture
def reuse(monkeypatch):
    """Let `generation` take houses that are built and lit already."""
    monkeypatch.setattr(generation, "build", lambda seed, models, textures: built(seed))
    monkeypatch.setattr(House, "lit", lit)
