"""The part of the OpenAPI document that tells of the graph's entities, their types and their merges."""

from typing import Any

from memory_mcp.server.entity_routes import KINDS, OFFSET_LIMIT
from memory_mcp.server.entity_views import ENTITIES_LIMIT, ENTITIES_SHOWN, SHOWN, SHOWN_LIMIT
from memory_mcp.server.openapi_parts import COUNT, TEXT, Schema, answer_of, asked, body_of, named, schema_of, up_to

_TEXTS: Schema = {"type": "array", "items": TEXT}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_CHANGES = {
    "name": TEXT,
    "type": {**TEXT, "description": "One of those that GET /api/graph/types lists."},
    "subtype": {**TEXT, "description": "What sort of its type it is: engineer, restaurant. Empty for none."},
    "description": {**TEXT, "description": "Empty for none."},
    "attributes": {"type": "object", "description": "All that is known of it by name, such as a role or an address. Empty for none."},
    "aliases": {**_TEXTS, "description": "All its further names."},
    "importance": _SHARE,
}


def _listed(schema: str) -> Schema:
    return {"type": "array", "items": named(schema)}


SCHEMAS: dict[str, Schema] = {
    "Entity": schema_of(
        *("id", "name", "type", "confidence"),
        id=TEXT,
        name=TEXT,
        type=TEXT,
        aliases=_TEXTS,
        subtype=TEXT,
        description=TEXT,
        attributes={"type": "object"},
        mentions=COUNT,
        confidence=_SHARE,
        importance=_SHARE,
    ),
    "Entities": schema_of("persona", "entities", "in_all", persona=TEXT, entities=_listed("Entity"), in_all=COUNT),
    "OneEntity": schema_of(
        *("persona", "entity"),
        persona=TEXT,
        entity=named("Entity"),
        by_meaning={"type": "object"},
        namesakes=_listed("Entity"),
        merges=_listed("EntityMerge"),
        note=TEXT,
    ),
    "NewEntity": schema_of("name", **_CHANGES),
    "EntityChange": schema_of("entity", entity={**TEXT, "description": "A name or an id."}, **_CHANGES),
    "EntityDeleted": schema_of("persona", "deleted", persona=TEXT, deleted=TEXT),
    "GraphType": schema_of(
        *("name", "display_name", "used", "user_defined"),
        name=TEXT,
        display_name=TEXT,
        description=TEXT,
        color=TEXT,
        directed={"type": "boolean"},
        used=COUNT,
        user_defined={"type": "boolean"},
    ),
    "GraphTypes": schema_of(
        *("persona", "entity_types", "relation_types"), persona=TEXT, entity_types=_listed("GraphType"), relation_types=_listed("GraphType")
    ),
    "NewGraphType": schema_of(
        *("kind", "name"),
        kind={"enum": list(KINDS)},
        name=TEXT,
        display_name=TEXT,
        description=TEXT,
        color={**TEXT, "description": "Of entities: # and six hexadecimal digits."},
        directed={"type": "boolean", "description": "Of relations.", "default": True},
    ),
    "EntityMerge": schema_of(
        *("merge", "entity", "into"), merge=COUNT, entity=TEXT, into=TEXT, reason=TEXT, merged_at=TEXT, undone_at=TEXT
    ),
    "MergeProposal": schema_of(
        *("entity", "entity_id", "into", "into_id", "type", "score", "why"),
        entity=TEXT,
        entity_id=TEXT,
        into=TEXT,
        into_id=TEXT,
        type=TEXT,
        score=_SHARE,
        why=_TEXTS,
    ),
    "EntityMerges": schema_of(
        *("persona", "proposals", "proposals_in_all", "merges"),
        persona=TEXT,
        proposals=_listed("MergeProposal"),
        proposals_in_all=COUNT,
        merges=_listed("EntityMerge"),
    ),
    "EntityMerging": schema_of(
        entity={**TEXT, "description": "Who goes into the other: a name or an id."},
        into={**TEXT, "description": "Who stays."},
        undo={"type": "integer", "description": "The number of a merge."},
        distinct={"type": "boolean", "description": "They are two, and are not proposed again."},
        reason=TEXT,
    ),
    "EntityMerged": schema_of(
        "persona", persona=TEXT, merge=COUNT, undone=COUNT, into=named("Entity"), entity=named("Entity"), distinct=_TEXTS
    ),
}


_ENTITY = asked("entity", "A name or an id.", TEXT, required=True)

PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/api/graph/entities": {
        "get": {
            "summary": "Whom and what memories name, the most mentioned first.",
            "of_persona": True,
            "parameters": [
                asked("query", "A part of a name.", TEXT),
                asked("type", "Only of this type.", TEXT),
                up_to("limit", "How many.", ENTITIES_LIMIT, ENTITIES_SHOWN),
                asked("offset", "After how many.", {"type": "integer", "minimum": 0, "maximum": OFFSET_LIMIT, "default": 0}),
            ],
            "answer": answer_of("Entities"),
        },
        "post": {
            "summary": "Makes an entity, which stays whether or not a memory names it.",
            "of_persona": True,
            "requestBody": body_of("NewEntity"),
            "answer": answer_of("OneEntity"),
        },
    },
    "/api/graph/entity": {
        "get": {"summary": "One entity.", "of_persona": True, "parameters": [_ENTITY], "answer": answer_of("OneEntity")},
        "patch": {
            "summary": "Changes its names, its type or what is said of it.",
            "of_persona": True,
            "requestBody": body_of("EntityChange"),
            "answer": answer_of("OneEntity"),
        },
        "delete": {
            "summary": "Takes it away; a text that names it again makes it anew.",
            "of_persona": True,
            "parameters": [_ENTITY],
            "answer": answer_of("EntityDeleted"),
        },
    },
    "/api/graph/types": {
        "get": {"summary": "The types of entities and relations.", "of_persona": True, "answer": answer_of("GraphTypes")},
        "post": {"summary": "Adds a type.", "of_persona": True, "requestBody": body_of("NewGraphType"), "answer": answer_of("GraphTypes")},
        "delete": {
            "summary": "Takes a type away that was added and that nothing uses.",
            "of_persona": True,
            "parameters": [asked("kind", "Of what.", {"enum": list(KINDS)}, required=True), asked("name", "Which.", TEXT, required=True)],
            "answer": answer_of("GraphTypes"),
        },
    },
    "/api/graph/merges": {
        "get": {
            "summary": "Who may be one under two names, and the merges so far.",
            "of_persona": True,
            "parameters": [up_to("limit", "How many of each.", SHOWN_LIMIT, SHOWN)],
            "answer": answer_of("EntityMerges"),
        },
        "post": {
            "summary": "Merges two entities, undoes a merge, or says that two are not the same.",
            "of_persona": True,
            "requestBody": body_of("EntityMerging"),
            "answer": answer_of("EntityMerged"),
        },
    },
}
