"""The objective of LoCUS: rank the right patches first. Needs nothing but torch.

    from locus.objective import RetrievalObjective

    objective = RetrievalObjective(radius=0.2, kappa=50, tau=0.01)
    loss = 1 - objective(features, positions, environments, frames, landmarks)
    loss.backward()

`features` (n, c) are unit vectors, `positions` (n, 3) the patches' points in the world, in metres (NaN if unknown),
`environments` and `frames` (n,) number the place and the image each patch is from, and `landmarks` (m,) are patches.
"""

from .checks import ObjectiveError
from .embeddings import mean_embeddings
from .exact import ExactRanking, RankedPairs, average_precision, average_precision_per_landmark
from .fused import RetrievalObjective
from .reference import vectorized_smooth_ap_reference
from .sampling import draw_landmarks
from .sets import retrieval_sets
from .smooth_ap import smooth_ap, vectorized_smooth_ap

__all__ = [
    "ExactRanking",
    "ObjectiveError",
    "RankedPairs",
    "RetrievalObjective",
    "average_precision",
    "average_precision_per_landmark",
    "draw_landmarks",
    "mean_embeddings",
    "retrieval_sets",
    "smooth_ap",
    "vectorized_smooth_ap",
    "vectorized_smooth_ap_reference",
]
