"""Other pictures of the same view: a part of it, in other light, with its geometry kept exact."""

from typing import NamedTuple

import cv2
import numpy as np
from jaxtyping import Float, Float32, UInt8
from numpy import ndarray

from locus.geometry import Camera

SMALLEST = 0.55  # of the image's sides, in a crop


class AugmentedView(NamedTuple):
    """A frame's picture, and the geometry that belongs to it."""

    image: UInt8[ndarray, "h w 3"]
    depth: Float32[ndarray, "h w"]
    camera: Camera


def augmented(
    image: UInt8[ndarray, "h w 3"], depth: Float32[ndarray, "h w"], camera: Camera, rng: np.random.Generator
) -> AugmentedView:
    """A random part of a frame at the frame's own size, recoloured; depth and camera to match.

    A crop moves things to other places in the image, and the principal point with them: it breaks the habit of
    pretrained features to tell where in the image they are.
    """
    height, width = depth.shape
    share = rng.uniform(SMALLEST, 1)
    w, h = round(share * width), round(share * height)
    x, y = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
    part = Camera(w, h, camera.fx, camera.fy, camera.cx - x, camera.cy - y).resized(width, height)
    pixels = cv2.resize(image[y : y + h, x : x + w], (width, height), interpolation=cv2.INTER_CUBIC)
    # Nearest: depth between two surfaces is on neither.
    surface = cv2.resize(depth[y : y + h, x : x + w], (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return AugmentedView(recoloured(pixels, rng), surface, part)


def recoloured(image: UInt8[ndarray, "h w 3"], rng: np.random.Generator) -> UInt8[ndarray, "h w 3"]:
    """Another exposure, contrast, white balance and saturation."""
    light: Float[ndarray, "h w 3"] = (image.astype(np.float32) / 255) ** rng.uniform(0.7, 1.4)
    light = light * rng.uniform(0.7, 1.3) * rng.uniform(0.9, 1.1, size=3)
    grey = light.mean(axis=2, keepdims=True)
    light = grey + (light - grey) * rng.uniform(0.3, 1.3)
    middle = light.mean()
    light = middle + (light - middle) * rng.uniform(0.75, 1.25)
    return (light.clip(0, 1) * 255).astype(np.uint8)
