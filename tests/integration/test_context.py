"""What a conversation starts with: layers, each memory once, within a budget."""

from datetime import timedelta

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Draft, Hit, Memory
from memory_mcp.encoders.models import models_for
from memory_mcp.remember.pipeline import remember
from memory_mcp.search.context import AT_MOST, RECENT, SEMANTIC, SUMMARIES, context, diverse


@pytest.fixture
def begin(nilou, now, settings):
    def begin(query="", max_tokens=5000, under=settings):
        return context(nilou, query, max_tokens=max_tokens, models=models_for(under), settings=under, now=now)

    return begin


@pytest.fixture
def life(say, nilou, now, zone):
    """Twelve days of which two touch on Kyoto, and three summaries."""
    for day in range(12):
        say("京都の寺" if day in (0, 1) else f"日常 その{day}", at=now - timedelta(days=20 - day))
    for number in range(3):
        remember(nilou, Draft(f"まとめ {number}", kind="summary"), now=now - timedelta(days=30 - number), zone=zone)


def layer(found, name) -> list[str]:
    return [hit.memory.content for source, hit in found.hits if source == name]


def test_a_new_persona_begins_with_nothing(begin):
    found = begin()
    assert (found.hits, found.recalled) == ((), None)


def test_without_a_query_there_are_the_latest_and_the_summaries(life, begin):
    found = begin()
    assert layer(found, "recent") == [f"日常 その{day}" for day in (11, 10, 9, 8, 7)]
    assert layer(found, "summary") == ["まとめ 2", "まとめ 1"]
    assert layer(found, "semantic") == []
    assert found.recalled is None


def test_with_a_query_what_fits_the_topic_comes_first(life, begin):
    found = begin("京都")
    assert layer(found, "semantic") == ["京都の寺", "京都の寺"]
    assert found.hits[0][0] == "semantic"
    assert (len(layer(found, "recent")), len(layer(found, "summary"))) == (RECENT, SUMMARIES)
    assert found.recalled.mode == "keyword"


def test_no_memory_is_shown_twice(life, begin):
    keys = [hit.memory.key for _, hit in begin("日常 その11").hits]
    assert len(keys) == len(set(keys)) == AT_MOST


def test_a_memory_that_fits_the_topic_makes_room_for_an_older_one(life, begin):
    found = begin("その11")
    assert "日常 その11" in layer(found, "semantic")
    assert len(layer(found, "recent")) == RECENT


def test_a_small_budget_keeps_the_topic_and_drops_the_rest(life, begin):
    found = begin("京都", max_tokens=140)
    assert [name for name, _ in found.hits] == ["semantic", "semantic"]


def test_the_answer_says_what_was_missing(life, begin):
    assert begin("京都", under=Settings()).recalled.degraded == ("embedder_absent", "reranker_absent")


def test_near_duplicates_do_not_crowd_out_what_else_there_is(say, begin):
    for number in range(4):
        say(f"京都の金閣寺の庭を歩いた{'！' * number}")
    say("京都でカレーを食べた")
    topical = layer(begin("京都"), "semantic")
    assert len(topical) == SEMANTIC
    assert "京都でカレーを食べた" in topical


def test_the_diverse_choice_weighs_relevance_against_sameness(now):
    def hit(number, content, score):
        return Hit(Memory(number, f"k{number}", content, now, now), score, {}, content)

    alike, same, other = hit(1, "京都の金閣寺", 1.0), hit(2, "京都の金閣寺", 0.9), hit(3, "奈良の鹿", 0.6)
    assert diverse([alike, same, other], 2) == [alike, other]
    assert diverse([alike, same, other], 3) == [alike, other, same]
    assert diverse([alike, same, hit(3, "奈良の鹿", 0.01)], 2) == [alike, same]
    assert diverse([], 3) == []
