"""Writing scenes: what other programs read is the room, and a folder is there whole or not at all."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

import locus
from locus.errors import LocusError, SceneError
from locus.scenes import export, inspect
from tests.scenes import layouts, room

FORMATS = ["nerfstudio", "colmap", "tum"]


@pytest.mark.parametrize("to", FORMATS)
def test_what_was_written_is_read_back(folder, tmp_path, shots, to):
    scene = locus.load_scene(folder)
    again = locus.load_scene(export(scene, tmp_path / "out", to))
    assert again.format == to
    assert [frame.name for frame in again] == [frame.name for frame in scene]
    for frame, shot in zip(again, shots, strict=True):
        np.testing.assert_array_equal(frame.image, shot.image)
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=3e-6 if to == "tum" else 1e-12)
        np.testing.assert_allclose(frame.depth, np.rint(shot.depth * 1000) / 1000, atol=1e-6)
        assert frame.camera == scene[0].camera
    assert inspect(again).sound


def test_a_colmap_model_is_what_pycolmap_reads(folder, tmp_path, shots):
    model = pycolmap.Reconstruction(export(locus.load_scene(folder), tmp_path / "out", "colmap") / "sparse" / "0")
    assert len(model.cameras) == 1
    assert model.cameras[1].model_name == "PINHOLE"
    assert model.cameras[1].params.tolist() == [room.FX, room.FY, room.CX, room.CY]
    assert (model.cameras[1].width, model.cameras[1].height) == (room.WIDTH, room.HEIGHT)
    images = {image.name: image for image in model.images.values()}
    assert sorted(images) == [f"{shot.name}.png" for shot in shots]
    assert len(model.points3D) == sum(len(image.points2D) for image in images.values()) > 1000
    for shot in shots:
        image = images[f"{shot.name}.png"]
        camera_from_world = np.linalg.inv(shot.world_from_camera)[:3]
        np.testing.assert_allclose(image.cam_from_world().matrix(), camera_from_world, atol=1e-12)
        for seen in image.points2D[::97]:
            point = model.points3D[seen.point3D_id]
            x, y = (seen.xy - 0.5).astype(int)
            assert point.color.tolist() == shot.image[y, x].tolist()
            assert point.track.length() == 1
            np.testing.assert_allclose(image.project_point(point.xyz), seen.xy, atol=1e-9)
            np.testing.assert_allclose(camera_from_world[2] @ [*point.xyz, 1], shot.depth[y, x], atol=6e-4)


def test_frames_of_several_cameras_stay_so_in_a_colmap_model_and_are_refused_for_tum(folder, tmp_path):
    layouts.edit(folder, lambda content: content["frames"][3].update(fl_x=70.0))
    scene = locus.load_scene(folder)
    assert [f.camera.fx for f in locus.load_scene(export(scene, tmp_path / "model", "colmap"))] == [
        70.0 if k == 3 else room.FX for k in range(8)
    ]
    with pytest.raises(SceneError, match="000003 has another camera than the first"):
        export(scene, tmp_path / "lists", "tum")
    assert not (tmp_path / "lists").exists()


def test_tum_lists_are_those_of_the_benchmark(folder, tmp_path, shots):
    out = export(locus.load_scene(folder), tmp_path / "out", "tum")
    lists = {name: (out / f"{name}.txt").read_text().splitlines() for name in ("rgb", "depth")}
    listed = {name: [line.split() for line in lines if line[0] != "#"] for name, lines in lists.items()}
    trajectory = np.loadtxt(out / "groundtruth.txt")
    for k, shot in enumerate(shots):
        (time, image), (depth_time, depth) = listed["rgb"][k], listed["depth"][k]
        assert float(time) == float(depth_time) == trajectory[k, 0] == k
        np.testing.assert_array_equal(np.asarray(Image.open(out / image)), shot.image)
        np.testing.assert_allclose(np.asarray(Image.open(out / depth)) / 5000, shot.depth, atol=6e-4)
        np.testing.assert_allclose(trajectory[k, 1:4], shot.world_from_camera[:3, 3], atol=1e-6)
        rotation = Rotation.from_quat(trajectory[k, 4:]).as_matrix()
        np.testing.assert_allclose(rotation, shot.world_from_camera[:3, :3], atol=3e-6)
    assert np.loadtxt(out / "calibration.txt").tolist() == [room.FX, room.FY, room.CX - 0.5, room.CY - 0.5]


@pytest.mark.parametrize(
    ("names", "times", "kept"),
    [
        (["1305031102.17", "1305031102.5"], [1305031102.17, 1305031102.5], True),
        (["hall/a", "hall/b"], [0, 1], True),
        (["1", "01"], [0, 1], True),
        (["living room", "bath,2"], [0, 1], False),
    ],
)
def test_tum_frames_are_listed_by_their_times_or_numbers(folder, tmp_path, names, times, kept):
    scene = locus.load_scene(folder)
    sources = [replace(source, name=name) for source, name in zip(scene.sources, names, strict=False)]
    out = export(replace(scene, sources=sources), tmp_path / "out", "tum")
    assert np.loadtxt(out / "groundtruth.txt")[:, 0].tolist() == times
    again = locus.load_scene(out)
    assert [frame.name for frame in again] == (names if kept else ["0.000000", "1.000000"])
    assert all((a.image == b.image).all() for a, b in zip(again, scene, strict=False))


@pytest.mark.parametrize(("to", "reach"), [("tum", 65534 / 5000), ("colmap", 65534 / 1000)])
def test_depth_that_a_format_cannot_hold_is_unknown_there_and_counted(folder, tmp_path, to, reach):
    depth = np.full((room.HEIGHT, room.WIDTH), int(reach * 100), np.uint16)
    depth[0, :5] = int(reach * 100) + 1
    Image.fromarray(depth).save(folder / "depth/000002.png")
    scene = locus.load_scene(folder, depth_scale=100)[2:3]
    with pytest.warns(UserWarning, match=rf"1 frames have depth beyond the {reach:.1f} m"):
        written = export(scene, tmp_path / "out", to)
    again = locus.load_scene(written)[0].depth
    assert (again[0, :5] == 0).all()
    np.testing.assert_allclose(again[1:], scene[0].depth[1:], rtol=1e-5)


@pytest.mark.parametrize("to", FORMATS)
def test_frames_without_depth_are_written_without(folder, tmp_path, shots, to):
    layouts.edit(folder, lambda content: [frame.pop("depth_file_path") for frame in content["frames"]])
    out = export(locus.load_scene(folder), tmp_path / "out", to)
    assert not [file for file in out.rglob("*") if "depth" in file.name]
    if to == "tum":
        assert np.loadtxt(out / "groundtruth.txt").shape == (8, 8)
    else:
        for frame, shot in zip(locus.load_scene(out), shots, strict=True):
            np.testing.assert_array_equal(frame.image, shot.image)
            np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=1e-12)
    if to == "colmap":
        assert not pycolmap.Reconstruction(out / "sparse" / "0").points3D


@pytest.mark.parametrize("to", FORMATS)
def test_unreadable_frames_are_left_out_and_named(folder, tmp_path, to):
    scene = locus.load_scene(folder)
    (folder / "images/000005.png").unlink()
    (folder / "depth/000006.png").unlink()
    with pytest.warns(UserWarning, match=r"2 frames.*000005"):
        out = export(scene, tmp_path / "out", to)
    again = locus.load_scene(out)
    assert [frame.name for frame in again] == ["000000", "000001", "000002", "000003", "000004", "000007"]
    assert not list(out.rglob("000006*"))
    with pytest.raises(SceneError, match=r"no frame to write.*000005"):
        export(scene[5:7], tmp_path / "none", to)


@pytest.mark.parametrize("to", FORMATS)
def test_an_interrupted_export_leaves_nothing_behind(folder, tmp_path, monkeypatch, to):
    scene = locus.load_scene(folder)
    original, calls = Image.Image.save, []

    def interrupt(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(Image.Image, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(scene, tmp_path / "out", to)
    assert [p.name for p in tmp_path.iterdir()] == ["room"]
    (tmp_path / "taken").mkdir()
    with pytest.raises(LocusError, match="exists already"):
        export(scene, tmp_path / "taken", to)


def test_an_unknown_format_is_refused_with_those_that_are_known(folder, tmp_path):
    with pytest.raises(SceneError, match="cannot be written as obj; known are nerfstudio, colmap, tum, ros2bag"):
        export(locus.load_scene(folder), tmp_path / "out", "obj")


def test_the_native_format_refuses_depth_that_sixteen_bits_cannot_hold(folder, tmp_path):
    scene = locus.load_scene(folder, depth_scale=10)  # up to 400 m
    with pytest.raises(LocusError, match="16-bit"):
        export(scene, tmp_path / "out")


def test_an_empty_slice_cannot_be_inspected_or_written(folder, tmp_path):
    nothing = locus.load_scene(folder)[1:1]
    with pytest.raises(SceneError, match="no frames"):
        inspect(nothing)
    for to in FORMATS:
        with pytest.raises(SceneError, match="no frame"):
            export(nothing, tmp_path / "out", to)
