"""Filters of recall: one conversation, one kind, one speaker."""

import pytest

TURNS = [
    ("苺の話をした", "昼", "健太", ""),
    ("苺のケーキを頼んだ", "夜", "美咲", ""),
    ("苺は赤い", "", "健太", "fact"),
    ("苺狩りへ行った", "夜", "Kenta", "experience"),
]


@pytest.fixture
def told(persona):
    for content, session_id, source, kind in TURNS:
        persona("remember", content=content, session_id=session_id, source=source, kind=kind)
    return persona


def contents(answer):
    return {hit["content"] for hit in answer["hits"]}


@pytest.mark.parametrize(
    ("filters", "passing"),
    [
        ({"session_id": "夜"}, {"苺のケーキを頼んだ", "苺狩りへ行った"}),
        ({"source": "kenta"}, {"苺狩りへ行った"}),
        ({"kind": "Conversation"}, {"苺の話をした", "苺のケーキを頼んだ"}),
        ({"session_id": "夜", "kind": "experience"}, {"苺狩りへ行った"}),
        ({"session_id": "夜", "source": "健太"}, set()),
    ],
)
@pytest.mark.parametrize("asked", [{"query": "苺"}, {"query": "苺", "mode": "keyword"}, {}, {"mode": "recent"}])
def test_only_what_passes_is_found_with_a_query_and_without_one(told, filters, passing, asked):
    answer = told("recall", **asked, **filters)
    assert contents(answer) == passing
    assert answer["mode"] == ("keyword" if "query" in asked else "recent")


def test_the_latest_of_one_conversation_stand_first(told):
    told("remember", content="先月の夜の話", session_id="夜", occurred_at="先月")
    assert [hit["content"] for hit in told("recall", mode="recent", session_id="夜", top_k=2)["hits"]] == [
        "苺狩りへ行った",
        "苺のケーキを頼んだ",
    ]


def test_another_personas_conversation_of_the_same_name_is_not_found(told, connect, server, name):
    connect(server, f"{name}-other")("remember", content="苺は苦手", session_id="夜")
    assert contents(told("recall", query="苺", session_id="夜")) == {"苺のケーキを頼んだ", "苺狩りへ行った"}


def test_an_unknown_kind_and_a_search_for_summaries_are_refused(told):
    assert "it is one of fact, conversation, experience, document, summary" in told.refusal("recall", query="苺", kind="rumor")
    assert "are not searched" in told.refusal("recall", query="苺", kind="summary")
    assert told("recall", kind="summary")["hits"] == []
