"""Without the extra `capture`, what needs none of its packages works, and what does says what to install."""

import sys

import pytest

import locus
from locus.errors import FrameError
from tests.scenes import phone_layouts, room

SHOTS = room.shots(1)


@pytest.mark.parametrize(
    ("package", "write", "name"),
    [
        ("lzfse", phone_layouts.r3d, "walk.r3d"),
        ("OpenEXR", phone_layouts.record3d_export, "walk"),
        ("lz4.block", phone_layouts.scannetpp, "036bce3393"),
    ],
)
def test_depth_says_what_to_install_and_the_rest_is_read(tmp_path, monkeypatch, package, write, name):
    write(tmp_path / name, SHOTS)
    monkeypatch.setitem(sys.modules, package, None)
    frame = locus.load_scene(tmp_path / name)[0]
    assert frame.image.shape == (room.HEIGHT, room.WIDTH, 3)
    with pytest.raises(FrameError, match=r"pip install .*\[capture\]"):
        frame.depth  # noqa: B018
