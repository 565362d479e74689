"""Images of every kind, against pixel values that were put in or that another library reads."""

import os
import struct
import sys
import zlib

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from locus.errors import LocusError
from locus.features.images import sources
from locus.model import LoCUS
from locus.scenes import load_scene
from locus.scenes.reading import _heic_is_read, as_array
from tests.scenes import layouts, room

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (20, 30), dtype=np.uint8)
DEEP = RNG.integers(0, 65536, (20, 30), dtype=np.uint16)
ALPHA = RNG.integers(0, 256, (20, 30), dtype=np.uint8)


def read(path):
    (image,) = sources(path)
    return image.read()


def three(grey):
    return np.repeat(grey[..., None], 3, axis=-1)


def test_every_kind_of_image_is_read_as_rgb(tmp_path):
    kinds = {
        "rgb.png": (Image.fromarray(COLOUR), COLOUR),
        "grey.png": (Image.fromarray(GREY), three(GREY)),
        "rgba.png": (Image.fromarray(np.dstack([COLOUR, ALPHA])), COLOUR),
        "grey-alpha.png": (Image.fromarray(np.dstack([GREY, ALPHA])), three(GREY)),
        "sixteen.png": (Image.fromarray(DEEP), three((DEEP // 256).astype(np.uint8))),
        "sixteen.tif": (Image.fromarray(DEEP), three((DEEP // 256).astype(np.uint8))),
        "two.png": (Image.fromarray(GREY > 127), three(np.where(GREY > 127, 255, 0).astype(np.uint8))),
    }
    for name, (image, expected) in kinds.items():
        image.save(tmp_path / name)
        np.testing.assert_array_equal(read(tmp_path / name), expected, err_msg=name)


def test_sixteen_bit_colour_as_opencv_wrote_it(tmp_path):
    deep = RNG.integers(0, 65536, (20, 30, 3), dtype=np.uint16)
    cv2.imwrite(str(tmp_path / "deep.png"), deep[..., ::-1])
    np.testing.assert_allclose(read(tmp_path / "deep.png").astype(float), deep / 257, atol=1.01)


def test_a_palette_with_a_transparent_colour(tmp_path):
    palette = Image.fromarray(COLOUR).quantize(16)
    palette.save(tmp_path / "palette.png", transparency=bytes([0, 128, 255]))
    colours = np.array(palette.getpalette()[: 16 * 3]).reshape(-1, 3)
    np.testing.assert_array_equal(read(tmp_path / "palette.png"), colours[np.asarray(palette)])


def test_cmyk(tmp_path):
    smooth = cv2.resize(COLOUR[:2, :3], (30, 20), interpolation=cv2.INTER_LINEAR)
    Image.fromarray(smooth).convert("CMYK").save(tmp_path / "cmyk.jpg", quality=100)
    assert Image.open(tmp_path / "cmyk.jpg").mode == "CMYK"
    assert np.abs(read(tmp_path / "cmyk.jpg").astype(int) - smooth).mean() < 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied_as_opencv_applies_it(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(COLOUR).save(tmp_path / "turned.jpg", quality=95, exif=exif)
    other = cv2.imread(str(tmp_path / "turned.jpg"))[..., ::-1]
    mine = read(tmp_path / "turned.jpg")
    assert mine.shape == other.shape == ((30, 20, 3) if orientation > 4 else (20, 30, 3))
    assert np.abs(mine.astype(int) - other).max() < 12


def test_a_scenes_image_stays_as_stored_because_its_intrinsics_do(tmp_path):
    layouts.tum(tmp_path, room.shots(2))
    exif = Image.Exif()
    exif[0x0112] = 6
    for path in (tmp_path / "rgb").iterdir():
        Image.open(path).save(path, exif=exif)
    images = sources(tmp_path)
    assert [image.name for image in images] == [frame.name for frame in load_scene(tmp_path)]
    np.testing.assert_array_equal(images[0].read(), room.shots(2)[0].image)


def test_truncated_floating_point_and_false_files_are_named(tmp_path):
    Image.fromarray(np.tile(COLOUR, (8, 8, 1))).save(tmp_path / "cut.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "cut.jpg").read_bytes()[:3000])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "empty.png").touch()
    Image.fromarray(GREY.astype(np.float32)).save(tmp_path / "float.tif")
    for name in ("cut.jpg", "text.png", "empty.png", "float.tif"):
        with pytest.raises(LocusError, match=name):
            read(tmp_path / name)


def test_an_image_bomb_is_refused_from_its_header(tmp_path):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    with pytest.raises(LocusError, match=r"bomb\.png claims more than 100 million pixels"):
        read(tmp_path / "bomb.png")


def tree(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(COLOUR).save(root / name)


def names(*inputs, **options):
    return [image.name for image in sources(list(inputs), **options)]


def test_a_folder_gives_all_its_images_in_order_with_names_from_there(tmp_path):
    tree(tmp_path, "b/2.JPG", "b/1.png", "a.png", ".hidden.png", ".thumbnails/a.png")
    (tmp_path / "notes.txt").write_text("not an image")
    assert names(tmp_path) == ["a.png", "b/1.png", "b/2.JPG"]
    assert names(str(tmp_path / "b")) == ["1.png", "2.JPG"]


def test_a_name_that_is_no_text_becomes_one(tmp_path):
    tree(tmp_path, "Küche.png")
    (tmp_path / "Küche.png").rename(os.fsdecode(os.fsencode(tmp_path) + b"/K\xfcche.png"))
    (image,) = sources(tmp_path)
    assert image.name == "K\\xfcche.png"
    np.testing.assert_array_equal(image.read(), COLOUR)


def test_a_pattern_gives_names_from_its_first_wildcard(tmp_path):
    tree(tmp_path, "one/a.png", "one/b.jpg", "two/a.png")
    assert names(f"{tmp_path}/*/a.png") == ["one/a.png", "two/a.png"]
    assert names(f"{tmp_path}/**/*.jpg") == ["one/b.jpg"]


def test_several_folders_are_told_apart_and_a_name_is_used_once(tmp_path):
    tree(tmp_path, "one/a.png", "two/a.png")
    assert names(tmp_path / "one", tmp_path / "two") == ["one/a.png", "two/a.png"]
    with pytest.raises(LocusError, match=r"two images are named a\.png"):
        sources([tmp_path / "one/a.png", tmp_path / "two/a.png"])


def test_videos_in_a_folder_are_read_and_damaged_ones_named(tmp_path, clip):
    tree(tmp_path, "walk/a.png")
    (tmp_path / "walk" / "clip.avi").write_bytes(clip.read_bytes())
    (tmp_path / "walk" / "half.mp4").write_bytes(b"no video")
    with pytest.warns(UserWarning, match=r"left out: .*half\.mp4"):
        found = names(tmp_path / "walk")
    assert found[:2] == ["a.png", "clip.avi/000000"]
    assert len(found) == 1 + len(sources(clip))


def test_heic_photos_are_read_or_what_they_need_is_said(tmp_path, monkeypatch):
    heif = pytest.importorskip("pillow_heif", reason="the extra `capture` is not installed")
    smooth = cv2.GaussianBlur(np.tile(COLOUR, (4, 4, 1)), None, 9)
    heif.from_pillow(Image.fromarray(smooth)).save(tmp_path / "IMG_0001.HEIC", quality=100)
    (image,) = sources(tmp_path)
    assert np.abs(image.read().astype(int) - smooth).mean() < 2
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    _heic_is_read.cache_clear()
    with pytest.raises(LocusError, match=r"IMG_0001\.HEIC needs pillow-heif: .* -m pip install .*\[capture\]"):
        image.read()
    _heic_is_read.cache_clear()


def test_arrays_pil_images_and_files_are_images_and_else_it_is_said_what_is(tmp_path):
    Image.fromarray(COLOUR).save(tmp_path / "a.png")
    for given in (COLOUR, Image.fromarray(COLOUR), tmp_path / "a.png", str(tmp_path / "a.png")):
        assert np.array_equal(as_array(given), COLOUR)
    assert np.array_equal(as_array(Image.fromarray(GREY)), three(GREY))
    for given in (GREY, COLOUR.astype(np.float32), COLOUR.transpose(2, 0, 1), np.dstack([COLOUR, ALPHA]), None, [1]):
        with pytest.raises(LocusError, match=r"an image is an array of RGB bytes .*, a PIL image or a file, not "):
            as_array(given)


def test_a_model_takes_them_all(tmp_path):
    model = LoCUS("classic", head="identity")
    Image.fromarray(COLOUR).resize((96, 64)).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        expected = model.features(np.asarray(opened))
        assert torch.equal(model.features(opened), expected)
    assert torch.equal(model.features(str(tmp_path / "a.png")), expected)


def test_what_holds_no_images_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(LocusError, match="empty holds no images"):
        sources(tmp_path / "empty")
    with pytest.raises(LocusError, match="does not exist"):
        sources(tmp_path / "nowhere")
    with pytest.raises(LocusError, match="no image or video matches"):
        sources(f"{tmp_path}/*.png")
    with pytest.raises(LocusError, match="no images were given"):
        sources([])


@pytest.fixture
def clip(tmp_path):
    """40 frames, each of its own grey."""
    path = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for i in range(40):
        writer.write(np.full((48, 64, 3), (6 * i, 6 * i, 255 - 6 * i), np.uint8))
    writer.release()
    return path


def greens(images):
    return [round(float(image.read()[..., 1].mean()) / 6) for image in images]


def test_a_videos_frames_have_their_numbers(clip):
    images = sources(clip, every=13)
    assert [image.name for image in images] == [f"clip.avi/{i:06d}" for i in (0, 13, 26, 39)]
    assert greens(images) == [0, 13, 26, 39]
    red, _, blue = images[0].read().mean(axis=(0, 1))
    assert red > 240
    assert blue < 15
    with pytest.raises(LocusError, match="positive"):
        sources(clip, every=0)


def test_a_videos_frames_may_be_asked_for_in_any_order(clip):
    order = [3, 1, 2, 0, 30, 22, 4, 39, 38]
    images = sources(clip)
    assert greens([images[i] for i in order]) == order


def test_a_damaged_video_is_named(tmp_path, clip):
    (tmp_path / "none.mp4").write_bytes(b"nothing")
    with pytest.raises(LocusError, match=r"none\.mp4"):
        sources(tmp_path / "none.mp4")
    images = sources(clip)
    clip.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    with pytest.raises(LocusError, match=r"clip\.avi .* before its frame 39"):
        images[-1].read()
