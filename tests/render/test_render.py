"""The renderer against closed forms, and meshes of a user's own."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from locus.cli import main
from locus.errors import LocusError
from locus.geometry import Camera
from locus.render import MeshSettings, render_mesh
from locus.render.baking import bake
from locus.render.camera_view import render_view
from locus.render.lights import Lamp, Lights, Outside, Window
from locus.render.lit_mesh import LitMesh
from locus.render.materials import Material, TextureStore
from locus.render.sensor import photograph, snapshot
from locus.render.surfaces import Surface, Thing, join
from locus.scenes import load_scene

GREY = Material(np.full((4, 4, 3), 188, np.uint8))
NO_ROOMS = np.zeros((0, 4), np.float32)


def plate(z: float, half: float, up: float = 1.0, count: int = 9) -> Surface:
    """A level square, facing up or down."""
    line = np.linspace(-half, half, count)
    x, y = np.meshgrid(line, line)
    vertices = np.stack([x, y, np.full_like(x, z)], -1).reshape(-1, 3).astype(np.float32)
    index = np.arange(count**2).reshape(count, count)
    a, b, c, d = (index[s].ravel() for s in (np.s_[:-1, :-1], np.s_[:-1, 1:], np.s_[1:, 1:], np.s_[1:, :-1]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)
    normals = np.tile(np.array([0, 0, up], np.float32), (len(vertices), 1))
    return Surface(vertices, normals, vertices[:, :2].copy(), faces if up > 0 else faces[:, ::-1].copy(), GREY)


def outside(sky: float = 0.0, sun: float = 0.0) -> Outside:
    return Outside(np.full((8, 16, 3), sky, np.float32), np.array([0, 0, 1], np.float32), np.full(3, sun, np.float32))


def lit(parts: list[Surface], lights: Lights, rooms: np.ndarray = NO_ROOMS) -> tuple[LitMesh, np.ndarray]:
    mesh = join([Thing(1, number, [part]) for number, part in enumerate(parts, 1)])
    kept = {}

    def light(tracer, albedo):
        kept["baked"] = bake(mesh, tracer, lights, albedo, rooms, 0)
        return kept["baked"]

    return LitMesh(mesh, lights, light), kept["baked"]


def test_an_open_plate_under_an_even_sky_has_the_sky_s_light():
    _, baked = lit([plate(0, 1)], Lights(outside(sky=0.7)))
    assert baked.ambient == pytest.approx(0.7, abs=1e-3)


def test_a_lamp_falls_off_with_the_square_of_distance_and_the_cosine():
    lamp = Lamp((0.0, 0.0, 2.0), 0.05, (1.0, 1.0, 1.0))
    _, baked = lit([plate(0, 1, count=41)], Lights(outside(), lamps=[lamp]))
    x = np.linspace(-1, 1, 41)
    squared = x[None] ** 2 + x[:, None] ** 2 + 4
    expected = (2 / np.sqrt(squared) / squared).ravel()
    assert baked.ambient[:, 0] == pytest.approx(expected, rel=0.03)


def test_a_window_lights_by_its_solid_angle():
    """A small window at distance d, seen face on from a surface facing it, adds its area over π d²."""
    window = Window((0.0, 0.0, 3.0), (0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, -1.0), 0, 1, 1)
    room = np.array([[-2, -2, 2, 2]], np.float32)
    _, baked = lit([plate(0, 0.1)], Lights(outside(sky=1.0), windows=[window]), room)
    assert baked.ambient[40, 0] == pytest.approx(0.16 / (np.pi * 9), rel=0.05)


def test_the_sun_is_blocked_by_what_stands_in_it():
    _, baked = lit([plate(0, 1, count=21), plate(1, 0.5)], Lights(outside(sun=5.0)))
    sun = baked.sun[: 21 * 21].reshape(21, 21)
    assert sun[10, 10] == 0
    assert sun[0, 0] == pytest.approx(1)


def test_depth_of_a_plane_is_exact_and_labels_are_its_own():
    stage, _ = lit([plate(0, 5), plate(0.5, 0.3)], Lights(outside(sky=1.0)))
    camera = Camera(64, 48, 50.0, 50.0, 32.0, 24.0)
    pose = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 2.0], [0, 0, 0, 1]])
    seen = render_view(stage, camera, pose, np.random.default_rng(0))
    assert set(np.unique(seen.instance)) == {1, 2}
    assert seen.depth[seen.instance == 1] == pytest.approx(2.0, rel=1e-5)
    assert seen.depth[seen.instance == 2] == pytest.approx(1.5, rel=1e-5)
    half = 0.3 / 1.5 * 50
    x, y = camera.pixel_grid()[..., 0] - 32, camera.pixel_grid()[..., 1] - 24
    assert ((seen.instance == 2) == ((abs(x) < half) & (abs(y) < half))).all()


def test_texture_levels_average_in_linear_light():
    board = np.zeros((8, 8, 3), np.uint8)
    board[::2, ::2] = board[1::2, 1::2] = 255
    store = TextureStore([Material(board)])
    uv = np.full((1, 2), 0.3, np.float32)
    coarse = store.sample(np.zeros(1, np.int32), uv, np.array([3], np.float32))
    assert coarse == pytest.approx(0.5, abs=0.01)
    fine = store.sample(np.zeros(1, np.int32), np.array([[0.5 / 8, 0.5 / 8]], np.float32), np.zeros(1, np.float32))
    assert fine == pytest.approx(0.0, abs=0.01)


def test_photographs_of_brighter_and_darker_rooms_are_alike():
    radiance = np.random.default_rng(0).uniform(0.1, 0.5, (48, 64, 3)).astype(np.float32)
    means = [photograph(radiance * level, np.random.default_rng(1)).mean() for level in (0.1, 1.0, 10.0)]
    assert max(means) / min(means) < 1.8


def test_snapshots_are_blurred_and_further_from_the_right_exposure_than_photographs():
    radiance = np.random.default_rng(0).uniform(0.1, 0.5, (48, 64, 3)).astype(np.float32)
    radiance[:, 32:] *= 2
    taken = {
        take: [take(radiance, np.random.default_rng(seed)).astype(float) for seed in range(40)]
        for take in (photograph, snapshot)
    }
    spread = {take: np.std([image.mean() for image in images]) for take, images in taken.items()}
    assert spread[snapshot] > 1.8 * spread[photograph]
    sharp = {
        take: [np.abs(np.diff(image, axis=1)).mean() / image.mean() for image in images]
        for take, images in taken.items()
    }
    assert np.quantile(sharp[snapshot], 0.25) < 0.8 * np.quantile(sharp[photograph], 0.25)


def test_blur_keeps_a_bright_square_where_it_is():
    """However the hand moves, depth and labels are of the middle of the exposure."""
    radiance = np.full((49, 65, 3), 0.02, np.float32)
    radiance[20:29, 28:37] = 1.0
    for seed in range(12):
        light = snapshot(radiance, np.random.default_rng(seed)).astype(float).sum(axis=2)
        light -= np.median(light)
        rows, columns = np.indices(light.shape)
        light[light < 0.3 * light.max()] = 0
        assert np.average(rows, weights=light) == pytest.approx(24, abs=0.7)
        assert np.average(columns, weights=light) == pytest.approx(32, abs=0.7)


@pytest.fixture
def room_file(tmp_path):
    """A room of 5 × 4 × 2.5 m with a block in it, coloured per vertex, z up."""
    room = trimesh.creation.box((5, 4, 2.5)).subdivide().subdivide().subdivide()
    room.invert()
    block = trimesh.creation.box((0.8, 0.6, 1.0)).apply_translation((1, 0.5, -0.75))
    mesh = trimesh.util.concatenate([room, block])
    colours = np.random.default_rng(0).integers(0, 255, (len(mesh.vertices), 3))
    mesh.visual = trimesh.visual.ColorVisuals(mesh, vertex_colors=colours)
    mesh.export(tmp_path / "room.ply")
    return tmp_path / "room.ply"


@pytest.mark.parametrize("path", ["panorama", "walk"])
def test_a_coloured_scan_becomes_posed_frames_inside_it(room_file, path):
    scene = render_mesh(room_file, MeshSettings(frames=6, size=(64, 48), path=path))
    assert len(scene) == 6
    for frame in scene:
        x, y, z = frame.world_from_camera[:3, 3]
        assert abs(x) < 2.3
        assert abs(y) < 1.8
        assert -1.25 + 1.2 < z < -1.25 + 1.8
        assert (frame.depth > 0).all()
        assert frame.semantic is None
        assert frame.image.std() > 10


def test_a_scan_is_seen_by_hand_held_cameras_too(room_file):
    scene = render_mesh(room_file, MeshSettings(frames=10, size=(64, 48), path="handheld"))
    assert len(scene) == 10
    assert len({frame.camera.fx for frame in scene}) == 10
    for frame in scene:
        x, y, z = frame.world_from_camera[:3, 3]
        assert abs(x) < 2.5
        assert abs(y) < 2.0
        assert -1.25 + 0.5 <= z <= -1.25 + 2.0
        assert (frame.depth > 0).all()


def test_a_textured_glb_with_y_up_shows_its_texture(tmp_path):
    floor = trimesh.creation.box((4, 0.1, 4))
    uv = floor.vertices[:, [0, 2]] / 4 + 0.5
    red = Image.fromarray(np.full((8, 8, 3), (200, 30, 30), np.uint8))
    floor.visual = trimesh.visual.TextureVisuals(uv, image=red)
    wall = trimesh.creation.box((4, 2, 0.1)).apply_translation((0, 1, -2))
    trimesh.Scene([floor, wall]).export(tmp_path / "place.glb")
    scene = render_mesh(tmp_path / "place.glb", MeshSettings(frames=6, size=(64, 48)))
    down = max(scene, key=lambda frame: (frame.depth > 0).sum())
    red_pixels = down.image[down.depth > 0].astype(int)
    assert (red_pixels[:, 0] > red_pixels[:, 1] + 40).mean() > 0.3


def test_bad_meshes_are_told_in_a_sentence(tmp_path):
    (tmp_path / "broken.ply").write_text("ply\nformat ascii 1.0\nnonsense")
    with pytest.raises(LocusError, match=r"not a mesh that can be read|holds no triangles"):
        render_mesh(tmp_path / "broken.ply")
    with pytest.raises(LocusError, match="is missing"):
        render_mesh(tmp_path / "absent.ply")
    trimesh.creation.box((0.1, 0.1, 0.1)).export(tmp_path / "small.ply")
    with pytest.raises(LocusError, match="--metres-per-unit"):
        render_mesh(tmp_path / "small.ply")
    corners = [[0, 0, 0], [3, 0, 0], [3, 0, 3], [0, 0, 3]]
    trimesh.Trimesh(corners, [[0, 1, 2], [0, 2, 3]]).export(tmp_path / "wall.ply")
    with pytest.raises(LocusError, match="no level floor"):
        render_mesh(tmp_path / "wall.ply", MeshSettings(frames=6))


def test_the_command_renders_a_mesh(room_file, tmp_path):
    assert main(["render", str(room_file), str(tmp_path / "out"), "--frames-per-scene", "6", "--size", "64", "48"]) == 0
    assert len(load_scene(tmp_path / "out")) == 6
    assert main(["render", str(tmp_path / "absent.glb"), str(tmp_path / "out2")]) == 2
    assert not (tmp_path / "out2").exists()
