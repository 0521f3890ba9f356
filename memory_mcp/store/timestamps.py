"""Times as text: UTC with the offset, always of the same length, so that text order is time order."""

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """An aware datetime as `2025-10-30T03:00:00.000000+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """The aware datetime that `to_text` wrote."""
    return datetime.fromisoformat(text)


def optional_to_text(moment: datetime | None) -> str | None:
    return None if moment is None else to_text(moment)


def optional_from_text(text: str | None) -> datetime | None:
    return None if text is None else from_text(text)
