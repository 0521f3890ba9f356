"""Simplifies an exported graph before it is quantized: fewer and cheaper operations, the same results.

The tracing exporter writes down each size as something to be computed, copies both halves of what a gated layer's one multiplication
returns, turns positions in nine steps, and computes the last layer for every token, although a cross-encoder reads only one. onnxruntime
itself changes none of that: with int8, it takes as long as a quarter of all multiplications.
"""

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]

MAX_FOLDED = 64  # elements: sizes and bounds, not tables
# What these return for a token depends on that token only, if their other inputs are the same for all.
BY_TOKEN = {"Add", "Sub", "Mul", "Div", "Erf", "Tanh", "Sigmoid", "Relu", "Gelu", "LayerNormalization", "MatMul"}


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with fewer operations; its graph is changed in place."""
    # The sizes of a layer follow from those of the layer before, so that a second look finds more.
    for step in (_with_known_sizes, _with_known_sizes, _with_separate_parts, _with_tokens_that_are_read, _with_rotations):
        graph = _Graph(model, _shapes(model))
        step(graph)
        graph.sweep()
    return model


class _Graph:
    """A graph in the order of its nodes, with the constants by name, what each value is from, and who takes it."""

    def __init__(self, model: onnx.ModelProto, shapes: dict[str, list[int | str]]) -> None:
        self.model, self.graph = model, model.graph
        self.shapes = shapes
        self.weights = {tensor.name: tensor for tensor in self.graph.initializer}
        self.constants: dict[str, Array] = {}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            elif node.op_type == "Identity" and node.input[0] in self.weights:
                self.weights[node.output[0]] = self.weights[node.input[0]]
        self.producers = {name: node for node in self.graph.node for name in node.output}
        # What must keep its name: results, and what is taken inside of branches.
        self.kept = {output.name for output in self.graph.output}.union(*map(_taken_inside, self.graph.node))

    def is_constant(self, name: str) -> bool:
        return name in self.constants or name in self.weights

    def value(self, name: str) -> Array:
        return self.constants[name] if name in self.constants else numpy_helper.to_array(self.weights[name])

    def uncast(self, name: str) -> str:
        """The value before its casts."""
        node = self.producers.get(name)
        return self.uncast(node.input[0]) if node is not None and node.op_type == "Cast" else name

    def made_by(self, name: str, operation: str) -> onnx.NodeProto | None:
        """The node that returns a value, if it is such an operation."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type == operation else None

    def takers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes that take each value."""
        takers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in {*node.input, *_taken_inside(node)}:
                takers.setdefault(name, []).append(node)
        return takers

    def replace(self, nodes: Iterable[onnx.NodeProto]) -> None:
        """These are the nodes from now on."""
        kept = list(nodes)
        del self.graph.node[:]
        self.graph.node.extend(kept)

    def constant(self, name: str, value: Array) -> onnx.NodeProto:
        """A node that returns a constant."""
        self.constants[name] = value
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))

    def sweep(self) -> None:
        """Removes nodes and weights that nothing uses."""
        wanted, kept = set(self.kept), []
        for node in reversed(self.graph.node):
            if wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        self.replace(reversed(kept))
        for position in reversed(range(len(self.graph.initializer))):  # a new list would hold all weights twice
            if self.graph.initializer[position].name not in wanted:
                del self.graph.initializer[position]


def _taken_inside(node: onnx.NodeProto) -> set[str]:
    """The values that the branches of a node take."""
    branches = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    inner = [inner for branch in branches for inner in branch.node]
    return {output.name for branch in branches for output in branch.output}.union(
        *(node.input for node in inner), *map(_taken_inside, inner)
    )


def _shapes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """The sizes of each value, as far as they follow from those of the inputs: numbers, or names that are the same for the same size."""
    given = model.graph
    large = [tensor for tensor in given.initializer if np.prod(tensor.dims) > MAX_FOLDED]
    weights = [helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in large]  # without their content
    small = [tensor for tensor in given.initializer if np.prod(tensor.dims) <= MAX_FOLDED]
    graph = helper.make_graph(given.node, given.name, [*given.input, *weights], given.output, small)
    inferred = shape_inference.infer_shapes(helper.make_model(graph, opset_imports=model.opset_import), data_prop=True).graph
    values = [*inferred.value_info, *inferred.input, *inferred.output]
    return {
        value.name: [
            size.dim_value if size.HasField("dim_value") else size.dim_param or f"{value.name}.{axis}"
            for axis, size in enumerate(value.type.tensor_type.shape.dim)
        ]
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def _with_known_sizes(graph: _Graph) -> None:
    """Sizes that are always the same become constants, and those of the inputs are read from the inputs, once."""
    nodes, shared = [], {}
    for value in graph.graph.input:
        for axis, size in enumerate(graph.shapes[value.name]):
            if isinstance(size, str) and size not in shared:
                shape, index, shared[size] = f"{size}.{value.name}.shape", f"{size}.axis", f"{size}.size"
                nodes += [helper.make_node("Shape", [value.name], [shape]), graph.constant(index, np.array(axis))]
                nodes.append(helper.make_node("Gather", [shape, index], [shared[size]], axis=0))
    same: dict[str, str] = {}
    for node in graph.graph.node:
        for position, name in enumerate(node.input):
            node.input[position] = same.get(name, name)
        known = _size(graph, node)
        if isinstance(known, int):
            nodes.append(graph.constant(node.output[0], np.full(graph.value(node.input[1]).shape, known, np.int64)))
        elif known in shared and not graph.value(node.input[1]).shape and node.output[0] not in graph.kept:
            same[node.output[0]] = shared[known]
        elif node.output[0] not in shared.values():
            folded = _folded(graph, node)
            nodes.append(node if folded is None else graph.constant(node.output[0], folded))
    graph.replace(nodes)


def _size(graph: _Graph, node: onnx.NodeProto) -> int | str | None:
    """Which size of a value this node returns, if it does."""
    shape = graph.producers.get(node.input[0]) if node.op_type == "Gather" else None
    if shape is None or shape.op_type != "Shape" or shape.attribute or not graph.is_constant(node.input[1]):
        return None
    sizes, index = graph.shapes.get(shape.input[0], []), graph.value(node.input[1])
    return sizes[int(index.item())] if index.size == 1 and -len(sizes) <= index.item() < len(sizes) else None


def _folded(graph: _Graph, node: onnx.NodeProto) -> Array | None:
    """What a node on small constants returns; None if it is another one."""
    if node.op_type == "Constant" or len(node.output) != 1 or not node.input:
        return None
    if not all(name in graph.constants and graph.constants[name].size <= MAX_FOLDED for name in node.input if name):
        return None
    inputs = {name: graph.constants[name] for name in node.input if name}
    if any(value.dtype != np.int64 for value in inputs.values()):
        return None
    (result,) = ReferenceEvaluator(node).run(None, inputs)
    folded: Array = np.asarray(result)
    return folded if folded.size <= MAX_FOLDED else None


def _with_separate_parts(graph: _Graph) -> None:
    """A multiplication by weights of which only parts are taken becomes one for each part: nothing is copied."""
    takers = graph.takers()
    parts: dict[str, onnx.NodeProto] = {}
    for node in graph.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in graph.weights or node.output[0] in graph.kept:
            continue
        slices = [(taker, _columns(graph, taker, node.output[0])) for taker in takers[node.output[0]]]
        if not all(columns for _, columns in slices):
            continue
        weights = graph.value(node.input[1])
        for taker, columns in slices:
            name = f"{taker.output[0]}.weight"
            graph.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(weights[:, columns]), name))
            parts[taker.output[0]] = helper.make_node("MatMul", [node.input[0], name], list(taker.output))
    graph.replace(parts.get(node.output[0], node) for node in graph.graph.node)


def _columns(graph: _Graph, node: onnx.NodeProto, value: str) -> slice | None:
    """Which columns of a value a node takes, if it does that only."""
    if node.op_type != "Slice" or node.input[0] != value or not all(graph.is_constant(name) for name in node.input[1:]):
        return None
    bounds = [graph.value(name).tolist() for name in node.input[1:]]
    start, end, axis, step = [*bounds, [0], [1]][:4] if len(bounds) != 3 else [*bounds, [1]]
    last = len(graph.shapes.get(value, ())) - 1
    return slice(start[0], end[0]) if axis in ([-1], [last]) and step == [1] and 0 <= start[0] < end[0] else None


def _with_tokens_that_are_read(graph: _Graph) -> None:
    """Where one token of each text is read in the end, what goes before is computed for it alone, as far back as tokens don't mix."""
    takers = graph.takers()
    for read in graph.graph.node:
        if _is_read(graph, read) and len(takers[read.input[0]]) == 1 and (alone := _alone(graph, read, takers)):
            _read_earlier(graph, read, alone)
            return


def _read_earlier(graph: _Graph, read: onnx.NodeProto, alone: set[str]) -> None:
    """Takes the token that `read` takes from what the nodes that return `alone` are given, instead of from their results."""
    index = graph.producers.get(read.input[1])
    nodes = [] if index is None else [index]
    taken: dict[str, str] = {}
    for node in graph.graph.node:
        for position, name in enumerate(node.input):
            if node.output[0] not in alone:
                node.input[position] = read.input[0] if name == read.output[0] else name
            elif not graph.is_constant(name) and name not in alone:
                if name not in taken:
                    taken[name] = f"{name}.read"
                    nodes.append(helper.make_node("Gather", [name, read.input[1]], [taken[name]], axis=1))
                node.input[position] = taken[name]
        if node.output[0] not in {read.output[0], read.input[1]}:
            nodes.append(node)
    graph.replace(nodes)


def _is_read(graph: _Graph, node: onnx.NodeProto) -> bool:
    """Whether a node takes one token of each text."""
    return (
        node.op_type == "Gather"
        and node.output[0] not in graph.kept
        and [attribute.i for attribute in node.attribute] == [1]
        and len(graph.shapes.get(node.input[0], ())) == 3
        and graph.is_constant(node.input[1])
        and graph.value(node.input[1]).shape == ()
    )


def _alone(graph: _Graph, read: onnx.NodeProto, takers: dict[str, list[onnx.NodeProto]]) -> set[str]:
    """What is returned before `read` and can be computed for its token alone, because nothing else takes it."""
    alone = {read.output[0]}
    tokens = graph.shapes[read.input[0]][1]
    for node in reversed(graph.graph.node):
        is_for_read = {taker.output[0] for name in node.output for taker in takers.get(name, [])} <= alone
        if is_for_read and not graph.kept.intersection(node.output) and _keeps_apart(graph, node, tokens):
            alone.add(node.output[0])
    return alone - {read.output[0]}


def _keeps_apart(graph: _Graph, node: onnx.NodeProto, tokens: int | str) -> bool:
    """Whether what a node returns for a token depends on that token only."""
    if node.op_type not in BY_TOKEN or any(attribute.name == "axis" and attribute.i != -1 for attribute in node.attribute):
        return False
    constants = {position: graph.value(name).ndim for position, name in enumerate(node.input) if graph.is_constant(name)}
    others = [graph.shapes.get(name, []) for position, name in enumerate(node.input) if position not in constants]
    fits = constants == {1: 2} if node.op_type == "MatMul" else all(rank <= 1 for rank in constants.values())
    return fits and all(len(sizes) == 3 and sizes[1] == tokens for sizes in others)


def _with_rotations(graph: _Graph) -> None:
    """The nine operations of a rotary position embedding become the one that onnxruntime has for it."""
    halves: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.graph.node:
        rotation = _rotation(graph, node)
        if rotation is None:
            nodes.append(node)
            continue
        turned, *tables = rotation
        size = graph.shapes[tables[0]][-1]
        for table in tables:
            if table not in halves:
                halves[table] = f"{table}.half"
                rows = [
                    graph.constant(f"{table}.{name}", np.array([number]))
                    for name, number in (("from", 0), ("to", int(size) // 2), ("axis", 1))
                ]
                nodes += [*rows, graph.constant(f"{table}.rows", np.array([-1, size]))]
                nodes.append(helper.make_node("Reshape", [table, f"{table}.rows"], [f"{table}.whole"]))
                nodes.append(helper.make_node("Slice", [f"{table}.whole", *(row.output[0] for row in rows)], [halves[table]]))
        first = f"{node.output[0]}.first"
        nodes.append(graph.constant(first, np.array([0])))
        inputs = [turned, first, *(halves[table] for table in tables)]
        nodes.append(helper.make_node("RotaryEmbedding", inputs, list(node.output), domain="com.microsoft"))
    graph.replace(nodes)
    if halves:
        graph.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def _rotation(graph: _Graph, node: onnx.NodeProto) -> tuple[str, str, str] | None:
    """What a sum turns, and the tables of cosines and sines, if it is x·cos + (−second half of x, first half)·sin."""
    for summand, other in permutations(node.input) if node.op_type == "Add" else ():
        plain, swapped = graph.made_by(summand, "Mul"), graph.made_by(other, "Mul")
        joined = swapped and graph.made_by(swapped.input[0], "Concat")
        negative = joined and graph.made_by(joined.input[0], "Neg")
        first, second = joined and graph.made_by(joined.input[1], "Slice"), negative and graph.made_by(negative.input[0], "Slice")
        if not (plain and swapped and first and second):
            continue
        turned, tables = graph.uncast(plain.input[0]), (plain.input[1], swapped.input[1])
        size = graph.shapes.get(turned, [0])[-1]
        if (
            not isinstance(size, int)
            or len(graph.shapes[turned]) != 4
            or {graph.uncast(part.input[0]) for part in (first, second)} != {turned}
        ):
            continue
        columns = [_columns(graph, part, part.input[0]) for part in (first, second)]
        bounds = [part and part.indices(size)[:2] for part in columns]
        if bounds == [(0, size // 2), (size // 2, size)] and all(_is_shared(graph, table, size) for table in tables):
            return turned, *tables
    return None


def _is_shared(graph: _Graph, table: str, size: int) -> bool:
    """Whether a table of angles is the same for all texts and heads, and its two halves are equal."""
    sizes = graph.shapes.get(table, [])
    if len(sizes) != 4 or sizes[:2] != [1, 1] or sizes[-1] != size:
        return False
    node = graph.producers.get(table)
    while node is not None and node.op_type in {"Unsqueeze", "Cast", "Mul", "Cos", "Sin"}:
        node = graph.producers.get(node.input[0])
    return node is not None and node.op_type == "Concat" and len(set(node.input)) == 1
