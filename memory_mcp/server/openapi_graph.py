"""The routes of the graph in the OpenAPI document."""

from typing import Any

from memory_mcp.graph.analytics.centrality import MEASURES
from memory_mcp.graph.analytics.growth import INTERVALS
from memory_mcp.graph.query.paths import ALGORITHMS
from memory_mcp.server.link_views import LINKS_LIMIT, LINKS_SHOWN
from memory_mcp.server.openapi_parts import COUNT, TEXT, Schema, answer_of, asked, flag, one_of, schema_of, up_to

GRAPHML = "application/graphml+xml"
_NUMBER: Schema = {"type": "number"}
_OBJECT: Schema = {"type": "object"}
_OBJECTS: Schema = {"type": "array", "items": _OBJECT}
_COUNTED: Schema = {"type": "object", "additionalProperties": COUNT}
_WHOSE: dict[str, Schema] = {"persona": TEXT, "new_persona": {"const": True}, "did_you_mean": {"type": "array", "items": TEXT}}

_MIN_WEIGHT = asked("min_weight", "Relations that are lighter are left out.", {"type": "number", "minimum": 0, "maximum": 1, "default": 0})
_MIN_CONFIDENCE = asked("min_confidence", "How sure relations must be.", {"type": "number", "minimum": 0, "maximum": 1, "default": 0})
_RELATION_TYPES = asked("relation_types", "Only along relations of these types.", {"type": "array", "items": TEXT})
_ENTITY: Schema = {"type": "object", "required": ["id", "name", "type"], "properties": {"id": TEXT, "name": TEXT, "type": TEXT}}

SCHEMAS: dict[str, Schema] = {
    "GraphStatistics": schema_of(
        *("persona", "entities", "relations", "pairs", "density", "components", "largest_component", "isolated", "mean_degree"),
        *("clustering", "mean_distance", "by_type", "relations_by_type"),
        **_WHOSE,
        entities=COUNT,
        relations=COUNT,
        pairs=COUNT,
        density=_NUMBER,
        components=COUNT,
        largest_component=COUNT,
        isolated=COUNT,
        mean_degree=_NUMBER,
        clustering=_NUMBER,
        mean_distance={"type": ["number", "null"]},
        sampled=COUNT,
        by_type=_COUNTED,
        relations_by_type=_COUNTED,
    ),
    "GraphAnalytics": schema_of(
        *("persona", "measure", "scores", "entities_in_all"),
        **_WHOSE,
        measure={"enum": list(MEASURES)},
        scores={"type": "array", "items": {**_ENTITY, "properties": {**_ENTITY["properties"], "score": _NUMBER}}},
        entities_in_all=COUNT,
        sampled=COUNT,
    ),
    "GraphCommunities": schema_of(
        *("persona", "communities", "communities_in_all", "modularity"),
        **_WHOSE,
        communities={"type": "array", "items": schema_of("size", "members", size=COUNT, members={"type": "array", "items": _ENTITY})},
        communities_in_all=COUNT,
        modularity=_NUMBER,
    ),
    "GraphGrowth": schema_of(
        *("persona", "interval", "growth"),
        **_WHOSE,
        interval={"enum": list(INTERVALS)},
        growth={
            "type": "array",
            "items": schema_of(
                *("begins", "entities", "relations", "entities_in_all", "relations_in_all"),
                begins={"type": "string", "format": "date"},
                **dict.fromkeys(("entities", "relations", "entities_in_all", "relations_in_all"), COUNT),
            ),
        },
        earlier=COUNT,
    ),
    "GraphPicture": schema_of(
        *("persona", "entities_in_all", "relations_in_all"),
        **_WHOSE,
        nodes=_OBJECTS,
        edges=_OBJECTS,
        entities=_OBJECTS,
        relations=_OBJECTS,
        entities_in_all=COUNT,
        relations_in_all=COUNT,
    ),
    "GraphNeighbors": schema_of(
        *("persona", "entity", "neighbors"),
        **_WHOSE,
        entity=_OBJECT,
        by_meaning=_OBJECT,
        neighbors={
            "type": "array",
            "items": schema_of(
                *("name", "type", "distance", "nearness", "via", "weight", "confidence"),
                **dict.fromkeys(("name", "type", "via"), TEXT),
                **dict.fromkeys(("nearness", "weight", "confidence"), _NUMBER),
                distance=COUNT,
                **dict.fromkeys(("valid_from", "valid_to"), TEXT),
                more_relations=COUNT,
            ),
        },
        more=COUNT,
        namesakes=_OBJECTS,
        note=TEXT,
    ),
    "GraphPaths": schema_of(
        "persona", "source", "target", "paths", **_WHOSE, source=TEXT, target=TEXT, paths=_OBJECTS, namesakes=_OBJECTS, note=TEXT
    ),
    "MemoryLinks": schema_of(
        *("persona", "key", "links", "in_all"),
        **_WHOSE,
        key=TEXT,
        links={
            "type": "array",
            "items": schema_of(
                *("type", "memory", "weight", "confidence", "method"),
                type=TEXT,
                direction={"enum": ["to", "from"]},
                memory=_OBJECT,
                weight=_NUMBER,
                confidence=_NUMBER,
                method=TEXT,
            ),
        },
        in_all=COUNT,
        note=TEXT,
    ),
    "NodeLink": schema_of(
        *("directed", "multigraph", "graph", "nodes", "edges"),
        directed={"const": True},
        multigraph={"const": True},
        graph=_OBJECT,
        nodes=_OBJECTS,
        edges=_OBJECTS,
    ),
}


def _get(summary: str, schema: str, *parameters: Schema) -> dict[str, Any]:
    return {"get": {"summary": summary, "of_persona": True, "parameters": list(parameters), "answer": answer_of(schema)}}


PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/api/graph/statistics": _get("The graph in figures.", "GraphStatistics", _MIN_WEIGHT),
    "/api/graph/analytics": _get(
        "Who counts most.",
        "GraphAnalytics",
        one_of("measure", "By what.", *MEASURES),
        up_to("limit", "How many.", 100, 20),
        _MIN_WEIGHT,
    ),
    "/api/graph/communities": _get(
        "Who belongs together, the largest groups first.",
        "GraphCommunities",
        up_to("limit", "How many groups.", 50, 20),
        up_to("members", "How many of each.", 50, 10),
        _MIN_WEIGHT,
    ),
    "/api/graph/growth": _get(
        "How the graph grew.", "GraphGrowth", one_of("interval", "In what steps.", *INTERVALS), up_to("limit", "How many.", 1_000, 24)
    ),
    "/api/graph/snapshot": _get(
        "The entities that count most and what relates them, for vis.js or as plain JSON.",
        "GraphPicture",
        one_of("format", "What for.", "vis", "json"),
        up_to("limit", "How many entities.", 500, 50),
        asked("types", "Only entities of these types.", {"type": "array", "items": TEXT}),
    ),
    "/api/graph/neighbors": _get(
        "Whom an entity is related to.",
        "GraphNeighbors",
        asked("entity", "A name or an id.", {"type": "string", "minLength": 1}, required=True),
        up_to("depth", "Hops.", 3, 1),
        _RELATION_TYPES,
        _MIN_CONFIDENCE,
        up_to("limit", "How many.", 100, 20),
    ),
    "/api/graph/paths": _get(
        "How two entities hang together.",
        "GraphPaths",
        asked("source", "A name or an id.", {"type": "string", "minLength": 1}, required=True),
        asked("target", "A name or an id.", {"type": "string", "minLength": 1}, required=True),
        one_of("algorithm", "Which ways.", *ALGORITHMS),
        up_to("max_depth", "Hops.", 6, 4),
        _RELATION_TYPES,
        _MIN_CONFIDENCE,
    ),
    "/api/graph/memory-links": _get(
        "To which memories one is linked, and how.",
        "MemoryLinks",
        asked("key", "Of the memory.", {"type": "string", "minLength": 1}, required=True),
        asked("types", "Only links of these types.", {"type": "array", "items": TEXT}),
        up_to("limit", "How many.", LINKS_LIMIT, LINKS_SHOWN),
    ),
    "/api/graph/export": {
        "get": {
            "summary": "The whole graph, as GraphML or as node-link JSON.",
            "of_persona": True,
            "parameters": [
                one_of("format", "As what.", "graphml", "json"),
                flag("include_secret", "What only secret memories speak of, too."),
            ],
            "answer": {GRAPHML: {"schema": TEXT}, **answer_of("NodeLink")},
        }
    },
}
