"""The weights inside an ONNX file that torch exported from a vision transformer, under the network's own names.

The exporter keeps most names. A linear layer's matrix loses its own (`onnx::MatMul_1966`, transposed), but the node
that multiplies by it keeps the layer's; the position embeddings are cut into the class token's row and the patches'.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from locus.errors import WeightsError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def read_onnx(path: Path) -> dict[str, Tensor]:
    """All named tensors of the file; linear layers and position embeddings have their names back."""
    import onnx
    from onnx import external_data_helper, numpy_helper

    graph = onnx.load(path, load_external_data=False).graph
    # Data outside the file would be read from a path of the file's choosing.
    if any(external_data_helper.uses_external_data(tensor) for tensor in graph.initializer):
        raise WeightsError(f"{path} keeps its weights in other files; export it again as one file")
    # A copy: arrays of protobuf's memory are not writable, which torch does not like.
    stored = {tensor.name: torch.from_numpy(np.array(numpy_helper.to_array(tensor))) for tensor in graph.initializer}
    tensors = {name: tensor for name, tensor in stored.items() if not name.startswith("onnx::")}
    # Tensors of equal values are stored once, the others as copies of the first: in the published DINOv2 the position
    # embedding of the class token equals the class token.
    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in stored:
            stored[node.output[0]] = stored[node.input[0]]
    root = _root(graph, tensors)
    lost = _linear_layers(graph, stored) | _position_embeddings(graph, stored)
    return tensors | {root + name: tensor for name, tensor in lost.items()}


def _root(graph: "GraphProto", tensors: dict[str, Tensor]) -> str:
    """What names of tensors begin with and names of nodes lack: a wrapper that used parts of the network directly."""
    for node in graph.node:
        for name in node.input:
            layer = name.rpartition(".")[0]
            if name in tensors and (scope := _scope(node)) and layer.endswith(scope):
                return layer.removesuffix(scope)
    return ""


def _linear_layers(graph: "GraphProto", stored: dict[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in stored or not _scope(node):
            continue
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        matrix = stored[node.input[1]]
        found[f"{_scope(node)}.weight"] = matrix if transposed else matrix.T.contiguous()
    return found


def _position_embeddings(graph: "GraphProto", stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Position embeddings that were cut apart to be resized: the class's is concatenated, the patches' is reshaped."""
    classes, patches = {}, {}
    for node in graph.node:
        for name in node.input:
            tensor = stored.get(name)
            if tensor is None or tensor.ndim != 3 or not name.startswith("onnx::"):
                continue
            if node.op_type == "Concat" and tensor.shape[:2] == (1, 1):
                classes[_scope(node)] = tensor
            elif node.op_type == "Reshape" and tensor.shape[0] == 1:
                patches[_scope(node)] = tensor
    return {
        f"{scope}.position_embeddings".lstrip("."): torch.cat([classes[scope], patches[scope]], dim=1)
        for scope in classes.keys() & patches.keys()
        if classes[scope].shape[2] == patches[scope].shape[2]
    }


def _scope(node: "NodeProto") -> str:
    """The module a node came from: /backbone/embeddings/Concat_6 is of backbone.embeddings."""
    return node.name.strip("/").rpartition("/")[0].replace("/", ".")
