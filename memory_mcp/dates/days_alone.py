"""A day of the week or of the month alone in a sentence: 金曜に歯医者, dentist on Friday, 「20日の予定は？」.

Which one is meant, only a tense or a plan tells. 金曜は燃えるゴミの日 is so every week, and 金曜 without either may be any: neither is a date.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from memory_mcp.characters import is_japanese
from memory_mcp.dates.absolute import DAY_OF_MONTH_ALONE
from memory_mcp.dates.calendar_dates import NO_COUNT
from memory_mcp.dates.changed_plans import BESIDE_DAY
from memory_mcp.dates.expressions import Expression, Resolver, of_kind
from memory_mcp.dates.plan_notes import notes_day_of_month, notes_plan
from memory_mcp.dates.spans import MONTHS, SATURDAY, WEEKDAYS, DaySpan, day_of, months_back, week_of
from memory_mcp.dates.tense import EVENTS, PLANNED, Direction, direction, first_tense, sentence_around
from memory_mcp.dates.weekdays import WEEKS_BACK, latest_weekend, weekend
from memory_mcp.patterns import bounded

# The words of such a day, by which what has no date is found.
DAY_ALONE = bounded(
    r"(?:the )?([月火水木金土日]曜|週末|土日|(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend\Z|\d{1,2}日\Z|\d{1,2}(?:st|nd|rd|th)\Z)"
)
_WEEKDAY = bounded(r"([月火水木金土日])曜日?|週末|土日|\b(?:(mon|tues|wednes|thurs|fri|satur|sun)day|weekend)\b")

of_week, _ = of_kind("days of the week")
of_weekend, _ = of_kind("weeks and weekends")
of_month, _ = of_kind("days")

# What may follow such a day.
_FOLLOWS = rf"(?=\Z|[^\w\s]|\s|[にもはがまでとかへっ]|の(?!み)|を(?=[空あ]け)|から|より|だ(?!け)|何|誰|どこ|いつ|どう(?!でしょう)|暇|ひま|ヒマ|頃|ごろ|あたり|中に|以降|お?[朝昼夕夜晩]|午[前後]|深夜|終日|\d{{1,2}}(?:時|:\d\d)|{PLANNED}|(?:{EVENTS})(?=[がのはも]|[^\w]|\Z))"
# Each begins with a look at the word itself, which is in few texts.
# 12月4日金曜, 第2金曜, 翌週の金曜 and 月・金曜 are other days, 金曜ロードショー and 日曜大工 are none.
_JAPANESE = (
    r"(?=[月火水木金土日]曜)(?<![毎隔翌各週月年第前日(]|[\d一二三四五])(?<!\S・)(?<![毎隔翌各週月年前後初みあの日]の)(?<!その)(?<!ある)(?<![こそあ]の日は)(?P<weekday>[月火水木金土日])曜(?:日(?!曜))?"
    rf"{_FOLLOWS}"
)
_MONTH_NAMES = "|".join(sorted({name[:3] for name in MONTHS}))
_NO_NAMES = "".join(
    f"(?<!{word} )"
    for word in "the every each any some most many alternate other that black good cyber easter palm ash fat holy casual taco giving super bloody freaky a first second third fourth fifth one".split()
)
# Friday, December 4 and December 4 (Friday) are other days, "Sunday school" and "Saturday Night Live" are none.
_ENGLISH = (
    rf"(?=[mtwfs](?:on|ues|ednes|hurs|ri|atur|un)day)(?<![a-z(-]){_NO_NAMES}(?<!\d )(?<!\d, )(?<!\d(?:st|nd|rd|th) )(?<!\d(?:st|nd|rd|th), )(?:(?<=\bon )(?P<on>)|)(?P<name>mon|tues|wednes|thurs|fri|satur|sun)day"
    rf"(?!,? (?:the )?\d(?!\d?(?::\d| ?[ap]m))|,? (?:{_MONTH_NAMES})|'s | the \d)(?:\s(?:early )?(?:morning|afternoon|evening|night)(?!s))?(?! (?:mornings|afternoons|evenings|nights|live|lights|football)\b)(?(on)(?![a-z])|(?:{NO_COUNT}|(?=\s\d{{1,2}}(?::\d\d|\s?[ap]\.?m))))"
)
_JAPANESE_WEEKEND = rf"(?<![毎隔翌各先今来のる週])(?:週末|土日){_FOLLOWS}"
_ENGLISH_WEEKEND = rf"(?<![a-z])(?<!after )(?<!before )the weekend(?! (?:before|after|when)){NO_COUNT}"
_BESIDE = bounded(BESIDE_DAY)
# What is so whenever such a day comes.
_ALWAYS = bounded(
    r"毎|隔週|いつも|普段|ふだん|は必ず|たいてい|大抵|習慣|日課|定例|恒例|定休|休館|休診|休業日|営業日|[何な]曜日?|\0(?:ごと|のたび|になると)|(?<=の)日(?=[。、]|$)|する日$|生まれ|苦手|できるの[はが]|も可|可能"
    r"|(?:こと|よう)に(?:して|なって)い?(?:る|ます)|(?<![a-z])(?:every|each|always|usually|often|normally|generally|typically|used to|favou?rite|closed)(?![a-z])"
)
# From then on it is so: 陶芸教室は今月から土曜になった.
_FROM_NOW_ON = bounded(r"(?:今[日月年週回]|来[月年週]|先[月週]|これ|[春夏秋冬月])から|(?<![a-z])(?:from now on|starting)(?![a-z])")
_NO_MORE = bounded("なくな[っり]")
_FROM_TO = bounded("から[^、]{0,8}曜日?まで")
_BECAME = bounded(r"に(?:な[っり]|変わ|変え|変更|移)")
# Of another time: 学生の頃は土曜に働いた.
_LONG_AGO = bounded(
    r"昔|当時|以前|(?:学生|子供|子ども|小さい|若い|高校|大学|中学|小学[校生]?)の?(?:頃|ころ|時)|時代|その週|翌週|\d年|(?<![再])去年|昨年|一昨年|おととし|先月|先々月|[来再]月|\d月"
    r"|(?<![a-z])(?:ago|back then|back when|as a (?:kid|child|student|teenager)|when i was|childhood|college|(?:last|next) (?:month|year|spring|summer|autumn|fall|winter)|in (?:19|20)\d\d)(?![a-z])"
)
# Such things are so every week, unless they are told as past.
_USUAL = bounded(
    r"ゴミ|ごみ|資源|燃える|可燃|不燃|学校|塾|習い事|レッスン|教室|部活|サークル|ジム|ヨガ|英会話|授業|講義|ゼミ|週報|日報|月報|週次|朝会|朝礼|礼拝|定期|在宅|出社|テレワーク|リモート|仕事|バイト|休み[はが]|が休み|に休みの"
    r"|(?<![a-z])(?:trash|garbage|recycling|pickup|bins?|class(?:es)?|lessons?|practice|church|gym|yoga|stand-?up|day off|shifts?)(?![a-z])"
)
_ARRANGED = bounded(rf"{EVENTS}|予定|つもり|約束|予約|(?<![a-z])(?:appointment|planned|scheduled|booked)(?![a-z])")
_GOES_ON = bounded(r"(?:て|で)い?(?:る|ます)(?=$|[、よねかの]|から|ので|けど|が)")
# 金曜は早く帰る may be so every week, 金曜は歯医者に行く is not.
_ITS_OWN = bounded(
    rf"{PLANNED}|{EVENTS}|つもり|たい(?=$|[なねよ、]|と|です)|[おこそとのぼもろごよ]う(?=$|[よねか、]|と)|ましょう|ください|下さい|約束|楽しみ|会[うい]|ことにな|来[るま]|来られ|泊ま"
)
# 日曜はばあばの家に行く is a plan, 日曜は図書館に行く may be so every week.
_PLACES_OF_EVERY_WEEK = "会社 職場 大学 教会 図書館 公園 スーパー プール 銭湯".split()
_GOES_THERE = bounded(
    rf"{''.join(f'(?<!{place})' for place in _PLACES_OF_EVERY_WEEK)}[にへ](?:遊びに)?(?:行く|行きます|帰る|帰ります|出かける|出掛ける|出かけます)(?=$|[よねわ、]|から|ので|けど|って)"
)
_TOPIC = bounded(r"(?:は|も|って|なら)|[\s、]*$")
_SICK_SINCE = bounded(r"から[^、]{0,10}(?:熱|咳|風邪|頭痛|痛[いむみ]|症状|体調|調子)")
_WEEK = bounded(r"再来週|先々週|先先週|先週|今週|来週|(?<![a-z])(?:last|this|next)(?= week(?!end))")

_PLAN_ASKED = bounded(
    rf"予定|スケジュール|用事|空いて|あいて(?=[るいま])|空き|暇|(?:ひま|ヒマ)(?=$|だ|か|で)|(?:何|なに|なん)(?:か|かは|が|も|の予定が)?(?:ある|あります|あった|ありました)|{PLANNED}"
)
_MOST_DAYS = 40
_RECALLED = bounded(r"あった(?:ん?だ)?っけ|ありましたっけ|(?:予定|約束|締め?切り?|用事).*(?:だった|でした)")
_PLAN_ASKED_IN_ENGLISH = bounded(
    r"(?<![a-z])(?:what(?:'s| is| do (?:i|we) have)(?: (?:on|happening|planned|up|scheduled|due|the plan|going on|coming up))*(?: for| on)?(?: the)?\s*$"
    r"|what have (?:i|we) got(?: on| for)?(?: the)?\s*$|anything(?: (?:on|planned|scheduled|happening|going on|due))*(?: for| on)?(?: the)?\s*$|(?:am|are) (?:i|we|you) (?:free|busy|available)|agenda|calendar|schedule[sd]?|plans?|planned|appointments?|due)(?![a-z])"
)
_WAS_IT = bounded(r"だった|でした")


def _told_direction(before: str, after: str) -> Direction | None:
    """Whether a text means the coming day or the last one; None for what is so every week or told of another time, and where it shows neither."""
    whole = f"{before}\0{after}"
    if _ALWAYS.search(whole) or _LONG_AGO.search(whole) or _FROM_NOW_ON.search(before):
        return None
    if _NO_MORE.search(after) or (_USUAL.search(whole) and _BECAME.search(after)) or (_FROM_TO.match(after) and _GOES_ON.search(after)):
        return None
    if _SICK_SINCE.match(after):
        return "last"
    told = direction(before, after)
    if told != "next":
        return "next" if told is None and not _USUAL.search(whole) and notes_plan(before, after) else told
    if (_USUAL.search(whole) and not _ARRANGED.search(whole)) or _GOES_ON.search(after):
        return None
    beside = _BESIDE.match(after)
    is_topic = is_japanese(whole) and _TOPIC.match(after, beside.end() if beside else 0)
    return told if not is_topic or _ITS_OWN.search(whole) or _GOES_THERE.search(after) else None


def is_noted_for_day_of_month(before: str, after: str) -> bool:
    """Whether a sentence that shows no tense notes a plan for the coming such day."""
    whole = f"{before}\0{after}"
    if _ALWAYS.search(whole) or _LONG_AGO.search(whole) or _FROM_NOW_ON.search(before) or _SICK_SINCE.match(after):
        return False
    return notes_plan(before, after) or (not before and not _USUAL.search(after) and notes_day_of_month(after))


def weekdays_named(plain: str) -> Iterator[tuple[int, int, list[int]]]:
    """Where a normalized text names a day of the week or a weekend, whichever it means, and which days these are (0 is Monday)."""
    for found in _WEEKDAY.finditer(plain):
        name = found[1] or found[2]
        yield *found.span(), [WEEKDAYS[name[:3]]] if name else [SATURDAY, SATURDAY + 1]


def _is_timetable(plain: str) -> bool:
    """Whether a text names very many days. Each would be read with its sentence, which takes a tenth of a millisecond."""
    return plain.count("曜") + plain.count("day") + plain.count("週末") > _MOST_DAYS


def _asked_directions(before: str, after: str) -> Iterator[Direction]:
    """Which days a question means: the last one, the coming one, or, as 「金曜って何かあったっけ」, either."""
    whole = f"{before}\0{after}"
    if _ALWAYS.search(whole) or _LONG_AGO.search(whole):
        return
    if _USUAL.search(whole) and (_WAS_IT.search(after) or not is_japanese(whole)):
        return
    is_planned = bool(_PLAN_ASKED.search(whole) or _PLAN_ASKED_IN_ENGLISH.search(whole.replace("\0", " ")))
    # 誰と話しましたか tells of no speech.
    told = direction(before, after) or (first_tense(after) if is_japanese(whole) else None)
    if told == "last" and not (is_planned and not is_japanese(whole)):
        yield "last"
        if is_planned and _RECALLED.search(after):
            yield "next"
    elif is_planned or (told == "next" and not is_japanese(whole)):
        yield "next"


# The spans of such a day, or of a weekend: the nearest first, today included. The number is that of the week that its sentence names, if any.
_Nearest = Callable[[re.Match[str], date, Direction, int | None], list[DaySpan]]


def _told(nearest: _Nearest) -> Resolver:
    def resolve(match: re.Match[str], today: date) -> list[DaySpan]:
        if _is_timetable(match.string):
            return []
        before, after = sentence_around(match.string, *match.span())
        told = _told_direction(before, after)
        return nearest(match, today, told, _week_named(before))[:1] if told else []

    return resolve


def _asked(nearest: _Nearest) -> Resolver:
    def resolve(match: re.Match[str], today: date) -> Iterator[DaySpan]:
        if _is_timetable(match.string):
            return
        before, after = sentence_around(match.string, *match.span())
        for asked in _asked_directions(before, after):
            yield from nearest(match, today, asked, _week_named(before))

    return resolve


def _week_named(before: str) -> int | None:
    """How many weeks ago the week was that a sentence names: 来週は月曜に会議、金曜に飲み会 has two days of next week."""
    named = _WEEK.findall(before)
    return WEEKS_BACK[named[-1]] if named else None


def _weekday(match: re.Match[str], today: date, ahead: Direction, weeks_back: int | None) -> list[DaySpan]:
    """Such a day; where it is today, also the one a week away."""
    number = WEEKDAYS[match["weekday"] if "weekday" in match.re.groupindex else match["name"][:3]]
    if weeks_back is not None:
        day = week_of(today, weeks_back)[0] + timedelta(days=number)
        if day >= today if ahead == "next" else day <= today:
            return [day_of(day)]
    away = (number - today.weekday()) % 7 if ahead == "next" else -((today.weekday() - number) % 7)
    nearest = today + timedelta(days=away)
    return [day_of(nearest + timedelta(days=days)) for days in ([0] if away else [0, 7 if ahead == "next" else -7])]


def _weekend(_: re.Match[str], today: date, ahead: Direction, weeks_back: int | None) -> list[DaySpan]:
    if weeks_back is not None:
        named = weekend(today, weeks_back)
        if named[1] > today if ahead == "next" else named[0] <= today:
            return [named]
    return [weekend(today, 0) if ahead == "next" else latest_weekend(today)]


def _asked_day_of_month(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    if not (match[1] or match[2]) or match.string.count("日") > _MOST_DAYS:  # so many days, or a text
        return
    for direction_asked in _asked_directions(*sentence_around(match.string, *match.span())):
        if direction_asked == "last":
            yield from DAY_OF_MONTH_ALONE.resolve(match, today)
        else:
            yield from _next_day_of_month(today, int(match[1] or match[2]))


def _next_day_of_month(today: date, number: int) -> Iterator[DaySpan]:
    for months in range(3):
        first, after = months_back(today, -months)
        if number <= (after - first).days and (day := first.replace(day=number)) >= today:
            yield day_of(day)
            return


TOLD: list[Expression] = [
    of_week(_JAPANESE, _told(_weekday), "金曜に歯医者に行った", settled=True),
    of_week(_ENGLISH, _told(_weekday), "dentist on Friday", settled=True),
    of_weekend(_JAPANESE_WEEKEND, _told(_weekend), "週末に京都に行く", settled=True),
    of_weekend(_ENGLISH_WEEKEND, _told(_weekend), "went hiking over the weekend", settled=True),
]
ASKED: list[Expression] = [
    of_week(_JAPANESE, _asked(_weekday), "金曜に何があった？", "金曜の予定は？", settled=True),
    of_week(_ENGLISH, _asked(_weekday), "What happened on Friday?", "What's on Friday?", settled=True),
    of_weekend(_JAPANESE_WEEKEND, _asked(_weekend), "週末は何してた？", "週末の予定は？", settled=True),
    of_weekend(_ENGLISH_WEEKEND, _asked(_weekend), "What did I do on the weekend?", settled=True),
    of_month(
        DAY_OF_MONTH_ALONE.pattern.pattern, _asked_day_of_month, "20日に何があった？", "20日の予定は？", "What's on the 20th?", settled=True
    ),
]
