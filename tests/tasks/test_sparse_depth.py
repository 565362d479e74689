"""Depth found for posed colour: in a room of known geometry, in a real one, and where there is none to be found."""

import shutil
from dataclasses import replace

import numpy as np
import pycolmap
import pytest
import torch
import torch.nn.functional as F

from locus import load_scene
from locus.cli import main
from locus.geometry import invert, transform
from locus.keypoints import Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.lightglue import assigned
from locus.model import load
from locus.tasks import placed_points, sparse_depth
from locus.tasks.depth_comparison import compare_depth
from locus.tasks.sparse_depth import with_depth
from tests.scenes import layouts, room
from tests.tasks.views import CAMERA

SIZE = (room.WIDTH, room.HEIGHT)
NOISE = 0.1  # pixels of an image of 60 rows: 0.8 of one of 480
SPOTS = 2000


@pytest.fixture(scope="module")
def shots():
    return room.shots(16)


@pytest.fixture(scope="module")
def spots(shots):
    """Points of the room's surfaces, each with a look of its own."""
    random = np.random.default_rng(0)
    points = []
    for shot in shots[::3]:
        pixels = random.uniform((1, 1), (room.WIDTH - 1, room.HEIGHT - 1), (SPOTS // 6, 2))
        z = shot.depth[pixels[:, 1].astype(int), pixels[:, 0].astype(int)]
        points.append(transform(shot.world_from_camera, CAMERA.unproject(pixels, z)))
    return np.concatenate(points)


def visible(shot, spots):
    """Which spots a shot sees, and where."""
    pixels, z = CAMERA.project(transform(invert(shot.world_from_camera), spots))
    inside = np.flatnonzero((z > 0) & (pixels > 0).all(axis=1) & (pixels < SIZE).all(axis=1))
    x, y = pixels[inside].astype(int).T
    seen = inside[np.abs(shot.depth[y, x] - z[inside]) < 0.05]
    return seen, pixels[seen]


@pytest.fixture
def made_up(monkeypatch, shots, spots):
    """Keypoints are where spots are seen, off by some noise; a tenth of them looks like others."""
    looks = F.normalize(torch.from_numpy(np.random.default_rng(1).normal(size=(len(spots), 64))).float(), dim=-1)
    by_image = {shot.image.tobytes(): shot for shot in shots}

    def placed(image, features):
        shot = by_image.get(image.tobytes())
        seen, pixels = visible(shot, spots) if shot else (np.zeros(0, int), np.zeros((0, 2)))
        random = np.random.default_rng(len(seen))
        pixels = (pixels + random.normal(scale=NOISE, size=pixels.shape)).clip(0.01, np.array(SIZE) - 0.01)
        wrong = random.random(len(seen)) < 0.1
        descriptors = looks[np.where(wrong, np.roll(seen, 7), seen)]
        return PlacedKeypoints(Keypoints(pixels, np.ones(len(seen)), descriptors, SIZE), torch.zeros(1, len(seen), 4))

    class Alike:
        def match(self, a, b):
            cosines = a.keypoints.descriptors @ b.keypoints.descriptors.T
            return assigned(torch.where(cosines > 0.9, cosines - 1, -10.0), 0.5)

    monkeypatch.setattr(sparse_depth, "placed_points", placed)
    monkeypatch.setattr(sparse_depth, "point_matcher", Alike)


def colour(folder, shots):
    """The room in our native format, without its depth."""
    folder.mkdir()
    layouts.nerfstudio(folder, shots)
    layouts.edit(folder, lambda content: [frame.pop("depth_file_path") for frame in content["frames"]])
    return folder


@pytest.mark.usefixtures("made_up")
def test_a_room_with_depth_withheld_gets_it_back_within_two_hundredths(tmp_path, shots):
    scene = load_scene(colour(tmp_path / "room", shots))
    assert not any(frame.has_depth for frame in scene)
    found = with_depth(load("classic"), scene)
    assert [frame.name for frame in found] == [shot.name for shot in shots]
    relative = np.concatenate([np.abs(f.depth / s.depth - 1)[f.depth > 0] for f, s in zip(found, shots, strict=True)])
    known = [float((frame.depth > 0).mean()) for frame in found]
    assert np.median(relative) < 0.02
    assert np.mean(relative < 0.1) > 0.95
    assert np.mean(known) > 0.5
    np.testing.assert_array_equal(found[3].image, shots[3].image)


@pytest.mark.usefixtures("made_up")
def test_the_command_writes_a_scene_that_maps_are_made_of(tmp_path, shots, capsys):
    folder = colour(tmp_path / "room", shots)
    out = tmp_path / "deep"
    assert main(["depth", str(folder), "--model", "classic", "--out", str(out)]) == 0
    assert "with depth at" in capsys.readouterr().out
    scene = load_scene(out)
    assert len(scene) == len(shots)
    words = ["--model", "classic", "--cache", str(tmp_path / "cache")]
    assert main(["map", str(out), "--out", str(tmp_path / "map"), *words]) == 0
    assert main(["depth", str(folder), "--model", "classic", "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.usefixtures("made_up")
def test_depth_that_is_there_is_compared_with_and_not_used(tmp_path, shots, capsys):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", shots)
    assert main(["depth", str(tmp_path / "room"), "--model", "classic", "--out", str(tmp_path / "deep")]) == 0
    assert "Compared with its own depth, which was not used: pixels are" in capsys.readouterr().out
    found, true = load_scene(tmp_path / "deep"), load_scene(tmp_path / "room")
    compared = compare_depth(found, true)
    assert compared is not None
    both = [(a.depth, b.depth) for a, b in zip(found, true, strict=True)]
    off = np.concatenate([np.abs(a - b)[a > 0] for a, b in both])
    assert np.median(compared.error) == pytest.approx(np.median(off), abs=1e-6)
    assert 0 < compared.coverage[0] < compared.coverage[1] <= 1
    assert compare_depth(true, true).patch_error.max() == 0
    without = replace(true, sources=[replace(source, depth_path=None) for source in true.sources])
    assert compare_depth(found, without) is None


def moved(shots, place):
    """The same pictures, as if each was taken where `place` says."""
    poses = [shot.world_from_camera.copy() for shot in shots]
    for number, pose in enumerate(poses):
        pose[:3, 3] = place(number)
    return [replace(shot, world_from_camera=pose) for shot, pose in zip(shots, poses, strict=True)]


def exchanged(shots):
    """Pictures with the poses of others."""
    return [replace(shot, image=other.image) for shot, other in zip(shots, shots[::-1], strict=True)]


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda shots: shots[:1], "has 1 frames to find depth for; at least two are needed"),
        (lambda shots: moved(shots, lambda number: 0), "move the camera sideways, do not only turn it"),
        (lambda shots: moved(shots, lambda number: 1000 * number), "from directions 3° to 60° apart"),
        (lambda shots: [replace(each, image=np.full_like(each.image, 90)) for each in shots], "too little texture"),
        (exchanged, "are where the poses say; the poses are wrong (try --pose or --axes)"),
    ],
    ids=["one frame", "turning", "apart", "bare walls", "wrong poses"],
)
def test_where_there_is_no_depth_to_find_one_sentence_says_why(tmp_path, shots, capsys, change, sentence):
    folder = colour(tmp_path / "room", change(shots[:8]))
    assert main(["depth", str(folder), "--model", "classic", "--out", str(tmp_path / "deep")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert sentence in said
    assert said.count("locus:") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["room"]


def test_points_of_a_colmap_model_are_its_depth(tmp_path, shots, spots, capsys):
    layouts.colmap(tmp_path / "room", shots)
    shutil.rmtree(tmp_path / "room/stereo")
    model = pycolmap.Reconstruction(str(tmp_path / "room/sparse/0"))
    assert not load_scene(tmp_path / "room")[0].has_depth
    shown = _with_points(model, shots, spots[::2])
    model.write(str(tmp_path / "room/sparse/0"))
    scene = load_scene(tmp_path / "room")
    for frame, points in zip(scene, shown, strict=True):
        np.testing.assert_allclose(sorted(frame.points.tolist()), sorted(points.tolist()), atol=1e-9)
    assert main(["depth", str(tmp_path / "room"), "--model", "classic", "--out", str(tmp_path / "deep")]) == 0
    found = load_scene(tmp_path / "deep")
    relative = np.concatenate([np.abs(f.depth / s.depth - 1)[f.depth > 0] for f, s in zip(found, shots, strict=True)])
    assert np.median(relative) < 0.01
    assert np.mean([(frame.depth > 0).mean() for frame in found]) > 0.3


def _with_points(model, shots, spots):
    """Points in a model, each with the images that see it; what each image shows."""
    numbers = {image.name: number for number, image in model.images.items()}
    shown = []
    for shot in shots:
        seen, pixels = visible(shot, spots)
        model.images[numbers[f"{shot.name}.png"]].points2D = [pycolmap.Point2D(pixel) for pixel in pixels]
        shown.append({row: at for at, row in enumerate(seen.tolist())})
    kept = [row for row in range(len(spots)) if sum(row in rows for rows in shown) >= 2]
    for row in kept:
        track = pycolmap.Track()
        for shot, rows in zip(shots, shown, strict=True):
            if row in rows:
                track.add_element(numbers[f"{shot.name}.png"], rows[row])
        model.add_point3D(spots[row], track, np.zeros(3, np.uint8))
    return [spots[[row for row in kept if row in rows]] for rows in shown]


@pytest.mark.slow
@pytest.mark.usefixtures("small_weights")
def test_a_real_walk_with_depth_withheld(real_data):
    if reason := placed_points.available():
        pytest.skip(reason)
    scene = load_scene(real_data / "hololens")[20:32:2]
    compared = compare_depth(with_depth(load("locus-small"), scene), scene)
    assert compared is not None
    assert np.median(compared.error) < 0.08
    assert np.median(compared.error / compared.depth) < 0.03
    assert compared.coverage[0] > 0.2


@pytest.mark.parametrize(
    "words",
    [
        ["inspect"],
        ["map", "--model", "classic", "--out", "map"],
        [
            "train",
            "--out",
            "run",
            "--backbone",
            "classic",
            "--layer",
            "None",
            "--resolution",
            "None",
            "--head",
            "linear",
        ],
        ["view", "--model", "classic"],
        ["eval", "localization", "--methods", "classic"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_commands_that_need_depth_name_the_one_that_finds_it(tmp_path, shots, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path / "cache"))
    folder = colour(tmp_path / "room", shots[:4])
    verbs = [word for word in words[:2] if not word.startswith("-")]
    # `eval` goes on to the next scene, and so has a code of its own.
    assert main([*verbs, str(folder), *words[len(verbs) :]]) == (1 if verbs[0] == "eval" else 2)
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("the scene has no depth for it; `locus depth` finds some") == 1


def test_colour_without_depth_is_localized_by_colour(tmp_path, shots, capsys):
    """`locus localize` does not need depth."""
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", shots)
    words = ["--model", "classic", "--cache", str(tmp_path / "cache")]
    assert main(["map", str(tmp_path / "room"), "--out", str(tmp_path / "map"), *words]) == 0
    (tmp_path / "bare").mkdir()
    folder = colour(tmp_path / "bare" / "room", shots[:2])
    capsys.readouterr()
    main(["localize", str(folder), "--map", str(tmp_path / "map"), "--model", "classic"])
    said = capsys.readouterr().out
    assert "could not be read" not in said
    assert "of 2 found in the map" in said
