"""Matterport3D's annotations: the .house file, and the segmented mesh seen by a camera."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Int, Int32
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes.rays import Tracer, mesh_library, read_meshes
from locus.scenes.scene import LabelClass, class_kind

UNLABELLED = ("void", "unlabeled", "remove")
LARGEST_INDEX = 1_000_000_000  # of an object or segment; more is a damaged file
REGION = 1_000_000  # segment ids of a house are region · 10⁶ + the segment's id within the region's own mesh


@dataclass(frozen=True)
class HouseLabels:
    """Segment → object → class, as lookups. Objects count from 1; 0 is none, in all of them."""

    classes: tuple[LabelClass, ...]
    segments: Int[ndarray, "s"]
    """Segment ids, sorted."""
    object_of_segment: Int32[ndarray, "s"]
    class_of_object: Int32[ndarray, "o"]

    def objects(self, segment_ids: Int[ndarray, "n"]) -> Int32[ndarray, "n"]:
        if not len(self.segments):
            return np.zeros(len(segment_ids), np.int32)
        place = np.searchsorted(self.segments, segment_ids).clip(max=len(self.segments) - 1)
        return np.where(self.segments[place] == segment_ids, self.object_of_segment[place], np.int32(0))


@lru_cache(maxsize=8)
def read_house(path: Path) -> HouseLabels:
    classes: dict[int, LabelClass] = {}
    class_of_category: dict[int, int] = {}
    class_of_object: dict[int, int] = {}
    object_of_segment: dict[int, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        kind, *fields = line.split() or [""]
        try:
            if kind == "C":
                id, name = int(fields[3]), fields[4].replace("#", " ")
                known = id > 0 and name not in UNLABELLED
                class_of_category[int(fields[0])] = id if known else 0
                if known:
                    classes[id] = LabelClass(id, name, class_kind(name))
            elif kind == "O":
                class_of_object[_index(fields[0]) + 1] = class_of_category.get(int(fields[2]), 0)
            elif kind == "E":
                object_of_segment[_index(fields[2])] = _index(fields[1]) + 1
        except (ValueError, IndexError):
            raise SceneError(f"{path}, line {number}: cannot be read: {line[:60]!r}") from None
    segments = np.array(sorted(object_of_segment), np.int64)
    most = max([0, *class_of_object, *object_of_segment.values()])
    if most > 100 * (len(class_of_object) + 1):
        raise SceneError(f"{path} is damaged: it names an object {most - 1} but lists {len(class_of_object)} objects")
    lookup = np.zeros(most + 1, np.int32)
    lookup[list(class_of_object)] = list(class_of_object.values())
    objects = np.array([object_of_segment[i] for i in segments.tolist()], np.int32)
    return HouseLabels(tuple(classes[i] for i in sorted(classes)), segments, objects, lookup)


def _index(field: str) -> int:
    index = int(field)
    if not 0 <= index < LARGEST_INDEX:
        raise ValueError
    return index


def mesh_files(house_file: Path) -> list[Path]:
    """The segmented mesh of a house, in one file or one for each region."""
    own = house_file.with_suffix(".ply")
    return [own] if own.is_file() else sorted(house_file.parent.parent.glob("region_segmentations/region*.ply"))


class LabelledMesh:
    """The segmented mesh of a house, ready for rays."""

    def __init__(self, house_file: Path) -> None:
        trimesh = mesh_library("reading the labels of Matterport3D")
        house = read_house(house_file)
        own = house_file.with_suffix(".ply")
        meshes, objects = [], []
        for file in mesh_files(house_file):
            found = read_meshes(file, lambda *given, **how: [trimesh.load(*given, **how)], process=False)
            if not found or not isinstance(mesh := found[0], trimesh.Trimesh):
                raise LocusError(f"{file} holds no mesh")
            offset = 0 if file == own else int(file.stem.removeprefix("region")) * REGION
            meshes.append(mesh)
            objects.append(_face_objects(mesh, house, offset, file))
        if not meshes:
            raise LocusError(f"{own} is missing, and there are no region_segmentations/region*.ply in its place")
        mesh: Any = trimesh.util.concatenate(meshes)
        self.tracer = Tracer(mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32))
        # Face -1 is a ray that hits nothing: the extra last entry, object 0.
        self.object_of_face = np.append(np.concatenate(objects), np.int32(0))
        self.class_of_object = house.class_of_object

    def instances(self, camera: Camera, world_from_camera: ndarray) -> Int32[ndarray, "h w"]:
        """The object that each pixel's ray meets first."""
        rays = camera.unproject(camera.pixel_grid(), np.ones((camera.height, camera.width))).reshape(-1, 3)
        directions = rays @ world_from_camera[:3, :3].T
        origins = np.broadcast_to(world_from_camera[:3, 3], directions.shape)
        faces = self.tracer.nearest(origins, directions).face
        return self.object_of_face[faces].reshape(camera.height, camera.width)


def labelled_mesh(house_file: Path) -> LabelledMesh:
    """Kept for the next frame: a house's mesh takes seconds to load, and frames come a house at a time."""
    with _loading:  # frames are read by several threads, and one mesh fills the memory already
        return _labelled_mesh(house_file)


_loading = Lock()
_labelled_mesh = lru_cache(maxsize=1)(LabelledMesh)


def _face_objects(mesh: Any, house: HouseLabels, offset: int, file: Path) -> Int32[ndarray, "f"]:
    """The object of each face. The property is `face_material` in the documentation and `material_id` in the files."""
    properties = mesh.metadata["_ply_raw"]["face"]["data"]
    names = properties if isinstance(properties, dict) else properties.dtype.names  # text files, binary files
    for name in ("face_material", "material_id"):
        if name in names:
            return house.objects(np.asarray(properties[name]).reshape(-1).astype(np.int64) + offset)
    raise LocusError(f"{file} has no face_material (material_id) property, so its faces cannot be labelled")
