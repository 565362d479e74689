"""Writing the native format: whole, or not at all."""

import pytest
from PIL import Image

import locus
from locus.errors import LocusError, SceneError
from locus.scenes import export, inspect


def test_export_leaves_out_unreadable_frames_and_names_them(folder, tmp_path):
    scene = locus.load_scene(folder)
    (folder / "images/000005.png").unlink()
    (folder / "depth/000006.png").unlink()
    with pytest.warns(UserWarning, match=r"2 frames.*000005"):
        export(scene, tmp_path / "out")
    again = locus.load_scene(tmp_path / "out")
    assert [frame.name for frame in again] == ["000000", "000001", "000002", "000003", "000004", "000007"]
    assert not (tmp_path / "out/images/000006.png").exists()
    with pytest.raises(SceneError, match=r"no frame to write.*000005"):
        export(scene[5:7], tmp_path / "none")


def test_an_interrupted_export_leaves_nothing_behind(folder, tmp_path, monkeypatch):
    scene = locus.load_scene(folder)
    original, calls = Image.Image.save, []

    def interrupt(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(Image.Image, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(scene, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["room"]
    (tmp_path / "taken").mkdir()
    with pytest.raises(LocusError, match="exists already"):
        export(scene, tmp_path / "taken")


def test_export_refuses_depth_that_sixteen_bits_cannot_hold(folder, tmp_path):
    scene = locus.load_scene(folder, depth_scale=10)  # up to 400 m
    with pytest.raises(LocusError, match="16-bit"):
        export(scene, tmp_path / "out")


def test_an_empty_slice_cannot_be_inspected_or_written(folder, tmp_path):
    nothing = locus.load_scene(folder)[1:1]
    with pytest.raises(SceneError, match="no frames"):
        inspect(nothing)
    with pytest.raises(SceneError, match="no frame"):
        export(nothing, tmp_path / "out")
