"""Is a thing that has gone from one spot the thing that is new at another? By its kind, and by how high it reaches."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.spatial import KDTree
from scipy.special import expit

from locus.geometry import transform, upwards
from locus.landmarks.arrays import Frames
from locus.landmarks.coarse_depth import UNIT, coarse_cells, grid_camera
from locus.tasks.changed_surfaces import ChangedSurface

NEAR = 0.1  # metres from a surface to what frames show of it
# A logistic fit by `python benchmarks/changes_fit.py`: offset, and the weights of both cues.
OFFSET, BY_KIND, BY_TOP = -3.74, 5.54, -3.66


def same_thing(
    before: Frames, gone: list[ChangedSurface], after: Frames, new: list[ChangedSurface]
) -> Float[ndarray, "n m"]:
    """The probability that each thing that is gone is each of the new ones; 0 where the kind of one is unknown."""
    alike, apart = np.moveaxis(cues(before, gone, after, new), -1, 0)
    return np.where(alike == 0, 0.0, expit(OFFSET + BY_KIND * alike + BY_TOP * apart))


def cues(
    before: Frames, gone: list[ChangedSurface], after: Frames, new: list[ChangedSurface]
) -> Float[ndarray, "n m 2"]:
    """The cosine of their kinds (0 if one is unknown), and how far apart in height their tops are, in metres.

    The other sizes of what is seen of a thing depend too much on where it was seen from.
    """
    up = upwards(before.world_from_camera)
    kinds = [np.array([kind(frames, each) for each in own]) for frames, own in ((before, gone), (after, new))]
    tops = [np.array([(each.points @ up).max() for each in own]) for own in (gone, new)]
    return np.stack([kinds[0] @ kinds[1].T, np.abs(tops[0][:, None] - tops[1])], axis=-1)


def kind(frames: Frames, surface: ChangedSurface) -> Float[ndarray, " k"]:
    """The unit mean, over the frames that show a surface, of the kinds of the cells it fills; 0 if none is known."""
    tree = KDTree(surface.points)
    total = np.zeros(frames.kind.shape[-1])
    for row in surface.shown_by:
        depth, camera = frames.surface[row] * UNIT, grid_camera(frames.lens[row])
        points = transform(frames.world_from_camera[row], camera.unproject(camera.pixel_grid(), depth))
        on_it = tree.query(points, distance_upper_bound=NEAR)[0] <= NEAR
        share = coarse_cells(on_it & (depth > 0))
        total += np.einsum("yx,yxk->k", share**3, frames.kind[row])
    return total / max(np.linalg.norm(total), 1e-9)


def thing_size(points: Float[ndarray, "n 3"], up: Float[ndarray, " 3"]) -> Float[ndarray, " 4"]:
    """Logarithms of the spread of a surface along the ground, two ways, and of its height; and its top in metres."""
    height = points @ up
    flat = points - height[:, None] * up
    spread = np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(flat.T))[1:], 0))  # the first is that along up: none
    return np.array([*np.log(spread + 0.05), np.log(np.ptp(height) + 0.1), height.max()])
