"""What each reader says of files that do not fit its format."""

import json

import numpy as np
import pytest
from PIL import Image

import locus
from locus.errors import FrameError, LocusError, SceneError
from locus.scenes.formats import READERS
from tests.scenes import layouts, room


@pytest.mark.parametrize("format", READERS)
def test_a_format_that_is_asked_for_by_name_says_what_is_missing(tmp_path, format):
    """In an empty folder, and in a file that is nothing."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("nothing\n")
    for path in (tmp_path / "empty", tmp_path / "file"):
        with pytest.raises(LocusError):
            locus.load_scene(path, format)


def test_two_files_that_claim_one_timestamp_are_a_counted_skip(tmp_path, shots):
    layouts.tum(tmp_path, shots)
    for name in ("rgb", "depth"):
        with (tmp_path / f"{name}.txt").open("a") as file:
            first = "1000.000000" if name == "rgb" else "1000.010000"
            file.write(f"{first} {name}/other.png\n")
    scene = locus.load_scene(tmp_path)
    assert len(scene) == 8
    assert len(scene.skipped) == 2
    assert all("claimed by an earlier line" in reason for reason in scene.skipped.values())
    assert scene[0].image.shape == (60, 80, 3)  # the first line of each, which exists


def test_tum_frames_without_depth_or_pose_in_time_are_counted_skips(tmp_path, shots):
    layouts.tum(tmp_path, shots)
    lines = (tmp_path / "depth.txt").read_text().splitlines()
    (tmp_path / "depth.txt").write_text("\n".join(line for line in lines if "1002" not in line))
    lines = (tmp_path / "groundtruth.txt").read_text().splitlines()
    (tmp_path / "groundtruth.txt").write_text(
        "\n".join(line for line in lines if not line.startswith(("1003.995", "1004", "1005")))
    )
    scene = locus.load_scene(tmp_path)
    assert len(scene) == 5
    assert {name: reason[:8] for name, reason in scene.skipped.items()} == {
        "1002.000000": "no depth",
        "1004.000000": "no pose ",
        "1005.000000": "no pose ",
    }


def test_tum_from_an_unknown_camera_says_what_to_write(tmp_path, shots):
    layouts.tum(tmp_path, shots)
    (tmp_path / "calibration.txt").unlink()
    with pytest.raises(SceneError, match=r"'fx fy cx cy'.*calibration.txt"):
        locus.load_scene(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("sensors.yaml", None, "sensors.yaml is missing"),
        ("sensors.yaml", "d400: [[[\n :", "sensors.yaml does not describe"),
        ("sensors.yaml", "%YAML:1.0\nother: 1\n", "sensors.yaml does not describe"),
        ("trans_matrix.yaml", None, "trans_matrix.yaml is missing"),
        (
            "trans_matrix.yaml",
            "%YAML:1.0\ntrans_matrix:\n   -\n      parent_frame: a\n",
            "does not lead from base_link",
        ),
        ("trans_matrix.yaml", "CYCLE", "does not lead from base_link"),
    ],
)
def test_openloris_files_that_do_not_describe_its_camera(tmp_path, shots, capfd, file, text, sentence):
    layouts.openloris(tmp_path, shots[:2])
    if text is None:
        (tmp_path / file).unlink()
    elif text == "CYCLE":
        (tmp_path / file).write_text((tmp_path / file).read_text().replace("base_link", "d400_color_optical_frame"))
    else:
        (tmp_path / file).write_text(text)
    with pytest.raises(SceneError, match=sentence):
        locus.load_scene(tmp_path)
    assert capfd.readouterr().err == ""  # OpenCV says nothing of its own


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"t_03": "far"}, 'finite numbers as "t_00" … "t_23"'),
        ({"t_03": float("nan")}, 'finite numbers as "t_00" … "t_23"'),
        ({"fx": None}, 'finite numbers as "width" … "cy"'),
        ({"width": -1}, "image size must be positive"),
        ({"t_00": 5.0}, "not rigid"),
    ],
)
def test_a_polycam_camera_that_makes_no_sense_is_its_frames_alone(tmp_path, shots, change, sentence):
    layouts.polycam(tmp_path, shots)
    file = tmp_path / "keyframes/corrected_cameras/98.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    first, second, *_ = locus.load_scene(tmp_path)
    with pytest.raises(FrameError, match=sentence):
        _ = first.camera, first.world_from_camera
    np.testing.assert_allclose(second.world_from_camera, shots[1].world_from_camera, atol=1e-9)


def test_polycam_files_that_lead_outside_are_refused(tmp_path, shots):
    root = tmp_path / "scan"
    layouts.polycam(root, shots)
    file = root / "keyframes/depth/98.png"
    file.rename(tmp_path / "outside.png")
    file.symlink_to(tmp_path / "outside.png")
    with pytest.raises(SceneError, match="points outside"):
        locus.load_scene(root)
    assert len(locus.load_scene(root, allow_outside=True)) == len(shots)


def test_replica_frames_are_posed_by_their_number_not_their_place(tmp_path, shots):
    root = tmp_path / "replica"
    layouts.replica(root, shots)
    for k in (1, 3):
        (root / f"results/frame{k:06d}.jpg").unlink()
    layouts.save(root / "results/frame000099.jpg", shots[0].image)
    scene = locus.load_scene(root)
    assert len(scene) == 6
    np.testing.assert_allclose(scene[1].world_from_camera, shots[2].world_from_camera)
    assert scene.skipped == {"frame000099": "traj.txt has no line for it"}


@pytest.mark.parametrize("factor", [0.8, 2.0])
def test_scannet_colour_resized_after_its_calibration_is_refused(tmp_path, shots, factor):
    root = tmp_path / "scannet"
    layouts.scannet(root, shots[:1])
    size = (int(room.WIDTH * factor), int(room.HEIGHT * factor))
    Image.fromarray(shots[0].image).resize(size).save(root / "color/0.jpg")
    with pytest.raises(FrameError, match="intrinsic_color"):
        locus.load_scene(root)[0].camera  # noqa: B018


def test_colmap_depth_of_two_kinds_is_refused_and_one_kind_sets_the_unit(tmp_path, shots):
    import shutil

    layouts.colmap(tmp_path, shots)
    shutil.rmtree(tmp_path / "stereo")
    (tmp_path / "depth").mkdir()
    for shot in shots[1:]:
        np.save(tmp_path / f"depth/{shot.name}.npy", shot.depth.astype(np.float32))
    scene = locus.load_scene(tmp_path)
    np.testing.assert_allclose(scene[1].depth, shots[1].depth, rtol=1e-6)
    with pytest.raises(FrameError, match="missing"):
        scene[0].depth  # noqa: B018
    layouts.save_depth(tmp_path / f"depth/{shots[0].name}.png", shots[0].depth, 1000)
    with pytest.raises(SceneError, match=r"both .png and .npy"):
        locus.load_scene(tmp_path)


def test_a_damaged_binary_colmap_model_is_refused_before_it_is_read(tmp_path, shots):
    import pycolmap

    layouts.colmap(tmp_path, shots)
    model = tmp_path / "sparse/0"
    pycolmap.Reconstruction(str(model)).write_binary(str(model))
    for file in model.glob("*.txt"):
        file.unlink()
    assert len(locus.load_scene(tmp_path)) == len(shots)
    points = model / "points3D.bin"
    points.write_bytes((2**59).to_bytes(8, "little") + points.read_bytes()[8:])
    with pytest.raises(SceneError, match="claims 576460752303423488 entries"):
        locus.load_scene(tmp_path)


def test_matterport_folders_named_in_the_text_stay_inside(tmp_path, shots):
    layouts.matterport(tmp_path, shots)
    file = tmp_path / "undistorted_camera_parameters/house.conf"
    text = file.read_text()
    for outside in ("../elsewhere", "/etc", ".."):
        file.write_text(text.replace("undistorted_depth_images", outside))
        with pytest.raises(SceneError, match="not the name of a folder"):
            locus.load_scene(tmp_path)
