"""Whether a scene is as it was: what results and runs record of the data they were made from."""

from dataclasses import replace

import numpy as np

from locus.errors import LocusError
from locus.files import content_hash
from locus.scenes.scene import Frame, Scene

SAMPLE = 20  # frames


def scene_fingerprint(scene: Scene) -> str:
    """A hash of what a scene's frames hold: images, depth, cameras, poses, labels, in their order and by their names.

    Where the files lie, what their folder is called and what else is in it make no difference.
    """
    return content_hash(tuple(scene.classes), *(_state(frame) for frame in scene))[:16]


def sample_fingerprint(scene: Scene) -> str:
    """The same of some of its frames, evenly spread, and how many there are: of a long recording in a second."""
    kept = np.linspace(0, len(scene) - 1, min(len(scene), SAMPLE)).round().astype(int)
    sample = replace(scene, sources=[scene.sources[index] for index in kept])
    return content_hash(str(len(scene)), scene_fingerprint(sample))[:16]


def _state(frame: Frame) -> tuple[str, ...]:
    try:
        return frame.name, frame.image_state(), frame.geometry_state(), frame.label_state()
    except LocusError:
        return frame.name, "cannot be read"
