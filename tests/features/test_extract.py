"""What is in feature files, against `model.features` of each image alone."""

import time

import cv2
import h5py
import numpy as np
import pytest
import torch
from PIL import Image

import locus
from locus.errors import LocusError
from locus.features.extraction import batches, prepared
from locus.features.feature_file import open_features
from locus.features.images import NamedImage, sources
from locus.keypoints import detector, sample
from tests.features.extracted import SIZES, check, inside, stored
from tests.scenes import layouts, room

pytestmark = pytest.mark.usefixtures("one_thread")


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


def hloc_names(image_dir):
    """What hloc calls the images of a folder: every .jpg and .png below it, by the path from there."""
    return sorted(path.relative_to(image_dir).as_posix() for path in image_dir.rglob("*.[jp][pn]g"))


@pytest.mark.parametrize(
    ("layout", "image_dir"),
    [
        (layouts.sevenscenes_flat, "."),
        (layouts.sevenscenes_official, "."),
        (layouts.tum, "rgb"),
        (layouts.nerfstudio, "images"),
    ],
)
def test_hloc_finds_the_frames_of_a_scene_by_the_names_of_their_files(tmp_path, scaled, layout, image_dir):
    scene, out = tmp_path / "scene", tmp_path / "hloc.h5"
    scene.mkdir()
    layout(scene, room.shots(2))
    locus.extract(scene, out, scaled, layout="hloc")
    names = [name for name in hloc_names(scene / image_dir) if "depth" not in name]
    assert len(names) == 2
    assert stored(out) == set(names)
    with h5py.File(out, "r", libver="latest") as file:
        assert all(file[name]["keypoints"].__array__().shape[1] == 2 for name in names)


def test_a_scale_that_is_not_there(tmp_path, folder, scaled):
    with pytest.raises(LocusError, match=r"has no scale 2; its scales are 0: 0\.2 m, 1: 0\.5 m"):
        locus.extract(folder, tmp_path / "out.h5", scaled, layout="hloc", scale=2)


def test_keypoints_with_fused_descriptors_read_as_hloc_reads_them(tmp_path, folder, scaled):
    out, by = tmp_path / "hloc.h5", detector("sift", 40)
    locus.extract(folder, out, scaled, layout="hloc", keypoints=by)
    counts = []
    for image in sources(folder):
        pixels = image.read()
        own = by.detect(pixels)
        with h5py.File(out, "r", libver="latest") as file:  # the reads of hloc's get_keypoints and match_features
            group = file[image.name]
            keypoints, size = group["keypoints"].__array__(), group["image_size"].__array__()
            descriptors = torch.from_numpy(group["descriptors"].__array__()).float()
            scores = group["scores"].__array__()
        counts.append(len(own))
        assert keypoints.shape == (len(own), 2)
        assert descriptors.shape == (128 + 2 * 16, len(own))
        assert scores.shape == (len(own),)
        assert tuple(size) == (pixels.shape[1], pixels.shape[0])
        np.testing.assert_allclose(keypoints + 0.5, own.pixels, atol=1e-3)  # hloc adds the half for COLMAP
        here = sample(scaled.features(pixels), own.pixels, own.size)
        expected = (own.descriptors @ own.descriptors.T + sum(each @ each.T for each in here)) / 3
        torch.testing.assert_close(descriptors.T @ descriptors, expected, atol=5e-3, rtol=0)
    assert max(counts) > 5
    with pytest.raises(LocusError, match=r"holds keypoints .*, not no keypoints"):
        locus.extract(folder, out, scaled, layout="hloc")
    with pytest.raises(LocusError, match="add --layout hloc"):
        locus.extract(folder, tmp_path / "out.h5", scaled, keypoints=by)


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


def test_features_of_another_kind_do_not_get_into_a_file(tmp_path, folder, model, scaled):
    out = tmp_path / "out.h5"
    locus.extract(folder, out, model)
    before = out.read_bytes()
    with pytest.raises(LocusError, match="another model"):
        locus.extract(folder, out, scaled)
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
    ready = prepared(images, model, workers=3, ahead=4)
    for taken, item in enumerate(ready, 1):
        time.sleep(0.01)
        assert item.name == images[taken - 1].name
        assert len(read) <= taken + 4
    groups = list(batches(prepared(images, model, 2, 4), 4))
    assert [len(group) for group in groups] == [2, 1, 1, 4, 1, 1]
