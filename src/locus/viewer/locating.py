"""An image localized in a map, as the page shows it: where its camera is, its matches as lines, and a sentence."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera, pose_error
from locus.pages.pictures import resized
from locus.scenes.reading import read_image
from locus.tasks.localize import Location, localize, localize_features
from locus.tasks.placed_points import query_points
from locus.viewer.picking import Screen
from locus.viewer.viewed import ViewedScene


@dataclass(frozen=True, eq=False)
class LocatedImage:
    """The answer for one image."""

    sentence: str
    image: UInt8[ndarray, "h w 3"]
    camera: Camera
    location: Location

    def lines(self, viewed: ViewedScene, scale: float) -> Float[ndarray, "n 2 3"]:
        """From each patch or keypoint of the image, hung before its camera, to the landmark or point that agrees."""
        assert viewed.world is not None
        assert self.location.world_from_camera is not None
        inliers = self.location.agreeing
        if (points := self.location.points) is not None:
            pixels, positions = points.pixel[inliers], points.position[inliers]
        else:
            matches = self.location.matches
            pixels, positions = matches.pixel[inliers], viewed.world.landmarks.position[matches.landmark[inliers]]
        screen = Screen.of(self.camera, self.location.world_from_camera, scale)
        starts = screen.points(pixels / [self.camera.width, self.camera.height])
        return np.stack([starts, positions], axis=1)


def locate_frame(viewed: ViewedScene, row: int) -> LocatedImage:
    """A frame of the scene, from its image and depth, and how far the answer is from its recorded pose."""
    assert viewed.world is not None
    frame = viewed.seen.frame(row)
    features = viewed.seen.features[:, row]
    placed = query_points(viewed.world, frame.image, features)
    location = localize_features(viewed.world, features, frame.camera, frame.depth, placed)
    sentence = _sentence(f"Frame {frame.name}", location)
    if location.world_from_camera is not None:
        metres, degrees = pose_error(location.world_from_camera, frame.world_from_camera)
        sentence += f" Off its recorded pose by {100 * metres:.1f} cm and {degrees:.1f}°."
    return LocatedImage(sentence, viewed.pictures[row], frame.camera, location)


def locate_image(viewed: ViewedScene, name: str, content: bytes) -> LocatedImage:
    """An image file from elsewhere, without depth; its lens is taken to be that of the scene's camera."""
    assert viewed.world is not None
    image = decoded(name, content)
    camera, assumed = assumed_camera(viewed.seen.frame(0).camera, image.shape[1], image.shape[0])
    location = localize(viewed.world, viewed.model, image, camera)
    small = resized(image, viewed.size[0])
    return LocatedImage(f"{_sentence(name, location)} {assumed}", small, camera, location)


def decoded(name: str, content: bytes) -> UInt8[ndarray, "h w 3"]:
    """An image from a file's bytes, upright."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "upload"
        file.write_bytes(content)
        try:
            return read_image(file, upright=True)
        except LocusError as error:
            raise LocusError(str(error).replace(str(file), name)) from None


def assumed_camera(scene: Camera, width: int, height: int) -> tuple[Camera, str]:
    """The camera of an image that comes without one, and what was assumed, in a sentence."""
    if abs(width * scene.height / (height * scene.width) - 1) < 0.01:
        return scene.resized(width, height), "It was taken to have the lens of the scene's camera."
    focal = max(width, height) * scene.fx / max(scene.width, scene.height)
    sentence = "It has another shape than the scene's images; it was taken to have the same angle of view, lengthwise."
    return Camera(width, height, focal, focal, width / 2, height / 2), sentence


def _sentence(what: str, location: Location) -> str:
    return f"{what} {'was taken' if location.here else 'is'} {location.sentence}."
