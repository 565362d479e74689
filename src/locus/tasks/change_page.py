"""The page that `locus changes` writes: each change with pictures from before and after, and all of them from above."""

from pathlib import Path

import cv2
import numpy as np

from locus import pages
from locus.geometry import invert, transform, upwards
from locus.landmarks import LandmarkMap
from locus.pages.pictures import Picture, resized
from locus.scenes import Frame, Scene
from locus.tasks.changed_surfaces import ChangedSurface
from locus.tasks.region_pictures import outlined
from locus.tasks.seen_through import surface_points
from locus.tasks.session_changes import Change, SessionChanges

GONE, NEW = (200, 30, 30), (20, 150, 60)
WIDTH = 300
AROUND, CLOSEST = 3.0, 0.4  # a picture shows so many times a thing's size, and at least so much of its frame
PLAN = 720  # pixels across
PAPER = 250

Captioned = tuple[str, Picture]


def write_page(found: SessionChanges, session: Scene, earlier: Scene | None, path: Path) -> Path:
    """Write the page to `path`, whole or not at all. `earlier` is the scene that the map was made from, if it is known.

    Its frames are known by their names; those that it lacks are not shown.
    """
    return pages.write(
        path,
        "changes",
        environment=found.world.environments[0],
        session=session.name,
        sentence=found.sentence,
        alignment="" if found.aligned is None else f"{session.name} was recorded {found.aligned.sentence}.",
        plan=plan_picture(found),
        earlier=earlier is not None,
        changes=[
            (row, _pictures(found, change, session, earlier))
            for row, change in zip(found.rows(), found.changes, strict=True)
        ],
    )


def _pictures(found: SessionChanges, change: Change, session: Scene, earlier: Scene | None) -> list[Captioned]:
    """Where it was and where it is: on the earlier visit, if there are pictures of it, and on the later one."""
    shown: list[Captioned | None] = []
    if change.before is not None:
        then, now = change.before.shown_by, change.before.missed_by
        shown += [
            _picture("Before: here it was", found.world, then, earlier, change.before, GONE),
            _picture("Now: it is not here", found.later, now, session, change.before, GONE),
        ]
    if change.after is not None:
        then, now = change.after.missed_by, change.after.shown_by
        shown += [
            _picture("Before: it was not here", found.world, then, earlier, change.after, NEW),
            _picture("Now: here it is", found.later, now, session, change.after, NEW),
        ]
    return [each for each in shown if each is not None]


def _picture(
    words: str,
    world: LandmarkMap,
    rows: np.ndarray,
    scene: Scene | None,
    surface: ChangedSurface,
    colour: tuple[int, int, int],
) -> Captioned | None:
    """The best frame of those that can be found, with the surface drawn where it is, or was."""
    if scene is None:
        return None
    places = {source.name: index for index, source in enumerate(scene.sources)}
    for row in rows:
        name = world.frame_names[row].removeprefix(f"{scene.name}/")
        if name in places:
            frame = scene[places[name]]
            return f"{words} ({name})", _drawn(frame, world.frames.world_from_camera[row], surface, colour)
    return None


def _drawn(
    frame: Frame, world_from_camera: np.ndarray, surface: ChangedSurface, colour: tuple[int, int, int]
) -> Picture:
    """The part of a frame around a surface, with its outline."""
    image, size = frame.image, np.array([frame.camera.width, frame.camera.height])
    pixels, z = frame.camera.project(transform(invert(world_from_camera), surface.points))
    spots = pixels[z > 0].clip(0, size).astype(np.float32)
    mask = cv2.fillConvexPoly(np.zeros(image.shape[:2], np.uint8), cv2.convexHull(spots).astype(np.int32), 1)
    mask = cv2.dilate(mask, np.ones((5, 5)))
    low, high = spots.min(axis=0), spots.max(axis=0)
    share = np.clip(AROUND * ((high - low) / size).max(), CLOSEST, 1.0)
    start = ((low + high) / 2 - share * size / 2).clip(0, (1 - share) * size).astype(int)
    stop = start + (share * size).astype(int)
    part = np.s_[start[1] : stop[1], start[0] : stop[0]]
    picture = resized(image[part], WIDTH)
    grown = cv2.resize(mask[part], picture.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return outlined(picture, grown > 0, colour, 0.15)


def plan_picture(found: SessionChanges) -> Picture:
    """All surfaces from above in grey, what is gone red, what is new green, and arrows for what has moved."""
    up = upwards(found.world.frames.world_from_camera)
    right = np.cross(up, np.eye(3)[np.abs(up).argmin()])
    axes = np.stack([right / np.linalg.norm(right), np.cross(up, right / np.linalg.norm(right))])
    points = np.concatenate([surface_points(world.frames) for world in (found.world, found.later)])
    extent = np.ptp(np.percentile(points @ axes.T, (0.5, 99.5), axis=0), axis=0)
    if extent[1] > extent[0]:  # the longer side lies across
        axes = np.stack([axes[1], -axes[0]])
    spots = points @ axes.T
    low, high = np.percentile(spots, (0.5, 99.5), axis=0)
    scale = PLAN / (high - low).max()
    size = ((high - low) * scale).astype(int) + 1

    def at(points: np.ndarray) -> np.ndarray:
        return ((points - low) * [1, -1] * scale + [0, size[1]]).astype(np.int32)

    counts = np.zeros((size[1], size[0]), np.float32)
    x, y = at(spots).T
    inside = (x >= 0) & (x < size[0]) & (y >= 0) & (y < size[1])
    np.add.at(counts, (y[inside], x[inside]), 1)
    counts = cv2.GaussianBlur(counts, (0, 0), 0.03 * scale)
    grey = PAPER * (1 - 0.6 * (counts / max(np.percentile(counts, 99), 1e-9)).clip(0, 1))
    picture = np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1)
    for number, change in enumerate(found.changes, 1):
        for surface, colour in ((change.before, GONE), (change.after, NEW)):
            if surface is not None:
                hull = cv2.convexHull(at(surface.points @ axes.T))
                cv2.fillConvexPoly(picture, hull, colour, cv2.LINE_AA)
                cv2.polylines(picture, [hull], True, colour, 4, cv2.LINE_AA)
                corner = (hull[:, 0].max(axis=0) + 4).tolist()
                cv2.putText(picture, str(number), corner, cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, 2, cv2.LINE_AA)
        if change.before is not None and change.after is not None:
            a, b = (at(surface.points.mean(axis=0) @ axes.T) for surface in (change.before, change.after))
            cv2.arrowedLine(picture, a.tolist(), b.tolist(), (20, 20, 20), 2, cv2.LINE_AA, tipLength=0.08)
    return picture
