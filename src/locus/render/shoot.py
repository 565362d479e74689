"""A shoot: a lit mesh, cameras and their poses; taking the pictures, lazily or ahead on two threads."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Float32, Int32, UInt8

from locus.geometry import Camera
from locus.render.camera_settings import CameraSettings
from locus.render.camera_view import SeenSurfaces, render_view
from locus.render.cameras import Eyes, Ground, lens, panorama, walk
from locus.render.handheld import handheld
from locus.render.lit_mesh import LitMesh
from locus.render.sensor import photograph, snapshot, structured_light
from locus.scenes.scene import Convention, Frame, LabelClass, Scene
from locus.scenes.source import Source
from locus.threads import in_order

CONVENTION = Convention(depth_scale=1.0)
AHEAD = 4
"""Frames rendered ahead of the one asked for; memory holds no more."""


@dataclass(frozen=True, eq=False)
class Shot(SeenSurfaces):
    """One picture with its depth and labels."""

    image: UInt8[np.ndarray, "h w 3"]


class Shoot:
    """Takes the picture of any of its poses. The same number always gives the same picture."""

    def __init__(
        self,
        lit: LitMesh,
        cameras: Sequence[Camera],
        poses: Sequence[Float[np.ndarray, "4 4"]],
        settings: CameraSettings,
        seed: int,
        labelled: bool,
    ) -> None:
        self.cameras, self.poses, self.labelled = cameras, poses, labelled
        self._lit, self._settings, self._seed = lit, settings, seed
        # Kept for a while: image, depth and labels of a frame are asked for one after the other.
        self.recent = lru_cache(AHEAD)(self.take)

    def take(self, number: int) -> Shot:
        """Render one picture."""
        rng = np.random.default_rng([self._seed, 7, number])
        seen = render_view(self._lit, self.cameras[number], self.poses[number], rng)
        image = (snapshot if self._settings.path == "handheld" else photograph)(seen.radiance, rng)
        depth = structured_light(seen.depth, rng) if self._settings.depth_noise else seen.depth
        return Shot(depth, seen.semantic, seen.instance, image)

    def scene(self, name: str, form: str, classes: Sequence[LabelClass]) -> Scene:
        """A scene whose frames are rendered when they are looked at."""
        sources = [RenderedSource(f"{number:05d}", self, number) for number in range(len(self.poses))]
        return Scene(name, form, sources, CONVENTION, classes)

    def frames(self, classes: Sequence[LabelClass]) -> Generator[Frame, None, None]:
        """All frames in order, rendered ahead on two threads; each can be forgotten before the next."""
        # Closed when interrupted: what has not begun is not begun.
        with closing(in_order(self.take, range(len(self.poses)), workers=2, ahead=AHEAD)) as shots:
            for number, shot in enumerate(shots):
                yield Frame(RenderedSource(f"{number:05d}", self, number, shot), CONVENTION, classes)


def plan_shoot(
    lit: LitMesh,
    things: Bool[np.ndarray, " classes"],
    ground: Ground,
    order: Sequence[int],
    settings: CameraSettings,
    degrees: float,
    rng: np.random.Generator,
    seed: int,
    labelled: bool,
) -> Shoot:
    """Cameras on free ground, `degrees` wide unless hand-held; `things` says of each class whether it is a thing,
    worth looking at, and `order` which areas of the ground are visited first."""
    camera = lens(settings.size, degrees)
    eyes = Eyes(lit.tracer, lit.mesh, things, camera)
    if settings.path == "handheld":
        cameras, poses = handheld(ground, eyes, order, settings.frames, rng)
    else:
        poses = (panorama if settings.path == "panorama" else walk)(ground, eyes, order, settings.frames, rng)
        cameras = [camera] * len(poses)
    return Shoot(lit, cameras, poses, settings, seed, labelled)


@dataclass(frozen=True, eq=False)
class RenderedSource(Source):
    """A frame of a shoot; rendered when first asked for, unless its picture has been taken already."""

    shoot: Shoot = field(repr=False)
    number: int
    shot: Shot | None = field(default=None, repr=False)

    def _picture(self) -> Shot:
        return self.shot or self.shoot.recent(self.number)

    def image(self) -> UInt8[np.ndarray, "h w 3"]:
        return self._picture().image

    def image_size(self) -> tuple[int, int]:
        camera = self.camera()
        return camera.width, camera.height

    def depth(self) -> Float32[np.ndarray, "h w"]:
        return self._picture().depth.copy()

    def camera(self) -> Camera:
        return self.shoot.cameras[self.number]

    def pose(self) -> Float[np.ndarray, "4 4"]:
        return self.shoot.poses[self.number]

    def semantic(self) -> Int32[np.ndarray, "h w"] | None:
        return self._picture().semantic if self.shoot.labelled else None

    def instance(self) -> Int32[np.ndarray, "h w"] | None:
        return self._picture().instance if self.shoot.labelled else None
