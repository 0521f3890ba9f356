"""The graph of people and things: its tools, its routes, its analyses, and what is added to it in the background."""

from memory_mcp.config.settings import Settings
from memory_mcp.features.graph.background import chores
from memory_mcp.features.graph.dictionary import ProperNouns, proper_nouns
from memory_mcp.features.graph.operations import analytics, entities, graph, merges
from memory_mcp.features.graph.settings import Graph
from memory_mcp.server.feature import Feature
from memory_mcp.server.operation import operations_of


def names(settings: Settings) -> ProperNouns | None:
    """The dictionary, if names are found by it."""
    return proper_nouns() if settings.of(Graph).names_by == "sudachi" else None


FEATURE = Feature(
    operations=operations_of(graph, analytics, entities, merges),
    toolsets={
        "graph": (graph.entity_neighbors, graph.find_path, graph.graph_snapshot, graph.relate, graph.unrelate, merges.merge_entities),
    },
    streams={"/api/graph/export": "export"},
    chores=chores,
    names=names,
)
