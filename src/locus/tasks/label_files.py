"""What `locus segment predict` writes: label maps, and pictures of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from locus.files import write_json
from locus.scenes import Scene
from locus.tasks import region_pictures as pictures
from locus.tasks.image_features import ImageFeatures
from locus.tasks.patch_labels import class_targets, object_targets, same_names
from locus.tasks.probe import Probe

Truth = Callable[[], Int[ndarray, "height width"]]


def truths_of(scene: Scene, probe: Probe) -> Mapping[str, Truth]:
    """Of a labelled scene, each frame's truth in the probe's ids, to be read when asked; of others, nothing."""
    if not scene.classes or scene[0].semantic is None:
        return {}
    targets = object_targets(scene) if probe.objects else class_targets(scene)
    table = same_names(targets.classes, probe.classes)
    return {
        source.name: lambda index=index: table[targets.of(scene[index])] for index, source in enumerate(scene.sources)
    }


def write_classes(out: Path, probe: Probe) -> None:
    """classes.json: what the ids of label maps mean, and their colours."""
    colours = pictures.label_colours(probe.classes)
    listed = [
        {"id": label.id, "name": label.name, "kind": label.kind, "colour": colour.tolist()}
        for label, colour in zip(probe.classes, colours, strict=True)
    ]
    write_json(out / "classes.json", listed)


def write_labels(out: Path, view: ImageFeatures, probe: Probe, truth: Truth | None) -> None:
    """labels/NAME.png, 16 bits; and pictures/NAME.png: the image, the truth if there is one, the prediction."""
    labels = probe.predict(view.features[probe.scale], view.size)
    pictures.write(out / "labels" / f"{view.image.name}.png", labels.astype(np.uint16))
    colours = pictures.label_colours(probe.classes)
    maps = [labels] if truth is None else [truth(), labels]
    captions = [view.image.name, *(["truth"] if truth is not None else []), "prediction"]
    image = view.image.read()
    drawn = [image, *(pictures.label_picture(image, each, colours) for each in maps)]
    width = min(max(image.shape[1], 240), 640)
    row = pictures.tiles([pictures.captioned(*each, width) for each in zip(drawn, captions, strict=True)], len(drawn))
    shown = np.unique(np.concatenate([each.ravel() for each in maps]))
    names = [label for label in probe.classes if label.id in shown]
    sheet = np.concatenate([row, pictures.legend(names, colours, row.shape[1])])
    pictures.write(out / "pictures" / f"{view.image.name}.png", sheet)
