"""Parses and validates one JSON line of an import: its fields, their types, and the messages of refusals."""

import difflib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.characters import not_utf8
from memory_mcp.dates.resolve import parse_moment
from memory_mcp.domain import ROLE, ROLES, VERDICTS, Draft, Feedback, Restored, Version
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LABEL_LIMIT, label, labels, split_labels, storable
from memory_mcp.remember.validation import checked_content, checked_importance, checked_privacy_level, draft
from memory_mcp.transfer.line_vectors import Generations, embedded_in

LINE_LIMIT_BYTES = 2 * 1024 * 1024
KEY_LIMIT, FORMER_KEYS_LIMIT = 200, 100
COUNT_LIMIT = 2**31
FEEDBACK_LIMIT = 10_000
# Objects and lists within each other. What goes through them calls itself twice or more for each.
DEPTH_LIMIT = 100
_PLAIN_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def parsed(line: bytes) -> Mapping[str, Any] | None:
    """The object on a line without null values; None for a blank line.

    Raises:
        InvalidInput: the line is not a JSON object.
    """
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        other = not_utf8(line)
        seeming = f", it seems to be {other[1]}" if other and other[1] else ""
        raise InvalidInput("the line is not UTF-8", "byte {} is invalid{}", "Save the file as UTF-8", error.start + 1, seeming) from error
    if not text.strip():
        return None
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            "the line is not JSON", "{} at character {}", "Write one JSON object per line", error.msg, error.pos + 1
        ) from error
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or too many nested brackets
        raise InvalidInput("the line is JSON that can't be read", "{}", "Write one flat JSON object per line", error) from error
    if not isinstance(row, dict):
        raise InvalidInput("the line is {}", "", 'Write one JSON object per line: {"content": "…"}', _type_name(row))
    # What has few brackets is not deep, and need not be walked through.
    if text.count("{") + text.count("[") > DEPTH_LIMIT and is_too_deep(row):
        raise InvalidInput("the line is JSON that can't be read", "it is nested too deeply", "Write one flat JSON object per line")
    return {name: value for name, value in row.items() if value is not None}


def is_too_deep(value: object) -> bool:
    """Whether objects and lists are nested deeper than `DEPTH_LIMIT`."""
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        held = [entry for entry in level if isinstance(entry, dict | list)]
        if not held:
            return False
        level = [entry for container in held for entry in (container.values() if isinstance(container, dict) else container)]
    return True


def draft_of(row: Mapping[str, Any], now: datetime, zone: ZoneInfo, generations: Generations) -> Draft:
    """The draft of a memory line, with its vectors if their generation is in `generations`.

    Raises:
        InvalidInput: a field can't be stored; the message names it.
    """
    check_fields(row, FIELDS)
    if "content" not in row:
        raise InvalidInput("content is missing", "", 'Add the text to remember: {"content": "…"}')
    restored = _restored(row, now, zone)
    is_summary = row.get("kind") == "summary"
    if is_summary and not (row.get("key") or row.get("created_at")):
        raise InvalidInput(
            "kind is 'summary'", "summaries are written by the server", "Omit kind, or include the key that the export wrote"
        )
    fields = {name: value for name, value in row.items() if name in _DRAFT_FIELDS}
    if isinstance(fields.get("tags"), str):
        fields["tags"] = split_labels(fields["tags"])
    if is_summary:
        del fields["kind"]
    metadata = {**row.get("metadata", {}), **({ROLE: row[ROLE]} if ROLE in row else {})}
    checked = draft(now=now, zone=zone, restored=restored, checked_metadata=metadata, **fields)
    if is_summary:
        checked = replace(checked, kind="summary")
    if "vectors" in row:
        checked = replace(checked, embedded=embedded_in(row["vectors"], checked, generations))
    # Unlike a caller's, the time of an export may be over: the memory is then moved to the trash.
    return replace(checked, expires_at=parse_time("expires_at", row["expires_at"], zone)) if "expires_at" in row else checked


def version_of(row: Mapping[str, Any], zone: ZoneInfo) -> Version:
    """The earlier version on a `version_of` line.

    Raises:
        InvalidInput: a field can't be stored; the message names it.
    """
    check_fields(row, VERSION_FIELDS)
    missing = [name for name in ("revision", "content", "updated_at") if name not in row]
    if missing:
        raise InvalidInput(
            "{} is missing", "a version has revision, content and updated_at", "Use the line as the export wrote it", missing[0]
        )
    return Version(
        key=_key(row["version_of"]),
        revision=count("revision", row["revision"], 1),
        content=checked_content(row["content"]),
        updated_at=parse_time("updated_at", row["updated_at"], zone),
        tags=labels(row.get("tags", []), "tags"),
        importance=checked_importance(row.get("importance", 0.5)),
        reason=label(row.get("reason"), "reason"),
        category=label(row.get("category"), "category"),
        privacy_level=checked_privacy_level(row["privacy_level"]) if "privacy_level" in row else None,
    )


def pieces_of(row: Mapping[str, Any]) -> tuple[str, int]:
    """The key prefix of a note and its current number of pieces, from a `pieces_of` line.

    Raises:
        InvalidInput: the fields are invalid.
    """
    check_fields(row, PIECES_FIELDS)
    return _key(row["pieces_of"]), count("pieces", row.get("pieces", 0), 0)


def vault_of(row: Mapping[str, Any]) -> tuple[str, frozenset[str], Mapping[str, str], bool]:
    """From a `notes_of` line: the name of a vault, the key prefixes of its unread notes, the names of exported notes that are deleted by the digests
    of their keys, and whether to forget deleted ones.

    Raises:
        InvalidInput: the fields are invalid.
    """
    check_fields(row, VAULT_FIELDS)
    return row["notes_of"], frozenset(row.get("unread", ())), row.get("deleted", {}), row.get("forget", False)


def check_fields(row: Mapping[str, Any], fields: "Mapping[str, Check]") -> None:
    """Raises InvalidInput if a field is unknown or has a value of the wrong type."""
    for name, value in row.items():
        if name not in fields:
            raise InvalidInput("unknown field {}", "{}", "Correct it, or omit the field", repr(name[:80]), _nearest(name, fields))
        expected, fits = fields[name]
        if not fits(value):
            raise InvalidInput("{} is {}", "it must be {}", "Correct it, or omit the field", name, _type_name(value), expected)


def _restored(row: Mapping[str, Any], now: datetime, zone: ZoneInfo) -> Restored:
    """The fields that only an export has. A line without `created_at` is dated now; a later import of the same line, even after the
    deduplication window, is still recognized."""
    moments = {name: parse_time(name, row[name], zone) for name in ("updated_at", "deleted_at", "last_used_at") if name in row}
    if "created_at" in row:
        moments["created_at"] = _created_at(row["created_at"], now, zone)
    return Restored(
        key=_key(row["key"]) if "key" in row else None,
        former_keys=tuple(map(_key, row.get("former_keys", [])[:FORMER_KEYS_LIMIT])),
        created_at=moments.get("created_at", now),
        is_undated="created_at" not in moments,
        updated_at=moments.get("updated_at"),
        revision=count("revision", row.get("revision", 1), 1),
        deleted_at=moments.get("deleted_at"),
        usage_count=count("usage_count", row.get("usage_count", 0), 0),
        last_used_at=moments.get("last_used_at"),
        feedback=tuple(_feedback(entry, zone) for entry in row.get("feedback", [])[:FEEDBACK_LIMIT]),
    )


def _created_at(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """As `parse_time`, or in those words of `occurred_at` that mean the same on any day."""
    with suppress(InvalidInput):
        return parse_time("created_at", text, zone)
    with suppress(InvalidInput):
        first, second = (parse_moment(text, day, zone) for day in (now, now.replace(year=2001, month=3, day=7)))
        if first == second:
            return first
    return parse_time("created_at", text, zone)


def _feedback(entry: Mapping[str, Any], zone: ZoneInfo) -> Feedback:
    check_fields(entry, FEEDBACK_FIELDS)
    verdict = next((known for known in VERDICTS if known == entry.get("verdict")), None)
    if verdict is None or "at" not in entry:
        raise InvalidInput(
            "an entry of feedback has no verdict or no time", "verdicts are {}", "Correct it, or omit it", ", ".join(VERDICTS)
        )
    texts = {name: storable(entry.get(name, ""), name)[:LABEL_LIMIT] for name in ("run", "query")}
    return Feedback(verdict, parse_time("at", entry["at"], zone), **texts)


def _key(key: str) -> str:
    if not key.strip() or key != key.strip() or len(key) > KEY_LIMIT:
        raise InvalidInput(
            "key is blank, too long, or has surrounding whitespace", "the limit is {} characters", "Omit it to get a new key", KEY_LIMIT
        )
    return storable(key, "key")


def parse_time(name: str, text: str, zone: ZoneInfo) -> datetime:
    """An ISO time in UTC; times without an offset are in `zone`. Raises InvalidInput, which names the field `name`."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("{} is {}", "it is not an ISO time", "Write it like 2025-10-30T12:00:00+09:00", name, repr(text[:80])) from error


def count(name: str, value: int, least: int) -> int:
    """`value`, which is at least `least`. Raises InvalidInput, which names the field `name`."""
    if not least <= value <= COUNT_LIMIT:
        raise InvalidInput("{} is out of range", "it runs from {} to {}", "Correct it, or omit the field", name, least, f"{COUNT_LIMIT:,}")
    return value


def _nearest(name: str, fields: "Mapping[str, Check]") -> str:
    if name == "persona":
        return "lines go to the persona that --persona, the address or the header X-Persona names"
    similar = difflib.get_close_matches(name, fields, n=1, cutoff=0.7)
    return f"a similar field is {similar[0]!r}" if similar else f"known fields are {', '.join(fields)}"


def _type_name(value: object) -> str:
    """The JSON type of a value, with its article."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def _is_plain_object(value: object) -> bool:
    """Whether it is an object that can be stored as JSON text: without NaN and unpaired surrogates."""
    try:
        return isinstance(value, dict) and bool(_PLAIN_JSON.encode(value).encode())
    except ValueError:
        return False


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    # An integer that no float can represent would break the checks after this one.
    return isinstance(value, float) or (_is_whole_number(value) and -COUNT_LIMIT <= value <= COUNT_LIMIT)  # type: ignore[operator]


# The expected type in words, and a predicate for it.
Check = tuple[str, Callable[[object], bool]]
TEXT: Check = ("a string", lambda value: isinstance(value, str))
TEXTS: Check = ("a list of strings", lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value))
TAGS: Check = ("a list of strings, or one string with commas between the tags", lambda value: isinstance(value, str) or TEXTS[1](value))
COUNT: Check = ("a whole number", _is_whole_number)
SHARE: Check = ("a number from 0 to 1", _is_number)
OBJECT: Check = ("an object of plain JSON", _is_plain_object)
TEXT_BY_NAME: Check = (
    "an object of strings",
    lambda value: isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values()),
)
OBJECTS: Check = ("a list of objects", lambda value: isinstance(value, list) and all(isinstance(entry, dict) for entry in value))
A_ROLE: Check = (" or ".join(ROLES), lambda value: value in ROLES)
FLAG: Check = ("true or false", lambda value: isinstance(value, bool))

# Every field of a memory line, in the order of the export, with its type.
FIELDS: Mapping[str, Check] = {
    "key": TEXT,
    "content": TEXT,
    "created_at": TEXT,
    "updated_at": TEXT,
    "tags": TAGS,
    "occurred_at": TEXT,
    "importance": SHARE,
    "source": TEXT,
    "session_id": TEXT,
    "kind": TEXT,
    "state": TEXT_BY_NAME,
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
    "expires_at": TEXT,
    "feedback": OBJECTS,
    ROLE: A_ROLE,
    "vectors": ("an object that an export wrote", _is_plain_object),
    "former_keys": TEXTS,
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
FEEDBACK_FIELDS: Mapping[str, Check] = {"verdict": TEXT, "at": TEXT, "run": TEXT, "query": TEXT}
PIECES_FIELDS: Mapping[str, Check] = {"pieces_of": TEXT, "pieces": COUNT}
VAULT_FIELDS: Mapping[str, Check] = {"notes_of": TEXT, "unread": TEXTS, "deleted": TEXT_BY_NAME, "forget": FLAG}
_DRAFT_FIELDS = frozenset(
    "content source session_id kind tags importance occurred_at questions relations state supersedes category privacy_level".split()
)
