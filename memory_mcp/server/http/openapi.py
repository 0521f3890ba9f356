"""The OpenAPI document of the HTTP routes, generated from the operations: their routes, arguments and answers."""

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from memory_mcp import __version__
from memory_mcp.server.arguments import POOL, Arguments, flat_properties, http_schema, must_be_sent
from memory_mcp.server.feature import can_share
from memory_mcp.server.operation import JSON, Operation, Route

Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{model}"
_PERSONA = {
    "name": "X-Persona",
    "in": "header",
    "description": "The persona whose memory it is, as UTF-8 or percent-encoded. Without one, `on_missing_persona` in config.json decides.",
    "schema": {"type": "string"},
}
_POOL = {
    "name": "X-Pool",
    "in": "header",
    "description": "A pool, as UTF-8 or percent-encoded: the request is about this store instead of the persona's, as far as the persona may.",
    "schema": {"type": "string"},
}


class OpenAPI(TypedDict):
    openapi: str
    paths: dict[str, Any]


class Refusal(TypedDict):
    error: str


def document(operations: Iterable[Operation]) -> Schema:
    """Return the document, OpenAPI 3.1."""
    routed = [(operation, operation.route) for operation in operations if operation.route is not None]
    answers = {operation.answer.__name__: TypeAdapter(operation.answer) for operation, _ in routed if operation.answer}
    adapters = {**answers, Refusal.__name__: TypeAdapter(Refusal)}
    _, definitions = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()], ref_template=_REFERENCE, schema_generator=_AnswerSchema
    )
    bodies = {
        operation.arguments.__name__: _body_schema(operation.arguments) for operation, route in routed if _has_json_body(operation, route)
    }
    paths: dict[str, Schema] = {}
    for operation, route in routed:
        paths.setdefault(route.path, {})[route.method.lower()] = _described(operation, route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memory MCP",
            "version": __version__,
            "description": "The HTTP API beside MCP, which is at /mcp. Any path may follow /p/{persona} instead of having an X-Persona header. "
            "Every refusal is an object with the sentence `error`.",
        },
        "paths": paths,
        "components": {
            "schemas": {**definitions["$defs"], **bodies},
            "parameters": _addresses(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "Only on servers that use tokens."}},
        },
        "security": [{"token": []}, {}],
    }


def _addresses() -> dict[str, Schema]:
    return {"persona": _PERSONA, **({POOL: _POOL} if can_share() else {})}


def _described(operation: Operation, route: Route) -> Schema:
    parameters = [{"$ref": f"#/components/parameters/{name}"} for name in _addresses()] if route.of_persona else []
    if route.reads_query:
        parameters += _query_parameters(operation.arguments)
    content = {**route.content, **({JSON: {"schema": _reference(operation.answer.__name__)}} if operation.answer else {})}
    refusal = {"description": "Refused, and why.", "content": {JSON: {"schema": _reference(Refusal.__name__)}}}
    described: Schema = {"summary": route.summary or operation.description}
    if parameters:
        described["parameters"] = parameters
    if route.body:
        described["requestBody"] = {"content": dict(route.body)}
    elif _has_json_body(operation, route):
        model = operation.arguments
        required = any(must_be_sent(field) for field in model.model_fields.values())
        described["requestBody"] = {
            "required": required if route.body_required is None else route.body_required,
            "content": {JSON: {"schema": _reference(model.__name__)}},
        }
    return {**described, "responses": {"200": {"description": "Done.", "content": content}, "default": refusal}}


def _has_json_body(operation: Operation, route: Route) -> bool:
    return not route.reads_query and bool(operation.arguments.model_fields)


def _query_parameters(model: type[Arguments]) -> list[Schema]:
    parameters = []
    for name, (schema, required) in _http_schemas(model).items():
        default = model.model_fields[name].default
        further = {} if required or default in (None, "", []) else {"default": default}
        description = schema.pop("description", "")
        parameters.append(
            {
                "name": name,
                "in": "query",
                **({"description": description} if description else {}),
                "schema": {**schema, **further},
                **({"required": True} if required else {}),
            }
        )
    return parameters


def _body_schema(model: type[Arguments]) -> Schema:
    schemas = _http_schemas(model)
    properties = {
        name: {**schema, **({"default": model.model_fields[name].default} if not required and model.model_fields[name].default else {})}
        for name, (schema, required) in schemas.items()
    }
    required_names = [name for name, (_, required) in schemas.items() if required]
    return {"type": "object", "properties": properties, "required": required_names, "additionalProperties": False}


def _http_schemas(model: type[Arguments]) -> dict[str, tuple[Schema, bool]]:
    """Return the schema of each argument with its description, and whether it must be sent."""
    properties = flat_properties(model)
    return {
        name: (http_schema(properties[name], field), must_be_sent(field))
        for name, field in model.model_fields.items()
        if name != POOL or can_share()
    }


def _reference(name: str) -> Schema:
    return {"$ref": _REFERENCE.format(model=name)}


class _AnswerSchema(GenerateJsonSchema):
    """Schemas without titles and without keywords that allow anything; null is one of the types of a field."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _without(super().typed_dict_schema(schema), "title")

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        return {**inner, "type": [inner["type"], "null"]} if isinstance(inner.get("type"), str) else super().nullable_schema(schema)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _without(super().literal_schema(schema), "type")

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        schema_of_dict = super().dict_schema(schema)
        return _without(schema_of_dict, "additionalProperties") if schema_of_dict.get("additionalProperties") is True else schema_of_dict

    def list_schema(self, schema: core_schema.ListSchema) -> JsonSchemaValue:
        schema_of_list = super().list_schema(schema)
        return schema_of_list if schema_of_list.get("items") else _without(schema_of_list, "items")


def _without(schema: JsonSchemaValue, keyword: str) -> JsonSchemaValue:
    return {name: value for name, value in schema.items() if name != keyword}
