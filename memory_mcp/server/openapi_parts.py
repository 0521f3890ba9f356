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


def body_of(schema: str) -> dict[str, Any]:
    """A JSON body of a schema of the document, which has to be there."""
    return {"required": True, "content": answer_of(schema)}


def asked(name: str, description: str, schema: Schema, *, required: bool = False) -> Schema:
    """A parameter of the query."""
    return {"name": name, "in": "query", "description": description, "schema": schema, **({"required": True} if required else {})}


def up_to(name: str, description: str, most: int, default: int) -> Schema:
    """A whole number from 1."""
    return asked(name, description, {"type": "integer", "minimum": 1, "maximum": most, "default": default})


def one_of(name: str, description: str, *values: str) -> Schema:
    """The first is the default."""
    return asked(name, description, {"enum": list(values), "default": values[0]})


def flag(name: str, description: str) -> Schema:
    """False by default."""
    return asked(name, description, {"type": "boolean", "default": False})
