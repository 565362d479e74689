"""One spot of a house, chosen to be shown, and where else it is seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.features.viz import colours
from locus.landmarks import LandmarkMap
from locus.pages.pictures import Picture, resized, sheet
from locus.scenes.patches import patch_centres
from locus.tasks import cosegmentation
from locus.tasks.region_pictures import TILE, marked, outlined

SHARE = 0.1  # of the landmarks on things, those of most worth; of them, the one that most frames show is taken
VIEWS = 11  # shown, beside the query
WIDTH = 240  # pixels, of a view in colours


@dataclass(frozen=True)
class Spot:
    """A landmark, and the frame and pixel that are the query for it."""

    landmark: int
    what: str
    """The class of the thing it is on."""
    row: int
    """Of the query's frame in the house's features."""
    x: float
    y: float
    shown: Bool[ndarray, " frames"]
    """Frames that show it, by depth and poses."""


def choose(world: LandmarkMap, seen: SceneFeatures) -> Spot:
    """A landmark on a thing, of high worth, that many frames show; the query is the frame where it is most central."""
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
class SpotViews:
    """The views of a house ranked by similarity to a spot, each with the region that is similar."""

    spot: Spot
    pictures: list[tuple[str, Picture]]
    """The query and the first views, each with a caption."""
    shows: Bool[ndarray, " others"]
    """Of the views other than the query, the most similar first: whether each truly shows the spot."""
    outlined: Bool[ndarray, " others"]
    """Whether something is outlined in each."""

    @property
    def showing(self) -> int:
        return int(self.shows.sum())

    @property
    def first(self) -> int:
        """How many of the views that show the spot are among as many that are ranked first."""
        return int(self.shows[: self.showing].sum())

    def outlined_where(self, shows: bool) -> int:
        """In how many of the views that show the spot, or do not, something is outlined."""
        return int(self.outlined[self.shows == shows].sum())


def cosegment(spot: Spot, seen: SceneFeatures, scale: int) -> SpotViews:
    """Look for the spot in all other views by its feature, and compare with where it truly is."""
    query = seen.frame(spot.row)
    size = (query.camera.width, query.camera.height)
    feature = cosegmentation.feature_at(seen.features[scale, spot.row], spot.x, spot.y, size)
    regions = cosegmentation.cosegment(feature, seen, scale=scale)
    ranked = cosegmentation.best_first([region for region in regions if region.row != spot.row])
    shows, found = spot.shown[[r.row for r in ranked]], np.array([r.mask.any() for r in ranked], bool)
    pictures = [("The query: the spot in the ring", resized(marked(query.image, spot.x, spot.y), TILE))]
    for region, visible, any_found in list(zip(ranked, shows, found, strict=True))[:VIEWS]:
        caption = f"{region.score:.2f}: {'shows' if visible else 'does not show'} the spot"
        caption += "" if any_found else "; nothing outlined"
        pictures.append((caption, resized(outlined(seen.frame(region.row).image, region.mask), TILE)))
    return SpotViews(spot, pictures, shows, found)


def views_of(spot: Spot, seen: SceneFeatures, count: int) -> list[int]:
    """The query's frame, and others that show the spot, from points as far apart as there are."""
    rows = np.flatnonzero(spot.shown)
    eyes = np.array([seen.frame(int(row)).world_from_camera[:3, 3] for row in rows])
    chosen = [int(np.flatnonzero(rows == spot.row)[0])]
    while len(chosen) < min(count, len(rows)):
        away = np.linalg.norm(eyes[:, None] - eyes[chosen], axis=-1).min(axis=1)
        away[chosen] = -1
        chosen.append(int(away.argmax()))
    return [int(rows[each]) for each in chosen]


def colour_sheet(kinds: Sequence[SceneFeatures], rows: Sequence[int]) -> Picture:
    """The views, and below them their features of the first scale as colours, one row for each kind of features."""
    images = [resized(kinds[0].frame(row).image, WIDTH) for row in rows]
    size = (WIDTH, images[0].shape[0])
    return sheet([images, *(colours([seen.features[0, row] for row in rows], size) for seen in kinds)])
