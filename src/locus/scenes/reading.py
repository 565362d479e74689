"""Reading the files scenes are made of. Input is hostile until checked: sizes before pixels, paths before opening."""

import os
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int32, Num, UInt8
from numpy import ndarray
from PIL import Image, ImageOps, UnidentifiedImageError

from locus.errors import LocusError, SceneError, to_install
from locus.geometry import Camera
from locus.opening import admitted, read_text

# A larger image is taken for a decompression bomb: a few kilobytes of file that fill the memory.
MAX_PIXELS = 100_000_000
LARGEST_IMAGE = 2**30  # bytes of a file; some decoders read all of it before they look
HEIC = frozenset((".heic", ".heif", ".hif"))  # as iPhones write them
AnyImage = UInt8[ndarray, "height width 3"] | Image.Image | str | PathLike[str]


@dataclass(frozen=True)
class Piece:
    """A file that lies inside another one: its bytes, and what messages call it."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name


@contextmanager
def _opened(path: Path | Piece) -> Generator[Image.Image, None, None]:
    """An image file with its header checked; whatever its decoder says becomes a sentence about the file."""
    if isinstance(path, Path) and path.suffix.lower() in HEIC and not _heic_is_read():
        raise LocusError(f"{path} needs pillow-heif: {to_install('capture')}")
    too_large = f"{path} claims more than {MAX_PIXELS // 10**6} million pixels and is refused; resize it first"
    stored = admitted(path, LARGEST_IMAGE) if isinstance(path, Path) else BytesIO(path.data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is below
            image = Image.open(stored)
    except Image.DecompressionBombError:
        raise LocusError(too_large) from None
    except UnidentifiedImageError:
        raise LocusError(f"{path} is not an image that can be read") from None
    except Exception as error:  # Pillow's decoders raise nearly anything on files that are not what they say
        raise LocusError(f"{path} is not an image that can be read ({error})") from None
    with image:
        if image.width * image.height > MAX_PIXELS:
            raise LocusError(too_large)
        if image.width < 1 or image.height < 1:
            raise LocusError(f"{path} is an image without pixels")
        if image.format == "EPS":
            raise LocusError(f"{path} is a program in PostScript, which is not run; save it as PNG")
        try:
            yield image
        except LocusError:
            raise
        except Exception as error:  # likewise, when the pixels are read
            raise LocusError(f"{path} is damaged or cut short ({error})") from None


def image_size(path: Path | Piece) -> tuple[int, int]:
    """(width, height) from the header alone."""
    with _opened(path) as image:
        return image.size


def read_image(path: Path | Piece, upright: bool = False) -> UInt8[ndarray, "h w 3"]:
    """RGB whatever the file holds: grey and palettes are spread, 16 bits become 8, transparency is dropped.

    `upright` turns the image as its EXIF tag says. Scenes leave it as stored: that is what their intrinsics refer to.
    """
    with _opened(path) as stored:
        return _rgb(ImageOps.exif_transpose(stored) if upright else stored, str(path))


def _rgb(image: Image.Image, name: str) -> UInt8[ndarray, "h w 3"]:
    if image.mode == "F":
        raise LocusError(f"{name} holds floating-point numbers of unknown range; save it with 8 or 16 bits")
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would clip it
        grey = (np.asarray(image) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=-1)
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # Pillow would warn of the transparency that is lost
    return np.asarray(image.convert("RGB"))


def as_array(image: Any) -> UInt8[ndarray, "h w 3"]:
    """RGB of an image as people have it: an array, a PIL image, or a file; both of the latter upright."""
    if isinstance(image, str | PathLike):
        return read_image(Path(image), upright=True)
    if isinstance(image, Image.Image):
        return _rgb(ImageOps.exif_transpose(image), "the image")
    if isinstance(image, ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
        return image
    shape = getattr(image, "shape", None)
    what = type(image).__name__ if shape is None else f"{image.dtype} {tuple(shape)}"
    raise LocusError(f"an image is an array of RGB bytes (height, width, 3), a PIL image or a file, not {what}")


@cache
def _heic_is_read() -> bool:
    """Whether Pillow can; it learns it here."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def read_depth(path: Path | Piece) -> Num[ndarray, "h w"]:
    """A depth map as stored: a one-channel PNG or TIFF, .npy or .exr. 65535 in 16 bits means unknown: 0 here."""
    if isinstance(path, Path) and path.suffix in READ_BY:
        return READ_BY[path.suffix](path)
    with _opened(path) as image:
        depth, mode = np.asarray(image), image.mode
    if mode not in ("L", "I", "F") and not mode.startswith("I;16"):
        raise LocusError(f"{path} is of Pillow's mode {mode}; a depth map has one channel of numbers")
    return np.where(depth == 65535, np.uint16(0), depth) if depth.dtype == np.uint16 else depth


def _read_npy(path: Path) -> Num[ndarray, "h w"]:
    try:
        stored = np.load(admitted(path), mmap_mode="r", allow_pickle=False)
    except LocusError:
        raise
    except Exception:  # its header is a Python expression and may fail like one; numpy would advise to unpickle
        raise LocusError(f"{path} is not a whole array of numbers; save it again with numpy.save") from None
    if not isinstance(stored, np.ndarray):
        raise LocusError(f"{path} is an archive of arrays, not an array")
    depth = stored[..., 0] if stored.ndim == 3 and stored.shape[2] == 1 else stored
    if depth.ndim != 2 or not depth.size or depth.dtype.kind not in "fiu" or depth.size > MAX_PIXELS:
        raise LocusError(f"{path} holds {stored.dtype} {stored.shape}; a depth map is numbers of shape (h, w)")
    return np.array(depth)


def _read_exr(path: Path) -> Num[ndarray, "h w"]:
    try:
        import OpenEXR  # ty: ignore[import-not-found]  (compiled, untyped)
    except ImportError:
        raise LocusError(f"{path} needs OpenEXR: {to_install('capture')}") from None
    try:
        header = OpenEXR.File(str(admitted(path)), header_only=True).header()
        low, high = np.array(header["dataWindow"], dtype=np.int64)
        if np.prod(high - low + 1) * len(header["channels"]) > MAX_PIXELS:
            raise LocusError(f"{path} claims more than {MAX_PIXELS // 10**6} million numbers and is refused")
        channels = OpenEXR.File(str(path), separate_channels=True).channels()
    except LocusError:
        raise
    except Exception as error:  # its C++ side raises whatever it meets
        raise LocusError(f"{path} is not an EXR image that can be read ({error})") from None
    name = next((name for name in ("Z", "R", "Y") if name in channels), min(channels, default=None))
    depth = None if name is None else channels[name].pixels
    if depth is None or depth.ndim != 2:
        raise LocusError(f"{path} has no channel of numbers at every pixel; a depth map has one")
    return np.array(depth)


READ_BY = {".npy": _read_npy, ".exr": _read_exr}


def with_confidence(
    depth: Num[ndarray, "h w"], confidence: Num[ndarray, "a b"], file: Path | Piece
) -> Num[ndarray, "h w"]:
    """A phone's depth without what its sensor calls of low confidence: 0 of 0, 1 and 2."""
    if confidence.shape != depth.shape:
        shapes = " and ".join(f"{columns}×{rows}" for rows, columns in (confidence.shape, depth.shape))
        raise LocusError(f"{file} and its depth map should be of the same size, not {shapes}")
    return np.where(confidence == 0, depth.dtype.type(0), depth)


def believed(depth: Num[ndarray, "h w"], confidence: Path | None) -> Num[ndarray, "h w"]:
    """The same with a file of confidence, if there is one."""
    return depth if confidence is None else with_confidence(depth, read_labels(confidence), confidence)


def read_labels(path: Path) -> Int32[ndarray, "h w"]:
    """A label map: one channel of 8- or 16-bit ids."""
    with _opened(path) as image:
        labels = np.asarray(image)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise LocusError(f"{path} is not a label map: it needs one channel of integers")
    return labels.astype(np.int32)


def read_numbers(path: Path, delimiter: str | None = None) -> Float[ndarray, "rows columns"]:
    """A text file of numbers, a row a line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file, which is an error below
            numbers = np.loadtxt(StringIO(read_text(path)), dtype=np.float64, ndmin=2, delimiter=delimiter)
    except ValueError as error:
        raise LocusError(f"{path} is not a table of numbers ({error})") from None
    if not numbers.size:
        raise LocusError(f"{path} is empty")
    return numbers


def read_matrix(path: Path, size: int = 4, delimiter: str | None = None) -> Float[ndarray, "size size"]:
    """The top-left size × size part of the matrix in a text file."""
    numbers = read_numbers(path, delimiter)
    if numbers.shape[0] < size or numbers.shape[1] < size:
        raise LocusError(f"{path} holds {numbers.shape[0]}×{numbers.shape[1]} numbers, not a {size}×{size} matrix")
    return numbers[:size, :size]


def camera_from_opencv(matrix: Num[ndarray, "3 3"], size: tuple[int, int], file: Path | str) -> Camera:
    """A camera from a matrix K as most data sets store it, OpenCV's: the top-left pixel's centre is at (0, 0)."""
    return camera_from_four((matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]), size, file)


def camera_from_four(numbers: Sequence[float], size: tuple[int, int], file: Path | str) -> Camera:
    """The same from fx fy cx cy."""
    width, height = size
    fx, fy, cx, cy = numbers[0], numbers[1], numbers[2] + 0.5, numbers[3] + 0.5
    if cx > width or cy > height:
        raise LocusError(
            f"{file} puts the principal point at ({cx:.0f}, {cy:.0f}), outside the {width}×{height} image; "
            "was the image resized after the calibration?"
        )
    return Camera(width, height, float(fx), float(fy), float(cx), float(cy))


def read_stored(path: Path | Piece) -> Num[ndarray, "h w *c"]:
    """The numbers of an image as they are stored, whatever its channels mean."""
    with _opened(path) as image:
        return np.asarray(image)


def frame_name(file: str, folder: str) -> str:
    """What a frame is called by the file its scene names: `./images/a/0001.png` in folder `images` is `a/0001`."""
    parts = [part for part in os.path.splitext(file)[0].split("/") if part not in ("", ".", "..")]
    return "/".join(parts[1:] if len(parts) > 1 and parts[0] == folder else parts)


def names_file(value: object) -> bool:
    """Whether a value found in a scene's text could be the name of a file."""
    return isinstance(value, str) and "\0" not in value and os.path.basename(value) not in ("", ".", "..")


def refuse_strangers(folder: Path, allow_outside: bool) -> None:
    """A scene's folder is searched for links that lead out of it, and for pipes and devices.

    A scene may come from a stranger; it must not choose which of the user's other files are opened. All of the folder
    is looked through, so that no reader has to think of it: 0.1 s for a hundred thousand files.
    """
    root = os.path.realpath(folder)
    waiting = [root]
    while waiting:
        with suppress(PermissionError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    if not (allow_outside or f"{os.path.realpath(entry.path)}{os.sep}".startswith(root + os.sep)):
                        raise _outside(os.path.relpath(entry.path, root), folder)
                elif entry.is_dir():
                    waiting.append(entry.path)
                elif not entry.is_file():
                    raise SceneError(f"{entry.path} is a pipe or a device, which no scene has; remove it")


def path_inside(root: Path, name: str | Path, allow_outside: bool) -> Path:
    """The file that a scene's own text names, refused where it lies outside the scene's folder.

    Links are followed. Plain strings and remembered folders, because a scene can name a hundred thousand files.
    """
    # 255 bytes are the most that a file system takes for a name.
    if "\0" in str(name) or max(map(len, str(name).encode("utf-8", "replace").split(b"/"))) > 255:
        raise SceneError(f"{str(name)[:80]!r} is no name of a file")
    if not allow_outside:
        folder, file = os.path.split(os.path.join(root, name))
        real = os.path.join(_real_folder(folder), file)
        if os.path.islink(real):
            real = os.path.realpath(real)
        if not real.startswith(_real_folder(str(root)) + os.sep):
            raise _outside(name, root)
    return root / name


def _outside(name: str | Path, root: Path) -> SceneError:
    return SceneError(
        f"{name} points outside the scene's folder {root} and is refused; "
        "if you trust this scene, say so with --allow-outside"
    )


@lru_cache(maxsize=4096)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)
