"""Checks of what a caller sends: texts that can be stored, short texts, lists, JSON objects, names of nothing."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memory_mcp.errors import InvalidInput

LABEL_LIMIT = 500
LIST_LIMIT = 100
METADATA_LIMIT = 10_000
# Characters that are no text.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# How languages print a value that isn't there.
_NOTHING = ("null", "none", "undefined")


def storable(text: str, name: str) -> str:
    """Returns `text` unchanged.

    Raises:
        InvalidInput: it contains a character that can't be stored; the message names the field `name` and the offset.
    """
    match = UNSTORABLE.search(text)
    if match is None:
        return text
    character = "a NUL character" if match.group() == "\x00" else f"half of a surrogate pair (U+{ord(match.group()):04X})"
    raise InvalidInput(
        "{} holds {} at character {}",
        "it can't be stored or searched as text",
        "Remove it and send the call again",
        name,
        character,
        match.start() + 1,
    )


def is_nothing(value: object) -> bool:
    """True for the name of nothing: null, None, undefined, in any case and with blanks around it."""
    return isinstance(value, str) and len(value) <= 80 and value.strip().casefold() in _NOTHING


def labels(values: Sequence[str], name: str) -> tuple[str, ...]:
    """Short texts such as tags: without blanks at the ends, without repetitions, in their order."""
    checked = [label(value, name) for value in few(values, name)]
    return tuple(dict.fromkeys(value for value in checked if value))


def split_labels(text: str) -> list[str]:
    """The labels in a text, with commas between them."""
    return [part.strip() for part in text.replace("、", ",").replace("，", ",").split(",") if part.strip()]


def few(values: Sequence[str], name: str) -> Sequence[str]:
    """`values`, unless they are too many."""
    if len(values) > LIST_LIMIT:
        raise InvalidInput("{} has {} entries", "{} are the limit", "Send fewer", name, len(values), LIST_LIMIT)
    return values


def label(value: str | None, name: str) -> str | None:
    """A short text without blanks at its ends; None where there is none."""
    if value is None or not value.strip():
        return None
    if len(value) > LABEL_LIMIT:
        raise InvalidInput("{} has {} characters", "{} are the limit", "Send a shorter one", name, f"{len(value):,}", LABEL_LIMIT)
    return storable(value, name).strip()


def json_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Anything that JSON can hold, by name, as it may be stored.

    Raises:
        InvalidInput: it can't be, or is too long.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(
            "{} can't be written as JSON", "{}", "Send an object of texts, numbers, lists and objects", name, error
        ) from error
    if len(text) > METADATA_LIMIT:
        raise InvalidInput(
            "{} has {} characters as JSON",
            "{} are the limit",
            "Put what is to be remembered into content",
            name,
            f"{len(text):,}",
            f"{METADATA_LIMIT:,}",
        )
    storable(text, name)
    return dict(value)
