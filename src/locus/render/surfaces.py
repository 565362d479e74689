"""Parts: pieces of surface with one material each; and the one big mesh that a list of labelled things becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Float32, Int32

from locus.render.materials import Material, numbered


@dataclass(frozen=True, eq=False)
class Triangles:
    """Normals point outwards; corners on a sharp edge are not shared."""

    vertices: Float32[np.ndarray, "v 3"]
    normals: Float32[np.ndarray, "v 3"]
    uvs: Float32[np.ndarray, "v 2"]
    """In metres for a material that repeats, from 0 to 1 for one that is fitted (a picture, a screen)."""
    faces: Int32[np.ndarray, "f 3"]


@dataclass(frozen=True, eq=False)
class Surface(Triangles):
    """A piece of surface with one material."""

    material: Material
    tint: Float32[np.ndarray, "v 3"] | None = None
    """Multiplies the texture's colour, per vertex (linear)."""

    def tints(self) -> Float32[np.ndarray, "v 3"]:
        return np.ones_like(self.vertices) if self.tint is None else self.tint

    def moved(self, matrix: Float[np.ndarray, "4 4"]) -> "Surface":
        """The part under a rigid motion (with a uniform scale, if any)."""
        rotation = matrix[:3, :3].astype(np.float32)
        vertices = self.vertices @ rotation.T + matrix[:3, 3].astype(np.float32)
        normals = self.normals @ rotation.T
        return replace(self, vertices=vertices, normals=normals / np.linalg.norm(normals, axis=1, keepdims=True))


def merged(parts: Sequence[Surface]) -> Surface:
    """Parts of one material as one."""
    return Surface(material=parts[0].material, **_stacked(parts))


def _stacked(parts: Sequence[Surface]) -> dict[str, np.ndarray]:
    """The arrays of many parts as those of one."""
    starts = np.cumsum([0] + [len(part.vertices) for part in parts[:-1]])
    faces = [part.faces + np.int32(start) for part, start in zip(parts, starts, strict=True)]
    return {
        "vertices": np.concatenate([part.vertices for part in parts]),
        "normals": np.concatenate([part.normals for part in parts]),
        "uvs": np.concatenate([part.uvs for part in parts]),
        "tint": np.concatenate([part.tints() for part in parts]),
        "faces": np.concatenate(faces),
    }


@dataclass(frozen=True, eq=False)
class Thing:
    """Parts that belong together and are labelled as one: a chair, a floor, a wall."""

    semantic: int
    instance: int
    parts: list[Surface] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Mesh(Triangles):
    """All things of a scene as one triangle mesh with labels per face."""

    tint: Float32[np.ndarray, "v 3"]
    material: Int32[np.ndarray, " f"]
    semantic: Int32[np.ndarray, " f"]
    instance: Int32[np.ndarray, " f"]
    materials: list[Material]


def join(things: Sequence[Thing]) -> Mesh:
    """One mesh of all things; materials are numbered in the order in which they are met."""
    parts = [(thing, part) for thing in things for part in thing.parts]
    materials, number = numbered([part.material for _, part in parts])
    counts = [len(part.faces) for _, part in parts]

    def per_face(values: list[int]) -> Int32[np.ndarray, " f"]:
        return np.repeat(np.array(values, np.int32), counts)

    return Mesh(
        **_stacked([part for _, part in parts]),
        material=per_face(number),
        semantic=per_face([thing.semantic for thing, _ in parts]),
        instance=per_face([thing.instance for thing, _ in parts]),
        materials=materials,
    )
