"""LandmarkMap: sparse landmarks of one or several environments, each a spot that its features tell from all others."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy import ndarray
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures, StreamedFeatures, streamed_features
from locus.keypoints.fusion import point_scales
from locus.landmarks.arrays import Frames, Landmarks
from locus.landmarks.chance import with_chance_raised
from locus.landmarks.coarse_depth import coarse_depth, coarse_kinds
from locus.landmarks.describe import VIEWS, views
from locus.landmarks.growing import best, grown, looked_for
from locus.landmarks.observations import ObservedWindows
from locus.landmarks.points import MapPoints, for_frames, points_room
from locus.landmarks.points import joined as joined_points
from locus.landmarks.search import Index
from locus.model import LoCUS
from locus.rows import joined
from locus.scenes import Frame, Scene
from locus.scenes.inspection import doubt
from locus.scenes.reading import AnyImage

if TYPE_CHECKING:
    from locus.geometry import Camera
    from locus.keypoints import Detector
    from locus.tasks.localize import Location


class MapError(LocusError):
    """A map that cannot be made, read, or used with these features."""


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """Landmarks at every scale of a model. Maps do not change: `add`, `update` and `merge` return new ones."""

    landmarks: Landmarks
    frames: Frames
    sightings: csr_matrix
    """(frames, landmarks): how many patches of a frame show a landmark: lie within the radius of its position."""
    frame_names: tuple[str, ...]
    environments: tuple[str, ...]
    classes: tuple[str, ...]
    radii: tuple[float, ...]
    model: str
    """Fingerprint of the model whose features these are."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """What it was made from."""
    points: MapPoints | None = None
    """Keypoints of the frames, which make poses exact; None if it has none."""

    def __len__(self) -> int:
        return len(self.landmarks)

    @classmethod
    def empty(cls, model: LoCUS, environment: str) -> "LandmarkMap":
        """A map of an environment of which no frame has come yet."""
        return cls(
            landmarks=Landmarks.none(model.dimension),
            frames=Frames.none(len(model.radii)),
            sightings=csr_matrix((0, 0), dtype=np.int32),
            frame_names=(),
            environments=(environment,),
            classes=(),
            radii=model.radii,
            model=model.fingerprint,
            provenance={"model": model.name, "source": model.source, "scenes": []},
        )

    @classmethod
    def build(
        cls,
        model: LoCUS,
        scene: Scene | SceneFeatures,
        *,
        most: int | None = None,
        detector: "Detector | None" = None,
        cache: Path | None = None,
        progress: bool = False,
    ) -> "LandmarkMap":
        """The map of a posed RGB-D scene, whose name becomes the environment's, or of its features if they are known.

        Of each scale the best landmarks are kept, `most` at most; by default all that are a radius apart. The
        backbone's tokens are kept in `cache`, by default with all others. With a `detector` the map also has points:
        use `locus.tasks.placed_points.point_detector()`, which localization uses too.
        """
        name = scene.scene.name if isinstance(scene, SceneFeatures) else scene.name
        empty = cls.empty(model, name)
        built = empty.add(model, scene, most=most, detector=detector, cache=cache, progress=progress)
        if not len(built):
            raise MapError(f"no spot of {name} is seen by {VIEWS} frames, so it has no landmarks")
        return built

    def add(
        self,
        model: LoCUS,
        scene: Scene | SceneFeatures,
        *,
        environment: str | None = None,
        most: int | None = None,
        detector: "Detector | None" = None,
        cache: Path | None = None,
        progress: bool = False,
    ) -> "LandmarkMap":
        """The map with more frames of one of its environments, in the same world, without building it again.

        What the frames show of the map's landmarks is added to them; spots that have no landmark yet get their own,
        chosen among the new frames alone, `most` at most of each scale. `model` is the one the map was made with; by
        default the map has one `environment` only. With a `detector`, the new frames get points. A scene of more than
        `locus.features.dense.WINDOW` frames is gone through in windows of so many, so that memory does not grow with
        its features; landmarks are then chosen window by window.
        """
        self.check(model)
        number = self.environment_number(environment)
        if isinstance(scene, Scene) and (why := doubt(scene)):
            warnings.warn(f"{scene.name}: {why}", stacklevel=2)
        seen = _features(model, scene, cache, progress)
        names = tuple(seen.scene.sources[index].name for index in seen.indices)
        self.check_new(number, names)
        classes = tuple(dict.fromkeys([*self.classes, *(label.name for label in seen.scene.classes)]))
        if not np.isfinite(seen.points).all(axis=-1).any():
            raise MapError(f"{seen.scene.name} has no patch with valid depth, so nothing can be put on a map")
        votes = np.pad(self.landmarks.votes, ((0, 0), (0, len(classes) - len(self.classes))))
        landmarks = replace(self.landmarks, votes=votes)
        windows = ObservedWindows(seen, classes, progress)
        for window, found in windows:
            landmarks = grown(landmarks, number, model, window, found, most, len(window) / len(seen), progress)
        landmarks = best(landmarks, len(self), most)
        before = csr_matrix(self.sightings, shape=(len(self.frames), len(self)), copy=True)
        before.resize(len(self.frames), len(landmarks))
        sightings, chance, points, kinds = [before], [], [], []
        for window, found in windows:
            kinds += [coarse_kinds(window, row) for row in range(len(window))]
            now, level = looked_for(landmarks, number, self.radii, window, found)
            sightings.append(now)
            chance.append(level)
            if detector is not None:
                scales, room = point_scales(self.radii), points_room(len(seen))
                points.append(MapPoints.of_scene(window, detector, scales, room, progress))
        sightings = csr_matrix(vstack(sightings))
        taken = map(seen.frame, range(len(seen)))
        pose, surface, lens = zip(*((each.world_from_camera, *coarse_depth(each)) for each in taken), strict=True)
        frames = Frames(
            environment=np.full(len(seen), number, np.int32),
            world_from_camera=np.stack(pose),
            chance=np.concatenate(chance),
            surface=np.stack(surface),
            lens=np.stack(lens),
            kind=np.stack(kinds),
        )
        of_frames = joined_points(points) if points else None
        made_from = {"scene": seen.scene.name, "format": seen.scene.format, "frames": len(seen)}
        made_from["points"] = 0 if of_frames is None else int(of_frames.count.sum())
        added = replace(
            self,
            landmarks=replace(landmarks, views=views(sightings)),
            frames=joined([self.frames, frames]),
            sightings=sightings,
            frame_names=(*self.frame_names, *names),
            classes=classes,
            provenance={**self.provenance, "scenes": [*self.provenance.get("scenes", []), made_from]},
            points=for_frames([(len(self.frames), self.points), (len(frames), of_frames)]),
        )
        return with_chance_raised(added, self.environments[number], [self])

    def update(
        self, model: LoCUS, frames: Iterable[Frame] | SceneFeatures, *, detector: "Detector | None" = None
    ) -> "LandmarkMap":
        """The map of one environment with frames that come one by one, in the same world.

        Unlike `add`, no frame has to wait for the others, and the cost of each does not grow with the map. To have the
        map, or its loop closures, while frames still come: `locus.landmarks.GrowingMap`.
        """
        from locus.landmarks.growing_map import GrowingMap

        growing = GrowingMap(self, model, detector)
        growing.update(frames)
        return growing.map()

    def check(self, model: LoCUS) -> None:
        """Refuse a model whose features are not this map's."""
        if model.fingerprint != self.model:
            raise MapError(
                f"the map was made with {self.provenance.get('model', 'a model')} ({self.model}), but the model is "
                f"{model.name} ({model.fingerprint}): their features mean different things; build the map again"
            )

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the scenes that it was made from, as far as they are known, each with the environment that it shows."""
        return dict(self.provenance.get("fingerprints", {}))

    def with_fingerprint(self, scene: str, environment: str) -> "LandmarkMap":
        """The map that knows one more of them."""
        return replace(self, provenance={**self.provenance, "fingerprints": {**self.fingerprints, scene: environment}})

    def check_new(self, environment: int, names: Sequence[str]) -> None:
        """Refuse frames of an environment that the map has already: what they show would count twice."""
        here = {name for name, of in zip(self.frame_names, self.frames.environment, strict=True) if of == environment}
        if twice := sorted(here.intersection(names)):
            raise MapError(f"{len(twice)} of the frames are in the map already, {twice[0]} for one")

    def environment_number(self, name: str | None) -> int:
        """The number of an environment of the map, of the only one if no name is given."""
        if name is None and len(self.environments) == 1:
            return 0
        if name not in self.environments:
            asked = "name the environment" if name is None else f"there is no environment {name}"
            raise MapError(f"{asked}: the map has {', '.join(self.environments)}")
        return self.environments.index(name)

    def environment(self, number: int) -> "LandmarkMap":
        """The map of one of the environments alone."""
        if len(self.environments) == 1:
            return self
        if number not in self._alone:
            rows = np.flatnonzero(self.landmarks.environment == number)
            frames = np.flatnonzero(self.frames.environment == number)
            only = replace(
                self,
                landmarks=replace(self.landmarks.take(rows), environment=np.zeros(len(rows), np.int32)),
                frames=replace(self.frames.take(frames), environment=np.zeros(len(frames), np.int32)),
                sightings=self.sightings[frames][:, rows],
                frame_names=tuple(self.frame_names[frame] for frame in frames),
                environments=(self.environments[number],),
                points=None if self.points is None else self.points.take(frames),
            )
            self._alone[number] = only
        return self._alone[number]

    @cached_property
    def _alone(self) -> dict[int, "LandmarkMap"]:
        return {}

    def search(
        self, features: Float[Tensor, "q c"] | Float32[ndarray, "q c"], k: int = 1, scale: int = 0
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """The landmarks of a scale most similar to each feature: similarity (cosine) and row in the map, best first."""
        if not 0 <= scale < len(self.radii):
            raise MapError(f"the map has scales 0 to {len(self.radii) - 1}, not {scale}")
        values = features.detach().float().cpu().numpy() if isinstance(features, Tensor) else features
        if values.ndim != 2 or values.shape[1] != self.landmarks.mean.shape[1]:
            raise MapError(f"features must be rows of {self.landmarks.mean.shape[1]}, not of shape {values.shape}")
        rows, index = self._indices[scale]
        scores, found = index.search(values, k)
        return scores, rows[found]

    @cached_property
    def _indices(self) -> list[tuple[Int64[ndarray, " n"], Index]]:
        """For each scale the landmarks' rows and their embeddings, ready to be searched."""
        embedding = self.landmarks.embedding
        rows = [np.flatnonzero(self.landmarks.scale == scale) for scale in range(len(self.radii))]
        return [(of_scale, Index(embedding[of_scale])) for of_scale in rows]

    def localize(
        self,
        model: LoCUS,
        image: AnyImage,
        camera: "Camera",
        depth: Float32[ndarray, "height width"] | None = None,
    ) -> "Location":
        """Where an image was taken; see `locus.tasks.localize.localize`."""
        from locus.tasks.localize import localize

        return localize(self, model, image, camera, depth)

    def save(self, folder: str | Path) -> Path:
        """Write the map to a folder; see `locus.landmarks.map_files`."""
        from locus.landmarks.map_files import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "LandmarkMap":
        """A map from its folder."""
        from locus.landmarks.map_files import load

        return load(Path(folder))


def _features(
    model: LoCUS, scene: Scene | SceneFeatures, cache: Path | None, progress: bool
) -> SceneFeatures | StreamedFeatures:
    if isinstance(scene, SceneFeatures):
        return scene
    streamed = streamed_features(model, scene, cache, progress=progress)
    return streamed if streamed.long else streamed.part(slice(0, len(streamed)), progress)
