"""Feature files against `model.features` of each image alone, whatever happens on the way."""

import os
import signal
import subprocess
import sys
import time

import cv2
import h5py
import numpy as np
import pytest
import torch
from PIL import Image

import locus
from locus.cli import main
from locus.errors import LocusError
from locus.features.extraction import batches, prefetched
from locus.features.feature_file import open_features
from locus.features.images import NamedImage, sources
from locus.features.journal import journal_of
from locus.model import LoCUS
from tests.scenes import layouts, room

RNG = np.random.default_rng(0)
SIZES = [(70, 56), (70, 56), (84, 60), (70, 56), (61, 90), (61, 90), (61, 90), (61, 90), (61, 90), (40, 40)]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Images this small are slower with more, and much slower where others compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model():
    """No weights, and no head."""
    return LoCUS("classic", head="identity")


@pytest.fixture(scope="module")
def scaled():
    """Two scales."""
    torch.manual_seed(0)
    return LoCUS("classic", radii=(0.2, 0.5), head="linear", dimension=16)


@pytest.fixture
def folder(tmp_path):
    """Ten images of several sizes, some in a folder of their own."""
    folder = tmp_path / "images"
    (folder / "far").mkdir(parents=True)
    for i, (width, height) in enumerate(SIZES):
        pixels = cv2.resize(RNG.integers(0, 256, (6, 7, 3), dtype=np.uint8), (width, height))
        Image.fromarray(pixels).save(folder / ("far" if i % 3 else ".") / f"{i:02d}.png")
    return folder


def check(path, inputs, model, names=None):
    """Every image's features are those it has alone, to float16's precision."""
    with h5py.File(path, "r") as file:
        for image in sources(inputs):
            if names is not None and image.name not in names:
                continue
            pixels, group = image.read(), file[image.name]
            expected = model.features(pixels).numpy()
            assert group["features"].dtype == np.float16
            assert tuple(group.attrs["image_size"]) == (pixels.shape[1], pixels.shape[0])
            assert tuple(group.attrs["grid"]) == expected.shape[1:3]
            np.testing.assert_allclose(group["features"][:], expected, atol=2e-3)


def stored(path):
    """The names in a file, by hloc's way of listing them."""
    names = set()

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            names.add(item.parent.name.strip("/"))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return names


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def test_dense_features_are_those_of_each_image_alone(tmp_path, folder, scaled):
    out = tmp_path / "new/features.h5"
    summary = locus.extract(folder, out, scaled)
    assert (summary.path, summary.written, summary.present, summary.skipped) == (out, len(SIZES), 0, {})
    check(out, folder, scaled)
    assert stored(out) == {image.name for image in sources(folder)}
    assert inside(out.parent) == ["features.h5"]
    with open_features(out) as file:
        assert file.attrs["model"] == scaled.name
        assert file.attrs["fingerprint"] == scaled.fingerprint
        assert tuple(file.attrs["radii"]) == (0.2, 0.5)
        assert file.attrs["locus_format"] == 1


def test_hlocs_layout_reads_as_hloc_reads_it(tmp_path, folder, scaled):
    out = tmp_path / "hloc.h5"
    locus.extract(folder, out, scaled, layout="hloc", scale=1)
    for image in sources(folder):
        pixels = image.read()
        height, width = pixels.shape[:2]
        expected = scaled.features(pixels)[1]
        rows, columns = expected.shape[:2]
        with h5py.File(out, "r", libver="latest") as file:
            keypoints = file[image.name]["keypoints"].__array__()
            descriptors = file[image.name]["descriptors"].__array__()
            scores = file[image.name]["scores"].__array__()
            size = file[image.name]["image_size"].__array__()
            uncertainty = file[image.name]["keypoints"].attrs["uncertainty"]
        assert descriptors.shape == (16, rows * columns)
        assert scores.shape == (rows * columns,)
        assert tuple(size) == (width, height)
        # hloc adds 0.5 for COLMAP, where the top-left corner of the image is (0, 0): patches tile it from there.
        corner = (keypoints + 0.5).reshape(rows, columns, 2)
        np.testing.assert_allclose(corner[0, 0], [width / columns / 2, height / rows / 2], rtol=1e-5)
        np.testing.assert_allclose(corner[-1, -1] + corner[0, 0], [width, height], rtol=1e-5)
        assert 0 < uncertainty < max(width / columns, height / rows)
        np.testing.assert_allclose(descriptors.T.reshape(rows, columns, 16), expected, atol=2e-3)


def test_a_scale_that_is_not_there(tmp_path, folder, scaled):
    with pytest.raises(LocusError, match=r"has no scale 2; its scales are 0: 0\.2 m, 1: 0\.5 m"):
        locus.extract(folder, tmp_path / "out.h5", scaled, layout="hloc", scale=2)


def test_scenes_and_videos(tmp_path, model):
    layouts.tum(tmp_path / "scene", room.shots(3))
    writer = cv2.VideoWriter(str(tmp_path / "clip.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for i in range(30):
        writer.write(np.full((48, 64, 3), 8 * i, np.uint8))
    writer.release()
    out = tmp_path / "out.h5"
    summary = locus.extract([locus.load_scene(tmp_path / "scene"), tmp_path / "clip.avi"], out, model, every=4)
    assert summary.written == 3 + 8
    check(out, tmp_path / "scene", model)
    check(out, tmp_path / "clip.avi", model, {f"clip.avi/{i:06d}" for i in range(0, 30, 4)})


def test_a_rerun_does_only_what_is_new(tmp_path, folder, model):
    out = tmp_path / "out.h5"
    locus.extract(folder / "far", out, model)
    assert locus.extract(folder / "far", out, model).written == 0
    before = out.read_bytes()
    Image.fromarray(np.zeros((50, 50, 3), np.uint8)).save(folder / "far/new.png")
    again = locus.extract(folder / "far", out, model)
    assert (again.written, again.present) == (1, 6)
    assert len(out.read_bytes()) > len(before)
    check(out, folder / "far", model)


def test_features_of_another_kind_do_not_get_into_a_file(tmp_path, folder, model, scaled):
    out = tmp_path / "out.h5"
    locus.extract(folder, out, model)
    before = out.read_bytes()
    with pytest.raises(LocusError, match="another model"):
        locus.extract(folder, out, scaled)
    with pytest.raises(LocusError, match="another model"):
        locus.extract(folder, out, model, int8=True)
    with pytest.raises(LocusError, match="has the layout dense"):
        locus.extract(folder, out, model, layout="hloc")
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(LocusError, match="not an HDF5 file"):
        locus.extract(folder, tmp_path / "text.h5", model)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["values"] = np.arange(5)
    with pytest.raises(LocusError, match="not a feature file"):
        locus.extract(folder, tmp_path / "foreign.h5", model)
    assert out.read_bytes() == before


def test_unreadable_images_are_named_and_left_out(tmp_path, folder, model):
    (folder / "05-cut.png").write_bytes((folder / "00.png").read_bytes()[:60])
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "tiny.png")
    with pytest.warns(UserWarning, match=r"05-cut\.png is left out") as caught:
        summary = locus.extract(folder, tmp_path / "out.h5", model)
    assert len(caught) == 2
    assert set(summary.skipped) == {"05-cut.png", "tiny.png"}
    assert summary.written == len(SIZES)


def test_nothing_readable_is_an_error_and_leaves_nothing(tmp_path, model):
    (tmp_path / "images").mkdir()
    (tmp_path / "images/a.png").write_text("no image")
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(LocusError, match=r"none of the 1 images could be read; a\.png"),
    ):
        locus.extract(tmp_path / "images", tmp_path / "out.h5", model)
    assert inside(tmp_path) == ["images"]


def test_batches_are_of_one_size_and_prefetching_is_bounded(folder, model):
    read = []

    def counted(image):
        return NamedImage(image.name, lambda: read.append(image.name) or image.read())

    images = [counted(image) for image in sorted(sources(folder), key=lambda image: image.name[-6:])]
    ready = prefetched(images, model, workers=3, ahead=4)
    for taken, item in enumerate(ready, 1):
        time.sleep(0.01)
        assert item.name == images[taken - 1].name
        assert len(read) <= taken + 4
    groups = list(batches(prefetched(images, model, 2, 4), 4))
    assert [len(group) for group in groups] == [2, 1, 1, 4, 1, 1]


def test_int8_is_close_to_full_precision(tmp_path, folder):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=48, num_hidden_layers=3, num_attention_heads=3, image_size=70, patch_size=14)
    Dinov2Model(config).save_pretrained(tmp_path / "network")
    model = LoCUS(str(tmp_path / "network"), head="identity")
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    locus.extract(folder, tmp_path / "full.h5", model)
    locus.extract(folder, tmp_path / "int8.h5", model, int8=True)
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    check(tmp_path / "full.h5", folder, model)
    with open_features(tmp_path / "full.h5") as full, open_features(tmp_path / "int8.h5") as small:
        for name in stored(tmp_path / "full.h5"):
            a, b = (file[name]["features"][:].astype(np.float32) for file in (full, small))
            cosine = (a * b).sum(-1)
            assert cosine.min() > 0.99
            assert not np.array_equal(a, b)


# Imports take seconds, so one process has them done and forks; it runs no network itself, which would not fork well.
SERVER = """
import os, sys, traceback
import locus.features.extraction
from locus.model import LoCUS

for line in sys.stdin:
    verb, *words = line.split()
    if verb == "wait":
        print(os.waitpid(int(words[0]), 0)[1], flush=True)
        continue
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    folder, out, os.environ["RANK"], os.environ["WORLD_SIZE"] = words
    try:
        locus.extract(folder, out, LoCUS("classic", head="identity"), batch=2)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
"""


@pytest.fixture(scope="module")
def server():
    """A question to the process that starts and waits for others, and its answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(*words):
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait()


def grown(out, size):
    """Wait until a file is there and larger than it was."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if out.exists() and out.stat().st_size > size:
            return
        time.sleep(0.001)
    raise AssertionError(f"{out} did not grow")


def test_killed_at_random_moments_it_ends_as_if_nothing_had_happened(tmp_path, model, server):
    folder, out = tmp_path / "images", tmp_path / "out.h5"
    folder.mkdir()
    for i in range(160):
        Image.fromarray(RNG.integers(0, 256, (112, 112, 3), dtype=np.uint8)).save(folder / f"{i:03d}.bmp")
    finished = set()
    for _ in range(8):
        process = server("start", folder, out, 0, 1)
        grown(out, out.stat().st_size if out.exists() else 0)
        time.sleep(RNG.uniform(0, 0.08))
        os.kill(process, signal.SIGKILL)
        assert server("wait", process) == signal.SIGKILL
        with open_features(out):
            pass
        now = stored(out)
        assert now >= finished
        check(out, folder, model, now - finished)
        finished = now
    assert 8 <= len(finished) < 160
    summary = locus.extract(folder, out, model, batch=2)
    assert (summary.written, summary.present) == (160 - len(finished), len(finished))
    locus.extract(folder, tmp_path / "quiet.h5", model, batch=2)
    with h5py.File(out, "r") as a, h5py.File(tmp_path / "quiet.h5", "r") as b:
        assert stored(out) == stored(tmp_path / "quiet.h5")
        for name in stored(out):
            np.testing.assert_array_equal(a[name]["features"][:], b[name]["features"][:])
    assert not journal_of(out).exists()


def test_two_processes_share_the_images_and_leave_one_file(tmp_path, folder, model, server):
    out = tmp_path / "out[1].h5"  # no pattern
    processes = [server("start", folder, out, rank, 2) for rank in range(2)]
    assert [server("wait", process) for process in processes] == [0, 0]
    assert inside(tmp_path) == ["images", "out[1].h5"]
    assert stored(out) == {image.name for image in sources(folder)}
    check(out, folder, model)


def test_what_one_of_two_processes_left_is_taken_over(tmp_path, folder, model, monkeypatch):
    out = tmp_path / "out.h5"
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    half = locus.extract(folder, out, model)
    assert half.path == tmp_path / "out.rank1.h5"
    assert not out.exists()
    monkeypatch.setenv("RANK", "0")
    assert locus.extract(folder, out, model).path == out
    assert locus.extract(folder, out, model).written == 0
    out.unlink()
    monkeypatch.setenv("RANK", "1")
    locus.extract(folder, out, model)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    rest = locus.extract(folder, out, model)
    assert (rest.written, rest.present) == (5, 5)
    assert inside(tmp_path) == ["images", "out.h5"]
    check(out, folder, model)


def test_the_command_says_what_it_wrote_and_goes_on(capsys, tmp_path, folder):
    words = ["extract", str(folder), "--model", "classic", "--out", str(tmp_path / "out.h5")]
    assert main(words) == 0
    assert f"10 images written to {tmp_path}/out.h5" in capsys.readouterr().out
    (folder / "bad.png").touch()
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "0 images written" in captured.out
    assert "10 were there; 1 could not be read" in captured.out
    assert "bad.png is left out" in captured.err
    assert main([*words, "--layout", "hloc"]) == 2


def test_ctrl_c_says_how_to_go_on(capsys, tmp_path, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus.features.extraction.batches", interrupted)
    assert main(["extract", str(folder), "--model", "classic", "--out", str(tmp_path / "out.h5")]) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_an_image_that_changed_is_done_again(folder, model, tmp_path):
    out = tmp_path / "features.h5"
    locus.extract(folder, out, model)
    changed = next(path for path in sorted(folder.rglob("*.png")))
    Image.fromarray(np.random.default_rng(5).integers(0, 255, (60, 90, 3), np.uint8)).save(changed)
    with pytest.warns(UserWarning, match="changed"):
        summary = locus.extract(folder, out, model)
    assert summary.written == 1
    name = changed.relative_to(folder).as_posix()
    with open_features(out) as file:
        np.testing.assert_allclose(file[name]["features"], model.features(np.asarray(Image.open(changed))), atol=1e-3)
    assert locus.extract(folder, out, model).written == 0
