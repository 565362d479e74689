"""Retrieval sets: which patches a landmark should find (eq. 2), and which it is ranked against (eq. 4)."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .checks import Number, ObjectiveError, check_integers, check_landmarks, check_shape, full_precision


def retrieval_sets(
    positions: Float[Tensor, "n 3"],
    environments: Int[Tensor, "n"],
    frames: Int[Tensor, "n"],
    landmarks: Int[Tensor, "m"],
    radius: Number | Float[Tensor, "m"],
    kappa: Number,
    exclude_same_frame: bool = False,
) -> tuple[Bool[Tensor, "n m"], Bool[Tensor, "n m"]]:
    """The masks `positive` (within the radius) and `universe` (within kappa times the radius).

    Patch and landmark must be of one environment; what is outside the universe is "don't care". `landmarks` are the
    patches they were sampled from, and that one pair is in neither set. Neither is any pair of a patch without a
    valid position (one that is not finite). With `exclude_same_frame`, nor is any pair within one frame.
    """
    check_patches(positions, environments=environments, frames=frames)
    check_landmarks(landmarks, len(positions))
    positions, landmarks = full_precision(positions.detach()), landmarks.long()
    squared = squared_distances(positions.T, positions[landmarks].T.contiguous())
    apart = environments[:, None] != environments[landmarks]
    if exclude_same_frame:
        apart |= frames[:, None] == frames[landmarks]
    squared.masked_fill_(apart, math.inf)
    squared[landmarks, torch.arange(len(landmarks), device=landmarks.device)] = math.inf
    inner, outer = squared_radii(radius, kappa, len(landmarks), positions)
    return squared <= inner, squared <= outer


def squared_distances(points: Float[Tensor, "3 n"], centres: Float[Tensor, "3 m"]) -> Float[Tensor, "n m"]:
    """From differences: the usual inner-product form loses seven digits of a small distance far from the origin."""
    squared = (points[0, :, None] - centres[0]).square_()
    for axis in (1, 2):
        difference = points[axis, :, None] - centres[axis]
        squared.addcmul_(difference, difference)
    return squared


def squared_radii(
    radius: Number | Float[Tensor, "m"], kappa: Number, landmarks: int, like: Tensor
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Of the positive set and of the universe, for every landmark; finite, so that an infinite distance is outside."""
    if not kappa >= 1:
        raise ObjectiveError(f"kappa must be at least 1, so that positives are in the universe, but is {kappa}")
    radii = torch.as_tensor(radius, dtype=like.dtype, device=like.device)
    if radii.ndim:
        check_shape("radius", radii, (landmarks,), "one for each landmark")
    radii = radii.expand(landmarks)
    if not bool(((radii > 0) & radii.isfinite()).all()):
        raise ObjectiveError("every radius must be a positive, finite number of metres")
    largest = torch.finfo(like.dtype).max
    return radii.square(), (kappa * radii).square().clamp(max=largest)


def check_patches(positions: Tensor, **numbers: Tensor) -> None:
    """A position for every patch, and numbers such as its environment's and its frame's."""
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ObjectiveError(f"positions must have shape (n, 3), but has {tuple(positions.shape)}")
    if not positions.is_floating_point():
        raise ObjectiveError(f"positions must be floating point, in metres, but is {positions.dtype}")
    for name, values in numbers.items():
        check_integers(name, values, len(positions), "one for each patch")
