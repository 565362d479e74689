"""What `inspect` keeps of one frame after it has been read."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray

from locus.errors import FrameError, LocusError
from locus.geometry import Camera
from locus.scenes.scene import Frame
from locus.scenes.visibility import FrameGeometry


@dataclass(frozen=True)
class FrameSummary:
    """What is kept of one frame after it has been read."""

    name: str
    camera: Camera
    position: Float[ndarray, "3"]
    coverage: float
    """Share of pixels with known depth."""
    depths: Float32[ndarray, "3"]
    """5th, 50th and 95th percentile of the known depth in metres; NaN without any."""
    contrast: float
    """Standard deviation of the image, 0 to 255."""
    labels: Counter[int]
    """Pixels of each class id."""
    label_problem: str
    """What is wrong with its labels, if anything."""
    geometry: FrameGeometry | None
    """Of a frame that is compared with others."""

    @classmethod
    def of(cls, frame: Frame, keep_geometry: bool) -> "FrameSummary":
        depth = frame.depth
        known = depth[depth > 0]
        depths = np.percentile(known, (5, 50, 95)) if known.size else np.full(3, np.nan)
        labels, label_problem = Counter[int](), ""
        try:
            frame.instance  # noqa: B018  read for its errors
            if frame.semantic is not None:
                ids, counts = np.unique(frame.semantic, return_counts=True)
                labels = Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
        except FrameError as error:
            label_problem = without_name(error, frame.name)
        return cls(
            name=frame.name,
            camera=frame.camera,
            position=frame.world_from_camera[:3, 3],
            coverage=known.size / depth.size,
            depths=depths.astype(np.float32),
            contrast=float(frame.image.std()),
            labels=labels,
            label_problem=label_problem,
            geometry=FrameGeometry.of(frame) if keep_geometry else None,
        )


def without_name(error: LocusError, name: str) -> str:
    """What is wrong with a frame, where its name is said anyway."""
    return str(error).removeprefix(f"frame {name}: ")
