"""Distances in time as a person says them."""

from datetime import timedelta

import pytest

from memory_mcp.dates.format import ago, elapsed, language_of


@pytest.mark.parametrize(
    ("days", "japanese", "english"),
    [
        (0, "今日", "today"),
        (1, "昨日", "yesterday"),
        (3, "3日前", "3 days ago"),
        (13, "13日前", "13 days ago"),
        (14, "2週間前", "2 weeks ago"),
        (40, "1か月前", "1 month ago"),
        (800, "2年前", "2 years ago"),
        (-1, "明日", "tomorrow"),
        (-2, "2日後", "in 2 days"),
    ],
)
def test_a_distance_is_said_in_japanese_and_in_english(now, zone, days, japanese, english):
    moment = now - timedelta(days=days)
    assert ago(moment, now, "ja", zone) == japanese
    assert ago(moment, now, "en", zone) == english


def test_a_day_ends_at_midnight_where_the_user_lives(now, zone):
    assert ago(now - timedelta(hours=13), now, "en", zone) == "yesterday"
    assert ago(now - timedelta(hours=11), now, "en", zone) == "today"


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(0, "less than a minute"), (-5, "less than a minute"), (1, "1 minute"), (125, "2 hours 5 minutes"), (4_561, "3 days 4 hours")],
)
def test_elapsed_time_is_told_in_two_units(now, minutes, said):
    assert elapsed(now - timedelta(minutes=minutes), now, "en") == said


@pytest.mark.parametrize(("minutes", "said"), [(0, "1分未満"), (1, "1分"), (125, "2時間5分"), (4_561, "3日4時間")])
def test_elapsed_time_is_told_in_japanese_too(now, minutes, said):
    assert elapsed(now - timedelta(minutes=minutes), now, "ja") == said


def test_a_text_with_a_kana_or_a_kanji_is_japanese():
    assert [language_of(text) for text in ("Kyotoへ", "京都", "Kyoto", "")] == ["ja", "ja", "en", "en"]
