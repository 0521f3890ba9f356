"""One memory as an older server stored it, in our form. What has no place of its own, or another form there, is kept beside it.

Every value that differs from what we store for it stays under `metadata.legacy`, by the name of its older column: nothing is
lost, and what was guessed can be checked.
"""

import base64
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.domain import KINDS, PRIVACY_LEVELS, STATE_FIELDS
from memory_mcp.store import timestamps

# The older server wrote local times without an offset, in its default zone.
OLDER_SERVERS_ZONE = ZoneInfo("Asia/Tokyo")
LEGACY = "legacy"
KEY_LIMIT = 200
LABEL_LIMIT = 500
COUNT_LIMIT = 2**31

# Our column, and the names that older columns of the same meaning have, the one that counts first.
_STATE_COLUMNS = {
    "emotion": ("emotion", "emotion_type", "current_emotion"),
    "physical_state": ("physical_state",),
    "mental_state": ("mental_state",),
    "environment": ("environment",),
    "relationship_status": ("relationship_status",),
}
_EPOCH = re.compile(r"-?\d{9,13}(\.\d+)?|\d{15,16}")
_COMPACT = re.compile(r"(?:.*\D)?((?:19|20)\d{12})(?!\d).*", re.DOTALL)
_LARGEST_SECONDS = 100_000_000_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Undecodable(bytes):
    """Stored as text, in an encoding that is not the file's."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A row in our form: a value for each of our columns but `id`. `dated` is False where no column told a usable time."""

    values: Mapping[str, Any]
    dated: bool


class _Older:
    """The values that are set, by their names in small letters; what is taken as it stands is struck out, the rest is kept."""

    def __init__(self, row: Mapping[str, object]) -> None:
        self._names = {name.casefold(): name for name in row}
        self._values = {name.casefold(): value for name, value in row.items() if value is not None}

    def look(self, name: str) -> Any:
        return self._values.get(name)

    def strike_out(self, *names: str) -> None:
        for name in names:
            self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        """The column as text; struck out unless it had to be changed for that."""
        value = self.look(name)
        found = None if value is None else _text(value)
        if found == value:
            self.strike_out(name)
        return found

    def rest(self) -> dict[str, Any]:
        return {self._names[name]: _json_value(value) for name, value in self._values.items()}


def adopted(row: Mapping[str, object], taken: Collection[str], place: int, now: datetime, columns: Collection[str]) -> Adopted:
    """`row` in our form, for a table with these columns, under a key that is not in `taken`. `place` tells rows without a key apart;
    `now` dates what nothing dates."""
    older = _Older(row)
    key_time = _compact_moment(str(older.look("key")))
    created, updated = _moment(older, "created_at"), _moment(older, "updated_at")
    dated = bool(created or updated or key_time)
    one = created or updated or key_time or now
    created, updated = created or one, updated or one
    values = {
        "key": _key(older, taken, created, place),
        "content": older.text("content") or "",
        "created_at": timestamps.to_text(created),
        "updated_at": timestamps.to_text(updated),
        "tags": _dumped(_tags(older)),
        "importance": _importance(older),
        "occurred_at": timestamps.optional_to_text(_moment(older, "occurred_at")),
        "deleted_at": timestamps.optional_to_text(_deleted(older, updated)),
        "last_used_at": timestamps.optional_to_text(_first_moment(older, "last_used_at", "last_accessed")),
        "usage_count": _whole(older, "usage_count", 0) or _whole(older, "access_count", 0) or 0,
        "revision": _whole(older, "revision", 1) or 1,
        "kind": _kind(older),
        **{name: _label(older, name) for name in ("source", "session_id", "supersedes")},
        "state": _dumped(_state(older)),
        "questions": _dumped(_texts(older, "questions")),
        **({"category": _label(older, "category")} if "category" in columns else {}),
        **({"privacy_level": _privacy_level(older)} if "privacy_level" in columns else {}),
    }
    values["tags"] = values["tags"] or "[]"
    return Adopted({**values, "metadata": _dumped(_metadata(older))}, dated)


def moment(value: object) -> datetime | None:
    """A time in any form that older stores have: ISO with an offset or without, digits only, or seconds, ms or µs since 1970."""
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
            return _compact_moment(text)
        found = datetime.fromisoformat(text.replace("/", "-"))
        return (found if found.tzinfo else found.replace(tzinfo=OLDER_SERVERS_ZONE)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _compact_moment(text: str) -> datetime | None:
    """The time in `memory_20251030120000`."""
    found = _COMPACT.fullmatch(text)
    try:
        return datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(tzinfo=OLDER_SERVERS_ZONE).astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        return None


def _moment(older: _Older, name: str) -> datetime | None:
    value = older.look(name)
    found = moment(value)
    if found and isinstance(value, str) and _is_iso(value):
        older.strike_out(name)
    return found


def _first_moment(older: _Older, *names: str) -> datetime | None:
    return next((found for found in [_moment(older, name) for name in names] if found), None)


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _deleted(older: _Older, updated: datetime) -> datetime | None:
    """When it went to the trash. A mark that is no time still says that it is there."""
    said = older.look("deleted_at")
    return _moment(older, "deleted_at") or (None if str(said).strip().casefold() in ("none", "", "0", "0.0", "false", "null") else updated)


def _key(older: _Older, taken: Collection[str], created: datetime, place: int) -> str:
    """Its own key, unless another row has it or nobody could ask for it."""
    value = older.look("key")
    said = "" if value is None else _text(value)
    key = said if said.strip() else f"memory_{created.astimezone(OLDER_SERVERS_ZONE):%Y%m%d%H%M%S}_{place}"
    key = key.strip()
    key = key if len(key) <= KEY_LIMIT else key[: KEY_LIMIT - 20]
    unused = key
    while unused in taken:
        unused, place = f"{key}_{place}", place + 1
    if unused == value:
        older.strike_out("key")
    return unused


def _tags(older: _Older) -> list[str]:
    tags = [*_tag_list(older, "tags"), *_tag_list(older, "context_tags")]
    return list(dict.fromkeys(tags))


def _tag_list(older: _Older, name: str) -> list[str]:
    """A JSON list, a comma-separated line, or one tag."""
    value = older.look(name)
    if value is None:
        return []
    text = _text(value)
    try:
        found = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        found = re.split("[,、]", text)
    if isinstance(found, dict):
        return []
    found = found if isinstance(found, list) else [found]
    if text == value and all(_is_storable(tag) and len(tag) <= LABEL_LIMIT for tag in found):
        older.strike_out(name)
    return [tag for tag in (_text(tag).strip()[:LABEL_LIMIT] for tag in found if tag is not None) if tag]


def _importance(older: _Older) -> float:
    value = older.look("importance")
    try:
        number = float(value) if not isinstance(value, bytes) and value is not None else math.nan
    except ValueError:
        number = math.nan
    kept = 0.5 if math.isnan(number) else min(1.0, max(0.0, number))
    if kept == value:
        older.strike_out("importance")
    return kept


def _whole(older: _Older, name: str, least: int) -> int | None:
    value = older.look(name)
    if not isinstance(value, int) or not least <= value <= COUNT_LIMIT:
        return None
    older.strike_out(name)
    return value


def _kind(older: _Older) -> str:
    value = older.look("kind")
    if value not in KINDS:
        return "fact"
    older.strike_out("kind")
    return str(value)


def _privacy_level(older: _Older) -> str:
    value = older.look("privacy_level")
    if value not in PRIVACY_LEVELS:
        return "internal"
    older.strike_out("privacy_level")
    return str(value)


def _label(older: _Older, name: str) -> str | None:
    value = older.look(name)
    if not _is_storable(value) or len(value) > LABEL_LIMIT or not value.strip():
        return None
    label = str(value).strip()
    if value == label:
        older.strike_out(name)
    return label


def _state(older: _Older) -> dict[str, str]:
    said = _object(older.look("state"))
    state = {name: value for name, value in said.items() if name in STATE_FIELDS and _is_storable(value)}
    if said and state == said:
        older.strike_out("state")
    for part, names in _STATE_COLUMNS.items():
        for name in names:
            value = older.look(name)
            if value and _is_storable(value) and state.setdefault(part, value) == value:
                older.strike_out(name)
    return {name: value for name, value in state.items() if value}


def _texts(older: _Older, name: str) -> list[str]:
    """A JSON list of texts; anything else is only kept."""
    value = older.look(name)
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(map(_is_storable, found)):
        return []
    older.strike_out(name)
    return [entry for entry in found if entry.strip()]


def _metadata(older: _Older) -> dict[str, Any]:
    """Their metadata where it is an object, and under `legacy` what has no other place."""
    own = _object(older.look("metadata"))
    if not _is_storable(json.dumps(own, ensure_ascii=False)):
        own = {}
    if own:
        older.strike_out("metadata")
    earlier = own.get(LEGACY)
    rest = {**(earlier if isinstance(earlier, dict) else {} if earlier is None else {LEGACY: earlier}), **older.rest()}
    return {**own, LEGACY: rest} if rest else own


def _object(value: object) -> dict[str, Any]:
    try:
        found = json.loads(value, parse_constant=str) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    """Readable text of any value, without what can't be stored as text."""
    return _UNSTORABLE.sub("", value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def _is_storable(value: object) -> bool:
    return isinstance(value, str) and not _UNSTORABLE.search(value)


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode(), "was": "text" if isinstance(value, Undecodable) else "bytes"}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _dumped(value: Mapping[str, Any] | list[Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None
