"""Which calls count as use, and that reading itself writes nothing."""

import json

import pytest


@pytest.fixture
def used(own_server, own_http):
    """How often each memory of nilou counts as used, once the counts are written down."""

    def used():
        def exported():
            rows = own_http.get("/api/export", headers={"X-Persona": "nilou"}).text.splitlines()
            return {row["key"]: row.get("usage_count", 0) for row in map(json.loads, rows)}

        before = exported()
        with own_server.runtime.personas.writing("nilou") as persona:
            own_server.runtime.usage.step(persona, own_server.runtime.clock(), own_server.runtime.config.current())
        return before, exported()

    return used


@pytest.fixture
def nilou(own_server, connect):
    caller = connect(own_server, "nilou")
    caller("remember", content="旅人は苺のタルトが好き")
    return caller


def test_what_recall_shows_counts_as_used_and_is_written_down_later(nilou, used):
    key = nilou("recall", query="苺")["hits"][0]["key"]
    nilou("recall", keys=[key])
    before, after = used()
    assert before == {key: 0}
    assert after == {key: 2}


def test_lists_and_beginnings_of_conversations_are_no_use(nilou, used):
    nilou("recall", query="苺", detail="index")
    nilou("get_context", query="苺")
    nilou("remember", content="旅人は苺のタルトが好きだ")
    assert set(used()[1].values()) == {0}


def test_what_somebody_else_asks_for_is_no_use(nilou, own_server, connect, used):
    connect(own_server, "dori")("recall", query="苺")
    assert set(used()[1].values()) == {0}


def test_nothing_is_counted_where_nobody_wants_it(nilou, own_server, used):
    own_server.configure(usage={"enabled": False})
    nilou("recall", query="苺")
    assert set(used()[1].values()) == {0}
