"""The grammar table of docs/date-expressions.md, generated from the tables of date expressions: python tests/support/dates_grammar.py writes it."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from places import ROOT

from memory_mcp.dates.hours import times_of
from memory_mcp.dates.recognize import AS_ARGUMENTS, IN_TEXTS, dates_asked, recognize, spans_together
from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import DaySpan
from memory_mcp.dates.statements import days, days_of_statement
from memory_mcp.domain import TimeRange

DOCS = ROOT / "docs"
PAGE = DOCS / "date-expressions.md"
TOKYO = ZoneInfo("Asia/Tokyo")
NOW = datetime(2025, 10, 30, 12, tzinfo=TOKYO)
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"
# What a date may carry beside it, or hours from now: what `date_range` makes of it.
FURTHER = {
    "ISO 8601": ["2025-10-17", "2025-10-17T21:30", "2025-10-17T21:30:00+09:00", "2025-10-17T21:30 JST", "2025-W42"],
    "parts of a span": ["10月上旬", "先月末", "10月の第2週", "今年の前半", "夏休みの終わり", "early October", "the last week of October", "first half of 2024"],
    "not exactly: also the days beside it": ["10月頃", "昨日くらい", "around October 17"],
    "hours from now": ["2時間前", "2時間半前", "数時間前", "30分後", "過去24時間", "さっき", "an hour ago", "the last 24 hours", "just now"],
    "clock times": ["昨日の21時", "昨日の午後3時半", "25時", "yesterday at 9pm"],
    "ranges": ["先週..昨日", "10月1日〜17日", "10月3日から5日", "between October 1 and October 17", "Mon-Wed", "昨日と一昨日", "10月17日以降", "until yesterday", "before October 17"],
}  # fmt: skip
# These kinds come first, in this order.
ORDER = (
    "ISO 8601", "near days", "days of the week", "weeks and weekends", "months and years from now", "days", "months", "years and decades",
    "quarters", "fiscal years, which begin in April", "days of the week counted within a month", "so long ago",
    "up to now, with today", "hours from now", "seasons", "holidays and other days with a name", "holiday periods",
    "days off in a row, and the first days after them", "parts of a span", "clock times",
    "not exactly: also the days beside it", "ranges",
)  # fmt: skip
MOMENT, STATEMENT = "moments, as `occurred_at`", "days of a memory's text, in the graph"
ALONE = "days alone in a memory's text"
HEAD = "| kind | example | means, on Thursday, 30 October 2025, at noon |"
STATEMENTS = [
    "10月17日〜19日に旅行した",
    "10/17(金)の会議",
    "締切は2月1日",
    "来年4月に引っ越す",
    "母の誕生日は10月3日",
    "We met on October 17",
]
DAYS_ALONE = [
    "金曜に歯医者",
    "金曜に歯医者に行った",
    "遠足は20日",
    "週末は旅行",
    "金曜は燃えるゴミの日",
    "dentist on Friday",
    "went to the dentist on Friday",
    "on Fridays I swim",
]
MOMENTS = ["3日前の夜", "今朝早く", "昨夜1時", "深夜2時", "last Friday at 9", "yesterday morning", "一週間前", "月末"]


def named_dates(query: str, now: datetime, zone: ZoneInfo, *, upcoming: bool = False) -> list[TimeRange]:
    """The spans that a query names, in UTC. A date without a year means that date in each of the last years, with `upcoming` also the next
    one."""
    recognized, today = recognize(query), now.astimezone(zone).date()
    asked = spans_together(recognized.plain, dates_asked(recognized, today, upcoming=upcoming))
    return times_of(recognized.plain, asked, now, zone)


def rows() -> Iterator[tuple[str, str, str]]:
    """Kind, example, and what it means."""
    kinds: dict[str, list[tuple[str, TimeRange]]] = {}
    arguments = set(AS_ARGUMENTS)
    for expression in (*AS_ARGUMENTS, *(one for one in IN_TEXTS if one not in arguments)):
        kind = expression.kind if expression in arguments else f"{expression.kind}, in a question"
        for example in expression.examples:
            span = parse_range(example, NOW, TOKYO) if expression in arguments else named_dates(example, NOW, TOKYO)[0]
            kinds.setdefault(kind, []).append((example, span))
    for kind, examples in FURTHER.items():
        kinds[kind] = [(example, parse_range(example, NOW, TOKYO)) for example in examples]
    for kind in sorted(kinds, key=lambda kind: ORDER.index(kind) if kind in ORDER else len(ORDER)):
        for example, span in kinds[kind]:
            yield kind, example, meaning(span)
    for example in MOMENTS:
        yield MOMENT, example, f"{parse_moment(example, NOW, TOKYO).astimezone(TOKYO):%Y-%m-%d %H:%M}"
    for example in STATEMENTS:
        yield STATEMENT, example, ", ".join(day.name for day in days(example, NOW.date()))
    for example in DAYS_ALONE:
        yield ALONE, example, ", ".join(map(_days, days_of_statement(example, NOW.date()))) or "—"


def _days(span: DaySpan) -> str:
    first, last = span[0], span[1] - timedelta(days=1)
    return str(first) if first == last else f"{first}..{last}"


def meaning(span: TimeRange) -> str:
    """The first and the last day; the hours where it is no whole day; an open end is left out."""
    start = None if span.start.year == 1 else span.start.astimezone(TOKYO)
    last = None if span.end.year == 9999 else (span.besides or span.end).astimezone(TOKYO) - timedelta(microseconds=1)
    whole_days = (start is None or start.time() == start.time().min) and (last is None or (last + timedelta(microseconds=1)).hour == 0)
    if whole_days:
        first_day, last_day = (f"{day:%Y-%m-%d}" if day else "" for day in (start, last))
        return first_day if first_day == last_day else f"{first_day}..{last_day}"
    ends = [f"{moment:%Y-%m-%d %H:%M}" if moment else "" for moment in (start, last)]
    return ends[0] if ends[0] == ends[1] else "..".join(ends)


def table() -> str:
    lines = [HEAD, "|---|---|---|"]
    before = ""
    for kind, example, means in rows():
        lines.append(f"| {kind if kind != before else ''} | `{example}` | {means} |")
        before = kind
    return "\n".join(lines) + "\n"


def with_table() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(f"(?s)(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", lambda _: table(), text)


if __name__ == "__main__":
    PAGE.write_text(with_table(), encoding="utf-8")
