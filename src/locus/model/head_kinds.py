"""Which heads there are, and usual values: what settings and help need to know without loading torch."""

from typing import Literal

HeadKind = Literal["paper", "linear", "blocks", "identity"]
DIMENSION = 64  # the paper's
KAPPA, TAU = 50.0, 0.01  # of the objective
BLOCKS = 3  # pretrained blocks that go on learning; two and four learn less (docs/training.md)
