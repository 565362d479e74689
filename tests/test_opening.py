"""The one door: what is no regular file, too large, too deep, out of range or outside is one sentence."""

import ast
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import locus
from locus.errors import LocusError, SceneError
from locus.evaluation.predictions import PosePredictions
from locus.features.extraction import extract
from locus.model import LoCUS
from locus.opening import opened
from locus.render.mesh_file import load_parts
from locus.scenes.reading import path_inside, read_depth
from locus.training.checkpoints import read_metrics
from tests.fuzzing import fault, outcome
from tests.fuzzing_examples import EXAMPLES, SHOTS, use_scene
from tests.landmarks import places
from tests.scenes import layouts

FOLDERS = {
    **dict.fromkeys(("nerfstudio", "tum", "openloris", "7scenes", "7scenes flat", "replica", "scannet"), "scene"),
    **dict.fromkeys(("taskonomy", "colmap", "colmap binary", "polycam", "record3d export"), "scene"),
    **dict.fromkeys(("strayscanner", "arkitscenes", "scannet++"), "scene"),
    "native": "written",
    "matterport": "house",
    "hypersim": "ai_001_001",
    "bag mcap": "walk",
    "bag sqlite3": "walk",
}


@pytest.fixture
def room(tmp_path):
    return layouts.nerfstudio(tmp_path / "room", SHOTS)


def refusal(call, *arguments) -> str:
    """The one sentence that a call ends with."""
    with pytest.raises(LocusError) as caught:
        call(*arguments)
    assert not fault(caught.value, "")
    return str(caught.value)


@pytest.mark.parametrize("name", FOLDERS)
def test_links_out_of_a_scene_are_followed_only_by_those_who_ask_for_it(name, tmp_path):
    EXAMPLES[name][0](tmp_path)
    scene = tmp_path / FOLDERS[name]
    outside = tmp_path / "outside"
    for item in [*scene.iterdir(), *(file for file in scene.rglob("*") if file.is_file())]:
        item.rename(outside)
        item.symlink_to(outside)
        with pytest.raises(SceneError, match=r"points outside the scene's folder .* --allow-outside"):
            locus.load_scene(scene)
        assert len(locus.load_scene(scene, allow_outside=True)) > 0
        item.unlink()
        outside.rename(item)
    (scene / "within").symlink_to(next(scene.iterdir()))
    assert len(locus.load_scene(scene)) > 0


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pipe_anywhere_in_a_scene_is_one_sentence_and_does_not_hang(name, tmp_path):
    EXAMPLES[name][0](tmp_path)
    scene = tmp_path / FOLDERS[name]
    for file in [file for file in scene.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        refusal(use_scene, scene)
        file.unlink()
        file.write_bytes(content)


@pytest.mark.parametrize("name", ["rtabmap", "r3d", "video", "sens", "bag ros1", "bag db3", "bag mcap-file"])
def test_a_pipe_for_a_recording_is_one_sentence(name, tmp_path):
    EXAMPLES[name][0](tmp_path)
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".yaml"]
    for file in files:
        file.unlink()
        os.mkfifo(file)
    format = {"bag": "rosbag"}.get(name.split()[0], {"r3d": "record3d"}.get(name, name.split()[0]))
    refusal(locus.load_scene, files[0], format)


def test_a_sparse_file_of_gigabytes_is_refused_before_it_is_read(room):
    os.truncate(room / "transforms.json", 3 * 2**30)
    assert "3221 MB, more than the 134 MB that such a file may have" in refusal(locus.load_scene, room)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"frames":' * 100_000, "[]," * (2**23 + 1)])
def test_json_without_end_is_refused(room, text):
    (room / "transforms.json").write_text(text)
    assert "JSON" in (said := refusal(locus.load_scene, room)) or "more than 8388608 lists" in said
    (room.parent / "p.jsonl").write_text(text)
    assert "line 1: the line " in refusal(PosePredictions, room.parent / "p.jsonl")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("resolution", value) for value in (65536, -1, 1e12)),
        *(("dimension", value) for value in (1e12, 10**12, 0)),
        *(("radii", value) for value in ([1e20], [], [0.2] * 1000, ["x"], 3)),
        *(("tau", value) for value in (1e200, 0.0, float("nan"))),
        *(("kappa", value) for value in (1e200, "x")),
        *(("layer", value) for value in (10**9, "x")),
    ],
)
def test_a_models_numbers_are_in_sane_ranges(tmp_path, key, value):
    LoCUS("classic", head="linear", dimension=8).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["checksum"]
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    refusal(LoCUS.from_pretrained, tmp_path)


@pytest.mark.parametrize("value", ["1e308", "-1e308", "inf", "nan"])
def test_poses_that_overflow_are_no_poses(tmp_path, value):
    layouts.tum(tmp_path / "tum", SHOTS)
    file = tmp_path / "tum/groundtruth.txt"
    times = [line.split()[0] for line in file.read_text().splitlines()[1:]]
    file.write_text("".join(f"{time}{f' {value}' * 7}\n" for time in times))
    with np.errstate(all="raise"):
        assert "no pose at its time" in refusal(locus.load_scene, tmp_path / "tum")


@pytest.mark.parametrize("key", ["w", "fx", "cx", "scale"])
@pytest.mark.parametrize("value", ["Infinity", "NaN", "1e308", "-Infinity"])
def test_a_camera_at_infinity_is_refused(tmp_path, key, value):
    layouts.replica(tmp_path / "replica", SHOTS)
    file = tmp_path / "cam_params.json"
    content = json.loads(file.read_text())
    content["camera"][key] = "HERE"
    file.write_text(json.dumps(content).replace('"HERE"', value))
    refusal(locus.load_scene, tmp_path / "replica")


def test_a_line_of_metrics_with_a_bad_byte_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n{"step": \xff2}\n')
    assert "line 2 of" in refusal(read_metrics, tmp_path / "metrics.jsonl")


def test_a_mesh_of_flat_vertices_is_one_sentence(tmp_path):
    (tmp_path / "chair.obj").write_text("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n")
    refusal(load_parts, tmp_path / "chair.obj", "y")


def test_an_image_named_as_what_is_kept_of_another_is_refused_before_anything_is_done(tmp_path):
    scene = places.scene([replace(SHOTS[0], name="a"), replace(SHOTS[1], name="a/features")])
    model = LoCUS("classic", head="identity")
    assert "the image a/features cannot be kept" in refusal(extract, scene, tmp_path / "f.h5", model)
    assert not (tmp_path / "f.h5").exists()


@pytest.mark.parametrize("name", ["cameras.txt", "images.txt"])
def test_a_colmap_text_without_its_last_line_is_read_or_one_sentence(tmp_path, name):
    layouts.colmap(tmp_path, SHOTS)
    file = tmp_path / "sparse/0" / name
    text = file.read_text().rstrip("\n")
    for cut in (text, text[:-1], text[: len(text) // 2], text.rpartition("\n")[0]):
        file.write_text(cut)
        assert outcome(use_scene, tmp_path) in ("works", "refused")


def test_nobody_is_advised_to_unpickle(tmp_path):
    np.save(tmp_path / "depth.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "pickle" not in refusal(read_depth, tmp_path / "depth.npy")


def test_a_message_is_one_line_of_bounded_length_whatever_is_in_it():
    assert str(SceneError("a\nb\x1b[31m\udcff")) == "a b [31m "
    assert len(str(LocusError("x" * 10**6))) < 3000


def test_no_file_is_read_but_through_the_door():
    found = []
    for file in Path(locus.__file__).parent.rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
            name, method = getattr(call.func, "id", ""), getattr(call.func, "attr", "")
            modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
            if method in ("read_text", "read_bytes") or ((name or method) == "open" and {"r", "rb"} & set(modes)):
                found.append(file.name)
    assert set(found) == {"errors.py", "opening.py"}  # the first asks importlib what was installed


def test_a_name_that_no_file_can_have_is_one_sentence():
    with pytest.raises(LocusError, match=r"^'a\\x00b' is no name of a file$"), opened(Path("a\0b")):
        pass
    for name in ("images\0/a.png", f"images/{'[' * 300}.png"):
        with pytest.raises(SceneError, match="is no name of a file"):
            path_inside(Path(), name, allow_outside=False)
