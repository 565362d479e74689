"""The checkpoints the paper's authors released, read into our head's names."""

import re
from pathlib import Path

import torch
from torch import Tensor

from locus.errors import LocusError
from locus.opening import admitted

# Theirs is a sequence: 0 enters, 1 and 2 are the transformer blocks, 3 projects. Inside a block the names agree.
PLACES = {"0": "enter", "1": "blocks.0", "2": "blocks.1", "3": "project"}
ENTRY = re.compile(r"(?:^|\.)([0-3])\.((?:norm1|attn\.qkv|attn\.proj|norm2|mlp\.fc1|mlp\.fc2)\.)?(weight|bias)$")
BACKBONE = re.compile(r"(^|\.)(dino_model|backbone)\.")


def authors_head(path: Path) -> dict[str, Tensor]:
    """The head's weights under our names. Prefixes do not matter; the frozen backbone's weights are left out."""
    try:
        stored = torch.load(admitted(path), map_location="cpu", weights_only=True)
    except LocusError:
        raise
    except Exception:  # a damaged file can raise anything: zip, pickle, unicode, struct
        raise LocusError(
            f"{path} is not a checkpoint that can be read safely: it is damaged, or holds more than weights"
        ) from None
    for wrapper in ("state_dict", "model"):
        stored = stored.get(wrapper, stored) if isinstance(stored, dict) else stored
    if not isinstance(stored, dict):
        raise LocusError(f"{path} holds a {type(stored).__name__}, not a dictionary of weights")
    head, strange = {}, []
    for key, weight in ((str(key), weight) for key, weight in stored.items()):
        if BACKBONE.search(key):
            continue
        entry = ENTRY.search(key)
        if entry is None or not isinstance(weight, Tensor):
            strange.append(key)
        else:
            place, inner, kind = entry.groups()
            head[f"{PLACES[place]}.{inner or ''}{kind}"] = weight
    if strange or not head:
        keys = ", ".join(strange) or "no key of a head"
        raise LocusError(f"{path} is not one of the authors' checkpoints: {keys}")
    return head
