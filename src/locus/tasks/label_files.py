"""What `locus segment predict` writes: label maps, a map's landmarks by what they are, and pictures of both."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.files import atomic, write_json
from locus.geometry import upwards
from locus.landmarks import LandmarkMap
from locus.landmarks.map_files import ply
from locus.scenes import Scene
from locus.tasks import region_pictures as pictures
from locus.tasks.image_features import ImageFeatures
from locus.tasks.patch_labels import class_targets, labelled_frames, object_targets, same_names
from locus.tasks.probe import UNKNOWN, Probe
from locus.tasks.voting import probe_votes

Truth = Callable[[], Int[ndarray, "height width"]]


def truths_of(scene: Scene, probe: Probe) -> Mapping[str, Truth]:
    """Of each labelled frame the truth in the probe's ids, to be read when asked."""
    labelled = labelled_frames(scene)
    if not scene.classes or not len(labelled):
        return {}
    targets = object_targets(labelled) if probe.objects else class_targets(labelled)
    table = same_names(targets.classes, probe.classes)
    return {
        source.name: lambda index=index: table[targets.of(labelled[index])]
        for index, source in enumerate(labelled.sources)
    }


def write_classes(out: Path, probe: Probe) -> None:
    """classes.json: what the ids of label maps mean, and their colours."""
    colours = pictures.label_colours(probe.classes)
    listed = [
        {"id": label.id, "name": label.name, "kind": label.kind, "colour": colour.tolist()}
        for label, colour in zip(probe.classes, colours, strict=True)
    ]
    write_json(out / "classes.json", listed)


def write_labels(
    out: Path, view: ImageFeatures, probe: Probe, truth: Truth | None, least: float = UNKNOWN
) -> Int[ndarray, "height width"]:
    """labels/NAME.png, 16 bits, which are returned; and pictures/NAME.png: image, truth if there is one, prediction."""
    labels = probe.predict(view.features[probe.scale], view.size, least)
    pictures.write(out / "labels" / f"{view.image.name}.png", labels.astype(np.uint16))
    colours = pictures.label_colours(probe.classes)
    maps = [labels] if truth is None else [truth(), labels]
    captions = [view.image.name, *(["truth"] if truth is not None else []), "prediction"]
    image = view.image.read()
    drawn = [image, *(pictures.label_picture(image, each, colours) for each in maps)]
    width = min(max(image.shape[1], 240), 640)
    row = pictures.tiles([pictures.captioned(*each, width) for each in zip(drawn, captions, strict=True)], len(drawn))
    sheet = pictures.with_legend(row, probe.classes, np.stack(maps))
    pictures.write(out / "pictures" / f"{view.image.name}.png", sheet)
    return labels


def write_landmarks(
    out: Path, world: LandmarkMap, seen: SceneFeatures, probe: Probe, least: float = UNKNOWN
) -> tuple[int, int]:
    """The landmarks of a scene's environment, coloured by what its patches say they are; grey where that is unknown.

    Returns:
        How many landmarks have a label, and how many there are.
    """
    name = seen.scene.name
    environment = world.environment_number(name if name in world.environments else None)
    rows = np.flatnonzero(world.landmarks.environment == environment)
    spots = world.landmarks.take(rows)
    shares, patches = probe_votes(probe, seen, spots.position, spots.radius)
    labels = np.where((patches > 0) & (shares.max(axis=1) >= least), shares.argmax(axis=1) + 1, 0)
    grey = np.full((1, 3), 128, np.uint8)
    painted = np.concatenate([grey, pictures.label_colours(probe.classes)])[labels]
    with atomic(out / "landmarks.ply") as file:
        file.write_bytes(ply(replace(spots, colour=painted.astype(np.float32))))
    up = upwards(np.stack([seen.frame(row).world_from_camera for row in range(len(seen))]))
    drawn = pictures.points_picture(spots.position, painted, up)
    pictures.write(out / "landmarks.png", pictures.with_legend(drawn, probe.classes, labels))
    stated = [
        {"landmark": int(row), "label": int(label), "share": round(float(share), 4), "patches": int(count)}
        for row, label, share, count in zip(rows, labels, shares.max(axis=1), patches, strict=True)
    ]
    write_json(out / "landmarks.json", {"environment": world.environments[environment], "landmarks": stated})
    return int((labels > 0).sum()), len(rows)
