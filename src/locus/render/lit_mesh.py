"""A mesh ready to be seen: its triangles, textures, light and rays; and the colour that comes back along any ray."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from locus.render.baking import LIFT, Baked, sun_share, window_met
from locus.render.lights import Lights, basis
from locus.render.materials import TextureStore
from locus.render.ray_arrays import Numbers, Scalars, Vectors
from locus.render.surfaces import Mesh
from locus.scenes.rays import Hits, Tracer

MIRRORS_BELOW = 0.5
"""Roughness under which a surface mirrors its surroundings."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What came back along rays."""

    radiance: Vectors
    ambient: Vectors
    """The part of the radiance that short-range occlusion darkens."""
    gloss: Vectors
    """The part of the radiance that a rough surface mirrors, by one ray each and therefore noisy."""
    hits: Hits
    normal: Vectors
    """Facing the viewer."""
    window: Numbers
    """The window through which a ray left, -1 for none."""


@dataclass(frozen=True, eq=False)
class _Spots:
    """Where rays meet the mesh."""

    face: Numbers
    point: Vectors
    way: Vectors
    """Of the ray."""
    facing: Vectors
    """The smooth normal, turned to the viewer."""
    flat: Vectors
    """The face's own normal, turned to the viewer."""
    albedo: Vectors
    light: Vectors
    """From everywhere but the sun."""


class LitMesh:
    """A mesh with its light. Reading it is safe from several threads."""

    def __init__(
        self, mesh: Mesh, lights: Lights, light: Callable[[Tracer, Float32[np.ndarray, "f 3"]], Baked]
    ) -> None:
        """`light` computes the light at vertices, given the rays and the mean colour of every face."""
        self.mesh, self.lights = mesh, lights
        self.tracer = Tracer(mesh.vertices, mesh.faces)
        self.textures = TextureStore(mesh.materials)
        self._texture = self.textures.texture[mesh.material]
        per_material = np.array(
            [(m.tile, m.roughness, float(m.metal), m.emission) for m in mesh.materials], np.float32
        )[mesh.material]
        self._tile, self._roughness, self._metal, self._emission = np.ascontiguousarray(per_material.T)
        corners = mesh.vertices[mesh.faces]
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = np.linalg.norm(cross, axis=1)
        self._flat_normal = (cross / np.maximum(area, 1e-12)[:, None]).astype(np.float32)
        edges = mesh.uvs[mesh.faces[:, 1:]] - mesh.uvs[mesh.faces[:, :1]]
        uv_area = np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]) / self._tile**2
        side = np.left_shift(1, self.textures.log_size[self._texture]).astype(np.float32)
        self._texels_per_metre = side * np.sqrt(uv_area / np.maximum(area, 1e-12)).astype(np.float32)
        albedo = self.textures.mean[self._texture] * mesh.tint[mesh.faces].mean(axis=1)
        baked = light(self.tracer, albedo * (self._emission == 0)[:, None])
        self._vertex = np.concatenate(
            [mesh.normals, mesh.uvs, mesh.tint, baked.ambient, baked.sun[:, None]], axis=1
        ).astype(np.float32)
        self._near_sun = baked.near_sun[mesh.faces].any(axis=1)

    def look(self, origins: Vectors, directions: Vectors, pixel_angle: float, rng: np.random.Generator) -> Samples:
        """What comes back along primary rays with unit directions: sharp sun, mirrored surroundings and all."""
        hits = self.tracer.nearest(origins, directions)
        met = np.flatnonzero(hits.face >= 0)
        radiance = np.zeros((len(origins), 3), np.float32)
        ambient = np.zeros_like(radiance)
        normal = -directions.copy()
        window = np.full(len(origins), -1, np.int32)
        gone = np.flatnonzero(hits.face < 0)
        if len(gone):
            radiance[gone] = self.lights.outside.radiance(directions[gone])
            window[gone] = window_met(origins[gone], directions[gone], self.lights.windows)
        face, way = hits.face[met], directions[met]
        values = self._interpolate(face, hits.u[met], hits.v[met])
        albedo = self._albedo(face, values, hits.distance[met], way, pixel_angle)
        facing, flat = self._facing(face, values, way)
        normal[met] = facing
        point = origins[met] + hits.distance[met, None] * way + LIFT / 2 * flat
        spots = _Spots(face, point, way, facing, flat, albedo, values[:, 8:11])
        matt = albedo * (1 - self._metal[face])[:, None]
        ambient[met] = matt * spots.light
        direct = matt * self._sunlight(spots)[:, None] * self.lights.outside.sunlight
        direct += albedo * self._emission[face, None]
        mirrored = self._mirrored(spots, pixel_angle, rng)
        gloss = np.zeros_like(radiance)
        gloss[met] = mirrored * (self._roughness[face] > 0.1)[:, None]
        radiance[met] = direct + mirrored
        radiance += ambient
        return Samples(radiance, ambient, gloss, hits, normal, window)

    def _interpolate(self, face: Numbers, u: Scalars, v: Scalars) -> Float32[np.ndarray, "n 12"]:
        """Normal (3), texture coordinates (2), tint (3), ambient light (3) and sun (1) at points of faces."""
        corners = self.mesh.faces[face]
        values = self._vertex[corners[:, 0]] * (1 - u - v)[:, None]
        values += self._vertex[corners[:, 1]] * u[:, None]
        values += self._vertex[corners[:, 2]] * v[:, None]
        return values

    def _albedo(
        self, face: Numbers, values: Float32[np.ndarray, "n 12"], distance: Scalars, way: Vectors, pixel_angle: float
    ) -> Vectors:
        cosine = np.abs((self._flat_normal[face] * way).sum(axis=1))
        # Between the sharp and the safe choice for a pixel that is longer than wide on a slanted surface.
        footprint = distance * np.float32(pixel_angle) / np.sqrt(np.maximum(cosine, 0.05))
        level = np.log2(np.maximum(footprint * self._texels_per_metre[face], 1e-6)) - 0.3
        uv = values[:, 3:5] / self._tile[face, None]
        return self.textures.sample(self._texture[face], uv, level.astype(np.float32)) * values[:, 5:8]

    def _facing(self, face: Numbers, values: Float32[np.ndarray, "n 12"], way: Vectors) -> tuple[Vectors, Vectors]:
        """The smooth and the flat normal, both turned to the viewer."""
        flat = self._flat_normal[face]
        flat = flat * np.where((flat * way).sum(axis=1) > 0, np.float32(-1), np.float32(1))[:, None]
        smooth = values[:, :3] / np.maximum(np.linalg.norm(values[:, :3], axis=1, keepdims=True), 1e-6)
        smooth = smooth * np.where((smooth * flat).sum(axis=1) < 0, np.float32(-1), np.float32(1))[:, None]
        return smooth, flat

    def _sunlight(self, spots: "_Spots") -> Scalars:
        sun = self.lights.outside.sun
        cosine = np.maximum(spots.facing @ sun, 0) * ((spots.flat @ sun > 0) & self._near_sun[spots.face])
        return cosine * sun_share(spots.point, cosine, self.tracer, self.lights)

    def _mirrored(self, spots: "_Spots", pixel_angle: float, rng: np.random.Generator) -> Vectors:
        """Light mirrored by glossy surfaces, by one ray each, spread by their roughness (Schlick's reflectance)."""
        mirrored = np.zeros_like(spots.point)
        chosen = np.flatnonzero(self._roughness[spots.face] < MIRRORS_BELOW)
        if not len(chosen):
            return mirrored
        face, albedo = spots.face[chosen], spots.albedo[chosen]
        normal, way, flat = spots.facing[chosen], spots.way[chosen], spots.flat[chosen]
        roughness = self._roughness[face]
        cosine = np.clip(-(normal * way).sum(axis=1), 0, 1)
        out = way + 2 * cosine[:, None] * normal
        a, b = basis(out)
        radius = (0.6 * roughness**2 * np.sqrt(rng.random(len(chosen), np.float32)))[:, None]
        angle = rng.random(len(chosen), np.float32)[:, None] * np.float32(2 * np.pi)
        out = out + radius * (np.cos(angle) * a + np.sin(angle) * b)
        # A spread ray must not dive into its own surface.
        out = out + np.maximum(0.02 - (out * flat).sum(axis=1), 0)[:, None] * flat
        out = (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)
        metal = self._metal[face, None]
        base = 0.04 * (1 - metal) + albedo * metal
        fresnel = base + (1 - base) * ((1 - cosine) ** 5 * (1 - roughness) ** 2)[:, None]
        strength = fresnel * np.where(metal > 0, 1.0, (1 - roughness[:, None] / MIRRORS_BELOW))
        seen = np.minimum(self._glance(spots.point[chosen], out, pixel_angle), 3.0)
        # One ray cannot stand for the wide cone of brushed metal; the light around fills the rest.
        blurred = metal * np.minimum(2.5 * roughness[:, None], 0.8)
        mirrored[chosen] = strength * (seen * (1 - blurred) + spots.light[chosen] * blurred)
        return mirrored

    def _glance(self, origins: Vectors, directions: Vectors, pixel_angle: float) -> Vectors:
        """What a mirrored ray sees, by baked light alone."""
        hits = self.tracer.nearest(origins, directions)
        radiance = np.zeros_like(origins)
        gone = np.flatnonzero(hits.face < 0)
        radiance[gone] = self.lights.outside.radiance(directions[gone])
        met = np.flatnonzero(hits.face >= 0)
        face = hits.face[met]
        values = self._interpolate(face, hits.u[met], hits.v[met])
        albedo = self._albedo(face, values, hits.distance[met], directions[met], 2 * pixel_angle)
        light = values[:, 8:11] + values[:, 11:] * self.lights.outside.sunlight + self._emission[face, None]
        radiance[met] = albedo * light
        return radiance
