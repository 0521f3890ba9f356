"""From what a caller asks to a question, or a refusal."""

import math
from datetime import UTC, datetime

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.domain import KEYS_LIMIT
from memory_mcp.errors import InvalidInput
from memory_mcp.search.question import QUERY_LIMIT, question, token_budget


@pytest.fixture
def asked(now):
    return lambda query="京都", under=Settings(), **fields: question(settings=under, now=now, query=query, **fields)  # noqa: B008  frozen


def test_what_is_left_out_has_a_default(asked):
    found = asked(" 京都 ")
    assert (found.query, found.top_k, found.mode, found.detail, found.max_tokens) == ("京都", 5, "auto", "full", 1500)
    assert not found.filters


def test_null_means_the_default(asked):
    nothing = dict.fromkeys(["top_k", "mode", "date_range", "min_importance", "hypothetical", "detail", "max_tokens"])
    assert asked(**nothing) == asked()


def test_top_k_left_out_is_what_the_configuration_says(asked):
    assert asked(under=Settings(reranker_top_n=7)).top_k == 7


@pytest.mark.parametrize(
    ("called", "mode"),
    [("hybrid", "auto"), ("Semantic_Only", "semantic"), ("graph_only", "graph"), ("entity_focused", "graph"), (" temporal ", "recent")],
)
def test_a_mode_has_other_names(asked, called, mode):
    assert asked(mode=called).mode == mode


def test_no_query_is_needed_to_ask_for_the_latest_by_the_other_name_of_that_mode(asked):
    assert asked("", mode="temporal").mode == "recent"
    assert asked("", mode="hybrid", tags=["旅"]).mode == "recent"


def test_filters_are_read(asked):
    filters = asked(tags=[" 旅 ", "旅", ""], date_range="2025-10-17", min_importance=0.5).filters
    assert filters.tags == ("旅",)
    assert filters.date_range is not None
    assert datetime(2025, 10, 17, 3, tzinfo=UTC) in filters.date_range
    assert filters.min_importance == 0.5
    assert filters


@pytest.mark.parametrize("blank", ["", "  ", "\n\u3000"])
def test_a_blank_query_is_refused_unless_something_else_is_asked_for(asked, blank):
    with pytest.raises(InvalidInput, match="query is empty"):
        asked(blank)
    assert asked(blank, keys=["k"]).keys == ("k",)
    assert asked(blank, mode="recent").mode == "recent"


def test_keys_are_fetched_once_each_in_their_order(asked):
    assert asked(keys=["b", " a ", "b"]).keys == ("b", "a")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"top_k": 0}, "top_k is 0: it runs from 1 to 50"),
        ({"top_k": 51}, "top_k"),
        ({"max_tokens": 49}, "max_tokens"),
        ({"max_tokens": 100_001}, "100,000"),
        ({"mode": "psychic"}, "auto, keyword, semantic, graph, recent"),
        ({"detail": "none"}, "full, index"),
        ({"min_importance": 1.5}, "min_importance"),
        ({"min_importance": math.nan}, "min_importance"),
        ({"date_range": "soon"}, "date_range"),
        ({"keys": [str(number) for number in range(KEYS_LIMIT + 1)]}, "keys"),
        ({"query": "x" * (QUERY_LIMIT + 1)}, "query"),
        ({"query": "a\x00"}, "NUL"),
        ({"tags": ["\ud800"]}, "tags"),
        ({"keys": ["\ud800"]}, "keys"),
        ({"hypothetical": "\x00"}, "hypothetical"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(asked, fields, reason):
    with pytest.raises(InvalidInput, match=reason):
        asked(**fields)


def test_a_budget_is_checked_the_same_way():
    assert token_budget(None, 800) == 800
    assert token_budget(50, 800) == 50
    with pytest.raises(InvalidInput, match="max_tokens"):
        token_budget(0, 800)
