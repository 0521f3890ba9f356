"""Memories as JSON lines: what /api/import stores and what /api/export writes, so that a second export equals the first.

One line is one memory: `content`, and any other field of `FIELDS`. A line that can't be used is refused by its number, and
the rest goes on.
"""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Memory, Outcome, Restored
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.drafts import draft
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.redact import USUAL
from memory_mcp.store import memories
from memory_mcp.store.timestamps import optional_to_text, to_text
from memory_mcp.text.clean import storable
from memory_mcp.text.privacy.redaction import Redaction

KEY_LIMIT = 200
COUNT_LIMIT = 2**31
EXPORT_PAGE = 200
# So many refusals are told one by one; further ones are only counted.
ERRORS_LISTED = 10_000


Opened = Callable[[], AbstractContextManager[Persona]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not stored, by its number from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of a batch of lines, and what was private in those that were stored, by kind. Results add up: `first + second`."""

    stored: int = 0
    already_known: int = 0
    refused: int = 0
    errors: tuple[Refusal, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "ImportResult") -> "ImportResult":
        return ImportResult(
            self.stored + other.stored,
            self.already_known + other.already_known,
            self.refused + other.refused,
            (*self.errors, *other.errors[: ERRORS_LISTED - len(self.errors)]),
            _total([self.redacted, other.redacted]),
            _total([self.flagged, other.flagged]),
        )


def import_lines(
    opened: Opened, lines: Sequence[tuple[int, bytes]], *, now: datetime, zone: ZoneInfo, privacy: Privacy = USUAL
) -> ImportResult:
    """Stores the memories of these numbered lines in one commit. Times without an offset are local ones of `zone`.

    The persona is opened only when a line is worth storing: opening one that doesn't exist creates it.

    Raises:
        StoreError: the batch could not be stored; nothing of it was.
    """
    drafts: list[tuple[int, Draft]] = []
    refusals: list[Refusal] = []
    for number, line in lines:
        try:
            row = _parsed(line)
            if row is not None:
                drafts.append((number, _draft(row, now, zone)))
        except InvalidInput as error:
            refusals.append(Refusal(number, Redaction(privacy).text(str(error))))
    outcomes: list[Outcome] = []
    if drafts:
        with opened() as persona:
            outcomes = remember_many(persona, [told for _, told in drafts], now=now, zone=zone, privacy=privacy)
    for (number, _), outcome in zip(drafts, outcomes, strict=True):
        if outcome.outcome == "refused":
            refusals.append(Refusal(number, Redaction(privacy).text(outcome.reason)))
    counted = [outcome.outcome for outcome in outcomes]
    in_order = sorted(refusals, key=lambda refusal: refusal.line)
    new = [outcome for outcome in outcomes if outcome.outcome == "stored"]
    return ImportResult(
        len(new),
        counted.count("already_known"),
        len(refusals),
        tuple(in_order[:ERRORS_LISTED]),
        redacted=_total(outcome.redacted for outcome in new),
        flagged=_total(outcome.flagged for outcome in new),
    )


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()))


def export_lines(persona: Persona, include_deleted: bool = False, include_secret: bool = False) -> Iterator[str]:
    """Every memory as a line without its line feed, in the order in which they were stored; each once, whatever is written meanwhile."""
    last = 0
    while True:
        with persona.database.read() as connection:
            page = memories.page_for_export(connection, last, EXPORT_PAGE, include_deleted, include_secret)
        if not page:
            return
        for memory in page:
            yield line_of(memory)
        last = page[-1].id


def line_of(memory: Memory) -> str:
    """A memory as a JSON line: fields in the order of `FIELDS`, unset ones left out, times in UTC."""
    values = {
        "key": memory.key,
        "content": memory.content,
        "created_at": to_text(memory.created_at),
        "updated_at": to_text(memory.updated_at),
        "tags": list(memory.tags) or None,
        "occurred_at": optional_to_text(memory.occurred_at),
        "importance": memory.importance,
        "source": memory.source,
        "session_id": memory.session_id,
        "kind": memory.kind,
        "state": dict(memory.state) or None,
        "questions": list(memory.questions) or None,
        "revision": memory.revision,
        "supersedes": memory.supersedes,
        "deleted_at": optional_to_text(memory.deleted_at),
        "usage_count": memory.usage_count or None,
        "last_used_at": optional_to_text(memory.last_used_at),
        "metadata": dict(memory.metadata) or None,
        "category": memory.category,
        "privacy_level": memory.privacy_level,
    }
    return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)


def _parsed(line: bytes) -> Mapping[str, Any] | None:
    """The line's object with its nulls left out; None for a blank line."""
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


def _draft(row: Mapping[str, Any], now: datetime, zone: ZoneInfo) -> Draft:
    for name, value in row.items():
        if name not in FIELDS:
            raise InvalidInput(f"unknown field {name[:80]!r}", _nearest(name), "Correct it, or leave the field out")
        expected, fits = FIELDS[name]
        if not fits(value):
            raise InvalidInput(f"{name} is {_article(value)}", f"it must be {expected}", "Correct it, or leave the field out")
    if "content" not in row:
        raise InvalidInput("content is missing", "", 'Write what is to be remembered: {"content": "…"}')
    restored = _restored(row, now, zone)
    is_summary = row.get("kind") == "summary"
    if is_summary and not (row.get("key") or row.get("created_at")):
        raise InvalidInput("kind is 'summary'", "summaries are made by the server", "Leave kind out, or give the key that an export wrote")
    told = {name: value for name, value in row.items() if name in _TOLD and not (name == "kind" and is_summary)}
    checked = draft(now=now, zone=zone, **told)
    metadata = row.get("metadata", {})
    return replace(checked, restored=restored, metadata=metadata, kind="summary" if is_summary else checked.kind)


def _restored(row: Mapping[str, Any], now: datetime, zone: ZoneInfo) -> Restored:
    """What only an export says. A line without `created_at` is dated now, which makes the same line known for ever, not for minutes."""
    moments = {name: _moment(name, row[name], zone) for name in ("created_at", "updated_at", "deleted_at", "last_used_at") if name in row}
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


def _moment(name: str, text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is {text[:80]!r}", "it is no ISO time", "Write it like 2025-10-30T12:00:00+09:00") from error


def _count(name: str, value: int, least: int) -> int:
    if not least <= value <= COUNT_LIMIT:
        raise InvalidInput(f"{name} is out of range", f"it runs from {least} to {COUNT_LIMIT:,}", "Correct it, or leave the field out")
    return value


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, FIELDS, n=1, cutoff=0.5)
    return f"perhaps {near[0]!r} is meant" if near else f"known fields are {', '.join(FIELDS)}"


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


Check = tuple[str, Callable[[object], bool]]
_TEXT: Check = ("a string", _is_text)
_TEXTS: Check = ("a list of strings", _is_texts)
_COUNT: Check = ("a whole number", _is_whole_number)

# Every field that a line may have, in the order of the export, with what its value must be.
FIELDS: Mapping[str, Check] = {
    "key": _TEXT,
    "content": _TEXT,
    "created_at": _TEXT,
    "updated_at": _TEXT,
    "tags": _TEXTS,
    "occurred_at": _TEXT,
    "importance": ("a number from 0 to 1", _is_number),
    "source": _TEXT,
    "session_id": _TEXT,
    "kind": _TEXT,
    "state": ("an object of strings", _is_text_by_name),
    "questions": _TEXTS,
    "revision": _COUNT,
    "supersedes": _TEXT,
    "deleted_at": _TEXT,
    "usage_count": _COUNT,
    "last_used_at": _TEXT,
    "metadata": ("an object of plain JSON", _is_plain_object),
    "category": _TEXT,
    "privacy_level": _TEXT,
}
_TOLD = frozenset("content source session_id kind tags importance occurred_at questions state supersedes category privacy_level".split())
