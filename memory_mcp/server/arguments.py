"""The types that arguments of operations are declared with, for MCP tools and HTTP routes alike.

Tools get what language models send: null for a default, and lists, objects and numbers as strings. These types accept all of it. A route
reads its query or its JSON body strictly (`http/requests.py`) and passes the values on to the same model. The word null, which programs
send as a text where they have no value, is no value in every argument but those that are texts to keep or to ask (`Words`).

The JSON schema of each type stays flat (no `anyOf`, no `$ref`), because Gemini and Ollama reject those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, ValidationInfo, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticUseDefault, core_schema

from memory_mcp.domain import KEYS_LIMIT
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import is_nothing
from memory_mcp.store.files.persona_context import PEOPLE

T = TypeVar("T", dict[str, Any], list[Any])

# A description takes a sentence or two, and every known name is compared with it.
ENTITY_NAME_LIMIT = 1_000
# The argument by which a call writes to a pool. Only servers that may have pools offer it.
POOL = "pool"


class Arguments(BaseModel):
    """The arguments of an operation. An argument that the model doesn't have is refused."""

    model_config = ConfigDict(extra="forbid")
    # Whether a route takes an empty query parameter, or a null in a body, for one that was not sent.
    blank_means_absent: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, values: Any) -> Any:
        return filled_in(cls, values) if isinstance(values, Mapping) else values


class NoArguments(Arguments):
    """For operations that take none."""


@dataclass(frozen=True, slots=True)
class AsWritten:
    """Marks an argument whose text means what it says, even if it says null."""


def filled_in(model: type[Arguments], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were filled in: without null, None and undefined as a text, but in texts that are kept as they are written."""
    fields, as_written = model.model_fields, _as_written(model)
    return {name: value for name, value in values.items() if name in as_written or name not in fields or not is_nothing(value)}


@cache
def _as_written(model: type[Arguments]) -> frozenset[str]:
    return frozenset(name for name, field in model.model_fields.items() if any(isinstance(part, AsWritten) for part in field.metadata))


@dataclass(frozen=True, slots=True)
class Http:
    """The OpenAPI entry of an argument: a description, where the tool's isn't enough, and further JSON schema keywords."""

    description: str = ""
    schema: tuple[tuple[str, Any], ...] = ()
    required: bool = False


def http(description: str = "", *, required: bool = False, **schema: Any) -> Http:
    """Describe an argument in the OpenAPI document. `required`: it must be sent, though the operation itself is what checks that."""
    return Http(description, tuple(schema.items()), required)


def must_be_sent(field: FieldInfo) -> bool:
    """Whether a route refuses a request without this argument."""
    return field.is_required() or any(isinstance(part, Http) and part.required for part in field.metadata)


@dataclass(frozen=True, slots=True)
class Between:
    """A number within limits; null and an empty text are the default. Tools describe the limits in words, OpenAPI as a schema."""

    least: float
    most: float

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        parse = _whole_number if source is int else _number

        def validated(value: Any, info: core_schema.ValidationInfo) -> Any:
            number = parse(value)
            if number is None:
                raise PydanticUseDefault
            if not self.least <= number <= self.most:
                raise InvalidInput(
                    "{} is {}", "it runs from {} to {}", "Leave it out for the default", info.field_name, value, self.least, self.most
                )
            return number

        return core_schema.with_info_before_validator_function(validated, handler(source))

    @property
    def http_schema(self) -> dict[str, Any]:
        """The keywords of the OpenAPI schema."""
        return {"minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words. Case and blanks around it don't matter, and an empty text is the default, unless it must be `exact`."""

    words: Sequence[str]
    exact: bool = False
    ignored_suffix: str = ""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def validated(value: Any, info: core_schema.ValidationInfo) -> str:
            text = _text(value)
            if not isinstance(text, str):
                raise ValueError("should be a valid string")
            word = text if self.exact else text.strip().casefold()
            if not word and not self.exact:
                raise PydanticUseDefault
            word = word.removesuffix(self.ignored_suffix)
            if word not in self.words:
                raise InvalidInput(
                    "{} is {}",
                    "it is {}",
                    "Send one of them",
                    info.field_name,
                    repr(text[:80]),
                    " or ".join(self.words) if len(self.words) == 2 else "one of " + ", ".join(self.words),
                )
            return word

        return core_schema.with_info_before_validator_function(validated, core_schema.str_schema())

    @property
    def http_schema(self) -> dict[str, Any]:
        """The keywords of the OpenAPI schema."""
        return {"enum": list(self.words)}


class _EntityName:
    """Checks the name or id of an entity, or a description of it."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def validated(value: str, info: core_schema.ValidationInfo) -> str:
            return entity_name(value, info.field_name or "entity")

        return core_schema.with_info_after_validator_function(validated, core_schema.str_schema())


def entity_name(value: str, argument: str) -> str:
    """Return the name or id of an entity, or a description of it, without blanks around it.

    Raises:
        InvalidInput: it is empty or too long.
    """
    if not value.strip():
        raise InvalidInput(
            "{} is missing", "it is the name or id of an entity", "Take a name from a memory, or look at graph_snapshot", argument
        )
    if len(value) > ENTITY_NAME_LIMIT:
        raise InvalidInput(
            "{} has {} characters", "{} are the limit", "Send a name or an id", argument, f"{len(value):,}", f"{ENTITY_NAME_LIMIT:,}"
        )
    return value.strip()


def require_keys(keys: Sequence[str], tool: str) -> None:
    """Raises InvalidInput unless there is a key, and not too many."""
    if not 0 < len(keys) <= KEYS_LIMIT:
        raise InvalidInput("keys has {} entries", "{} takes 1 to {}", "Take the keys from a recall", len(keys), tool, KEYS_LIMIT)


def kind_of(annotation: Any) -> type:
    """Return the JSON kind of an argument's type: str, int, float, bool, list or dict."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kind_of(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return kind_of(next(kind for kind in get_args(annotation) if kind is not type(None)))
    if origin is Literal:
        return str
    kind: type = origin or annotation
    return kind


def _parsed(value: Any) -> Any:
    """Return what a string of JSON holds; anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("must not hold half of a surrogate pair") from None  # it could be neither stored nor sent back
    except (ValueError, RecursionError):
        return value
    return parsed


def _text(value: Any) -> Any:
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _text_or_none(value: Any) -> Any:
    return None if value is None else _text(value)


def _text_list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    parsed = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    return [_text(entry) for entry in (parsed if isinstance(parsed, list) else [parsed]) if not is_nothing(entry)]


def _text_list_or_none(value: Any) -> list[Any] | None:
    # Clients that fill in every argument send an empty text; only an empty list means that nothing is to be left.
    return None if value is None or value == "" else _text_list(value)


def _date_range(value: Any) -> Any:
    """Turn a list of two dates, of which one may be missing, into the range between them."""
    parsed = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if not isinstance(parsed, list):
        return _text(parsed)
    ends = ["" if is_nothing(end) else _text(end) for end in parsed]
    if len(ends) > 2 or not all(isinstance(end, str) for end in ends):
        raise ValueError("must be one date, or two: where the range begins and where it ends")
    return "..".join(ends) if any(ends) else ""


def _number(value: Any) -> Any:
    parsed = _parsed(value)
    if parsed is None or parsed == "":
        return None
    if isinstance(parsed, bool) or not isinstance(parsed, int | float):
        raise ValueError("must be a number")
    return parsed


def _whole_number(value: Any) -> Any:
    number = _number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise ValueError("must be a whole number")
        return int(number)
    return number


def _flag(value: Any) -> Any:
    if value is None or value == "":
        return False
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    flag = known.get(str(value).strip().casefold())
    if flag is None:
        raise ValueError("must be true or false")
    return flag


def _texts_by_name(value: Any, info: ValidationInfo) -> dict[str, str]:
    example = '{"name": "Kenta"}' if info.field_name in PEOPLE else '{"emotion": "happy"}'
    texts = _parsed_as(dict, value, f"an object of texts such as {example}")
    return {str(name): _text(entry) for name, entry in texts.items() if entry is not None and not is_nothing(entry)}


def _object_list(value: Any) -> list[Any]:
    return _parsed_as(list, value, 'a list of objects such as [{"role": "user", "text": "hello"}]')


def _object(value: Any) -> dict[str, Any]:
    return _parsed_as(dict, value, 'an object such as {"device": "phone"}')


def _parsed_as(kind: type[T], value: Any, words: str) -> T:
    parsed = _parsed(value)
    if parsed is None or parsed == "":
        return kind()
    if not isinstance(parsed, kind):
        raise ValueError(f"must be {words}")
    return parsed


Text = Annotated[str, BeforeValidator(_text)]
# For what is kept, or asked.
Words = Annotated[Text, AsWritten()]
EntityName = Annotated[str, _EntityName(), BeforeValidator(_text)]
DateRange = Annotated[str, BeforeValidator(_date_range)]
TextList = Annotated[list[str], BeforeValidator(_text_list)]
# For arguments where an empty value differs from none: it clears what is there.
TextOrNone = Annotated[str | None, BeforeValidator(_text_or_none)]
TextListOrNone = Annotated[list[str] | None, BeforeValidator(_text_list_or_none)]
Number = Annotated[float | None, BeforeValidator(_number)]
WholeNumber = Annotated[int | None, BeforeValidator(_whole_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
TextsByName = Annotated[dict[str, str], BeforeValidator(_texts_by_name)]
Object = Annotated[dict[str, Any], BeforeValidator(_object)]
ObjectList = Annotated[list[dict[str, Any]], BeforeValidator(_object_list)]
Share = Annotated[float, Between(0, 1)]


def flat_properties(model: type[Arguments]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each argument, without titles and defaults, and without the null that every optional one takes."""
    return {name: _flat(schema) for name, schema in model.model_json_schema().get("properties", {}).items()}


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    branches = [branch for branch in schema.get("anyOf", []) if branch.get("type") != "null"]
    flat = {**schema, **branches[0]} if len(branches) == 1 else schema
    dropped = {"title", "anyOf", "default", *(["additionalProperties"] if flat.get("additionalProperties") is True else [])}
    return {keyword: value for keyword, value in flat.items() if keyword not in dropped}


def tool_schema(model: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, which every model that may call it reads: nothing in it but types and descriptions, and
    a default only where it informs: not an empty one, and not of a range or a choice, which their descriptions explain."""
    properties = flat_properties(model)
    for name, field in model.model_fields.items():
        if not field.is_required() and field.default and not any(isinstance(part, Between | OneOf) for part in field.metadata):
            properties[name]["default"] = field.default
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    schema = {"properties": {name: _without_values(spec) for name, spec in properties.items()}, "type": "object"}
    return {**schema, "required": required} if required else schema


def _without_values(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the type of an object's values, which Gemini refuses and a description replaces."""
    return {keyword: value for keyword, value in schema.items() if keyword != "additionalProperties"}


def http_schema(flat: dict[str, Any], field: FieldInfo) -> dict[str, Any]:
    """Return the OpenAPI schema of an argument, with its description."""
    schema = dict(flat)
    description = schema.pop("description", "")
    if description:
        description = f"{description[0].upper()}{description[1:]}."
    for part in field.metadata:
        if isinstance(part, Between | OneOf):
            schema |= part.http_schema
        elif isinstance(part, Http):
            schema |= dict(part.schema)
            description = part.description or description
    if "enum" in schema:
        del schema["type"]
    return {**schema, "description": description} if description else schema
