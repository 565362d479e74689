"""Landmark embeddings other than a single patch's feature (paper, "Sampling embeddings")."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .checks import ObjectiveError, check_landmarks, check_shape


def mean_embeddings(
    features: Float[Tensor, "n c"], positive: Bool[Tensor, "n m"], landmarks: Int[Tensor, "m"]
) -> Float[Tensor, "m c"]:
    """The mean feature of every landmark's positive patches and of its own patch, at unit length.

    The own patch lies at the landmark, so eq. 2 calls it positive; `retrieval_sets` leaves it out of the ranking only.
    A ranking of these embeddings is easier than one of single patches: each positive is part of what it is compared to.
    """
    if features.ndim != 2:
        raise ObjectiveError(f"features must have shape (n, c), but has {tuple(features.shape)}")
    check_landmarks(landmarks, len(features))
    check_shape("positive", positive, (len(features), len(landmarks)), "patches by landmarks")
    if positive.dtype != torch.bool:
        raise ObjectiveError(f"positive must be a boolean mask, but is {positive.dtype}")
    others = positive.clone()
    others[landmarks, torch.arange(len(landmarks), device=landmarks.device)] = False
    total = others.T.to(features.dtype) @ features + features[landmarks]
    return torch.nn.functional.normalize(total, dim=1)
