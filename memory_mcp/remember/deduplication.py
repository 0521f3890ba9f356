"""What an imported draft is to what is stored: new, known, or an edit of a memory whose key it has.

A file that is read again must neither double a memory nor undo what was changed since. So a draft that is equal to an
earlier state of its memory is an old copy of it, and known; only one that says something else is an edit.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import apsw

from memory_mcp.domain import PRIVACY_LEVELS, Clash, Draft, Memory, Outcome, PrivacyLevel
from memory_mcp.errors import InvalidInput
from memory_mcp.store import memories, tombstones, versions

# A retry that doesn't say when it happened is recognised for this long; with `occurred_at` for ever.
RETRY_WINDOW = timedelta(minutes=10)
# Where an imported memory came from stands under this name in its metadata.
ORIGIN = "origin"
# Notes are known by what they say, too: a vault may have been renamed.
NOTES = "obsidian"


def settle(connection: apsw.Connection, draft: Draft, now: datetime, clash: Clash = "refuse") -> Outcome | None:
    """`already_known` or `revised` (which the caller has to do) with the key; None for what is to be stored.

    Raises:
        InvalidInput: its key is taken, and `clash` is to refuse that; or what had it was erased for good.
    """
    key = draft.restored.key
    if not key:
        known = _same_write(connection, draft, now)
        return Outcome(known, "already_known") if known else None
    stored = memories.by_keys(connection, [key]).get(key)
    if stored:
        return Outcome(key, _beside(connection, draft, stored, clash))
    erased = tombstones.erased_at(connection, key)
    if erased:
        raise InvalidInput(
            f"{key} was erased for good",
            f"that was at {erased:%Y-%m-%d %H:%M} UTC",
            "If it is to come back all the same, leave the key out, and the memory gets a new one",
        )
    known = _stored_otherwise(connection, draft, now) if clash != "refuse" else None
    return Outcome(known, "already_known") if known else None


def taken(key: str) -> InvalidInput:
    """The refusal of a draft whose key belongs to another memory."""
    return InvalidInput(
        f"the key {key} is taken",
        "another memory of this persona has it, with other content",
        "Leave the key out, and the memory gets a new one",
    )


def leftovers(connection: apsw.Connection, stem: str, pieces: int) -> Sequence[str]:
    """The keys of pieces that a note had and has no more: it is in `pieces` now, numbered from 0 behind its `stem`."""
    numbered = ((key, key.removeprefix(f"{stem}_")) for key in memories.keys_beginning(connection, f"{stem}_"))
    return [key for key, number in numbered if number.isdecimal() and int(number) >= pieces]


def _beside(connection: apsw.Connection, draft: Draft, stored: Memory, clash: Clash) -> str:
    if clash == "revise":
        closes = is_stricter(draft.privacy_level, stored.privacy_level)
        is_edit = stored.deleted_at is None and (closes or not _was_so(connection, draft, stored))
        return "revised" if is_edit else "already_known"
    if clash == "refuse" and stored.content != draft.content:
        raise taken(stored.key)
    return "already_known"


def is_stricter(level: PrivacyLevel, other: PrivacyLevel) -> bool:
    """Whether one privacy level lets less out than another."""
    return PRIVACY_LEVELS.index(level) > PRIVACY_LEVELS.index(other)


def _was_so(connection: apsw.Connection, draft: Draft, stored: Memory) -> bool:
    said = (draft.content, draft.tags, draft.importance)
    return said == (stored.content, stored.tags, stored.importance) or versions.had_state(connection, stored.key, *said)


def _same_write(connection: apsw.Connection, draft: Draft, now: datetime) -> str | None:
    timed = draft.occurred_at is not None or draft.restored.created_at is not None
    return memories.find_same_write(connection, draft, since=None if timed else now - RETRY_WINDOW)


def _stored_otherwise(connection: apsw.Connection, draft: Draft, now: datetime) -> str | None:
    """The same write under another key: what was remembered by hand, or imported before imports gave keys."""
    if ORIGIN not in draft.metadata:
        return None
    known = _same_write(connection, draft, now)
    origin = memories.by_keys(connection, [known])[known].metadata.get(ORIGIN) if known else None
    return known if origin is None or (isinstance(origin, dict) and origin.get("format") == NOTES) else None
