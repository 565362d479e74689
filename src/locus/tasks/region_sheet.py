"""What `locus cosegment` and `locus find` write: one sheet of pictures, and masks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from locus.tasks import region_pictures as pictures
from locus.tasks.instances import FoundRegion


def write_sheet(out: Path, query: pictures.Picture, name: str, found: Sequence[FoundRegion], views: int) -> None:
    """The query, then the images of the first regions found, each with its score."""
    tiles = [pictures.captioned(query, f"query: {name}")]
    for each in found[:views]:
        picture = pictures.outlined(each.image.read(), each.mask)
        if each.box is not None:
            picture = pictures.boxed(picture, each.box)
        caption = f"{each.score:.2f}  {each.image.name}" + ("" if each.mask.any() else "  (nothing)")
        tiles.append(pictures.captioned(picture, caption))
    pictures.write(out, pictures.tiles(tiles))


def write_masks(folder: Path, found: Sequence[FoundRegion]) -> None:
    """NAME.png for each image: 255 inside the region, 0 outside."""
    for each in found:
        pictures.write(folder / f"{each.image.name}.png", each.mask.astype(np.uint8) * 255)
