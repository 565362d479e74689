"""Every shape written in a signature is checked while the tests run; fixtures used all over."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests start many processes, which need not all compile the same files

install_import_hook("locus", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")  # int is a float

# Shared machines stall; a property that holds slowly still holds.
settings.register_profile("locus", deadline=None, max_examples=60)
settings.load_profile("locus")

# Real posed RGB-D is no part of the project: it lies beside the checkout, or where LOCUS_DATA says.
REAL_DATA = Path(os.environ.get("LOCUS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def real_data() -> Path:
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real data in {REAL_DATA}; LOCUS_DATA names another folder")
    return REAL_DATA


@pytest.fixture(scope="module")
def little_light():
    """For tests that look at other things than the smoothness of light: a few rays per vertex do."""
    from locus.render import baking

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baking, "GATHER_RAYS", 3)
        patch.setattr(baking, "WINDOW_RAYS", (2, 1))
        patch.setattr(baking, "LAMP_RAYS", 1)
        patch.setattr(baking, "BOUNCES", 1)
        yield


@pytest.fixture(scope="session")
def focus_weights():
    return _weights("dinov2-small-focus")


@pytest.fixture(scope="session")
def small_weights():
    """Those that `locus-small` stands on."""
    return _weights("dinov2-small")


def _weights(name):
    """Real weights, in the user's own store, so that they are downloaded once."""
    from locus.backbones.sources import locate
    from locus.errors import WeightsError

    try:
        return locate(name)
    except WeightsError as error:
        pytest.skip(str(error))
