"""How long ago something was, as a person would say it: 3日前, 3 days ago; and the day of the week."""

from collections.abc import Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Literal
from zoneinfo import ZoneInfo

from memory_mcp.characters import is_japanese
from memory_mcp.dates.spans import WEEKDAY_NAMES

Language = Literal["ja", "en"]

_STEPS = [(365, "年", "year"), (30, "か月", "month"), (7, "週間", "week"), (1, "日", "day")]


def language_of(text: str) -> Language:
    """Japanese where it has a kana or a kanji, else English."""
    return "ja" if is_japanese(text) else "en"


def ago(moment: datetime, now: datetime, language: Language, zone: ZoneInfo) -> str:
    """The distance in whole calendar days, weeks, months or years in `zone`."""
    japanese = language == "ja"
    days = (now.astimezone(zone).date() - moment.astimezone(zone).date()).days
    if -1 <= days <= 1:
        return (("明日", "今日", "昨日") if japanese else ("tomorrow", "today", "yesterday"))[days + 1]
    if days < 0:
        return f"{-days}日後" if japanese else f"in {-days} days"
    size, kanji, word = next(step for step in _STEPS if days >= step[0] * (2 if step[0] == 7 else 1))
    count = days // size
    return f"{count}{kanji}前" if japanese else f"{count} {word}{'s' if count > 1 else ''} ago"


def weekday(day: date, language: Language) -> str:
    """The day of the week in short: 月, Mon."""
    return WEEKDAY_NAMES[day.weekday()] if language == "ja" else f"{day:%a}"


# What `elapsed` says of less than a minute.
NO_MINUTE: Mapping[Language, str] = MappingProxyType({"ja": "1分未満", "en": "less than a minute"})


def elapsed(since: datetime, now: datetime, language: Language) -> str:
    """The time between two moments in its largest two units: `3 days 4 hours`, 3日4時間."""
    minutes = max(int((now - since).total_seconds() // 60), 0)
    sizes = [(minutes // 1440, "日", "day"), (minutes // 60 % 24, "時間", "hour"), (minutes % 60, "分", "minute")]
    largest = [size for size in sizes if size[0]][:2]
    if language == "ja":
        return "".join(f"{count}{kanji}" for count, kanji, _ in largest) or NO_MINUTE[language]
    return " ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, _, word in largest) or NO_MINUTE[language]
