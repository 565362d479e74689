"""The frames and maps that go into a folder of any format."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float32, Num
from numpy import ndarray
from PIL import Image

from locus.errors import FrameError, SceneError
from locus.scenes.scene import Frame

LARGEST = 65534  # in 16 bits; 65535 means unknown to many readers
Entry = TypeVar("Entry")


def write_readable(frames: Iterable[Frame], write_frame: Callable[[Frame], Entry], path: Path) -> list[Entry]:
    """What `write_frame` returns for each frame. Those that cannot be read are left out, counted and named."""
    entries, unreadable = [], []
    for frame in frames:
        try:
            entries.append(write_frame(frame))
        except FrameError as error:
            unreadable.append(str(error))
    if not entries:
        raise SceneError(f"there is no frame to write to {path}" + "".join(f"; {e}" for e in unreadable[:1]))
    if unreadable:
        shown = "; ".join(unreadable[:3])
        warnings.warn(f"{len(unreadable)} frames cannot be read and were left out: {shown}", stacklevel=4)
    return entries


def save_depth(path: Path, depth: Float32[ndarray, "h w"], scale: float) -> bool:
    """Write depth in a format's own unit. Farther than 16 bits reach is written as unknown: whether there was such."""
    stored = np.rint(depth.astype(np.float64) * scale)
    save_png(path, np.where(stored <= LARGEST, stored, 0).astype(np.uint16))
    return bool(stored.max() > LARGEST)


def warn_of_far(frames: int, scale: float) -> None:
    """Say that depth was lost, if it was."""
    if frames:
        warnings.warn(
            f"{frames} frames have depth beyond the {LARGEST / scale:.1f} m that this format can hold; it was written "
            "as unknown there",
            stacklevel=4,
        )


def save_png(path: Path, values: Num[ndarray, "..."]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, compress_level=3)
