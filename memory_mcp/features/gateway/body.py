"""The body of a call as its text, of which only messages and the model's name change: every other value stays as the client wrote it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memory_mcp.characters import not_utf8
from memory_mcp.errors import InvalidInput
from memory_mcp.wording import sentence

_BLANKS = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text of JSON, and where it is."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Body:
    """`fields` are the members of the object, `messages` the elements of its `messages`."""

    text: str
    fields: Mapping[str, Value]
    messages: Sequence[Value]

    def get(self, name: str) -> Any:
        """The value of a field; None if there is none."""
        return self.fields[name].value if name in self.fields else None

    def sent(
        self, changed: Mapping[str, Any], inserted: Mapping[int, Sequence[Any]], replaced: Mapping[int, Any] = MappingProxyType({})
    ) -> bytes:
        """The body with other values of some fields, with further messages before those at some indexes, and others in the place of some."""
        edits = [(field.start, field.end, _written(changed[name])) for name, field in self.fields.items() if name in changed]
        further = [f"{_written(name)}:{_written(value)}" for name, value in changed.items() if name not in self.fields]
        end = self.text.rindex("}")
        edits += [(end, end, "".join(f",{member}" for member in further))] if further else []
        for index, messages in inserted.items():
            is_last = index == len(self.messages)
            at = self.messages[-1].end if is_last else self.messages[index].start
            edits.append((at, at, "".join(f",{_written(message)}" if is_last else f"{_written(message)}," for message in messages)))
        edits += [(self.messages[index].start, self.messages[index].end, _written(message)) for index, message in replaced.items()]
        return _edited(self.text, edits).encode()


def parsed(body: bytes) -> Body:
    """The body of a call.

    Raises:
        InvalidInput: it is no JSON object in UTF-8, or has two `messages` or models, of which nobody knows which one counts.
    """
    if other := not_utf8(body):
        raise InvalidInput(
            "the body is not UTF-8 (byte {})", sentence("it seems to be {}", other[1]) if other[1] else "", "Send it as UTF-8", other[0]
        )
    text = body.decode().removeprefix("\ufeff")
    fields: dict[str, Value] = {}
    try:
        members = _members(text)
    except (ValueError, IndexError, RecursionError) as error:
        raise InvalidInput("the body is no JSON object", "", "Send an object with model and messages") from error
    for name, value in members:
        if name in fields and name in ("messages", "model"):
            raise InvalidInput("the body has two {}", "only one can count", "Send one", name)
        fields[name] = value
    messages = fields.get("messages")
    elements = messages.value if messages else ()
    return Body(text, fields, elements if isinstance(elements, list) else ())


def _members(text: str) -> list[tuple[str, Value]]:
    members, end = _items(text, _expected(text, 0, "{"), "}")
    if _after_blanks(text, end) != len(text):
        raise ValueError("something follows the object")
    return members


def _items(text: str, at: int, end: str) -> tuple[list[tuple[str, Value]], int]:
    """The members of an object or the elements of an array, which have no name, and where it ends; `at` is behind its first sign. The
    elements of `messages` are Values, too.
    """
    items: list[tuple[str, Value]] = []
    if text[at] == end:
        return items, at + 1
    while True:
        name = ""
        if end == "}":
            name, at = _decode(text, _string_at(text, at))
            at = _expected(text, at, ":")
        start = at
        if name == "messages" and text[at] == "[":
            elements, at = _items(text, _expected(text, at, "["), "]")
            value: Any = [element for _, element in elements]
        else:
            value, at = _decode(text, at)
        items.append((name, Value(value, start, at)))
        at = _after_blanks(text, at)
        if text[at] == end:
            return items, at + 1
        at = _expected(text, at, ",")


def _string_at(text: str, at: int) -> int:
    if text[at] != '"':
        raise ValueError(f"no string at {at}")
    return at


def _expected(text: str, at: int, sign: str) -> int:
    """Where the text goes on after a sign and the blanks around it."""
    at = _after_blanks(text, at)
    if text[at] != sign:
        raise ValueError(f"no {sign} at {at}")
    return _after_blanks(text, at + 1)


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _written(value: Any) -> str:
    # Half of a character in a client's text can't be written otherwise.
    return json.dumps(value, ensure_ascii=True)


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, new in sorted(edits):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])
