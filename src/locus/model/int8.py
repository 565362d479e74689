"""Linear layers that multiply in 8 bits, for CPUs: weights scaled row by row, inputs by their range in each call."""

import copy
import warnings

import torch
from jaxtyping import Float
from torch import Tensor, nn

from locus.errors import LocusError
from locus.model import LoCUS

# CPUs without VNNI add two products in 16 bits, which two full bytes overflow. One side must do with 7 bits: torch's
# own choice is the inputs, but it is they that have outliers. `benchmarks/extract.py` shows how near features stay.
LARGEST = 63


class Linear8(nn.Module):
    """A linear layer in 8 bits, by the operators under torch's `quantize_dynamic`, which scales whole matrices."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scales = (weight.abs().amax(dim=1) / LARGEST).clamp(min=1e-12)
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated in torch 2.13 for torchao, one more package to install
            rows = torch.quantize_per_channel(weight, scales, zeros, axis=0, dtype=torch.qint8)
        bias = None if linear.bias is None else linear.bias.detach()
        self._packed = torch.ops.quantized.linear_prepack(rows, bias)

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n e"]:
        return torch.ops.quantized.linear_dynamic(x, self._packed, reduce_range=False)


def quantized(model: LoCUS) -> LoCUS:
    """A copy whose backbone has its linear layers in 8 bits. The head, which is small, stays as it is."""
    if next(model.buffers()).device.type != "cpu":
        raise LocusError("8-bit features are for CPUs; leave int8 out or move the model to the CPU")
    small = copy.deepcopy(model)
    for module in list(small.backbone.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, Linear8(child))
    return small
