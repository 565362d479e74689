"""Principal components: the baseline's 64 dimensions, the start of learned maps, and the colours of pictures."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from locus.errors import LocusError


class Components(NamedTuple):
    """A linear map to the first principal components."""

    mean: Float[Tensor, " d"]
    directions: Float[Tensor, "k d"]
    """One a row, of unit length; whitened: divided by the standard deviation along it."""

    def __call__(self, rows: Float[Tensor, "*n d"]) -> Float[Tensor, "*n k"]:
        return (rows - self.mean) @ self.directions.T


def principal_components(rows: Float[Tensor, "n d"], count: int, *, whiten: bool = False) -> Components:
    """The `count` directions of largest variance of the rows, the largest first."""
    if count > min(rows.shape):
        raise LocusError(f"{rows.shape[0]} rows of length {rows.shape[1]} have no {count} principal components")
    exact = rows.cpu().double()  # Apple's MPS has no float64
    mean = exact.mean(dim=0)
    covariance = (exact - mean).T @ (exact - mean) / max(len(rows) - 1, 1)
    variances, directions = torch.linalg.eigh(covariance)
    variances, directions = variances.flip(0)[:count], directions.flip(1).T[:count]
    # A direction's sign is the solver's whim; the largest entry made positive fixes it.
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    directions = directions * largest.sign()
    if whiten:
        directions = directions / variances.clamp(min=1e-12 * float(variances[0].clamp(min=1e-30))).sqrt()[:, None]
    return Components(mean.to(rows), directions.to(rows))
