"""The solids that furniture is made of. Each returns a `Surface` with outward normals and texture coordinates in metres
(from 0 to 1 where a function says fitted)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32

from locus.houses.patterns import Colour
from locus.render.materials import Material
from locus.render.surfaces import Surface, merged

Vector = tuple[float | int, float | int, float | int] | Float[np.ndarray, " 3"]


@lru_cache(maxsize=512)
def _faces_of_grid(rows: int, columns: int) -> np.ndarray:
    index = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]
    return np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])


def linear(colour: Colour | None, count: int) -> Float32[np.ndarray, "v 3"] | None:
    """An sRGB colour as a tint for every vertex."""
    return None if colour is None else np.tile(np.array(colour, np.float32) ** np.float32(2.2), (count, 1))


def corners(x: float, y: float) -> list[tuple[float, float]]:
    """The corners of a rectangle around the origin, from half of its sides."""
    return [(a, b) for a in (-x, x) for b in (-y, y)]


SMALL = 0.15
"""A box no longer than this has sharp edges: nobody would see that they are round."""


def box(
    size: Vector,
    centre: Vector,
    material: Material,
    bevel: float = 0.008,
    step: float = 0.35,
    tint: Colour | None = None,
    bulge: float = 0.0,
) -> Surface:
    """A box with rounded edges, divided finely enough to carry light. `bulge` swells its faces, as in a cushion.
    The grain of its material runs along its longest side."""
    half = np.array(size, float) / 2
    bevel = 0.0 if max(size) < SMALL and bevel <= 0.012 else min(bevel, float(half.min()) * 0.98)
    inner = half - bevel
    counts = np.maximum(1, np.ceil(2 * inner / step)).astype(int)
    form = _box_form(int(counts[0]), int(counts[1]), int(counts[2]), bevel > 0)
    local = form.inner * inner + bevel * form.normals
    normals = form.normals
    if bulge:
        place, across = local / half, form.axis[:, None] != np.arange(3)
        swell = np.prod(np.where(across, 1 - np.clip(place, -1, 1) ** 2, 1), axis=1, keepdims=True)
        local = local + bulge * half.min() * swell * form.inner * ~across
        normals = normals + 0.6 * bulge * place * across
        normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    u, v = _grain_axes(int(np.argmax(half)))
    rows = np.arange(len(local))
    uvs = np.stack([local[rows, u[form.axis]], local[rows, v[form.axis]]], axis=1)
    # Boards of one piece of furniture must not all show the same knot.
    x, y, z = centre
    uvs += (1.7 * x + 0.9 * z, 1.7 * y + 2.3 * z)
    return _surface(local + np.array(centre), normals, uvs, form.faces, material, tint)


def _surface(
    points: np.ndarray,
    normals: np.ndarray,
    uvs: np.ndarray,
    faces: np.ndarray,
    material: Material,
    tint: Colour | None = None,
) -> Surface:
    """A surface through a list or a grid of points."""
    vertices = points.reshape(-1, 3).astype(np.float32)
    normals, uvs = normals.reshape(-1, 3).astype(np.float32), uvs.reshape(-1, 2).astype(np.float32)
    return Surface(vertices, normals, uvs, faces, material, linear(tint, len(vertices)))


def _grain_axes(grain: int) -> tuple[np.ndarray, np.ndarray]:
    """For the faces across x, y and z: the axes along which the texture's u and v run. u follows the grain; on the
    ends of a board v is upright."""
    u, v = [], []
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        first = grain if grain in others else others[0]
        u.append(first)
        v.append(others[0] if first == others[1] else others[1])
    return np.array(u), np.array(v)


class _BoxForm(NamedTuple):
    """What all boxes with the same division share: each vertex is `inner` times the box's half size without its
    bevel, plus the bevel along the normal. `axis` is the one across which its face lies."""

    inner: np.ndarray
    normals: np.ndarray
    axis: np.ndarray
    faces: np.ndarray


@lru_cache(maxsize=512)
def _box_form(nx: int, ny: int, nz: int, bevelled: bool) -> _BoxForm:
    counts = (nx, ny, nz)
    inner, normals, axes, faces, start = [], [], [], [], 0
    for axis in range(3):
        lines = [np.linspace(-1, 1, counts[(axis + k) % 3] + 1) for k in (1, 2)]
        lean = [np.zeros(len(line)) for line in lines]
        if bevelled:
            lines = [np.pad(line, 1, mode="edge") for line in lines]
            lean = [np.pad(flat, 1, constant_values=(-1, 1)) for flat in lean]
        for sign in (-1, 1):
            place, normal = (_on_face(axis, sign, *along) for along in (lines, lean))
            inner.append(place)
            normals.append(normal / np.linalg.norm(normal, axis=1, keepdims=True))
            axes.append(np.full(len(place), axis))
            face = _faces_of_grid(len(lines[1]), len(lines[0]))
            faces.append((face if sign > 0 else face[:, ::-1]) + np.int32(start))
            start += len(place)
    return _BoxForm(*(np.concatenate(arrays) for arrays in (inner, normals, axes, faces)))


def _on_face(axis: int, sign: int, u: np.ndarray, v: np.ndarray) -> Float[np.ndarray, "n 3"]:
    """A grid of vectors with `sign` along one axis, and u and v along the two that follow it."""
    across, up = np.meshgrid(u, v)
    return np.roll(np.stack([np.full(across.size, sign), across.ravel(), up.ravel()], axis=1), axis, axis=1)


def cushion(size: Vector, centre: Vector, material: Material, bulge: float = 0.35) -> Surface:
    """A soft box."""
    return box(size, centre, material, bevel=min(size) * 0.42, step=max(min(size), 0.1) * 0.6, bulge=bulge)


def lathe(
    profile: list[tuple[float | int, float | int]],
    material: Material,
    centre: Vector = (0, 0, 0),
    segments: int = 20,
    tint: Colour | None = None,
    smooth: bool = True,
) -> Surface:
    """A profile of (radius, height), from the bottom up along the outside, turned around the vertical axis."""
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    whole = np.array(profile, float)
    arc = _arc_length(whole)

    def around(line: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n s 3"]:
        radius, height = line[:, :1], np.repeat(line[:, 1:], len(angle), 1)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], -1)

    pieces = []
    for piece in [slice(None)] if smooth else [slice(k, k + 2) for k in range(len(whole) - 1)]:
        line = whole[piece]
        tangent = np.gradient(line, axis=0)
        outward = np.stack([tangent[:, 1], -tangent[:, 0]], axis=1)
        outward /= np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-9)
        uvs = np.stack(np.meshgrid(angle * max(float(line[:, 0].max()), 0.01), arc[piece]), -1)
        faces = _faces_of_grid(len(line), len(angle))
        pieces.append(_surface(around(line) + np.array(centre), around(outward), uvs, faces, material, tint))
    return merged(pieces)


def _arc_length(path: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    return np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])


def cylinder(
    radius: float,
    height: float,
    foot: Vector,
    material: Material,
    segments: int = 20,
    tint: Colour | None = None,
    top_radius: float | None = None,
) -> Surface:
    """A closed cylinder or cone standing on `foot`."""
    top = radius if top_radius is None else top_radius
    profile = [(0.0, 0.0), (radius, 0.0), (top, height), (0.0, height)]
    return lathe(profile, material, foot, segments, tint, smooth=False)


def ball(radius: float, centre: Vector, material: Material, tint: Colour | None = None, squash: float = 1.0) -> Surface:
    turn = np.linspace(-np.pi / 2, np.pi / 2, 11)
    profile = [(float(radius * np.cos(t)), float(radius * squash * np.sin(t))) for t in turn]
    return lathe(profile, material, centre, 16, tint)


def tube(path: Float[np.ndarray, "n 3"], radius: float, material: Material, segments: int = 8) -> Surface:
    """A round bar along a path."""
    tangent = np.gradient(path, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    helper = np.where(np.abs(tangent[:, 2:]) > 0.9, np.array([[1.0, 0, 0]]), np.array([[0, 0, 1.0]]))
    a = np.cross(helper, tangent)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = np.cross(tangent, a)
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    outward = np.cos(angle)[None, :, None] * a[:, None] + np.sin(angle)[None, :, None] * b[:, None]
    around, along = np.meshgrid(angle * radius, _arc_length(path))
    faces = _faces_of_grid(len(path), len(angle))
    return _surface(path[:, None] + radius * outward, outward, np.stack([along, around], -1), faces, material)


def rod(start: Vector, end: Vector, radius: float, material: Material) -> Surface:
    return tube(np.linspace(start, end, 3), radius, material)


def sheet(points: Float[np.ndarray, "r c 3"], material: Material, fitted: bool = False) -> Surface:
    """A surface through a grid of points: columns go right and rows go up when seen from its front."""
    rows, columns = points.shape[:2]
    right, up = np.gradient(points, axis=1), np.gradient(points, axis=0)
    normal = np.cross(right, up)
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-12)
    if fitted:
        v, u = np.mgrid[0 : 1 : rows * 1j, 0 : 1 : columns * 1j]
    else:
        across = np.linalg.norm(np.diff(points, axis=1), axis=-1)
        upward = np.linalg.norm(np.diff(points, axis=0), axis=-1)
        u = np.concatenate([np.zeros((rows, 1)), np.cumsum(across, axis=1)], axis=1)
        v = np.concatenate([np.zeros((1, columns)), np.cumsum(upward, axis=0)], axis=0)
    return _surface(points, normal, np.stack([u, v], -1), _faces_of_grid(rows, columns), material)


def panel(
    corner: Vector, right: Vector, up: Vector, material: Material, fitted: bool = False, step: float = 0.3
) -> Surface:
    """A flat rectangle from its lower left corner; its front is where `right` × `up` points."""
    columns = max(1, int(np.ceil(np.linalg.norm(right) / step))) + 1
    rows = max(1, int(np.ceil(np.linalg.norm(up) / step))) + 1
    v, u = np.mgrid[0 : 1 : rows * 1j, 0 : 1 : columns * 1j]
    points = np.array(corner) + u[..., None] * np.array(right) + v[..., None] * np.array(up)
    return sheet(points, material, fitted)
