"""Times as programs and people write them into files: what `occurred_at` understands, and the forms that only programs have."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from memory_mcp.dates.resolve import parse_moment
from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.import_rows import moment

LONGEST = 100
# 2024-3-1 @12h 33m 20s 123ms, of SillyTavern.
_AT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m(?: ?(\d{1,2})s)?(?: ?(\d{1,3})ms)?")
# Tue Oct 29 2024 21:05:33 GMT+0900 (Japan Standard Time), of JavaScript.
_OF_SCRIPTS = re.compile(r"[A-Za-z]{3} ([A-Za-z]{3}) (\d{1,2}) (\d{4}) (\d{2}:\d{2}:\d{2}) GMT([+-]\d{4})(?: \([^()]*\))?")
_ZONE = ZoneInfo("UTC")
# What is read the same on both days needs no other day to be understood.
_ONE_DAY, _ANOTHER = datetime(2001, 3, 7, 1, tzinfo=UTC), datetime(2018, 10, 23, 1, tzinfo=UTC)


def written_time(value: object) -> str | None:
    """A time as the import of a row understands it: ISO text, or the words as they are; None for what names no time by itself, such as 昨日."""
    if not isinstance(value, str):
        return moment(value)
    text = value.strip()
    if len(text) > LONGEST:
        return None
    if exact := moment(text) if not text.isdecimal() or len(text) >= 9 else None:
        return exact
    if written := _AT.fullmatch(text):
        return _iso(*(int(part or 0) for part in written.groups()))
    if written := _OF_SCRIPTS.fullmatch(text):
        text = f"{written[3]}-{written[1]}-{written[2]} {written[4]}{written[5]}"
        try:
            return datetime.strptime(text, "%Y-%b-%d %H:%M:%S%z").isoformat()
        except ValueError:
            return None
    try:
        first, second = (parse_moment(text, now, _ZONE) for now in (_ONE_DAY, _ANOTHER))
    except InvalidInput:
        return None
    return text if first == second else None


def _iso(year: int, month: int, day: int, hour: int, minute: int, second: int, milliseconds: int) -> str | None:
    try:
        return datetime(year, month, day, hour, minute, second, milliseconds * 1000).isoformat()  # noqa: DTZ001  the import knows the zone
    except ValueError:
        return None
