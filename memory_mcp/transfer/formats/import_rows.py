"""What the readers of other programs' exports have in common: rows as an import takes them, keys, times, text that can be stored.

A row's key is made of what the other program calls the same thing, so that a second import, or one that goes on after the
first was interrupted, knows each memory again.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.remember.validation import CONTENT_LIMIT
from memory_mcp.text.chunk import split
from memory_mcp.text.labels import LABEL_LIMIT, LIST_LIMIT

Row = dict[str, Any]
Report = Callable[[str], None]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LARGEST_SECONDS = 100_000_000_000


@dataclass(frozen=True, slots=True)
class ImportItem:
    """What an import found at one place of a file: a row to store, or why there is none."""

    where: str
    row: Row | None = None
    refused: str = ""


def memory_rows(
    where: str, form: str, identity: tuple[str, ...], content: str, *, origin: Mapping[str, Any], **fields: Any
) -> Iterator[ImportItem]:
    """The row of one memory, or several where it is longer than a memory may be. Nothing where it says nothing.

    `form` and `identity` make the key; `origin` stands in its metadata; fields that are None are left out.
    """
    text = storable(content)
    if not text.strip():
        return
    told = {name: _storable(value) for name, value in fields.items() if value not in (None, [], "", {})}
    for name in ("source", "session_id"):
        told.update({name: told[name].strip()[:LABEL_LIMIT]} if told.get(name) else {})
    if "tags" in told:
        told["tags"] = tags(told["tags"])
    further = told.pop("metadata", {})
    pieces = split(text, CONTENT_LIMIT, overlap=0)
    for place, piece in enumerate(pieces):
        part = text[piece.start : piece.end].strip()
        if not part:
            continue
        about = {"format": form, **{name: value for name, value in _storable(dict(origin)).items() if value not in (None, "", [])}}
        about.update({"piece": place} if len(pieces) > 1 else {})
        key = key_of(form, *identity, *([str(place)] if place else []))
        yield ImportItem(where, {"key": key, "content": part, **told, "metadata": {**further, ORIGIN: about}})


def key_of(form: str, *identity: str) -> str:
    """The key of what another program calls by these names."""
    return f"{form}_{hashlib.sha256(chr(31).join(map(storable, identity)).encode()).hexdigest()[:24]}"


def tags(values: list[Any]) -> list[str]:
    """Texts as tags: none twice, none blank, as many as a memory may have."""
    named = dict.fromkeys(storable(str(value)).strip(" #")[:LABEL_LIMIT].strip() for value in values if isinstance(value, str | int))
    return [tag for tag in named if tag][:LIST_LIMIT]


def moment(value: object) -> str | None:
    """A time as ISO text: from ISO, or seconds or milliseconds since 1970. None where it is neither."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return _iso(value)
    if not math.isfinite(number) or number <= 0:
        return None
    while number > _LARGEST_SECONDS:
        number /= 1000
    try:
        return datetime.fromtimestamp(number, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def text_in(value: object) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def storable(text: str) -> str:
    """The text with � for what no file can hold: NUL, and halves of surrogate pairs that a careless export cut apart."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if _UNSTORABLE.search(text) else text
    return _UNSTORABLE.sub("�", whole)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(name)): _storable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _iso(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return when.isoformat() if when.year > 1 else None
