"""Writing the native format: nerfstudio's `transforms.json` with depth and label PNGs."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num
from numpy import ndarray

from locus.errors import LocusError
from locus.files import atomic_folder
from locus.geometry import OPENGL_FROM_OPENCV
from locus.progress import track
from locus.scenes.formats.nerfstudio import FILE
from locus.scenes.scene import Frame, LabelClass, Scene
from locus.scenes.writers.frame_files import LARGEST, save_png, write_readable

FINE_ENOUGH = 256.0  # units per metre; the coarsest that data sets with 16-bit depth use


def write(scene: Scene, path: Path, progress: bool = False) -> Path:
    """`load_scene` reads it back as it was.

    Depth keeps the scene's own unit, so that nothing is rounded, unless that is coarse (metres as floating-point
    numbers, centimetres): then it is written in millimetres.
    """
    scale = scene.convention.depth_scale
    frames = track(scene, "writing frames", len(scene), progress)
    return write_frames(path, frames, scene.classes, scale if scale >= FINE_ENOUGH else 1000.0)


def write_frames(
    path: Path, frames: Iterable[Frame], classes: Sequence[LabelClass] = (), depth_scale: float = 1000.0
) -> Path:
    """Write frames that come one at a time."""
    with atomic_folder(path) as partial:
        content = {
            "camera_model": "PINHOLE",
            "depth_unit_scale_factor": 1 / depth_scale,
            "classes": [{"id": c.id, "name": c.name, "kind": c.kind} for c in classes],
            "frames": write_readable(frames, lambda frame: _write_frame(partial, frame, depth_scale), path),
        }
        (partial / FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def _write_frame(root: Path, frame: Frame, depth_scale: float) -> dict[str, Any]:
    camera, image, pose = frame.camera, frame.image, frame.world_from_camera
    depth = np.rint(frame.depth.astype(np.float64) * depth_scale) if frame.has_depth else None
    kinds = {"depth": depth, "semantic": frame.semantic, "instance": frame.instance}
    maps = {kind: values for kind, values in kinds.items() if values is not None}
    entry: dict[str, Any] = {"file_path": f"images/{frame.name}.png"}
    save_png(root / entry["file_path"], image)
    for kind, values in maps.items():
        entry[f"{kind}_file_path"] = f"{kind}/{frame.name}.png"
        save_png(root / entry[f"{kind}_file_path"], _sixteen_bits(values, frame.name, kind))
    entry |= {"w": camera.width, "h": camera.height}
    entry |= {"fl_x": camera.fx, "fl_y": camera.fy, "cx": camera.cx, "cy": camera.cy}
    entry["transform_matrix"] = (pose @ OPENGL_FROM_OPENCV).tolist()
    return entry


def _sixteen_bits(values: Num[ndarray, "h w"], frame: str, what: str) -> Num[ndarray, "h w"]:
    if values.max() > LARGEST:
        raise LocusError(f"frame {frame}: its {what} reaches {values.max():.0f}, more than a 16-bit PNG can hold")
    return values.astype(np.uint16)
