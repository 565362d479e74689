"""What feature files should hold: the features that each image has alone."""

import h5py
import numpy as np

from locus.features.images import sources

SIZES = [(70, 56), (70, 56), (84, 60), (70, 56), (61, 90), (61, 90), (61, 90), (61, 90), (61, 90), (40, 40)]


def check(path, inputs, model, names=None):
    """Every image's features are those it has alone, to float16's precision."""
    with h5py.File(path, "r") as file:
        for image in sources(inputs):
            if names is not None and image.name not in names:
                continue
            pixels, group = image.read(), file[image.name]
            expected = model.features(pixels).numpy()
            assert group["features"].dtype == np.float16
            assert tuple(group.attrs["image_size"]) == (pixels.shape[1], pixels.shape[0])
            assert tuple(group.attrs["grid"]) == expected.shape[1:3]
            np.testing.assert_allclose(group["features"][:], expected, atol=2e-3)


def stored(path):
    """The names in a file, by hloc's way of listing them."""
    names = set()

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            names.add(item.parent.name.strip("/"))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return names


def inside(folder):
    """What a user sees of a folder; locks are hidden."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
