"""ARKitScenes' raw folders, as the data set has them and as it does not."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError
from locus.scenes import inspect
from tests.scenes import phone_layouts, refusals, room
from tests.scenes.test_hostile_files import check_use, lines, same_folder

SHOTS = room.shots(4)


@pytest.fixture
def scan(tmp_path):
    phone_layouts.arkitscenes(tmp_path / "41048190", SHOTS)
    return tmp_path / "41048190"


@pytest.mark.parametrize("folder", ["41048190", "41048190/41048190_frames"], ids=["raw", "3dod"])
def test_it_is_read_exactly_and_low_confidence_is_unknown(tmp_path, folder):
    phone_layouts.arkitscenes(tmp_path / folder, SHOTS)
    scene = locus.load_scene(tmp_path / "41048190")
    assert (scene.format, scene.name) == ("arkitscenes", "41048190")
    room.assert_shown(scene, phone_layouts.without_unsure(SHOTS), 0.5001e-3, loss=0)
    assert inspect(scene).sound


def test_lines_out_of_order_or_without_numbers_change_nothing_else(scan):
    file = scan / "lowres_wide.traj"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([*rows[::-1], "3414.25 nan 0 0 0 0 inf"]) + "\n")
    room.assert_shown(locus.load_scene(scan), phone_layouts.without_unsure(SHOTS), 0.5001e-3, loss=0)


def test_what_is_missing_in_time_is_skipped_and_depth_may_be_missing(scan):
    file = scan / "lowres_wide.traj"
    file.write_text("\n".join(file.read_text().splitlines()[2:]) + "\n")
    next((scan / "lowres_wide_intrinsics").glob("*3415*")).unlink()
    next((scan / "lowres_depth").glob("*3416*")).unlink()
    next((scan / "confidence").glob("*3417*")).unlink()
    scene = locus.load_scene(scan)
    assert scene.skipped == {
        "41048190_3414.250": "no pose at its time 3414.250",
        "41048190_3415.250": "no intrinsics within 20 ms",
    }
    assert [frame.name for frame in scene] == ["41048190_3416.250", "41048190_3417.250"]
    with pytest.raises(FrameError, match="no depth"):
        scene[0].depth  # noqa: B018
    np.testing.assert_array_equal(scene[0].image, SHOTS[2].image)
    assert scene[1].depth[phone_layouts.UNSURE].min() == 9


@pytest.mark.parametrize(
    ("part", "content", "sentence"),
    [
        ("lowres_wide.traj", "", "is empty"),
        ("lowres_wide.traj", "1 2 3\n", "a time, three angles and a translation"),
        ("lowres_wide.traj", "nan nan nan nan nan nan nan\n", "has no frames; 41048190_3414.250: no pose at its time"),
        ("lowres_wide_intrinsics", None, "download that part as well"),
        ("lowres_wide", None, "has no frames"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(scan, monkeypatch, capsys, part, content, sentence):
    if content is None:
        shutil.rmtree(scan / part)
    else:
        (scan / part).write_text(content)
    refusals.assert_said(scan, sentence, monkeypatch, capsys)


@pytest.mark.parametrize("folder", ["lowres_wide", "lowres_depth", "confidence", "lowres_wide_intrinsics"])
def test_links_out_of_the_folder_are_refused(scan, folder):
    refusals.assert_link_refused(scan, next((scan / folder).iterdir()))


@same_folder
@given(st.sampled_from(["lowres_wide.traj", "lowres_wide_intrinsics/41048190_3414.251.pincam"]), lines)
def test_any_text_in_its_files(tmp_path, name, text):
    phone_layouts.arkitscenes(tmp_path, SHOTS[:1])
    (tmp_path / name).write_text(text)
    check_use(tmp_path)
