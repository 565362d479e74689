"""A scene's fingerprint changes with whatever its frames hold, and with nothing else."""

import shutil

import numpy as np
import pytest

from locus import load_scene
from locus.scenes import Convention, Scene
from locus.scenes.fingerprint import scene_fingerprint
from tests.landmarks.places import ShotSource
from tests.scenes import layouts, room
from tests.scenes.test_formats import LAYOUTS

FRAMES = 3
LISTS = {"rgb.txt", "depth.txt", "groundtruth.txt", "cameras.txt", "images.txt", "points3D.txt"}
LISTS |= {"color.txt", "aligned_depth.txt", "sensors.yaml", "trans_matrix.yaml"}  # of all frames


def written(layout, root):
    root.mkdir(parents=True)
    getattr(layouts, layout)(root, room.shots(FRAMES))
    return root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_file_of_a_frame_counts(layout, tmp_path):
    """Each file in turn holds what another of its kind holds: another image, depth map, pose, label map."""
    folder = written(layout, tmp_path / layout)
    before = scene_fingerprint(load_scene(folder))
    changed = 0
    unused = {"polycam": ("images", "cameras")}.get(layout, ())  # there are corrected ones
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.parent.name not in unused):
        others = sorted(path for path in file.parent.glob(f"*{''.join(file.suffixes)}") if path != file)
        if file.name in LISTS or not others or others[0].read_bytes() == (own := file.read_bytes()):
            continue
        file.write_bytes(others[0].read_bytes())
        assert scene_fingerprint(load_scene(folder)) != before, file
        file.write_bytes(own)
        changed += 1
    assert changed >= 2 * FRAMES
    assert scene_fingerprint(load_scene(folder)) == before


@pytest.mark.parametrize("layout", ["nerfstudio", "scannet", "colmap"])
def test_the_folder_and_what_else_is_in_it_do_not_count(layout, tmp_path):
    folder = written(layout, tmp_path / layout)
    before = scene_fingerprint(load_scene(folder))
    (folder / "notes.txt").write_text("seen in April")
    (folder / "again").symlink_to(".")
    (folder / ".#lock").symlink_to("nothing")
    assert scene_fingerprint(load_scene(folder)) == before
    shutil.copytree(folder, tmp_path / "elsewhere" / "copy", symlinks=True, copy_function=shutil.copyfile)
    assert scene_fingerprint(load_scene(tmp_path / "elsewhere" / "copy")) == before
    assert scene_fingerprint(load_scene(folder)[::2]) != before


@pytest.mark.parametrize(
    ("layout", "file"), [("sevenscenes_flat", "camera-intrinsics.txt"), ("scannet", "intrinsic/intrinsic_depth.txt")]
)
def test_calibrations_count_also_beside_the_scene(layout, file, tmp_path):
    folder = written(layout, tmp_path / layout)
    calibration = folder / file
    if layout == "sevenscenes_flat":
        calibration = calibration.rename(folder.parent / calibration.name)
    before = scene_fingerprint(load_scene(folder))
    matrix = np.loadtxt(calibration)
    matrix[0, 0] *= 1.01
    layouts.save_matrix(calibration, matrix)
    assert scene_fingerprint(load_scene(folder)) != before


def test_poses_conventions_lenses_and_classes_count(tmp_path):
    folder = written("nerfstudio", tmp_path / "room")
    found = {scene_fingerprint(load_scene(folder))}
    found.add(scene_fingerprint(load_scene(folder, axes="opencv")))
    found.add(scene_fingerprint(load_scene(folder, depth_scale=2000)))
    layouts.edit(folder, lambda content: content["frames"][1]["transform_matrix"][0].__setitem__(3, 0.123))
    found.add(scene_fingerprint(load_scene(folder)))
    layouts.edit(folder, lambda content: content.update(k1=0.1))
    found.add(scene_fingerprint(load_scene(folder)))
    layouts.edit(folder, lambda content: content.update(classes=[{"id": 1, "name": "wall", "kind": "stuff"}]))
    found.add(scene_fingerprint(load_scene(folder)))
    assert len(found) == 6


def test_a_scene_in_memory_is_told_by_its_pixels():
    shots = room.shots(FRAMES)
    scene = Scene("room", "memory", [ShotSource(shot.name, shot) for shot in shots], Convention(depth_scale=1.0))
    before = scene_fingerprint(scene)
    assert scene_fingerprint(scene) == before
    shots[1].depth[10, 10] += 1
    assert scene_fingerprint(scene) != before
