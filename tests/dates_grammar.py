"""The grammar table of docs/dates.md and docs/dates.ja.md, generated from the tables of date expressions: python tests/dates_grammar.py writes it."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from memory_mcp.dates.recognize import AS_ARGUMENTS, IN_TEXTS
from memory_mcp.dates.resolve import named_dates, parse_moment, parse_range
from memory_mcp.dates.spans import DaySpan
from memory_mcp.dates.statements import days, days_of_statement
from memory_mcp.domain import TimeRange

DOCS = Path(__file__).parents[1] / "docs"
ENGLISH, JAPANESE = DOCS / "dates.md", DOCS / "dates.ja.md"
TOKYO = ZoneInfo("Asia/Tokyo")
NOW = datetime(2025, 10, 30, 12, tzinfo=TOKYO)
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"
# What a date may carry beside it, or hours from now: what `date_range` makes of it.
FURTHER = {
    "ISO 8601": ["2025-10-17", "2025-10-17T21:30", "2025-10-17T21:30:00+09:00", "2025-10-17T21:30 JST", "2025-W42"],
    "parts of a span": ["10月上旬", "先月末", "10月の第2週", "今年の前半", "夏休みの終わり", "early October", "the last week of October", "first half of 2024"],
    "not exactly: also the days beside it": ["10月頃", "昨日くらい", "around October 17"],
    "the day beside a named day": ["クリスマスの翌日", "the day before Christmas"],
    "hours from now": ["2時間前", "2時間半前", "数時間前", "30分後", "過去24時間", "さっき", "an hour ago", "the last 24 hours", "just now"],
    "clock times": ["昨日の21時", "昨日の午後3時半", "25時", "yesterday at 9pm"],
    "ranges": ["先週..昨日", "10月1日〜17日", "10月3日から5日", "between October 1 and October 17", "Mon-Wed", "昨日と一昨日", "10月17日以降", "until yesterday", "before October 17"],
}  # fmt: skip
# These kinds come first, in this order.
ORDER = (
    "ISO 8601", "near days", "days of the week", "weeks and weekends", "months and years from now", "days", "months", "years and decades",
    "quarters and halves of a year", "fiscal years, which begin in April", "days counted within a month, and weeks of a day", "so long ago",
    "up to now, with today", "hours from now", "seasons", "holidays and other days with a name", "holiday periods",
    "days off in a row, and the first days after them", "the day beside a named day", "parts of a span", "clock times",
    "not exactly: also the days beside it", "ranges",
)  # fmt: skip
MOMENT, STATEMENT = "moments, as `occurred_at`", "days of a memory's text, in the graph"
ALONE = "days alone in a memory's text"
HEAD = {
    ENGLISH: "| kind | example | means, on Thursday, 30 October 2025, at noon |",
    JAPANESE: "| 種類 | 例 | 2025 年 10 月 30 日（木曜日）の正午に書いた場合の意味 |",
}
IN_JAPANESE = {
    "ISO 8601": "ISO 8601",
    "near days": "近い日",
    "days of the week": "曜日",
    "weeks and weekends": "週と週末",
    "months and years from now": "今を基準にした月と年",
    "days": "日",
    "months": "月",
    "years and decades": "年と年代",
    "quarters and halves of a year": "四半期と半期",
    "fiscal years, which begin in April": "年度（4 月始まり）",
    "days counted within a month, and weeks of a day": "月の第何曜日など、ある日の週",
    "so long ago": "どれくらい前か",
    "up to now, with today": "今までの期間（今日を含む）",
    "hours from now": "今を基準にした時間",
    "seasons": "季節",
    "holidays and other days with a name": "祝日など名前のある日",
    "holiday periods": "名前のある時期",
    "days off in a row, and the first days after them": "連休と連休明け",
    "the day beside a named day": "名前のある日の前後の日",
    "parts of a span": "期間の一部",
    "clock times": "時刻",
    "not exactly: also the days beside it": "おおよその日（前後の日も含む）",
    "ranges": "範囲",
    "to come": "これから先",
    "parts of the current week, month or year": "今の週、月、年の一部",
    "days of the week and weekends": "曜日と週末",
    "vague times": "はっきりしない時",
    MOMENT: "日時（`occurred_at`）",
    STATEMENT: "記憶の本文の日付（グラフ）",
    ALONE: "記憶の本文の曜日や日だけの日付",
}
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


def table(page: Path) -> str:
    lines = [HEAD[page], "|---|---|---|"]
    before = ""
    for kind, example, means in rows():
        shown = kind if page == ENGLISH else in_japanese(kind)
        lines.append(f"| {shown if kind != before else ''} | `{example}` | {means} |")
        before = kind
    return "\n".join(lines) + "\n"


def in_japanese(kind: str) -> str:
    for suffix, japanese in (", as an argument", "（引数で）"), (", in a question", "（質問の中で）"):
        if kind.endswith(suffix):
            return IN_JAPANESE[kind.removesuffix(suffix)] + japanese
    return IN_JAPANESE[kind]


def with_table(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return re.sub(f"(?s)(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", lambda _: table(page), text)


if __name__ == "__main__":
    for page in HEAD:
        page.write_text(with_table(page), encoding="utf-8")
