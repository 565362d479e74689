"""Shapes of arrays in rendering: one row, or one number, for each of n rays, points or pixels."""

import numpy as np
from jaxtyping import Float32, Int32

Vectors = Float32[np.ndarray, "n 3"]
Scalars = Float32[np.ndarray, " n"]
Numbers = Int32[np.ndarray, " n"]
