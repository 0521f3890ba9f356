"""A text is read once, however many steps need what is in it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.language import analysis as analyses
from memory_mcp.language.analysis import KEPT_CHARACTERS, KEPT_TEXTS, Analysis, analysis, forget_texts
from memory_mcp.language.synonyms import synonyms
from memory_mcp.language.tokens import query_tokens, tokens

NOW, TOKYO = datetime(2025, 10, 17, 3, tzinfo=UTC), ZoneInfo("Asia/Tokyo")


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
        assert asked.token_set == frozenset(asked.tokens)
        assert asked.synonyms == synonyms("昨日の結婚式は？")
        assert asked.words_of_dates(NOW, TOKYO) == ["昨日"]
        assert asked.without_dates(NOW, TOKYO).query_tokens == query_tokens("の結婚式は？")
        asked = analysis("昨日の結婚式は？")
    assert sorted(found) == ["recognize", "synonyms", "tokens"]


def test_a_text_names_its_days_speakers_and_sentences():
    asked = analysis("昨日、健太さんは何て言った？ Did you hear it?")
    (day,) = asked.dates(NOW, TOKYO)
    assert day.start.astimezone(TOKYO).date().isoformat() == "2025-10-16"
    assert asked.names(["健太", "花子", None]) == {"健太"}
    assert asked.sentences == ["昨日、健太さんは何て言った？", "Did you hear it?"]
    assert asked.is_question
    assert not analysis("健太は走った").is_question


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
    asked, later = Analysis("昨日"), NOW.replace(day=18)
    assert asked.dates(NOW, TOKYO) != asked.dates(later, TOKYO)
