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
# Gelu returns nothing below it: the largest number of a row of its output is the largest distance from 0, unless all are smaller than this.
_GELU_DEPTH = 0.17


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
        self._gelu_depth = self._parameter("depth", np.float32(_GELU_DEPTH))
        self._one = self._parameter("one", np.float32(1))
        self._zero = self._parameter("zero", np.uint8(_ZERO))
        self._flat = self._parameter("flat", np.array([-1], np.int64))

    def layer(self, hidden: str, at: str) -> str:
        """A layer of BERT: attention and two products, each added to its input and normalized."""
        rounded = self._rounded(hidden)
        parts = [self._product(rounded, f"{at}{part}") for part in "qkv"]
        self._node("MultiHeadAttention", parts, f"{at}attention", domain=_MICROSOFT, num_heads=self._weights.heads)
        hidden = self.normalized([hidden, self._product(self._rounded(f"{at}attention"), f"{at}ao")], f"{at}aln")
        self._node("Gelu", [self._product(self._rounded(hidden), f"{at}fi")], f"{at}gelu", domain=_MICROSOFT)
        return self.normalized([hidden, self._product(self._rounded(f"{at}gelu", is_gelu=True), f"{at}fo")], f"{at}oln")

    def normalized(self, inputs: list[str], name: str) -> str:
        """The normalized sum of one or two inputs."""
        parameters = [self._parameter(f"{name}.{part}", self._weights.floats(f"{name}.{part}")) for part in "wb"]
        total = inputs[0] if len(inputs) == 1 else self._node("Add", inputs, f"{name}.sum")
        return self._node("LayerNormalization", [total, *parameters], name, epsilon=self._weights.epsilon)

    def _rounded(self, hidden: str, *, is_gelu: bool = False) -> tuple[str, str]:
        """The rows in integers, and the value of the integer 1 in each row."""
        distance, least = (hidden, self._gelu_depth) if is_gelu else (self._node("Abs", [hidden], f"{hidden}.abs"), self._least)
        largest = self._node("ReduceMax", [distance], f"{hidden}.largest", axes=[-1], keepdims=1)
        step = self._node("Div", [self._node("Max", [largest, least], f"{hidden}.nonzero"), self._limit], f"{hidden}.step")
        steps = self._node("Reshape", [step, self._flat], f"{hidden}.steps")
        zeros = self._node("Expand", [self._zero, self._node("Shape", [steps], f"{hidden}.rows")], f"{hidden}.zeros")
        return self._node("QuantizeLinear", [hidden, steps, zeros], f"{hidden}.rounded", axis=1), step

    def _product(self, rounded: tuple[str, str], name: str) -> str:
        """The product of rounded rows and a matrix, plus its bias."""
        rows, step = rounded
        matrix: Floats = self._weights.quantized(f"{name}.w").floats().T
        scales = np.abs(matrix).max(axis=0) / _MATRIX_LIMIT
        integers = self._parameter(f"{name}.w", np.round(matrix / scales).astype(np.int8))
        columns = self._parameter(f"{name}.scales", scales.astype(np.float32))
        bias = self._parameter(f"{name}.b", self._weights.floats(f"{name}.b"))
        product = self._node("MatMulIntegerToFloat", [rows, integers, self._one, columns, self._zero], f"{name}.columns", domain=_MICROSOFT)
        return self._node("Add", [self._node("Mul", [product, step], f"{name}.rows"), bias], name)

    def _node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def _parameter(self, name: str, values: Any) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name
