"""The room of settings: a form made from the settings' own schema, each with its sentence, its limits and what is wrong with it."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from starlette.responses import Response

from memory_mcp.config.settings import FIRST_KEYS
from memory_mcp.errors import InvalidInput, SettingsRefused
from memory_mcp.features.dashboard.fields import commas
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.features.dashboard.words import Words
from memory_mcp.server.actions import configuration
from memory_mcp.server.operation import Json
from memory_mcp.server.refusals import Refused

_SENTENCE_END = re.compile(r"。\s{0,9}|\.\s{1,9}")

Shape = Literal["flag", "choice", "choices", "number", "list", "object", "text"]


@dataclass(frozen=True, slots=True)
class Field:
    """A setting in the form: its first sentence is its `label`. `written` is its value as the form has it; `choices` are the words that it takes."""

    key: str
    label: str
    sentence: str
    shape: Shape
    written: str
    chosen: Sequence[str]
    choices: Sequence[str]
    default: str
    allowed: str
    is_optional: bool
    restart: bool
    editable: bool
    set_by: str
    problem: str


@dataclass(frozen=True, slots=True)
class Section:
    """The fields of a group of keys; of those that most people look for first where there is no name."""

    name: str | None
    fields: Sequence[Field]

    @property
    def has_problem(self) -> bool:
        return any(field.problem for field in self.fields)

    @property
    def is_changed(self) -> bool:
        """Whether a value of it is not the default."""
        return any(field.set_by for field in self.fields)


class Unreadable(Exception):
    """The text in a field is not a value of the field's type."""


def overview(visit: Visit) -> Response:
    """Show the form."""
    saved = visit.fields.get("saved", [])
    return _page(visit, visit.perform(configuration.show), saved=saved)


def save(visit: Visit) -> Response:
    """Write what differs from what is in force into config.json."""
    shown = visit.perform(configuration.show)
    values, problems = {}, {}
    for setting in shown["settings"]:
        try:
            if setting["editable"] and setting["key"] in visit.fields and (value := parsed(visit, setting)) != setting["value"]:
                values[setting["key"]] = value
        except Unreadable as error:
            problems[setting["key"]] = str(error)
    if problems:
        return _page(visit, shown, 400, problems=problems)
    if not values:
        return visit.redirect("/house/settings", saved="-")
    try:
        visit.perform(configuration.change, revision=visit.field("revision"), **by_default(shown, values))
    except SettingsRefused as refused:
        return _page(visit, shown, 400, problems=refused.problems)
    except InvalidInput as refused:
        return _page(visit, shown, 400, error=visit.refused(refused))
    return visit.redirect("/house/settings", saved=list(values))


def by_default(shown: Json, values: Mapping[str, Any]) -> Json:
    """A change that takes keys which get their default again out of the file."""
    defaults = {setting["key"]: setting["schema"].get("default") for setting in shown["settings"]}
    reset = [key for key, value in values.items() if value == defaults[key]]
    return {"values": {key: value for key, value in values.items() if key not in reset}, "reset": reset}


def parsed(visit: Visit, setting: Json) -> Any:
    """The value of a field of the form.

    Raises:
        Unreadable: it is none of the setting's type.
    """
    schema, text = setting["schema"], visit.field(setting["key"])
    inner, is_optional = _inner(schema)
    if not text and is_optional:
        return None
    try:
        return _readers(inner, [value for value in visit.fields[setting["key"]] if value])[_shape(inner)](text)
    except ValueError:
        raise Unreadable(_allowed(schema, visit.words)) from None


def _readers(inner: Mapping[str, Any], chosen: list[str]) -> Mapping[Shape, Callable[[str], Any]]:
    """How the text of a field becomes a value, by its shape."""
    return {
        "flag": lambda text: {"true": True, "false": False}.get(text, text),
        "number": int if inner.get("type") == "integer" else float,
        "choices": lambda _: chosen,
        "list": commas,
        "object": json.loads,
        "choice": str,
        "text": str,
    }


def _page(
    visit: Visit,
    shown: Json,
    status: int = 200,
    *,
    problems: Mapping[str, str] | None = None,
    error: Refused | None = None,
    saved: Sequence[str] = (),
) -> Response:
    fields = {setting["key"]: _field(visit, setting, problems or {}) for setting in shown["settings"]}
    groups: dict[str | None, list[Field]] = {None: [fields.pop(key) for key in FIRST_KEYS if key in fields]}
    for key, field in fields.items():
        groups.setdefault(key.rpartition(".")[0], []).append(field)
    return visit.page(
        "settings.html",
        status,
        sections=[Section(name, of_group) for name, of_group in groups.items() if of_group],
        titles={name: texts[visit.language == "ja"] for name, texts in _sentences()["groups"].items()},
        shown=shown,
        problems=problems,
        error=error,
        saved=[key for key in saved if any(key == setting["key"] for setting in shown["settings"]) or key == "-"],
    )


def _field(visit: Visit, setting: Json, problems: Mapping[str, str]) -> Field:
    key, schema = setting["key"], setting["schema"]
    inner, is_optional = _inner(schema)
    shape = _shape(inner)
    is_written = visit.request.method == "POST" and setting["editable"] and key in visit.fields
    allowed = _allowed(schema, visit.words)
    label, sentence = _in_two((_sentences()["keys"] if visit.language == "ja" else {}).get(key, schema.get("description", "")))
    why = problems.get(key, "")
    return Field(
        key=key,
        label=label,
        sentence=sentence,
        shape=shape,
        written=visit.field(key) if is_written else as_written(setting["value"]),
        chosen=visit.fields[key] if is_written else [str(value) for value in setting["value"]] if shape == "choices" else [],
        choices=inner.get("items", {}).get("enum", []) if shape == "choices" else inner.get("enum", []),
        default=as_written(schema.get("default")) or visit.words("setting_empty"),
        allowed=allowed,
        is_optional=is_optional,
        restart=setting["restart"],
        editable=setting["editable"],
        set_by=setting.get("set_by", ""),
        problem=visit.words("setting_wrong", why=f"{visit.words('setting_allowed', value=allowed)}" if visit.language == "ja" else why)
        if why
        else "",
    )


def _in_two(text: str) -> tuple[str, str]:
    """The first sentence without its end, and the others."""
    first, *others = _SENTENCE_END.split(text, maxsplit=1)
    return (first, others[0]) if others and others[0] else (text.rstrip(".。"), "")


def as_written(value: Any) -> str:
    """A value as the form has it; a whole number without a fraction."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return repr(int(value)) if value.is_integer() else repr(value)
        case list() if all(isinstance(part, str) for part in value):
            return ", ".join(value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _inner(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of a value that is there, and whether there may be none."""
    branches = [branch for branch in schema.get("anyOf", []) if branch.get("type") != "null"]
    return (branches[0], True) if branches else (schema, False)


def _shape(inner: Mapping[str, Any]) -> Shape:
    shapes: Mapping[str, Shape] = {"boolean": "flag", "integer": "number", "number": "number", "array": "list", "object": "object"}
    if "enum" in inner.get("items", {}):
        return "choices"
    return "choice" if "enum" in inner else shapes.get(inner.get("type", ""), "text")


def _allowed(schema: Mapping[str, Any], words: Words) -> str:
    """The values that a setting takes, in words."""
    inner, is_optional = _inner(schema)
    shape = _shape(inner)
    least, above, most = inner.get("minimum"), inner.get("exclusiveMinimum"), inner.get("maximum")
    limits = [
        words("setting_least", value=as_written(least)) if least is not None else "",
        words("setting_more_than", value=as_written(above)) if above is not None else "",
        words("setting_most", value=f"{most:,}" if isinstance(most, int) else as_written(most)) if most is not None else "",
    ]
    kinds = {
        "flag": f"{words('yes')} / {words('no')}",
        "choice": " / ".join(inner.get("enum", [])),
        "choices": " / ".join(inner.get("items", {}).get("enum", [])),
        "number": words("setting_whole" if inner.get("type") == "integer" else "setting_number"),
        "list": words("setting_list"),
        "object": words("setting_object"),
        "text": words("setting_text"),
    }
    return words.comma.join([kinds[shape], *filter(None, limits), *([words("setting_empty")] if is_optional else [])])


@cache
def _sentences() -> Mapping[str, Mapping[str, Any]]:
    """The names of groups in English and Japanese, and the Japanese of keys."""
    return tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))
