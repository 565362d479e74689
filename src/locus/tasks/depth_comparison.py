"""How far found depth is from a sensor's: at its spots, and at the patches that have a point with both."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.scenes import Frame, Scene
from locus.scenes.patches import patch_points_camera
from locus.scenes.visibility import GRID

NEAR = (0.05, 0.1)  # metres


@dataclass(frozen=True, eq=False)
class DepthComparison:
    """Of all frames of a scene that have both."""

    error: Float[ndarray, " n"]
    """Metres that pixels of found depth are off, where the sensor's is known too."""
    depth: Float[ndarray, " n"]
    """The sensor's, there."""
    patch_error: Float[ndarray, " m"]
    """Metres between the points of a patch."""
    coverage: tuple[float, float]
    """The share of patches with a point: by found depth, and by the sensor's."""

    @property
    def sentence(self) -> str:
        return (
            f"Compared with its own depth, which was not used: pixels are {_off(self.error)}, "
            f"{np.median(self.error / self.depth):.1%} of the distance; {self.coverage[0]:.0%} of patches have a "
            f"point, not {self.coverage[1]:.0%}, and are {_off(self.patch_error)}"
        )


def _off(error: Float[ndarray, " n"]) -> str:
    within = ", ".join(f"{np.mean(error <= metres):.0%} within {100 * metres:.0f} cm" for metres in NEAR)
    return f"{100 * np.median(error):.1f} cm off in the median, {within}"


def compare_depth(found: Scene, measured: Scene) -> DepthComparison | None:
    """Of frames of the same name; None if no patch has both."""
    index = {source.name: row for row, source in enumerate(measured.sources)}
    parts = [_of_frame(frame, measured[index[frame.name]]) for frame in found if measured[index[frame.name]].has_depth]
    error, depth, patch_error = (np.concatenate([np.zeros(0), *(part[k] for part in parts)]) for k in range(3))
    if not len(patch_error):
        return None
    coverage = np.mean([part[3] for part in parts], axis=0)
    return DepthComparison(error, depth, patch_error, (float(coverage[0]), float(coverage[1])))


def _of_frame(found: Frame, measured: Frame) -> tuple[ndarray, ndarray, ndarray, tuple[float, float]]:
    both = (found.depth > 0) & (measured.depth > 0)
    depth = measured.depth[both].astype(np.float64)
    (a, in_a), (b, in_b) = (patch_points_camera(each.depth, each.camera, GRID) for each in (found, measured))
    apart = np.linalg.norm(a - b, axis=-1)[in_a & in_b]
    return np.abs(found.depth[both] - depth), depth, apart, (float(in_a.mean()), float(in_b.mean()))
