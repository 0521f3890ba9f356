"""One reading for the spellings of a name in kana and Latin letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.sound import reading


@pytest.mark.parametrize(
    "spellings",
    [
        "さくら サクラ ｻｸﾗ sakura SAKURA Ｓａｋｕｒａ",
        "ゆうこ ユウコ yuko yuuko yūko",
        "しょうた ショウタ shota syota shouta shohta shōta",
        "ちか チカ chika tika",
        "じゅんいち junichi jun'ichi zyunichi jun-ichi",
        "つばさ tsubasa tubasa",
        "ふじ ふぢ fuji huzi",
        "りっか リッカ rikka",
        "まっちゃ matcha maccha",
        "なんば nanba namba",
        "おおの ohno ono oono ōno",
        "ソフィア sofia",
        "ヴィオラ viola ビオラ",
        "ティナ tina",
        "シェリー sheri sherī",
    ],
)
def test_the_spellings_of_a_name_have_one_reading(spellings: str) -> None:
    assert len({reading(spelling) for spelling in spellings.split()}) == 1, {spelling: reading(spelling) for spelling in spellings.split()}


@pytest.mark.parametrize(("one", "other"), [("さくら", "さくろ"), ("はな", "ハンナ"), ("桜", "さくら"), ("べん", "ぺん")])
def test_other_names_have_other_readings(one: str, other: str) -> None:
    assert reading(one) != reading(other)


@given(st.text())
def test_every_text_has_a_reading(text: str) -> None:
    assert isinstance(reading(text), str)
