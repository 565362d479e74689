"""One spot of a house, chosen to be shown, and where else it is seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.features.viz import colours
from locus.landmarks import LandmarkMap
from locus.scenes.patches import patch_centres
from locus.scenes.scene_pictures import Picture, resized
from locus.tasks import cosegmentation
from locus.tasks import region_pictures as pictures

SHARE = 0.1  # of the landmarks on things, the worthiest, of which the one that most frames show is taken
VIEWS = 11  # on a sheet, beside the query
WIDTH = 240  # pixels, of a view in colours


@dataclass(frozen=True)
class Spot:
    """A landmark, and the frame and pixel it is asked for by."""

    landmark: int
    what: str
    """The class of the thing it is on."""
    row: int
    """Of the frame in the house's features."""
    x: float
    y: float
    shown: Bool[ndarray, " frames"]
    """Frames that show it, by depth and poses."""


def choose(world: LandmarkMap, seen: SceneFeatures) -> Spot:
    """A landmark on a thing, of high worth, that many frames show; asked for in the frame where it is most central."""
    landmarks, kinds = world.landmarks, {label.name: label.kind for label in seen.scene.classes}
    finest = landmarks.scale == int(np.argmin(world.radii))
    names = np.array([*world.classes, ""])  # the last is of those without a label, -1
    things = finest & np.array([kinds.get(name) == "thing" for name in names], bool)[landmarks.label]
    candidates = np.flatnonzero(things if things.any() else finest)
    best = candidates[np.argsort(-landmarks.worth[candidates], kind="stable")][: max(1, round(SHARE * len(candidates)))]
    landmark = int(best[np.argmax(landmarks.views[best])])
    away = np.linalg.norm(seen.points - landmarks.position[landmark], axis=-1).reshape(len(seen), -1)
    away = np.where(np.isnan(away), np.inf, away)  # patches without a point
    shown = away.min(axis=1) <= landmarks.radius[landmark]
    at = patch_centres(seen.grid, 1, 1).reshape(-1, 2)[away.argmin(axis=1)]  # where each frame shows it best
    row = int(np.where(shown, np.abs(at - 0.5).max(axis=1), np.inf).argmin())
    camera = seen.frame(row).camera
    x, y = at[row] * [camera.width, camera.height]
    return Spot(landmark, str(names[landmarks.label[landmark]]) or "unknown", row, float(x), float(y), shown)


@dataclass(frozen=True)
class Sheet:
    """Views, the most similar first, each with the region that is like the spot."""

    picture: Picture
    showing: int
    """Other views that show the spot."""
    first: int
    """How many of those are among as many views that are ranked first."""
    outlined: int
    """Of the views that show it, how many have something outlined."""
    wrong: int
    """Views that do not show it, and have something outlined."""


def cosegment(spot: Spot, seen: SceneFeatures, scale: int) -> Sheet:
    """Look for the spot in all other views by its feature, and compare with where it truly is."""
    query = seen.frame(spot.row)
    size = (query.camera.width, query.camera.height)
    feature = cosegmentation.feature_at(seen.features[scale, spot.row], spot.x, spot.y, size)
    regions = cosegmentation.cosegment(feature, seen, scale=scale)
    ranked = cosegmentation.best_first([region for region in regions if region.row != spot.row])
    showing = [bool(spot.shown[region.row]) for region in ranked]
    marked = [bool(region.mask.any()) for region in ranked]
    tiles = [pictures.captioned(pictures.marked(query.image, spot.x, spot.y), "asked for: the ring")]
    for region, shows, any_marked in list(zip(ranked, showing, marked, strict=True))[:VIEWS]:
        truth = "shows it" if shows else "does not show it"
        caption = f"{region.score:.2f}, {truth}" + ("" if any_marked else ", nothing outlined")
        tiles.append(pictures.captioned(pictures.outlined(seen.frame(region.row).image, region.mask), caption))
    pairs = list(zip(showing, marked, strict=True))
    return Sheet(
        pictures.tiles(tiles),
        sum(showing),
        sum(showing[: sum(showing)]),
        sum(shows and any_marked for shows, any_marked in pairs),
        sum(any_marked and not shows for shows, any_marked in pairs),
    )


def views_of(spot: Spot, seen: SceneFeatures, count: int) -> list[int]:
    """The frame that the spot is asked for in, and others that show it, from points as far apart as there are."""
    rows = np.flatnonzero(spot.shown)
    eyes = np.array([seen.frame(int(row)).world_from_camera[:3, 3] for row in rows])
    chosen = [int(np.flatnonzero(rows == spot.row)[0])]
    while len(chosen) < min(count, len(rows)):
        away = np.linalg.norm(eyes[:, None] - eyes[chosen], axis=-1).min(axis=1)
        away[chosen] = -1
        chosen.append(int(away.argmax()))
    return [int(rows[each]) for each in chosen]


def colour_rows(kinds: Sequence[SceneFeatures], rows: Sequence[int]) -> list[list[Picture]]:
    """The views, and below them their features of the first scale as colours, one row for each kind of features."""
    images = [kinds[0].frame(row).image for row in rows]
    size = (WIDTH, round(WIDTH * images[0].shape[0] / images[0].shape[1]))
    drawn = [[resized(image, WIDTH) for image in images]]
    return drawn + [colours([seen.features[0, row] for row in rows], size) for seen in kinds]
