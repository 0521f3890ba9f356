"""The OpenAPI document of the routes beside MCP, kept by hand: what each takes, and what every answer of it holds.

A test compares it with the routes that there are, and another one calls them by it with everything a schema allows.
"""

from collections.abc import Mapping
from typing import Any

from memory_mcp import __version__
from memory_mcp.server import openapi_backups, openapi_entities, openapi_graph, openapi_organize, openapi_upkeep
from memory_mcp.server.openapi_parts import COUNT, COUNTS, JSON, TEXT, Schema, answer_of, flag, named, one_of, schema_of

JSON_LINES, ZIP = "application/x-ndjson", "application/zip"
_PARTS = (openapi_backups, openapi_entities, openapi_graph, openapi_organize, openapi_upkeep)

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
        "paths": {
            path: {method: _operation(**told) for method, told in methods.items()}
            for part in (_PATHS, *(part.PATHS for part in _PARTS))
            for path, methods in part.items()
        },
        "components": {
            "schemas": {
                name: {"type": "object", **schema}
                for part in (_SCHEMAS, *(part.SCHEMAS for part in _PARTS))
                for name, schema in part.items()
            },
            "parameters": {"persona": _PERSONA},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "Only where tokens are in use."}},
        },
        "security": [{"token": []}, {}],
    }


def queried(method: str, path: str) -> tuple[str, ...]:
    """The parameters that a route reads from the query."""
    methods: dict[str, dict[str, Any]] = next((part[path] for part in (_PATHS, *(part.PATHS for part in _PARTS)) if path in part), {})
    return tuple(one["name"] for one in methods.get(method.lower(), {}).get("parameters", []))


def _operation(summary: str, answer: Mapping[str, Any], of_persona: bool = False, **further: Any) -> dict[str, Any]:
    refusal = {"description": "Refused, and why.", "content": {JSON: {"schema": named("Refusal")}}}
    asked = [{"$ref": "#/components/parameters/persona"}] if of_persona else []
    told = {"summary": summary, **further, "responses": {"200": {"description": "Done.", "content": answer}, "default": refusal}}
    parameters = [*asked, *further.get("parameters", [])]
    return {**told, "parameters": parameters} if parameters else told


_PERSONA = {
    "name": "X-Persona",
    "in": "header",
    "description": "Whose memory: UTF-8 or percent-encoded. Without one, `on_missing_persona` in config.json says what happens.",
    "schema": {"type": "string"},
}

_BY_KIND: Schema = {"type": "object", "additionalProperties": COUNT}
_SCHEMAS: dict[str, Schema] = {
    "Refusal": schema_of("error", error=TEXT),
    "Health": schema_of("status", "version", status={"const": "ok"}, version=TEXT),
    "Readiness": schema_of(
        "ready",
        ready={"const": True},
        version=TEXT,
        mode={"enum": ["hybrid", "keyword"]},
        models={
            "type": "object",
            "required": ["embedder", "reranker"],
            "additionalProperties": {"type": "object", "required": ["state"], "properties": {"state": TEXT}},
        },
        index_lag=COUNT,
        index={"type": "object", "required": ["lag"], "properties": {"lag": COUNT}},
        chores={
            "type": "object",
            "additionalProperties": schema_of(
                "enabled", "due", "failing", enabled={"type": "boolean"}, due=COUNT, failing={"type": "array", "items": TEXT}
            ),
        },
        config_error={"type": ["string", "null"]},
        config_warnings={"type": "array", "items": TEXT},
        restart_pending={"type": "array", "items": TEXT},
        started_at=_MOMENT,
    ),
    "Personas": schema_of("personas", personas={"type": "array", "items": named("Persona")}),
    "Persona": schema_of("name", name=TEXT, error=TEXT, **COUNTS),
    "Statistics": schema_of(
        "persona",
        *COUNTS,
        "by_kind",
        "first",
        "last",
        "database_bytes",
        persona=TEXT,
        new_persona={"const": True},
        did_you_mean={"type": "array", "items": TEXT},
        **COUNTS,
        by_kind={"type": "object", "additionalProperties": COUNT},
        first=_MOMENT,
        last=_MOMENT,
        database_bytes=COUNT,
    ),
    "Imported": schema_of(
        "persona",
        "stored",
        "already_known",
        "refused",
        "errors",
        persona=TEXT,
        stored=COUNT,
        already_known=COUNT,
        refused=COUNT,
        errors={"type": "array", "items": named("RefusedLine")},
        dry_run={"const": True},
        revised=COUNT,
        dropped=COUNT,
        versions=COUNT,
        context=COUNT,
        vectors=COUNT,
        vectors_left=COUNT,
        graph=COUNT,
        redacted=_BY_KIND,
        flagged=_BY_KIND,
    ),
    "RefusedLine": schema_of("line", "reason", line={"type": "integer", "minimum": 1}, reason=TEXT),
    "OpenAPI": schema_of("openapi", "paths", openapi=TEXT, paths={"type": "object"}),
}

_PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/health": {"get": {"summary": "Alive. Touches no disk.", "answer": answer_of("Health")}},
    "/ready": {"get": {"summary": "What works now.", "answer": answer_of("Readiness")}},
    "/api/openapi.json": {"get": {"summary": "This document.", "answer": answer_of("OpenAPI")}},
    "/api/personas": {"get": {"summary": "Every persona with its counts.", "answer": answer_of("Personas")}},
    "/api/stats": {"get": {"summary": "The statistics of one persona.", "of_persona": True, "answer": answer_of("Statistics")}},
    "/api/import": {
        "post": {
            "summary": "Stores JSON lines, one memory each, while they stream in.",
            "of_persona": True,
            "parameters": [
                flag("dry_run", "Only say what would become of the lines."),
                one_of("on_known", "What becomes of a line whose key is there with other content.", "refuse", "keep", "revise"),
            ],
            "requestBody": {"content": {JSON_LINES: {"schema": {"type": "string"}}}},
            "answer": answer_of("Imported"),
        }
    },
    "/api/export": {
        "get": {
            "summary": "All memories of one persona, as JSON lines or as notes.",
            "of_persona": True,
            "parameters": [
                flag("include_deleted", "Those in the trash too."),
                flag("include_secret", "Those whose privacy_level is secret too. Without it X-Secret-Left-Out says how many there are."),
                flag("include_versions", "Every earlier state of each."),
                flag("include_vectors", "What the embedding model made of each; only as JSON lines."),
                flag("include_context", "What persona_context.json says."),
                one_of("format", "JSON lines, or a zip of Markdown notes: an Obsidian vault.", "jsonl", "markdown"),
            ],
            "answer": {JSON_LINES: {"schema": {"type": "string"}}, ZIP: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
}
