"""The routes of upkeep and of whole personas in the OpenAPI document."""

from typing import Any

from memory_mcp.server.openapi_parts import COUNT, COUNTS, JSON, TEXT, Schema, answer_of, schema_of

_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": TEXT}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}


def _body(*required: str, **properties: Schema) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, **schema_of(*required, **properties)}
    return {"required": bool(required), "content": {JSON: {"schema": schema}}}


SCHEMAS: dict[str, Schema] = {
    "History": schema_of(
        "persona",
        "memory",
        "versions",
        "more",
        "events",
        persona=TEXT,
        memory={"type": "object"},
        versions=_OBJECTS,
        more=COUNT,
        events=_OBJECTS,
    ),
    "Revised": schema_of(
        "persona", "key", "content", "revision", persona=TEXT, key=TEXT, content=TEXT, revision={"type": "integer", "minimum": 1}
    ),
    "Purged": schema_of(
        "persona",
        "remains",
        persona=TEXT,
        dry_run={"const": True},
        confirm=TEXT,
        outcomes=_OBJECTS,
        trash=_OBJECTS,
        erase=_OBJECTS,
        to_trash=COUNT,
        to_erase=COUNT,
        trashed=COUNT,
        erased=COUNT,
        swept=_FLAG,
        also_in=_TEXTS,
        stated=_TEXTS,
        in_context=TEXT,
        kept_in=_TEXTS,
        removed=_TEXTS,
        unsearched=_TEXTS,
        remains=_TEXTS,
    ),
    "Figures": schema_of(
        "persona",
        *COUNTS,
        "versions",
        "tokens",
        persona=TEXT,
        **COUNTS,
        versions=COUNT,
        operations=COUNT,
        vectors=COUNT,
        erased=COUNT,
        tokens=_TEXTS,
    ),
    "Renamed": schema_of("persona", "renamed_from", persona=TEXT, renamed_from=TEXT, tokens=_TEXTS, note=TEXT, backups_left=TEXT),
    "Copied": schema_of("persona", "copied_from", persona=TEXT, copied_from=TEXT),
    "Merged": schema_of(
        "persona",
        "merged_from",
        "taken",
        "known",
        "erased_before",
        persona=TEXT,
        merged_from=TEXT,
        taken=COUNT,
        known=COUNT,
        erased_before=COUNT,
        renamed_keys={"type": "object", "additionalProperties": TEXT},
    ),
    "ErasedPersona": schema_of(
        "persona",
        "remains",
        persona=TEXT,
        erased={"type": ["boolean", "integer"]},
        dry_run={"const": True},
        backups=COUNT,
        removed_backups=COUNT,
        remains=_TEXTS,
    ),
}

PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/api/history": {
        "get": {
            "summary": "What a memory said before, and what was done to it.",
            "of_persona": True,
            "parameters": [{"name": "key", "in": "query", "required": True, "schema": TEXT}],
            "answer": answer_of("History"),
        }
    },
    "/api/restore": {
        "post": {
            "summary": "Lets a memory say again what it said in an earlier revision.",
            "of_persona": True,
            "requestBody": _body("key", "revision", key=TEXT, revision={"type": "integer"}, reason=TEXT),
            "answer": answer_of("Revised"),
        }
    },
    "/api/purge": {
        "post": {
            "summary": "Lists what would be erased for good, or, with the code of that list, erases it.",
            "of_persona": True,
            "requestBody": _body(keys=_TEXTS, confirm=TEXT, remove_kept=_FLAG),
            "answer": answer_of("Purged"),
        }
    },
    "/api/persona": {"get": {"summary": "A persona in figures.", "of_persona": True, "answer": answer_of("Figures")}},
    "/api/persona/rename": {
        "post": {"summary": "Another name.", "of_persona": True, "requestBody": _body("to", to=TEXT), "answer": answer_of("Renamed")}
    },
    "/api/persona/copy": {
        "post": {
            "summary": "A second persona with everything that one has.",
            "of_persona": True,
            "requestBody": _body("to", to=TEXT),
            "answer": answer_of("Copied"),
        }
    },
    "/api/persona/merge": {
        "post": {
            "summary": "The memories of a persona into another one's.",
            "of_persona": True,
            "requestBody": _body("into", into=TEXT),
            "answer": answer_of("Merged"),
        }
    },
    "/api/persona/erase": {
        "post": {
            "summary": "Lists what a persona has, or, with its name as confirmation, erases it.",
            "of_persona": True,
            "requestBody": _body(confirm=TEXT, remove_kept=_FLAG, remove_backups=_FLAG),
            "answer": answer_of("ErasedPersona"),
        }
    },
}
