"""A small room, its map on disk, and the service over it, with a network that needs no weights."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from tests.landmarks import places
from tests.scenes import room

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
INTRINSICS = {"fx": room.FX, "fy": room.FY, "cx": room.CX, "cy": room.CY}


@pytest.fixture(scope="session")
def model():
    return LoCUS("classic", head="identity", radii=(0.2,))


@pytest.fixture(scope="session")
def shots():
    return room.shots(12)


@pytest.fixture(scope="session")
def world(model, shots, tmp_path_factory):
    return LandmarkMap.build(model, places.scene(shots), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture
def map_folder(world, tmp_path):
    return world.save(tmp_path / "map")


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def depth_png(shot: room.Shot) -> bytes:
    return png((shot.depth * 1000).round().astype(np.uint16))


def form(**fields: object) -> dict[str, str]:
    """Fields of a form: text as it is, the rest as JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


@pytest.fixture
def service(map_folder, model):
    from locus.serve.served_maps import ServedMaps
    from locus.serve.service import Service

    return Service(ServedMaps([map_folder], model))


@pytest.fixture
def client(service):
    from starlette.testclient import TestClient

    from locus.serve.endpoints import app_of

    with TestClient(app_of(service), raise_server_exceptions=False) as talking:
        yield talking
