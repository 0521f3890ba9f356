"""Deduplication: decides whether a draft is new, already known, or an edit of the memory with its key.

Reading a file again must neither duplicate a memory nor undo later changes. So a draft equal to an earlier state of its memory is already
known; only one with other content is an edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw

from memory_mcp.domain import PRIVACY_LEVELS, Clash, Draft, Memory, Outcome, PrivacyLevel
from memory_mcp.errors import InvalidInput
from memory_mcp.store import memories, tombstones, versions

# The window in which the same write without `occurred_at` is recognized; with `occurred_at` it is recognized forever.
RETRY_WINDOW = timedelta(minutes=10)
# The metadata key for the origin of an imported memory, and its field for when a message was edited in its program.
ORIGIN, EDITED_AT = "origin", "edited_at"
# Notes are also recognized by their content: a vault may have been renamed.
NOTES = "obsidian"


@dataclass(frozen=True, slots=True)
class Known:
    """Which keys and writes of many drafts may be stored already: of most drafts neither is, and these need no query of their own."""

    keys: set[str]
    writes: set[str]

    @classmethod
    def among(cls, connection: apsw.Connection, drafts: Sequence[Draft], digests: Sequence[str]) -> "Known":
        """Those of these drafts, whose writes have these `digests`."""
        keys = [draft.restored.key for draft in drafts if draft.restored.key]
        stored = memories.stored_keys(connection, keys) | tombstones.erased_among(connection, keys)
        return cls(stored, memories.stored_writes(connection, digests))

    def may_hold(self, draft: Draft, digest: str) -> bool:
        """Whether `settle` may have an outcome for a draft."""
        return draft.restored.key in self.keys or digest in self.writes

    def add(self, draft: Draft, digest: str) -> None:
        """Notes a draft that was stored."""
        if draft.restored.key:
            self.keys.add(draft.restored.key)
        self.writes.add(digest)


def settle(connection: apsw.Connection, draft: Draft, now: datetime, clash: Clash = "refuse") -> Outcome | None:
    """`already_known`, or `revised` (the caller makes the revision), with the key; None for a new memory.

    Raises:
        InvalidInput: its key is taken and `clash` is `refuse`; or the memory with the key was purged.
    """
    key = draft.restored.key
    if not key:
        known = _same_write(connection, draft, now)
        return Outcome(known, "already_known") if known else None
    stored = memories.by_keys(connection, [key]).get(key)
    if stored:
        return Outcome(key, _with_taken_key(connection, draft, stored, clash))
    erased = tombstones.erased_at(connection, key)
    if erased:
        raise InvalidInput(
            "{} was erased for good",
            "that was at {} UTC",
            "If it is to come back all the same, leave the key out, and the memory gets a new one",
            key,
            f"{erased:%Y-%m-%d %H:%M}",
        )
    known = _stored_otherwise(connection, draft, now) if clash != "refuse" else None
    return Outcome(known, "already_known") if known else None


def taken(key: str) -> InvalidInput:
    """The error for a draft whose key belongs to another memory."""
    return InvalidInput(
        "the key {} is taken",
        "another memory of this persona has it, with other content",
        "Leave the key out, and the memory gets a new one",
        key,
    )


def leftovers(connection: apsw.Connection, stem: str, pieces: int) -> Sequence[str]:
    """The keys of parts that a note no longer has: it has `pieces` parts now, numbered from 0 after its `stem`."""
    numbered = ((key, key.removeprefix(f"{stem}_")) for key in memories.keys_with_prefix(connection, f"{stem}_"))
    return [key for key, number in numbered if number.isdecimal() and int(number) >= pieces]


def _with_taken_key(connection: apsw.Connection, draft: Draft, stored: Memory, clash: Clash) -> str:
    if clash == "revise" or (clash == "keep" and _is_edited_since(draft, stored)):
        closes = is_stricter(draft.privacy_level, stored.privacy_level)
        is_edit = stored.deleted_at is None and (closes or not _is_earlier_state(connection, draft, stored))
        return "revised" if is_edit else "already_known"
    if clash == "refuse" and stored.content != draft.content:
        raise taken(stored.key)
    return "already_known"


def _is_edited_since(draft: Draft, stored: Memory) -> bool:
    """Whether a message was edited in its program after the state that is stored, and after the last revision here."""
    edited_at, known = (_edited_at(metadata.get(ORIGIN)) for metadata in (draft.metadata, stored.metadata))
    if edited_at is None or (known and known >= edited_at):
        return False
    return stored.revision == 1 or stored.updated_at < edited_at


def _edited_at(origin: Any) -> datetime | None:
    try:
        edited_at = datetime.fromisoformat(origin[EDITED_AT])
        return (edited_at if edited_at.tzinfo else edited_at.replace(tzinfo=UTC)).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def is_stricter(level: PrivacyLevel, other: PrivacyLevel) -> bool:
    """Whether a privacy level is stricter than another."""
    return PRIVACY_LEVELS.index(level) > PRIVACY_LEVELS.index(other)


def _is_earlier_state(connection: apsw.Connection, draft: Draft, stored: Memory) -> bool:
    state = (draft.content, draft.tags, draft.importance)
    return state == (stored.content, stored.tags, stored.importance) or versions.had_state(connection, stored.key, *state)


def _same_write(connection: apsw.Connection, draft: Draft, now: datetime) -> str | None:
    timed = draft.occurred_at is not None or draft.restored.created_at is not None
    return memories.find_same_write(connection, draft, since=None if timed else now - RETRY_WINDOW)


def _stored_otherwise(connection: apsw.Connection, draft: Draft, now: datetime) -> str | None:
    """The same write under another key: remembered by hand, or imported without keys."""
    if ORIGIN not in draft.metadata:
        return None
    known = _same_write(connection, draft, now)
    origin = memories.by_keys(connection, [known])[known].metadata.get(ORIGIN) if known else None
    return known if origin is None or (isinstance(origin, dict) and origin.get("format") == NOTES) else None
