"""Where each entity of a picture of the graph goes: a force-directed layout, the same for the same graph."""

from collections.abc import Iterable, Mapping

from memory_mcp.extras import require
from memory_mcp.features.graph.query.snapshot import Snapshot

WIDTH, HEIGHT = 1_000, 800
SEED, ITERATIONS, HOLD = 7, 60, 0.3
# Each iteration looks at all pairs: with many entities there are fewer.
STEPS = 20_000

Places = Mapping[int, tuple[int, int]]


def places(snapshot: Snapshot) -> Places:
    """The place of each entity, by its id, in a frame of `WIDTH` by `HEIGHT`.

    Raises:
        NotInstalled: the extra `graph` is not installed.
    """
    require("graph", "the graph can't be drawn")
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    graph = rustworkx.PyGraph(multigraph=False)
    nodes = dict(zip((entity.id for entity in snapshot.entities), graph.add_nodes_from(list(snapshot.entities)), strict=True))
    graph.add_edges_from([(nodes[relation.source], nodes[relation.target], relation.weight) for relation in snapshot.relations])
    # Parts that nothing connects would drift out of sight: a point that is not drawn holds them together.
    hub = graph.add_node(None)
    graph.add_edges_from([(hub, min(part), HOLD) for part in rustworkx.connected_components(graph) if hub not in part])
    layout = rustworkx.spring_layout(graph, seed=SEED, num_iter=min(ITERATIONS, STEPS // len(graph)), weight_fn=float)
    xs = _scaled((layout[node][0] for node in nodes.values()), WIDTH)
    ys = _scaled((layout[node][1] for node in nodes.values()), HEIGHT)
    return dict(zip(nodes, zip(xs, ys, strict=True), strict=True))


def _scaled(values: Iterable[float], size: int) -> list[int]:
    values = list(values)
    low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    return [round(size * ((value - low) / span if span else 0.5)) for value in values]
