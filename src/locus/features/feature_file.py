"""Feature files: HDF5, one group per image, by the image's name; a `/` in a name makes nested groups, as in hloc.

The dense layout has in each group `features` (scales, rows, columns, dimension) as float16, with the attributes
`image_size` (width, height) and `grid` (rows, columns). The other layout is that of hloc's local features, one scale:

    keypoints     (patches, 2)          float32, x and y of the patches' centres in the original image
    descriptors   (dimension, patches)  float16
    scores        (patches,)            float16, all 1: every patch counts
    image_size    (2,)                  width, height

With a keypoint detector, the keypoints are those it finds and not the patches; their descriptors are fused with the
features of every scale at their spots (`locus.keypoints.fusion`), and the scores are the detector's.

hloc puts the centre of the top-left pixel at (0, 0), and adds the 0.5 of COLMAP's convention, which is ours too, when
it hands keypoints to COLMAP; so what is stored here is ours less 0.5.

The file's attributes say which model the features are of.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import h5py
import numpy as np
from jaxtyping import Float16
from numpy import ndarray

from locus.errors import LocusError
from locus.features.journal import JournaledFile, begin, recover, verify_pages
from locus.files import atomic
from locus.keypoints import Keypoints
from locus.opening import admitted
from locus.scenes.patches import patch_centres

FORMAT_VERSION = 1
DATASETS = frozenset(("features", "keypoints", "descriptors", "scores", "image_size"))
STATE = "image_state"
USER_BLOCK = 512  # HDF5 leaves so many bytes to us; they tell files apart, and carry the checksum
VERIFIED = 2**32  # bytes of a file that is looked through whenever it is opened, in seconds
WITNESSED = {"chunks": True, "fletcher32": True}  # checked by HDF5 itself whenever they are read, by hloc too

Layout = Literal["dense", "hloc"]


@dataclass(frozen=True)
class Header:
    """What all images of a file have in common."""

    model: str
    fingerprint: str
    radii: tuple[float, ...]
    layout: Layout
    scale: int
    """The one scale of a file of patches in hloc's layout; 0 in others, which hold them all."""
    keypoints: str = ""
    """The fingerprint of the keypoint detector, if there is one."""


class FeatureFile:
    """A feature file to add to. What is written is there for good after `commit`, and only then."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        if not path.exists():
            _create(path, header)
        with ExitStack() as stack:  # closes what is open if the next step fails
            self._disk = stack.enter_context(JournaledFile(path))
            self._h5 = stack.enter_context(_opened(self._disk, path, "r+"))
            self.states = _states(self._h5, path, header)
            self._open = stack.pop_all()

    def write(
        self,
        name: str,
        features: Float16[ndarray, "scales rows columns dimension"],
        image_size: tuple[int, int],
        state: str = "",
    ) -> None:
        """Put an image's features in, in place of those it had. `state` tells later whether it has changed since."""
        group = self._emptied(name)
        if self.header.layout == "dense":
            group.create_dataset("features", data=features, **WITNESSED)
            group.attrs["image_size"] = image_size
            group.attrs["grid"] = features.shape[1:3]
        else:
            _write_hloc(group, features[self.header.scale], image_size)
        group.attrs[STATE] = self.states[name] = state

    def write_keypoints(self, name: str, keypoints: Keypoints, state: str = "") -> None:
        """Put an image's keypoints in, in hloc's layout, in place of what it had."""
        group = self._emptied(name)
        group["keypoints"] = (keypoints.pixels - 0.5).astype(np.float32)
        group.create_dataset("descriptors", data=keypoints.descriptors.T.half().numpy(), **WITNESSED)
        group["scores"] = keypoints.scores.astype(np.float16)
        group["image_size"] = np.array(keypoints.size)
        group["keypoints"].attrs["uncertainty"] = 1.0  # pixels, as hloc has it of most detectors
        group.attrs[STATE] = self.states[name] = state

    def _emptied(self, name: str) -> h5py.Group:
        """An image's group, without what it held; groups of other images may lie inside it."""
        group = self._h5.require_group(name)
        for key in [key for key, item in group.items() if isinstance(item, h5py.Dataset)]:
            del group[key]
        return group

    def commit(self) -> None:
        self._h5.flush()
        self._disk.commit()

    def absorb(self, path: Path) -> None:
        """Take over the images of another file, which then goes."""
        other = FeatureFile(path, self.header)
        with other:
            news = sorted(name for name in other.states if self.states.get(name) != other.states[name])
            for count, name in enumerate(news, 1):
                source, group = other._h5[name], self._emptied(name)
                for key in (key for key, item in source.items() if isinstance(item, h5py.Dataset)):
                    source.copy(key, group)
                group.attrs.update(source.attrs)
                self.states[name] = other.states[name]
                if count % 64 == 0:  # what is not committed is in memory
                    self.commit()
            self.commit()
        path.unlink()

    def mark_complete(self, images: str) -> None:
        """Say that a list of images, called so by the caller, is all here."""
        self._h5.attrs["complete"] = images
        self.commit()

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def open_features(path: str | os.PathLike[str]) -> h5py.File:
    """A feature file for reading, also after the process that wrote it was killed. Close it, or use it in a `with`."""
    path = Path(path)
    if not path.is_file():
        raise LocusError(f"{path} does not exist; `locus extract` writes feature files")
    recover(path)
    if path.stat().st_size <= VERIFIED:
        verify_pages(path)
    return _opened(path, path, "r")


def finished(path: Path, header: Header) -> dict[str, str]:
    """The names and states of the images in a file, if there is one."""
    if not path.exists():
        return {}
    with open_features(path) as file:
        return _states(file, path, header)


def _create(path: Path, header: Header) -> None:
    with atomic(path) as temporary:
        with h5py.File(temporary, "w", userblock_size=USER_BLOCK) as file:
            file.attrs["locus_format"] = FORMAT_VERSION
            for key, value in vars(header).items():
                file.attrs[key] = value
        begin(temporary)


def _opened(file: Path | JournaledFile, path: Path, mode: str) -> h5py.File:
    try:
        return h5py.File(admitted(file) if isinstance(file, Path) else file, mode)
    except OSError as error:
        raise LocusError(f"{path} is not an HDF5 file that can be read ({error}); choose another name") from None


def _check(file: h5py.File, path: Path, header: Header) -> None:
    if file.attrs.get("locus_format") != FORMAT_VERSION:
        raise LocusError(f"{path} is not a feature file of this version of LoCUS; choose another name")
    if file.attrs["fingerprint"] != header.fingerprint:
        raise LocusError(
            f"{path} holds features of another model ({file.attrs['model']}, {file.attrs['fingerprint']}) than "
            f"{header.model}, {header.fingerprint}; choose another name or remove it"
        )
    if (there := file.attrs.get("keypoints", "")) != header.keypoints:
        holds, wanted = (f"keypoints ({each})" if each else "no keypoints" for each in (there, header.keypoints))
        raise LocusError(f"{path} holds {holds}, not {wanted}; choose another name or remove it")
    there, wanted = ((h["layout"], int(h["scale"])) for h in (file.attrs, vars(header)))
    if there != wanted:
        raise LocusError(
            f"{path} has the layout {there[0]}, scale {there[1]}, not {wanted[0]}, scale {wanted[1]}; "
            "choose another name or remove it"
        )


def _states(file: h5py.File, path: Path, header: Header) -> dict[str, str]:
    """Every image's name, and the state of its file when it was done; an error where the file is of another kind."""
    states = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            states[name.rpartition("/")[0]] = str(item.parent.attrs.get(STATE, ""))

    try:
        _check(file, path, header)
        file.visititems(visit)
    except LocusError:
        raise
    except Exception as error:  # HDF5 raises whatever it meets
        raise LocusError(f"{path} is damaged ({error}); remove it and extract it again") from None
    return states


def check_names(names: Iterable[str]) -> None:
    """An image's group holds arrays of certain names, where groups of other images may be, but not with these names."""
    for name in names:
        if taken := DATASETS.intersection(name.split("/")[1:]):
            raise LocusError(f"the image {name} cannot be kept under its name: rename the part {next(iter(taken))!r}")


def _write_hloc(
    group: h5py.Group, features: Float16[ndarray, "rows columns dimension"], image_size: tuple[int, int]
) -> None:
    rows, columns, dimension = features.shape
    group["keypoints"] = patch_centres((rows, columns), *image_size).reshape(-1, 2).astype(np.float32) - np.float32(0.5)
    group.create_dataset("descriptors", data=features.reshape(-1, dimension).T, **WITNESSED)
    group["scores"] = np.ones(rows * columns, np.float16)
    group["image_size"] = np.array(image_size)
    # As hloc writes it: how far, in pixels, a keypoint may be off. A spot anywhere in a patch has its centre.
    pitch = (image_size[0] / columns + image_size[1] / rows) / 2
    group["keypoints"].attrs["uncertainty"] = pitch / np.sqrt(12)
