"""The node's package, which lies beside the project's own, and a map whose features know every point."""

import sys

import pytest
from jaxtyping import install_import_hook

from locus.landmarks import LandmarkMap
from tests.landmarks import places
from tests.pages import ROOT
from tests.scenes import room

PACKAGE = ROOT / "ros" / "locus_ros"
sys.path.insert(0, str(PACKAGE))
install_import_hook(
    ["locus_ros.core", "locus_ros.messages"], "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)


@pytest.fixture(scope="session")
def walk():
    """Images that a robot takes."""
    return places.wanderer(6)


@pytest.fixture(scope="session")
def model(walk):
    """One that knows these images; every other one is of another environment."""
    known = places.model()
    features = {shot.image.tobytes(): places.features(shot) for shot in walk}
    known.features = lambda image: features.get(image.tobytes(), places.features(walk[0], world=1))
    return known


@pytest.fixture(scope="session")
def world(model):
    return LandmarkMap.build(model, places.seen(places.scene(room.shots(16))))
