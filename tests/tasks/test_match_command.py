"""`locus match` as a user runs it, with the backbone that needs no weights."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from locus.cli import main
from locus.errors import LocusError
from locus.tasks import placed_points, relative_pose
from locus.tasks.match_picture import AGREES, match_picture
from locus.tasks.matching import Matches
from locus.tasks.placed_points import available


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A picture, and the same as a camera sees it that turned until all has moved 70 pixels to the left."""
    folder = tmp_path_factory.mktemp("images")
    noise = np.random.default_rng(0).integers(0, 255, (168, 350, 3), np.uint8)
    paths = folder / "a.png", folder / "b.png"
    for path, first in zip(paths, (0, 70), strict=True):
        Image.fromarray(noise[:, first : first + 280]).save(path)
    return paths


def run(capsys, *words, rule="mutual"):
    code = main(["match", *map(str, words), "--model", "classic", "--rule", rule])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err


def test_two_frames_of_a_scene_are_compared_with_the_truth(capsys, folder, tmp_path):
    files = tmp_path / "lines.png", tmp_path / "matches.json"
    code, out, _ = run(capsys, f"{folder}:0", f"{folder}:000000", "--out", files[0], "--json", files[1])
    assert code == 0
    assert "matches: 24; 100% at the same image position" in out
    assert "pose by 3d-3d" in out
    assert "off the true pose by 0.0°, 0.00 m" in out
    assert f"Wrote {files[0]}" in out
    assert Image.open(files[0]).size == (2 * 640 + 8, 480)
    told = json.loads(files[1].read_text())
    assert told["pose"]["metric"] is True
    assert np.shape(told["pose"]["covariance"]) == (6, 6)
    assert f"right to 5° and 0.1 m with probability {told['pose']['probability']:.2f}" in out
    assert np.allclose(told["pose"]["b_from_a"], np.eye(4), atol=1e-6)
    assert len(told["matches"]["pixels_b"]) == 24
    assert told["errors"]["rotation_degrees"] < 1e-3
    assert told["images"][0]["camera_guessed"] is False


def test_a_pose_that_is_too_likely_wrong_is_refused(capsys, folder, monkeypatch):
    frames = f"{folder}:0", f"{folder}:000000"
    code, out, _ = run(capsys, *frames, "--min-probability", 0)
    assert code == 0
    probability = re.search(r"with probability (0\.\d\d)", out)[1]
    monkeypatch.setattr(relative_pose, "least_probability", lambda kind: 1.0)
    code, out, _ = run(capsys, *frames)
    assert code == 1
    assert f"which is right with a probability of {probability} only, and 1.00 is needed" in out
    assert "B sees" not in out


def test_without_depth_how_far_is_not_known(capsys, folder):
    _, out, _ = run(capsys, f"{folder}:0", f"{folder}:0", "--rgb")
    assert "pose by 5-point" in out
    assert "3d-3d" not in out


def test_image_files_get_a_camera_that_is_said_to_be_a_guess(capsys, images):
    code, out, _ = run(capsys, *images)
    assert code in (0, 1)
    assert "The camera is a guess, 60° wide" in out
    assert "true pose" not in out
    _, out, _ = run(capsys, *images, "--camera", "240", "240", "140", "84")
    assert "guess" not in out


def test_a_wide_guess_and_the_papers_rule_are_taken(capsys, images, tmp_path):
    run(capsys, *images, "--fov", "90", "--rule", "paper", "--json", tmp_path / "told.json")
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["images"][1]["fx"] == pytest.approx(140)
    assert told["pose"]["solver"] == "5-point"
    assert told["images"][0]["camera_guessed"] is True


def test_images_of_nothing_have_no_pose_and_exit_with_1(capsys, tmp_path):
    Image.new("RGB", (280, 168), (90, 90, 90)).save(tmp_path / "flat.png")
    files = tmp_path / "lines.jpg", tmp_path / "told.json"
    words = [tmp_path / "flat.png"] * 2
    code, out, _ = run(capsys, *words, "--out", files[0], "--json", files[1])
    assert code == 1
    assert "matches: 0 no pose: 0 matches of 0 distinct patches; 5-point needs 5" in out
    assert files[0].exists()
    assert json.loads(files[1].read_text())["matches"]["stuck"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("{images}/a.png", "{images}/none.png"), "none.png does not exist"),
        (("{scene}", "{scene}:1"), "name one of them"),
        (("{scene}:0", "{scene}:9"), "has no frame '9': they are 0 to 5, or 000000 to 000005"),
        (("{scene}:0", "{scene}:1", "--camera", "1", "1", "1", "1"), "frames of a scene have their own camera"),
        (("{images}/a.png", "{images}/b.png", "--fov", "200"), "less than 180 degrees"),
        (("{images}/a.png", "{images}/b.png", "--out", "lines"), "end its name in .png or .jpg"),
        (("{images}/a.png", "{images}/small.png", "--camera", "9", "9", "9", "9"), "these two differ"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(capsys, folder, images, words, message):
    files = images[0].parent
    Image.new("RGB", (60, 60)).save(files / "small.png")
    code, _, err = run(capsys, *(word.format(scene=folder, images=files) for word in words))
    assert code == 2
    assert message in " ".join(err.split())


def test_lines_end_where_the_matches_are():
    black = np.zeros((240, 320, 3), np.uint8)
    ends = np.array([[100.0, 60.0]]), np.array([[200.0, 180.0]])
    one = np.zeros(1, int)
    matches = Matches(*ends, np.ones(1), one, one, (320, 240), (320, 240), (10, 10), (10, 10))
    drawn = match_picture(black, black, matches, np.ones(1, bool))
    assert drawn.shape == (480, 1288, 3)
    assert tuple(drawn[120, 200]) == AGREES
    assert tuple(drawn[360, 648 + 400]) == AGREES
    assert tuple(drawn[20, 20]) == (0, 0, 0)
    assert match_picture(black, black[:100], matches).shape[0] == 480


def test_keypoints_are_matched_where_they_can_be_had(capsys, real_data):
    frames = [f"{real_data / 'hololens'}:{number}" for number in (10, 12)]
    if why := available():
        pytest.skip(why)
    code, out, _ = run(capsys, *frames, "--rgb", rule="points")
    assert code == 0
    assert "and XFeat keypoints" in out
    assert "pose by 5-point" in out
    degrees = float(out.partition("off the true pose by ")[2].split("°")[0])
    assert degrees < 5


def test_without_keypoints_patches_are_matched_and_that_is_said(capsys, folder, monkeypatch):
    monkeypatch.setattr(placed_points, "point_detector", unavailable)
    code, out, _ = run(capsys, f"{folder}:0", f"{folder}:0", rule="points")
    assert code == 0
    assert "Keypoints are not available, so patches are matched: no weights here" in out


def test_an_image_without_texture_has_no_matches(capsys, tmp_path):
    if why := available():
        pytest.skip(why)
    Image.new("RGB", (64, 48), (90, 90, 90)).save(tmp_path / "flat.png")
    code, out, _ = run(capsys, tmp_path / "flat.png", tmp_path / "flat.png", rule="points")
    assert code == 1
    assert "matches: 0" in out
    assert "no pose: 0 matches" in out


def unavailable():
    raise LocusError("no weights here")
