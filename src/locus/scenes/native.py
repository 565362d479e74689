"""Writing a scene in the native format: nerfstudio's `transforms.json` with depth and label PNGs."""

import json
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num
from numpy import ndarray
from PIL import Image

from locus.errors import FrameError, LocusError, SceneError
from locus.files import atomic_folder
from locus.geometry import OPENGL_FROM_OPENCV
from locus.progress import track
from locus.scenes.formats.nerfstudio import FILE
from locus.scenes.scene import Frame, LabelClass, Scene

FINE_ENOUGH = 256.0  # units per metre; the coarsest that data sets with 16-bit depth use
LARGEST = 65534  # in 16 bits; 65535 means unknown to many readers


def export(scene: Scene, path: str | PathLike[str], progress: bool = False) -> Path:
    """Write `scene` to the new folder `path`; `load_scene` reads it back as it was.

    Frames that cannot be read are left out, with a warning that counts and names them. An interruption, or an error of
    any other kind, leaves nothing behind.

    Depth keeps the scene's own unit, so that nothing is rounded, unless that is coarse (metres as floating-point
    numbers, centimetres): then it is written in millimetres.
    """
    scale = scene.convention.depth_scale
    frames = track(scene, "writing frames", len(scene), progress)
    return write_native(path, frames, scene.classes, scale if scale >= FINE_ENOUGH else 1000.0)


def write_native(
    path: str | PathLike[str], frames: Iterable[Frame], classes: Sequence[LabelClass] = (), depth_scale: float = 1000.0
) -> Path:
    """Write frames, one at a time, to the new folder `path`. An interruption leaves no folder behind."""
    path = Path(path)
    with atomic_folder(path) as partial:
        entries, unreadable = [], []
        for frame in frames:
            try:
                entries.append(_write_frame(partial, frame, depth_scale))
            except FrameError as error:
                unreadable.append(str(error))
        if not entries:
            raise SceneError(f"there is no frame to write to {path}" + "".join(f"; {e}" for e in unreadable[:1]))
        if unreadable:
            shown = "; ".join(unreadable[:3])
            warnings.warn(f"{len(unreadable)} frames cannot be read and were left out: {shown}", stacklevel=3)
        content = {
            "camera_model": "PINHOLE",
            "depth_unit_scale_factor": 1 / depth_scale,
            "classes": [{"id": c.id, "name": c.name, "kind": c.kind} for c in classes],
            "frames": entries,
        }
        (partial / FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def _write_frame(root: Path, frame: Frame, depth_scale: float) -> dict[str, Any]:
    camera, image, pose = frame.camera, frame.image, frame.world_from_camera
    maps = {"depth": np.rint(frame.depth.astype(np.float64) * depth_scale)}
    maps |= {k: v for k, v in (("semantic", frame.semantic), ("instance", frame.instance)) if v is not None}
    entry: dict[str, Any] = {"file_path": f"images/{frame.name}.png"}
    _write_png(root / entry["file_path"], image)
    for kind, values in maps.items():
        entry[f"{kind}_file_path"] = f"{kind}/{frame.name}.png"
        _write_png(root / entry[f"{kind}_file_path"], _sixteen_bits(values, frame.name, kind))
    entry |= {"w": camera.width, "h": camera.height}
    entry |= {"fl_x": camera.fx, "fl_y": camera.fy, "cx": camera.cx, "cy": camera.cy}
    entry["transform_matrix"] = (pose @ OPENGL_FROM_OPENCV).tolist()
    return entry


def _sixteen_bits(values: Num[ndarray, "h w"], frame: str, what: str) -> Num[ndarray, "h w"]:
    if values.max() > LARGEST:
        raise LocusError(f"frame {frame}: its {what} reaches {values.max():.0f}, more than a 16-bit PNG can hold")
    return values.astype(np.uint16)


def _write_png(path: Path, values: Num[ndarray, "..."]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, compress_level=3)
