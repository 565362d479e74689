"""Depth for posed colour: from the points that a scene comes with, or else from its images alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera, invert, transform
from locus.keypoints.fusion import PlacedKeypoints, point_scales
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.visibility import read_frames
from locus.tasks.depth_surfaces import Spots, on_surfaces
from locus.tasks.placed_points import placed_points, point_matcher
from locus.tasks.triangulation import Sightings, sighted, triangulate
from locus.tasks.view_partners import ANGLES, view_partners

PARTNERS = 8  # frames that each is matched with
PIXELS = 2.0  # that a keypoint may be off in an image whose shorter side is 480 pixels
AGREE = 0.1  # of the keypoints that have a match, at least: about 0.5 do, and 0.01 if the poses are wrong


def with_depth(model: LoCUS, scene: Scene, progress: bool = False) -> Scene:
    """The scene with depth: of its own points if it comes with some, else by triangulation, which the model helps.

    Frames that cannot be read are left out with a warning.
    """
    if any(frame.points is not None for frame in scene):
        spots = dict(read_frames(scene, shown_points, _any_size))
        part = _part(scene, list(spots))
        found = on_surfaces(part, list(spots.values()))
    else:
        scales, placed = point_scales(model.radii), {}
        for index, (image, _) in track(read_frames(scene, _read, _any_size), "keypoints", len(scene), progress):
            placed[index] = placed_points(image, model.features(image).cpu()[scales])
        part = _part(scene, list(placed))
        found = on_surfaces(part, triangulated(part, list(placed.values()), progress))
    if not any(frame.depth.any() for frame in found):
        raise LocusError(f"{scene.name} has too few spots of known depth beside each other to tell a surface by")
    return found


def _any_size(camera: Camera) -> None:
    """Frames need not be of one size."""


def _read(frame: Frame) -> tuple[UInt8[ndarray, "h w 3"], Float[ndarray, "4 4"]]:
    """Both must be there for a frame to be used."""
    return frame.image, frame.world_from_camera


def _part(scene: Scene, indices: Sequence[int]) -> Scene:
    return replace(scene, sources=[scene.sources[index] for index in indices])


def shown_points(frame: Frame) -> Spots:
    """The points that the scene's own model says the frame shows."""
    points = np.zeros((0, 3)) if frame.points is None else frame.points
    pixels, z = frame.camera.project(transform(invert(frame.world_from_camera), points))
    return Spots(pixels[z > 0], 1 / z[z > 0])


def triangulated(scene: Scene, placed: Sequence[PlacedKeypoints], progress: bool = False) -> list[Spots]:
    """The keypoints of each frame that others show too, from the poses and matches of all."""
    frames, name = list(scene), scene.name
    pairs = view_partners(frames, PARTNERS)
    if not pairs:
        raise LocusError(
            f"no two frames of {name} see the same spots from directions {ANGLES[0]:g}° to {ANGLES[1]:g}° apart, so "
            "their depth cannot be found; move the camera sideways, do not only turn it"
        )
    sightings: list[list[Sightings]] = [[] for _ in frames]
    for a, b in track(pairs, "matching", len(pairs), progress):
        rows, _ = point_matcher().match(placed[a], placed[b])
        for (here, own), (there, other) in (((a, rows[:, 0]), (b, rows[:, 1])), ((b, rows[:, 1]), (a, rows[:, 0]))):
            other_from_camera = invert(frames[there].world_from_camera) @ frames[here].world_from_camera
            pixels = placed[here].keypoints.pixels[own], placed[there].keypoints.pixels[other]
            cameras = frames[here].camera, frames[there].camera
            sightings[here].append(sighted(own, *pixels, *cameras, other_from_camera))
    spots = [_spots(*each) for each in zip(frames, placed, sightings, strict=True)]
    matched = sum(len(np.unique(np.concatenate([part.keypoint for part in each]))) for each in sightings if each)
    placed_right = sum(len(each.inverse) for each in spots)
    if placed_right <= AGREE * matched:
        raise LocusError(
            f"of {matched} matched keypoints of {name}, {placed_right} are where the poses say; the poses are wrong "
            "(try --pose or --axes), or the images have too little texture"
        )
    return spots


def _spots(frame: Frame, placed: PlacedKeypoints, sightings: Sequence[Sightings]) -> Spots:
    pixels = placed.keypoints.pixels
    if not sightings:
        return Spots(pixels[:0], np.zeros(0))
    camera = frame.camera
    error = PIXELS * min(camera.width, camera.height) / 480 / np.sqrt(camera.fx * camera.fy)
    together = Sightings(*(np.concatenate(parts) for parts in zip(*sightings, strict=True)))
    inverse = triangulate(together, len(pixels), error, np.radians(ANGLES[0]))
    known = np.isfinite(inverse)
    return Spots(pixels[known], inverse[known])
