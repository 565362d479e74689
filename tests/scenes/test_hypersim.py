"""Hypersim's scenes, as the data set has them and as it does not."""

import csv

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError, LocusError
from locus.scenes import inspect
from tests.scenes import refusals, room
from tests.scenes.layouts import FLIP, save
from tests.scenes.test_hostile_files import check_use, lines, same_folder

SHOTS = room.shots(4)
UNIT = 0.0254  # metres in the artist's inch
PREVIEW, GEOMETRY = "images/scene_cam_00_final_preview", "images/scene_cam_00_geometry_hdf5"


def save_array(file, values) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(file, "w") as stored:
        stored["dataset"] = values


def uv_matrix() -> np.ndarray:
    """From u, v in -1…1, v upwards, to rays of a camera that looks along -z: what the image's edges see."""
    left, right = -room.CX / room.FX, (room.WIDTH - room.CX) / room.FX
    top, bottom = room.CY / room.FY, -(room.HEIGHT - room.CY) / room.FY
    return 3 * np.array(
        [[(right - left) / 2, 0, (right + left) / 2], [0, (top - bottom) / 2, (top + bottom) / 2], [0, 0, -1]]
    )


def write_cameras(file, matrix, scene="ai_001_001") -> None:
    row = {"scene_name": scene, "settings_output_img_width": f"{room.WIDTH}.0"}
    row |= {"settings_output_img_height": f"{room.HEIGHT}.0"}
    row |= {f"M_cam_from_uv_{i}{j}": float(matrix[i, j]) for i in range(3) for j in range(3)}
    with file.open("w", newline="") as stream:
        table = csv.DictWriter(stream, list(row))
        table.writeheader()
        table.writerows([row | {"scene_name": "ai_000_000"}, row])


def write(root) -> None:
    root.mkdir(parents=True, exist_ok=True)
    poses = np.array([shot.world_from_camera @ FLIP for shot in SHOTS])
    save_array(root / "_detail/cam_00/camera_keyframe_orientations.hdf5", poses[:, :3, :3])
    save_array(root / "_detail/cam_00/camera_keyframe_positions.hdf5", poses[:, :3, 3] / UNIT)
    (root / "_detail/metadata_scene.csv").write_text(f"parameter_name,parameter_value\nmeters_per_asset_unit,{UNIT}\n")
    u, v = np.meshgrid(np.arange(room.WIDTH) + 0.5, np.arange(room.HEIGHT) + 0.5)
    stretch = np.sqrt(((u - room.CX) / room.FX) ** 2 + ((v - room.CY) / room.FY) ** 2 + 1)
    for number, shot in enumerate(SHOTS):
        save(root / f"{PREVIEW}/frame.{number:04d}.tonemap.jpg", shot.image)
        stem = root / f"{GEOMETRY}/frame.{number:04d}"
        save_array(stem.with_name(f"{stem.name}.depth_meters.hdf5"), (shot.depth * stretch).astype(np.float32))
        save_array(stem.with_name(f"{stem.name}.semantic.hdf5"), np.where(shot.semantic == 1, -1, shot.semantic))
        save_array(stem.with_name(f"{stem.name}.semantic_instance.hdf5"), shot.instance.astype(np.int16))
    write_cameras(root.parent / "metadata_camera_parameters.csv", uv_matrix())


@pytest.fixture
def scan(tmp_path):
    write(tmp_path / "ai_001_001")
    return tmp_path / "ai_001_001"


def test_it_is_read_exactly_with_labels(scan):
    scene = locus.load_scene(scan)
    assert scene.format == "hypersim"
    assert [frame.name for frame in scene][:2] == ["cam_00/0000", "cam_00/0001"]
    room.assert_shown(scene, SHOTS, 1e-5, loss=8)
    for frame, shot in zip(scene, SHOTS, strict=True):
        np.testing.assert_array_equal(frame.semantic, np.where(shot.semantic == 1, 0, shot.semantic))
        np.testing.assert_array_equal(frame.instance, shot.instance)
    known = {label.id: (label.name, label.kind) for label in scene.classes}
    assert (known[1], known[5], known[22], known[40]) == (
        ("wall", "stuff"),
        ("chair", "thing"),
        ("ceiling", "stuff"),
        ("otherprop", "thing"),
    )
    assert inspect(scene).sound


def test_frames_are_posed_by_their_number_and_may_lack_depth_and_labels(scan):
    (scan / PREVIEW / "frame.0001.tonemap.jpg").unlink()
    save(scan / PREVIEW / "frame.0007.tonemap.jpg", SHOTS[0].image)
    for file in (scan / GEOMETRY).iterdir():
        file.unlink()
    scene = locus.load_scene(scan)
    assert scene.skipped == {"cam_00/0007": "_detail/cam_00 has no pose for it"}
    np.testing.assert_allclose(scene[1].world_from_camera, SHOTS[2].world_from_camera, atol=1e-9)
    assert scene.classes == ()
    assert scene[0].semantic is None
    with pytest.raises(FrameError, match="has no depth for it"):
        scene[0].depth  # noqa: B018


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (2, 0), (2, 1)])
def test_a_tilted_lens_is_refused(scan, place, monkeypatch, capsys):
    matrix = uv_matrix()
    matrix[place] = 0.02
    write_cameras(scan.parent / "metadata_camera_parameters.csv", matrix)
    refusals.assert_said(scan, "rendered with a tilted lens", monkeypatch, capsys)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("../metadata_camera_parameters.csv", None, "needs metadata_camera_parameters.csv"),
        ("../metadata_camera_parameters.csv", b"scene_name\nai_001_002\n", "has no row for ai_001_001"),
        ("../metadata_camera_parameters.csv", b"scene_name\nai_001_001\n", "width should be a number"),
        ("_detail/metadata_scene.csv", b"", "has no row for meters_per_asset_unit"),
        ("_detail/metadata_scene.csv", b"parameter_name,parameter_value\nmeters_per_asset_unit,inch\n", "not 'inch'"),
        ("_detail/cam_00/camera_keyframe_positions.hdf5", b"", "not an HDF5 file that can be read"),
        ("_detail/cam_00/camera_keyframe_positions.hdf5", None, "is missing"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(scan, monkeypatch, capsys, file, content, sentence):
    if content is None:
        (scan / file).unlink()
    else:
        (scan / file).write_bytes(content)
    refusals.assert_said(scan, sentence, monkeypatch, capsys)


def test_arrays_of_other_shapes_and_from_other_files_are_refused(scan, tmp_path):
    depth = scan / GEOMETRY / "frame.0000.depth_meters.hdf5"
    secret = tmp_path / "secret.hdf5"
    save_array(secret, np.ones((room.HEIGHT, room.WIDTH)))

    def external(file):
        file["dataset"] = h5py.ExternalLink(secret, "dataset")

    def virtual(file):
        layout = h5py.VirtualLayout((room.HEIGHT, room.WIDTH), "f8")
        layout[:] = h5py.VirtualSource(secret, "dataset", (room.HEIGHT, room.WIDTH))
        file.create_virtual_dataset("dataset", layout)

    def raw(file):
        file.create_dataset("dataset", (10, 10), "u1", external=[(str(secret), 0, 100)])

    def huge(file):
        file.create_dataset("dataset", (2**20, 2**20), "f4", chunks=(64, 64))

    def text(file):
        file["dataset"] = "text"

    def flat(file):
        file["dataset"] = np.ones(5)

    for write_dataset, sentence in (
        (external, "no dataset of its own"),
        (virtual, "no dataset of its own"),
        (raw, "no dataset of its own"),
        (huge, "not numbers of a usual size"),
        (text, "not numbers of a usual size"),
        (flat, "not a map"),
    ):
        with h5py.File(depth, "w") as file:
            write_dataset(file)
        with pytest.raises(FrameError, match=sentence):
            locus.load_scene(scan)[0].depth  # noqa: B018
    save_array(scan / "_detail/cam_00/camera_keyframe_orientations.hdf5", np.ones((4, 3)))
    with pytest.raises(LocusError, match="an orientation and a position"):
        locus.load_scene(scan)


def test_a_link_out_of_the_folder_is_refused(scan):
    refusals.assert_link_refused(scan, scan / GEOMETRY / "frame.0002.depth_meters.hdf5")


@same_folder
@given(st.sampled_from(["../metadata_camera_parameters.csv", "_detail/metadata_scene.csv"]), lines)
def test_any_text_in_its_tables(tmp_path, name, text):
    root = tmp_path / "ai_001_001"
    if not root.exists():
        write(root)
    original = (root / name).read_text()
    for content in (original + text, text):
        (root / name).write_text(content)
        check_use(root)
    (root / name).write_text(original)
