"""Reads the talk history that the LINE app sends as a text, of phones and of computers, in any of its languages.

A day has a line of its own; below it each message has its time, its speaker and its text, with tabs between them, or spaces in that of a
computer. Messages of several lines stand in quotation marks. langchain-community has no loader for it.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.dates.spans import ERAS
from memory_mcp.transfer.formats.clock import ENGLISH_WEEKDAYS, HALF, DayOrder, at_time, day_of, hour_of
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, role_of
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.turns import Equals, FurtherLines, Turn, in_zone, media_kind, text_lines, turn_items

Message = re.Match[str]
# The numbers of lines, last to first.
_Chain = tuple[int, Any]
_Form = tuple[bool, bool, str, int]

FORM = "line"
PROGRAM = "LINE"
# The app takes at most 10,000 characters in a message.
MESSAGE_CHARACTERS = 12_000
# Of a name with spaces so many words are known.
NAME_WORDS = 4
BEGINNINGS_LIMIT = 100_000
# Words are a part of a name that so many messages begin with, this share of those by the words before them, and with others like them nearly all.
SAID_OFTEN, A_NAMES_SHARE, NAMES_SHARE = 3, 0.1, 0.8
# In a column of its own a name is told by fewer.
SAID_TWICE = 2
# A line by somebody who is known counts as so many by others, where the clock says that not all of them are messages. So many lines are compared.
KNOWN_WEIGHT, COMPARED = 3, 20_000
# People plan in whole five minutes; they speak at any.
_PLANNED_MINUTES = 5
_WEEKDAY = r"[^\s\d:：]{1,20}"
_ERAS = {"R": "令和", "H": "平成", "S": "昭和"}
# 2024/01/05(金) · 2024. 1. 5. 금요일 · 2024年1月5日 · R6/01/05(金), with the era of a Japanese calendar
_DAY = re.compile(
    rf"(?:{_WEEKDAY}\s)?(?:(\d{{4}})|([{''.join(_ERAS)}]|{'|'.join(ERAS)})(\d{{1,2}}))[/.\-年년] ?(\d{{1,2}})[/.\-月월] ?(\d{{1,2}})[日일.]?\s?(?:{_WEEKDAY})?"
)
# Fri, 1/5/2024 · ศ. 28/11/2568
_DAY_YEAR_LAST = re.compile(rf"({_WEEKDAY})\s?(\d{{1,2}})[/.](\d{{1,2}})[/.](\d{{4}})")
_WORD = re.compile(r"\d+|(?:[A-Za-z]|[^\x00-\x7f（）])+")
_AFTER_LATIN = "\u0250"
# After a time only words that are no name, where one may follow.
_TIME = re.compile(
    rf"(?P<before>{HALF})?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})\s?(?P<after>[AaPp]\.?[Mm]\.?|(?:{HALF})(?=\t))?(?P<space>\t| {{1,60}})(?P<rest>.+)"
)
_WIDE_SPACE = re.compile(r" {2,}")
# What stands between the columns, and the words that a message has there: its speaker and its text, or where nothing tells them apart, those a name may have.
_WORDS: dict[str, Callable[[str], list[str]]] = {
    "\t": lambda rest: rest.split("\t", 1),
    "  ": lambda rest: _WIDE_SPACE.split(rest, maxsplit=1),
    " ": lambda rest: rest.split(" ", NAME_WORDS),
}
# A message whose text begins with a quotation mark.
_OPENED = re.compile(rf'{_TIME.pattern.partition("(?P<rest>")[0]}[^"]*[\t ](?P<quoted>".*)')
# A line within such marks, and the one that closes them.
_IN_PAIRS, _CLOSED = re.compile(r'(?:[^"]|"")*'), re.compile(r'\A(?:[^"]|"")*"')
_HEADER = re.compile(r"\[LINE\]\s?(.{1,200})")
_AROUND_TITLE = re.compile(
    r"^Chat (?:history )?(?:with|in) |とのトーク(?:履歴)?$|のトーク(?:履歴)?$|^[与與]\s?|\s?的聊天(?:[记記紀][录錄])?$|(?:님과|와|과)의? ?(?:대화(?: ?한)?(?: ?내용)?|채팅)$|"
    r"^ประวัติการ(?:สนทนา|แชท)(?:กับ|ในกลุ่ม|ใน)\s?|^Chat(?:verlauf)? mit |^Riwayat (?:obrolan|chat) dengan |^Historial de chat con "
)
# Korean headers that end so were the title as a whole.
_OF_WHOLE_TITLE = "내용"
_QUOTED_TITLE = re.compile(r"[\"「](.+)[\"」]")
# The groups are the name, where it stands before.
_DELETED = re.compile(
    r"(.{1,60}が)?メッセージの送信を取り消しました。?|(.{1,60} )?unsent a .{1,20}|Message unsent\.?|"
    r"(.{1,60})?已?收回了?(?:一則)?訊息。?|(.{1,60})?撤回了一条消息。?|(.{1,60} )?메시지(?:를| 보내기를| 전송을) (?:취소|삭제)했습니다\.?|"
    r"送信が取り消されたメッセージです。?|(.{1,60})?ยกเลิก(?:การส่ง)?ข้อความ.{0,20}"
)
# People put the same sign before a number or a plan: only the program's own sentences are calls.
_CALL_TIME = (
    r"通話時間|通話時長|通话时[长間间]|통화 ?시간|Call time|Call duration|(?:ระยะ)?เวลา(?:การ|ในการ|ที่)?โทร|Anrufdauer|Duración de la llamada|"
    r"Durée (?:de l['’]appel|d['’]appel)|(?:Waktu|Durasi) panggilan"
)
_CALL = re.compile(
    rf"(?:[☎☏] ?)?(?:(?:{_CALL_TIME}) ?[\d:]{{1,9}}|不在着信|通話をキャンセルしました|Missed call)[.。]?|"
    r"[☎☏] ?(?:キャンセル|応答なし|通話(?:に応答がありませんでした|がキャンセルされました)|グループ(?:音声|ビデオ)?通話(?:が開始されました|が終了しました)?|"
    r"(?:Cancell?ed|Unanswered|Declined)(?: call)?|Call (?:cancell?ed|declined)|No answer|Group (?:voice |video )?call(?: started| ended)?|"
    r"未接(?:來電|来电|聽|听)|(?:您|你|對方|对方)?(?:已?取消(?:的?(?:通話|通话|來電|来电))?|無人接聽|无人接听|無回應|无应答|未接聽)|(?:通話|通话)已取消|"
    r"부재중 ?(?:통화|전화)|(?:통화 ?)?취소(?:된 ?통화)?|통화를 취소했습니다|응답 ?없음|응답이 없습니다|"
    r"สายที่ไม่ได้รับ|ไม่ได้รับสาย|ยกเลิก(?:การโทร|สาย)?|ไม่มี(?:การตอบรับ|ผู้รับสาย)|ไม่รับสาย|"
    r"Verpasster Anruf|Abgebrochener Anruf|Anruf abgebrochen|Llamada (?:perdida|cancelada)|Appel (?:manqué|annulé)|Panggilan (?:tak terjawab|dibatalkan))[.。]?",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\[([^\[\]]{1,30})\](?: (.*))?")
# What has a title of its own beside its word: [アルバム] 旅行.
_TITLED = frozenset({"albums", "polls", "events", "files", "gifts"})
# Notices that a computer's export writes where the speaker stands.
_NOTICE = re.compile(
    r".{1,80}[がは].{0,80}(?:参加|退会|退出|招待|追加|変更|作成|削除|キャンセル|投稿|アナウンス|解除)(?:し|され|させ)ました。?|"
    r".{1,80}(?:joined|left) the (?:group|chat).{0,9}|.{1,80}(?:invited|added) .{1,80}to the (?:group|chat).{0,9}|.{1,80}(?:加入|離開)(?:群組|聊天)"
)


@dataclass(slots=True)
class _Dated:
    """A line that is nothing but a date. `below` is what the next line with words is: of a message, what stands between its columns, with an x after it
    where it has only one; d, a date below a blank line; x, another."""

    number: int
    line: str
    is_after_blank: bool
    below: str = ""


@dataclass(slots=True)
class _Said:
    """A message whose further lines may follow."""

    number: int
    said_at: datetime
    former_at: datetime
    speaker: str
    lines: FurtherLines

    @property
    def text(self) -> str:
        """The lines without the quotation marks around several of them."""
        text = "\n".join(self.lines.lines).strip()
        is_quoted = len(self.lines.lines) > 1 and len(text) > 1 and text.startswith('"') and text.endswith('"')
        return text[1:-1].replace('""', '"').strip() if is_quoted else text


def recognizes(head: Head) -> bool:
    """By its header, or messages below a day that stand in columns; no note in Markdown."""
    lines = [line.strip() for line in head.text.lstrip("\ufeff").splitlines() if line.strip()]
    if lines and _HEADER.fullmatch(lines[0]):
        return any(map(_is_day, lines[:12])) or len(lines) < 3
    begins = any(_is_day(day) and any(map(_speaker, map(_TIME.fullmatch, lines[at : at + 3]))) for at, day in enumerate(lines[:4], start=1))
    return begins and head.suffix != ".md" and (any(map(_header, (lines[0], PurePosixPath(head.name).stem))) or _is_talk(lines))


def _is_talk(lines: Sequence[str]) -> bool:
    """Whether two messages have tabs, or the same name on one day, not both at minutes that are planned. Diaries and plans have days and times, too."""
    day, with_tabs, minutes = 0, 0, dict[tuple[int, str], list[int]]()
    for line in lines:
        day += _is_day(line)
        message = _TIME.fullmatch(line)
        if message and (speaker := _speaker(message)):
            with_tabs += message["space"] == "\t"
            minutes.setdefault((day, speaker), []).append(int(message["minute"]) % _PLANNED_MINUTES)
    return with_tabs > 1 or any(len(of_name) > 1 and any(of_name) for of_name in minutes.values())


def _speaker(message: Message | None) -> str:
    """The first word before others, or the first column, where a name may stand."""
    words = _WORDS[message["space"][:2]](message["rest"]) if message else []
    return words[0] if len(words) > 1 else ""


def _is_day(line: str) -> bool:
    return (_DAY.fullmatch(line) or _DAY_YEAR_LAST.fullmatch(line)) is not None


def _shape(day: str) -> str:
    """How a day is written: its digits and its words, Latin or others, and what stands between them."""
    return _WORD.sub(lambda word: "0" if word[0].isdigit() else "a" if word[0] < _AFTER_LATIN else "日", day)


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message. A day of a chat is a session."""
    header = _header(next((line for _, line in text_lines(source, name)), "").strip("\ufeff")) or _header(PurePosixPath(name).stem)
    title = _title(header)
    survey, equals, former_equals = _survey(source, name, title), Equals(), Equals()
    for item in _messages(source, name, survey):
        if isinstance(item, ImportItem):
            yield item
            continue
        text, day, minute = item.text, item.said_at.date().isoformat(), item.said_at.isoformat(timespec="minutes")
        former_minute = item.former_at.isoformat(timespec="minutes")
        former_number = former_equals.number(former_minute[:10], former_minute, item.speaker, text)
        kind = kind_of(text, is_bare=survey.space == " ") or (None if item.speaker else "notices")
        identity = (minute, item.speaker, text, equals.number(day, minute, item.speaker, text))
        turn = Turn(
            item.speaker,
            "" if kind else text,
            in_zone(item.said_at, options.zone),
            " ".join(filter(None, (PROGRAM, title, day))),
            (title, *identity),
            role_of(item.speaker, by_user=True),
            (kind,) if kind else (),
            {"chat": title, "line": item.number},
            former=(
                *([(header, *identity)] if header.endswith(_OF_WHOLE_TITLE) else []),
                *([(title, former_minute, item.speaker, text, former_number)] if former_minute != minute else []),
            ),
        )
        yield from turn_items(FORM, f"{name}, line {item.number}", turn)
        yield from item.lines.too_long(f"{name}, line {item.number}")


def kind_of(text: str, *, is_bare: bool = False) -> str | None:
    """What a message is if it is no text. `is_bare`: the words for pictures and the like have no brackets."""
    if _CALL.fullmatch(text):
        return "calls"
    if _DELETED.fullmatch(text):
        return "deleted messages"
    if (bracketed := _BRACKETED.fullmatch(text)) and (kind := media_kind(bracketed[1])) and (kind in _TITLED or not bracketed[2]):
        return kind
    return media_kind(text) if bracketed or is_bare else None


def _header(line: str) -> str:
    """The words of a header, which in older files of a computer has no mark before it; empty for any other line."""
    header = _HEADER.match(line)
    return header[1].strip() if header else line.strip() if line.startswith("Chat history ") else ""


def _title(header: str) -> str:
    """The name of the chat in the words of a header."""
    named = _AROUND_TITLE.sub("", header).strip()
    quoted = _QUOTED_TITLE.fullmatch(named)
    return quoted[1] if quoted else named


@dataclass(frozen=True, slots=True)
class _Survey:
    """What the whole file says of each line: what stands between its columns, a tab, or several spaces or one in their place; whether the day comes
    before the month, where the year comes last; who speaks; the numbers of the lines of days; and those of the lines that look like a message and are
    further lines of one."""

    space: str
    is_day_first: bool
    names: frozenset[str] = frozenset()
    days: frozenset[int] = frozenset()
    further: frozenset[int] = frozenset()

    def day(self, line: str) -> date | None:
        """The day of the line of one, if there is such a day."""
        if day := _DAY.fullmatch(line):
            year, era, year_of_era, month, number = day.groups()
            return day_of(int(year) if year else ERAS[_ERAS.get(era, era)] + int(year_of_era), int(month), int(number))
        year_last = _DAY_YEAR_LAST.fullmatch(line)
        first, second, last = map(int, year_last.groups()[1:]) if year_last else (0, 0, 0)
        return day_of(last, second, first) if self.is_day_first else day_of(last, first, second)


def _survey(source: Source, name: str, title: str) -> _Survey:
    spaces, forms, beginnings = Counter[str](), Counter[tuple[str, _Form]](), Counter[str]()
    before_no_text = Counter[str]()
    unplanned, dated, above = {title}, [_Dated(0, "", is_after_blank=False)], ""
    for number, line in text_lines(source, name):
        written, kind = line.strip(), ""
        if is_day := _is_day(written):
            kind = "x" if above else "d"
        elif message := _TIME.fullmatch(line):
            space = message["space"][:2]
            spaces[space] += 1
            forms[space, _form(message)] += 1
            words = _WORDS[space](message["rest"])
            before_no_text.update(_before_no_text(words) if space == " " else ())
            is_by_program = _is_by_program(message["rest"])
            kind = space if is_by_program or len(words) > 1 else space + "x"
            words = [] if is_by_program else words
            beginnings.update(" ".join(words[:count]) for count in range(1, len(words)))
            if len(words) > 1 and int(message["minute"]) % _PLANNED_MINUTES and len(unplanned) < BEGINNINGS_LIMIT:
                unplanned.add(words[0])
            if len(beginnings) > BEGINNINGS_LIMIT:
                beginnings = Counter({words: number for words, number in beginnings.items() if number > 1})
        elif written and spaces and not _is_by_program(line):
            kind = "x"
        dated[-1].below = dated[-1].below or kind
        if is_day:
            dated.append(_Dated(number, written, is_after_blank=not above))
        above = written
    space = max(_WORDS, key=spaces.__getitem__)
    days = _day_lines(dated[1:], space)
    names = frozenset({title, *(words for words in unplanned if beginnings[words] >= (SAID_OFTEN if space == " " else SAID_TWICE))})
    survey = _Survey(space, _is_day_first(days), names | (_names(beginnings, before_no_text) if space == " " else frozenset()))
    of_space = Counter({form: count for (between, form), count in forms.items() if between == space})
    survey = replace(survey, days=_days(days, survey))
    unquoted = ((number, line) for number, line, _ in _with_quoted(text_lines(source, name), survey))
    return replace(survey, further=_further_lines(unquoted, survey, of_space))


def _day_lines(dated: Sequence[_Dated], space: str) -> Sequence[_Dated]:
    """Those that days may begin with: below a blank line, with a message or another such line below, or in the form of the first; without a blank line,
    in that form and with a message below. Those with a time below that has other columns are of a plan."""
    form = next((_shape(each.line) for each in dated if each.below == space), "")
    below = ((each, each.below.removesuffix("x")) for each in dated)
    return [
        each
        for each, kind in below
        if kind in ("", "d", space) and (_shape(each.line) == form, kind in ("d", space), each.is_after_blank).count(True) > 1
    ]


def _is_day_first(days: Sequence[_Dated]) -> bool:
    """Whether the day comes before the month, where the year comes last."""
    order, weekday = DayOrder(), ""
    for day in filter(None, (_DAY_YEAR_LAST.fullmatch(each.line) for each in days)):
        weekday, first, second, year = day.groups()
        order.add(int(first), int(second), int(year), weekday.strip(",."))
    return order.is_day_first(in_doubt=not (weekday.isascii() and weekday[:3].casefold() in ENGLISH_WEEKDAYS))


def _days(lines: Sequence[_Dated], survey: _Survey) -> frozenset[int]:
    """The numbers of those lines that days begin with: those below blank lines, mostly in any order, as files may be joined and clocks be wrong; of the others, which
    count where most have no blank line above, those in the order of the days. What is left are dates that somebody wrote."""
    after_blank = [each for each in lines if each.is_after_blank]
    if len(lines) < 2 * len(after_blank):
        return _with_order(after_blank, survey)
    written, part = set[int](), list[tuple[int, int, int]]()
    for each in lines:
        if each.is_after_blank or len(part) == COMPARED:
            written |= _against_the_clock(part)
            part = []
        if day := survey.day(each.line):
            part.append((each.number, day.toordinal(), 1))
    return frozenset(each.number for each in lines) - written - _against_the_clock(part)


def _with_order(lines: Sequence[_Dated], survey: _Survey) -> frozenset[int]:
    """The numbers of the lines with a message or a day below, and of the others whose days are between the days of these."""
    numbers, followed, last = set[int](), dict[int, date | None](), None
    for each in reversed(lines):
        followed[each.number] = last
        last = last if each.below.endswith("x") else survey.day(each.line)
    last = None
    for each in lines:
        day = survey.day(each.line)
        if not each.below.endswith("x"):
            last = day
        elif day is None or not (last or day) <= day <= (followed[each.number] or day):
            continue
        numbers.add(each.number)
    return frozenset(numbers)


def _form(message: Message) -> _Form:
    """How a time is written. Whether hours begin with a zero is told by those below 10."""
    hour = message["hour"]
    return (message["before"] is None, message["after"] is None, message.string[message.end("hour")], len(hour) if int(hour) < 10 else 0)


def _with_quoted(lines: Iterator[tuple[int, str]], survey: _Survey) -> Iterator[tuple[int, str, list[str]]]:
    """The lines with their numbers, each with those that follow within its quotation marks, whatever they look like. What is quoted in a message has pairs of
    marks; marks that are closed otherwise, not on their day, or by a later message of the chat, are the writer's own."""
    ahead = deque[tuple[int, str]]()
    while entry := ahead.popleft() if ahead else next(lines, None):
        opened = _OPENED.fullmatch(entry[1])
        yield *entry, _quoted(entry[1], lines, ahead, survey) if opened and _IN_PAIRS.fullmatch(opened["quoted"], 1) else []


def _quoted(first: str, lines: Iterator[tuple[int, str]], ahead: deque[tuple[int, str]], survey: _Survey) -> list[str]:
    """The lines after the first up to the one that ends with the closing mark; none of them, but all put `ahead` of the others, where there is none."""
    taken: list[tuple[int, str]] = []
    room = MESSAGE_CHARACTERS
    while room > 0 and (entry := ahead.popleft() if ahead else next(lines, None)):
        taken.append(entry)
        room -= len(entry[1]) + 1
        if _CLOSED.fullmatch(entry[1].rstrip()):
            if _are_said(first, taken, survey):
                break
            return [line for _, line in taken]
        if not _IN_PAIRS.fullmatch(entry[1]):
            break
    ahead.extendleft(reversed(taken))
    return []


def _are_said(first: str, lines: Sequence[tuple[int, str]], survey: _Survey) -> bool:
    """Whether the first and all of these lines are messages by those who are known, in the order of the clock; across days, whether any of these is."""
    messages = [message for _, line in ((0, first), *lines) if (message := _TIME.fullmatch(line)) and message["space"][:2] == survey.space]
    known = [message for message in messages if _columns(message["rest"], survey)[0] in survey.names]
    if any(number in survey.days for number, _ in lines):
        return any(message.string != first for message in known)
    minutes = [_minute(message) for message in known]
    return len(known) > len(lines) and minutes == sorted(minutes)


def _minute(message: Message) -> int:
    return hour_of(int(message["hour"]), message["before"], message["after"]) * 60 + int(message["minute"])


def _is_by_program(rest: str) -> bool:
    return (_NOTICE.fullmatch(rest) or _DELETED.fullmatch(rest)) is not None


def _before_no_text(words: list[str]) -> Iterator[str]:
    """The words before what the program writes for no text: スタンプ, or that a message was unsent. They are a whole name."""
    for count in range(len(words) - 1, 0, -1):
        if media_kind(words[count - 1]):
            continue
        by_program = " ".join(words[count:])
        deleted = _DELETED.fullmatch(by_program)
        if (deleted and deleted.lastindex is None) or _CALL.fullmatch(by_program) or media_kind(by_program):
            yield " ".join(words[:count])
            return


def _columns(rest: str, survey: _Survey) -> tuple[str, str]:
    """The speaker and the text of a message; between single spaces, the longest of the known names that it begins with, else its first word."""
    words = _WORDS[survey.space](rest)
    if survey.space != " ":
        return (words[0].strip(), words[1]) if len(words) > 1 else ("", rest)
    known = next((name for count in range(len(words), 0, -1) if (name := " ".join(words[:count])) in survey.names), "")
    is_of_name = rest.isascii() or not known or any(rest.partition(particle)[0] in survey.names for particle in "がは")
    if is_of_name and _is_by_program(rest):
        return "", rest
    speaker = known or (words[0] if len(words) > 1 else "")
    return speaker, rest[len(speaker) + 1 :] if speaker else rest


def _further_lines(lines: Iterator[tuple[int, str]], survey: _Survey, forms: Counter[_Form]) -> frozenset[int]:
    """The numbers of the lines that look like a message and are none: their time is written otherwise, or the clock falls back."""
    usual = max(
        forms,
        key=lambda form: (sum(count for each, count in forms.items() if each[:3] == form[:3]), form[3] > 0, forms[form]),
        default=None,
    )
    further: set[int] = set()
    day: list[tuple[int, int, int]] = []
    for number, line in lines:
        message = _TIME.fullmatch(line)
        if message is None or usual is None or message["space"][:2] != survey.space:
            if number in survey.days:
                further |= _against_the_clock(day)
                day = []
            continue
        form, rest = _form(message), message["rest"]
        speaker, _ = _columns(rest, survey)
        is_by_program, is_named = _is_by_program(rest), bool(speaker) and speaker in survey.names
        has_column = bool(speaker) and survey.space != " "
        is_usual = form[:3] == usual[:3] and form[3] in (0, usual[3])
        if day and not (is_usual or is_by_program or (is_named and has_column)):
            further.add(number)
        else:
            at = _minute(message)
            if day and has_column and is_named and at < next((known for _, known, weight in reversed(day) if weight > 1), day[0][1]):
                # The clock was set back.
                further |= _against_the_clock(day)
                day = []
            day.append((number, at, KNOWN_WEIGHT if is_by_program or is_named else 1))
        if len(day) == COMPARED:
            further |= _against_the_clock(day)
            day = []
        if len(further) > BEGINNINGS_LIMIT:
            return frozenset()
    return frozenset(further | _against_the_clock(day))


def _against_the_clock(day: Sequence[tuple[int, int, int]]) -> set[int]:
    """Of the lines of a day, each with its number, its minute and its weight, the numbers of those outside the weightiest sequence in the order of the
    clock that begins with the first. A clock that contradicts many who are known was set back, and tells nothing of them."""
    minutes: list[int] = []
    best: list[tuple[int, _Chain | None]] = []  # for each of the minutes, the weightiest sequence that ends with it
    for number, minute, weight in day:
        at = bisect_right(minutes, minute)
        if best and not at:
            continue
        total, before = best[at - 1] if at else (0, None)
        start = at - (at > 0 and minutes[at - 1] == minute)
        end = next((end for end in range(at, len(best)) if best[end][0] > total + weight), len(best))
        minutes[start:end] = [minute]
        best[start:end] = [(total + weight, (number, before))]
    said, chain = set[int](), best[-1][1] if best else None
    while chain:
        said.add(chain[0])
        chain = chain[1]
    known = {number for number, _, weight in day if weight == KNOWN_WEIGHT}
    against = {number for number, _, _ in day} - said
    return against - known if len(against & known) > len(known) * (1 - NAMES_SHARE) else against


def _names(beginnings: Counter[str], before_no_text: Counter[str]) -> frozenset[str]:
    """The names with spaces, told by what messages begin with: what follows the first words of a name is one of a few words, as those who have that
    first name are few, and what follows a whole name is anything. What stands before what is no text is a whole name, and not continued. No name ends
    with a word for a picture or the like."""
    whole = {words for words in before_no_text if beginnings[words] >= max(SAID_TWICE, beginnings[words.split(" ")[0]] * A_NAMES_SHARE)}
    following: dict[str, list[tuple[str, int]]] = {}
    for words, count in beginnings.items():
        following.setdefault(words.rpartition(" ")[0], []).append((words, count))
    names: list[str] = []
    waiting = [words for words, _ in following.get("", [])]
    while waiting:
        words = waiting.pop()
        if words in whole:
            continue
        often = max(SAID_OFTEN, beginnings[words] * A_NAMES_SHARE)
        longer = [(each, count) for each, count in following.get(words, []) if count >= often and not media_kind(each.rpartition(" ")[2])]
        if sum(count for _, count in longer) >= beginnings[words] * NAMES_SHARE:
            names += [each for each, _ in longer]
            waiting += [each for each, _ in longer]
    return frozenset(names) | whole


def _messages(source: Source, name: str, survey: _Survey) -> Iterator[_Said | ImportItem]:
    """The messages of a file, and what can't be read."""
    day = former_day = None  # any line of a date began a day formerly
    said: _Said | None = None
    for number, line, quoted in _with_quoted(text_lines(source, name), survey):
        message = None if number in survey.further else _TIME.fullmatch(line)
        message = message if message and message["space"][:2] == survey.space else None
        former_day = survey.day(line.strip()) if message is None and _is_day(line.strip()) else former_day
        if message is None and number not in survey.days:
            if said:
                for further in (line, *quoted):
                    said.lines.add(further)
            elif day and line.strip():
                yield ImportItem(f"{name}, line {number}", left_out="notices")
            continue
        if said:
            yield said
            said = None
        if message is None:
            day = former_day
            continue
        hour, minute = divmod(_minute(message), 60)
        said_at, former_at = at_time(day, hour, minute), at_time(former_day, hour, minute)
        if said_at is None:
            yield ImportItem(f"{name}, line {number}", refused="It has no day or no time that there is.")
            continue
        speaker, text = _columns(message["rest"], survey)
        said = _Said(number, said_at, former_at or said_at, speaker, FurtherLines(text, MESSAGE_CHARACTERS))
        said.lines.lines += quoted
    if said:
        yield said
