"""The graph of people and things: its tools, its routes, and its analyses."""

from memory_mcp.features.graph.operations import analytics, entities, graph, merges
from memory_mcp.server.feature import Feature
from memory_mcp.server.operation import operations_of

FEATURE = Feature(
    operations=operations_of(graph, analytics, entities, merges),
    toolsets={
        "graph": (graph.entity_neighbors, graph.find_path, graph.graph_snapshot, graph.relate, graph.unrelate, merges.merge_entities),
    },
    streams={"/api/graph/export": "export"},
)
