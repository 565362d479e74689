"""Landmarks' embeddings as the mean of their positives (paper, "Sampling embeddings"), in one process or several."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.utils.checkpoint import checkpoint

from .checks import Number, ObjectiveError, check_landmarks, full_precision
from .distributed import rows_of_all
from .sets import check_patches, squared_distances

PAIRS_AT_ONCE = 2**20


def mean_embeddings(
    features: Float[Tensor, "radii n c"],
    positions: Float[Tensor, "n 3"],
    environments: Int[Tensor, " n"],
    landmarks: Int[Tensor, " m"],
    radii: Sequence[Number],
    group: ProcessGroup | None = None,
) -> Float[Tensor, "radii m c"]:
    """The mean feature of the patches within each radius of each landmark (eq. 2), its own among them, at unit length.

    A ranking of these embeddings is easier than one of single patches: each positive is part of what it is compared to.
    A landmark without a position keeps its own feature. With several processes the mean is over the patches of all of
    them, each gets the embeddings of its own landmarks, and all must call backward.
    """
    check_patches(positions, environments=environments)
    check_landmarks(landmarks, len(positions))
    if features.ndim != 3 or features.shape[:2] != (len(radii), len(positions)):
        raise ObjectiveError(
            f"features must have shape ({len(radii)}, {len(positions)}, c), one set for each radius, "
            f"but has {tuple(features.shape)}"
        )
    positions = full_precision(positions.detach())
    centres, of, own = positions[landmarks], environments[landmarks], slice(None)
    if group is not None:
        (centres, own), (of, _) = rows_of_all(centres, group), rows_of_all(of, group)
    at_once = max(1, PAIRS_AT_ONCE // max(1, len(positions)))
    pieces = zip(centres.split(at_once), of.split(at_once), strict=True)
    # Which patches are near is forgotten and found again for the gradient: nothing of size n x m is held.
    sums = [
        checkpoint(_sums, features, positions, environments, *piece, radii, use_reentrant=False) for piece in pieces
    ]
    total = torch.cat(sums, dim=1)
    if group is not None:  # each process has the sum over its own patches
        total = rows_of_all(total[None], group)[0].sum(dim=0)
    known = positions[landmarks].isfinite().all(dim=1, keepdim=True)
    return torch.nn.functional.normalize(torch.where(known, total[:, own], features[:, landmarks]), dim=2)


def _sums(
    features: Tensor, positions: Tensor, environments: Tensor, centres: Tensor, of: Tensor, radii: Sequence[Number]
) -> Float[Tensor, "radii k c"]:
    """Of the features around some of the landmarks."""
    squared = squared_distances(positions.T, centres.T.contiguous())
    squared.masked_fill_(environments[:, None] != of, torch.inf)
    near = torch.stack([squared <= radius**2 for radius in radii])  # (radii, n, k)
    return near.mT.to(features) @ features
