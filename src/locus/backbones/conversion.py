"""Weight files of other people, read as data only, and converted to what transformers keeps on disk."""

import argparse
import pickle
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from locus.backbones.layouts import IGNORED, in_transformers_layout
from locus.backbones.onnx_weights import read_onnx
from locus.backbones.variants import configuration
from locus.errors import LocusError, WeightsError
from locus.files import verified
from locus.opening import UNLIMITED, opened


def convert(path: Path, name: str) -> dict[str, Tensor]:
    """The weights of a known network from a file in transformers', its authors', or ONNX layout.

    Every tensor of the network is there, has its shape, and is named as transformers names it on disk.
    """
    config = configuration(name)
    found = read(path)
    tensors = in_transformers_layout(found, config.model_type)
    if tensors is None:
        shown = _first(sorted(found)) if found else "no tensors at all"
        raise WeightsError(
            f"{path} does not hold a {name} ({config.model_type}) in a layout LoCUS knows; it has {shown}"
        )
    return _checked(tensors, expected_shapes(config), path, name)


def read(path: Path) -> dict[str, Tensor]:
    """All tensors of a .safetensors, .onnx or torch file; nested dictionaries become dotted names."""
    if not path.is_file():  # nor a pipe or a device
        raise WeightsError(f"{path} is no file; give the weight file itself")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            verified(path)
            return load_file(path)
        if path.suffix == ".onnx":
            return read_onnx(path)
        # DINO's training checkpoints hold their command line, which is plain data.
        with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's thoughts on a pickle that it then refuses
            return dict(_flatten(torch.load(path, map_location="cpu", weights_only=True)))
    except LocusError:
        raise
    except Exception as error:  # a damaged file can raise anything: zip, pickle, protobuf, unicode
        if isinstance(error, pickle.UnpicklingError) and ("GLOBAL" in str(error) or _is_pickle(path)):
            raise WeightsError(
                f"{path} is a pickle that would run code or build objects; LoCUS reads tensors only. "
                "Ask for a .safetensors file, or save its state_dict alone"
            ) from None
        raise WeightsError(f"{path} is damaged, cut short, or no weight file; download it again") from error


def _is_pickle(path: Path) -> bool:
    with opened(path, UNLIMITED) as file:
        return file.read(1) == pickle.PROTO


def expected_shapes(config: Any) -> dict[str, torch.Size]:
    """Name on disk and shape of every tensor of a network."""
    from transformers import AutoModel
    from transformers.core_model_loading import revert_weight_conversion

    with torch.device("meta"):
        network = AutoModel.from_config(config)
    on_disk = revert_weight_conversion(network, network.state_dict())
    return {key: tensor.shape for key, tensor in on_disk.items() if not IGNORED.match(key)}


def _flatten(tree: Any, prefix: str = "") -> list[tuple[str, Tensor]]:
    if isinstance(tree, Tensor):
        return [(prefix[:-1], tree)]
    if not isinstance(tree, Mapping):
        return []
    return [pair for key, value in tree.items() for pair in _flatten(value, f"{prefix}{key}.")]


def _checked(tensors: dict[str, Tensor], expected: dict[str, torch.Size], path: Path, name: str) -> dict[str, Tensor]:
    tensors = {key: tensor for key, tensor in tensors.items() if not IGNORED.match(key)}
    for key in expected:  # tokens and counters of training only: some leave them out, DINOv3's authors store one flat
        if key.endswith(("mask_token", "num_batches_tracked")):
            stored = tensors.get(key, torch.zeros(expected[key]))
            tensors[key] = stored.reshape(expected[key]) if stored.numel() == expected[key].numel() else stored
    if wrong := mismatches(tensors, expected):
        raise WeightsError(f"{path} is no {name}: {wrong}")
    return {key: tensors[key].float().contiguous() for key in expected}


def mismatches(tensors: Mapping[str, Tensor], expected: Mapping[str, torch.Size]) -> str:
    """What is missing, unknown or of another shape, in words; nothing if all is as expected."""
    wrong = []
    if missing := sorted(expected.keys() - tensors.keys()):
        wrong.append(f"{len(missing)} tensors are missing ({_first(missing)})")
    if unexpected := sorted(tensors.keys() - expected.keys()):
        wrong.append(f"{len(unexpected)} are unknown ({_first(unexpected)})")
    misshapen = [
        f"{key} is {_times(tensors[key].shape)}, not {_times(expected[key])}"
        for key in sorted(expected.keys() & tensors.keys())
        if tensors[key].shape != expected[key]
    ]
    if misshapen:
        wrong.append(f"{len(misshapen)} have another shape ({_first(misshapen)})")
    return "; ".join(wrong)


def _first(words: Sequence[str], most: int = 4) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def _times(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a number"
