"""What the pieces of the OpenAPI document are made of."""

from typing import Any

JSON = "application/json"

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
COUNTS = {"memories": COUNT, "superseded": COUNT, "in_trash": COUNT}


def named(schema: str) -> Schema:
    """A reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{schema}"}


def schema_of(*required: str, **properties: Schema) -> Schema:
    """An object with these fields, of which some are always there."""
    return {"required": list(required), "properties": properties}


def answer_of(schema: str) -> dict[str, Any]:
    """A JSON answer of a schema of the document."""
    return {JSON: {"schema": named(schema)}}
