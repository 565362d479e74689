"""LightGlue (Lindenberger et al. 2023) and LighterGlue: networks that match the keypoints of two images."""

import re
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError, WeightsError
from locus.keypoints.detection import Keypoints
from locus.keypoints.networks import filled, kornia_features, read_weights

# The weights of each kind of keypoints: a name of `locus weights list`, or a Hugging Face id.
GLUES = {
    "xfeat": "xfeat-lighterglue",
    "aliked": "aliked-lightglue",
    "disk": "disk-lightglue",
    "superpoint": "ETH-CVG/lightglue_superpoint",
}
UNUSED = re.compile(r"extractor\.|log_assignment\.\d+\.r$|keypoint_detector\.")  # the detector; a number of training
# From transformers' names to kornia's.
RENAMED = (
    (r"^input_projection\.", "input_proj."),
    (r"^positional_encoder\.projector\.", "posenc.Wr."),
    (r"^transformer_layers\.", "transformers."),
    (r"\.self_attention\.o_proj\.", ".self_attn.out_proj."),
    (r"\.cross_attention\.q_proj\.", ".cross_attn.to_qk."),
    (r"\.cross_attention\.v_proj\.", ".cross_attn.to_v."),
    (r"\.cross_attention\.o_proj\.", ".cross_attn.to_out."),
    (r"\.(self|cross)_mlp\.fc1\.", r".\1_attn.ffn.0."),
    (r"\.(self|cross)_mlp\.layer_norm\.", r".\1_attn.ffn.1."),
    (r"\.(self|cross)_mlp\.fc2\.", r".\1_attn.ffn.3."),
    (r"^match_assignment_layers\.(\d+)\.final_projection\.", r"log_assignment.\1.final_proj."),
    (r"^match_assignment_layers\.", "log_assignment."),
    (r"^(token_confidence\.\d+)\.token\.", r"\1.token.0."),
)


def glue(name: str) -> "Glue":
    """A matcher by its keypoints' name: xfeat (LighterGlue), aliked, disk, superpoint; NAME=FILE: your own weights."""
    kind, _, weights = name.partition("=")
    if kind not in GLUES:
        raise LocusError(f"{name} has no LightGlue; known are {', '.join(GLUES)}, or NAME=FILE of weights")
    return Glue(kind, weights or None)


class Glue:
    """Looks at all keypoints of both images at once and says which belong together.

    `match` leaves out keypoints that soon turn out to have no partner, as LightGlue was published: half the time.
    """

    def __init__(self, name: str, weights: str | Path | None = None) -> None:
        kornia, found = kornia_features(), read_weights(GLUES[name], weights)
        self.name = name
        self.threshold = kornia.LightGlue.default_conf["filter_threshold"]
        options = {**kornia.LightGlue.features[name], "weights": None}
        tensors = in_kornia_layout(found.tensors, found.where)
        network = kornia.LightGlue(features=None, **options)
        self.network = filled(network, found._replace(tensors=tensors), derived="confidence_thresholds")
        self._whole = copy(self.network)  # the same weights
        self._whole.conf = SimpleNamespace(**{**vars(self.network.conf), "width_confidence": -1})
        self.fingerprint = f"lightglue {name} {found.fingerprint} 1"

    @torch.inference_mode()
    def scores(self, a: Keypoints, b: Keypoints) -> Float[Tensor, "n m"]:
        """The logarithm of the probability that a keypoint of A is one of B: add a prior to it, then `assigned`."""
        if not len(a) or not len(b):
            return torch.zeros(len(a), len(b))
        return self._whole({"image0": _as_input(a), "image1": _as_input(b)})["log_assignment"][0, :-1, :-1]

    @torch.inference_mode()
    def match(self, a: Keypoints, b: Keypoints) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
        """Rows of A and of B that are each other's best, and their probability, where it is above LightGlue's 0.1."""
        output = self.network({"image0": _as_input(a), "image1": _as_input(b)})
        return output["matches"][0].numpy(), output["scores"][0].double().numpy()


def assigned(scores: Float[Tensor, "n m"], threshold: float) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
    """Rows that are each other's best by these logarithms of probabilities, and more likely than the threshold."""
    if not scores.numel():
        return np.zeros((0, 2), int), np.zeros(0)
    best, partner = scores.max(dim=1)
    mutual = scores.argmax(dim=0)[partner] == torch.arange(len(scores))
    kept = (mutual & (best.exp() > threshold)).nonzero()[:, 0]
    return torch.stack([kept, partner[kept]], dim=1).numpy(), best[kept].exp().double().numpy()


def in_kornia_layout(tensors: Mapping[str, Tensor], where: str | Path) -> dict[str, Tensor]:
    """Weights of kornia, of the authors, of LighterGlue's authors or of transformers, named as kornia does."""
    named = {key.removeprefix("matcher."): tensor for key, tensor in tensors.items() if not UNUSED.match(key)}
    if not any(key.startswith("transformer_layers.") for key in named):
        return {re.sub(r"^(self|cross)_attn\.(\d+)\.", r"transformers.\2.\1_attn.", key): named[key] for key in named}
    made = {}
    for key, tensor in named.items():
        if ".self_attention.q_proj." in key:  # kornia has all three in one matrix, one row of each in turn
            parts = [named.get(key.replace("q_proj", f"{part}_proj"), tensor) for part in "qkv"]
            joined = key.replace("transformer_layers", "transformers").replace("attention.q_proj", "attn.Wqkv")
            made[joined] = torch.stack(parts, dim=1).flatten(0, 1)
        elif ".cross_attention.k_proj." in key:  # queries and keys are one projection there
            if not torch.equal(tensor, named.get(key.replace("k_proj", "q_proj"), tensor)):
                raise WeightsError(f"{where} holds no LightGlue: its cross-attention has keys unlike its queries")
        elif not re.search(r"\.self_attention\.[kv]_proj\.", key):
            for pattern, name in RENAMED:
                key = re.sub(pattern, name, key)
            made[key] = tensor
    return made


def _as_input(keypoints: Keypoints) -> dict[str, Tensor]:
    return {
        "keypoints": torch.from_numpy(keypoints.pixels).float()[None],
        "descriptors": keypoints.descriptors[None],
        "image_size": torch.tensor(keypoints.size).float()[None],
    }
