"""What every picture needs: resizing, values as colours, several pictures on one sheet."""

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Float32, Num, UInt8
from numpy import ndarray

Picture = UInt8[ndarray, "_ _ 3"]


def resized(picture: Picture, width: int) -> Picture:
    """The picture at another width, in proportion, but never taller than three times its width."""
    height = min(max(1, round(picture.shape[0] * width / picture.shape[1])), 3 * width)
    shrinks = width < picture.shape[1]
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)


def enlarged(values: Float32[ndarray, "rows columns *k"], size: tuple[int, int]) -> Float32[ndarray, "height width *k"]:
    """Values of patches at every pixel of an image of (width, height).

    A patch's value belongs to its centre; between centres it is blended, without a cubic's dark and bright rims.
    """
    return cv2.resize(values, size, interpolation=cv2.INTER_LINEAR)


def ramp(values: Num[ndarray, "h w"], low: float, high: float) -> Picture:
    """Values as colours, from low (dark blue) to high (yellow)."""
    scaled = np.nan_to_num((values - low) / max(high - low, 1e-9)).clip(0, 1)
    return cv2.applyColorMap((scaled * 255).astype(np.uint8), cv2.COLORMAP_VIRIDIS)[..., ::-1]


def sheet(rows: Sequence[Sequence[Picture]], gap: int = 4) -> Picture:
    """Rows of pictures, one below the other, on white."""
    heights = [max(picture.shape[0] for picture in row) for row in rows]
    width = max(sum(picture.shape[1] + gap for picture in row) for row in rows) - gap
    canvas = np.full((sum(heights) + gap * (len(rows) - 1), width, 3), 255, np.uint8)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        left = 0
        for picture in row:
            canvas[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
            left += picture.shape[1] + gap
        top += height + gap
    return canvas
