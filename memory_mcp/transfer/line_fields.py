"""One line of JSON on its way in: what it may say, and how a refusal words what is wrong with it."""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.domain import Draft, Restored, Version
from memory_mcp.errors import InvalidInput
from memory_mcp.remember.validation import checked_content, checked_importance, checked_privacy_level, draft
from memory_mcp.text.labels import label, labels
from memory_mcp.text.unstorable import storable
from memory_mcp.transfer.line_vectors import Generations, embedded_in

KEY_LIMIT = 200
COUNT_LIMIT = 2**31


def parsed(line: bytes) -> Mapping[str, Any] | None:
    """The line's object with its nulls left out; None for a blank line.

    Raises:
        InvalidInput: it is no JSON object.
    """
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("the line is not UTF-8", f"byte {error.start + 1} is wrong", "Save the file as UTF-8") from error
    if not text.strip():
        return None
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput("the line is not JSON", f"{error.msg} at character {error.pos + 1}", "Write one JSON object per line") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise InvalidInput("the line is JSON that can't be read", str(error), "Write one flat JSON object per line") from error
    if not isinstance(row, dict):
        raise InvalidInput(f"the line holds {_article(row)}", "", 'Write one JSON object per line: {"content": "…"}')
    return {name: value for name, value in row.items() if value is not None}


def draft_of(row: Mapping[str, Any], now: datetime, zone: ZoneInfo, generations: Generations) -> Draft:
    """The memory of a line. Its vectors are taken with it where their generation is among `generations`.

    Raises:
        InvalidInput: something in it can't be stored; says what.
    """
    check_fields(row, FIELDS)
    if "content" not in row:
        raise InvalidInput("content is missing", "", 'Write what is to be remembered: {"content": "…"}')
    restored = _restored(row, now, zone)
    is_summary = row.get("kind") == "summary"
    if is_summary and not (row.get("key") or row.get("created_at")):
        raise InvalidInput("kind is 'summary'", "summaries are made by the server", "Leave kind out, or give the key that an export wrote")
    told = {name: value for name, value in row.items() if name in _TOLD and not (name == "kind" and is_summary)}
    checked = draft(now=now, zone=zone, **told)
    metadata = row.get("metadata", {})
    embedded = embedded_in(row["vectors"], checked, generations) if "vectors" in row else None
    kind = "summary" if is_summary else checked.kind
    return replace(checked, restored=restored, embedded=embedded, metadata=metadata, kind=kind)


def version_of(row: Mapping[str, Any], zone: ZoneInfo) -> Version:
    """The earlier state of a line that has `version_of`.

    Raises:
        InvalidInput: something in it can't be stored; says what.
    """
    check_fields(row, VERSION_FIELDS)
    lacking = [name for name in ("revision", "content", "updated_at") if name not in row]
    if lacking:
        raise InvalidInput(
            f"{lacking[0]} is missing", "a version has revision, content and updated_at", "Take the line as the export wrote it"
        )
    return Version(
        key=_key(row["version_of"]),
        revision=_count("revision", row["revision"], 1),
        content=checked_content(row["content"]),
        updated_at=moment_of("updated_at", row["updated_at"], zone),
        tags=labels(row.get("tags", []), "tags"),
        importance=checked_importance(row.get("importance", 0.5)),
        reason=label(row.get("reason"), "reason"),
        category=label(row.get("category"), "category"),
        privacy_level=checked_privacy_level(row["privacy_level"]) if "privacy_level" in row else None,
    )


def pieces_of(row: Mapping[str, Any]) -> tuple[str, int]:
    """The stem of a note's keys, and how many pieces it has now, of a line that has `pieces_of`.

    Raises:
        InvalidInput: it says something else.
    """
    check_fields(row, PIECES_FIELDS)
    return _key(row["pieces_of"]), _count("pieces", row.get("pieces", 0), 0)


def check_fields(row: Mapping[str, Any], fields: "Mapping[str, Check]") -> None:
    """Raises InvalidInput where a field is unknown, or its value is of another kind."""
    for name, value in row.items():
        if name not in fields:
            raise InvalidInput(f"unknown field {name[:80]!r}", _nearest(name, fields), "Correct it, or leave the field out")
        expected, fits = fields[name]
        if not fits(value):
            raise InvalidInput(f"{name} is {_article(value)}", f"it must be {expected}", "Correct it, or leave the field out")


def _restored(row: Mapping[str, Any], now: datetime, zone: ZoneInfo) -> Restored:
    """What only an export says. A line without `created_at` is dated now, which makes the same line known for ever, not for minutes."""
    moments = {name: moment_of(name, row[name], zone) for name in ("created_at", "updated_at", "deleted_at", "last_used_at") if name in row}
    return Restored(
        key=_key(row["key"]) if "key" in row else None,
        created_at=moments.get("created_at", now),
        updated_at=moments.get("updated_at"),
        revision=_count("revision", row.get("revision", 1), 1),
        deleted_at=moments.get("deleted_at"),
        usage_count=_count("usage_count", row.get("usage_count", 0), 0),
        last_used_at=moments.get("last_used_at"),
    )


def _key(key: str) -> str:
    if not key.strip() or key != key.strip() or len(key) > KEY_LIMIT:
        raise InvalidInput(
            "key is blank, too long, or has blanks at its ends",
            f"{KEY_LIMIT} characters are the limit",
            "Leave it out, and the memory gets a new one",
        )
    return storable(key, "key")


def moment_of(name: str, text: str, zone: ZoneInfo) -> datetime:
    """The time that a field says, in UTC; InvalidInput where it is none."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is {text[:80]!r}", "it is no ISO time", "Write it like 2025-10-30T12:00:00+09:00") from error


def _count(name: str, value: int, least: int) -> int:
    if not least <= value <= COUNT_LIMIT:
        raise InvalidInput(f"{name} is out of range", f"it runs from {least} to {COUNT_LIMIT:,}", "Correct it, or leave the field out")
    return value


def _nearest(name: str, fields: "Mapping[str, Check]") -> str:
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
    return f"perhaps {near[0]!r} is meant" if near else f"known fields are {', '.join(fields)}"


def _article(value: object) -> str:
    """What JSON calls a value, with its article."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_text_by_name(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())


def _is_plain_object(value: object) -> bool:
    """An object that can be written as JSON and stored as text: no NaN, no half of a surrogate pair."""
    try:
        return isinstance(value, dict) and bool(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        return False


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    # A whole number that no float can hold would break every check that comes after this one.
    return isinstance(value, float) or (_is_whole_number(value) and -COUNT_LIMIT <= value <= COUNT_LIMIT)  # type: ignore[operator]


# What a value must be, in words, and whether it is.
Check = tuple[str, Callable[[object], bool]]
TEXT: Check = ("a string", _is_text)
TEXTS: Check = ("a list of strings", _is_texts)
COUNT: Check = ("a whole number", _is_whole_number)
SHARE: Check = ("a number from 0 to 1", _is_number)
OBJECT: Check = ("an object of plain JSON", _is_plain_object)
FLAG: Check = ("true or false", lambda value: isinstance(value, bool))

# Every field that a line may have, in the order of the export, with what its value must be.
FIELDS: Mapping[str, Check] = {
    "key": TEXT,
    "content": TEXT,
    "created_at": TEXT,
    "updated_at": TEXT,
    "tags": TEXTS,
    "occurred_at": TEXT,
    "importance": SHARE,
    "source": TEXT,
    "session_id": TEXT,
    "kind": TEXT,
    "state": ("an object of strings", _is_text_by_name),
    "questions": TEXTS,
    "relations": TEXTS,
    "revision": COUNT,
    "supersedes": TEXT,
    "deleted_at": TEXT,
    "usage_count": COUNT,
    "last_used_at": TEXT,
    "metadata": OBJECT,
    "category": TEXT,
    "privacy_level": TEXT,
    "vectors": ("an object that an export wrote", _is_plain_object),
}
VERSION_FIELDS: Mapping[str, Check] = {
    "version_of": TEXT,
    "revision": COUNT,
    "content": TEXT,
    "tags": TEXTS,
    "importance": FIELDS["importance"],
    "updated_at": TEXT,
    "reason": TEXT,
    "category": TEXT,
    "privacy_level": TEXT,
}
PIECES_FIELDS: Mapping[str, Check] = {"pieces_of": TEXT, "pieces": COUNT}
_TOLD = frozenset(
    "content source session_id kind tags importance occurred_at questions relations state supersedes category privacy_level".split()
)
