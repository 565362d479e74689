"""Frames are read when asked for, and say what is wrong with them."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import locus
from locus.errors import FrameError, LocusError, SceneError
from locus.scenes import Convention, Scene, inspect, overlap
from tests.scenes import layouts, room
from tests.scenes.layouts import edit


def test_a_scene_is_a_sequence_of_frames(folder):
    scene = locus.load_scene(folder)
    assert (scene.name, scene.format, len(scene)) == ("room", "nerfstudio", 8)
    assert scene[-1].name == scene[7].name == "000007"
    assert [frame.name for frame in scene[2:8:3]] == ["000002", "000005"]
    assert isinstance(scene[2:4], Scene)
    assert len(list(scene)) == 8
    with pytest.raises(IndexError):
        scene[8]


def test_the_json_file_itself_may_be_named(folder):
    assert len(locus.load_scene(folder / "transforms.json")) == 8


def test_opening_a_hundred_thousand_frames_reads_no_image(folder, monkeypatch):
    def grow(content):
        frame = content["frames"][0]
        content["frames"] = [frame | {"file_path": f"images/{k:06d}.png"} for k in range(100_000)]

    edit(folder, grow)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("an image was opened"))
    scene = locus.load_scene(folder)
    assert len(scene) == 100_000
    assert scene[99_999].world_from_camera.shape == (4, 4)


def test_a_frame_reads_each_piece_once_and_only_when_asked(folder, monkeypatch):
    opened = []
    original = Image.open
    monkeypatch.setattr(Image, "open", lambda path, *rest: opened.append(path.parent.name) or original(path, *rest))
    frame = locus.load_scene(folder)[0]
    assert opened == []
    frame.image, frame.image, frame.image  # noqa: B018
    assert opened == ["images"]


def test_missing_image_is_a_named_error_and_the_rest_can_be_read(folder):
    (folder / "images/000003.png").unlink()
    scene = locus.load_scene(folder)
    with pytest.raises(FrameError, match=r"frame 000003: .*000003.png is missing"):
        scene[3].image  # noqa: B018
    assert scene[4].image.shape == (60, 80, 3)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9])
def test_truncated_image_is_a_named_error(folder, share):
    for kind in ("images", "depth"):
        file = folder / kind / "000002.png"
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * share)])
    frame = locus.load_scene(folder)[2]
    for piece in ("image", "depth"):
        with pytest.raises(FrameError, match="000002"):
            getattr(frame, piece)


def test_depth_of_another_size_is_resized_only_if_the_aspect_agrees(folder, shots):
    half = shots[0].depth[::2, ::2]
    layouts.save_depth(folder / "depth/000000.png", half, 1000)
    layouts.save_depth(folder / "depth/000001.png", shots[1].depth[:, :70], 1000)
    scene = locus.load_scene(folder)
    depth = scene[0].depth
    assert depth.shape == (60, 80)
    np.testing.assert_allclose(depth[::2, ::2], half, atol=6e-4)
    np.testing.assert_allclose(depth[1::2, 1::2], half, atol=6e-4)
    with pytest.raises(FrameError, match=r"70×60.*80×60.*aspect"):
        scene[1].depth  # noqa: B018


def test_intrinsics_follow_an_image_that_was_resized(folder, shots):
    layouts.save(folder / "images/000000.png", shots[0].image[::2, ::2])
    camera = locus.load_scene(folder)[0].camera
    assert (camera.width, camera.fx, camera.cy) == (40, room.FX / 2, room.CY / 2)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1, 0, 0, float("nan")], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], "not finite"),
        ([[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]], "not rigid"),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], r"shape \(3, 3\)"),
        ("nonsense", "transform_matrix"),
        (None, "transform_matrix"),
    ],
)
def test_bad_poses_are_named_errors(folder, matrix, reason):
    edit(folder, lambda content: content["frames"][1].update(transform_matrix=matrix))
    with pytest.raises(FrameError, match=f"000001.*{reason}"):
        locus.load_scene(folder)[1].world_from_camera  # noqa: B018


def test_zero_focal_length_is_a_named_error(folder):
    edit(folder, lambda content: content.update(fl_x=0))
    with pytest.raises(FrameError, match=r"000000.*focal length must be positive"):
        locus.load_scene(folder)[0].camera  # noqa: B018


def test_empty_scene_and_unknown_folder_are_errors(folder, tmp_path):
    edit(folder, lambda content: content.update(frames=[]))
    with pytest.raises(SceneError, match="no frames"):
        locus.load_scene(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SceneError, match="none of the known formats"):
        locus.load_scene(tmp_path / "empty")
    with pytest.raises(SceneError, match="does not exist"):
        locus.load_scene(tmp_path / "nowhere")
    with pytest.raises(SceneError, match="no format bogus"):
        locus.load_scene(folder, "bogus")


@pytest.mark.parametrize("target", ["../secret.png", "images/../../secret.png", "/etc/hostname"])
def test_paths_outside_the_folder_are_refused_unless_allowed(folder, target):
    layouts.save(folder.parent / "secret.png", np.zeros((60, 80, 3), np.uint8))
    edit(folder, lambda content: content["frames"][0].update(file_path=target))
    with pytest.raises(SceneError, match=r"outside.*--allow-outside"):
        locus.load_scene(folder)
    allowed = locus.load_scene(folder, allow_outside=True)
    assert ".." not in allowed[0].name  # exporting it must not write outside either
    if target.endswith("png"):
        assert allowed[0].image.max() == 0


def test_links_that_lead_outside_are_refused_too(folder):
    layouts.save(folder.parent / "elsewhere/000000.png", np.zeros((60, 80, 3), np.uint8))
    (folder / "linked").symlink_to(folder.parent / "elsewhere")
    edit(folder, lambda content: content["frames"][0].update(file_path="linked/000000.png"))
    with pytest.raises(SceneError, match="outside"):
        locus.load_scene(folder)


def test_decompression_bombs_are_refused_before_they_are_unpacked(folder):
    """A PNG header that claims 60,000 × 60,000 pixels, in a file of some hundred bytes."""
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    for size in (60_000, 11_000):  # beyond Pillow's own limit, and below it
        header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
        data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
        (folder / "images/000000.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
        with pytest.raises(FrameError, match="million pixels"):
            locus.load_scene(folder)[0].image  # noqa: B018
        with pytest.raises(FrameError, match="million pixels"):
            locus.load_scene(folder)[0].camera  # noqa: B018


def test_labels_outside_the_class_list_are_a_named_error(folder, shots):
    layouts.save(folder / "semantic/a.png", shots[0].semantic.astype(np.uint16))

    def label(content):
        content["frames"][0]["semantic_file_path"] = "semantic/a.png"
        content["classes"] = [{"id": 1, "name": "wall", "kind": "stuff"}]

    edit(folder, label)
    with pytest.raises(FrameError, match=r"000000.*not in the scene's class list: 2"):
        locus.load_scene(folder)[0].semantic  # noqa: B018


@pytest.mark.parametrize(
    "classes", [[{"id": 0, "name": "a", "kind": "stuff"}], [{"id": 1, "name": "a", "kind": "b"}], [{}], 5, [1, 1]]
)
def test_broken_class_lists_are_errors(folder, classes):
    edit(folder, lambda content: content.update(classes=classes))
    with pytest.raises(SceneError, match="class"):
        locus.load_scene(folder)


def test_two_frames_of_one_name_are_a_counted_skip(folder):
    edit(folder, lambda content: content["frames"].append(content["frames"][0]))
    scene = locus.load_scene(folder)
    assert len(scene) == 8
    assert scene.skipped == {"000000 (again)": "another frame has the same name"}


@pytest.mark.parametrize("mode", ["L", "RGBA", "I;16", "CMYK"])
def test_images_of_any_kind_become_rgb(folder, mode):
    grey = np.tile(np.arange(80, dtype=np.uint8) * 3, (60, 1))
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 256)
    else:
        image = Image.fromarray(grey).convert("RGB").convert(mode)
    suffix = ".tif" if mode == "CMYK" else ".png"
    image.save(folder / f"images/odd{suffix}")
    edit(folder, lambda content: content["frames"][0].update(file_path=f"images/odd{suffix}"))
    result = locus.load_scene(folder)[0].image
    assert result.dtype == np.uint8
    assert np.abs(result.astype(int) - grey[..., None]).max() <= 4


def test_depth_as_npy_is_read_and_a_pickle_is_not(folder, shots, tmp_path):
    np.save(folder / "depth/a.npy", (shots[0].depth * 1000).astype(np.float32))
    edit(folder, lambda content: content["frames"][0].update(depth_file_path="depth/a.npy"))
    np.testing.assert_allclose(locus.load_scene(folder)[0].depth, shots[0].depth, rtol=1e-5)
    np.save(folder / "depth/a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FrameError, match=r"a\.npy"):
        locus.load_scene(folder)[0].depth  # noqa: B018


def test_depth_that_is_not_a_number_or_saturated_is_unknown(folder, shots):
    depth = (shots[0].depth * 1000).astype(np.float32)
    depth[0, :3] = [np.nan, np.inf, -5]
    np.save(folder / "depth/a.npy", depth)
    edit(folder, lambda content: content["frames"][0].update(depth_file_path="depth/a.npy"))
    assert (locus.load_scene(folder)[0].depth[0, :4] > 0).tolist() == [False, False, False, True]
    layouts.save(folder / "depth/000001.png", np.full((60, 80), 65535, np.uint16))
    assert locus.load_scene(folder)[1].depth.max() == 0


def test_a_colour_image_is_no_depth_map(folder, shots):
    layouts.save(folder / "depth/000000.png", shots[0].image)
    with pytest.raises(FrameError, match="mode RGB; a depth map has one channel"):
        locus.load_scene(folder)[0].depth  # noqa: B018


def test_reading_options_apply(folder, shots):
    scene = locus.load_scene(folder, depth_scale=500, pose="camera_from_world", intrinsics="swapped")
    assert scene.convention == Convention(
        pose="camera_from_world", axes="opengl", intrinsics="swapped", depth_scale=500.0
    )
    np.testing.assert_allclose(scene[0].depth, shots[0].depth * 2, atol=2e-3)
    assert scene[0].camera.fx == room.FY
    with pytest.raises(LocusError, match="depth scale must be positive"):
        locus.load_scene(folder, depth_scale=0)


def test_unreadable_frames_are_counted_and_named_by_inspect_and_overlap(folder):
    (folder / "images/000003.png").write_bytes(b"not an image")
    edit(folder, lambda content: content["frames"][5].update(transform_matrix=[[float("nan")] * 4] * 4))
    scene = locus.load_scene(folder)
    inspection = inspect(scene)
    assert set(inspection.unreadable) == {"000003", "000005"}
    assert dict(inspection.facts())["frames"].endswith("6 of them readable")
    with pytest.warns(UserWarning, match=r"2 of 8 frames are left out.*000003"):
        shares = overlap(scene).toarray()
    assert not shares[[3, 5]].any()
    assert not shares[:, [3, 5]].any()
    assert (np.diag(shares)[[0, 1, 2, 4, 6, 7]] > 0.9).all()


def test_a_scene_without_a_readable_frame_is_an_error_that_says_why(folder):
    for file in (folder / "images").iterdir():
        file.unlink()
    with pytest.raises(SceneError, match=re.compile("none of the 8 frames.*missing")):
        inspect(locus.load_scene(folder))


@pytest.mark.parametrize("option", [{"axes": "blender"}, {"pose": "c2w"}, {"rotation": "yes"}])
def test_conventions_that_do_not_exist_are_refused(option):
    # Past the type checker that the tests switch on, as a user's own code is.
    convention = object.__new__(Convention)
    convention.__dict__.update(Convention().__dict__ | option)
    with pytest.raises(LocusError, match=f"{next(iter(option))} must be .* or "):
        convention.__post_init__()


@pytest.mark.parametrize("mode", ["P", "1"])
def test_palettes_and_bits_are_no_depth(folder, mode):
    file = folder / "depth/000000.png"
    Image.open(file).convert("L").convert(mode).save(file)
    with pytest.raises(FrameError, match="one channel of numbers"):
        locus.load_scene(folder)[0].depth  # noqa: B018


def test_unreadable_labels_do_not_hide_sound_geometry(folder, shots):
    layouts.save(folder / "semantic/a.png", shots[0].image)
    edit(folder, lambda content: content["frames"][0].update(semantic_file_path="semantic/a.png"))
    inspection = inspect(locus.load_scene(folder))
    assert inspection.sound
    assert set(inspection.unlabelled) == {"000000"}
    assert "label map" in dict(inspection.facts())["labels"]


@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000), (30, 5)])
def test_images_of_odd_sizes_are_inspected_without_a_repair_made_up(tmp_path, size):
    from locus.scenes.inspection_page import write_page

    width, height = size
    frames = []
    for k in range(4):
        layouts.save(tmp_path / f"images/{k}.png", np.full((height, width, 3), 40 * k, np.uint8))
        layouts.save(tmp_path / f"depth/{k}.png", np.full((height, width), 1000, np.uint16))
        matrix = np.eye(4)
        matrix[0, 3] = 0.1 * k
        frames.append({"file_path": f"images/{k}.png", "depth_file_path": f"depth/{k}.png"})
        frames[-1]["transform_matrix"] = matrix.tolist()
    (tmp_path / "transforms.json").write_text(json.dumps({"fl_x": 30, "frames": frames}))
    inspection = inspect(locus.load_scene(tmp_path))
    assert inspection.repair == {}
    assert "nan" not in inspection.verdict
    assert write_page(inspection, tmp_path / "page.html").stat().st_size < 5_000_000
