"""Converts one row of an older server's memories.

Every value that isn't stored unchanged in a column of ours is kept in `metadata.legacy`, under the name of its older column: nothing
is lost, and guesses can be checked.
"""

import base64
import json
import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from memory_mcp.domain import KINDS, PRIVACY_LEVELS, STATE_FIELDS
from memory_mcp.language.labels import UNSTORABLE
from memory_mcp.store import timestamps
from memory_mcp.store.legacy.foreign_schemas import OLDER_SERVERS_ZONE, OURS, Schema
from memory_mcp.store.legacy.row_reading import Undecodable, parsed

LEGACY = "legacy"
KEY_LIMIT = 200
LABEL_LIMIT = 500
COUNT_LIMIT = 2**31

# Part of the state → older columns with that meaning, in order of precedence.
_STATE_COLUMNS = {
    "emotion": ("emotion", "emotion_type", "current_emotion"),
    "physical_state": ("physical_state",),
    "mental_state": ("mental_state",),
    "environment": ("environment",),
    "relationship_status": ("relationship_status",),
}
_EPOCH = re.compile(r"-?\d{9,13}(\.\d+)?|\d{15,16}")
_COMPACT = re.compile(r"(?<!\d)(?:19|20)\d{12}(?!\d)")
_LARGEST_SECONDS = 100_000_000_000


@dataclass(frozen=True, slots=True)
class ConvertedRow:
    """A converted row: a value for each column except `id`. `dated` is False if no column had a usable time."""

    values: Mapping[str, Any]
    dated: bool


class _OlderRow:
    """The values of an older row by the name of our field. Values that are stored unchanged are consumed; the rest goes to
    `metadata.legacy`, under the name of its column."""

    def __init__(self, row: Mapping[str, object], schema: Schema) -> None:
        folded = {name.casefold(): name for name in row if name.casefold() not in schema.left_out}
        self._names = {schema.columns.get(older, older): name for older, name in folded.items()}
        self._values = {ours: row[name] for ours, name in self._names.items() if row[name] is not None}
        self.zone = schema.zone

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def consume(self, *names: str) -> None:
        for name in names:
            self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        """The column as text; consumed unless it had to be changed."""
        value = self.get(name)
        text = None if value is None else _text(value)
        if text == value:
            self.consume(name)
        return text

    def rest(self) -> dict[str, Any]:
        return {self._names[name]: _json_value(value) for name, value in self._values.items()}


def convert(
    row: Mapping[str, object], taken: Collection[str], number: int, now: datetime, columns: Collection[str], schema: Schema = OURS
) -> ConvertedRow:
    """Convert `row` for a table with these columns, under a key not in `taken`. `number` makes generated keys unique; `now` is the time of
    rows without one, and when what another program had deleted enters the trash, from where it is erased some time later."""
    own_number = next((value for name, value in row.items() if name.casefold() == schema.id), None)
    number = own_number if isinstance(own_number, int) else number
    older = _OlderRow(row, schema)
    key_time = _compact_moment(str(older.get("key")))
    created, updated = _moment(older, "created_at"), _moment(older, "updated_at")
    dated = bool(created or updated or key_time)
    known_time = created or updated or key_time or now
    created, updated = created or known_time, updated or known_time
    used = [_moment(older, name) for name in ("last_used_at", "last_accessed")]
    values = {
        # Of a row with a number of its own, the key never depends on the time of its adoption.
        "key": _key(older, taken, None if schema.id and not dated else created, number),
        "content": older.text("content") or "",
        "created_at": timestamps.to_text(created),
        "updated_at": timestamps.to_text(updated),
        "tags": _dumped(list(dict.fromkeys([*_tags(older, "tags"), *_tags(older, "context_tags")]))) or "[]",
        "importance": _importance(older),
        "occurred_at": timestamps.optional_to_text(_moment(older, "occurred_at")),
        "deleted_at": timestamps.optional_to_text(_deleted(older, updated, None if schema is OURS else now)),
        "last_used_at": timestamps.optional_to_text(next(filter(None, used), None)),
        "usage_count": _whole(older, "usage_count", 0) or _whole(older, "access_count", 0) or 0,
        "revision": _whole(older, "revision", 1) or 1,
        "kind": _choice(older, "kind", KINDS, "fact"),
        **{name: _label(older, name) for name in ("source", "session_id", "supersedes")},
        "state": _dumped(_state(older)),
        "questions": _dumped(_texts(older, "questions")),
        **({"category": _label(older, "category")} if "category" in columns else {}),
        **({"privacy_level": _choice(older, "privacy_level", PRIVACY_LEVELS, "internal")} if "privacy_level" in columns else {}),
        **({"expires_at": timestamps.optional_to_text(_moment(older, "expires_at"))} if "expires_at" in columns else {}),
    }
    return ConvertedRow({**values, "metadata": _dumped(_metadata(older))}, dated)


def moment(value: object, zone: tzinfo = OLDER_SERVERS_ZONE) -> datetime | None:
    """Parse any time format of older stores: ISO with or without an offset, digits only, or seconds, ms, or µs since 1970."""
    if isinstance(value, bool | bytes) or value is None:
        return None
    text = str(value).strip()
    try:
        if _EPOCH.fullmatch(text):
            number = float(text)
            while abs(number) > _LARGEST_SECONDS:
                number /= 1000
            return datetime.fromtimestamp(number, UTC)
        if re.fullmatch(r"\d{14}", text):
            return _compact_moment(text, zone)
        read = datetime.fromisoformat(text.replace("/", "-"))
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _compact_moment(text: str, zone: tzinfo = OLDER_SERVERS_ZONE) -> datetime | None:
    """The time in `memory_20251030120000`."""
    written = _COMPACT.findall(text)
    try:
        return datetime.strptime(written[-1], "%Y%m%d%H%M%S").replace(tzinfo=zone).astimezone(UTC) if written else None
    except (ValueError, OverflowError):
        return None


def _moment(older: _OlderRow, name: str) -> datetime | None:
    value = older.get(name)
    read = moment(value, older.zone)
    if read and isinstance(value, str):
        with suppress(ValueError):
            datetime.fromisoformat(value)
            older.consume(name)
    return read


def _deleted(older: _OlderRow, updated: datetime, instead: datetime | None) -> datetime | None:
    """When the memory was deleted, or the time to take instead. A mark that isn't a time still means that it is in the trash."""
    if str(older.get("deleted_at")).strip().casefold() in ("none", "", "0", "0.0", "false", "null"):
        return None
    return instead or _moment(older, "deleted_at") or updated


def _key(older: _OlderRow, taken: Collection[str], created: datetime | None, number: int) -> str:
    """The key of the row, or a new one if it is blank, too long, or in use."""
    value = older.get("key")
    text = "" if value is None else _text(value)
    dated = f"memory_{created.astimezone(OLDER_SERVERS_ZONE):%Y%m%d%H%M%S}" if created else "memory"
    key = text if text.strip() else f"{dated}_{number}"
    key = key.strip()
    key = key if len(key) <= KEY_LIMIT else key[: KEY_LIMIT - 20]
    unused = key
    while unused in taken:
        unused, number = f"{key}_{number}", number + 1
    if unused == value:
        older.consume("key")
    return unused


def _tags(older: _OlderRow, name: str) -> list[str]:
    """A JSON list, a comma-separated line, or one tag."""
    value = older.get(name)
    if value is None:
        return []
    text = _text(value)
    try:
        tags = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        tags = re.split("[,、]", text)
    if isinstance(tags, dict):
        return []
    tags = tags if isinstance(tags, list) else [tags]
    if text == value and all(_is_storable(tag) and len(tag) <= LABEL_LIMIT for tag in tags):
        older.consume(name)
    return [tag for tag in (_text(tag).strip()[:LABEL_LIMIT] for tag in tags if tag is not None) if tag]


def _importance(older: _OlderRow) -> float:
    value = older.get("importance")
    try:
        number = float(value) if not isinstance(value, bytes) and value is not None else math.nan
    except ValueError:
        number = math.nan
    kept = 0.5 if math.isnan(number) else min(1.0, max(0.0, number))
    if kept == value:
        older.consume("importance")
    return kept


def _whole(older: _OlderRow, name: str, least: int) -> int | None:
    value = older.get(name)
    if not isinstance(value, int) or not least <= value <= COUNT_LIMIT:
        return None
    older.consume(name)
    return value


def _choice(older: _OlderRow, name: str, known: Collection[str], default: str) -> str:
    value = older.get(name)
    if value not in known:
        return default
    older.consume(name)
    return str(value)


def _label(older: _OlderRow, name: str) -> str | None:
    value = older.get(name)
    if not _is_storable(value) or len(value) > LABEL_LIMIT or not value.strip():
        return None
    label = str(value).strip()
    if value == label:
        older.consume(name)
    return label


def _state(older: _OlderRow) -> dict[str, str]:
    stored = _object(older.get("state"))
    state = {name: value for name, value in stored.items() if name in STATE_FIELDS and _is_storable(value)}
    if stored and state == stored:
        older.consume("state")
    for part, names in _STATE_COLUMNS.items():
        for name in names:
            value = older.get(name)
            if value and _is_storable(value) and state.setdefault(part, value) == value:
                older.consume(name)
    return {name: value for name, value in state.items() if value}


def _texts(older: _OlderRow, name: str) -> list[str]:
    """A JSON list of texts; anything else stays in `metadata.legacy`."""
    texts = parsed(older.get(name), list)
    if texts is None or not all(map(_is_storable, texts)):
        return []
    older.consume(name)
    return [entry for entry in texts if entry.strip()]


def _metadata(older: _OlderRow) -> dict[str, Any]:
    """The metadata of the row if it is an object, and under `legacy` all values that weren't consumed."""
    own = _object(older.get("metadata"))
    if not _is_storable(json.dumps(own, ensure_ascii=False)):
        own = {}
    if own:
        older.consume("metadata")
    earlier = own.get(LEGACY)
    rest = {**(earlier if isinstance(earlier, dict) else {} if earlier is None else {LEGACY: earlier}), **older.rest()}
    return {**own, LEGACY: rest} if rest else own


def _object(value: object) -> dict[str, Any]:
    return parsed(value, dict, parse_constant=str) or {}


def _text(value: object) -> str:
    """Any value as text, without characters that can't be stored."""
    return UNSTORABLE.sub("", value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def _is_storable(value: object) -> bool:
    return isinstance(value, str) and not UNSTORABLE.search(value)


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode(), "was": "text" if isinstance(value, Undecodable) else "bytes"}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _dumped(value: Mapping[str, Any] | list[Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None
