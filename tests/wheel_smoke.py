"""What `make wheel` does with the installed package alone: load a scene, compute features, map it, localize a frame.

Needs no extra, no weights and nothing of this repository: the scene is a room whose depth is known in closed form.
"""

import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

import locus
from locus.geometry import OPENGL_FROM_OPENCV, Camera, pose_error

HALF = np.array([2.0, 1.5, 1.2])  # metres from the middle of the room to its walls
CAMERA = Camera(160, 120, 110.0, 110.0, 80.0, 60.0)


def pose(turn: float) -> np.ndarray:
    """A camera near the middle of the room, level, turned about the vertical axis."""
    forward = np.array([np.cos(turn), np.sin(turn), 0.0])
    right = np.array([np.sin(turn), -np.cos(turn), 0.0])
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = np.stack([right, [0.0, 0.0, -1.0], forward], axis=1)
    world_from_camera[:3, 3] = [0.3 * np.cos(turn), 0.3 * np.sin(turn), 0.1]
    return world_from_camera


def picture(world_from_camera: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Colour and depth: every pixel's ray meets the wall that is first on its way out of the box."""
    rays = CAMERA.unproject(CAMERA.pixel_grid(), np.ones((CAMERA.height, CAMERA.width)))
    directions, eye = rays @ world_from_camera[:3, :3].T, world_from_camera[:3, 3]
    with np.errstate(divide="ignore"):
        depth = np.min((np.sign(directions) * HALF - eye) / directions, axis=-1)
    points = eye + depth[..., None] * directions
    waves = np.random.default_rng(0).normal(scale=4.0, size=(3, 3, 4))
    colour = np.sin(np.einsum("hwa,abc->hwbc", points, waves)).sum(axis=-1) / 4
    return (127 + 120 * colour.clip(-1, 1)).astype(np.uint8), depth


def write(folder: Path) -> None:
    frames = []
    for number, turn in enumerate(np.linspace(0, 2 * np.pi, 24, endpoint=False)):
        world_from_camera = pose(turn)
        colour, depth = picture(world_from_camera)
        files = {"file_path": f"images/{number:03d}.png", "depth_file_path": f"depth/{number:03d}.png"}
        for file, values in zip(files.values(), (colour, (1000 * depth).astype(np.uint16)), strict=True):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values).save(folder / file)
        frames.append(files | {"transform_matrix": (world_from_camera @ OPENGL_FROM_OPENCV).tolist()})
    intrinsics = {"w": CAMERA.width, "h": CAMERA.height, "fl_x": CAMERA.fx, "fl_y": CAMERA.fy, "cx": 80.0, "cy": 60.0}
    (folder / "transforms.json").write_text(json.dumps(intrinsics | {"frames": frames}))


def main() -> None:
    assert Path(locus.__file__).is_relative_to(sys.prefix), "this is not the installed package"
    assert find_spec("trimesh") is None, "this environment has the extra houses"
    assert find_spec("embreex") is None, "this environment has the extra houses"
    with tempfile.TemporaryDirectory() as folder:
        scene_folder = Path(folder) / "room"
        write(scene_folder)
        scene = locus.load_scene(scene_folder)
        model = locus.LoCUS("classic", head="identity", radii=(0.2,))
        features = model.features(scene[0].image)
        world = locus.LandmarkMap.build(model, scene[::2], cache=Path(folder) / "cache")
        query = scene[1]
        found = world.localize(model, query.image, query.camera, query.depth)
    assert found.world_from_camera is not None, found.reason
    metres, degrees = pose_error(found.world_from_camera, query.world_from_camera)
    assert metres < 0.3, metres
    assert degrees < 10, degrees
    print(f"features {tuple(features.shape)}, {len(world)} landmarks, localized to {metres:.2f} m and {degrees:.1f}°")


if __name__ == "__main__":
    main()
