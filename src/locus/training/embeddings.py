"""Landmarks' embeddings as the mean of their positives (paper, "Sampling embeddings"), in one process or several."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.distributed import ProcessGroup

from locus.objective.distributed import rows_of_all
from locus.objective.sets import squared_distances
from locus.training.batches import Batch


def mean_of_positives(
    features: Float[Tensor, "scales n c"], batch: Batch, radii: Sequence[float], group: ProcessGroup | None = None
) -> Float[Tensor, "scales m c"]:
    """The mean feature of the patches within the radius of each landmark, its own among them, at unit length.

    With several processes, of the patches of all of them; each gets the embeddings of its own landmarks.
    """
    places, environments = batch.positions[batch.landmarks], batch.environments[batch.landmarks]
    own = slice(None)
    if group is not None:
        (places, own), (environments, _) = rows_of_all(places, group), rows_of_all(environments, group)
    squared = squared_distances(batch.positions.T, places.T.contiguous())
    squared.masked_fill_(batch.environments[:, None] != environments, torch.inf)
    near = torch.stack([squared <= radius**2 for radius in radii])  # (scales, n, landmarks of all)
    total = near.mT.to(features) @ features
    if group is not None:  # each process has the sum over its own patches
        parts, _ = rows_of_all(total[None], group)
        total = parts.sum(dim=0)
    return F.normalize(total[:, own], dim=2)
