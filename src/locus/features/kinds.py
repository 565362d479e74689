"""Kinds: what a thing is like wherever it stands, told by the tokens that the backbone gives anyway.

LoCUS features know places, so those of a thing change when it is moved; the tokens that they are made of hardly do. Of
these the directions are kept in which things differ most, for how little the views of one thing differ (Fisher, 1936).
They stand in kinds.safetensors for the backbone of models that come with LoCUS, which `python -m
locus.evaluation.objects_fit` writes.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from scipy.linalg import eigh
from torch import Tensor

from locus.backbones import Backbone
from locus.checksums import sealed_tensors
from locus.files import atomic
from locus.model.pca import Components
from locus.opening import read

FITTED = Path(__file__).with_suffix(".safetensors")
DIMENSION = 64
STEADY = 0.1  # of the mean variance within things, added to that of every direction


def fit_kinds(views: Float[ndarray, "n d"], thing: Int[ndarray, " n"]) -> Components:
    """From the mean tokens of things in single views, and the number of each one's thing."""
    number, count = np.unique(thing, return_inverse=True, return_counts=True)[1:]
    means = np.zeros((len(count), views.shape[1]))
    np.add.at(means, number, views)
    means /= count[:, None]
    rest = views - means[number]
    within = rest.T @ rest / max(len(views) - len(count), 1)
    within += STEADY * np.trace(within) / len(within) * np.eye(len(within))
    directions = eigh(np.cov(means.T), within)[1][:, ::-1][:, :DIMENSION].T
    return Components(*(torch.from_numpy(each.copy()).float() for each in (means.mean(axis=0), directions)))


def save_kinds(fitted: dict[str, Components]) -> None:
    """Those of each backbone, by its fingerprint."""
    arrays = {f"{key}.{name}": array for key, each in fitted.items() for name, array in each._asdict().items()}
    with atomic(FITTED) as file:
        file.write_bytes(sealed_tensors(serialize({name: array.half() for name, array in arrays.items()})))


@lru_cache(maxsize=4)
def fitted_kinds(backbone: str) -> Components | None:
    """Of a backbone by its fingerprint; None if none were fitted for it."""
    arrays = deserialize(read(FITTED)) if FITTED.exists() else {}
    if f"{backbone}.mean" not in arrays:
        return None
    return Components(*(arrays[f"{backbone}.{name}"].float() for name in Components._fields))


def kinds(
    backbone: Backbone, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]
) -> Float[Tensor, "b rows columns k"] | None:
    """Of every patch, by its token: unit length, on the CPU; None if none were fitted for the backbone."""
    known = fitted_kinds(backbone.fingerprint)
    if known is None:
        return None
    return F.normalize(known(sequence[:, backbone.prefix :].float().cpu()), dim=-1).unflatten(1, grid)
