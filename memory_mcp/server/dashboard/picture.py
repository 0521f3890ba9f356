"""The graph as a drawing: where each entity stands, and the lines between them, for an SVG picture whose names are links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_mcp.extras import require

# Beyond these, names cover each other: only the most mentioned are written out, and all are in the table.
NAMED = 80
SEED, ITERATIONS, HOLD = 7, 60, 0.3
WIDTH, HEIGHT, MARGIN = 1_000, 700, 60
SMALLEST, LARGEST = 7.0, 20.0
# Lines of heavy relations are thicker, unless there are so many that they would cover the rest.
THICKEST, CROWDED = 4.0, 200


@dataclass(frozen=True, slots=True)
class Dot:
    """An entity in the picture."""

    name: str
    type: str
    color: str
    x: float
    y: float
    radius: float
    is_named: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A relation in the picture."""

    label: str
    x1: float
    y1: float
    x2: float
    y2: float
    width: float


@dataclass(frozen=True, slots=True)
class Picture:
    """All of them, in a frame of `WIDTH` by `HEIGHT`, and the color of each type."""

    dots: Sequence[Dot]
    lines: Sequence[Line]
    colors: Mapping[str, str]
    width: int = WIDTH
    height: int = HEIGHT


def drawn(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Picture:
    """Place the nodes and edges of a snapshot for vis.js. The same graph always looks the same."""
    places = _placed(nodes, edges)
    most = max((node["value"] or 0 for node in nodes), default=0) or 1
    named = {node["id"] for node in sorted(nodes, key=lambda node: -(node["value"] or 0))[:NAMED]}
    dots = [
        Dot(
            node["label"],
            node["group"],
            node["color"],
            *places[node["id"]],
            round(SMALLEST + (LARGEST - SMALLEST) * ((node["value"] or 0) / most) ** 0.5, 1),
            node["id"] in named,
        )
        for node in nodes
    ]
    thickest = THICKEST if len(edges) <= CROWDED else 1.0
    lines = [
        Line(edge["label"], *places[edge["from"]], *places[edge["to"]], round(thickest * float(edge["value"]), 1))
        for edge in edges
        if edge["from"] != edge["to"]
    ]
    return Picture(dots, lines, {node["group"]: node["color"] for node in nodes})


def _placed(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    require("graph", "the graph can't be drawn")
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    graph = rustworkx.PyGraph(multigraph=False)
    numbers = dict(zip((node["id"] for node in nodes), graph.add_nodes_from(list(nodes)), strict=True))
    graph.add_edges_from([(numbers[edge["from"]], numbers[edge["to"]], float(edge["value"])) for edge in edges])
    # Parts that nothing connects would drift out of sight: a point that is not drawn holds them together.
    hub = graph.add_node(None)
    graph.add_edges_from([(hub, min(part), HOLD) for part in rustworkx.connected_components(graph) if hub not in part])
    layout = rustworkx.spring_layout(graph, seed=SEED, num_iter=ITERATIONS, weight_fn=float)
    places = {number: layout[number] for number in numbers.values()}
    xs, ys = [place[0] for place in places.values()], [place[1] for place in places.values()]
    return {
        identity: (_scaled(places[number][0], xs, WIDTH), _scaled(places[number][1], ys, HEIGHT)) for identity, number in numbers.items()
    }


def _scaled(value: float, values: Sequence[float], size: int) -> float:
    low, span = min(values), max(values) - min(values)
    return round(MARGIN + (size - 2 * MARGIN) * ((value - low) / span if span else 0.5), 1)
