"""A name in one form of its kanji finds the memory with the other: 高橋 and 髙橋."""

import pytest

from memory_mcp.language.kanji import with_usual_kanji

PAIRS = [
    ("高橋", "髙橋"),
    ("斉藤", "齋藤"),
    ("斎藤", "齊藤"),
    ("渡邊", "渡邉"),
    ("浜崎", "濱﨑"),
    ("富沢", "冨澤"),
    ("中島", "中嶋"),
    ("桜井", "櫻井"),
    ("竜也", "龍也"),
    ("国学院", "國學院"),
]


@pytest.mark.parametrize(("one", "other"), [*PAIRS, *((other, one) for one, other in PAIRS)])
def test_a_question_with_one_form_finds_the_memory_with_the_other(say, ask, one, other):
    for number in range(30):
        say(f"庭の木に{number}回水をやった")
    say(f"{one}の担当は経理")
    found = ask(f"{other}の担当は？")
    assert [hit.memory.content for hit in found.hits] == [f"{one}の担当は経理"]
    assert found.unmatched == ()


def test_a_single_kanji_is_found_in_its_other_form(say, ask):
    say("嶋さんは経理の担当")
    assert ask("島さんの担当は？").unmatched == ()


def test_a_speaker_is_named_in_either_form(say, ask):
    say("今日は早く帰る", source="高橋")
    say("今日は遅く帰る", source="鈴木")
    assert ask("髙橋さんは今日どうする？").hits[0].memory.source == "高橋"


@pytest.mark.parametrize("text", ["坂本と阪本", "知恵と智恵", "大阪の埼玉県人会", "伊藤と伊東", "Émile のカフェ"])
def test_kanji_that_only_sound_alike_stay_different(text):
    assert with_usual_kanji(text) == text
