"""One view of a lit mesh: colour with smoothed edges, and depth and labels that are never smoothed."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, Float, Float32, Int32

from locus.geometry import Camera
from locus.render.baking import LIFT
from locus.render.lights import basis
from locus.render.lit_mesh import LitMesh, Samples
from locus.render.ray_arrays import Numbers, Scalars, Vectors

# Offsets from a pixel's centre at which an edge pixel is sampled again: an even spread with the centre itself.
EDGE_OFFSETS = ((-0.36, -0.2), (0.36, -0.2), (0.0, 0.42))
OCCLUSION_REACHES = (0.1, 0.35, 0.18, 0.25)
"""Metres that each of a pixel's occlusion rays looks; different, so that shadows fade."""


@dataclass(frozen=True, eq=False)
class SeenSurfaces:
    """Which surfaces a camera sees, and how far away."""

    depth: Float32[np.ndarray, "h w"]
    """z in metres; 0 through a window and where there is nothing."""
    semantic: Int32[np.ndarray, "h w"]
    instance: Int32[np.ndarray, "h w"]


@dataclass(frozen=True, eq=False)
class RenderedView(SeenSurfaces):
    """What a perfect camera sees."""

    radiance: Float32[np.ndarray, "h w 3"]


def render_view(
    lit: LitMesh, camera: Camera, world_from_camera: Float[np.ndarray, "4 4"], rng: np.random.Generator
) -> RenderedView:
    """Look at a lit mesh from a pose (OpenCV axes)."""
    pixels = camera.pixel_grid().reshape(-1, 2)
    origin = world_from_camera[:3, 3].astype(np.float32)
    angle = 1 / camera.fx
    directions, length = rays(camera, world_from_camera, pixels)
    origins = np.ascontiguousarray(np.broadcast_to(origin, directions.shape))
    samples = lit.look(origins, directions, angle, rng)
    shape = (camera.height, camera.width)
    depth, semantic, instance = _labels(lit, samples, length)
    openness = _openness(lit, samples, origins, directions, rng)
    smooth = _smoothed(np.concatenate([openness[:, None], samples.gloss], axis=1), samples, shape)
    open_share = 0.3 + 0.7 * smooth[:, 0]
    radiance = samples.radiance - samples.ambient * (1 - open_share)[:, None] + smooth[:, 1:] - samples.gloss
    edge = np.flatnonzero(_edges(samples, depth, instance, shape))
    if len(edge):
        again = np.concatenate([pixels[edge] + offset for offset in EDGE_OFFSETS])
        ways, _ = rays(camera, world_from_camera, again)
        more = lit.look(np.ascontiguousarray(np.broadcast_to(origin, ways.shape)), ways, angle, rng)
        shade = np.tile(1 - open_share[edge], len(EDGE_OFFSETS))[:, None]
        # A very bright sample must not outshine the rest of its pixel, or edges of windows stay jagged.
        extra = np.minimum(more.radiance - more.ambient * shade, 8.0).reshape(len(EDGE_OFFSETS), -1, 3)
        radiance[edge] = (np.minimum(radiance[edge], 8.0) + extra.sum(axis=0)) / (len(EDGE_OFFSETS) + 1)
    return RenderedView(
        depth.reshape(shape), semantic.reshape(shape), instance.reshape(shape), radiance.reshape(*shape, 3)
    )


def rays(
    camera: Camera, world_from_camera: Float[np.ndarray, "4 4"], pixels: Float[np.ndarray, "n 2"]
) -> tuple[Vectors, Scalars]:
    """Unit directions in the world, and the length that a direction with z = 1 has before it is made a unit."""
    x = ((pixels[:, 0] - camera.cx) / camera.fx).astype(np.float32)
    y = ((pixels[:, 1] - camera.cy) / camera.fy).astype(np.float32)
    length = np.sqrt(x * x + y * y + 1)
    # The matrix is applied column by column: three products of long rows beat a matrix product of short ones.
    columns = [x * row[0] + y * row[1] + row[2] for row in world_from_camera[:3, :3].astype(np.float32)]
    return np.stack(columns, axis=1) / length[:, None], length


def _labels(lit: LitMesh, samples: Samples, length: Scalars) -> tuple[Scalars, Numbers, Numbers]:
    face = samples.hits.face
    hit = face >= 0
    depth = np.where(hit, samples.hits.distance / length, np.float32(0))
    semantic = np.where(hit, lit.mesh.semantic[face], np.int32(0))
    instance = np.where(hit, lit.mesh.instance[face], np.int32(0))
    windows = lit.lights.windows
    if windows:
        glass = samples.window
        semantic = np.where(glass >= 0, np.array([w.semantic for w in windows], np.int32)[glass], semantic)
        instance = np.where(glass >= 0, np.array([w.instance for w in windows], np.int32)[glass], instance)
    return depth, semantic, instance


def _openness(
    lit: LitMesh, samples: Samples, origins: Vectors, directions: Vectors, rng: np.random.Generator
) -> Scalars:
    """How open the close surroundings of each point are, from 0 to 1, by a few rays: the contact shadows that the
    light baked at vertices is too coarse for."""
    met = np.flatnonzero(samples.hits.face >= 0)
    normal = samples.normal[met]
    point = origins[met] + samples.hits.distance[met, None] * directions[met] + LIFT * normal
    a, b = basis(normal)
    count = np.zeros(len(met), np.float32)
    turn = rng.random(len(met), np.float32) * np.float32(2 * np.pi)
    cosine, sine = np.cos(turn), np.sin(turn)
    for k, share in enumerate(OCCLUSION_REACHES):
        radius = np.float32(np.sqrt((k + 0.5) / len(OCCLUSION_REACHES)))
        x0, y0 = radius * np.cos(2.399963 * k), radius * np.sin(2.399963 * k)
        x, y = (x0 * cosine - y0 * sine)[:, None], (x0 * sine + y0 * cosine)[:, None]
        ways = x * a + y * b + np.float32(np.sqrt(1 - radius**2)) * normal
        count += ~lit.tracer.blocked(point, ways, np.full(len(met), share, np.float32))
    openness = np.ones(len(origins), np.float32)
    openness[met] = count / len(OCCLUSION_REACHES)
    return openness


def _smoothed(
    values: Float32[np.ndarray, "n k"], samples: Samples, shape: tuple[int, int]
) -> Float32[np.ndarray, "n k"]:
    """Averaged with neighbouring pixels on the same smooth surface."""
    height, width = shape
    image = values.reshape(*shape, -1)
    total, weight = image.copy(), np.ones(shape, np.float32)
    # Pixels are alike if their normals round to the same and their distances are close.
    turned = np.rint(samples.normal * 3).astype(np.int32) @ np.array([1, 8, 64], np.int32)
    turned = turned.reshape(shape)
    far = np.log(np.maximum(samples.hits.distance, 1e-3)).reshape(shape)
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1), (2, 0), (0, 2), (2, 2), (2, -2)):
        # A pair of pixels is alike both ways, so that one test serves two.
        here = np.s_[max(-dy, 0) : height - max(dy, 0), max(-dx, 0) : width - max(dx, 0)]
        there = np.s_[max(dy, 0) : height - max(-dy, 0), max(dx, 0) : width - max(-dx, 0)]
        alike = (turned[here] == turned[there]) & (np.abs(far[here] - far[there]) < 0.03)
        share = alike.astype(np.float32)
        weight[here] += share
        weight[there] += share
        share = share[..., None]
        total[here] += image[there] * share
        total[there] += image[here] * share
    return (total / weight[..., None]).reshape(values.shape)


def _edges(samples: Samples, depth: Scalars, instance: Numbers, shape: tuple[int, int]) -> Bool[np.ndarray, " n"]:
    """Pixels next to another thing, another depth or a crease."""
    label = instance.reshape(shape)
    # On a plane the inverse depth is linear in the image, so that its second difference is zero.
    inverse = (1 / np.maximum(depth, 0.05)).reshape(shape)
    bend = np.abs(cv2.Laplacian(inverse, cv2.CV_32F)) > 0.02 * inverse
    normals = samples.normal.reshape(*shape, 3)
    edge = bend
    for axis in (0, 1):
        ahead = np.roll(label, -1, axis) != label
        ahead |= (normals * np.roll(normals, -1, axis)).sum(axis=2) < 0.85
        edge |= ahead | np.roll(ahead, 1, axis)
    return edge.ravel()
