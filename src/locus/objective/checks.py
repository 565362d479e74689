"""What every entry point asks of its arguments; each refusal is one sentence that says what to change."""

import math

import torch
from torch import Tensor

from locus.errors import LocusError

Number = float | int  # type checkers at run time do not take an int for a float


class ObjectiveError(LocusError, ValueError):
    """Arguments from which no ranking can be computed."""


def check_tau(tau: Number) -> None:
    if not (math.isfinite(tau) and tau > 0):
        raise ObjectiveError(f"tau must be a positive, finite number, but is {tau}")


def full_precision(tensor: Tensor) -> Tensor:
    """In float32, unless it is in float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def check_shape(name: str, tensor: Tensor, shape: tuple[int, ...], meaning: str) -> None:
    if tuple(tensor.shape) != shape:
        raise ObjectiveError(f"{name} must have shape {shape}, {meaning}, but has {tuple(tensor.shape)}")


def check_ranking(scores: Tensor, positive: Tensor, universe: Tensor) -> None:
    """Scores and masks of one ranking task, n patches by m landmarks."""
    if scores.ndim != 2:
        raise ObjectiveError(f"scores must have two dimensions, patches by landmarks, but has {scores.ndim}")
    if not scores.is_floating_point():
        raise ObjectiveError(f"scores must be floating point, but is {scores.dtype}")
    for name, mask in (("positive", positive), ("universe", universe)):
        check_shape(name, mask, tuple(scores.shape), "one entry for each score")
        if mask.dtype != torch.bool:
            raise ObjectiveError(f"{name} must be a boolean mask, but is {mask.dtype}")
    outside = positive > universe
    if outside.any():
        raise ObjectiveError(
            f"{int(outside.sum())} positive pairs lie outside the universe; "
            "a positive must be in the universe (is kappa < 1?)"
        )
    if scores.numel() and not all(bool(end.isfinite()) for end in scores.detach().aminmax()):
        wrong = int((~scores.detach().isfinite()).sum())
        raise ObjectiveError(f"{wrong} scores are NaN or infinite; scores must be finite, also outside the universe")


def check_integers(name: str, tensor: Tensor, length: int, meaning: str) -> None:
    check_shape(name, tensor, (length,), meaning)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise ObjectiveError(f"{name} must be integers, but is {tensor.dtype}")


def check_landmarks(landmarks: Tensor, patches: int) -> None:
    """Landmarks are named by the patch they were sampled from."""
    if landmarks.ndim != 1:
        raise ObjectiveError(f"landmarks must be a list of patch indices, but has shape {tuple(landmarks.shape)}")
    check_integers("landmarks", landmarks, len(landmarks), "one patch index each")
    if len(landmarks) and (int(landmarks.min()) < 0 or int(landmarks.max()) >= patches):
        raise ObjectiveError(
            f"landmarks must be patch indices from 0 to {patches - 1}, "
            f"but range from {int(landmarks.min())} to {int(landmarks.max())}"
        )


UNIT_TOLERANCE = 1e-2  # half-precision features are unit length to 4e-3


def check_unit(name: str, vectors: Tensor) -> None:
    """Scores are cosines (eq. 1) only if features and embeddings have unit length."""
    length = vectors.detach().norm(dim=-1)
    wrong = int((~((length - 1).abs() <= UNIT_TOLERANCE)).sum())  # "not within", so that NaN is wrong too
    if wrong:
        raise ObjectiveError(
            f"{wrong} of {length.numel()} {name} are not of unit length; "
            f"divide them by their norm (torch.nn.functional.normalize)"
        )
