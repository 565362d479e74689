"""Reading the files scenes are made of. Input is hostile until checked: sizes before pixels, paths before opening."""

import json
import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int32, Num, UInt8
from numpy import ndarray
from PIL import Image, ImageOps

from locus.errors import LocusError, SceneError
from locus.geometry import Camera

# A larger image is taken for a decompression bomb: a few kilobytes of file that fill the memory.
MAX_PIXELS = 100_000_000


@dataclass(frozen=True)
class Packed:
    """An image file inside another file, such as a message of a bag."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name


@contextmanager
def _opened(path: Path | Packed) -> Generator[Image.Image, None, None]:
    """An image file with its header checked; whatever its decoder says becomes a sentence about the file."""
    if isinstance(path, Path) and not path.is_file():
        raise LocusError(f"{path} is missing")
    too_large = f"{path} claims more than {MAX_PIXELS // 10**6} million pixels and is refused; resize it first"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is below
            image = Image.open(BytesIO(path.data) if isinstance(path, Packed) else path)
    except Image.DecompressionBombError:
        raise LocusError(too_large) from None
    except Exception as error:  # Pillow's decoders raise nearly anything on files that are not what they say
        raise LocusError(f"{path} is not an image that can be read ({error})") from None
    with image:
        if image.width * image.height > MAX_PIXELS:
            raise LocusError(too_large)
        try:
            yield image
        except LocusError:
            raise
        except Exception as error:  # likewise, when the pixels are read
            raise LocusError(f"{path} is damaged or cut short ({error})") from None


def image_size(path: Path | Packed) -> tuple[int, int]:
    """(width, height) from the header alone."""
    with _opened(path) as image:
        return image.size


def read_image(path: Path | Packed, upright: bool = False) -> UInt8[ndarray, "h w 3"]:
    """RGB whatever the file holds: grey and palettes are spread, 16 bits become 8, transparency is dropped.

    `upright` turns the image as its EXIF tag says. Scenes leave it as stored: that is what their intrinsics refer to.
    """
    with _opened(path) as stored:
        image = ImageOps.exif_transpose(stored) if upright else stored
        if image.mode == "F":
            raise LocusError(f"{path} holds floating-point numbers of unknown range; save it with 8 or 16 bits")
        if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would clip it
            grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            return np.repeat(grey[..., None], 3, axis=-1)
        if image.mode == "P" and "transparency" in image.info:
            image = image.convert("RGBA")  # Pillow would warn of the transparency that is lost
        return np.asarray(image.convert("RGB"))


def read_depth(path: Path | Packed) -> Num[ndarray, "h w"]:
    """A depth map as stored: a one-channel PNG or TIFF, or an .npy array. 65535 in 16 bits means unknown: 0 here."""
    if isinstance(path, Path) and path.suffix == ".npy":
        return _read_npy(path)
    with _opened(path) as image:
        depth, mode = np.asarray(image), image.mode
    if mode not in ("L", "I", "F") and not mode.startswith("I;16"):
        raise LocusError(f"{path} is of Pillow's mode {mode}; a depth map has one channel of numbers")
    return np.where(depth == 65535, np.uint16(0), depth) if depth.dtype == np.uint16 else depth


def _read_npy(path: Path) -> Num[ndarray, "h w"]:
    if not path.is_file():
        raise LocusError(f"{path} is missing")
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # its header is a Python expression, and may fail like one
        raise LocusError(f"{path} is not an array that can be read ({error})") from None
    if not isinstance(stored, np.ndarray):
        raise LocusError(f"{path} is an archive of arrays, not an array")
    depth = stored[..., 0] if stored.ndim == 3 and stored.shape[2] == 1 else stored
    if depth.ndim != 2 or not depth.size or depth.dtype.kind not in "fiu" or depth.size > MAX_PIXELS:
        raise LocusError(f"{path} holds {stored.dtype} {stored.shape}; a depth map is numbers of shape (h, w)")
    return np.array(depth)


def read_labels(path: Path) -> Int32[ndarray, "h w"]:
    """A label map: one channel of 8- or 16-bit ids."""
    with _opened(path) as image:
        labels = np.asarray(image)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise LocusError(f"{path} is not a label map: it needs one channel of integers")
    return labels.astype(np.int32)


def read_numbers(path: Path) -> Float[ndarray, "rows columns"]:
    """A text file of numbers, a row a line."""
    if not path.is_file():
        raise LocusError(f"{path} is missing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file, which is an error below
            numbers = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise LocusError(f"{path} is not a table of numbers ({error})") from None
    if not numbers.size:
        raise LocusError(f"{path} is empty")
    return numbers


def read_matrix(path: Path, size: int = 4) -> Float[ndarray, "size size"]:
    """The top-left size × size part of the matrix in a text file."""
    numbers = read_numbers(path)
    if numbers.shape[0] < size or numbers.shape[1] < size:
        raise LocusError(f"{path} holds {numbers.shape[0]}×{numbers.shape[1]} numbers, not a {size}×{size} matrix")
    return numbers[:size, :size]


def camera_from_opencv(matrix: Num[ndarray, "3 3"], size: tuple[int, int], file: Path) -> Camera:
    """A camera from a matrix K as most data sets store it, OpenCV's: the top-left pixel's centre is at (0, 0)."""
    width, height = size
    cx, cy = matrix[0, 2] + 0.5, matrix[1, 2] + 0.5
    if cx > width or cy > height:
        raise LocusError(
            f"{file} puts the principal point at ({cx:.0f}, {cy:.0f}), outside the {width}×{height} image; "
            "was the image resized after the calibration?"
        )
    return Camera(width, height, float(matrix[0, 0]), float(matrix[1, 1]), float(cx), float(cy))


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SceneError(f"{path} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SceneError(f"{path} is not readable JSON ({error})") from None


def frame_name(file: str, folder: str) -> str:
    """What a frame is called by the file its scene names: `./images/a/0001.png` in folder `images` is `a/0001`."""
    parts = [part for part in os.path.splitext(file)[0].split("/") if part not in ("", ".", "..")]
    return "/".join(parts[1:] if len(parts) > 1 and parts[0] == folder else parts)


def names_file(value: object) -> bool:
    """Whether a value found in a scene's text could be the name of a file."""
    return isinstance(value, str) and "\0" not in value and os.path.basename(value) not in ("", ".", "..")


def path_inside(root: Path, name: str, allow_outside: bool) -> Path:
    """The file that a scene's own text names, refused where it lies outside the scene's folder.

    A scene may come from a stranger; it must not choose which of the user's other files are opened. Links are followed.
    Plain strings and remembered folders, because a scene can name a hundred thousand files.
    """
    if not allow_outside:
        folder, file = os.path.split(os.path.join(root, name))
        real = os.path.join(_real_folder(folder), file)
        if os.path.islink(real):
            real = os.path.realpath(real)
        if not real.startswith(_real_folder(str(root)) + os.sep):
            raise SceneError(
                f"{name} points outside the scene's folder {root} and is refused; "
                "if you trust this scene, say so with --allow-outside"
            )
    return root / name


@lru_cache(maxsize=4096)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)
