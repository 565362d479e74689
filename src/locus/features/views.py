"""A frame as a backbone takes it: pixels of whole patches, and the world point of every patch."""

import numpy as np
from jaxtyping import Float32, UInt8
from numpy import ndarray
from torch import Tensor

from locus.backbones import Backbone
from locus.errors import LocusError
from locus.features.augmentation import augmented
from locus.geometry import transform
from locus.scenes import Frame
from locus.scenes.patches import patch_points_camera


def view(
    frame: Frame,
    backbone: Backbone,
    resolution: int | None,
    size: tuple[int, int],
    rng: np.random.Generator | None = None,
) -> tuple[UInt8[Tensor, "3 h w"], Float32[ndarray, "rows columns 3"]]:
    """The frame as it is, or with `rng` augmented (`features.augmentation`); points are NaN where there is no depth.

    `size` is the (width, height) that the frames of a scene have when resized; a frame of another size is refused.
    """
    own = backbone.size(frame.camera.width, frame.camera.height, resolution)
    if own != size:
        raise LocusError(f"frame {frame.name} is {own} pixels wide and high when resized, the first frame {size}")
    image, depth, camera = frame.image, frame.depth, frame.camera
    if rng is not None:
        image, depth, camera = augmented(image, depth, camera, rng)
    grid = (size[1] // backbone.patch_size, size[0] // backbone.patch_size)
    points = transform(frame.world_from_camera, patch_points_camera(depth, camera, grid)[0])
    return backbone.prepare(image, resolution), points.astype(np.float32)
