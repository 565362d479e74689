"""A map's landmarks coloured by what a probe says they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from locus.features.dense import SceneFeatures
from locus.files import atomic, write_json
from locus.landmarks import LandmarkMap
from locus.landmarks.arrays import take
from locus.landmarks.map_files import ply
from locus.tasks import region_pictures as pictures
from locus.tasks.probe import Probe
from locus.tasks.voting import probe_votes


def write_landmarks(out: Path, world: LandmarkMap, seen: SceneFeatures, probe: Probe) -> tuple[int, int]:
    """The landmarks of a scene's environment, coloured by what its patches say they are; grey where none is near.

    Returns:
        How many landmarks have a label, and how many there are.
    """
    name = seen.scene.name
    environment = world.environment_number(name if name in world.environments else None)
    rows = np.flatnonzero(world.landmarks.environment == environment)
    spots = take(world.landmarks, rows)
    shares, patches = probe_votes(probe, seen, spots.position, spots.radius)
    labels = np.where(patches > 0, shares.argmax(axis=1) + 1, 0)
    colours = pictures.label_colours(probe.classes)
    painted = np.concatenate([np.full((1, 3), 128, np.uint8), colours])[labels]
    with atomic(out / "landmarks.ply") as file:
        file.write_bytes(ply(replace(spots, colour=painted.astype(np.float32))))
    up = -np.mean([seen.frame(row).world_from_camera[:3, 1] for row in range(len(seen))], axis=0)
    drawn = pictures.points_picture(spots.position, painted, up)
    names = [label for label in probe.classes if label.id in labels]
    pictures.write(out / "landmarks.png", np.concatenate([drawn, pictures.legend(names, colours, drawn.shape[1])]))
    stated = [
        {"landmark": int(row), "label": int(label), "share": round(float(share), 4), "patches": int(count)}
        for row, label, share, count in zip(rows, labels, shares.max(axis=1), patches, strict=True)
    ]
    write_json(out / "landmarks.json", {"environment": world.environments[environment], "landmarks": stated})
    return int((labels > 0).sum()), len(rows)
