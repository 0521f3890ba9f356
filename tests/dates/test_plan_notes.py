"""Notes of plans without a verb, each beside one of what is so every week."""

from datetime import date, timedelta

import pytest

from memory_mcp.dates.statements import days_of_statement

SAID_ON = date(2026, 11, 12)  # a Thursday

NOTES = [
    ("予定: 火曜に車検", "11-17"),
    ("歯医者、金曜", "11-13"),
    ("歯医者 金曜15時", "11-13"),
    ("予防接種、水曜16時", "11-18"),
    ("土曜 10:00〜12:00 面談", "11-14"),
]
HABITS = (
    "燃えるゴミ、金曜 火曜、資源ゴミ 水曜に不燃ゴミ 水曜に生ゴミ、土曜に缶 金曜に毎週の買い物 火曜、塾 月曜、在宅 火曜は在宅勤務 月曜に週報 土曜はいつも焼肉 月曜、隔週の通院 "
    "ヨガは水曜 ピアノは水曜 水曜はカレー 水曜は半額 火曜は特売日 火曜に半額セール 木曜は早番 木曜、夜勤 月曜は体育 水曜にノー残業 水曜、休館 木曜、休診 土日は休み 土曜は仕事 "
    "日曜は家で仕事 日曜は父と競馬 土曜は妻とスーパー 日曜の朝は散歩 金曜の夜はカレー 日曜は教会に行く 日曜は教会に行く人が多い 月曜は会社に行く 土曜はジムに行く 土曜は図書館に行く"
).split()
# Of a timetable, with a clock time, and in English.
HABITS_WITH_BLANKS = [
    "月曜 国語、火曜 算数",
    "月曜 9:30 朝会 毎週",
    "月曜 9:30 朝会",
    "金曜 燃えるゴミ",
    "水曜19時 ヨガ",
    "Every Friday 7pm - drinks with Ken",
    "Monday 7pm: yoga",
    "Standup, Monday 9:30",
    "Trash day, Friday 7am",
    "Yoga on Wednesday at 7pm",
    "I work on Friday at 3pm",
    "The trash comes on Friday",
    "He always comes on Friday",
    "The cleaner comes on Mondays",
]
NO_PLANS = (
    "土曜、雨 日曜、晴れ 月曜、憂鬱 金曜、頭痛 月曜から憂鬱 金曜に無理 金曜、やっと終わり 水曜に強い 日曜、のんびり 水曜だけ営業 金曜の会議 水曜の映画 月曜の朝 土曜は山に行くかも 火曜に車検の話 "
    "20日から雨 20日から風邪 20日、寝坊 20日は休み 10日から休職中 滞在は3日 休みは10日 残りは5日 20日間"
).split()


def said(text):
    spans = days_of_statement(text, SAID_ON)
    return sorted(f"{a:%m-%d}" if b - a == timedelta(1) else f"{a:%m-%d}..{b - timedelta(1):%m-%d}" for a, b in spans)


@pytest.mark.parametrize(("text", "days"), NOTES)
def test_a_note_of_a_plan_is_of_the_coming_day(text, days):
    assert said(text) == sorted(days.split())


@pytest.mark.parametrize("text", [*HABITS, *HABITS_WITH_BLANKS, *NO_PLANS])
def test_a_note_of_what_is_so_every_week_or_not_planned_is_of_no_day(text):
    assert said(text) == []
