"""Tests look at geometry, labels and files, not at the smoothness of light: a few rays per vertex do."""

import pytest

from locus.scenes.render import baking


@pytest.fixture(autouse=True, scope="package")
def little_light():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baking, "GATHER_RAYS", 3)
        patch.setattr(baking, "WINDOW_RAYS", 2)
        patch.setattr(baking, "LAMP_RAYS", 1)
        patch.setattr(baking, "BOUNCES", 1)
        yield
