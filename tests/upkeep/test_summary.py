"""Summaries that are made of the sentences themselves."""

import pytest

from memory_mcp.language.sentences import sentences_of
from memory_mcp.upkeep.extractive_summary import CHARACTERS_LIMIT, Statement, cut, extract, heading

TALK = [
    Statement("おはよう！", "健太"),
    Statement("来週の京都旅行の宿を予約した。金閣寺の近くの旅館だよ。", "健太", 0.8),
    Statement("京都旅行、楽しみ！旅館の夕食は何時から？", "さくら"),
    Statement("旅館の夕食は18時から。京都駅には15時に着く。", "健太"),
    Statement("うん、わかった", "さくら"),
    Statement("さくらは抹茶のアイスが食べたい。", "さくら"),
    Statement("天気予報だと京都は雨らしい。", "健太"),
]


def test_what_most_sentences_are_about_is_said_with_who_said_it_and_greetings_are_not():
    found = extract(TALK)
    assert "健太: 来週の京都旅行の宿を予約した。" in found
    assert "おはよう" not in found
    assert "わかった" not in found


def test_the_sentences_stand_in_their_order_and_none_comes_twice():
    found = extract([*TALK, *TALK], limit=120)
    lines = found.split("\n")
    assert len(lines) >= 2
    assert len(set(lines)) == len(lines)
    places = ["".join(one.text for one in TALK).index(line.partition(": ")[2]) for line in lines]
    assert places == sorted(places)


@pytest.mark.parametrize("limit", [40, 120, 400])
def test_a_summary_keeps_to_its_length(limit):
    said = [Statement(f"{number}番目の話は庭の{name}について長く続いた。", "私") for number, name in enumerate("桜梅桃松竹菊蘭百合" * 10)]
    assert 0 < len(extract(said, limit)) <= limit


def test_what_is_important_comes_before_what_is_not():
    said = [Statement(f"散歩の途中で{thing}を見た。") for thing in ("犬", "猫", "鳥", "魚")]
    important = Statement("蜂に刺されるとアレルギーで危険だ。", importance=1.0)
    assert "アレルギー" in extract([*said, important], limit=24)


def test_english_is_cut_at_its_sentence_ends():
    assert sentences_of("She met Dr. Ito at 3.30 p.m. today. It rained! Did he call?\nNo.") == [
        "She met Dr. Ito at 3.30 p.m. today.",
        "It rained!",
        "Did he call?",
        "No.",
    ]
    assert sentences_of(
        "大家さんの Mr. Anderson は親切。See e.g. Tokyo, etc. and Osaka vs. Kobe, No. 5. No. Is it on St. James, etc.? Teams met, etc. They won."
    ) == [
        "大家さんの Mr. Anderson は親切。",
        "See e.g. Tokyo, etc. and Osaka vs. Kobe, No. 5.",
        "No.",
        "Is it on St. James, etc.?",
        "Teams met, etc.",
        "They won.",
    ]
    assert sentences_of("「行こう！」と言った。雨だった") == ["「行こう！」", "と言った。", "雨だった"]


def test_of_nothing_worth_saying_nothing_is_said():
    assert extract([Statement("おはよう"), Statement("ok"), Statement("…")]) == ""
    assert extract([]) == ""


def test_the_heading_says_when_who_and_how_much_in_the_language_of_the_memories():
    assert heading(["2025-10-30", "2025-10-30"], TALK) == "2025-10-30 · 健太、さくら · 7件"
    english = [Statement("It rained.", "Leo"), Statement("We stayed in.", None)]
    assert heading(["2025-10-29", "2025-10-30"], english) == "2025-10-29..2025-10-30 · Leo · 2 memories"
    assert heading(["2025-10-30"], english, at_least=True) == "2025-10-30 · Leo · 2 or more memories"
    crowd = [Statement("話した", name) for name in "abcdef"]
    assert heading(["2025-10-30"], crowd) == "2025-10-30 · a、b、c、dほか · 6件"


def test_a_text_that_is_too_long_is_cut_at_a_sentence():
    assert cut("短い。") == "短い。"
    assert cut("あ" * 150 + "。" + "い" * 300, 200) == "あ" * 150 + "。"
    assert len(cut("あ" * 1000)) == CHARACTERS_LIMIT


def test_thousands_of_sentences_are_no_reason_to_wait():
    said = [
        Statement(f"今日は{number}人の友だちと{number % 7}時に会った。明日も会う約束をした。", "私", number % 10 / 10)
        for number in range(3_000)
    ]
    assert len(extract(said)) <= CHARACTERS_LIMIT
