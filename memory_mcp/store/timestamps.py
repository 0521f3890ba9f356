"""Timestamps as text: UTC with offset and fixed length, so that text order is time order."""

from datetime import UTC, datetime
from functools import lru_cache


def to_text(moment: datetime) -> str:
    """Format an aware datetime as `2025-10-30T03:00:00.000000+00:00`."""
    return _utc_to_text(moment if moment.tzinfo is UTC else moment.astimezone(UTC))


# A write puts the same moment into several rows.
@lru_cache(maxsize=16)
def _utc_to_text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """Parse the output of `to_text`."""
    return datetime.fromisoformat(text)


def optional_to_text(moment: datetime | None) -> str | None:
    return None if moment is None else to_text(moment)


def optional_from_text(text: str | None) -> datetime | None:
    return None if text is None else from_text(text)
