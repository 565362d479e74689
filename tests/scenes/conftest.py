"""The room as a scene of the native format, for tests to break."""

import pytest

from tests.scenes import layouts, room


@pytest.fixture(scope="module")
def shots():
    return room.shots()


@pytest.fixture
def folder(tmp_path, shots):
    root = tmp_path / "room"
    root.mkdir()
    layouts.nerfstudio(root, shots)
    return root
