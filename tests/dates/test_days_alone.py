"""A day of the week or of the month alone in a sentence: which day it is in a text that plans or reports, and in a question."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dates_grammar import named_dates

from memory_mcp.dates.statements import days_of_statement
from memory_mcp.language.analysis import analysis

TOKYO = ZoneInfo("Asia/Tokyo")
SAID_ON = date(2026, 11, 18)  # a Wednesday
NOON = datetime(2026, 11, 18, 3, tzinfo=UTC)

PLANS = [
    ("金曜に歯医者", "11-20"),
    ("金曜日に歯医者に行く", "11-20"),
    ("金曜日の夜は飲み会", "11-20"),
    ("金曜、飲み会", "11-20"),
    ("金曜14時から会議です", "11-20"),
    ("締め切りは金曜", "11-20"),
    ("レポートの締切は金曜日です。", "11-20"),
    ("遠足は金曜日", "11-20"),
    ("歯医者は金曜の夕方", "11-20"),
    ("金曜までにレポートを出す", "11-20"),
    ("金曜に歯医者の予約を入れた", "11-20"),
    ("金曜の飲み会の店を予約した", "11-20"),
    ("土曜に友達と会う", "11-21"),
    ("金曜に必ず返す", "11-20"),
    ("土曜か日曜に会う", "11-21 11-22"),
    ("月曜に会議がある", "11-23"),
    ("月曜から出張", "11-23"),
    ("火曜に田中さんが来るって言ってた", "11-24"),
    ("今日買った服を土曜に着る", "11-18 11-21"),
    ("会議は水曜", "11-18"),
    ("遠足は20日", "11-20"),
    ("20日に引っ越し", "11-20"),
    ("20日の夜は飲み会", "11-20"),
    ("3日の夜は飲み会", "12-03"),
    ("Dentist appointment on Friday at 3.", "11-20"),
    ("due Friday", "11-20"),
    ("The report is due on Friday.", "11-20"),
    ("I have a meeting on Monday", "11-23"),
    ("I need to call Ken by Friday", "11-20"),
    ("I'm going to Kyoto on Friday", "11-20"),
    ("The concert is on Friday night.", "11-20"),
    ("Friday I'll go to the dentist", "11-20"),
    ("See you Friday!", "11-20"),
    ("the trip is on the 20th", "11-20"),
]
REPORTS = [
    ("金曜に歯医者に行った", "11-13"),
    ("月曜は雨だった", "11-16"),
    ("月曜は雨でした。", "11-16"),
    ("日曜の飲み会は楽しかった", "11-15"),
    ("土曜、友達と会った", "11-14"),
    ("土曜は家で寝ていた", "11-14"),
    ("日曜の夜に財布を落とした", "11-15"),
    ("金曜に会った人にまた会いたい", "11-13"),
    ("水曜は早く起きた", "11-18"),
    ("先週は忙しかったけど金曜に飲みに行った", "11-13 11-09..11-15"),
    ("金曜は飲みすぎた", "11-13"),
    ("日曜に競馬で勝った", "11-15"),
    ("土曜に発売されたゲームを買った", "11-14"),
    ("17日の夜は寿司を食べた", "11-17"),
    ("went to the dentist on Friday", "11-13"),
    ("It rained on Monday", "11-16"),
    ("I met Ken Friday night", "11-13"),
    ("On Sunday we visited Nara.", "11-15"),
    ("The exam on Tuesday went well", "11-17"),
    ("Friday I went to the dentist", "11-13"),
]
# What is so every week, what is of no certain week, and what is no day.
HABITS = (
    "金曜は燃えるゴミの日 毎週金曜に英会話に行く 毎週金曜は英会話 隔週の金曜に通院する 金曜はいつも飲み会 金曜はいつも飲みに行った 金曜になると飲みに行く 金曜ごとに会議がある "
    "金曜のたびに飲みに行く 燃えるゴミは金曜 ゴミの日は火曜と金曜 金曜に燃えるゴミを出す 水曜は定休日 定休日は水曜です 図書館は月曜が休み 月曜は休館 月曜日は在宅で働く "
    "金曜は早く帰る 土曜は仕事 日曜は教会に行く 金曜は部活がある 火曜に塾がある ピアノのレッスンは木曜 木曜はピアノのレッスン 月曜と木曜は塾 月・水・金曜は塾に行く 第2金曜に会議がある "
    "水曜は在宅勤務をしている 火曜にジムに通っている 金曜はカレーを作ることにしている 日曜は掃除をする日 金曜は必ず飲みに行く 学生の頃は土曜に働いた 昔は土曜に学校があった "
    "陶芸教室は春から土曜の午後二時になった 定休日を火曜から水曜に変えます 週報は金曜の17時までに藤巻さんへ送る 息子は土曜に学校がある 母の病院は水曜が休診"
).split()
HABITS_IN_ENGLISH = [
    "on Fridays I go swimming",
    "I play tennis every Friday",
    "On Friday mornings we ran",
    "every other Friday we had pizza",
    "Friday is trash day",
    "Trash pickup is on Friday",
    "The library is closed on Monday",
    "I always called her on Sunday",
    "I usually have lunch with Ken on Friday",
    "I work on Friday",
    "My yoga class is on Monday",
]
NO_DAYS = (
    "月曜日が苦手 月曜日が苦手だった 土曜日生まれ 土曜日に生まれた犬 金曜日が好き 金曜が一番好きな曜日だった 土曜は雨 水曜どうでしょうを見た 金曜ロードショーを見た 日曜大工をした "
    "その週の金曜に会った 翌週の金曜に会った 翌金曜に会った ある金曜に会った 曜日を間違えた 火曜サスペンスを見た 月曜のみ採用した 月曜が憂鬱だ 退院の2週間後の土曜に会った 連休前の祝日に会った 金曜 金曜の件"
).split()
NO_DAYS_IN_ENGLISH = [
    "my favorite day is Friday",
    "I was born on a Friday",
    "I hate Monday",
    "Friday works for me",
    "Robinson met Friday's father",
    "we watched Saturday Night Live",
    "she went to Sunday school",
    "that Friday we met",
    "the Friday after that we met",
    "years ago, on Friday, we met",
    "the sun was out and we sat down",
]
WEEKENDS = [
    ("週末に京都に行く", "11-21..11-22"),
    ("週末は旅行", "11-21..11-22"),
    ("週末は京都に行く予定", "11-21..11-22"),
    ("土日に引っ越しをする", "11-21..11-22"),
    ("週末は雨だった", "11-14..11-15"),
    ("週末に京都に行った", "11-14..11-15"),
    ("土日は家で寝ていた", "11-14..11-15"),
    ("I went hiking over the weekend", "11-14..11-15"),
    ("We are going to Kyoto on the weekend.", "11-21..11-22"),
]
NO_WEEKENDS = (
    "毎週末に走る 週末はいつも走った 週末はジムに行く 週末は雨 週末婚をした その週末に会った 土日は休み 土日祝は休みだった 週末だけ働いている 学生の頃は週末に働いた"
).split()
NO_WEEKENDS_IN_ENGLISH = [
    "I went hiking on weekends",
    "every weekend we went hiking",
    "that weekend we met",
    "we bought a weekend ticket",
    "the weekend before the wedding we met",
    "we met after the weekend",
    "I had one weekend off",
]
COUNTS = "20日間休んだ 20日ぶりに会った あと20日で引っ越す 20日かかる 20日目に届いた 二十日鼠を飼った 二十日大根を植えた 20日も待った 20日以内に返す".split()


def said(text, on=SAID_ON):
    spans = days_of_statement(text, on)
    return " ".join(f"{a:%m-%d}" if b - a == timedelta(1) else f"{a:%m-%d}..{b - timedelta(1):%m-%d}" for a, b in sorted(spans))


@pytest.mark.parametrize(("text", "days"), [*PLANS, *REPORTS, *WEEKENDS])
def test_what_is_planned_is_on_the_coming_day_and_what_is_reported_was_on_the_last_one(text, days):
    assert sorted(said(text).split()) == sorted(days.split())


@pytest.mark.parametrize("text", [*NO_WEEKENDS, *NO_WEEKENDS_IN_ENGLISH])
def test_what_is_so_every_weekend_is_on_none(text):
    assert said(text) == ""


@pytest.mark.parametrize("text", [*HABITS, *HABITS_IN_ENGLISH])
def test_what_is_so_every_week_is_on_no_day(text):
    assert said(text) == ""
    assert said(text, date(2026, 11, 20)) == ""


@pytest.mark.parametrize("text", [*NO_DAYS, *NO_DAYS_IN_ENGLISH, *COUNTS])
def test_what_is_no_certain_day_is_none(text):
    assert not [span for span in days_of_statement(text, SAID_ON) if span[1] - span[0] == timedelta(1)]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("月曜から水曜まで休みを取る予定", "11-23 11-23..11-25 11-25"),
        ("金曜から日曜まで旅行に行く", "11-20 11-20..11-22 11-22"),
        ("明日から金曜まで出張", "11-19 11-19..11-20 11-20"),
        ("12月4日(金)に歯医者", "12-04"),
        ("12月4日金曜に歯医者", "12-04"),
        ("12月4日の金曜日に歯医者に行く", "12-04"),
        ("Dinner is on Friday, December 4.", "12-04"),
        ("Dinner is on December 4 (Friday).", "12-04"),
        ("The dinner is on Friday the 4th.", "12-04"),
        ("先週の金曜に行った", "11-13"),
        ("last Friday we met", "11-13"),
    ],
)
def test_a_day_of_the_week_beside_another_date_is_part_of_it(text, days):
    assert sorted(said(text).split()) == days.split()


def asked(query):
    spans = named_dates(query, NOON, TOKYO, upcoming=True)
    return " ".join(sorted(f"{span.start.astimezone(TOKYO):%m-%d}" for span in spans))


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("金曜に何があった？", "11-13"),
        ("金曜何してた？", "11-13"),
        ("金曜の夜は何を食べた？", "11-13"),
        ("土曜日に会ったのは誰？", "11-14"),
        ("日曜は誰と話しましたか", "11-15"),
        ("月曜はどこに行ったっけ？", "11-16"),
        ("水曜に何があった？", "11-11 11-18"),
        ("金曜の予定は？", "11-20"),
        ("金曜空いてる？", "11-20"),
        ("金曜は何かある？", "11-20"),
        ("金曜は何がある？", "11-20"),
        ("金曜が締め切りのものは？", "11-20"),
        ("水曜の予定は？", "11-18 11-25"),
        ("金曜って何かあったっけ", "11-13 11-20"),
        ("金曜の予定は何だった？", "11-13 11-20"),
        ("週末の予定は？", "11-21"),
        ("週末は何かある？", "11-21"),
        ("週末何してた？", "11-14"),
        ("土日はどこに行った？", "11-14"),
        ("What did I do on the weekend?", "11-14"),
        ("What is planned for the weekend?", "11-21"),
        ("20日の予定は？", "11-20"),
        ("20日は何があった？", "10-20"),
        ("17日に何を食べた？", "11-17"),
        ("what happened on Wednesday?", "11-11 11-18"),
        ("What did I do on Friday?", "11-13"),
        ("Who did I meet Friday night?", "11-13"),
        ("what's on Friday?", "11-20"),
        ("Do I have anything on Friday?", "11-20"),
        ("What is planned for Friday?", "11-20"),
        ("Am I free on Friday?", "11-20"),
        ("What's due Friday?", "11-20"),
        ("What have I got on Friday?", "11-20"),
        ("What did Ken say on Friday about the launch?", "11-13"),
        ("日曜ひま？", "11-22"),
        ("What's on the 20th?", "11-20"),
        ("what happened on the 17th?", "11-17"),
    ],
)
def test_a_question_means_the_day_that_its_tense_tells(query, days):
    assert asked(query) == days


@pytest.mark.parametrize(
    "query",
    [
        "金曜は何ゴミ？",
        "金曜は何ゴミだっけ？",
        "金曜は何ゴミだったっけ？",
        "金曜に出すゴミは？",
        "毎週金曜の予定は？",
        "金曜はいつも何してた？",
        "金曜が定休日なのはどこ？",
        "歯医者は金曜？",
        "金曜のライブはどこ？",
        "金曜ロードショーで何を見た？",
        "土曜日に生まれたのは誰？",
        "20日間の予定は？",
        "20日かかったのは何？",
        "週末はいつも何してた？",
        "毎週末の予定は？",
        "週末は何ゴミ？",
        "What did I do on weekends?",
        "What sport did Evan try in a recent weekend?",
        "What do I do on Fridays?",
        "What did I do on Fridays?",
        "What do I usually do on Friday?",
        "Is the library closed on Monday?",
        "Which trash is collected on Friday?",
        "Who wrote Freaky Friday?",
        "Who watched Black Friday deals?",
        "Friday",
    ],
)
def test_without_a_tense_or_a_plan_a_day_alone_is_a_word_to_look_for(query):
    read = analysis(query)
    words = [read.recognized.plain[each.start : each.end] for each in read.date_expressions(NOON.astimezone(TOKYO).date())]
    assert [word for word in words if word != "black friday"] == []
