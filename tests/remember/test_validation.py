"""Arguments of a write become a draft, or are refused."""

import math
from datetime import UTC, datetime

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Draft
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LABEL_LIMIT, LIST_LIMIT, labels
from memory_mcp.remember.validation import CONTENT_LIMIT, checked_content, checked_importance, draft
from memory_mcp.search.question import QUERY_LIMIT, question


@pytest.fixture
def drafted(now, zone):
    return lambda content="京都へ行った", **fields: draft(content, now=now, zone=zone, **fields)


def test_content_alone_is_a_fact_of_medium_importance(drafted):
    assert drafted() == Draft(content="京都へ行った", kind="fact", importance=0.5)


def test_default_kind_within_a_session_is_conversation(drafted):
    assert drafted(session_id="s1").kind == "conversation"
    assert drafted(session_id="s1", kind="experience").kind == "experience"


def test_the_content_is_kept_to_the_letter(drafted):
    assert drafted("  two\n\nlines \n").content == "  two\n\nlines \n"


def test_a_time_in_words_becomes_a_moment(drafted):
    assert drafted(occurred_at="昨日").occurred_at == datetime(2025, 10, 28, 15, tzinfo=UTC)


def test_labels_lose_blanks_and_repetitions_and_keep_their_order(drafted):
    assert drafted(tags=[" 旅", "food", "旅 ", " "]).tags == ("旅", "food")
    assert drafted(source=" user ", session_id=" ").source == "user"
    assert drafted(source=" user ", session_id=" ").session_id is None


def test_null_importance_is_middling_and_zero_is_zero(drafted):
    assert drafted(importance=None).importance == 0.5
    assert drafted(importance=0).importance == 0.0


def test_the_state_keeps_what_is_said_and_drops_what_is_empty(drafted):
    assert drafted(state={"emotion": "joy", "environment": ""}).state == {"emotion": "joy"}


def test_blank_questions_are_dropped(drafted):
    assert drafted(questions=[" どこ？ ", "  "]).questions == ("どこ？",)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"content": " \n\u3000"}, "content is empty"),
        ({"content": "x" * (CONTENT_LIMIT + 1)}, "200,001 characters"),
        ({"content": "a\x00b"}, "NUL"),
        ({"content": "\ud83d"}, "U\\+D83D"),
        ({"source": "x" * (LABEL_LIMIT + 1)}, "source"),
        ({"session_id": "\ud800"}, "session_id"),
        ({"kind": "summary"}, "fact, conversation, experience"),
        ({"kind": "dream"}, "'dream'"),
        ({"tags": ["t"] * (LIST_LIMIT + 1)}, "tags has 101 entries"),
        ({"tags": ["\x00"]}, "tags"),
        ({"questions": ["q"] * (LIST_LIMIT + 1)}, "questions"),
        ({"questions": ["\x00"]}, "questions"),
        ({"importance": 1.01}, "importance is 1.01"),
        ({"importance": -0.1}, "0 to 1"),
        ({"importance": math.nan}, "importance is nan"),
        ({"occurred_at": "someday"}, "occurred_at"),
        ({"state": {"mood": "joy"}}, "'mood'.*emotion"),
        ({"state": {"emotion": "\x00"}}, r"state\.emotion"),
        ({"supersedes": "x" * (LABEL_LIMIT + 1)}, "supersedes"),
    ],
)
def test_refusal_names_the_argument(drafted, fields, reason):
    with pytest.raises(InvalidInput, match=reason):
        drafted(**fields)


def test_the_limits_themselves_are_allowed(drafted):
    assert len(drafted("x" * CONTENT_LIMIT).content) == CONTENT_LIMIT
    assert drafted(importance=1).importance == 1.0
    assert len(drafted(tags=[str(number) for number in range(LIST_LIMIT)]).tags) == LIST_LIMIT


def test_a_revision_is_checked_by_the_same_rules():
    assert checked_content("new") == "new"
    assert checked_importance(1) == 1.0
    assert labels(["a", "a"], "tags") == ("a",)


def test_a_character_that_unfolds_counts_as_what_it_unfolds_to(drafted, now):
    ligature = "\ufdfa"  # 18 characters in NFKC
    assert drafted(content=ligature * (CONTENT_LIMIT // 18)).content
    with pytest.raises(InvalidInput, match="content has 200,016 characters"):
        drafted(content=ligature * (CONTENT_LIMIT // 18 + 1))
    for argument in ("query", "hypothetical"):
        with pytest.raises(InvalidInput, match=f"{argument} has 10,008 characters"):
            question(settings=Settings(), now=now, **{"query": "猫", argument: ligature * (QUERY_LIMIT // 18 + 1)})


def test_a_recall_takes_as_many_tags_as_a_memory(now):
    asked = question(settings=Settings(), now=now, query="猫", tags=[str(number) for number in range(LIST_LIMIT)])
    assert len(asked.filters.tags) == LIST_LIMIT
    with pytest.raises(InvalidInput, match="tags has 2000 entries"):
        question(settings=Settings(), now=now, query="猫", tags=["a"] * 2_000)
