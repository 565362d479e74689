"""The objective of LoCUS: rank the right patches first. Needs nothing but torch.

    from locus.objective import RetrievalObjective

    objective = RetrievalObjective(radius=0.2, kappa=50, tau=0.01)
    loss = 1 - objective(features, positions, environments, frames, landmarks)
    loss.backward()

`features` (n, c) are unit vectors, `positions` (n, 3) the patches' points in the world, in metres (NaN if unknown),
`environments` and `frames` (n,) number the environment and the image each patch is from, and `landmarks` (m,) are
patches.

| paper | what | file | function |
|---|---|---|---|
| eq. 1 | similarity of patches and landmarks | `similarity.py` | `score` |
| eq. 2, 4 | positive set, universe | `sets.py` | `retrieval_sets` |
| eq. 3 | Smooth-AP_j, one landmark's own list | `smooth_ap.py` | `smooth_ap` |
| eq. 5 | V-Smooth-AP, all pairs as one list | `vectorized_smooth_ap.py` | `RetrievalObjective` |
| eq. 5 | the same as it is defined, quadratic | `reference.py` | `vectorized_smooth_ap_reference` |
| limit of small τ | AP, for evaluation | `exact.py` | `average_precision` |
| "Sampling positions" | which patches are landmarks | `sampling.py` | `draw_landmarks` |
| "Sampling embeddings" | the mean of a landmark's patches | `embeddings.py` | `mean_embeddings` |

`curves.py` is what makes eq. 3 and 5 linear in the pairs, `tiles.py` what keeps them out of memory.
"""

from .checks import ObjectiveError
from .embeddings import mean_embeddings
from .exact import ExactRanking, RankedPairs, average_precision, average_precision_per_landmark
from .reference import vectorized_smooth_ap_reference
from .sampling import draw_landmarks
from .sets import retrieval_sets
from .smooth_ap import smooth_ap
from .vectorized_smooth_ap import RetrievalObjective

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
    "vectorized_smooth_ap_reference",
]
