"""An image is named the same way everywhere: a file, or a frame as SCENE:NAME or SCENE:NUMBER."""

import json

import numpy as np
import pytest
from PIL import Image

from locus.cli import main
from locus.errors import LocusError
from locus.features.images import sources
from locus.scenes import SceneReading
from locus.tasks.named_images import FileCamera, calibrated, frame_index, only_image, open_inputs, open_scene


@pytest.mark.parametrize("name", ["000002", "2"])
def test_a_frame_is_named_after_a_colon(folder, scene, name):
    image = only_image(f"{folder}:{name}")
    assert np.array_equal(image.read(), scene[2].image)
    known = calibrated(image, FileCamera())
    assert known.name == f"{folder}:{name}"
    assert known.camera == scene[2].camera
    assert np.array_equal(known.depth, scene[2].depth)
    assert np.array_equal(known.world_from_camera, scene[2].world_from_camera)
    assert not known.guessed
    assert calibrated(image, FileCamera(), rgb=True).depth is None


def test_a_name_is_meant_before_a_number(scene):
    renamed = scene[::-1]
    assert frame_index(renamed, "000001") == 4
    assert frame_index(renamed, "1") == 1


def test_folders_and_frames_may_hold_colons(folder, tmp_path):
    (tmp_path / "a:b").symlink_to(folder)
    opened, index = open_scene(f"{tmp_path}/a:b:000003")
    assert (opened.name, index) == ("a:b", 3)


def test_frames_files_and_scenes_are_one_list_of_images(folder, tmp_path):
    (tmp_path / "other").symlink_to(folder)
    Image.new("RGB", (8, 6)).save(tmp_path / "photo.png")
    words = [f"{folder}:1", str(tmp_path / "other"), str(tmp_path / "photo.png")]
    names = [image.name for image in sources(open_inputs(words))]
    assert names == ["room/000001", *(f"other/{number:06d}" for number in range(6)), "photo.png"]


def test_a_files_camera_is_given_or_guessed(folder):
    image = only_image(str(folder / "images" / "000002.png"))
    guess = calibrated(image, FileCamera(fov=90))
    assert guess.guessed
    assert (guess.camera.fx, guess.camera.cx, guess.camera.cy) == (pytest.approx(40), 40, 30)
    given = calibrated(image, FileCamera((70.0, 71.0, 39.0, 29.0)))
    assert (given.camera.fx, given.camera.fy, given.camera.cx, given.camera.cy) == (70, 71, 39, 29)
    assert not given.guessed
    assert given.depth is given.scene is None
    with pytest.raises(LocusError, match="less than 180 degrees"):
        FileCamera(fov=180)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("{folder}", "is 6 images; name one of them"),
        ("{folder}:9", "has no frame '9': they are 0 to 5, or 000000 to 000005"),
        ("{folder}:nobody", "has no frame 'nobody'"),
        ("nowhere:3", "nowhere:3 does not exist"),
        ("000002", "000002 does not exist; .* a frame as SCENE:NAME"),
    ],
)
def test_what_is_no_image_is_said(folder, word, said):
    with pytest.raises(LocusError, match=said):
        only_image(word.format(folder=folder))


def test_scenes_are_read_as_told(folder):
    (half,) = open_inputs([f"{folder}:0"], SceneReading(depth_scale=2000))
    (plain,) = open_inputs([f"{folder}:0"])
    assert np.allclose(2 * half[0].depth, plain[0].depth)


@pytest.fixture(scope="module")
def world(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("map")
    assert main(["map", str(folder), "--model", "classic", "--out", str(out / "map")]) == 0
    words = ["segment", "fit", str(folder), "--model", "classic", "--out", str(out / "probe.safetensors")]
    assert main(words) == 0
    return out


@pytest.mark.parametrize(
    "words",
    [
        "match FRAME SCENE:1 --out lines.png",
        "localize FRAME --map MAP",
        "retrieve FRAME --map MAP",
        "cosegment FRAME 40 40",
        "cosegment FRAME 40 40 SCENE",
        "find FRAME SCENE --box 20 20 50 50",
        "find FRAME SCENE:1 SCENE:3 --box 20 20 50 50",
        "segment predict PROBE FRAME --out labels",
        "extract FRAME",
    ],
)
def test_every_command_takes_a_frame(folder, world, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    meant = {"FRAME": f"{folder}:000002", "MAP": f"{world}/map", "PROBE": f"{world}/probe.safetensors"}
    arguments = [meant.get(word, word.replace("SCENE", str(folder))) for word in words.split()]
    model = [] if "predict" in arguments else ["--model", "classic"]
    assert main([*arguments, *model]) in (0, 1)  # 1: no pose
    assert any(tmp_path.iterdir()) or arguments[0] in ("localize", "retrieve")


def test_options_that_repair_a_scene_count_for_frames_too(folder, tmp_path):
    cameras = []
    for swapped in ([], ["--intrinsics", "swapped"]):
        words = ["match", f"{folder}:0", f"{folder}:1", "--model", "classic", "--json", str(tmp_path / "told.json")]
        main([*words, *swapped])
        cameras.append(json.loads((tmp_path / "told.json").read_text())["images"][1])
    plain, repaired = cameras
    assert plain["fx"] != plain["fy"]
    assert (repaired["fx"], repaired["fy"]) == (plain["fy"], plain["fx"])


def test_a_camera_of_another_size_is_refused():
    with pytest.raises(LocusError, match=r"principal point at \(648, 484\), outside the 320×240 image"):
        FileCamera((1170.0, 1170.0, 648.0, 484.0)).of(320, 240)
