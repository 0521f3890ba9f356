"""From ranked candidates to the hits that fit an answer."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.domain import Memory
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.search.page import HIT_OVERHEAD_TOKENS, within_budget

THEN = datetime(2025, 10, 30, tzinfo=UTC)


def ranked(*contents: str, **fields):
    return [(Memory(number, f"k{number}", content, THEN, THEN, **fields), 1.0, {}) for number, content in enumerate(contents)]


def test_everything_that_fits_is_shown_whole_and_in_order():
    hits = within_budget(ranked("one", "two", "three"), "full", 1000)
    assert [(hit.text, hit.truncated) for hit in hits] == [("one", False), ("two", False), ("three", False)]


def test_what_does_not_fit_any_more_is_left_out():
    hits = within_budget(ranked("あ" * 100, "い" * 100, "う" * 100), "full", 2 * (100 + HIT_OVERHEAD_TOKENS) + 10)
    assert [hit.memory.key for hit in hits] == ["k0", "k1"]


def test_the_last_hit_is_cut_where_enough_of_it_fits():
    hits = within_budget(ranked("あ" * 100, "い" * 500), "full", 100 + 2 * HIT_OVERHEAD_TOKENS + 80)
    assert [hit.truncated for hit in hits] == [False, True]
    assert hits[1].text == "い" * 79 + "…"


def test_the_first_hit_is_always_shown_if_only_in_part():
    (hit,) = within_budget(ranked("あ" * 5000), "full", 100)
    assert hit.truncated
    assert 0 < estimate_tokens(hit.text) <= 100 - HIT_OVERHEAD_TOKENS


def test_labels_count_against_the_budget():
    plain = within_budget(ranked(*["あ" * 50] * 20), "full", 1000)
    labelled = within_budget(ranked(*["あ" * 50] * 20, source="さくら" * 10, tags=("旅" * 20,)), "full", 1000)
    assert len(labelled) < len(plain)


def test_an_index_shows_one_line_of_each_and_says_what_it_cut():
    hits = within_budget(ranked("short", "long\n" + "x" * 500), "index", 1000)
    assert [hit.truncated for hit in hits] == [False, True]
    assert all("\n" not in hit.text and len(hit.text) <= 80 for hit in hits)


def test_an_index_shows_more_memories_than_full_texts_in_the_same_budget():
    long = ranked(*["あ" * 400] * 10)
    assert len(within_budget(long, "index", 1000)) > len(within_budget(long, "full", 1000))


def test_nothing_ranked_is_no_hit():
    assert within_budget([], "full", 1000) == ()


@given(st.lists(st.text(alphabet="あa ", min_size=1, max_size=300), min_size=1, max_size=10), st.integers(min_value=100, max_value=2000))
def test_the_texts_never_cost_more_than_the_budget(contents, budget):
    hits = within_budget(ranked(*contents), "full", budget)
    assert hits
    assert sum(estimate_tokens(hit.text) + HIT_OVERHEAD_TOKENS for hit in hits) <= budget
    assert [hit.memory.id for hit in hits] == list(range(len(hits)))


def test_of_a_memory_that_is_cut_the_best_part_is_shown():
    text = "雨だった。" * 100 + "苺を食べた。" + "雪だった。" * 100
    (hit,) = within_budget(ranked(text), "full", 100, lambda _memory: (500, 506))
    assert hit.truncated
    assert "苺を食べた。" in hit.text
    assert 0 < estimate_tokens(hit.text) <= 100 - HIT_OVERHEAD_TOKENS


def test_a_long_memory_leaves_room_for_those_that_follow():
    hits = within_budget(ranked("雨だった。" * 1000, "い" * 100, "う" * 100), "full", 1000, lambda _memory: (4000, 4100))
    assert [hit.truncated for hit in hits] == [True, False, False]
    assert 300 < estimate_tokens(hits[0].text) <= (1000 - HIT_OVERHEAD_TOKENS) // 2


def test_a_long_memory_that_fits_is_shown_whole():
    hits = within_budget(ranked("あ" * 3000, "い"), "full", 10_000, lambda _memory: (1000, 1100))
    assert not any(hit.truncated for hit in hits)
