"""What a query says about time: the dates that it names, whether it looks ahead or back, and which words are left to look for.

「昨日何があった？」 and "What's new?" hold no word that their answer holds: only the time can order it. A date that was understood is no word to
look for: a memory that says 昨日 means another day.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from memory_mcp import lexicon
from memory_mcp.characters import HAN
from memory_mcp.dates.recognize import calendar_dates
from memory_mcp.dates.recognize import Named, Recognized
from memory_mcp.dates.resolve import times_of
from memory_mcp.dates.spans import MONTH_NAMES, DaySpan, spellings_of_year, year_of
from memory_mcp.dates.statements import LONGEST_SPAN
from memory_mcp.dates.tense import EVENTS, PLANNED
from memory_mcp.domain import TimeRange
from memory_mcp.language.analysis import analysis
from memory_mcp.language.tokens import normalise
from memory_mcp.patterns import bounded

# How far a question for plans looks ahead if it names no date.
AHEAD = timedelta(days=366)
# What 最近 means where something else is asked for, too.
RECENT = timedelta(days=30)

_LATELY = bounded(
    r"最近|近頃|近ごろ|この頃|このごろ|この(?:の)?ところ|ここの?ところ|\b(?:recently|lately|these days)\b|"
    # How something is: now.
    r"近況|変わりは?ない|何か新し[いく]|(?:調子|様子|具合|(?<=体調|容体|状況|状態|進捗))(?:は|って)?(?:どう(?!し|だった|でした|すれ)|いかが)|"
    r"\b(?:what'?s new(?= (?:with|about|at|in|on)\b|\W*$)|any(?:thing)? new|catch me up|what'?s (?:going on|happening|up) with"
    r"|the latest (?:with|on|about)|"
    r"how(?:'s| is| are) (?=[^.?!]*\b(?:going(?! to)|doing|coming along)\b)|how (?:has|have) (?=[^.?!]*\bbeen\s*(?:\?|$)))"
)
_LAST_TIME = bounded(r"さっき|先ほど|前回|(?<!ど)この前|こないだ|先日|\b(?:so far|last time|leave off|left off)\b")
_PLANS = bounded(
    r"予定(?!だった|でした|では?なかった)|これから|今後(?!\d)|(?<!ど)この先(?!生|週|日|月|輩)|近いうち|スケジュール(?!だった|でした)|"
    # The latest of 直近の会議 may be over.
    rf"直近の?(?=予定|予約|約束|締め?切|期[限日]|納期)|(?<![{HAN}\d])(?:次回?|今度)の(?={PLANNED}|{EVENTS})|"
    r"\b(?:upcoming|coming up|ahead|schedule|scheduled|planned|plans?)\b|\bnext\s*\??$"
)
# Words that say nothing about what is asked for. Particles count only behind another of them: もも is no もも.
EMPTY_JAPANESE = (
    r"何(?:か|時|月|日|曜日?)?|なに|なん|誰|だれ|どこ(?:まで)?|いつ|どう(?:して|なって?)?|どんな|"
    r"あ(?:る|った|りました|ります|れば)|い(?:る|た|ます|ました)|(?:し|やっ|なっ|出|起き)?(?:て|た|てる|てた|ている|ていた)|する|します|しました|なる|なります|"
    r"です|でした|だった|ん?だっけ|っけ|だろう|でしょう|かな|教えて|聞かせて|話(?:した|して|す)?|会話|おしゃべり|言(?:った|って)|最後|覚えてる?|思い出して|ください|くれる?|"
    r"こと|事|もの|出来事|ニュース|私|僕|俺|わたし|あなた|君|みんな|大事|大切|主な|全部|まだ|残って|入って|ほか(?:に)?|他(?:に)?|続き|元気|調子|様子"
)
_PARTICLES = rf"[{''.join(lexicon.words('ja', 'particles'))}な]|から|まで|って|には|では|とか"
_VAGUE_JAPANESE = bounded(rf"(?:{EMPTY_JAPANESE})(?:{EMPTY_JAPANESE}|{_PARTICLES}|\s)*")
VAGUE_ENGLISH = frozenset(lexicon.words("en", "function_words") + lexicon.words("en", "vague"))
_WORDS = bounded(r"[a-z']+")


# Behind a date, or in front of one: what was said on that day, and not what happened on it.
_TELLS = bounded(r"[^、。\w]{0,3}(?:[^、。]{0,8}[がにはから、])?\s?(?:言|話し|喋|しゃべ|聞い|教え|伝え|書い|メモし)(?:っ|て|た|い|まし)")
_TELLING = bounded(r"\b(?:sa(?:id|y)|t(?:old|ell)|mention(?:ed)?|talk(?:ed)?|br(?:ought|ing) up|wrote|write)\b[^,.?!]{0,30}$")


@dataclass(frozen=True, slots=True)
class TimeAsked:
    """What `query` says about time. `dates` are the spans that it names; `words` is the query without them, but for long ones.
    `looks_ahead`: it asks for what is to come.

    `informative` is the query without all that was understood as time. `is_vague`: nothing else is asked for, so that time orders the
    answer. `is_recent`: the latest of something is asked for. `date_words`: the words of its dates. `written`: how a text writes those of
    its days that are of no certain year or week, and `years` its years. `of_telling`: it asks for what was said on a day.
    """

    query: str
    words: str
    informative: str
    dates: Sequence[TimeRange] = ()
    looks_ahead: bool = False
    is_vague: bool = False
    is_recent: bool = False
    date_words: Sequence[str] = ()
    written: Sequence[str] = ()
    years: Sequence[str] = ()
    of_telling: bool = False


def time_asked(query: str, now: datetime, zone: ZoneInfo) -> TimeAsked:
    """What the query says about time. A question for plans that names no date means the time from now on."""
    read = analysis(query)
    recognized, named = read.recognized, read.date_expressions(now.astimezone(zone).date(), upcoming=True)
    dates = times_of(recognized, named, now, zone)
    if not dates:  # such as the first day of the calendar, which is before it elsewhere
        named = ()
    short = [each for each in named if all(end - start <= LONGEST_SPAN for start, end in each.spans)]
    words = recognized.without(short) if short else query
    plain = normalise(words)
    looks_ahead = _PLANS.search(plain) is not None
    lately = _LATELY.search(plain) is not None
    if looks_ahead:
        dates = _to_come(dates, now)
    asks_for_time = dates or lately or looks_ahead or _LAST_TIME.search(plain)
    undated = recognized.without(named) if named else words
    rest = normalise(undated) if dates else plain
    is_vague = bool(asks_for_time) and _is_vague(_PLANS.sub(" ", _LAST_TIME.sub(" ", _LATELY.sub(" ", rest))))
    if lately and not dates and not is_vague:
        recent = _LAST_TIME.sub(" ", _LATELY.sub(" ", plain))
        return TimeAsked(query, recent, recent, [TimeRange(shifted(now, -RECENT), now)], is_recent=True)
    return TimeAsked(
        query,
        words,
        _PLANS.sub(" ", undated),
        dates,
        looks_ahead,
        is_vague,
        date_words=[recognized.plain[each.start : each.end].strip() for each in named],
        written=[*_days_written(recognized.plain), *(_word_alone(recognized, each) for each in named if each.is_alone)] if named else (),
        years=[spelling for each in named for span in each.spans if _is_year(span) for spelling in spellings_of_year(span[0].year)],
        of_telling=any(_asks_telling(recognized, each) for each in named),
    )


def _is_year(span: DaySpan) -> bool:
    return span == year_of(span[0].year)


def _days_written(plain: str) -> list[str]:
    """How a text may write the days of a question that name no year."""
    days = [day for day in calendar_dates(plain) if day.day and day.month <= 12 and not (day.year or day.years_back)]
    return [
        spelling
        for day in days
        for spelling in (plain[day.start : day.end], f"{day.month}月{day.day}日", f"{MONTH_NAMES[day.month - 1]} {day.day}")
    ]


def _word_alone(recognized: Recognized, named: Named) -> str:
    """金曜 of 金曜日, and friday of "friday night"."""
    word = recognized.plain[named.start : named.end].strip().removeprefix("the ")
    return f"{word.partition('曜')[0]}曜" if "曜" in word else word.partition(" ")[0]


def _asks_telling(recognized: Recognized, named: Named) -> bool:
    return bool(_TELLS.match(recognized.plain, named.end) or _TELLING.search(recognized.plain[: named.start]))


def shifted(now: datetime, by: timedelta) -> datetime:
    """This time later or earlier; at an end of the calendar the same."""
    try:
        return now + by
    except OverflowError:
        return now


def _to_come(dates: Sequence[TimeRange], now: datetime) -> list[TimeRange]:
    """The parts of the dates that are to come, or all of them if none is."""
    if not dates:
        return [TimeRange(now, shifted(now, AHEAD))]
    return [replace(date, start=max(date.start, now)) for date in dates if date.end > now] or list(dates)


def _is_vague(rest: str) -> bool:
    parts = [part for part in re.split(r"[\s、。，．,.!?！？…「」『』（）()・]+", rest) if part]
    return all(_VAGUE_JAPANESE.fullmatch(part) or re.fullmatch(_PARTICLES, part) or _is_vague_english(part) for part in _joined(parts))


def _is_vague_english(part: str) -> bool:
    return _WORDS.fullmatch(part) is not None and part in VAGUE_ENGLISH


def _joined(parts: Sequence[str]) -> list[str]:
    """Japanese parts without the particles that a removed date left at their beginning: の予定は."""
    return [re.sub(rf"^(?:{_PARTICLES})+(?=.)", "", part) if not part.isascii() else part for part in parts]
