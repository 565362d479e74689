"""All that the page shows of one scene, as arrays: points, small images, features, landmarks."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures, scene_features
from locus.landmarks import LandmarkMap, MapError
from locus.landmarks.arrays import Landmarks
from locus.model import LoCUS
from locus.scenes import Scene
from locus.tasks.cosegmentation import feature_at
from locus.tasks.placed_points import detector_or_reason
from locus.viewer.cloud import Cloud, gather
from locus.viewer.picking import Hit

LEFT_OUT = 10  # a map that the viewer builds leaves out one frame in so many, to be localized


@dataclass(frozen=True, eq=False)
class ViewedScene:
    """A scene, what a model sees of it, and its map."""

    model: LoCUS
    seen: SceneFeatures
    pictures: UInt8[ndarray, "frames h w 3"]
    cloud: Cloud
    world: LandmarkMap | None
    """Of this environment alone; None where there is none."""
    about_map: str
    """A sentence: where the map is from, or why there is none."""

    @classmethod
    def open(
        cls,
        model: LoCUS,
        scene: Scene,
        world: LandmarkMap | None = None,
        cache: Path | None = None,
        *,
        progress: bool = False,
    ) -> "ViewedScene":
        """Without a map one is built, in memory, of nine in ten frames; where that cannot be, the page has none."""
        if world is not None:
            world.check(model)
            # The only environment may have another name, which `warning` says; of several, one must be this scene's.
            world = world.environment(0 if len(world.environments) == 1 else world.environment_number(scene.name))
        seen = scene_features(model, scene, cache, progress=progress)
        pictures, cloud = gather(seen, progress=progress)
        if world is not None:
            about = f"the map given, of {world.environments[0]}"
        else:
            rows = [row for row in range(len(seen)) if row % LEFT_OUT != LEFT_OUT // 2]
            about = f"a map built for this page from {len(rows)} of {len(seen)} frames; the others can be localized"
            detector, lacking = detector_or_reason()
            about += f", {lacking}" if lacking else ""
            try:
                world = LandmarkMap.build(model, seen.take(rows), detector=detector, progress=progress)
            except MapError as error:
                about = f"no map, so no landmarks and nothing to localize in: {error}"
        return cls(model, seen, pictures, cloud, world, about)

    @property
    def warning(self) -> str:
        """Two sentences where the map may be of another environment; else empty."""
        name = self.seen.scene.name
        if self.world is None or self.world.environments == (name,):
            return ""
        return (
            f"The map given is of {self.world.environments[0]}, and this scene is {name}. If these are two "
            "environments, not two names of one, the landmarks do not belong here and nothing is found among them."
        )

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the small images."""
        return self.pictures.shape[2], self.pictures.shape[1]

    @property
    def classes(self) -> tuple[str, ...]:
        return () if self.world is None else self.world.classes

    @property
    def names(self) -> list[str]:
        """Of the frames."""
        return [self.seen.scene.sources[index].name for index in self.seen.indices]

    def row(self, index: int) -> int:
        """Of a frame, by its number in the scene."""
        if index not in self.seen.indices:
            raise LocusError(f"frame {self.seen.scene.sources[index].name} could not be read; open the page at another")
        return self.seen.indices.index(index)

    @property
    def left_out(self) -> list[int]:
        """Rows of the frames that the map was not made from."""
        known = set() if self.world is None else set(self.world.frame_names)
        return [row for row, name in enumerate(self.names) if name not in known]

    def landmarks(self, scale: int) -> Landmarks:
        """Those of one scale."""
        if self.world is None:
            return Landmarks.none(self.model.dimension)
        return self.world.landmarks.take(np.flatnonzero(self.world.landmarks.scale == scale))

    def query(self, hit: Hit, scale: int) -> Float[Tensor, " c"]:
        """The feature of what was clicked: `hit.index` is a frame's row, a landmark of the scale, or a point."""
        if hit.kind == "landmark":
            return torch.from_numpy(self.landmarks(scale).embedding[hit.index])
        width, height = self.size
        if hit.kind == "image":
            assert hit.at is not None
            row, x, y = hit.index, hit.at[0] * width, hit.at[1] * height
        else:
            row, pixel = int(self.cloud.frame[hit.index]), int(self.cloud.pixel[hit.index])
            x, y = pixel % width + 0.5, pixel // width + 0.5
        return feature_at(self.seen.features[scale, row], x, y, self.size)

    def described(self, hit: Hit, scale: int) -> str:
        """What was clicked, in words."""
        if hit.kind == "landmark":
            landmarks = self.landmarks(scale)
            label = int(landmarks.label[hit.index])
            words = [f"Landmark {hit.index}", f"score {landmarks.score[hit.index]:.2f}"]
            words += [f"seen in {landmarks.views[hit.index]} frames"]
            return ", ".join([*words, *([self.classes[label]] if label >= 0 else [])])
        if hit.kind == "image":
            assert hit.at is not None
            camera = self.seen.frame(hit.index).camera
            x, y = hit.at[0] * camera.width, hit.at[1] * camera.height
            return f"Pixel ({x:.0f}, {y:.0f}) of frame {self.names[hit.index]}"
        x, y, z = self.cloud.points[hit.index]
        return f"Point ({x:.2f}, {y:.2f}, {z:.2f}) m, from frame {self.names[int(self.cloud.frame[hit.index])]}"
