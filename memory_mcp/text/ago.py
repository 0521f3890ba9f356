"""How long ago something was, as a person would say it: 3日前, 3 days ago."""

from datetime import datetime
from zoneinfo import ZoneInfo

from memory_mcp.text.tokens import is_japanese

_STEPS = [(365, "年", "year"), (30, "か月", "month"), (7, "週間", "week"), (1, "日", "day")]


def ago(moment: datetime, now: datetime, language_of: str, zone: ZoneInfo) -> str:
    """The distance in whole calendar days, weeks, months or years in `zone`; in Japanese where `language_of` is Japanese."""
    japanese = is_japanese(language_of)
    days = (now.astimezone(zone).date() - moment.astimezone(zone).date()).days
    if days < 0:
        return f"{-days}日後" if japanese else f"in {-days} day{'s' if days < -1 else ''}"
    if days <= 1:
        return (("今日", "昨日") if japanese else ("today", "yesterday"))[days]
    size, kanji, word = next(step for step in _STEPS if days >= step[0] * (2 if step[0] == 7 else 1))
    count = days // size
    return f"{count}{kanji}前" if japanese else f"{count} {word}{'s' if count > 1 else ''} ago"


def elapsed(since: datetime, now: datetime) -> str:
    """The time between two moments in its largest two units: `3 days 4 hours`."""
    minutes = max(int((now - since).total_seconds() // 60), 0)
    sizes = [(minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")]
    said = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in sizes if count][:2]
    return " ".join(said) or "less than a minute"
