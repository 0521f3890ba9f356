"""The one line of a memory: its own words, 50 to 80 characters where there are more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.sentences import LEAST, MOST, micro_summary

LONG = "健太は苺が好きだけど、メロンは苦手だと昨日の夕食のときに話してくれた。夏休みには家族と京都へ行って、抹茶のパフェと湯豆腐を食べるつもりらしいから、そのうち感想を聞いてみよう。"


@pytest.mark.parametrize("text", ["猫を飼っている", "x" * MOST, "Kenta likes strawberries."])
def test_a_text_that_fits_is_its_own_line(text):
    assert micro_summary(text) == text


def test_line_breaks_become_spaces():
    assert micro_summary("one\n two  three") == "one two three"


def test_of_a_longer_text_the_first_sentences_are_shown():
    first, second = "健太は苺が好きだけど、メロンは苦手だと昨日の夕食のときに話してくれた。", "理由は聞かなかったけれど、たぶん食感だろう。"
    assert micro_summary(first + second + "そのあと三人で海まで歩いて、夜は花火を見て、遅くに帰った。") == first + second


def test_a_title_before_a_name_ends_no_sentence():
    text = "今度の日曜に引っ越すことになったので、今日は下見に行って、大家さんの Mr. Anderson に鍵を預けてきた。そのあと駅前で昼を食べて、家に帰った。"
    assert "Mr. Anderson に鍵を預けてきた。" in micro_summary(text)


def test_a_sentence_that_is_too_long_ends_at_a_pause():
    assert (
        micro_summary(LONG)
        == "健太は苺が好きだけど、メロンは苦手だと昨日の夕食のときに話してくれた。夏休みには家族と京都へ行って、抹茶のパフェと湯豆腐を食べるつもりらしいから…"
    )


def test_greetings_at_the_beginning_are_left_out():
    assert micro_summary(f"おはよう！ねえねえ。{LONG}") == micro_summary(LONG)
    assert micro_summary(f"Hi! Ok. {'The launch of the new bakery moved to the second week of November. ' * 3}").startswith("The launch")


def test_a_text_of_nothing_but_greetings_is_shown_as_it_begins():
    assert micro_summary("うん。" * 100).startswith("うん。うん。")


@given(st.text(alphabet="あ漢a1。、. \n！「」\u3000", max_size=3_000))
def test_a_line_is_one_line_of_at_most_80_characters_and_at_least_50_where_the_text_has_them(text):
    line = micro_summary(text)
    assert "\n" not in line
    assert len(line) <= MOST
    whole = " ".join(text[:2_000].split())
    assert line == whole if len(whole) <= MOST else len(line) >= LEAST
