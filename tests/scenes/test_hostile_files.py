"""Whatever the text files hold, the answer is a scene or a LocusError, never anything else."""

import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import locus
from locus.errors import FrameError, LocusError
from tests.scenes import layouts, room

SHOTS = room.shots(2)
PIECES = ("camera", "world_from_camera", "depth", "image", "semantic", "instance")
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def check_use(path) -> None:
    """Open a scene and ask every frame for everything; only LocusErrors may come of it, and a frame's name it."""
    try:
        scene = locus.load_scene(path)
    except LocusError:
        return
    for frame in scene:
        refusals = []
        for piece in PIECES:
            try:
                getattr(frame, piece)
            except FrameError as error:
                refusals.append(str(error))
        assert all(refusal.startswith(f"frame {frame.name}") for refusal in refusals)


@same_folder
@given(
    st.sampled_from(
        ["fl_x", "fl_y", "cx", "w", "h", "k1", "camera_model", "frames", "depth_unit_scale_factor", "classes"]
    ),
    values,
)
def test_any_value_at_the_top_of_transforms_json(tmp_path, key, value):
    layouts.nerfstudio(tmp_path, SHOTS)
    file = tmp_path / "transforms.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    check_use(tmp_path)


@same_folder
@given(st.sampled_from(["file_path", "depth_file_path", "semantic_file_path", "transform_matrix", "fl_x", "w"]), values)
def test_any_value_in_a_frame_of_transforms_json(tmp_path, key, value):
    layouts.nerfstudio(tmp_path, SHOTS)
    file = tmp_path / "transforms.json"
    content = json.loads(file.read_text())
    content["frames"][0][key] = value
    file.write_text(json.dumps(content))
    check_use(tmp_path)


@same_folder
@given(st.binary(max_size=200))
def test_any_bytes_as_transforms_json(tmp_path, data):
    (tmp_path / "transforms.json").write_bytes(data)
    check_use(tmp_path)


lines = st.lists(st.text("0123456789. -e#nainf/,\n", max_size=40), max_size=6).map("\n".join)


@same_folder
@given(st.sampled_from(["rgb.txt", "depth.txt", "groundtruth.txt", "calibration.txt"]), lines)
def test_any_text_in_a_tum_list(tmp_path, name, text):
    layouts.tum(tmp_path, SHOTS)
    (tmp_path / name).write_text(text)
    check_use(tmp_path)


@same_folder
@given(st.sampled_from(["pose/0.txt", "intrinsic/intrinsic_color.txt", "intrinsic/intrinsic_depth.txt"]), lines)
def test_any_text_in_a_scannet_file(tmp_path, name, text):
    layouts.scannet(tmp_path, SHOTS)
    (tmp_path / name).write_text(text)
    check_use(tmp_path)


@same_folder
@given(values)
def test_any_json_as_point_info_or_camera_parameters(tmp_path, value):
    layouts.taskonomy(tmp_path / "taskonomy", SHOTS)
    next((tmp_path / "taskonomy/point_info").iterdir()).write_text(json.dumps(value))
    check_use(tmp_path / "taskonomy")
    layouts.replica(tmp_path / "replica", SHOTS)
    (tmp_path / "cam_params.json").write_text(json.dumps(value))
    check_use(tmp_path / "replica")


@same_folder
@given(values)
def test_any_json_as_a_polycam_camera(tmp_path, value):
    layouts.polycam(tmp_path, SHOTS)
    (tmp_path / "keyframes/corrected_cameras/98.json").write_text(json.dumps(value))
    check_use(tmp_path)


@same_folder
@given(st.sampled_from(["sensors.yaml", "trans_matrix.yaml"]), st.text("d400_colr:-[]!{}\n 0.1", max_size=80))
def test_any_text_in_openloris_files(tmp_path, name, text):
    layouts.openloris(tmp_path, SHOTS)
    (tmp_path / name).write_text((tmp_path / name).read_text() + text)
    check_use(tmp_path)


@same_folder
@given(st.text("scanCOE 0123456789.-\n", max_size=200))
def test_any_text_in_matterport_files(tmp_path, text):
    root = tmp_path / "house"
    if not root.exists():
        layouts.matterport(root, SHOTS)
    original = {}
    for name in ("undistorted_camera_parameters/house.conf", "house_segmentations/house.house"):
        file = root / name
        original[file] = file.read_text()
        file.write_text(original[file] + text)
        check_use(root)
        file.write_text(original[file])


@same_folder
@given(st.binary(max_size=60))
def test_any_bytes_as_a_colmap_depth_map(tmp_path, data):
    root = tmp_path / "model"
    if not root.exists():
        layouts.colmap(root, SHOTS)
    next((root / "stereo/depth_maps").iterdir()).write_bytes(data)
    check_use(root)


def test_a_colmap_model_that_is_cut_short_is_an_error(tmp_path):
    layouts.colmap(tmp_path, SHOTS)
    (tmp_path / "sparse/0/images.txt").write_text("1 0.5 0.5\n")
    check_use(tmp_path)
    (tmp_path / "sparse/0/cameras.bin").write_bytes(np.arange(20, dtype=np.uint8).tobytes())
    check_use(tmp_path)
