"""The body of a call as its text, of which only messages and the model's name change: every other value stays as the client wrote it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

    def sent(self, changed: Mapping[str, Any], inserted: Mapping[int, Sequence[Any]]) -> bytes:
        """The body with other values of some fields, and with further messages before those at some indexes."""
        edits = [(field.start, field.end, _written(changed[name])) for name, field in self.fields.items() if name in changed]
        further = [f"{_written(name)}:{_written(value)}" for name, value in changed.items() if name not in self.fields]
        end = self.text.rindex("}")
        edits += [(end, end, "".join(f",{member}" for member in further))] if further else []
        for index, messages in inserted.items():
            written = [_written(message) for message in messages]
            if index < len(self.messages):
                start = self.messages[index].start
                edits.append((start, start, "".join(f"{message}," for message in written)))
            else:
                start = self.messages[-1].end
                edits.append((start, start, "".join(f",{message}" for message in written)))
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
    messages: list[Value] = []
    try:
        for name, value in _members(text, messages):
            if name in fields and name in ("messages", "model"):
                raise InvalidInput("the body has two {}", "only one can count", "Send one", name)
            fields[name] = value
    except (ValueError, IndexError, RecursionError) as error:
        raise InvalidInput("the body is no JSON object", "", "Send an object with model and messages") from error
    return Body(text, fields, messages)


def _members(text: str, messages: list[Value]) -> Iterator[tuple[str, Value]]:
    """The members of the object; the elements of its `messages` are added to the list."""
    at = _expected(text, 0, "{")
    if text[at] == "}":
        _end(text, at + 1)
        return
    while True:
        name, at = _decode(text, _string_at(text, at))
        at = _expected(text, at, ":")
        if name == "messages" and text[at] == "[":
            start, (elements, at) = at, _elements(text, at)
            messages[:] = elements
            yield name, Value([element.value for element in elements], start, at)
        else:
            start, (value, at) = at, _decode(text, at)
            yield name, Value(value, start, at)
        at = _after_blanks(text, at)
        if text[at] == "}":
            _end(text, at + 1)
            return
        at = _expected(text, at, ",")


def _elements(text: str, at: int) -> tuple[list[Value], int]:
    """The elements of an array, and where it ends."""
    elements: list[Value] = []
    at = _after_blanks(text, at + 1)
    if text[at] == "]":
        return elements, at + 1
    while True:
        start, (value, at) = at, _decode(text, at)
        elements.append(Value(value, start, at))
        at = _after_blanks(text, at)
        if text[at] == "]":
            return elements, at + 1
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


def _end(text: str, at: int) -> None:
    if _after_blanks(text, at) != len(text):
        raise ValueError("something follows the object")


def _written(value: Any) -> str:
    # Half of a character in a client's text can't be written otherwise.
    return json.dumps(value, ensure_ascii=True)


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, new in sorted(edits):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])
