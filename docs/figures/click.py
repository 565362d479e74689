"""The moving picture of the README: a pointer wanders over one image, and the same spot lights up in others.

    python docs/figures/click.py SCENE:FRAME X Y X Y ... [--views FRAME...] [--out docs/figures/click.webp]

The pointer stops at every X Y. Without --views, those frames are shown that light up most often.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from PIL import Image

from locus import load_scene
from locus.features.dense import scene_features
from locus.model import load
from locus.pages.pictures import Picture, enlarged, resized, sheet
from locus.tasks.cosegmentation import feature_at, similarity
from locus.tasks.region_pictures import marked

STEPS, STOP = 7, 7  # pictures between two stops, and at one
WIDTH = 264  # pixels, of a view
LOW, HIGH = 0.55, 0.85  # similarities at which the glow begins and is full
GLOW = np.array([255, 140, 0], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frame")
    parser.add_argument("stops", nargs="+", type=float)
    parser.add_argument("--views", nargs="+")
    parser.add_argument("--model", default="locus-small")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".webp"))
    told = parser.parse_args()
    path, _, name = told.frame.rpartition(":")
    scene = load_scene(path)
    seen = scene_features(load(told.model), scene)
    names = [seen.frame(row).name for row in range(len(seen.indices))]
    query = names.index(name)
    images = [seen.frame(row).image for row in range(len(names))]
    size = images[query].shape[1::-1]
    places = path_through(np.reshape(told.stops, (-1, 2)))
    features = seen.features[0]
    cosines = [similarity(feature_at(features[query], x, y, size), features) for x, y in places]
    if told.views:
        rows = [names.index(each) for each in told.views]
    else:
        best = np.mean([each.max(axis=(1, 2)) for each in cosines], axis=0)
        rows = [row for row in np.argsort(-best) if row != query][:6]
    pictures = []
    for (x, y), values in zip(places, cosines, strict=True):
        large = resized(marked(glowing(images[query], values[query]), x, y), 2 * WIDTH + 6)
        small = [resized(glowing(images[row], values[row]), WIDTH) for row in rows]
        columns = sheet([small[:2], small[2:4], small[4:6]][: large.shape[0] // small[0].shape[0]], gap=6)
        pictures.append(Image.fromarray(sheet([[large, columns]], gap=6)))
    pictures[0].save(told.out, save_all=True, append_images=pictures[1:], duration=90, loop=0, quality=60, method=6)
    print(f"{told.out}: {told.out.stat().st_size / 1e6:.1f} MB, {len(pictures)} pictures of {pictures[0].size}")


def path_through(stops: Float[ndarray, "n 2"]) -> list[tuple[float, float]]:
    """From stop to stop and back to the first, slowly at both ends."""
    eased = (1 - np.cos(np.linspace(0, np.pi, STEPS + 2)[1:-1])) / 2
    found = []
    for a, b in pairwise([*stops, stops[0]]):
        found += [tuple(a)] * STOP + [tuple(a + share * (b - a)) for share in eased]
    return found


def glowing(image: Picture, values: Float[ndarray, "rows columns"]) -> Picture:
    """An image, darker where it is unlike the query, and glowing where it is similar."""
    strength = np.clip((enlarged(values, image.shape[1::-1]) - LOW) / (HIGH - LOW), 0, 1)[..., None]
    grey = image.mean(axis=-1, keepdims=True)
    quiet = 0.75 * (0.5 * image + 0.5 * grey)
    return ((1 - strength) * quiet + strength * (0.55 * image + 0.45 * GLOW)).round().astype(np.uint8)


if __name__ == "__main__":
    main()
