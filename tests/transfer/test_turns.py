"""Chats of many programs become turns: who said what and when, in which session; what is no text is counted by what it is."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format, import_rows
from memory_mcp.transfer.formats.import_rows import NO_OPTIONS, ReadOptions, key_of
from memory_mcp.transfer.formats.readers import detect_format
from memory_mcp.transfer.formats.sources import Folder
from memory_mcp.transfer.formats.table import ROWS


class Read(NamedTuple):
    """What is read of a file: its format; (source, time, session, text) of each row; the kinds of what is left out; the reasons of refusals."""

    format: str
    turns: list[tuple[Any, ...]]
    left_out: dict[str, int]
    refused: list[str]


def read(path: Path, options: ReadOptions = NO_OPTIONS) -> Read:
    kind = detect_format(path)
    items = list(ROWS[kind].read(path, options, print))
    rows = [item.row for item in items if item.row and "content" in item.row]
    assert len({row["key"] for row in rows}) == len(rows)
    return Read(
        kind.value,
        [(row.get("source"), row.get("occurred_at"), row.get("session_id"), row["content"]) for row in rows],
        dict(Counter(item.left_out for item in items if item.left_out)),
        [item.refused for item in items if item.refused],
    )


def written(place: Path, name: str, content: Any) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False, indent=1)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def texts(found: Read) -> list[tuple[Any, Any]]:
    return [(source, text) for source, _, _, text in found.turns]


TOKYO = ReadOptions(zone=ZoneInfo("Asia/Tokyo"))
LINE_DAYS = """\ufeff[LINE] さくらとのトーク履歴\r
保存日時：2020/02/01 12:00\r
\r
2020/01/01(水)\r
21:30\t健太\t明けましておめでとう\r
21:31\tさくら\t"おめでとう\r
2020/01/02(木)\r
""今年""もよろしく"\r
21:32\t健太\t[スタンプ]\r
21:33\tさくら\t[写真]\r
21:34\tさくら\t☎ 通話時間 3:12\r
\r
2020/01/02(木)\r
午前0:05\t健太\t"寝る\r
午後12:10\t健太\tおはよう\r
12:11\t\tさくらがグループに参加しました。\r
12:12\tさくらがメッセージの送信を取り消しました\r
12:13\tさくら\t写真は明日送るね\r
"""

LINE_ENGLISH = """[LINE] Chat history with Mei
Saved on: 26/04/2026, 04:36PM

Sun, 05/04/2026
04:35PM\tKen\tRamen tonight?
04:36PM\tMei\t[Sticker]
12:05 AM\tMei\tLate
Mei unsent a message.
"""

LINE_COMPUTER = """2025.12.30 火曜日
23:43 natsumi_ スタンプ
23:47 衛藤 泰地 わ！
見ます!
23:48 衛藤 泰地 明日ね
23:49 衛藤 泰地 10時に
23:50 natsumi_ 了解 です
23:51 natsumi_がさくらをグループに追加しました。
2025.12.31 水曜日
00:01 natsumi_ メッセージの送信を取り消しました
"""


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "[LINE] さくらとのトーク.txt",
            LINE_DAYS,
            Read(
                "line",
                [
                    ("健太", "2020-01-01T21:30:00+09:00", "LINE さくら 2020-01-01", "明けましておめでとう"),
                    ("さくら", "2020-01-01T21:31:00+09:00", "LINE さくら 2020-01-01", 'おめでとう\n2020/01/02(木)\n"今年"もよろしく'),
                    ("健太", "2020-01-02T00:05:00+09:00", "LINE さくら 2020-01-02", '"寝る'),
                    ("健太", "2020-01-02T12:10:00+09:00", "LINE さくら 2020-01-02", "おはよう"),
                    ("さくら", "2020-01-02T12:13:00+09:00", "LINE さくら 2020-01-02", "写真は明日送るね"),
                ],
                {"stickers": 1, "photos": 1, "calls": 1, "notices": 1, "deleted messages": 1},
                [],
            ),
        ),
        (
            "chat.txt",
            LINE_ENGLISH,
            Read(
                "line",
                [
                    ("Ken", "2026-04-05T16:35:00+09:00", "LINE Mei 2026-04-05", "Ramen tonight?"),
                    ("Mei", "2026-04-05T00:05:00+09:00", "LINE Mei 2026-04-05", "Late\nMei unsent a message."),
                ],
                {"stickers": 1},
                [],
            ),
        ),
        (
            "[LINE]なつみ.txt",
            LINE_COMPUTER,
            Read(
                "line",
                [
                    ("衛藤 泰地", "2025-12-30T23:47:00+09:00", "LINE なつみ 2025-12-30", "わ！\n見ます!"),
                    ("衛藤 泰地", "2025-12-30T23:48:00+09:00", "LINE なつみ 2025-12-30", "明日ね"),
                    ("衛藤 泰地", "2025-12-30T23:49:00+09:00", "LINE なつみ 2025-12-30", "10時に"),
                    ("natsumi_", "2025-12-30T23:50:00+09:00", "LINE なつみ 2025-12-30", "了解 です"),
                ],
                {"stickers": 1, "notices": 1, "deleted messages": 1},
                [],
            ),
        ),
    ],
)
def test_a_talk_of_line_is_read_in_every_form_of_its_days(tmp_path: Path, name: str, content: str, expected: Read) -> None:
    assert read(written(tmp_path, name, content), TOKYO) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("2020/01/05(日)", "2020-01-05"),
        ("2020.01.05 日曜日", "2020-01-05"),
        ("2020.01.05 Sunday", "2020-01-05"),
        ("2020/1/5 Sun", "2020-01-05"),
        ("2020/1/5周日", "2020-01-05"),
        ("2020/01/05（週日）", "2020-01-05"),
        ("2020년 1월 5일 일요일", "2020-01-05"),
        ("2020. 1. 5. 일요일", "2020-01-05"),
        ("R2/01/05(日)", "2020-01-05"),
        ("令和2年1月5日(日)", "2020-01-05"),
        ("อา. 05/01/2563", "2020-01-05"),
        ("dom, 5/1/2020", "2020-01-05"),
        ("Sun, 01/05/2020", "2020-01-05"),
        ("Sun, 05/01/2020", "2020-01-05"),
        ("Sun, 5/1/2020", "2020-01-05"),
        ("2563/01/05 อาทิตย์", "2020-01-05"),
    ],
)
def test_a_day_of_line_is_read_as_each_phone_writes_it(tmp_path: Path, days: str, expected: str) -> None:
    lines = "午後9:05\tMei\tはい\n9:06 PM\tMei\tいいえ\n晚上9:07\tMei\t好\n"
    path = written(tmp_path, "a.txt", f"[LINE] Chat history with Mei\n\n{days}\n{lines}")
    assert [time for _, time, _, _ in read(path).turns] == [f"{expected}T21:0{minute}:00" for minute in (5, 6, 7)]


def test_the_weekdays_of_a_talk_tell_its_days_in_a_language_that_is_not_known(tmp_path: Path) -> None:
    days = "".join(f"{name}, {day}\n10:20\tMei\tHi\n" for name, day in (("nde", "3/1/2020"), ("sob", "4/1/2020"), ("nde", "10/1/2020")))
    found = read(written(tmp_path, "a.txt", f"[LINE] Mei\n\n{days}"))
    assert [time[:10] for _, time, _, _ in found.turns] == ["2020-01-03", "2020-01-04", "2020-01-10"]


@pytest.mark.parametrize("space", ["\t", "    "])
def test_the_tabs_of_a_talk_may_have_become_spaces(tmp_path: Path, space: str) -> None:
    lines = ["2020/01/05(日)", f"21:05{space}佐藤 花子{space}10:30 駅 集合", f"21:06{space}健太{space}[写真]"]
    found = read(written(tmp_path, "a.txt", "\n".join(["[LINE] 花見のトーク履歴", "", *lines])))
    assert (texts(found), found.left_out) == ([("佐藤 花子", "10:30 駅 集合")], {"photos": 1})


def test_names_with_spaces_are_told_apart_by_what_messages_begin_with(tmp_path: Path) -> None:
    said = [(f"佐藤 {name}", text) for name in ("花子", "健太") for text in ("はい そう", "明日 行く", "駅 で", "またね ほんと")]
    said += [("Bob", f"I see {number}") for number in range(4)]
    said += [("Bob", text) for text in ("Yes of course", "No thanks", "Well now", "What a day", "写真撮った")]
    notices = [
        "21:50 佐藤 花子がメッセージの送信を取り消しました",
        "21:51 佐藤 花子がさくらを招待しました。",
        "21:52 佐藤 花子がさくらを退会させました。",
    ]
    lines = [f"21:{number:02} {name} {text}" for number, (name, text) in enumerate(said)]
    found = read(written(tmp_path, "a.txt", "\n".join(["2020.01.05 日曜日", *lines, *notices, ""])))
    assert (texts(found), found.left_out) == (said, {"deleted messages": 1, "notices": 2})


def test_a_name_with_a_space_is_told_by_what_is_no_text_and_a_known_one_may_say_nothing_or_what_a_notice_says(tmp_path: Path) -> None:
    lines = [
        "Ken Ito 元気？",
        "Ken Ito メッセージの送信を取り消しました",
        "父 うん 行く",
        "父 スタンプ",
        "父 うん 10時",
        "父 うん またね",
        "Ken Ito よかった",
    ]
    lines += ["Ken Ito\n一行目は空", "Ken Ito 花見に参加しました", "Ken Itoが参加しました。"]
    chat = "2020.01.05 日曜日\n" + "".join(f"21:{number:02} {line}\n" for number, line in enumerate(lines))
    found = read(written(tmp_path, "a.txt", chat))
    assert texts(found) == [
        ("Ken Ito", "元気？"),
        ("父", "うん 行く"),
        ("父", "うん 10時"),
        ("父", "うん またね"),
        ("Ken Ito", "よかった"),
        ("Ken Ito", "一行目は空"),
        ("Ken Ito", "花見に参加しました"),
    ]
    assert found.left_out == {"deleted messages": 1, "stickers": 1, "notices": 1}


def test_a_further_line_of_a_message_may_begin_with_a_time_where_single_spaces_separate_the_columns(tmp_path: Path) -> None:
    lines = """2020.01.05 日曜日
08:01 健太 今日の予定
10:00 駅集合
12:00 ランチ 予約済み
8:03 発なら 間に合う
08:04 さくら 了解
08:05 健太 寝坊 しないで
19:31 さくら 楽しかった ね
21:32 健太 明日は
9:00 起床
10:15 さくら と会う
21:33 さくら 10:15 でいいよ
21:34 健太 うん
21:36 田中 私も 行く
21:37 健太がさくらを招待しました。
2020.01.06 月曜日
00:01 さくら おやすみ"""
    found = read(written(tmp_path, "a.txt", lines))
    assert texts(found) == [
        ("健太", "今日の予定\n10:00 駅集合\n12:00 ランチ 予約済み\n8:03 発なら 間に合う"),
        ("さくら", "了解"),
        ("健太", "寝坊 しないで"),
        ("さくら", "楽しかった ね"),
        ("健太", "明日は\n9:00 起床\n10:15 さくら と会う"),
        ("さくら", "10:15 でいいよ"),
        ("健太", "うん"),
        ("田中", "私も 行く"),
        ("さくら", "おやすみ"),
    ]
    assert (found.left_out, found.refused) == ({"notices": 1}, [])


@pytest.mark.parametrize("space", ["\t", "    "])
def test_a_further_line_with_a_time_and_the_columns_of_a_message_is_told_by_its_clock_and_its_form(tmp_path: Path, space: str) -> None:
    lines = """2025/11/18(火)
午前8:02|けん|今日の予定は
12:30|ランチ
22:15|夜食|ラーメン
午前8:05|花子|"はい
次
午後9:00|花子|寝る"
午前8:06|けん|うん
2025/11/19(水)
午後9:01|花子|表|a|b
午前8:30|朝食|パン
午後10:15|夜食|ラーメン
午後9:05|けん|はい
午後9:10|さくらが参加しました。""".replace("|", space)
    found = read(written(tmp_path, "a.txt", lines))
    assert texts(found) == [
        ("けん", f"今日の予定は\n12:30{space}ランチ\n22:15{space}夜食{space}ラーメン"),
        ("花子", f"はい\n次\n午後9:00{space}花子{space}寝る"),
        ("けん", "うん"),
        ("花子", f"表{space}a{space}b\n午前8:30{space}朝食{space}パン\n午後10:15{space}夜食{space}ラーメン"),
        ("けん", "はい"),
    ]
    assert (found.left_out, found.refused) == ({"notices": 1}, [])


def test_one_line_with_a_tab_does_not_make_tabs_the_columns_of_a_talk(tmp_path: Path) -> None:
    lines = ["2025.11.18 火曜日", "21:01 花子 これ", "22:15\t夜食\tラーメン", "21:02 健太 はい", "21:03 花子 うん"]
    found = read(written(tmp_path, "a.txt", "\n".join(lines)))
    assert texts(found) == [("花子", "これ\n22:15\t夜食\tラーメン"), ("健太", "はい"), ("花子", "うん")]


def test_a_clock_that_is_set_back_makes_no_message_a_further_line(tmp_path: Path) -> None:
    said = [(hour, minute, name) for hour in (1, 1, 2) for minute in range(1, 56, 3) for name in ("Bob", "Mei")]
    lines = [f"{hour}:{minute:02} {name} {number} was said" for number, (hour, minute, name) in enumerate(said)]
    found = read(written(tmp_path, "a.txt", "\n".join(["2020.10.25 Sunday", *lines])))
    assert [name for name, _ in texts(found)] == [name for _, _, name in said]


@pytest.mark.parametrize(
    "lines",
    [
        "2024/05/05 集合は朝\n2024/05/06(月) 帰る",
        "2024/05/05\n以上",
        "2024/05/05(日)\nだよ",
        "2024/05/05",
        "2024/05/05(日)",
        "2019/01/01(火)",
    ],
)
def test_a_date_that_somebody_writes_is_no_line_of_a_day(tmp_path: Path, lines: str) -> None:
    said = f"[LINE] 健太\n\n2024/05/01(水)\n21:03\t健太\t予定は\n{lines}\n21:04\tさくら\tうん\n"
    said += "2024/05/02(木)\n9:00\tさくら\tおはよう\n2024/05/03(金)\n9:00\tさくら\tはい\n"
    found = read(written(tmp_path, "a.txt", said))
    assert [(time, text) for _, time, _, text in found.turns] == [
        ("2024-05-01T21:03:00", f"予定は\n{lines}"),
        ("2024-05-01T21:04:00", "うん"),
        ("2024-05-02T09:00:00", "おはよう"),
        ("2024-05-03T09:00:00", "はい"),
    ]


SAID_ON_DAYS = """{first}
20:01\tKen\tおはよう
20:02\tAnn\tはい

{second}
20:01\tKen\t二日目
20:02\tAnn\tそう

{third}
20:01\tKen\t三日目
"""


@pytest.mark.parametrize(
    ("first", "second", "third", "expected"),
    [
        ("2024/05/03(金)", "2024/05/02(木)", "2024/05/01(水)", ["2024-05-03", "2024-05-02", "2024-05-01"]),
        ("2014/05/01(木)", "2024/05/02(木)", "2023/05/03(水)", ["2014-05-01", "2024-05-02", "2023-05-03"]),
        ("Wed, 5/1/2024", "2024/05/02(木)", "2024/05/03(金)", ["2024-05-01", "2024-05-02", "2024-05-03"]),
        ("2024/05/01(水)", "2024/05/02(木)\nここから未読メッセージ", "2024/05/03(金)", ["2024-05-01", "2024-05-02", "2024-05-03"]),
        ("2024/05/01(水)", "2024/05/02(木)\n\n2024/05/03(金)", "2024/05/04(土)", ["2024-05-01", "2024-05-03", "2024-05-04"]),
    ],
)
def test_a_date_below_a_blank_line_begins_a_day_in_any_order(
    tmp_path: Path, first: str, second: str, third: str, expected: list[str]
) -> None:
    found = read(written(tmp_path, "a.txt", "[LINE] Ken\n\n" + SAID_ON_DAYS.format(first=first, second=second, third=third)))
    days = [(expected[0], "おはよう"), (expected[0], "はい"), (expected[1], "二日目"), (expected[1], "そう"), (expected[2], "三日目")]
    assert [(time[:10], text) for _, time, _, text in found.turns] == days


def test_the_days_of_two_talks_in_one_file_are_those_of_each(tmp_path: Path) -> None:
    talk = "[LINE] Ken\n\n" + SAID_ON_DAYS.format(first="2024/05/01(水)", second="2024/05/02(木)", third="2024/05/03(金)")
    found = read(written(tmp_path, "a.txt", talk + talk.replace("[LINE]", "\n[LINE]").replace("20:", "21:")))
    assert [time[8:10] for _, time, _, _ in found.turns] == ["01", "01", "02", "02", "03"] * 2


def test_where_days_have_blank_lines_above_a_date_without_one_is_of_the_message_and_what_follows_is_known_by_that_date(
    tmp_path: Path,
) -> None:
    talk = SAID_ON_DAYS.format(first="2024/05/01(水)", second="2024/05/02(木)", third="2024/05/03(金)")
    path = written(tmp_path, "a.txt", "[LINE] Ken\n\n" + talk.replace("二日目", "二日目\n2024/05/20(月)"))
    assert [(time[8:10], text) for _, time, _, text in read(path).turns][2:] == [
        ("02", "二日目\n2024/05/20(月)"),
        ("02", "そう"),
        ("03", "三日目"),
    ]
    keys = [item.row.get("former_keys", []) for item in ROWS[Format.LINE].read(path, NO_OPTIONS, print) if item.row]
    assert keys == [[], [], [], [key_of("line", "Ken", "2024-05-20T20:02", "Ann", "そう", "1")], []]


def test_a_day_may_begin_with_a_notice_that_has_no_time(tmp_path: Path) -> None:
    said = "2024/05/01(水)\n花見へようこそ\n21:03\t健太\tはい\n2024/05/02(木)\nさくらが参加しました。\n9:00\tさくら\tおはよう\n"
    found = read(written(tmp_path, "a.txt", f"[LINE] 花見\n\n{said}"))
    assert [(time, text) for _, time, _, text in found.turns] == [("2024-05-01T21:03:00", "はい"), ("2024-05-02T09:00:00", "おはよう")]


def test_who_has_a_column_of_their_own_speaks_although_the_clock_is_set_back(tmp_path: Path) -> None:
    said = [("01:50 AM", "Kenta", "before"), ("01:10 AM", "Ann", "after"), ("01:20 AM", "Kenta", "yes"), ("03:00 AM", "Ann", "late")]
    found = read(written(tmp_path, "a.txt", "\n".join(["[LINE] Ann", "", "Sun, 11/3/2024", *map("\t".join, said)])))
    assert texts(found) == [(name, text) for _, name, text in said]


@pytest.mark.parametrize(
    "plan",
    [
        "2024/05/18(土)\n10:00 出発\n13:00 昼食\n2024/05/20(月)\n18:00 帰宅",
        "\n2024/05/02(木)\n10:00 出発\n13:00 昼食",
        "\n2024/05/18(土)\n10:00\t美容院\n2024/05/20(月)\n11:00\t歯医者",
        "\n2024/05/18(土)\n出発\n\n2024/05/20(月)\n帰宅",
    ],
)
def test_the_days_and_times_of_a_plan_are_of_its_message(tmp_path: Path, plan: str) -> None:
    said = f"2024/05/01(水)\n20:07\t花\t予定は\n{plan}\n20:09\t健太\tいいね\n20:10\t花\tうん\n\n2024/05/03(金)\n20:08\t健太\tはい\n"
    found = read(written(tmp_path, "a.txt", f"[LINE] 花\n\n{said}"))
    assert [(time[8:10], text) for _, time, _, text in found.turns] == [
        ("01", f"予定は\n{plan}"),
        ("01", "いいね"),
        ("01", "うん"),
        ("03", "はい"),
    ]
    assert found.left_out == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("日記.txt", "2024/05/01(水)\n21:03 から友達と電話した。楽しかった。\n22:00 就寝。\n\n2024/05/02(木)\n7:00 起床\n"),
        ("日記.txt", "2024/05/01(水)\n今日はいい天気。\n7:00 に起きて 散歩した。\n\n2024/05/02(木)\n7:03 に起きて 走った。\n"),
        ("plan.txt", "Travel plan\n\n2024.05.01 水曜日\nメモ\n10:00 東京 発\n12:30 京都 着\n14:00 東京 電話\n"),
        ("day.txt", "2024-05-01\nSlept badly. Then\n9:00 meeting with Ken about tea\n"),
        ("day.md", "2024-05-01\n- 9:00 meeting\n10:31 call Ann back\n11:02 call Ken back\n"),
    ],
)
def test_a_diary_or_a_plan_with_days_and_times_is_no_talk_of_line(tmp_path: Path, name: str, content: str) -> None:
    assert detect_format(written(tmp_path, name, content)) == "text"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "2024/05/01(水)\n21:00\tKen\tはい\n21:05\t花\tうん\n"),
        ("a.txt", "2024.05.01 水曜日\n21:03 Ken はい\n21:04 花 うん\n21:05 Ken では\n"),
        ("[LINE]花.txt", "2024.05.01 水曜日\n21:03 Ken はい\n21:04 花 うん\n"),
        ("a.txt", "Chat history in 花\n2024.05.01 水曜日\n21:03 Ken はい\n21:04 花 うん\n"),
    ],
)
def test_a_talk_of_line_without_its_mark_is_told_by_its_messages_or_its_name(tmp_path: Path, name: str, content: str) -> None:
    assert detect_format(written(tmp_path, name, content)) == "line"


def test_a_quotation_mark_that_is_closed_after_more_blank_lines_than_a_message_has_is_the_writers_own(tmp_path: Path) -> None:
    said = '21:01\tKen\t"開いたまま\n' + "\n" * 20_000 + '閉じた"\n21:02\t花\tはい\n'
    found = read(written(tmp_path, "a.txt", f"[LINE] Ken\n\n2024/05/01(水)\n{said}"))
    assert texts(found) == [("Ken", '"開いたまま'), ("花", "はい")]
    assert "lines after it are not read" in found.refused[0]


def test_what_stands_within_the_quotation_marks_of_a_message_is_of_it_whatever_it_looks_like(tmp_path: Path) -> None:
    said = '8:02\t健太\t"予定\n9:00\t東京\t発\n12:07\t東京\t""着"""\n8:03\t花子\t"うん\n8:04\t花子\t"はい\n\nでは"\n'
    found = read(written(tmp_path, "a.txt", f"[LINE] 旅行\n\n2024/05/01(水)\n{said}"))
    assert texts(found) == [("健太", '予定\n9:00\t東京\t発\n12:07\t東京\t"着"'), ("花子", '"うん'), ("花子", "はい\n\nでは")]


def test_a_quotation_mark_that_is_not_closed_by_itself_is_the_writers_own(tmp_path: Path) -> None:
    said = '2024/05/01(水)\n21:08\t健太\t"a\nb" c\n21:09\t健太\t "空白から"\n'
    assert texts(read(written(tmp_path, "a.txt", f"[LINE] 健太\n\n{said}"))) == [("健太", '"a\nb" c'), ("健太", '"空白から"')]


def test_quotation_marks_around_messages_of_the_talk_are_the_writers_own(tmp_path: Path) -> None:
    said = [
        ("21:01", "健太", '"5'),
        ("21:02", "花子", "やあ"),
        ("21:03", "健太", 'これは24"'),
        ("21:04", "花子", '"開いたまま'),
        ("21:06", "健太", "はい"),
        ("21:07", "健太", '"'),
        ("21:08", "健太", '"'),
    ]
    lines = ["[LINE] 健太", "", "2024/05/01(水)", *map("\t".join, said), "", "2024/05/02(木)", '21:07\t花子\tでは"']
    assert texts(read(written(tmp_path, "a.txt", "\n".join(lines)))) == [*((name, text) for _, name, text in said), ("花子", 'では"')]


def test_dates_within_quotation_marks_begin_no_days(tmp_path: Path) -> None:
    said = (
        '21:01\t健太\t"予定\n\n2024/05/05(日)\n9:00 集合\n\n2024/05/06(月)\n帰る"\n21:02\t花子\tうん\n\n2024/05/02(木)\n21:03\t花子\tはい\n'
    )
    found = read(written(tmp_path, "a.txt", f"[LINE] 健太\n\n2024/05/01(水)\n{said}"))
    assert [(time[:10], text) for _, time, _, text in found.turns] == [
        ("2024-05-01", "予定\n\n2024/05/05(日)\n9:00 集合\n\n2024/05/06(月)\n帰る"),
        ("2024-05-01", "うん"),
        ("2024-05-02", "はい"),
    ]


@pytest.mark.parametrize("text", ["☎ 通話の話をしよう", "☎ キャンセル待ち 03", "☎ Call me later", "☎ 通話は 12:30 から", "☎ 응답해 줘"])
def test_what_people_write_behind_the_sign_of_a_call_is_text(tmp_path: Path, text: str) -> None:
    found = read(written(tmp_path, "a.txt", f"[LINE] Mei\n\n2024/01/02(火)\n9:15\tMei\t{text}\n"))
    assert texts(found) == [("Mei", text)]


@pytest.mark.parametrize(
    "call",
    [
        "☎ 不在着信",
        "☎ キャンセル",
        "☎ 応答なし",
        "☎ 通話時間 1:02:03",
        "☎ Call time 0:45",
        "☎ Canceled call",
        "☎ 未接來電",
        "☎ 您已取消通話",
        "☎ 통화시간 1:05",
    ],
)
def test_a_call_in_the_words_of_line_is_counted(tmp_path: Path, call: str) -> None:
    assert read(written(tmp_path, "a.txt", f"[LINE] Mei\n\n2024/01/02(火)\n9:15\tMei\t{call}\n")).left_out == {"calls": 1}


def test_a_word_for_a_picture_ends_no_name(tmp_path: Path) -> None:
    said = [("Ann", text) for text in ("うん", "写真 スタンプ", "写真 見た", "写真 スタンプ", "写真 みたい")]
    lines = [f"21:{number:02} {name} {text}" for number, (name, text) in enumerate(said, start=1)]
    assert texts(read(written(tmp_path, "a.txt", "\n".join(["2025.01.14 火曜日", *lines])))) == said


def test_the_line_ends_of_a_talk_may_be_those_of_any_system_and_a_line_too_long_is_one_line(tmp_path: Path) -> None:
    said = f"[LINE] 健太\r\r2024/05/01(水)\r21:08\t健太\tはい\r21:09\t健太\t{'長' * 2_100_000}\r21:10\t健太\tうん\r"
    found = read(written(tmp_path, "a.txt", said))
    assert [*dict.fromkeys(time[11:16] for _, time, _, _ in found.turns)] == ["21:08", "21:09", "21:10"]
    assert [reason[2:] for reason in found.refused] == [
        "lines after it are not read (a long line counts in parts): no message of this program is so long."
    ]


LINE_WITHOUT_TEXTS = """[LINE] グループ「山の会」のトーク
保存日時：2024/01/05 12:34

2024/01/02(火)
9:17\tA\t[イベント] 登山
9:18\tA\t[投票] どの山
9:19\tA\t[アルバム] 旅行
9:20\tA\t[ファイル] 地図.pdf
9:26\tB\t[プレゼント]
9:27\tB\t通話時間 1:22
9:28\tB\t不在着信
9:29\t지민이 메시지 보내기를 취소했습니다
9:30\tสมชาย ยกเลิกการส่งข้อความ
9:31\tB\t[至急] 電話ください
9:32\tB\t[ノート] 集合は駅
9:33\tB\t☎ 通話に応答がありませんでした
9:34\tB\t☎ Missed call
9:35\tB\t☎ で話そう、番号は 075-123
9:36\tB\t[スタンプ]かわいい
"""


def test_what_line_writes_for_no_text_is_counted_by_its_kind_and_brackets_of_people_stay(tmp_path: Path) -> None:
    found = read(written(tmp_path, "a.txt", LINE_WITHOUT_TEXTS))
    assert found.left_out == {"events": 1, "polls": 1, "albums": 1, "files": 1, "gifts": 1, "calls": 4, "deleted messages": 2}
    assert found.turns == [
        ("B", "2024-01-02T09:31:00", "LINE グループ「山の会」 2024-01-02", "[至急] 電話ください"),
        ("B", "2024-01-02T09:32:00", "LINE グループ「山の会」 2024-01-02", "[ノート] 集合は駅"),
        ("B", "2024-01-02T09:35:00", "LINE グループ「山の会」 2024-01-02", "☎ で話そう、番号は 075-123"),
        ("B", "2024-01-02T09:36:00", "LINE グループ「山の会」 2024-01-02", "[スタンプ]かわいい"),
    ]


@pytest.mark.parametrize(
    "header",
    [
        "Chat history with 「Mei」",
        "[LINE] Chat mit Mei",
        "[LINE] Riwayat obrolan dengan Mei",
        "[LINE] 「Mei」とのトーク履歴",
        "[LINE] 與Mei的聊天",
        "[LINE] Mei님과 대화한 내용",
        "[LINE] Mei님과의 채팅",
        "[LINE] Mei님과의 대화내용",
    ],
)
def test_a_talk_of_line_has_the_name_in_its_header(tmp_path: Path, header: str) -> None:
    found = read(written(tmp_path, "a.txt", f"{header}\n\n2024/01/02(火)\n9:15\tMei\tはい\n"))
    assert found.turns[0][2] == "LINE Mei 2024-01-02"


def test_a_talk_whose_whole_header_was_its_title_is_known(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "[LINE] Mei님과의 대화내용\n\n2024/01/02(火)\n9:15\tMei\tはい\n")
    (row,) = [item.row for item in ROWS[Format.LINE].read(path, NO_OPTIONS, print) if item.row]
    assert row["former_keys"] == [key_of("line", "Mei님과의 대화내용", "2024-01-02T09:15", "Mei", "はい", "1")]


def test_what_somebody_puts_in_brackets_at_the_end_stays_in_a_chat_of_whatsapp(tmp_path: Path) -> None:
    said = [
        "look at <https://example.com/recipe>",
        "again <https://example.com/recipe>",
        "Hallo <Ce message a été modifié>",
        "Yes <Ce message a été modifié>",
    ]
    chat = "".join(f"05.02.2024, 21:0{number} - Ola: {text}\n" for number, text in enumerate([*said, "Two <This message was edited>"]))
    found = read(written(tmp_path, "a.txt", chat))
    assert [text for _, text in texts(found)] == [*said, "Two"]


def test_a_name_with_an_open_quotation_mark_speaks_in_whatsapp_where_many_messages_have_it(tmp_path: Path) -> None:
    said = ["Ann «Bee: one", "Ann «Bee: two: three", "Ann «Bee:", "Ken changed the subject from “A: b” to “C”", 'Ken changed it to "A: b"']
    chat = "".join(f"05.02.2024, 21:0{number} - {text}\n" for number, text in enumerate(said)).replace("Bee:\n", "Bee:\nfour\n")
    found = read(written(tmp_path, "a.txt", chat))
    assert texts(found) == [("Ann «Bee", "one"), ("Ann «Bee", "two: three"), ("Ann «Bee", "four")]
    assert found.left_out == {"notices": 2}


def test_a_row_is_known_by_the_day_that_its_table_had_before_the_clock_told_it(tmp_path: Path) -> None:
    rows = "AuthorID,Author,Date,Content,Attachments,Reactions\n7,Ann,04/05/2024 20:10,hi,,\n7,Ann,04/05/2024 20:10,hi,,\n"
    path = written(tmp_path, "a.csv", rows)
    found = [item.row for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]
    assert [row["occurred_at"] for row in found] == ["2024-05-04T20:10:00"] * 2
    assert [row["former_keys"] for row in found] == [[key_of("discord", "7", "2024-04-05T20:10:00", "hi", number)] for number in "12"]


def test_a_link_of_telegram_is_written_once(tmp_path: Path) -> None:
    parts = [
        {"type": "link", "text": "https://a.b", "href": "https://a.b"},
        " ",
        {"type": "text_link", "text": "here", "href": "https://c.d"},
    ]
    message = {"id": 1, "type": "message", "date": "2024-01-01T23:30:00", "from": "A", "text": parts}
    found = read(written(tmp_path, "a.json", {"name": "A", "type": "personal_chat", "id": 1, "messages": [message]}))
    assert texts(found) == [("A", "https://a.b here (https://c.d)")]


def test_a_file_that_only_looks_like_a_chat_is_none(tmp_path: Path) -> None:
    diary = "2020/01/05 日記\n\n今日は 10:30 に出た。\n\n10:30 駅\n"
    assert detect_format(written(tmp_path, "日記.txt", diary)) == "text"
    assert detect_format(written(tmp_path, "買い物.txt", "牛乳\n卵\n")) == "text"


WHATSAPP_IOS = """[2/3/24, 9:05:12\u202fPM] Emi: \u200eMessages and calls are end-to-end encrypted.
[2/3/24, 9:05:30\u202fPM] Emi: Dinner on the 14th?
at eight
\u200e[2/3/24, 9:06:00\u202fPM] Ken: \u200eimage omitted
[2/3/24, 9:07:00\u202fPM] Ken: Yes: at Sole \u200e<This message was edited>
[2/13/24, 9:08:00\u202fAM] Emi: \u200eThis message was deleted.
[2/14/24, 9:09:00\u202fAM] Ken: Menu \u200e<attached: 00000012-PHOTO-2024-02-14.jpg>
[2/14/24, 9:10:00\u202fAM] Ken: \u200eMissed voice call
"""
WHATSAPP_ANDROID = """05/02/24, 9:05 pm - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
05/02/24, 9:05 pm - Emi added Ken
05/02/24, 9:06 pm - Emi: Dinner?
06/02/24, 8:06 am - Ken: <Media omitted>
06/02/24, 8:07 am - Ken: IMG-20240206-WA0001.jpg (file attached)
our table
07/02/24, 12:08 am - Emi: You deleted this message
"""
WHATSAPP_UNMARKED = """1/14/24, 1:20 PM - Emi: So: "yes" to all
1/14/24, 1:27 PM - Ken changed the subject from "A: b" to "C"
1/14/24, 1:27 PM - Ken created group “Plan: A”
1/14/24, 1:27 PM - 健太さんがグループ名を「旅行: 京都」から「旅行: 奈良」に変更しました
1/14/24, 1:27 PM - Ken: This message was deleted by admin Emi
1/14/24, 1:27 PM - Ken: Missed voice call
1/14/24, 1:27 PM - Ann "A" Lee: So: “yes
1/14/24, 1:28 PM - Ken: POLL:
Pizza?
OPTION: Yes (1 vote)
1/14/24, 1:29 PM - Ken: location: https://maps.google.com/?q=1,2
1/14/24, 1:30 PM - Ken: live location shared
1/14/24, 1:33 PM - Ken: Waiting for this message. This may take a while.
"""
WHATSAPP_GERMAN = """[28.02.24, 21:05:12] Emi: Essen?
[01.03.24, 08:05:12] Ken: \u200eBild weggelassen
[01.03.24, 08:06:12] Ken: Gut
"""
WHATSAPP_JAPANESE = """2024/02/05 21:05 - メッセージと通話はエンドツーエンドで暗号化されています。
2024/02/05 21:05 - 健太: ただいま
2024/02/05 21:05 - 健太: \u200e画像は含まれていません
2024/02/05 21:05 - 健太: 資料.pdf • \u200e3ページ \u200eドキュメントは含まれていません
2024/02/05 21:05 - 健太: \u200eアンケート:
どこ？
\u200e選択肢: 駅 (1票)
2024/02/05 21:05 - 小明: 這則訊息已刪除
2024/02/05 21:06 - さくら: <メディアは含まれていません>
[2024/02/06 午後9:05:12] さくら: おかえり
"""


@pytest.mark.parametrize(
    ("name", "content", "expected", "left_out"),
    [
        (
            "_chat.txt",
            WHATSAPP_IOS,
            [
                ("Emi", "2024-02-03T21:05:30", "Dinner on the 14th?\nat eight"),
                ("Ken", "2024-02-03T21:07:00", "Yes: at Sole"),
                ("Ken", "2024-02-14T09:09:00", "Menu"),
            ],
            {"calls": 1, "notices": 1, "photos": 2, "deleted messages": 1},
        ),
        (
            "WhatsApp Chat with Emi.txt",
            WHATSAPP_ANDROID,
            [("Emi", "2024-02-05T21:06:00", "Dinner?"), ("Ken", "2024-02-06T08:07:00", "our table")],
            {"notices": 2, "pictures and files": 1, "photos": 1, "deleted messages": 1},
        ),
        ("_chat.txt", WHATSAPP_GERMAN, [("Emi", "2024-02-28T21:05:12", "Essen?"), ("Ken", "2024-03-01T08:06:12", "Gut")], {"photos": 1}),
        (
            "_chat.txt",
            WHATSAPP_JAPANESE,
            [("健太", "2024-02-05T21:05:00", "ただいま"), ("さくら", "2024-02-06T21:05:12", "おかえり")],
            {"notices": 1, "photos": 1, "files": 1, "polls": 1, "deleted messages": 1, "pictures and files": 1},
        ),
        (
            "_chat.txt",
            "[5.2.2024 klo 9.05.12] Emi: Moi\n[17.2.2024 klo 9.05.12] Ken: Hei\n",
            [("Emi", "2024-02-05T09:05:12", "Moi"), ("Ken", "2024-02-17T09:05:12", "Hei")],
            {},
        ),
        ("_chat.txt", "۱۴۰۳/۲/۱۲، ۲۱:۰۳ - علی: سلام\n", [("علی", "2024-05-01T21:03:00", "سلام")], {}),
        (
            "_chat.txt",
            "2024. 2. 5. 오후 9:05 - 민수: 안녕\n2024. 2. 5. 오전 12:05 - 지우: 응\n",
            [("민수", "2024-02-05T21:05:00", "안녕"), ("지우", "2024-02-05T00:05:00", "응")],
            {},
        ),
        (
            "_chat.txt",
            "2024년 2월 5일 오후 9:05 - 민수: 안녕\n2024년 2월 6일 오전 12:05 - 지우: 응\n",
            [("민수", "2024-02-05T21:05:00", "안녕"), ("지우", "2024-02-06T00:05:00", "응")],
            {},
        ),
        (
            "_chat.txt",
            "[2024/02/05 9:05:12] 健太: \u200eGIFは含まれていません\n[2024/02/05 9:05:13] 健太: \u200e文書は含まれていません\n",
            [],
            {"photos": 1, "files": 1},
        ),
        (
            "_chat.txt",
            WHATSAPP_UNMARKED,
            [("Emi", "2024-01-14T13:20:00", 'So: "yes" to all'), ('Ann "A" Lee', "2024-01-14T13:27:00", "So: “yes")],
            {"polls": 1, "locations": 2, "messages that did not arrive": 1, "notices": 3, "deleted messages": 1, "calls": 1},
        ),
    ],
)
def test_a_chat_of_whatsapp_is_read_whatever_the_phone_speaks(
    tmp_path: Path, name: str, content: str, expected: list[tuple[str, ...]], left_out: dict[str, int]
) -> None:
    found = read(written(tmp_path, name, content))
    assert (found.format, [(source, time, text) for source, time, _, text in found.turns]) == ("whatsapp", expected)
    assert (found.left_out, found.refused) == (left_out, [])


def test_days_of_the_persian_calendar_are_those_of_ours_and_days_of_the_islamic_one_are_refused(tmp_path: Path) -> None:
    days = ["۱۳۹۹/۱۲/۳۰، ۰۹:۰۳", "۱۴۰۰/۱/۱، ۰۹:۰۳", "۱۴۰۳/۲/۱۲،\u200f ۲۱:۰۳", "۱۴۰۴/۱۱/۲۲، ۲۱:۰۳", "۱۴۰۴/۱۲/۳۰، ۲۱:۰۳", "۱۴۴۵/۲/۱۲، ۲۱:۰۳"]
    found = read(written(tmp_path, "_chat.txt", "".join(f"{day} - علی: سلام\n" for day in days)))
    assert [time for _, time, *_ in found.turns] == [
        f"{day}:00" for day in ("2021-03-20T09:03", "2021-03-21T09:03", "2024-05-01T21:03", "2026-02-11T21:03")
    ]
    assert len(found.refused) == 2


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (["1/2/24", "1/3/24", "1/4/24"], "2024-01-02"),  # three days after another, or three months
        (["2/1/24", "13/1/24"], "2024-01-02"),
        (["1/2/24", "1/13/24"], "2024-01-02"),
        (["30/1/24", "1/2/24", "2/2/24"], "2024-01-30"),
    ],
)
def test_which_number_is_the_day_is_decided_from_the_whole_file(tmp_path: Path, days: list[str], expected: str) -> None:
    content = "".join(f"{day}, 9:05 PM - Emi: Hi {number}\n" for number, day in enumerate(days))
    assert read(written(tmp_path, "_chat.txt", content)).turns[0][1] == f"{expected}T21:05:00"


def discord(*messages: dict[str, Any]) -> dict[str, Any]:
    guild, channel = {"id": "1", "name": "居酒屋"}, {"id": "2", "type": "GuildTextChat", "name": "雑談"}
    return {
        "guild": guild,
        "channel": channel,
        "dateRange": {},
        "exportedAt": "x",
        "messages": list(messages),
        "messageCount": len(messages),
    }


def posted(number: int, text: str, **further: Any) -> dict[str, Any]:
    author = {"id": "5", "name": "kenta", "nickname": "健太", "isBot": False}
    at = f"2026-09-30T23:15:{number:02}.123+09:00"
    return {"id": str(number), "type": "Default", "timestamp": at, "content": text, "author": author, "attachments": [], **further}


def telegram(**chat: Any) -> dict[str, Any]:
    return {"name": "Emi", "type": "personal_chat", "id": 42, "messages": [], **chat}


def sent(number: int, text: Any, **further: Any) -> dict[str, Any]:
    at = {"date": f"2024-03-05T21:16:{number:02}", "date_unixtime": str(1_709_640_960 + number)}
    return {"id": number, "type": "message", **at, "from": "Emi", "from_id": "user1", "text": text, **further}


WRITTEN_IN_DISCORD = (
    "Added sugar to the group.",
    "Pinned a message.",
    "Joined the server. Hi!",
    '"Started a call that lasted 1,200 minutes."',
)
OFFICIAL = (
    "アカウント名,さくら堂\r\nタイムゾーン,'+09:00\r\nダウンロード日時,2026/09/15 14:34\r\n送信者タイプ,送信者名,送信日,送信時刻,内容\r\n"
)
EXPORTS: list[tuple[str, Any, list[tuple[Any, ...]], dict[str, int]]] = [
    (
        "discord",
        discord(
            posted(1, "飲み会は新宿で"),
            posted(2, "はい", author={"name": "emi", "nickname": None}, type="Reply", reactions=[{}]),
            posted(3, "", attachments=[{"fileName": "a.PNG"}, {"fileName": "b.pdf"}]),
            posted(4, "joined", type="GuildMemberJoin"),
            posted(5, "", type="Call"),
            posted(6, "", stickers=[{}]),
            posted(7, "", author={"name": "占い", "isBot": True}, embeds=[{"title": "今日", "description": "吉", "fields": [{"name": "色", "value": "青"}]}]),
            posted(8, "", poll={"question": {"text": "?"}}),
            posted(9, "", forwardedMessage={"content": "七時に\n駅", "attachments": []}),
            posted(10, "見て", forwardedMessage={"content": "x", "attachments": [{"fileName": "c.mp4"}]}),
        ),
        [
            ("健太", "2026-09-30T23:15:01.123000+09:00", "Discord 居酒屋 #雑談 2026-09-30", "飲み会は新宿で"),
            ("emi", "2026-09-30T23:15:02.123000+09:00", "Discord 居酒屋 #雑談 2026-09-30", "はい"),
            ("占い", "2026-09-30T23:15:07.123000+09:00", "Discord 居酒屋 #雑談 2026-09-30", "今日\n吉\n色: 青"),
            ("健太", "2026-09-30T23:15:09.123000+09:00", "Discord 居酒屋 #雑談 2026-09-30", "> 七時に\n> 駅"),
            ("健太", "2026-09-30T23:15:10.123000+09:00", "Discord 居酒屋 #雑談 2026-09-30", "見て"),
        ],
        {
            "reactions": 1,
            "photos": 1,
            "files": 1,
            "notices": 1,
            "calls": 1,
            "stickers": 1,
            "polls": 1,
            "forwarded messages beside a text": 1,
            "videos": 1,
        },
    ),
    (
        "discord",
        ('AuthorID,Author,Date,Content,Attachments,Reactions\n"5","kenta","2026-09-30T20:15:30.1230000+09:00","はい\nどうぞ","",""\n'
        '"5","kenta","05-Jan-24 10:20 PM","","https://cdn/a.png?x=1","👍 (1)"\n"6","emi","05-Jan-24 10:21 PM","どうも","",""\n'),
        [
            ("kenta", "2026-09-30T20:15:30.123000+09:00", "Discord chat 2026-09-30", "はい\nどうぞ"),
            ("emi", "2024-01-05T22:21:00+09:00", "Discord chat 2024-01-05", "どうも"),
        ],
        {"photos": 1, "reactions": 1},
    ),
    (
        "discord",
        "AuthorID,Author,Date,Content\n"
        + "".join(f"5,kenta,2026-09-30T20:15:{number}+09:00,{text}\n" for number, text in enumerate(WRITTEN_IN_DISCORD, start=17)),
        [
            ("kenta", "2026-09-30T20:15:17+09:00", "Discord chat 2026-09-30", "Added sugar to the group."),
            ("kenta", "2026-09-30T20:15:19+09:00", "Discord chat 2026-09-30", "Joined the server. Hi!"),
        ],
        {"notices": 1, "calls": 1},
    ),
    (
        "discord",
        "AuthorID,Author,Date,Content\n5,kenta,05/04/2024 21:03,a\n5,kenta,06/04/2024 09:04,b\n",
        [("kenta", "2024-04-05T21:03:00+09:00", "Discord chat 2024-04-05", "a"), ("kenta", "2024-04-06T09:04:00+09:00", "Discord chat 2024-04-06", "b")],
        {},
    ),
    (
        "discord",
        "AuthorID,Author,Date,Content\n5,kenta,05/01/2024 10:20 PM,a\n5,kenta,13/01/2024 10:20 PM,b\n",
        [("kenta", "2024-01-05T22:20:00+09:00", "Discord chat 2024-01-05", "a"), ("kenta", "2024-01-13T22:20:00+09:00", "Discord chat 2024-01-13", "b")],
        {},
    ),
    (
        "line",
        OFFICIAL + 'User,健太,2025/09/18,14:22:59,"予約したい\n明日です"\r\nUser,健太,2025/09/18,14:23:00,写真を送信しました。\r\nUser,健太,2025/09/18,14:23:01,スタンプが送信されました。\r\nUser,健太,2025/09/18,14:23:02,送信が取り消されたメッセージです\r\nUser,健太,2025/09/18,14:23:03,不在着信\r\nUser,健太,2025/09/18,14:23:04,資料を送信しました。\r\nAccount,さくら堂,2025/09/18,14:24:00,承りました\r\n',
        [
            ("健太", "2025-09-18T14:22:59+09:00", "LINE さくら堂 2025-09-18", "予約したい\n明日です"),
            ("健太", "2025-09-18T14:23:04+09:00", "LINE さくら堂 2025-09-18", "資料を送信しました。"),
            ("さくら堂", "2025-09-18T14:24:00+09:00", "LINE さくら堂 2025-09-18", "承りました"),
        ],
        {"photos": 1, "stickers": 1, "deleted messages": 1, "calls": 1},
    ),
    (
        "copilot",
        "CreatedAt,MessageContent,Author,ChatName\n2/17/2026 14:36:11 +09:00,宿は？,user,京都\n2/17/2026 14:36:15 +09:00,伏見です,Copilot,京都\n",
        [
            ("user", "2026-02-17T14:36:11+09:00", "Copilot 京都", "宿は？"),
            ("Copilot", "2026-02-17T14:36:15+09:00", "Copilot 京都", "伏見です"),
        ],
        {},
    ),
    (
        "telegram",
        telegram(messages=[sent(1, ["I ", {"type": "bold", "text": "love"}, " ", {"type": "text_link", "text": "it", "href": "https://c.d"}]), sent(2, "", media_type="sticker", file="s.webp"), sent(3, "", type="service", action="phone_call"), sent(4, "A photo", photo="p.jpg")]),
        [
            ("Emi", "2024-03-05T12:16:01+00:00", "Telegram Emi 2024-03-05", "I love it (https://c.d)"),
            ("Emi", "2024-03-05T12:16:04+00:00", "Telegram Emi 2024-03-05", "A photo"),
        ],
        {"stickers": 1, "calls": 1, "photos": 1},
    ),
    (
        "telegram",
        {
            "about": "x",
            "personal_information": {"first_name": "Ken"},
            "chats": {"about": "y", "list": [telegram(messages=[sent(1, "a")]), {"type": "saved_messages", "id": 7, "messages": [sent(1, "b", date_unixtime=None)]}, telegram(name="Mei", id=8, messages=[sent(1, "c")])]},
        },
        [
            ("Emi", "2024-03-05T12:16:01+00:00", "Telegram Emi 2024-03-05", "a"),
            ("Emi", "2024-03-05T21:16:01+09:00", "Telegram Saved Messages 2024-03-05", "b"),
            ("Emi", "2024-03-05T12:16:01+00:00", "Telegram Mei 2024-03-05", "c"),
        ],
        {},
    ),
    (
        "deepseek",
        [
            {
                "id": "d1",
                "title": "味噌汁",
                "inserted_at": "2025-11-03T20:15:36+08:00",
                "mapping": {
                    "root": {"id": "root", "parent": None, "message": None},
                    "1": {"parent": "root", "message": {"inserted_at": "2025-11-03T20:15:37+08:00", "content": "出汁は？"}},
                    "2": {"parent": "1", "message": {"inserted_at": "2025-11-03T20:15:38+08:00", "content": "捨てた答え"}},
                    "3": {"parent": "1", "message": {"inserted_at": "2025-11-03T20:15:40+08:00", "fragments": [{"type": "THINK", "content": "?"}, {"type": "RESPONSE", "content": "昆布です [citation:1]"}]}},
                },
            }
        ],
        [("user", "2025-11-03T20:15:37+08:00", "d1", "出汁は？"), ("DeepSeek", "2025-11-03T20:15:40+08:00", "d1", "昆布です")],
        {"thoughts": 1, "messages of branches that are not shown": 1},
    ),
    (
        "open-webui",
        [
            {
                "id": "w1",
                "title": "京都",
                "chat": {
                    "models": ["llama3"],
                    "history": {
                        "currentId": "b",
                        "messages": {
                            "a": {"id": "a", "parentId": None, "role": "user", "content": [{"type": "text", "text": "宿は伏見です"}, {"type": "image_url"}], "timestamp": 1_760_000_000},
                            "b": {"id": "b", "parentId": "a", "role": "assistant", "model": "llama3", "content": '<details type="reasoning" done="true">x</details>\n鳥居ですね', "timestamp": 1_760_000_005},
                            "c": {"id": "c", "parentId": "a", "role": "assistant", "content": "別の答え", "timestamp": 1_760_000_009},
                        },
                    },
                },
            }
        ],
        [("user", "2025-10-09T08:53:20+00:00", "w1", "宿は伏見です"), ("llama3", "2025-10-09T08:53:25+00:00", "w1", "鳥居ですね")],
        {"thoughts and tools": 1, "messages of branches that are not shown": 1, "pictures and files": 1},
    ),
    (
        "grok",
        {
            "conversations": [
                {
                    "conversation": {"id": "g", "title": "京都"},
                    "responses": [
                        {"response": {"_id": "1", "message": "宿は？", "sender": "human", "create_time": {"$date": {"$numberLong": "1760000000000"}}}},
                        {"response": {"_id": "2", "message": '伏見です<grok:render type="c"><argument name="id">1</argument></grok:render>', "sender": "ASSISTANT", "steps": [{}], "create_time": {"$date": {"$numberLong": "1760000001000"}}}},
                    ],
                }
            ],
            "projects": [],
        },
        [("user", "2025-10-09T08:53:20+00:00", "g", "宿は？"), ("Grok", "2025-10-09T08:53:21+00:00", "g", "伏見です")],
        {"uses of tools": 1},
    ),
    (
        "gemini",
        [
            {"header": "Gemini アプリ", "title": "送信したメッセージ: 茶の色は？", "time": "2026-03-02T09:15:00Z", "products": ["Gemini アプリ"], "safeHtmlItem": [{"html": "<p>茶色&amp;<b>緑</b>です。</p><p>以上</p>"}]},
            {"header": "Gemini Apps", "title": "Used Gemini Apps", "time": "2026-03-02T09:16:00Z", "products": ["Gemini Apps"]},
            {"header": "Gemini Apps", "title": "Selected preferred draft", "time": "2026-03-02T09:17:00Z", "products": ["Gemini Apps"], "safeHtmlItem": [{"html": "<table><tr><td>緑</td><td>茶</td></tr></table>"}]},
            {"header": "Bard", "title": "Said: x", "time": "2023-03-02T09:17:00Z", "products": ["Bard"], "imageFile": "a.png"},
        ],
        [
            ("user", "2026-03-02T09:15:00+00:00", "Gemini 2026-03-02", "茶の色は？"),
            ("Gemini", "2026-03-02T09:15:00+00:00", "Gemini 2026-03-02", "茶色&緑です。\n以上"),
            ("Gemini", "2026-03-02T09:17:00+00:00", "Gemini 2026-03-02", "緑 茶"),
            ("user", "2023-03-02T09:17:00+00:00", "Gemini 2023-03-02", "x"),
        ],
        {"notices": 2, "contents of files": 1},
    ),
    (
        "vscode-chat",
        {
            "requesterUsername": "ken",
            "responderUsername": "GitHub Copilot",
            "requests": [{"requestId": "r1", "message": {"text": "並列数は4に"}, "response": [{"kind": "toolInvocationSerialized"}, {"value": "4に"}, {"kind": "inlineReference", "inlineReference": {"path": "/src/a.py"}}, {"value": "でしました。"}], "timestamp": 1_760_000_000_000}],
        },
        [("ken", "2025-10-09T08:53:20+00:00", "r1", "並列数は4に"), ("GitHub Copilot", "2025-10-09T08:53:20+00:00", "r1", "4にa.pyでしました。")],
        {"uses of tools": 1},
    ),
    (
        "lm-studio",
        {
            "name": "京都",
            "createdAt": 1_760_000_000_000,
            "pinned": False,
            "messages": [
                {"versions": [{"role": "user", "content": [{"type": "text", "text": "古い"}]}, {"role": "user", "content": [{"type": "text", "text": "宿は？"}]}], "currentlySelected": 1},
                {"versions": [{"role": "assistant", "senderInfo": {"senderName": "qwen3"}, "steps": [{"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "?"}]}, {"type": "contentBlock", "content": [{"type": "text", "text": "伏見です"}]}]}], "currentlySelected": 0},
            ],
        },
        [("user", "2025-10-09T08:53:20+00:00", None, "宿は？"), ("qwen3", "2025-10-09T08:53:20+00:00", None, "伏見です")],
        {"thoughts": 1, "messages of branches that are not shown": 1},
    ),
    (
        "character-ai",
        {"info": {}, "histories": {"histories": [{"external_id": "h", "created": "2023-01-05T10:00:00Z", "msgs": [{"src": {"name": "ユウ", "is_human": True}, "text": "鍵は壺の中"}, {"src": {"name": "ミレイ", "is_human": False}, "text": "覚えておくね"}]}]}},
        [("ユウ", "2023-01-05T10:00:00+00:00", "h", "鍵は壺の中"), ("ミレイ", "2023-01-05T10:00:00+00:00", "h", "覚えておくね")],
        {},
    ),
    (
        "librechat",
        {
            "conversationId": "l",
            "endpoint": "openAI",
            "title": "京都",
            "messages": [{"messageId": "1", "sender": "User", "isCreatedByUser": True, "text": "宿は？", "createdAt": "2025-10-20T03:04:05.000Z", "children": [{"messageId": "2", "parentMessageId": "1", "sender": "GPT-4o", "text": "", "content": [{"type": "think", "think": "?"}, {"type": "text", "text": {"value": "伏見です"}}], "createdAt": "2025-10-20T03:04:15.000Z"}]}],
        },
        [("user", "2025-10-20T03:04:05+00:00", "l", "宿は？"), ("GPT-4o", "2025-10-20T03:04:15+00:00", "l", "伏見です")],
        {"thoughts": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "content", "turns", "left_out"), EXPORTS, ids=[f"{entry[0]}{number}" for number, entry in enumerate(EXPORTS)]
)
def test_what_a_program_exports_of_chats_becomes_turns(
    tmp_path: Path, kind: str, content: Any, turns: list[tuple[Any, ...]], left_out: dict[str, int]
) -> None:
    name = "chat.csv" if isinstance(content, str) else "chat.json"
    found = read(written(tmp_path, name, content), TOKYO)
    sessions = [known if known is not None else session for (*_, session, _), (_, _, known, _) in zip(found.turns, turns, strict=True)]
    expected = [(source, time, session, text) for (source, time, _, text), session in zip(turns, sessions, strict=True)]
    assert found == Read(kind, expected, left_out, [])
    # The same in a folder and a zip, beside files of other kinds, whatever the order of the fields is.
    written(tmp_path, "folder/inner/" + name, content)
    written(tmp_path, "folder/photos/a.jpg", "")
    written(tmp_path, "folder/README.html", "")
    with zipfile.ZipFile(tmp_path / "folder.zip", "w") as packed:
        for path in (tmp_path / "folder").rglob("*.*"):
            packed.write(path, path.relative_to(tmp_path / "folder").as_posix())
    for place in ("folder", "folder.zip"):
        inside = read(tmp_path / place, TOKYO)
        assert (inside.format, texts(inside)) == (kind, texts(found))
        assert inside.left_out == {**left_out, "other files": 2}


def test_a_day_that_is_none_gives_a_message_of_telegram_no_time_and_its_session_no_day(tmp_path: Path) -> None:
    unread, by_seconds = {"date": "2024-13-45T99:00:00", "date_unixtime": "x"}, {"date": None, "date_unixtime": "1709640960"}
    found = read(written(tmp_path, "result.json", telegram(messages=[sent(1, "a", **unread), sent(2, "b", **by_seconds)])))
    assert [turn[1:] for turn in found.turns] == [
        (None, "Telegram Emi", "a"),
        ("2024-03-05T12:16:00+00:00", "Telegram Emi 2024-03-05", "b"),
    ]


THOUGHT, IN_FENCE = "<think>うーん</think>\n", ":::thinking\nうーん\n:::\n"
ASSISTANTS = {
    "open-webui": lambda asked, answer: {"title": "旅", "chat": {"id": "c", "history": {"messages": {
        "a": {"id": "a", "role": "user", "content": asked, "timestamp": 1_760_000_000},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "content": answer, "timestamp": 1_760_000_005},
    }}}},
    "deepseek": lambda asked, answer: [{"id": "c", "inserted_at": "2025-10-20T10:00:00+08:00", "mapping": {
        "1": {"message": {"inserted_at": "2025-10-20T10:00:00+08:00", "fragments": [{"type": "REQUEST", "content": asked}]}},
        "2": {"parent": "1", "message": {"inserted_at": "2025-10-20T10:00:05+08:00", "fragments": [{"type": "RESPONSE", "content": answer}]}},
    }}],
    "librechat": lambda asked, answer: {"conversationId": "c", "endpoint": "x", "messages": [
        {"messageId": "1", "isCreatedByUser": True, "text": asked}, {"messageId": "2", "sender": "R1", "text": answer},
    ]},
    "lm-studio": lambda asked, answer: {"createdAt": 1_760_000_000_000, "messages": [
        {"versions": [{"role": role, "content": [{"type": "text", "text": text}]}]} for role, text in (("user", asked), ("assistant", answer))
    ]},
}  # fmt: skip


@pytest.mark.parametrize(("program", "thought"), [*((program, THOUGHT) for program in ASSISTANTS), ("librechat", IN_FENCE)])
def test_what_a_model_thought_before_it_answered_is_counted_and_what_a_person_wrote_stays(
    tmp_path: Path, program: str, thought: str
) -> None:
    found = read(written(tmp_path, "chat.json", ASSISTANTS[program](f"{thought}とは？", f"{thought}答えです")))
    assert (found.format, [text for *_, text in found.turns]) == (program, [f"{thought}とは？", "答えです"])
    assert found.left_out == {"thoughts": 1}


def test_a_picture_of_gemini_is_counted_once(tmp_path: Path) -> None:
    def activity(title: str, **further: Any) -> dict[str, Any]:
        return {
            "header": "Gemini アプリ",
            "title": title,
            "time": "2025-10-20T03:04:05Z",
            "safeHtmlItem": [{"html": "<p>計画</p>"}],
            **further,
        }

    prompt = activity("送信したメッセージ: これは？", time="2025-10-20T03:05:05Z", imageFile="a.jpg", attachedFiles=["a.jpg", "b.pdf"])
    found = read(written(tmp_path, "MyActivity.json", [prompt]))
    assert texts(found) == [("user", "これは？"), ("Gemini", "計画")]
    assert found.left_out == {"contents of files": 2}


@pytest.mark.parametrize(
    ("content", "edited_at"),
    [
        (discord(posted(1, "飲み会は渋谷で", timestampEdited="2026-09-30T23:20:00+09:00")), "2026-09-30T23:20:00+09:00"),
        (telegram(messages=[sent(1, "八時で", edited="2024-03-05T21:20:00", edited_unixtime="1709641200")]), "2024-03-05T12:20:00+00:00"),
        (telegram(messages=[sent(1, "八時で", edited="2024-03-05T21:20:00")]), "2024-03-05T21:20:00+09:00"),
    ],
)
def test_a_message_says_when_it_was_edited(tmp_path: Path, content: Any, edited_at: str) -> None:
    path = written(tmp_path, "result.json", content)
    (row,) = (item.row for item in ROWS[detect_format(path)].read(path, TOKYO, print) if item.row)
    assert row["metadata"]["origin"]["edited_at"] == edited_at


def with_odd_values(content: Any) -> Iterator[Any]:
    """The JSON with each of its values in turn replaced by those of other kinds."""
    places = list(content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ())
    for place, value in places:
        for odd in ([], {"a": None}, 7, None, *with_odd_values(value)):
            changed = content.copy()
            changed[place] = odd
            yield changed


@pytest.mark.parametrize("content", [content for _, content, *_ in EXPORTS if not isinstance(content, str)])
def test_an_odd_value_anywhere_in_an_export_keeps_no_other_message_from_being_read(tmp_path: Path, content: Any) -> None:
    kind = detect_format(written(tmp_path, "chat.json", content))
    for changed in with_odd_values(content):
        for item in ROWS[kind].read(written(tmp_path, "chat.json", changed), NO_OPTIONS, print):
            assert item.row or item.left_out or item.refused


@pytest.mark.parametrize("last", [["b"], {"b": 1}, 7, None])
def test_a_chat_whose_last_message_is_named_by_no_text_ends_with_the_latest(tmp_path: Path, last: object) -> None:
    (chat,) = json.loads(json.dumps(next(content for kind, content, *_ in EXPORTS if kind == "open-webui")))
    chat["chat"]["history"]["currentId"] = last
    found = read(written(tmp_path, "chat.json", [chat]))
    assert [turn[-1] for turn in found.turns] == ["宿は伏見です", "別の答え"]


def test_an_answer_whose_clock_is_behind_that_of_its_question_ends_the_chat(tmp_path: Path) -> None:
    asked = {"messageId": "1", "sender": "User", "isCreatedByUser": True, "text": "宿は？", "createdAt": "2025-10-20T03:04:05.900Z"}
    answer = {"messageId": "2", "parentMessageId": "1", "sender": "GPT", "text": "伏見", "createdAt": "2025-10-20T03:04:05.100Z"}
    found = read(written(tmp_path, "chat.json", {"conversationId": "c", "endpoint": "x", "messages": [asked, answer]}))
    assert ([text for *_, text in found.turns], found.left_out) == (["宿は？", "伏見"], {})


def test_an_assistant_has_its_role_and_a_person_has_the_name_that_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "chat.json", next(content for kind, content, *_ in EXPORTS if kind == "librechat"))
    rows = [item.row for item in ROWS[detect_format(path)].read(path, ReadOptions(me="旅人"), print) if item.row]
    assert [(row["source"], row.get("role")) for row in rows] == [("旅人", None), ("GPT-4o", "assistant")]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("a.txt", "[LINE] さくらとのトーク履歴\n保存日時：2026/11/18 12:00\n\n2026/11/17(火)\n21:30\t健太\tうん\n21:30\t健太\tうん\n", "21:30\t健太\tうん\n\n2026/11/18(水)\n21:30\t健太\tうん\n"),
        ("_chat.txt", "[1/13/24, 9:05:12 PM] Emi: Yes\n[1/13/24, 9:05:12 PM] Emi: Yes\n", "[1/13/24, 9:05:12 PM] Emi: Yes\n[1/14/24, 9:05:12 PM] Emi: Yes\n"),
        ("a.csv", "AuthorID,Author,Date,Content\n5,k,2026-09-30T20:15:30+09:00,はい\n5,k,2026-09-30T20:15:30+09:00,はい\n", "5,k,2026-09-30T20:15:30+09:00,はい\n5,k,2026-10-01T20:15:30+09:00,はい\n"),
    ],
)  # fmt: skip
def test_a_longer_export_has_the_keys_of_the_shorter_one_and_of_equal_messages_each_its_own(
    tmp_path: Path, name: str, first: str, second: str
) -> None:
    def keys(folder: str, content: str) -> list[str]:
        path = written(tmp_path / folder, name, content)
        return [item.row["key"] for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]

    shorter, longer = keys("first", first), keys("second", first + second)
    assert (len(shorter), len(longer), len(set(longer))) == (2, 4, 4)
    assert longer[:2] == shorter


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "memory.txt",
            "```\n[2025-01-03] - 猫を飼っている。\n[unknown] - 苺が好き。\n```\n",
            [("2025-01-03", "猫を飼っている。"), (None, "苺が好き。")],
        ),
        (
            "memory.md",
            "## 好み\n- 苺が好き\n- 左利き\n  (生まれつき)\n\n## 家族\n・妹がいる\n",
            [(None, "苺が好き"), (None, "左利き\n(生まれつき)"), (None, "妹がいる")],
        ),
        (
            "memory.txt",
            "1. [2024-04-05]. Likes tea.\n2. [2024-06-10]. Has a cat.\n",
            [("2024-04-05", "Likes tea."), ("2024-06-10", "Has a cat.")],
        ),
        ("a.json", ["[2025-01-03] - 苺が好き", "左利き"], [("2025-01-03", "苺が好き"), (None, "左利き")]),
        ("a.json", {"memories": ["苺が好き", "左利き"]}, [(None, "苺が好き"), (None, "左利き")]),
        (
            "a.json",
            {"memories": [{"text": "苺が好き", "date": "2025-01-03"}, {"text": "左利き", "date": "2025/1/4"}]},
            [("2025-01-03", "苺が好き"), ("2025/1/4", "左利き")],
        ),
        (
            "a.txt",
            "Here's what I remember about you:\n\n- Has a cat\n  - It is called Tama\n\n**Work**\n1. Baker\n",
            [(None, "Has a cat\n- It is called Tama"), (None, "Baker")],
        ),
        (
            "a.txt",
            "[2025-01-03] - Tea.\n[2025-01] - Coffee.\n【2025年2月】 日本茶\n[2025-13] - Milk.[2025-03] - Juice.\n",
            [("2025-01-03", "Tea."), ("2025-01", "Coffee."), ("2025-02", "日本茶"), (None, "[2025-13] - Milk."), ("2025-03", "Juice.")],
        ),
        (
            "a.txt",
            "[2025-01-03] - A.\n[2024] - B.\n[2023年] - C.\n[2022-12-31, 2023-01-01] - D.\n[令和5年6月7日] - E.\n[2021 春] - F.\n[childhood] - G.\n[2025-02-30] - H.\n",
            [
                ("2025-01-03", "A."),
                ("2024", "B."),
                ("2023年", "C."),
                ("2022-12-31, 2023-01-01", "D."),
                ("令和5年6月7日", "E."),
                ("2021春", "F."),
                (None, "[childhood] - G."),
                (None, "[2025-02-30] - H."),
            ],
        ),
        (
            "a.txt",
            "・2025-04-06 犬を飼い始めた。\n・（令和7年5月）手術。\n３．左利き。\n（４）大工。\n⑤苺が好き。\n・2025-05-07：入院。 2025-06-08：退院。\n",
            [
                ("2025-04-06", "2025-04-06 犬を飼い始めた。"),
                ("令和7年5月", "手術。"),
                (None, "左利き。"),
                (None, "大工。"),
                (None, "苺が好き。"),
                ("2025-05-07", "入院。"),
                ("2025-06-08", "退院。"),
            ],
        ),
        (
            "a.txt",
            "【仕事】\n・大工\n・道具が好き\n【2025年1月】\n・犬を飼う\n",
            [(None, "大工"), (None, "道具が好き"), (None, "犬を飼う")],
        ),
        ("a.txt", "[2025-01-03] - Tea.[2025-01-04] - Coffee.\n", [("2025-01-03", "Tea."), ("2025-01-04", "Coffee.")]),
        (
            "a.txt",
            "- [2025-01-03] - saw [Windows 2000] - nice\n- [2025-01-04] - tea",
            [("2025-01-03", "saw [Windows 2000] - nice"), ("2025-01-04", "tea")],
        ),
        ("a.txt", '["[2025-01-03] - 苺が好き", "左利き"]', [("2025-01-03", "苺が好き"), (None, "左利き")]),
        ("a.md", '```json\n{"memories": ["苺が好き", "左利き"]}\n```\n', [(None, "苺が好き"), (None, "左利き")]),
        (
            "a.json",
            {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "- [2025-01-03] - 苺が好き\n- 左利き"}]}},
            [("2025-01-03", "苺が好き"), (None, "左利き")],
        ),
        (
            "a.json",
            [{"type": "text", "text": json.dumps({"results": [{"id": 1, "memory": "苺が好き", "created_at": "2025-01-03"}]})}],
            [("2025-01-03", "苺が好き")],
        ),
        (
            "a.json",
            {"content": [{"type": "text", "text": "two"}], "structuredContent": {"memories": ["苺が好き", "左利き"]}, "isError": False},
            [(None, "苺が好き"), (None, "左利き")],
        ),
    ],
)
def test_a_list_of_facts_is_one_fact_a_line_with_its_day(
    tmp_path: Path, name: str, content: Any, expected: list[tuple[str | None, str]]
) -> None:
    found = read(written(tmp_path, name, content))
    assert (found.format, [(time, text) for _, time, _, text in found.turns]) == ("facts", expected)


def test_facts_are_known_by_the_keys_that_they_had_while_their_times_were_not_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "a.txt",
        "- [2025-01-03] - 苺が好き\n- [2023年] - 左利き\n- 2025-04-06 犬を飼う\n- [2025-02-30] - 大工\n- [2025-01-03](https://example.com) 写真\n",
    )
    rows = [item.row for item in ROWS[Format.FACTS].read(path, NO_OPTIONS, print) if item.row]
    former = [None, ("[2023年] - 左利き", ""), ("2025-04-06 犬を飼う", ""), ("大工", ""), ("(https://example.com) 写真", "2025-01-03")]
    assert [row.get("former_keys") for row in rows] == [[key_of("facts", *said)] if said else None for said in former]


@pytest.mark.parametrize(
    ("name", "content", "expected", "sentences"),
    [
        (
            "a.txt",
            "これまでに伺ったことです。\n\n```text\n[2025-01-03] - 猫を飼っている。\n[2025-02-04] - 左利き。\n```\n\nほかに知りたいことはありますか？\n",
            [("2025-01-03", "猫を飼っている。"), ("2025-02-04", "左利き。")],
            2,
        ),
        (
            "a.md",
            "Sure! I remember the following facts.\n- Has a cat,\ncalled Tama\n- Baker\n\nIs there anything to forget?",
            [(None, "Has a cat,\ncalled Tama"), (None, "Baker")],
            2,
        ),
        (
            "a.md",
            "**Work**\n\nA nurse in Kyoto.\n\n**Personal**\n\n- A cat\n- Tea\n\n[2025-01-03] - Berries\n[2025-01-04] - Crab\n\nAnything else?",
            [(None, "A nurse in Kyoto."), (None, "A cat"), (None, "Tea"), ("2025-01-03", "Berries"), ("2025-01-04", "Crab")],
            1,
        ),
        (
            "a.md",
            "Here is what I know.\n\n**Work context**\n\nA nurse.\n\nWorks nights.\n\n**Brief history**\n\n*Recent months*\n\nPlans a trip.",
            [(None, "A nurse."), (None, "Works nights."), (None, "Plans a trip.")],
            2,
        ),
        ("a.md", "**Facts**\n\nThis is what I remember\n\n- A cat\n- Tea", [(None, "A cat"), (None, "Tea")], 1),
        ("a.txt", 'Here are the memories:\n{"memories": ["a cat", "a dog"]}\n', [(None, "a cat"), (None, "a dog")], 1),
        ("a.txt", "あなたについて覚えていることです。\n\n- 苺が好き\n- 左利き\n", [(None, "苺が好き"), (None, "左利き")], 1),
        (
            "a.md",
            "あなたについて覚えていることです。\n\n- 大工\n  - 弟子は三人\n- 左利き\n",
            [(None, "大工\n- 弟子は三人"), (None, "左利き")],
            1,
        ),
        (
            "a.md",
            "# 覚えていること\n\n## 仕事\n- 大工\n  - 弟子は三人\n\n## 家族\n\n## ほか\n- 左利き\n",
            [(None, "大工\n- 弟子は三人"), (None, "左利き")],
            2,
        ),
        (
            "a.md",
            "Here's what I know about you so far:\n\n- Has a cat\n  - Tama\n- Baker\n\n# Others\n",
            [(None, "Has a cat\n- Tama"), (None, "Baker")],
            2,
        ),
        ("a.txt", "はい、次のことを覚えています。\n・苺が好き\n・左利き\n\n以上です。", [(None, "苺が好き"), (None, "左利き")], 2),
        ("a.md", "保存されているメモリ：\n\n- 大工\n  - 弟子は三人\n- 左利き\n", [(None, "大工\n- 弟子は三人"), (None, "左利き")], 1),
        ("a.txt", "覚えている内容をお伝えしますね。\n・苺が好き\n・左利き\n", [(None, "苺が好き"), (None, "左利き")], 1),
        ("a.txt", "これまでに保存している内容は以下のとおりです。\n・苺が好き\n・左利き", [(None, "苺が好き"), (None, "左利き")], 1),
        (
            "a.txt",
            "I have the following information about you:\n* Has a cat\n* Baker\n\nAnything else?",
            [(None, "Has a cat"), (None, "Baker")],
            2,
        ),
    ],
)
def test_sentences_around_a_list_of_facts_are_counted(
    tmp_path: Path, name: str, content: str, expected: list[tuple[str | None, str]], sentences: int
) -> None:
    found = read(written(tmp_path, name, content))
    assert (found.format, [(time, text) for _, time, _, text in found.turns]) == ("facts", expected)
    assert found.left_out == {"sentences around a list of facts": sentences}


@pytest.mark.parametrize(
    "note",
    [
        "明日の買い物です。\n\n- 牛乳\n- 卵\n",
        "今日は雨だった。\n[2025-01-03] に買った傘を使った。\n夜は晴れた。\n",
        'The tags of a page:\n\n["tea", "cup"]\n',
        "A note about tea.\n\nIt is long.\n\nI remember it well.\n\n- Green\n- Black\n",
        "I remember what we need for the trip:\n\n- passport\n- towel\n  - the big one\n\nThen we go.\n",
        "# 2025 diary\n\nI know about you and me.\n\n- woke up\n- tea with Ann\n  - she brought cake\n- (2024) was better\n",
        "Ten things that I love about you:\n- your smile\n- your eyes\nYours, Ken",
        "I think of what I know. It is little.\n- tea\n- cups\n",
        "祖父の家のにおいをまだ覚えている。\n\n- 畳\n- 柱時計\n  - 止まったまま\n",
        "あの人のことを覚えている：\n・笑顔\n・声\n\nまた会いたい。",
        "Memories of my father, whom I told about you.\n- his boat\n- his pipe\n",
        "あなたについて考えた。\n・笑顔\n・声\nまた会いたい。",
        "知っている店を書き出す。\n・港の食堂\n・駅前の喫茶店\n",
        "Things to buy before our journey to Kyoto:\n- milk\n- eggs\n",
        "[Smith 2020] On tea. Journal of Tea 12.\n[Jones 2021] On coffee. Journal of Coffee 4.\n",
        "【2025年5月号】町内会だより",
        "[Windows 2000] is slow.\n",
    ],
)
def test_a_note_with_a_list_in_it_is_a_text(tmp_path: Path, note: str) -> None:
    assert detect_format(written(tmp_path, "note.md", note)).value == "text"


def test_a_channel_that_discord_chat_exporter_wrote_as_text_is_refused_with_the_form_that_is_read(tmp_path: Path) -> None:
    between = "=" * 62
    said = "[2025/11/18 20:01] kenta\nおはよう\n\n{Attachments}\nhttps://cdn/x.png\n"
    found = read(written(tmp_path, "a.txt", f"{between}\r\nGuild: 釣り部\r\nChannel: 一般 / 雑談\r\n{between}\r\n\r\n{said}"))
    assert found == Read(
        "discord", [], {}, ["a.txt is not read: it is the page of a chat, by DiscordChatExporter. Export the chat as JSON."]
    )


def test_what_is_forwarded_in_telegram_is_a_quotation_unless_it_is_the_speakers_own(tmp_path: Path) -> None:
    messages = [sent(1, "七時に", forwarded_from="健太"), sent(2, "駅", forwarded_from="Emi"), sent(3, "はい")]
    found = read(written(tmp_path, "result.json", telegram(messages=messages)))
    assert texts(found) == [("Emi", "> 七時に"), ("Emi", "駅"), ("Emi", "はい")]


def test_what_another_program_writes_is_claimed_by_none(tmp_path: Path) -> None:
    strangers: list[Any] = [
        {"content": [{"type": "text", "text": "Hello."}], "isError": False},
        [{"type": "text", "text": "Hello."}],
        [[[]]],
        {"messages": [{"text": "x"}], "title": "t"},
        [{"mapping": {"a": {"message": {"body": "x"}}}}],
        {"messages": []},
        [{"role": "user", "content": "x"}],
        {"conversations": []},
        {"requests": []},
        {"memories": []},
    ]
    for number, stranger in enumerate(strangers[:-1]):
        with pytest.raises(InvalidInput, match="is not recognized"):
            print(detect_format(written(tmp_path, f"{number}.json", stranger)))


HOSTILE = {
    "depth.json": '{"guild": {}, "channel": ' + "[" * 200_000,
    "lists.json": '{"messages": ' + "[" * 100_000 + "]" * 100_000 + ', "title": ""}',
    "cut.json": '{"guild": {}, "channel": {}, "messages": [{"content": "a',
    "quote.txt": "[LINE] a\n\n2020/01/01(水)\n" + '10:00\ta\t"\nb\n' * 20_000,
    "line.txt": "[LINE] a\n\n2020/01/01(水)\n10:00\ta\t" + "b" * 3_000_000,
    "continued.txt": "[LINE] a\n\n2020/01/01(水)\n10:00\ta\tb\n" + "c\n" * 300_000,
    "_chat.txt": "[1/13/24, 9:05:12 PM] Emi: Yes\n" + "[99/99/99, 99:99:99 PM] Emi: Yes\n" * 10_000,
    "cells.csv": "AuthorID,Author,Date,Content\n" + '1,a,2020-01-01T00:00:00Z,"' + "x" * 300_000,
    "answer.json": json.dumps({"content": [{"type": "text", "text": "{\n" * 200_000}]}),
    "entities.json": '{"entities": [{"name": ' * 2_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_was_made_to_be_read_for_ever_is_read_or_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, HOSTILE[name])
    try:
        items = list(ROWS[detect_format(path)].read(path, NO_OPTIONS, print))
    except InvalidInput:
        return
    assert items


@pytest.mark.parametrize(
    "beginning", ["2020.01.05 日曜日\n10:20\tMei\tSo\n10:20\tMei\tHi\n", "2020/01/05 10:20 - Mei: So\n2020/01/05 10:20 - Mei: Hi\n"]
)
def test_a_file_does_not_become_one_endless_message(tmp_path: Path, beginning: str) -> None:
    path = written(tmp_path, "a.txt", beginning + "not said\n" * 20_000 + beginning.replace("Hi", "Bye"))
    found = read(path)
    assert {source for source, _ in texts(found)} == {"Mei"}
    assert max(len(text) for _, text in texts(found)) < 100_000
    assert texts(found)[-1][1] == "Bye"
    assert len(found.refused) == 1
    assert "lines after it are not read" in found.refused[0]


def package(place: Path) -> Path:
    """What Discord sends of an account: a channel as JSON, another one as CSV."""
    folder = place / "package"
    written(folder, "Messages/index.json", {"111": "general in Teyvat", "222": "Direct Message with sakura#0"})
    written(folder, "Messages/c111/channel.json", {"id": "111", "type": 0, "name": "general", "guild": {"id": "9", "name": "Teyvat"}})
    row = {"ID": 1001, "Timestamp": "2024-01-02 15:04:05", "Contents": "お茶を飲んだ", "Attachments": ""}
    written(
        folder,
        "Messages/c111/messages.json",
        [row, {**row, "ID": 1002, "Contents": "", "Attachments": "https://cdn/a.png?ex=1 https://cdn/b.pdf"}],
    )
    written(folder, "Messages/c222/channel.json", {"id": "222", "type": "DM", "recipients": ["1", "2"]})
    csv = 'ID,Timestamp,Contents,Attachments\r\n2001,2020-08-25 22:54:05.726000+00:00,"明日、\n会おう",\r\n2002,2020-08-25 22:54:06+00:00,"はい",\r\n'
    written(folder, "Messages/c222/messages.csv", csv)
    written(folder, "Account/user.json", {"id": "5", "username": "kenta_88", "global_name": "健太"})
    for number in range(30):
        written(folder, f"Activity/reporting/{number:02}.json", {"event_type": "x"})
        written(folder, f"Messages/c{300 + number}/channel.json", {"id": str(300 + number), "type": "DM"})
        written(folder, f"Messages/c{300 + number}/messages.json", [])
    return folder


def test_the_package_of_discord_is_what_its_owner_said(tmp_path: Path) -> None:
    folder = package(tmp_path)
    packed = tmp_path / "package.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.rglob("*.*"):
            archive.write(path, path.relative_to(folder))
    for place in (folder, packed):
        found = read(place)
        assert (found.format, found.refused) == ("discord", [])
        assert found.turns == [
            ("健太", "2024-01-02T15:04:05+00:00", "Discord Teyvat #general 2024-01-02", "お茶を飲んだ"),
            ("健太", "2020-08-25T22:54:05.726000+00:00", "Discord Direct Message with sakura 2020-08-25", "明日、\n会おう"),
            ("健太", "2020-08-25T22:54:06+00:00", "Discord Direct Message with sakura 2020-08-25", "はい"),
        ]
        assert (found.left_out["photos"], found.left_out["files"]) == (1, 1)
    assert read(folder / "Messages/c222/messages.csv", ReadOptions(me="Ken")).turns[1][0] == "Ken"


def test_what_stands_beside_all_channels_of_a_package_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, opened = Counter[str](), Folder.open
    listed = Folder.names
    monkeypatch.setattr(Folder, "names", lambda self: asked.update(["names"]) or listed(self))
    monkeypatch.setattr(Folder, "open", lambda self, name: asked.update([PurePosixPath(name).name]) or opened(self, name))

    def asked_for(channels: int) -> dict[str, int]:
        folder = package(tmp_path / str(channels))
        for number in range(channels):
            row = {"ID": 3000 + number, "Timestamp": "2024-01-02 15:04:05", "Contents": "はい"}
            written(folder, f"Messages/c{300 + number}/messages.json", [row])
        asked.clear()
        assert len(read(folder).turns) == 3 + channels
        return {name: asked[name] for name in ("names", "index.json", "user.json")}

    assert asked_for(2) == asked_for(30)


def test_a_message_of_the_package_is_the_same_as_in_an_export_of_its_channel(tmp_path: Path) -> None:
    channel = discord({**posted(1, "お茶を飲んだ"), "id": "1001"})
    channel["channel"]["id"] = "111"
    one, other = (
        next(item.row["key"] for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row)
        for path in (package(tmp_path), written(tmp_path, "channel.json", channel))
    )
    assert one == other


def test_the_chats_that_vs_code_keeps_are_read_with_their_changes(tmp_path: Path) -> None:
    request = {"requestId": "r1", "timestamp": 1_760_000_000_000, "message": {"text": "並列数は4に"}, "response": [{"value": "消えた"}]}
    changes = [
        {"kind": 0, "v": {"version": 3, "sessionId": "s1", "creationDate": 1, "responderUsername": "GitHub Copilot", "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [request]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "4に"}, {"kind": "thinking", "value": "?"}], "i": 0},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "しました。"}]},
        {"kind": 1, "k": ["customTitle"], "v": "並列"},
        {"kind": 1, "k": ["requests", 7, "response", "x"], "v": 1},
        {"kind": 3, "k": ["responderUsername"]},
    ]
    written_changes = [json.dumps(change, ensure_ascii=False, separators=(",", ":")) for change in changes]
    found = read(written(tmp_path, "s1.jsonl", "\n".join(written_changes)))
    assert found == (
        "vscode-chat",
        [
            ("user", "2025-10-09T08:53:20+00:00", "s1", "並列数は4に"),
            ("GitHub Copilot", "2025-10-09T08:53:20+00:00", "s1", "4にしました。"),
        ],
        {"thoughts": 1},
        [],
    )
    assert "line 2 is no JSON" in read(written(tmp_path, "broken.jsonl", f"{written_changes[0]}\n{{")).refused[0]


@pytest.mark.parametrize("chat", [{}, {"turn_key": {"chat_id": "c"}}])
def test_a_chat_with_the_newest_first_is_read_from_its_beginning_and_keeps_its_keys(tmp_path: Path, chat: dict[str, Any]) -> None:
    turns = [
        {**chat, "author": {"name": name}, "create_time": f"2024-05-01T12:0{minute}:00Z", "candidates": [{"raw_content": text}], **further}
        for minute, (name, text, further) in enumerate(
            [("ミレイ", "鍵は？", {}), ("健太", "壺の中", {}), ("ミレイ", "箱", {"is_alternative": True})]
        )
    ]
    path = written(tmp_path, "a.json", {"turns": turns[1::-1]})
    rows = [item.row for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]
    longer = written(tmp_path, "b.json", {"turns": turns[::-1]})
    again = [item.row for item in ROWS[detect_format(longer)].read(longer, NO_OPTIONS, print) if item.row]
    assert [row["content"] for row in rows] == ["鍵は？", "壺の中"]
    assert [row["key"] for row in again] == [row["key"] for row in rows]
    assert read(longer).left_out == {"messages of branches that are not shown": 1}


def test_turns_with_the_newest_first_are_known_in_the_session_that_their_newest_named(tmp_path: Path) -> None:
    turns = [
        {
            "turn_key": {"chat_id": "c", "turn_id": f"t{minute}"},
            "author": {"name": name},
            "create_time": f"2024-05-01T12:0{minute}:00Z",
            "candidates": [{"raw_content": text}],
        }
        for minute, (name, text) in enumerate([("ミレイ", "鍵は？"), ("健太", "壺の中"), ("ミレイ", "箱")])
    ]
    path = written(tmp_path, "a.json", {"turns": turns[::-1]})
    rows = [item.row for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]
    session = import_rows.key_of("character-ai", "", "壺の中")
    known = [import_rows.key_of("character-ai", session, f"t{number}") for number in range(2)]
    assert [row["session_id"] for row in rows] == ["c"] * 3
    assert all(key in row["former_keys"] for key, row in zip(known, rows, strict=False))


@pytest.mark.parametrize("chat", [{}, {"chat_id": "c"}])
def test_turns_without_ids_are_known_by_their_places_in_the_file(tmp_path: Path, chat: dict[str, str]) -> None:
    turns = [
        {
            "turn_key": {"chat_id": "c"},
            "author": {"name": name},
            "create_time": f"2024-05-01T12:0{minute}:00Z",
            "candidates": [{"raw_content": text}],
        }
        for minute, (name, text) in enumerate([("ミレイ", "鍵は？"), ("健太", "壺の中"), ("ミレイ", "箱")])
    ]
    path = written(tmp_path, "a.json", {**chat, "turns": turns[::-1]})
    rows = [item.row for item in ROWS[detect_format(path)].read(path, NO_OPTIONS, print) if item.row]
    formerly = chat.get("chat_id") or import_rows.key_of("character-ai", "", "箱")
    assert [row["content"] for row in rows] == ["鍵は？", "壺の中", "箱"]
    assert [row["former_keys"] for row in rows] == [[import_rows.key_of("character-ai", formerly, place)] for place in "321"]
    assert not {row["key"] for row in rows} & {key for row in rows for key in row["former_keys"]}


@pytest.mark.parametrize(
    ("program", "content"),
    [
        ("grok", [{"conversation": {"id": "g"}, "responses": [{"response": {"_id": "1", "message": "宿は？", "sender": "human"}}]}]),
        (
            "character-ai",
            [{"chat_id": "c", "turns": [{"author": {"name": "健太", "is_human": True}, "candidates": [{"raw_content": "宿は？"}]}]}],
        ),
        (
            "vscode-chat",
            {"creationDate": 1, "sessionId": "s", "requests": [{"requestId": "r", "message": {"text": "宿は？"}, "response": []}]},
        ),
    ],
)
def test_conversations_without_what_is_usually_around_them_are_read(tmp_path: Path, program: str, content: Any) -> None:
    found = read(written(tmp_path, "a.json", content))
    assert (found.format, [text for *_, text in found.turns]) == (program, ["宿は？"])
