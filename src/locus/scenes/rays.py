"""Rays against triangles, by Embree: the extra `houses`, which scenes need only for Matterport3D's labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int32

from locus.errors import LocusError, to_install
from locus.opening import admitted, opened
from locus.rows import Rows

LARGEST_MESH = 2**30  # bytes of a file


def mesh_library(what: str) -> Any:
    """The module trimesh; where it or Embree is not installed, a sentence that says what for and how to get it."""
    try:
        import embreex  # noqa: F401
        import trimesh
    except ImportError as error:
        raise LocusError(f"{what} needs {error.name}: {to_install('houses')}, and try again") from None
    return trimesh


def read_meshes(file: Path, read: Callable[..., Sequence[Any]], **options: Any) -> list[Any]:
    """The meshes that one of trimesh's readers finds in a file; those without a face are left out."""
    try:
        with opened(admitted(file), LARGEST_MESH) as stored:
            content = BytesIO(stored.read())  # of which a forged length cannot ask for more than there is
        meshes = [mesh for mesh in read(content, file_type=file.suffix[1:].lower(), **options) if len(mesh.faces)]
        sound = all(mesh.vertices.shape[1:] == (3,) and mesh.faces.min() >= 0 for mesh in meshes)
        if not sound or any(mesh.faces.max() >= len(mesh.vertices) for mesh in meshes):
            raise LocusError(f"{file} is damaged: it has vertices that are not three numbers, or faces of none")
        return meshes
    except LocusError:
        raise
    except Exception as error:  # trimesh's readers raise whatever a broken file makes them trip over
        raise LocusError(f"{file} is not a mesh that can be read ({error})") from None


@dataclass(frozen=True, eq=False)
class Hits(Rows):
    """What each ray meets first. The point is (1-u-v)·a + u·b + v·c of its face."""

    face: Int32[np.ndarray, " n"]
    """-1 where the ray meets nothing."""
    u: Float32[np.ndarray, " n"]
    v: Float32[np.ndarray, " n"]
    distance: Float32[np.ndarray, " n"]


class Tracer:
    """The triangles of one scene, ready for rays. Safe to use from several threads."""

    def __init__(self, vertices: Float32[np.ndarray, "v 3"], faces: Int32[np.ndarray, "f 3"]) -> None:
        mesh_library("tracing rays")
        from embreex.mesh_construction import TriangleMesh  # ty: ignore[import-not-found]  (compiled, untyped)
        from embreex.rtcore_scene import EmbreeScene  # ty: ignore[import-not-found]

        self._scene = EmbreeScene()
        TriangleMesh(self._scene, np.ascontiguousarray(vertices[faces]))
        # The first query builds Embree's tree; it must not happen in two threads at once.
        self.nearest(np.zeros((1, 3), np.float32), np.array([[0, 0, 1]], np.float32))

    def nearest(self, origins: Float[np.ndarray, "n 3"], directions: Float[np.ndarray, "n 3"]) -> Hits:
        """The first face along every ray (directions need not have unit length; distances are in their length)."""
        found = self._scene.run(_for_embree(origins), _for_embree(directions), output=True)
        return Hits(found["primID"], found["u"], found["v"], found["tfar"])

    def blocked(
        self,
        origins: Float[np.ndarray, "n 3"],
        directions: Float[np.ndarray, "n 3"],
        distances: Float[np.ndarray, " n"] | None = None,
    ) -> Bool[np.ndarray, " n"]:
        """Whether anything lies on the ray, up to a distance if one is given."""
        if distances is None:
            distances = np.full(len(origins), 1e30, np.float32)
        reach = _for_embree(distances)
        return self._scene.run(_for_embree(origins), _for_embree(directions), dists=reach, query="OCCLUDED") >= 0


def _for_embree(values: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    return np.ascontiguousarray(values, dtype=np.float32)
