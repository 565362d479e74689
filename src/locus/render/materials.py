"""Materials, and the store of their textures: all textures with all their mip levels in one array, sampled at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

from locus.render.ray_arrays import Numbers, Scalars, Vectors

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Material:
    """What a surface looks like."""

    texture: UInt8[np.ndarray, "s s 3"]
    """sRGB; square, its side a power of two."""
    tile: float = 1.0
    """Texture coordinates per repeat: metres for a material that repeats, 1 for one that is fitted."""
    roughness: float = 0.9
    """0 is a mirror; from 0.5 on nothing is mirrored at all."""
    metal: bool = False
    """Mirrors in its own colour and has no colour of its own besides."""
    emission: float = 0.0
    """Radiance sent out, times the texture."""
    thin: bool = False
    """A leaf or a cloth: lit from both sides."""


def numbered(objects: Sequence[Value]) -> tuple[list[Value], list[int]]:
    """Distinct objects in the order in which they are met, and the number among them of each of the given ones."""
    distinct = {id(each): each for each in objects}
    number = {key: index for index, key in enumerate(distinct)}
    return list(distinct.values()), [number[id(each)] for each in objects]


class TextureStore:
    """All textures of a scene. Texels are kept as RGBA bytes, the square root of linear colour, so that one gather
    fetches a texel and squaring decodes it."""

    def __init__(self, materials: Sequence[Material]) -> None:
        textures, number = numbered([material.texture for material in materials])
        self.texture = np.array(number, np.int32)
        levels: list[UInt8[np.ndarray, "texels 4"]] = []
        self.first_texel = np.zeros((len(textures), 13), np.int64)
        self.log_size = np.zeros(len(textures), np.int32)
        self.mean = np.zeros((len(textures), 3), np.float32)
        total = 0
        for index, texture in enumerate(textures):
            linear = (texture.astype(np.float32) / 255) ** 2.2
            self.log_size[index] = size_exponent = int(texture.shape[0]).bit_length() - 1
            self.mean[index] = linear.mean(axis=(0, 1))
            for level in range(size_exponent + 1):
                self.first_texel[index, level] = total
                texels = np.zeros((linear.shape[0] * linear.shape[1], 4), np.uint8)
                texels[:, :3] = np.sqrt(linear).reshape(-1, 3) * 255 + 0.5
                levels.append(texels)
                total += len(texels)
                if level < size_exponent:
                    half = linear.shape[0] // 2
                    linear = cv2.resize(linear, (half, half), interpolation=cv2.INTER_AREA).reshape(half, half, 3)
        self._texels = np.concatenate(levels).view(np.uint32)[:, 0]

    def sample(self, texture: Numbers, uv: Float32[np.ndarray, "n 2"], level: Scalars) -> Vectors:
        """Linear colour at coordinates that repeat every 1, blended between two mip levels."""
        exponent = self.log_size[texture]
        level = np.clip(level, 0, exponent.astype(np.float32))
        lower = np.minimum(level.astype(np.int32), np.maximum(exponent - 1, 0))
        share = (level - lower.astype(np.float32))[:, None]
        fine = self._bilinear(texture, uv, lower, exponent)
        coarse = self._bilinear(texture, uv, np.minimum(lower + 1, exponent), exponent)
        return fine + share * (coarse - fine)

    def _bilinear(self, texture: Numbers, uv: Float32[np.ndarray, "n 2"], level: Numbers, exponent: Numbers) -> Vectors:
        side_exponent = exponent - level
        side = np.left_shift(np.int32(1), side_exponent)
        first = self.first_texel[texture, level]
        position = uv * side[:, None].astype(np.float32) - np.float32(0.5)
        corner = np.floor(position)
        share = position - corner
        corner = corner.astype(np.int32)
        mask = side - 1
        x0, x1 = corner[:, 0] & mask, (corner[:, 0] + 1) & mask
        # Row 0 of a picture is its top, v points up.
        y0, y1 = mask - (corner[:, 1] & mask), mask - ((corner[:, 1] + 1) & mask)
        row0, row1 = first + np.left_shift(y0, side_exponent), first + np.left_shift(y1, side_exponent)

        def texel(index: np.ndarray) -> np.ndarray:
            return self._texels[index].view(np.uint8).reshape(-1, 4)[:, :3].astype(np.float32)

        across, up = share[:, :1], share[:, 1:]
        low = texel(row0 + x0)
        low += across * (texel(row0 + x1) - low)
        high = texel(row1 + x0)
        high += across * (texel(row1 + x1) - high)
        low += up * (high - low)
        low *= np.float32(1 / 255)
        return low * low
