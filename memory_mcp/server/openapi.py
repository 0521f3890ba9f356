"""The OpenAPI document of the routes beside MCP, kept by hand: what each takes, and what every answer of it holds.

A test compares it with the routes that there are, and another one calls them by it with everything a schema allows.
"""

from collections.abc import Mapping
from typing import Any

from memory_mcp import __version__

JSON, JSON_LINES, ZIP = "application/json", "application/x-ndjson", "application/zip"

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}


def document() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memory MCP",
            "version": __version__,
            "description": "What there is beside MCP, which is at /mcp. Any path may stand after /p/{persona} instead of having an "
            "X-Persona header. Every refusal is an object with the sentence `error`.",
        },
        "paths": {path: {method: _operation(**told) for method, told in methods.items()} for path, methods in _PATHS.items()},
        "components": {
            "schemas": {name: {"type": "object", **schema} for name, schema in _SCHEMAS.items()},
            "parameters": {"persona": _PERSONA},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "Only where tokens are in use."}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(summary: str, answer: Mapping[str, Any], of_persona: bool = False, **further: Any) -> dict[str, Any]:
    refusal = {"description": "Refused, and why.", "content": {JSON: {"schema": _named("Refusal")}}}
    asked = [{"$ref": "#/components/parameters/persona"}] if of_persona else []
    told = {"summary": summary, **further, "responses": {"200": {"description": "Done.", "content": answer}, "default": refusal}}
    parameters = [*asked, *further.get("parameters", [])]
    return {**told, "parameters": parameters} if parameters else told


def _named(schema: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema}"}


def _object(*required: str, **properties: Schema) -> Schema:
    return {"required": list(required), "properties": properties}


def _flag(name: str, description: str) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": {"type": "boolean", "default": False}}


def _choice(name: str, description: str, *values: str) -> Schema:
    """One of `values`; the first is the default."""
    return {"name": name, "in": "query", "description": description, "schema": {"enum": list(values), "default": values[0]}}


def _json(schema: str) -> dict[str, Any]:
    return {JSON: {"schema": _named(schema)}}


_PERSONA = {
    "name": "X-Persona",
    "in": "header",
    "description": "Whose memory: UTF-8 or percent-encoded. Without one, `on_missing_persona` in config.json says what happens.",
    "schema": {"type": "string"},
}

_BY_KIND: Schema = {"type": "object", "additionalProperties": _COUNT}
_COUNTS = {"memories": _COUNT, "superseded": _COUNT, "in_trash": _COUNT}

_SCHEMAS: dict[str, Schema] = {
    "Refusal": _object("error", error=_TEXT),
    "Health": _object("status", "version", status={"const": "ok"}, version=_TEXT),
    "Readiness": _object(
        "ready",
        ready={"const": True},
        version=_TEXT,
        mode={"enum": ["hybrid", "keyword"]},
        models={
            "type": "object",
            "required": ["embedder", "reranker"],
            "additionalProperties": {"type": "object", "required": ["state"], "properties": {"state": _TEXT}},
        },
        index_lag=_COUNT,
        index={"type": "object", "required": ["lag"], "properties": {"lag": _COUNT}},
        chores={
            "type": "object",
            "additionalProperties": _object(
                "enabled", "due", "failing", enabled={"type": "boolean"}, due=_COUNT, failing={"type": "array", "items": _TEXT}
            ),
        },
        config_error={"type": ["string", "null"]},
        config_warnings={"type": "array", "items": _TEXT},
        restart_pending={"type": "array", "items": _TEXT},
        started_at=_MOMENT,
    ),
    "Personas": _object("personas", personas={"type": "array", "items": _named("Persona")}),
    "Persona": _object("name", name=_TEXT, error=_TEXT, **_COUNTS),
    "Statistics": _object(
        "persona",
        *_COUNTS,
        "by_kind",
        "first",
        "last",
        "database_bytes",
        persona=_TEXT,
        new_persona={"const": True},
        did_you_mean={"type": "array", "items": _TEXT},
        **_COUNTS,
        by_kind={"type": "object", "additionalProperties": _COUNT},
        first=_MOMENT,
        last=_MOMENT,
        database_bytes=_COUNT,
    ),
    "Imported": _object(
        "persona",
        "stored",
        "already_known",
        "refused",
        "errors",
        persona=_TEXT,
        stored=_COUNT,
        already_known=_COUNT,
        refused=_COUNT,
        errors={"type": "array", "items": _named("RefusedLine")},
        dry_run={"const": True},
        revised=_COUNT,
        dropped=_COUNT,
        versions=_COUNT,
        context=_COUNT,
        vectors=_COUNT,
        vectors_left=_COUNT,
        redacted=_BY_KIND,
        flagged=_BY_KIND,
    ),
    "RefusedLine": _object("line", "reason", line={"type": "integer", "minimum": 1}, reason=_TEXT),
    "OpenAPI": _object("openapi", "paths", openapi=_TEXT, paths={"type": "object"}),
}

_PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/health": {"get": {"summary": "Alive. Touches no disk.", "answer": _json("Health")}},
    "/ready": {"get": {"summary": "What works now.", "answer": _json("Readiness")}},
    "/api/openapi.json": {"get": {"summary": "This document.", "answer": _json("OpenAPI")}},
    "/api/personas": {"get": {"summary": "Every persona with its counts.", "answer": _json("Personas")}},
    "/api/stats": {"get": {"summary": "The statistics of one persona.", "of_persona": True, "answer": _json("Statistics")}},
    "/api/import": {
        "post": {
            "summary": "Stores JSON lines, one memory each, while they stream in.",
            "of_persona": True,
            "parameters": [
                _flag("dry_run", "Only say what would become of the lines."),
                _choice("on_known", "What becomes of a line whose key is there with other content.", "refuse", "keep", "revise"),
            ],
            "requestBody": {"content": {JSON_LINES: {"schema": {"type": "string"}}}},
            "answer": _json("Imported"),
        }
    },
    "/api/export": {
        "get": {
            "summary": "All memories of one persona, as JSON lines or as notes.",
            "of_persona": True,
            "parameters": [
                _flag("include_deleted", "Those in the trash too."),
                _flag("include_secret", "Those whose privacy_level is secret too. Without it X-Secret-Left-Out says how many there are."),
                _flag("include_versions", "Every earlier state of each."),
                _flag("include_vectors", "What the embedding model made of each; only as JSON lines."),
                _flag("include_context", "What persona_context.json says."),
                _choice("format", "JSON lines, or a zip of Markdown notes: an Obsidian vault.", "jsonl", "markdown"),
            ],
            "answer": {JSON_LINES: {"schema": {"type": "string"}}, ZIP: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
}
