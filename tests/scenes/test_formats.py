"""Each reader gives back the room that was written in its layout."""

import csv
from pathlib import Path

import numpy as np
import pytest

import locus
from locus.geometry import Camera
from locus.scenes import export, inspect
from tests.scenes import layouts, room

# layout: (format it is found to be, depth units per metre, is the image lossless, has it labels)
LAYOUTS = {
    "sevenscenes_official": ("7scenes", 1000, True, False),
    "sevenscenes_flat": ("7scenes", 1000, True, False),
    "tum": ("tum", 5000, True, False),
    "scannet": ("scannet", 1000, False, True),
    "replica": ("replica", 6553.5, False, False),
    "nerfstudio": ("nerfstudio", 1000, True, False),
    "colmap": ("colmap", 1, True, False),
    "taskonomy": ("taskonomy", 512, True, False),
    "matterport": ("matterport", 4000, False, True),
    "polycam": ("polycam", 1000, False, False),
    "openloris": ("tum", 1000, True, False),
    "rgbd_bonn": ("tum", 5000, True, False),
}


@pytest.fixture(scope="module")
def shots() -> list[room.Shot]:
    return room.shots()


def write(layout: str, folder: Path, shots: list[room.Shot]) -> Path:
    root = folder / "data" / layout
    root.mkdir(parents=True)
    getattr(layouts, layout)(root, shots)
    return root


def in_order(layout: str, shots: list[room.Shot]) -> list[room.Shot]:
    """The official 7-Scenes layout deals the frames out to two sequences in turn."""
    return shots[::2] + shots[1::2] if layout == "sevenscenes_official" else shots


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reads_poses_depth_and_cameras_exactly(layout, tmp_path, shots, monkeypatch):
    if layout == "taskonomy":  # one focal length, principal point in the middle: what the format can say
        for name, value in {"FY": room.FX, "CX": room.WIDTH / 2, "CY": room.HEIGHT / 2}.items():
            monkeypatch.setattr(room, name, value)
        shots = room.shots()
    expected_format, scale, lossless, labelled = LAYOUTS[layout]
    scene = locus.load_scene(write(layout, tmp_path, shots))
    assert scene.format == expected_format
    tolerance = 1e-6 if scale == 1 else 0.5 / scale + 1e-6  # rounded to the stored unit
    room.assert_shown(scene, in_order(layout, shots), tolerance, loss=0 if lossless else 8)
    for frame in scene:
        assert (frame.semantic is not None) == (frame.instance is not None) == labelled


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "taskonomy"])
def test_what_was_read_is_consistent(layout, tmp_path, shots):
    assert inspect(locus.load_scene(write(layout, tmp_path, shots))).sound


@pytest.mark.parametrize("mesh", ["house", "regions"])
def test_matterport_labels_are_rendered_from_the_mesh(mesh, tmp_path, shots):
    root = write("matterport", tmp_path, shots)
    if mesh == "regions":
        layouts.matterport_regions(root)
    scene = locus.load_scene(root)
    assert [(c.id, c.name, c.kind) for c in scene.classes] == [
        (1, "wall", "stuff"),
        (2, "floor", "stuff"),
        (5, "chair", "thing"),
        (7, "table", "thing"),
    ]
    for frame, shot in zip(scene, shots, strict=True):
        assert (frame.semantic == shot.semantic).mean() > 0.995  # a ray along an edge may meet either side
        expected = np.where(shot.semantic == 2, 5, shot.instance)  # the floor is an object of its own
        assert (frame.instance == expected).mean() > 0.995


def test_matterport_without_annotations_has_no_labels(tmp_path, shots):
    root = write("matterport", tmp_path, shots)
    (root / "house_segmentations/house.house").unlink()
    scene = locus.load_scene(root)
    assert scene.classes == ()
    assert scene[0].semantic is None


def test_scannet_labels_keep_their_numbers_without_the_table(tmp_path, shots):
    scene = locus.load_scene(write("scannet", tmp_path, shots))
    np.testing.assert_array_equal(scene[0].semantic, shots[0].semantic)
    np.testing.assert_array_equal(scene[0].instance, shots[0].instance)
    assert {c.id: c.name for c in scene.classes}[5] == "ScanNet label 5"


def test_scannet_labels_become_nyu40_classes_with_the_table(tmp_path, shots):
    root = write("scannet", tmp_path, shots)
    with (root.parent / "scannetv2-labels.combined.tsv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerow(["id", "raw_category", "nyu40id", "nyu40class"])
        rows.writerows([[1, "wall", 1, "wall"], [2, "floor", 2, "floor"], [5, "stool", 5, "chair"]])
        rows.writerow([7, "desk", 14, "desk"])
    scene = locus.load_scene(root)
    assert [(c.id, c.name, c.kind) for c in scene.classes][-1] == (14, "desk", "thing")
    np.testing.assert_array_equal(scene[0].semantic == 14, shots[0].semantic == 7)
    assert scene.classes[0].kind == "stuff"


def test_scannet_depth_of_another_camera_is_carried_to_the_colour_image(tmp_path, shots):
    """Depth at half the size with a principal point of its own still lies under the right colour pixels."""
    root = write("scannet", tmp_path, shots[:1])
    small = np.eye(4)
    small[:2, 2] = [layouts.INTRINSICS[0, 2] / 2 - 3, layouts.INTRINSICS[1, 2] / 2 + 2]
    small[0, 0], small[1, 1] = room.FX / 2, room.FY / 2
    layouts.save_matrix(root / "intrinsic/intrinsic_depth.txt", small)
    # A ramp over the depth image's own columns tells which of them each colour pixel took.
    columns = np.tile(np.arange(1, 42, dtype=np.uint16) * 100, (30, 1))
    layouts.save(root / "depth/0.png", columns)
    depth = locus.load_scene(root)[0].depth
    x = np.arange(room.WIDTH)
    expected_column = np.floor((x - layouts.INTRINSICS[0, 2]) / 2 + small[0, 2] + 0.5)
    expected = np.where((expected_column >= 0) & (expected_column < 41), (expected_column + 1) * 0.1, 0)
    np.testing.assert_allclose(depth[30], expected, atol=1e-6)


def test_official_7scenes_without_calibration_uses_the_published_one(tmp_path, shots):
    root = write("sevenscenes_official", tmp_path, shots)
    (root / "camera-intrinsics.txt").unlink()
    assert locus.load_scene(root)[0].camera == Camera(80, 60, 585 / 8, 585 / 8, 40.0, 30.0)


def test_tum_cameras_are_known_by_the_folder_and_their_distortion_is_undone(tmp_path, shots):
    """A straight world line, bent by the published distortion, comes out straight."""
    import cv2

    root = tmp_path / "rgbd_dataset_freiburg2_test"
    root.mkdir()
    layouts.tum(root, shots[:1])
    (root / "calibration.txt").unlink()
    matrix = np.array([[520.9, 0, 325.1], [0, 521.0, 249.7], [0, 0, 1]])
    coefficients = np.array([0.2312, -0.7849, -0.0033, -0.0001, 0.9172])
    rays = np.stack([np.linspace(-0.45, 0.45, 4000), np.full(4000, -0.3), np.ones(4000)], axis=-1)
    bent, _ = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), matrix, coefficients)
    image = np.zeros((480, 640, 3), np.uint8)
    x, y = np.rint(bent[:, 0]).astype(int).T
    for shift in (-1, 0, 1):
        image[y + shift, x] = 255
    depth = np.where(image[..., 0] > 0, np.uint16(5000), np.uint16(0))
    layouts.save(root / "rgb/1000.000000.png", image)
    layouts.save(root / "depth/1000.010000.png", depth)
    frame = locus.load_scene(root)[0]
    straight = 521.0 * -0.3 + 249.7 + 0.5  # in pixels with centres at 0.5
    for picture in (frame.image[..., 0] > 127, frame.depth > 0):
        rows, columns = np.nonzero(picture)
        middle = np.array([rows[columns == c].mean() + 0.5 for c in np.unique(columns)])
        assert np.abs(middle - straight).max() < 1.2
    assert np.abs(y + 0.5 - straight).max() > 3  # it was bent


def test_bonns_camera_is_known_by_the_folders_name(tmp_path, shots):
    root = write("rgbd_bonn", tmp_path, shots)
    (root / "calibration.txt").unlink()
    frame = locus.load_scene(root)[0]
    scale = room.WIDTH / 640
    known = [542.822841, 542.576870, 315.593520 + 0.5, 237.756098 + 0.5]
    np.testing.assert_allclose(
        [frame.camera.fx, frame.camera.fy, frame.camera.cx, frame.camera.cy], np.multiply(known, scale)
    )
    assert not np.array_equal(frame.image, shots[0].image)  # its lens distorts, which is undone


def test_polycam_takes_images_as_they_are_where_none_are_corrected(tmp_path, shots):
    import shutil

    root = write("polycam", tmp_path, shots)
    shutil.rmtree(root / "keyframes/corrected_images")
    scene = locus.load_scene(root)
    assert [frame.name for frame in scene] == [str(k) for k in range(98, 106)]
    assert scene[0].world_from_camera[0, 3] == 100
    assert np.abs(255 - scene[0].image.astype(int) - shots[0].image).mean() < 8


def test_polycam_depth_is_small_and_unknown_where_confidence_is_low(tmp_path, shots):
    root = write("polycam", tmp_path, shots)
    layouts.save_depth(root / "keyframes/depth/98.png", shots[0].depth[1::2, 1::2], 1000)
    confidence = np.full((room.HEIGHT // 2, room.WIDTH // 2), 255, np.uint8)
    confidence[:10] = 0
    layouts.save(root / "keyframes/confidence/98.png", confidence)
    (root / "keyframes/depth/99.png").unlink()
    (root / "keyframes/corrected_cameras/100.json").unlink()
    scene = locus.load_scene(root)
    assert scene.skipped == {"100": "no file in corrected_cameras"}
    assert not scene[0].depth[:20].any()
    np.testing.assert_allclose(scene[0].depth[21::2, 1::2], shots[0].depth[21::2, 1::2], atol=5.01e-4)
    with pytest.raises(locus.errors.FrameError, match=r"frame 99.*no depth"):
        scene[1].depth  # noqa: B018


def test_colmap_distortion_is_undone_and_unknown_models_are_refused(tmp_path, shots):
    root = write("colmap", tmp_path, shots)
    cameras = root / "sparse/0/cameras.txt"
    cameras.write_text(f"1 SIMPLE_RADIAL {room.WIDTH} {room.HEIGHT} {room.FX} {room.CX} {room.CY} 0.1\n")
    frame = locus.load_scene(root)[0]
    assert not np.array_equal(frame.image, shots[0].image)
    # The principal point does not move.
    y, x = int(room.CY), int(room.CX)
    assert np.abs(frame.image[y, x].astype(int) - shots[0].image[y, x]).max() < 12
    cameras.write_text(f"1 FOV {room.WIDTH} {room.HEIGHT} {room.FX} {room.FY} {room.CX} {room.CY} 0.5\n")
    with pytest.raises(locus.errors.SceneError, match=r"FOV.*undistort"):
        locus.load_scene(root)


def test_colmap_takes_sensor_depth_from_the_depth_folder(tmp_path, shots):
    import shutil

    root = write("colmap", tmp_path, shots)
    shutil.rmtree(root / "stereo")
    for shot in shots:
        layouts.save_depth(root / f"depth/{shot.name}.png", shot.depth, 1000)
    scene = locus.load_scene(root)
    assert scene.convention.depth_scale == 1000
    np.testing.assert_allclose(scene[0].depth, shots[0].depth, atol=6e-4)


@pytest.mark.parametrize("layout", ["tum", "scannet", "matterport", "taskonomy", "colmap"])
def test_any_format_converts_to_the_native_one(layout, tmp_path, shots):
    scene = locus.load_scene(write(layout, tmp_path, shots))
    again = locus.load_scene(export(scene, tmp_path / "native"))
    assert again.format == "nerfstudio"
    assert tuple(again.classes) == tuple(scene.classes)
    for a, b in zip(scene, again, strict=True):
        assert a.name == b.name
        assert a.camera == b.camera
        np.testing.assert_allclose(a.world_from_camera, b.world_from_camera, atol=1e-12)
        np.testing.assert_allclose(a.depth, b.depth, rtol=1e-6, atol=5.1e-4 if layout == "colmap" else 0)
        np.testing.assert_array_equal(a.image, b.image)
        if a.semantic is not None:
            np.testing.assert_array_equal(a.semantic, b.semantic)
            np.testing.assert_array_equal(a.instance, b.instance)


def test_lists_without_depth_are_posed_colour(tmp_path, shots):
    root = write("tum", tmp_path, shots)
    with_depth = locus.load_scene(root)
    (root / "depth.txt").unlink()
    scene = locus.load_scene(root)
    assert [frame.name for frame in scene] == [frame.name for frame in with_depth]
    assert not scene[0].has_depth
    np.testing.assert_allclose(scene[3].world_from_camera, with_depth[3].world_from_camera)
    with pytest.raises(locus.errors.FrameError, match="has no depth for it; `locus depth` finds some"):
        scene[0].depth  # noqa: B018  read for its error
    converted = locus.load_scene(export(scene, tmp_path / "native"))
    assert not any(frame.has_depth for frame in converted)
    np.testing.assert_array_equal(converted[0].image, scene[0].image)
