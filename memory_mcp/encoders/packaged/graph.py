"""The model's layers as an ONNX graph in 8-bit integers. Its input is the sum of a text's embeddings, its output a vector per token.

Each row of an input and each column of a matrix has a scale of its own: vectors have a cosine of .999 with those of exact products, at
two to three times the speed on processors with 8-bit instructions (VNNI, AMX). Matrices use 7 of the 8 bits, because processors without
these instructions add pairs of products in 16 bits.
"""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from memory_mcp.encoders.packaged.model_file import EMBEDDINGS, Floats, Weights

_MICROSOFT = "com.microsoft"
_INPUT_LIMIT, _ZERO, _MATRIX_LIMIT = 127, 128, 63


def build(weights: Weights) -> bytes:
    """The serialized graph."""
    layers = _Layers(weights)
    hidden = layers.normalized([EMBEDDINGS], "emb.ln")
    for number in range(weights.layers):
        hidden = layers.layer(hidden, f"l{number}.")
    tokens, output = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "tokens", weights.dimension]) for name in (EMBEDDINGS, hidden)
    )
    graph = helper.make_graph(layers.nodes, "multilingual-e5-small", [tokens], [output], layers.initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
    serialized: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return serialized


class _Layers:
    """The nodes and their parameters so far. A node's output has the node's name."""

    def __init__(self, weights: Weights) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._weights = weights
        self._limit = self._parameter("limit", np.float32(_INPUT_LIMIT))
        self._least = self._parameter("least", np.float32(1e-12))
        self._one = self._parameter("one", np.float32(1))
        self._zero = self._parameter("zero", np.uint8(_ZERO))
        self._parts = self._parameter("parts", np.full(3, weights.dimension, np.int64))

    def layer(self, hidden: str, at: str) -> str:
        """A layer of BERT: attention and two products, each added to its input and normalized."""
        together = self._product(hidden, [f"{at}q", f"{at}k", f"{at}v"])
        parts = [f"{together}.{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [together, self._parts], parts, axis=-1))
        self._node("MultiHeadAttention", parts, f"{at}attention", domain=_MICROSOFT, num_heads=self._weights.heads)
        hidden = self.normalized([hidden, self._product(f"{at}attention", [f"{at}ao"])], f"{at}aln")
        self._node("Gelu", [self._product(hidden, [f"{at}fi"])], f"{at}gelu", domain=_MICROSOFT)
        return self.normalized([hidden, self._product(f"{at}gelu", [f"{at}fo"])], f"{at}oln")

    def normalized(self, inputs: list[str], name: str) -> str:
        """The normalized sum of one or two inputs."""
        parameters = [self._parameter(f"{name}.{part}", self._weights.floats(f"{name}.{part}")) for part in "wb"]
        total = inputs[0] if len(inputs) == 1 else self._node("Add", inputs, f"{name}.sum")
        return self._node("LayerNormalization", [total, *parameters], name, epsilon=self._weights.epsilon)

    def _product(self, hidden: str, names: list[str]) -> str:
        """The products of an input and some matrices, side by side, plus their biases."""
        name = names[0]
        matrix: Floats = np.concatenate([self._weights.quantized(f"{one}.w").floats() for one in names]).T
        scales = np.abs(matrix).max(axis=0) / _MATRIX_LIMIT
        integers = self._parameter(f"{name}.w", np.round(matrix / scales).astype(np.int8))
        bias = self._parameter(f"{name}.b", np.concatenate([self._weights.floats(f"{one}.b") for one in names]))
        largest = self._node("ReduceMax", [self._node("Abs", [hidden], f"{name}.abs")], f"{name}.largest", axes=[-1], keepdims=1)
        largest = self._node("Max", [largest, self._least], f"{name}.nonzero")
        scaled = self._node("Mul", [hidden, self._node("Div", [self._limit, largest], f"{name}.factor")], f"{name}.scaled")
        rounded = self._node("QuantizeLinear", [scaled, self._one, self._zero], f"{name}.rounded")
        product = self._node("MatMulInteger", [rounded, integers, self._zero], f"{name}.product")
        product = self._node("Cast", [product], f"{name}.floats", to=TensorProto.FLOAT)
        product = self._node("Mul", [product, self._node("Div", [largest, self._limit], f"{name}.step")], f"{name}.rows")
        product = self._node("Mul", [product, self._parameter(f"{name}.scales", scales)], f"{name}.columns")
        return self._node("Add", [product, bias], name)

    def _node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def _parameter(self, name: str, values: Any) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name
