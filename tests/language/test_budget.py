"""Texts within a budget of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.language.budget import cut_to_tokens, estimate_tokens, preview


@pytest.mark.parametrize(("text", "cost"), [("", 0), ("abcd", 1), ("abcde", 2), ("夕飯", 2), ("夕飯ab", 3), ("ｱ", 1)])
def test_a_wide_character_costs_one_token_and_four_others_cost_one(text, cost):
    assert estimate_tokens(text) == cost


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_cut_text_fits_and_is_the_beginning_of_the_whole(text, budget):
    cut = cut_to_tokens(text, budget)
    assert estimate_tokens(cut) <= budget
    assert cut == text or (cut.endswith("…") and text.startswith(cut.removesuffix("…")))


@given(st.text(alphabet="夕a", min_size=1))
def test_a_text_that_fits_is_not_touched(text):
    assert cut_to_tokens(text, estimate_tokens(text)) == text


def test_a_cut_text_is_the_longest_that_fits():
    assert cut_to_tokens("夕飯はカレーだった", 5) == "夕飯はカ…"


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_preview_is_one_line_within_its_length(text, characters):
    line = preview(text, characters)
    assert len(line) <= characters
    assert line.splitlines() in ([], [line])


def test_a_preview_says_that_it_was_cut():
    assert preview("one\n two  three", 9) == "one two …"
    assert preview("one\n two", 9) == "one two"
