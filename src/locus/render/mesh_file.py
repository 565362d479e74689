"""Reading a user's mesh: GLB, glTF, OBJ or PLY, with textures, vertex colours or plain colours."""

from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np

from locus.errors import LocusError
from locus.opening import LARGEST, admitted
from locus.render.materials import Material
from locus.render.surfaces import Surface
from locus.scenes.rays import mesh_library, read_meshes

LARGEST_TEXTURE = 2048
WHITE = Material(np.full((4, 4, 3), 255, np.uint8))


def load_parts(file: Path, up: Literal["y", "z"], scale: float = 1.0) -> list[Surface]:
    """All surfaces of a mesh file as parts, turned so that z is up."""
    trimesh = mesh_library("reading a mesh")

    def parts_of(*given: Any, **how: Any) -> list[Any]:
        return [part for part in trimesh.load_scene(*given, **how).dump() if isinstance(part, trimesh.Trimesh)]

    meshes = read_meshes(file, parts_of, resolver=_beside(file))
    if not meshes:
        raise LocusError(f"{file} holds no triangles")
    # A half turn about (0, 1, 1) would mirror nothing but swap handedness of the view; a quarter turn about x does it.
    turn = np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]]) if up == "y" else np.eye(4)
    parts = [_part(mesh).moved(turn @ np.diag([scale, scale, scale, 1.0])) for mesh in meshes]
    if not all(np.isfinite(part.vertices).all() for part in parts):
        raise LocusError(f"{file} holds vertices that are not finite")
    return parts


def _beside(file: Path) -> Any:
    """Opens the textures and buffers that a mesh names: those in its folder, and regular files as it is."""
    resolvers = mesh_library("reading a mesh").resolvers

    class Beside(resolvers.FilePathResolver):
        def get(self, name: str) -> bytes:
            admitted(Path(self.parent, name.strip()), LARGEST)
            return super().get(name)

    return Beside(str(file))


def _part(mesh: Any) -> Surface:
    """A `trimesh.Trimesh` as one surface."""
    trimesh, visual = mesh_library("reading a mesh"), mesh.visual
    uvs = np.zeros((len(mesh.vertices), 2), np.float32)
    tint, material = None, WHITE
    if visual.kind == "texture":
        material, colour = _material(visual.material)
        if visual.uv is not None and len(visual.uv) == len(mesh.vertices):
            uvs = np.asarray(visual.uv, np.float32)
        tint = np.tile(colour, (len(mesh.vertices), 1))
    elif visual.kind == "vertex":
        tint = _linear(np.asarray(visual.vertex_colors)[:, :3])
    elif visual.kind == "face":
        # A colour per face needs corners of its own.
        colours = np.repeat(np.asarray(visual.face_colors)[:, :3], 3, axis=0)
        mesh = trimesh.Trimesh(
            mesh.triangles.reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3), process=False
        )
        uvs, tint = np.zeros((len(mesh.vertices), 2), np.float32), _linear(colours)
    normals = np.nan_to_num(np.asarray(mesh.vertex_normals, np.float32))
    normals[np.linalg.norm(normals, axis=1) < 1e-6] = (0, 0, 1)
    faces = np.asarray(mesh.faces, np.int32)
    return Surface(np.asarray(mesh.vertices, np.float32), normals, uvs, faces, material, tint)


def _linear(colours: np.ndarray) -> np.ndarray:
    return (colours.astype(np.float32) / 255) ** np.float32(2.2)


def _material(source: Any) -> tuple[Material, np.ndarray]:
    """The texture, and the linear colour that multiplies it."""

    image = getattr(source, "baseColorTexture", None) or getattr(source, "image", None)
    factor = getattr(source, "baseColorFactor", None)
    if factor is None and image is None:
        factor = getattr(source, "diffuse", None)
    colour = np.ones(3, np.float32) if factor is None else _linear(np.asarray(factor)[:3])
    if image is None:
        return WHITE, colour
    picture = np.asarray(image.convert("RGB"))
    side = 2 ** int(np.clip(np.ceil(np.log2(max(picture.shape[:2]))), 2, np.log2(LARGEST_TEXTURE)))
    return Material(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA)), colour
