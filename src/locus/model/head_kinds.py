"""Which heads there are, and their usual size: what settings and help need to know without loading torch."""

from typing import Literal

HeadKind = Literal["paper", "linear", "blocks", "identity"]
DIMENSION = 64  # the paper's
BLOCKS = 3  # pretrained blocks that go on learning; two and four learn less (docs/training.md)
