"""The part of the OpenAPI document that tells of tidying."""

from typing import Any

from memory_mcp.server.openapi_parts import COUNT, TEXT, Schema, answer_of, body_of, schema_of, up_to

_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_PAIRS: Schema = {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}

SCHEMAS: dict[str, Schema] = {
    "Proposals": schema_of(
        *("persona", "compared", "of", "meaning", "duplicates", "low_value", "faded", "counts", "merges"),
        *("contradictions", "opposed_relations", "unsure_relations", "orphans"),
        persona=TEXT,
        compared=COUNT,
        of=COUNT,
        meaning={"type": "boolean"},
        duplicates=_OBJECTS,
        low_value=_OBJECTS,
        faded=_OBJECTS,
        counts={"type": "object", "additionalProperties": COUNT},
        contradictions=_PAIRS,
        opposed_relations=_PAIRS,
        unsure_relations=_OBJECTS,
        orphans={"type": "array", "items": TEXT},
        merges=_OBJECTS,
    ),
    "Tidying": schema_of(
        merge={"type": "array", "items": TEXT, "description": "Keys."},
        into={**TEXT, "description": "The key of the memory that stays."},
        undo={**TEXT, "description": "The operation_id of a merge."},
        reason=TEXT,
    ),
    "Tidied": schema_of(
        "persona",
        "outcomes",
        persona=TEXT,
        operation_id=TEXT,
        undoes=TEXT,
        outcomes={
            "type": "array",
            "items": {"type": "object", "required": ["key", "outcome"], "properties": {"key": TEXT, "outcome": TEXT, "reason": TEXT}},
        },
    ),
}

PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/api/organize": {
        "get": {
            "summary": "What could be tidied: duplicates, empty talk, faded memories, and the merges that can be undone.",
            "of_persona": True,
            "parameters": [up_to("top_k", "How many of each kind.", 50, 10)],
            "answer": answer_of("Proposals"),
        },
        "post": {
            "summary": "Merges memories into one of them, or undoes a merge.",
            "of_persona": True,
            "requestBody": body_of("Tidying"),
            "answer": answer_of("Tidied"),
        },
    },
}
