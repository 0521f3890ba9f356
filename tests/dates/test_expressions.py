"""Dates in the words of every day and of everyday speech, and words that must not be read as dates; seen from noon of Thursday, 30 October 2025, in Tokyo."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates

from memory_mcp.dates.holidays import public_holidays
from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import YEARS_CONSIDERED
from memory_mcp.errors import InvalidInput

TOKYO = ZoneInfo("Asia/Tokyo")
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


def days(span) -> str:
    """The first and the last local day of a span, without the century; one where they are the same."""
    first, last = (moment.astimezone(TOKYO).strftime("%y-%m-%d") for moment in (span.start, span.end - timedelta(microseconds=1)))
    return first if first == last else f"{first}..{last}"


def said(words: str, now: datetime = NOON) -> str:
    return days(parse_range(words, now, TOKYO))


def moment(words: str) -> str:
    return parse_moment(words, NOON, TOKYO).astimezone(TOKYO).strftime("%y-%m-%d %H:%M")


def named(query: str, now: datetime = NOON) -> list[str]:
    return [days(span) for span in named_dates(query, now, TOKYO)]


def rows(table):
    """The rows of a table, each with the sentence that it is an example of."""
    return [pytest.param(*row, id=f"{sentence}: {row[0]}") for sentence, group in table.items() for row in group]


# The days that words mean in an argument.
SPANS = {
    "numbers may be written as one likes": [
        ("十月", "25-10-01..25-10-31"), ("九月三日", "25-09-03"), ("三日", "25-10-03"), ("十日の朝", "25-10-10"), ("10日の朝", "25-10-10"), ("十一月二十三日", "24-11-23"),
        ("二〇二五年十月三日", "25-10-03"), ("令和七年十月", "25-10-01..25-10-31"), ("三十一日", "25-08-31"), ("九月三日から五日", "25-09-03..25-09-05"), ("三日前", "25-10-27"),
        ("三月前", "25-07-01..25-07-31"), ("三月前半", "25-03-01..25-03-15"), ("十月半ば", "25-10-11..25-10-20"), ("25年10月", "25-10-01..25-10-31"),
        ("98年10月", "98-10-01..98-10-31"), ("24年の夏", "24-06-01..24-08-31"), ("25年10月3日", "25-10-03"),
    ],
    "a part of a year may be said in many ways": [
        ("2年前の夏", "23-06-01..23-08-31"), ("二年前の秋", "23-09-01..23-11-30"), ("３年前の冬", "22-12-01..23-02-28"), ("summer before last", "24-06-01..24-08-31"),
        ("the winter before last", "23-12-01..24-02-29"), ("two summers ago", "24-06-01..24-08-31"), ("昨秋", "24-09-01..24-11-30"), ("昨夏", "24-06-01..24-08-31"),
        ("昨冬", "24-12-01..25-02-28"), ("今夏", "25-06-01..25-08-31"), ("今春", "25-03-01..25-05-31"), ("この夏", "25-06-01..25-08-31"),
        ("last quarter", "25-07-01..25-09-30"), ("this quarter", "25-10-01..25-12-31"), ("前四半期", "25-07-01..25-09-30"), ("昨夏の終わり", "24-08-01..24-08-31"),
        ("2年前の年末", "23-12-21..23-12-31"), ("去年の暮れ", "24-12-21..24-12-31"), ("昨年末", "24-12-21..24-12-31"), ("2024年末", "24-12-21..24-12-31"),
        ("2024年の年末", "24-12-21..24-12-31"), ("年の瀬", "24-12-21..24-12-31"), ("年初", "25-01-01..25-01-10"), ("年度末", "25-03-01..25-03-31"),
        ("年度初め", "25-04-01..25-04-30"), ("今年度", "25-04-01..26-03-31"), ("昨年度", "24-04-01..25-03-31"), ("2024年度", "24-04-01..25-03-31"),
        ("2023年度末", "24-03-01..24-03-31"), ("令和6年度", "24-04-01..25-03-31"), ("this October", "25-10-01..25-10-31"), ("this May", "25-05-01..25-05-31"),
        ("next May", "26-05-01..26-05-31"), ("next October", "26-10-01..26-10-31"),
    ],
    "up to now is so many days with today": [
        ("last week", "25-10-20..25-10-26"), ("within the last week", "25-10-24..25-10-30"), ("in the last week", "25-10-24..25-10-30"),
        ("the last week", "25-10-24..25-10-30"), ("during the last month", "25-09-30..25-10-30"), ("last month", "25-09-01..25-09-30"),
        ("in the last year", "24-10-31..25-10-30"), ("past week", "25-10-24..25-10-30"), ("the past 3 days", "25-10-28..25-10-30"),
        ("in the last couple of days", "25-10-29..25-10-30"), ("the last fifteen days", "25-10-16..25-10-30"), ("within a week", "25-10-24..25-10-30"),
        ("within 3 days", "25-10-28..25-10-30"), ("the past half year", "25-04-30..25-10-30"), ("1週間以内", "25-10-24..25-10-30"), ("3日以内", "25-10-28..25-10-30"),
        ("この三日以内", "25-10-28..25-10-30"), ("一か月以内", "25-09-30..25-10-30"), ("過去2週間以内", "25-10-17..25-10-30"), ("半年以内", "25-04-30..25-10-30"),
        ("ここ半年", "25-04-30..25-10-30"), ("数日以内", "25-10-25..25-10-30"), ("ここ数日", "25-10-25..25-10-30"), ("最近1週間", "25-10-24..25-10-30"),
        ("ここ2、3日", "25-10-28..25-10-30"), ("ここ最近", "25-09-30..25-10-30"), ("この一週間", "25-10-24..25-10-30"), ("直近の3日間", "25-10-28..25-10-30"),
    ],
    "near days may be said in many ways": [
        ("今から3日前", "25-10-27"), ("今日から3日前", "25-10-27"), ("fortnight ago", "25-10-13..25-10-19"), ("week ago", "25-10-20..25-10-26"),
        ("ふた月前", "25-08-01..25-08-31"), ("a year and a half ago", "24-04-01..24-04-30"), ("fifteen days ago", "25-10-15"), ("今度の日曜", "25-11-02"),
        ("次の木曜", "25-11-06"), ("this coming Sunday", "25-11-02"), ("前の日曜", "25-10-26"), ("この前の日曜", "25-10-26"), ("two weekends ago", "25-10-18..25-10-19"),
        ("two Fridays ago", "25-10-17"), ("a Friday ago", "25-10-24"), ("Friday before last", "25-10-17"), ("2週間前の金曜", "25-10-17"), ("二週間前の今日", "25-10-16"),
        ("先週の今日", "25-10-23"), ("2 weeks ago today", "25-10-16"), ("a month ago today", "25-09-30"), ("2か月前の今日", "25-08-30"),
        ("10月20日前後", "25-10-18..25-10-22"), ("Friday two weeks ago", "25-10-17"), ("しあさって", "25-11-02"), ("先週の土日", "25-10-25..25-10-26"),
        ("この週末", "25-11-01..25-11-02"), ("earlier this week", "25-10-27..25-11-02"), ("the previous week", "25-10-20..25-10-26"),
        ("previous month", "25-09-01..25-09-30"), ("今月中", "25-10-01..25-10-31"), ("10月中", "25-10-01..25-10-31"), ("今月に入って", "25-10-01..25-10-31"),
        ("the last week of October", "25-10-25..25-10-31"), ("the first week of October", "25-10-01..25-10-07"), ("10月の第2週", "25-10-08..25-10-14"),
        ("先月の最後の週", "25-09-24..25-09-30"), ("10月最初の週", "25-10-01..25-10-07"),
    ],
    "a range may be said in many ways": [
        ("Mon-Wed", "25-10-27..25-10-29"), ("Monday-Wednesday", "25-10-27..25-10-29"), ("Jan-Mar", "25-01-01..25-03-31"), ("Oct-Nov", "25-10-01..25-11-30"),
        ("mid-October", "25-10-11..25-10-20"), ("between May and July", "25-05-01..25-07-31"), ("May through July", "25-05-01..25-07-31"),
        ("from May until July", "25-05-01..25-07-31"), ("from last week until yesterday", "25-10-20..25-10-29"), ("5月から7月まで", "25-05-01..25-07-31"),
        ("5月から7月にかけて", "25-05-01..25-07-31"), ("10日から15日まで", "25-10-10..25-10-15"), ("先週から今週にかけて", "25-10-20..25-11-02"), ("10/3-10/5", "25-10-03..25-10-05"),
        ("3日前から昨日まで", "25-10-27..25-10-29"), ("月曜から水曜", "25-10-27..25-10-29"),
    ],
    "a part of a span may be said without its name": [
        ("上旬", "25-10-01..25-10-10"), ("中旬", "25-10-11..25-10-20"), ("月の初め", "25-10-01..25-10-10"), ("月半ば", "25-10-11..25-10-20"),
        ("10月なかば", "25-10-11..25-10-20"), ("週の頭", "25-10-27..25-10-28"), ("来週あたま", "25-11-03..25-11-04"), ("週の半ば", "25-10-29..25-10-31"),
        ("今週いっぱい", "25-10-27..25-11-02"), ("年内", "25-01-01..25-12-31"), ("今年の頭", "25-01-01..25-02-28"), ("去年の終わり", "24-11-01..24-12-31"),
        ("end of last year", "24-11-01..24-12-31"), ("the beginning of 2024", "24-01-01..24-02-29"), ("late 2024", "24-09-01..24-12-31"),
        ("2024年の半ば", "24-05-01..24-08-31"), ("先週の平日", "25-10-20..25-10-24"), ("来四半期", "26-01-01..26-03-31"), ("1990年代", "90-01-01..99-12-31"),
        ("90年代", "90-01-01..99-12-31"), ("the 1990s", "90-01-01..99-12-31"), ("春先", "25-03-01..25-05-31"), ("去年の秋口", "24-09-01..24-11-30"),
        ("去年の梅雨", "24-06-01..24-07-20"), ("西暦2020年", "20-01-01..20-12-31"),
    ],
    "days of weeks and months may be counted": [
        ("週明け", "25-10-27"), ("来週明け", "25-11-03"), ("今度の週明け", "25-11-03"), ("今週末の土曜", "25-11-01"), ("先週末の日曜", "25-10-26"), ("このあいだの日曜", "25-10-26"),
        ("this past Monday", "25-10-27"), ("a week ago Tuesday", "25-10-21"), ("来週の今日", "25-11-06"), ("来たる日曜", "25-11-02"),
        ("the week after next", "25-11-10..25-11-16"), ("先月の第二日曜", "25-09-14"), ("10月の第2月曜", "25-10-13"), ("10月最後の日曜", "25-10-26"),
        ("the first Monday of October", "25-10-06"), ("last Sunday of September", "25-09-28"), ("the first Friday of September 2024", "24-09-06"),
        ("October the 3rd", "25-10-03"), ("Sunday, October 5", "25-10-05"), ("Sun Oct 5", "25-10-05"), ("10-17-2025", "25-10-17"), ("17-10-2025", "25-10-17"),
    ],
    "how long ago may be said loosely": [
        ("3日ほど前", "25-10-25..25-10-29"), ("三日くらい前", "25-10-25..25-10-29"), ("2週間ぐらい前", "25-10-11..25-10-21"), ("10年ほど前", "14-12-22..16-01-10"),
        ("何日か前", "25-10-24..25-10-28"), ("何か月か前", "25-04-01..25-08-31"), ("2〜3か月前", "25-07-01..25-08-31"), ("一年前の今頃", "24-10-15..24-11-14"),
        ("3年前の今日", "22-10-30"), ("this time last week", "25-10-22..25-10-24"), ("さきおととし", "22-01-01..22-12-31"), ("再来年", "27-01-01..27-12-31"),
        ("roughly a month ago", "25-08-22..25-10-10"), ("exactly a week ago", "25-10-20..25-10-26"), ("two years back", "23-01-01..23-12-31"),
        ("just yesterday", "25-10-29"), ("nearly three weeks ago", "25-10-04..25-10-14"), ("20日前後", "25-10-18..25-10-22"), ("このあいだ", "25-10-16..25-10-29"),
        ("ついこの間", "25-10-16..25-10-29"), ("つい先日", "25-10-16..25-10-29"), ("こないだ", "25-10-16..25-10-29"), ("このところ", "25-09-30..25-10-30"),
        ("these days", "25-09-30..25-10-30"), ("a while ago", "25-05-03..25-10-29"),
    ],
    "what is to come and what is of another year may be said": [
        ("3日後", "25-11-02"), ("2週間後", "25-11-10..25-11-16"), ("1か月後", "25-11-01..25-11-30"), ("in 3 days", "25-11-02"), ("two weeks from now", "25-11-13"),
        ("今後3日間", "25-10-30..25-11-02"), ("the next 3 days", "25-10-30..25-11-02"), ("来年の4月", "26-04-01..26-04-30"), ("来年4月3日", "26-04-03"),
        ("来年のクリスマス", "26-12-25"), ("Christmas next year", "26-12-25"), ("next Christmas", "25-12-25"), ("2026年のお正月", "26-01-01..26-01-03"),
        ("October of last year", "24-10-01..24-10-31"), ("last year's October", "24-10-01..24-10-31"),
    ],
    "a day off may be said by its name": [
        ("敬老の日", "25-09-15"), ("スポーツの日", "25-10-13"), ("体育の日", "25-10-13"), ("海の日", "25-07-21"), ("山の日", "25-08-11"), ("成人の日", "25-01-13"),
        ("春分の日", "25-03-20"), ("秋分の日", "25-09-23"), ("去年の秋分の日", "24-09-22"), ("2021年の海の日", "21-07-22"), ("母の日", "25-05-11"), ("Father's Day", "25-06-15"),
        ("盆", "25-08-13..25-08-16"), ("お盆明け", "25-08-17..25-08-19"), ("盆休み", "25-08-10..25-08-16"), ("正月明け", "25-01-04..25-01-06"),
        ("正月三が日", "25-01-01..25-01-03"), ("冬至", "24-12-21..24-12-22"), ("大型連休", "25-04-29..25-05-06"), ("GW明け", "25-05-07..25-05-09"), ("Easter", "25-04-20"),
        ("Easter 2024", "24-03-31"), ("Good Friday", "25-04-18"), ("Black Friday", "24-11-29"), ("Labor Day", "25-09-01"), ("三連休", "25-10-11..25-10-13"),
        ("連休", "25-10-11..25-10-13"), ("次の三連休", "25-11-01..25-11-03"), ("この前の連休", "25-10-11..25-10-13"), ("先月の三連休", "25-09-13..25-09-15"),
        ("去年の9月の三連休", "24-09-21..24-09-23"), ("連休明け", "25-10-14"), ("4連休", "25-05-03..25-05-06"),
    ],
    "what people write in a hurry is a date": [
        ("夏休みの初め", "25-07-20..25-08-02"), ("夏休みの終わり", "25-08-18..25-08-31"), ("去年の夏から秋", "24-06-01..24-11-30"), ("夏休み明け", "25-09-01..25-09-03"),
        ("一昨年の今頃", "23-10-15..23-11-14"), ("一昨年の今日", "23-10-30"), ("3日まえ", "25-10-27"), ("一週間ほどまえ", "25-10-18..25-10-28"), ("1年半ほど前", "24-03-22..24-05-10"),
        ("昨日一日", "25-10-29"), ("先週一週間", "25-10-20..25-10-26"), ("2 wks ago", "25-10-13..25-10-19"), ("3 yrs ago", "22-01-01..22-12-31"),
        ("this past weekend", "25-10-25..25-10-26"), ("a day or two ago", "25-10-28..25-10-29"), ("last evening", "25-10-29"),
        ("one day last week", "25-10-20..25-10-26"), ("summer break", "25-06-01..25-08-31"), ("上期", "25-01-01..25-06-30"), ("年越し", "24-12-31..25-01-01"),
        ("今週ずっと", "25-10-27..25-11-02"), ("yesterday at lunch", "25-10-29"),
    ],
    "a range of days of the week ends on the first such day": [
        ("先週の月曜日から水曜日まで", "25-10-20..25-10-22"), ("先週の土曜から日曜", "25-10-25..25-10-26"), ("from Monday to Wednesday", "25-10-27..25-10-29"),
        ("last Monday to Wednesday", "25-10-27..25-10-29"), ("先々週の金曜から月曜", "25-10-17..25-10-20"),
    ],
    "numbers of dates are read in words": [
        ("the third of October", "25-10-03"), ("October the third", "25-10-03"), ("the twenty-first of October", "25-10-21"),
        ("on the fifth of May", "25-05-05"), ("a week from Friday", "25-11-07"), ("two weeks from Saturday", "25-11-15"),
        ("first quarter of 2024", "24-01-01..24-03-31"), ("半月前", "25-10-13..25-10-17"),
    ],
}  # fmt: skip
# When something happened, by the words of an argument.
MOMENTS = {
    "a time of day may be said in many ways": [
        ("夕べ", "25-10-29 20:00"), ("昨晩遅く", "25-10-29 23:00"), ("今朝早く", "25-10-30 04:00"), ("今朝方", "25-10-30 07:00"), ("明朝", "25-10-31 07:00"),
        ("明晩", "25-10-31 20:00"), ("昨日の朝一", "25-10-29 07:00"), ("昨日の夜明け", "25-10-29 04:00"), ("昼前", "25-10-30 11:00"), ("昨日の深夜1時", "25-10-30 01:00"),
        ("昨夜1時", "25-10-30 01:00"), ("昨夜0時半", "25-10-30 00:30"), ("昨日の夜11時", "25-10-29 23:00"), ("last night at 1", "25-10-30 01:00"),
        ("last night at 1am", "25-10-30 01:00"), ("yesterday afternoon around 3", "25-10-29 15:00"), ("昨日の午後1時", "25-10-29 13:00"), ("今朝6時", "25-10-30 06:00"),
        ("ついさっき", "25-10-30 12:00"), ("1時間後", "25-10-30 13:00"), ("in 30 minutes", "25-10-30 12:30"), ("来年の4月3日の夜", "26-04-03 20:00"),
        ("10月の終わり頃", "25-10-21 00:00"),
    ],
    "hours ago may be said loosely": [
        ("2時間半前", "25-10-30 09:30"), ("一時間くらい前", "25-10-30 11:00"), ("数時間前", "25-10-30 06:00"), ("a few minutes ago", "25-10-30 11:30"),
        ("about an hour ago", "25-10-30 11:00"),
    ],
    "quarters of an hour are read in words": [
        ("tomorrow at half past seven", "25-10-31 07:30"), ("quarter to nine tomorrow", "25-10-31 08:45"),
    ],
}  # fmt: skip
# The dates that a question names.
NAMED = {
    "a question may say its date in many ways": [
        ("2年前の夏に行った海は？", ["23-06-01..23-08-31"]), ("1週間以内に会った人は？", ["25-10-24..25-10-30"]), ("昨秋の旅行", ["24-09-01..24-11-30"]),
        ("what did we eat within the last week?", ["25-10-24..25-10-30"]), ("what happened last week?", ["25-10-20..25-10-26"]),
        ("what did we plan in the last week of October 2024?", ["24-10-01..24-10-31"]), ("what did we do two summers ago?", ["24-06-01..24-08-31"]),
        ("去年の暮れの話", ["24-12-21..24-12-31"]), ("昨年度の目標", ["24-04-01..25-03-31"]), ("25年10月の予定", ["25-10-01..25-10-31"]), ("しあさっての予定", ["25-11-02"]),
        ("what did she say since Monday?", ["25-10-27..25-10-30"]), ("two weekends ago we met", ["25-10-18..25-10-19"]), ("今度の日曜の約束", ["25-11-02"]),
    ],
    "a question may say them too": [
        ("夕べ何を食べた？", ["25-10-29"]), ("来年の4月の予定は？", ["26-04-01..26-04-30"]), ("さきおととしの旅行", ["22-01-01..22-12-31"]), ("3日くらい前に話した店", ["25-10-27"]),
        ("再来年の目標", ["27-01-01..27-12-31"]), ("先月の第二日曜に会った人", ["25-09-14"]), ("who did I meet on the last Sunday of last month?", ["25-09-28"]),
        ("1990年代の音楽", ["90-01-01..99-12-31"]), ("what did we plan in October of last year?", ["24-10-01..24-10-31"]), ("去年の敬老の日", ["24-09-16"]),
        ("来年のお正月の約束", ["26-01-01..26-01-03"]), ("2〜3か月前の話", ["25-07-01..25-08-31"]),
    ],
}  # fmt: skip
# Texts that name no date.
NONE = {
    "what only looks like such a date names none": [
        "this may be wrong", "昨今春雨が人気", "今夏帆さんが来た", "夕暮れ", "一日一善", "within reason", "in the last resort", "Mon-el", "今春香さん",
    ],
    "ordinary words of a question name no date": [
        "その間に何をしていた？", "世間の話", "この間に合うかな", "お盆に載せる", "お盆の上のお茶", "お盆を拭いた", "盆栽の手入れ", "盆地の夏", "盆踊りの曲", "初盆", "お盆で運ぶ", "音楽の夕べ", "夕べの祈り", "山の日差し", "海の日没", "母の日記",
        "父の日課", "春分点", "明朝体", "3日後に会った", "2週間後に届く", "20日前後", "早く寝た", "遅くなった", "上旬という言葉", "年内に終わる", "連続休暇", "週明けて", "梅雨入り", "in two ways",
        "how many times in a week?", "the third of them", "the last day of school", "first of all", "the second of the two", "Easter Island", "Easter eggs",
        "mother's daycare", "these days are long", "a while ago", "call me back", "Friday week", "the next 3 days", "3 from now", "the first day of my job",
        "week of rest", "in 3 days",
    ],
    "numbers in words that are no dates": [
        "the second half of the game", "a quarter past the church", "we brought the quarter to a close", "half past 100", "the first of many",
        "the third march",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("words", "meant"), rows(SPANS))
def test_an_argument_means_days(words, meant):
    assert said(words) == meant


@pytest.mark.parametrize(("words", "when"), rows(MOMENTS))
def test_an_argument_means_a_moment(words, when):
    assert moment(words) == when


@pytest.mark.parametrize(("query", "meant"), rows(NAMED))
def test_a_question_names_dates(query, meant):
    assert named(query) == meant


@pytest.mark.parametrize("text", [text for group in NONE.values() for text in group])
def test_a_text_names_no_date(text):
    assert named(text) == []


@pytest.mark.parametrize(
    "query", ["三日月", "三日坊主", "一日中雨だった", "五月雨", "数十日", "七日間の旅", "二十歳の誕生日", "一月半", "百三十月"]
)
def test_words_with_a_number_in_them_name_no_date(query):
    assert named(query) == []
    with pytest.raises(InvalidInput):
        said(query)


def test_a_year_of_office_is_that_of_its_day():
    in_february = datetime(2026, 2, 10, 3, tzinfo=UTC)
    assert days(parse_range("今年度", in_february, TOKYO)) == "25-04-01..26-03-31"
    assert days(parse_range("昨年度末", in_february, TOKYO)) == "25-03-01..25-03-31"


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        ("last 24 hours", 24), ("in the last 24 hours", 24), ("the past 48 hours", 48), ("past few hours", 6), ("in the last hour", 1),
        ("within the last two hours", 2), ("last 24h", 24), ("24時間以内", 24), ("過去24時間", 24), ("この1時間", 1), ("ここ数時間", 6), ("直近の三時間", 3), ("last 30 minutes", 0.5),
        ("30分以内", 0.5),
    ],
)  # fmt: skip
def test_up_to_now_may_be_counted_in_hours(words, hours):
    span = parse_range(words, NOON, TOKYO)
    assert span.start == NOON - timedelta(hours=hours)
    assert NOON in span
    assert NOON + timedelta(hours=1) not in span
    assert [span.start for span in named_dates(f"{words} what did we say?", NOON, TOKYO)] == [span.start]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("昨日と一昨日", "25-10-28..25-10-29"), ("一昨日と昨日", "25-10-28..25-10-29"), ("今日と昨日", "25-10-29..25-10-30"), ("土曜と日曜", "25-10-25..25-10-26"),
        ("today and yesterday", "25-10-29..25-10-30"), ("yesterday and today", "25-10-29..25-10-30"), ("先週と今週", "25-10-20..25-11-02"),
        ("昨日、一昨日", "25-10-28..25-10-29"), ("9月と10月", "25-09-01..25-10-31"), ("昨日と先週", None), ("10月と12月", None), ("昨日と", None), ("昨日と夕飯", None),
    ],
)  # fmt: skip
def test_days_side_by_side_are_one_span_and_others_are_refused(words, meant):
    if meant:
        assert said(words) == meant
    else:
        with pytest.raises(InvalidInput, match="no date"):
            said(words)


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [("昨日の21時から23時", "29T21", "29T23"), ("yesterday 9pm to 11pm", "29T21", "29T23"), ("昨日の22時から1時", "29T22", "30T01")],
)
def test_hours_of_a_day_are_a_range_to_the_last_moment(words, start, end):
    span = parse_range(words, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).strftime("%dT%H") == start
    assert (span.end - timedelta(microseconds=1)).astimezone(TOKYO).strftime("%dT%H") == end


@pytest.mark.parametrize(
    ("words", "start"),
    [("since Monday", "10-27"), ("since last Monday", "10-27"), ("先週以来", "10-20"), ("10月以来", "10-01"), ("1週間前から", "10-20"), ("今年に入ってから", "01-01")],
)  # fmt: skip
def test_since_then_has_no_end(words, start):
    span = parse_range(words, NOON, TOKYO)
    assert span.start.astimezone(TOKYO).strftime("%m-%d") == start
    assert span.end.year == 9999


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("2年前の夏", "2023-06-01T00:00"), ("十月", "2025-10-01T00:00"), ("昨日と一昨日", "2025-10-28T00:00"), ("十日の朝", "2025-10-10T07:00"),
        ("昨日の昼過ぎ", "2025-10-29T13:00"), ("昨日の夜遅く", "2025-10-29T23:00"), ("昨日の朝方", "2025-10-29T07:00"), ("今から2時間前", "2025-10-30T10:00"),
        ("昨日の午後三時", "2025-10-29T15:00"), ("九月三日の夜九時", "2025-09-03T21:00"), ("去年の暮れ", "2024-12-21T00:00"),
    ],
)  # fmt: skip
def test_what_happened_may_be_dated_the_same_way(words, moment):
    assert parse_moment(words, NOON, TOKYO).astimezone(TOKYO).isoformat(timespec="minutes")[:-6] == moment


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("昨日から今日にかけて何を食べた？", ["25-10-29..25-10-30"]), ("先週から昨日まで", ["25-10-20..25-10-29"]), ("3日前から昨日までの話", ["25-10-27..25-10-29"]),
        ("去年の10月から今年の3月まで", ["24-10-01..25-03-31"]), ("2025年10月3日から5日の旅行", ["25-10-03..25-10-05"]),
        ("2025年10月3日〜10月5日の旅行", ["25-10-03..25-10-05"]), ("from last week until yesterday, what happened?", ["25-10-20..25-10-29"]),
        ("what did we do between October 3, 2025 and October 5, 2025?", ["25-10-03..25-10-05"]), ("先週から", ["25-10-20..25-10-26"]),
        ("昨日と先週の話", ["25-10-20..25-10-26", "25-10-29"]), ("2025年10月30日から5日前に", ["25-10-30", "25-10-25"]),
        ("last week and yesterday", ["25-10-29", "25-10-20..25-10-26"]), ("2025年10月3日から40日", ["25-10-03"]), ("今日から昨日", ["25-10-29", "25-10-30"]),
    ],
)  # fmt: skip
def test_a_question_may_name_a_range(query, meant):
    assert sorted(named(query)) == sorted(meant)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("5月から7月まで何をした？", "25-05-01..25-07-31"), ("between May and July where did we go?", "25-05-01..25-07-31"), ("from Nov to Feb", "25-11-01..26-02-28"),
        ("10月3日から5日の旅行", "25-10-03..25-10-05"), ("October 3-5 in Kyoto", "25-10-03..25-10-05"),
    ],
)  # fmt: skip
def test_a_range_without_a_year_stands_for_each_of_the_last_years(query, first):
    assert named(query)[0] == first
    assert len(named(query)) == YEARS_CONSIDERED


@pytest.mark.parametrize(("query", "first"), [("十月に何をした？", "25-10-01..25-10-31"), ("九月三日は？", "25-09-03")])
def test_a_date_in_kanji_without_a_year_stands_for_each_of_the_last_years(query, first):
    assert named(query)[0] == first
    assert len(named(query)) == YEARS_CONSIDERED


def test_days_off_in_a_row_are_those_now_or_around_now():
    in_the_middle = datetime(2026, 9, 21, 3, tzinfo=UTC)
    assert said("連休", in_the_middle) == "26-09-19..26-09-23"
    assert named("連休は何をする？", in_the_middle) == ["26-09-19..26-09-23", "26-10-10..26-10-12"]
    assert named("三連休は何をした？") == ["25-10-11..25-10-13", "25-11-01..25-11-03"]
    assert named("次の三連休はどこへ行く？") == ["25-11-01..25-11-03"]


@pytest.mark.parametrize(
    ("year", "days"),
    [
        (2019, "1-1 1-14 2-11 3-21 4-29 4-30 5-1 5-2 5-3 5-4 5-5 5-6 7-15 8-11 8-12 9-16 9-23 10-14 10-22 11-3 11-4 11-23"),
        (2021, "1-1 1-11 2-11 2-23 3-20 4-29 5-3 5-4 5-5 7-22 7-23 8-8 8-9 9-20 9-23 11-3 11-23"),
        (2025, "1-1 1-13 2-11 2-23 2-24 3-20 4-29 5-3 5-4 5-5 5-6 7-21 8-11 9-15 9-23 10-13 11-3 11-23 11-24"),
        (2026, "1-1 1-12 2-11 2-23 3-20 4-29 5-3 5-4 5-5 5-6 7-20 8-11 9-21 9-22 9-23 10-12 11-3 11-23"),
        (2032, "1-1 1-12 2-11 2-23 3-20 4-29 5-3 5-4 5-5 7-19 8-11 9-20 9-21 9-22 10-11 11-3 11-23"),
    ],
)
def test_the_public_holidays_of_japan_are_those_of_the_official_calendar(year, days):
    assert sorted(public_holidays(year)) == [date(year, *map(int, one.split("-"))) for one in days.split()]


@pytest.mark.parametrize(
    "words",
    ["三日三晩", "前日", "翌日", "あの日", "the next day", "that day", "お盆に載せる", "世間", "夜明け前の歌", "昔", "long ago", "3日坊主"],
)
def test_what_is_no_date_of_its_own_is_refused(words):
    with pytest.raises(InvalidInput):
        said(words)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("去年の10月と11月に行った場所", ["24-10-01..24-10-31", "24-11-01..24-11-30"]), ("去年のクリスマスと大晦日", ["24-12-25", "24-12-31"]), ("2024年の母の日と父の日", ["24-05-12", "24-06-16"]),
        ("去年のお盆と9月の三連休", ["24-08-13..24-08-16", "24-09-14..24-09-16", "24-09-21..24-09-23"]), ("Halloween and Christmas last year", ["24-10-31", "24-12-25"]),
        ("what did we do between October and November of last year?", ["24-10-01..24-11-30"]), ("今年の敬老の日とスポーツの日", ["25-09-15", "25-10-13"]),
    ],
)  # fmt: skip
def test_one_year_may_be_said_of_several_days(query, meant):
    assert sorted(named(query)) == meant


def test_a_sentence_may_be_of_two_languages():
    assert named("Q3 2024の目標") == ["24-07-01..24-09-30"]
    assert moment("昨日9pm") == "25-10-29 21:00"


def test_both_ends_of_a_range_in_figures_are_named_by_a_question():
    assert named("10/29~11/2の旅行")[0] == "25-10-29..25-11-02"


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [("昨日の夜8時から10時", "29 20:00", "29 22:00"), ("昨日の午後1時から3時", "29 13:00", "29 15:00"), ("昨夜10時から1時", "29 22:00", "30 01:00"), ("昨日の22時から1時", "29 22:00", "30 01:00"), ("昨日の朝9時から11時", "29 09:00", "29 11:00")],
)  # fmt: skip
def test_the_end_of_some_hours_is_of_the_same_half_of_the_day(words, start, end):
    span = parse_range(words, NOON, TOKYO)
    last = span.end - timedelta(microseconds=1)
    assert [moment.astimezone(TOKYO).strftime("%d %H:%M") for moment in (span.start, last)] == [start, end]


def test_a_question_may_name_a_range_of_days_of_the_week():
    assert named("先週の月曜から水曜は何をした？") == ["25-10-20..25-10-22"]


@pytest.mark.parametrize(
    "words",
    [
        "9999年12月30日",
        "9999年12月3日から5日",
        "9999年12月30日から水曜",
        "9999-12-30の翌日",
        "0001-01-01から月曜",
        "0001年1月1日の前日",
        "12月の最後の日 9999",
    ],
)
def test_days_at_the_ends_of_the_calendar_break_nothing(words):
    for span in named_dates(words, NOON, TOKYO):
        assert span.start < span.end
    for parse in (parse_range, parse_moment):
        with suppress(InvalidInput):
            parse(words, NOON, TOKYO)


@pytest.mark.parametrize(
    ("day", "words", "meant"),
    [
        (22, "two weeks from Monday", "25-11-10"),
        (20, "a week from Monday", "25-11-03"),
        (25, "a week from Friday", "25-11-07"),
        (30, "a week from Friday", "25-11-07"),
    ],
)
def test_weeks_from_a_day_count_from_the_next_such_day(day, words, meant):
    assert said(words, datetime(2025, 10, day, 3, tzinfo=UTC)) == meant


@pytest.mark.parametrize("day", [1, 2])
@pytest.mark.parametrize("words", ["この前の週末", "this past weekend", "前の週末"])
def test_on_a_weekend_the_last_one_is_the_one_before(day, words):
    assert said(words, datetime(2025, 11, day, 3, tzinfo=UTC)) == "25-10-25..25-10-26"
