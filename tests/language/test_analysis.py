"""A text is read once, however many steps need what is in it."""

from datetime import date

import pytest

from memory_mcp.language import analysis as analyses
from memory_mcp.language.analysis import KEPT_CHARACTERS, KEPT_TEXTS, Analysis, analysis, forget_texts
from memory_mcp.language.synonyms import synonyms
from memory_mcp.language.tokens import tokens

TODAY = date(2025, 10, 17)


@pytest.fixture(autouse=True)
def nothing_kept():
    forget_texts()


def test_each_part_is_found_once_and_only_when_it_is_needed(monkeypatch):
    found = []
    for part in ("tokens", "synonyms", "recognize"):
        function = getattr(analyses, part)
        monkeypatch.setattr(analyses, part, lambda *read, part=part, function=function, **how: found.append(part) or function(*read, **how))
    asked = analysis("昨日の結婚式は？")
    assert not found
    for _ in range(2):
        assert list(asked.tokens) == tokens("昨日の結婚式は？")
        assert asked.synonyms == synonyms("昨日の結婚式は？")
        (day,) = asked.date_expressions(TODAY)
        assert asked.recognized.plain[day.start : day.end] == "昨日"
        asked = analysis("昨日の結婚式は？")
    assert sorted(found) == ["recognize", "synonyms", "tokens"]


def test_a_text_names_its_days_speakers_and_sentences():
    asked = analysis("昨日、健太さんは何て言った？ Did you hear it?")
    (day,) = asked.date_expressions(TODAY)
    assert day.spans == [(date(2025, 10, 16), TODAY)]
    assert asked.names(["健太", "花子", None]) == {"健太"}
    assert asked.sentences == ["昨日、健太さんは何て言った?", "did you hear it?"]
    assert analysis("走った。Dr. Ito ran! 今日は").sentences == ["走った", "dr. ito ran", "今日は"]


def test_long_texts_are_not_kept_and_of_short_ones_only_the_last():
    assert analysis("猫") is analysis("猫")
    assert analysis("猫" * KEPT_CHARACTERS) is analysis("猫" * KEPT_CHARACTERS)
    assert analysis("猫" * (KEPT_CHARACTERS + 1)) is not analysis("猫" * (KEPT_CHARACTERS + 1))
    first = analysis("猫")
    for number in range(KEPT_TEXTS):
        analysis(f"犬{number}")
    assert analysis("猫") is not first


def test_erased_texts_are_forgotten():
    before = analysis("秘密の合言葉")
    forget_texts()
    assert analysis("秘密の合言葉") is not before


def test_a_day_that_is_over_is_no_longer_yesterday():
    asked = Analysis("昨日")
    assert asked.date_expressions(TODAY) != asked.date_expressions(TODAY.replace(day=18))
