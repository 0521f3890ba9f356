"""The part of the OpenAPI document that tells of backups."""

from typing import Any

from memory_mcp.server.openapi_parts import COUNT, TEXT, Schema, answer_of, named, schema_of

SCHEMAS: dict[str, Schema] = {
    "Backup": schema_of(
        "persona",
        "file",
        "made_at",
        "bytes",
        "sealed",
        persona=TEXT,
        file=TEXT,
        made_at={"type": ["string", "null"], "format": "date-time"},
        bytes=COUNT,
        sealed={"type": "boolean"},
    ),
    "Backups": schema_of(
        "persona", "backups", "directory", persona=TEXT, backups={"type": "array", "items": named("Backup")}, directory=TEXT
    ),
}

PATHS: dict[str, dict[str, dict[str, Any]]] = {
    "/api/backups": {
        "get": {"summary": "The backups of one persona, the newest first.", "of_persona": True, "answer": answer_of("Backups")},
        "post": {"summary": "Makes a backup of one persona on the server's disk.", "of_persona": True, "answer": answer_of("Backup")},
    },
}
