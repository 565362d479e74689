"""LighterGlue that knows places: keypoints are matched by what they look like, and by the spot LoCUS says they show."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from locus.keypoints.detection import Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.lightglue import GLUES, assigned, in_kornia_layout
from locus.keypoints.networks import Weights, filled, kornia_features, read_weights

SHIPPED = Path(__file__).with_suffix(".safetensors")  # as `locus train-glue` writes it
KINDS = 2  # of similarity: that of the finest scale, and the mean of all
START = (3.0, 4.0)  # what a similarity adds, before training: to the attention, and to the final similarity
LIKELY = 0.03  # of a match, at least


class PlaceGlueNetwork(nn.Module):
    """LighterGlue (Potje et al. 2024) with three additions, each a few numbers that multiply LoCUS similarities.

    They are added to the logits of every cross-attention, so that a keypoint listens to those that may show its spot;
    to the similarity that decides; and, by the best one, to the logit that a keypoint has a partner at all.
    Similarities and not features go in, so the same weights serve every LoCUS model.
    """

    def __init__(self) -> None:
        super().__init__()
        kornia = kornia_features()
        self.glue: Any = kornia.LightGlue(features=None, **{**kornia.LightGlue.features["xfeat"], "weights": None})
        self.attention = nn.Parameter(torch.full((len(self.glue.transformers), KINDS), START[0] / KINDS))
        self.similarity = nn.Parameter(torch.full((KINDS,), START[1]))
        self.matchability = nn.Parameter(torch.zeros(KINDS))

    @classmethod
    def untrained(cls) -> "PlaceGlueNetwork":
        """With the published weights of LighterGlue."""
        network, found = cls(), read_weights(GLUES["xfeat"])
        tensors = in_kornia_layout(found.tensors, found.where)
        filled(network.glue, found._replace(tensors=tensors), derived="confidence_thresholds")
        return network

    def forward(self, a: PlacedKeypoints, b: PlacedKeypoints) -> Float[Tensor, "n_and_none m_and_none"]:
        """The logarithm of the probability of every match; the last row and column are of having no partner."""
        alike = similarities(a, b)
        first, second = (self.glue.input_proj(each.keypoints.descriptors[None]) for each in (a, b))
        where_first, where_second = (self.glue.posenc(positions(each.keypoints)[None]) for each in (a, b))
        for layer, weights in zip(self.glue.transformers, self.attention, strict=True):
            first, second = layer.self_attn(first, where_first), layer.self_attn(second, where_second)
            first, second = _cross(layer.cross_attn, first, second, torch.einsum("k,knm->nm", weights, alike))
        last = self.glue.log_assignment[-1]
        projected = [last.final_proj(each)[0] for each in (first, second)]
        similarity = projected[0] @ projected[1].T / projected[0].shape[-1] ** 0.5
        similarity = similarity + torch.einsum("k,knm->nm", self.similarity, alike)
        has_partner = [
            last.matchability(each)[0, :, 0] + self.matchability @ alike.amax(dim=other)
            for each, other in ((first, 2), (second, 1))
        ]
        return _log_assignment(similarity, *has_partner)


def similarities(a: PlacedKeypoints, b: PlacedKeypoints) -> Float[Tensor, "kinds n m"]:
    """Cosines of LoCUS features: of the finest scale, which is the first, and the mean of all."""
    cosines = a.places @ b.places.transpose(1, 2)
    return torch.stack([cosines[0], cosines.mean(dim=0)])


def positions(keypoints: Keypoints) -> Float[Tensor, "n 2"]:
    """From the image's centre, in halves of its longer side, as LightGlue wants them."""
    size = torch.tensor(keypoints.size).float()
    return (torch.from_numpy(keypoints.pixels).float() - size / 2) / (size.max() / 2)


def _cross(
    block: Any, first: Float[Tensor, "1 n c"], second: Float[Tensor, "1 m c"], bias: Float[Tensor, "n m"]
) -> tuple[Float[Tensor, "1 n c"], Float[Tensor, "1 m c"]]:
    """LightGlue's cross-attention, with something added to its logits; its single head is all of the vector."""
    keys = [
        block.to_qk(each)[None] for each in (first, second)
    ]  # (1, 1, n, c): torch is faster with heads than without
    values = [block.to_v(each)[None] for each in (first, second)]
    told = [
        F.scaled_dot_product_attention(keys[0], keys[1], values[1], attn_mask=bias)[0],
        F.scaled_dot_product_attention(keys[1], keys[0], values[0], attn_mask=bias.T)[0],
    ]
    first, second = (
        each + block.ffn(torch.cat([each, block.to_out(message)], dim=-1))
        for each, message in zip((first, second), told, strict=True)
    )
    return first, second


def _log_assignment(
    similarity: Float[Tensor, "n m"], first: Float[Tensor, " n"], second: Float[Tensor, " m"]
) -> Float[Tensor, "n_and_none m_and_none"]:
    """LightGlue's: both have a partner, and each is the other's; or, last, one has none."""
    both = F.logsigmoid(first)[:, None] + F.logsigmoid(second)
    matched = F.log_softmax(similarity, dim=0) + F.log_softmax(similarity, dim=1) + both
    columns = torch.cat([matched, F.logsigmoid(-first)[:, None]], dim=1)
    return torch.cat([columns, F.pad(F.logsigmoid(-second), (0, 1))[None]], dim=0)


class PlaceGlue:
    """Matches the placed XFeat keypoints of two images."""

    def __init__(self, weights: Path = SHIPPED) -> None:
        found = read_weights("", weights)
        tensors = {name: tensor.float() for name, tensor in found.tensors.items()}
        found = Weights(tensors, found.where, found.fingerprint)
        self.network = filled(PlaceGlueNetwork(), found, derived="glue.confidence_thresholds")
        self.fingerprint = f"place glue {found.fingerprint} {LIKELY} 1"

    @torch.inference_mode()
    def scores(self, a: PlacedKeypoints, b: PlacedKeypoints) -> Float[Tensor, "n m"]:
        """The logarithm of the probability that a keypoint of A is one of B."""
        if not len(a) or not len(b):
            return torch.zeros(len(a), len(b))
        return self.network(a, b)[:-1, :-1]

    def match(self, a: PlacedKeypoints, b: PlacedKeypoints) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
        """Rows of A and of B that are each other's best, and their probability, where it is above `LIKELY`."""
        return assigned(self.scores(a, b), LIKELY)
