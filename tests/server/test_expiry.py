"""Memories that expire: found until their moment, by nothing after it, and back again only with another time."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.errors import StoreReadOnly
from memory_mcp.store.files.access_tokens import create_token
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import retention_rules

pytestmark = pytest.mark.slow  # a server for each of many tests

DAY = timedelta(days=1)
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)  # in Tokyo


@pytest.fixture
def call(http: httpx2.Client, name: str) -> Iterator[Callable[..., Any]]:
    """call(method, path, **sent): the answer of a route as the persona of this test, which must be a good one."""

    def call(method: str, path: str, persona: str = name, **sent: Any) -> Any:
        told = {"params": sent} if method == "GET" else {"json": sent}
        answer = http.request(method, path, headers={"X-Persona": persona}, **told)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return call


def contents(answer) -> list[str]:
    return [hit["content"] for hit in answer["hits"]]


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("2025-12-01", "2025-12-02T00:00:00+09:00"),
        ("2025-12-01T10:00", "2025-12-01T10:00:00+09:00"),
        ("今日", "2025-10-31T00:00:00+09:00"),
        ("来週の金曜まで", "2025-11-08T00:00:00+09:00"),
        ("12月25日", "2025-12-26T00:00:00+09:00"),
        ("明日の15時", "2025-10-31T15:00:00+09:00"),
        ("今夜", "2025-10-31T05:00:00+09:00"),
        ("1週間後", "2025-11-07T00:00:00+09:00"),
        ("3時間後", "2025-10-30T15:00:00+09:00"),
        ("until tomorrow", "2025-11-01T00:00:00+09:00"),
        ("next month", "2025-12-01T00:00:00+09:00"),
        ("30d", "2025-11-29T12:00:00+09:00"),
        ("P1DT12H", "2025-11-01T00:00:00+09:00"),
        ("2 weeks", "2025-11-13T12:00:00+09:00"),
        ("90分", "2025-10-30T13:30:00+09:00"),
        ("3ヶ月", "2026-01-31T00:00:00+09:00"),
        ("1 year", "2026-10-31T00:00:00+09:00"),
    ],
)
def test_a_time_is_a_date_with_its_whole_day_a_moment_or_a_duration(persona, said, until):
    assert persona("remember", content=f"今だけの話 {said}", expires_at=said)["expires_at"] == until


@pytest.mark.parametrize("said", ["昨日", "2025-10-29", "2025-10-30T11:59", "0d", "11月31日", "そのうち", "P", "1 hour ago"])
def test_what_is_over_or_no_time_is_refused_and_nothing_is_stored(persona, said):
    assert "expires_at" in persona.refusal("remember", content="今だけの話", expires_at=said)
    assert persona("recall", mode="recent")["hits"] == []


def test_never_is_no_time(persona):
    assert "expires_at" not in persona("remember", content="ずっと", expires_at="never")


def test_it_is_found_until_its_moment_and_by_nothing_from_then_on(persona, call, clock):
    persona("remember", content="水族館は赤い橋の隣", tags=["場所"])
    key = persona(
        "remember", content="駐車場の番号は4711", expires_at="2025-11-02T09:00", tags=["メモ"], relations=["駐車場 > has > 4711"]
    )["key"]
    persona(
        "remember",
        content="[[灯台|Place]]で[[ミナト|Person]]に会う",
        expires_at="2025-11-02T09:00",
        occurred_at="2025-11-03",
        session_id="s",
    )
    clock.now = datetime(2025, 11, 1, 23, 59, 59, tzinfo=UTC)
    assert "駐車場の番号は4711" in contents(persona("recall", query="駐車場の番号"))
    assert call("GET", "/api/graph/entity", entity="ミナト")

    clock.now = datetime(2025, 11, 2, tzinfo=UTC)
    for asked in (
        {"query": "駐車場の番号は4711"},
        {"query": "駐車場の番号は4711", "mode": "semantic"},
        {"query": "ミナト", "mode": "graph"},
        {"mode": "recent"},
        {"tags": ["メモ"]},
        {"date_range": "2025-11-03"},
        {"session_id": "s"},
    ):
        answer = persona("recall", **asked)
        assert not [text for text in contents(answer) if "4711" in text or "ミナト" in text], asked
        assert "relations" not in answer
    context = persona("get_context", query="駐車場の番号")
    assert (contents(context), context["memories"], context["in_trash"]) == (["水族館は赤い橋の隣"], 1, 2)
    stats = call("GET", "/api/stats")
    assert (stats["memories"], stats["in_trash"]) == (1, 2)
    assert [text for text in call("GET", "/api/graph/entities")["entities"] if text["name"] in ("ミナト", "灯台", "駐車場", "4711")] == []
    history = call("GET", "/api/history", key=key)
    assert history["events"][-1] == {
        "what": "delete",
        "at": "2025-11-02T09:00:00+09:00",
        "rule": "expires_at 2025-11-02T00:00:00.000000+00:00",
        "by": "retention",
    }


def test_the_graph_does_not_show_what_has_expired_even_if_it_is_asked_first(persona, call, clock):
    persona("remember", content="[[灯台|Place]]で[[ミナト|Person]]に会う", expires_at="1d")
    assert {entity["name"] for entity in call("GET", "/api/graph/entities")["entities"]} == {"灯台", "ミナト"}
    clock.now = NOON + DAY
    assert call("GET", "/api/graph/entities")["entities"] == []


def test_a_persona_that_is_only_listed_counts_nothing_that_has_expired(persona, http, name, clock):
    persona("remember", content="一日だけ", expires_at="1d")
    clock.now = NOON + DAY
    listed = http.get("/api/personas").json()["personas"]
    assert [entry for entry in listed if entry["name"] == name] == [{"name": name, "memories": 0, "superseded": 0, "in_trash": 1}]


def test_another_personas_memories_do_not_expire_with_it(connect, server, name, clock):
    one, other = connect(server, f"{name}-one"), connect(server, f"{name}-other")
    for caller, until in ((one, "1d"), (other, "3d")):
        caller("remember", content="合言葉は山と川", expires_at=until)
    clock.now = NOON + DAY
    assert one("recall", query="合言葉")["hits"] == []
    assert contents(other("recall", query="合言葉")) == ["合言葉は山と川"]


def test_a_time_can_be_set_changed_and_taken_away(persona, clock):
    key = persona("remember", content="しばらくの話")["key"]
    assert persona("revise", key=key, expires_at="1d")["expires_at"] == "2025-10-31T12:00:00+09:00"
    assert persona("revise", key=key, expires_at="2d")["expires_at"] == "2025-11-01T12:00:00+09:00"
    clock.now = NOON + DAY
    assert "expires_at" in persona("revise", key=key, content="まだしばらくの話")
    assert "expires_at" not in persona("revise", key=key, expires_at="never")
    assert "is over" in persona.refusal("revise", key=key, expires_at="2025-10-30")
    clock.now = NOON + 3 * DAY
    assert contents(persona("recall", mode="recent")) == ["まだしばらくの話"]


def test_an_earlier_text_does_not_bring_back_its_earlier_time(persona, call, clock):
    key = persona("remember", content="最初の話", expires_at="1d")["key"]
    persona("revise", key=key, content="次の話", expires_at="never")
    call("POST", "/api/restore", key=key, revision=1)
    clock.now = NOON + DAY
    assert contents(persona("recall", mode="recent")) == ["最初の話"]


def test_what_has_expired_comes_back_with_another_time_only(persona, clock):
    key = persona("remember", content="戻ってくる話", expires_at="1d")["key"]
    clock.now = NOON + DAY
    assert persona("recall", keys=[key])["hits"][0]["deleted_at"] == "2025-10-31T12:00:00+09:00"
    assert "has expired" in persona.refusal("revise", key=key, restore=True)
    persona("revise", key=key, restore=True, expires_at="1d")
    assert contents(persona("recall", query="戻ってくる")) == ["戻ってくる話"]
    clock.now = NOON + 2 * DAY
    assert persona("recall", query="戻ってくる")["hits"] == []


@pytest.mark.parametrize(
    ("first", "again", "kept"),
    [("1d", "2d", "2025-11-01T12:00:00+09:00"), ("2d", "1d", "2025-11-01T12:00:00+09:00"), ("1d", "", None), ("", "1d", None)],
)
def test_the_same_write_again_keeps_the_later_of_the_two_times(persona, first, again, kept):
    key = persona("remember", content="鍵は棚の上", expires_at=first)["key"]
    answer = persona("remember", content="鍵は棚の上", expires_at=again)
    assert (answer["key"], answer["stored"], answer.get("expires_at")) == (key, False, kept)
    assert persona("recall", keys=[key])["hits"][0].get("expires_at") == kept


def test_all_of_a_session_expires_by_one_call(persona, call, http, name, clock):
    for number in range(3):
        persona("remember", content=f"会議の話 {number}", session_id="会議", source="健太")
    persona("remember", content="別の話", session_id="雑談")
    answer = call("POST", "/api/session/expire", session_id="会議", expires_at="1d")
    assert answer == {"persona": name, "session_id": "会議", "memories": 3, "expires_at": "2025-10-31T12:00:00+09:00"}
    call("POST", "/api/session/expire", session_id="雑談", expires_at="1d")
    assert "expires_at" not in call("POST", "/api/session/expire", session_id="雑談", expires_at="never")
    for sent, status in (({"session_id": "ない", "expires_at": "1d"}, 404), ({"session_id": "会議", "expires_at": "昨日"}, 400)):
        assert http.post("/api/session/expire", json=sent, headers={"X-Persona": name}).status_code == status
    clock.now = NOON + DAY
    assert contents(persona("recall", mode="recent")) == ["別の話"]


def test_what_it_replaced_is_current_again(persona, clock):
    key = persona("remember", content="集合は三時")["key"]
    persona("remember", content="今日だけ集合は四時", supersedes=key, expires_at="今日")
    assert contents(persona("recall", query="集合")) == ["今日だけ集合は四時"]
    clock.now = NOON + DAY
    assert contents(persona("recall", query="集合")) == ["集合は三時"]


def test_memories_that_expire_at_different_times_are_not_merged(persona, call, http, name):
    keys = [persona("remember", content=f"苺が好き {until}", expires_at=until)["key"] for until in ("1d", "2d", "2d")]
    sent = {"merge": keys[1:], "into": keys[0]}
    refused = http.post("/api/organize", json=sent, headers={"X-Persona": name})
    assert "don't expire at the same time" in refused.text


def test_an_export_brings_the_time_along_and_an_import_of_what_is_over_says_so(persona, connect, server, http, name, clock):
    persona("remember", content="まだ有効", expires_at="9d")
    persona("remember", content="もうすぐ", expires_at="1d")
    persona("remember", content="いつまでも")
    lines = http.get("/api/export", headers={"X-Persona": name}).text
    assert [json.loads(line).get("expires_at") for line in lines.splitlines()] == [
        "2025-11-08T03:00:00.000000+00:00",
        "2025-10-31T03:00:00.000000+00:00",
        None,
    ]
    copy = connect(server, f"{name}-copy")
    headers = {"X-Persona": f"{name}-copy"}
    clock.now = NOON + 2 * DAY
    imported = http.post("/api/import", content=lines, headers=headers).json()
    assert (imported["stored"], imported["expired"]) == (3, 1)
    assert set(contents(copy("recall", mode="recent"))) == {"まだ有効", "いつまでも"}
    again = http.get("/api/export?include_deleted=true", headers=headers).text
    theirs = [json.loads(line) for line in again.splitlines()]
    assert [line.pop("deleted_at", None) for line in theirs] == [None, "2025-11-01T03:00:00.000000+00:00", None]
    assert theirs == [json.loads(line) for line in lines.splitlines()]
    vault = http.get("/api/export?format=markdown", headers=headers)
    assert vault.status_code == 200


def test_a_copied_persona_and_a_merged_one_keep_the_times(persona, connect, server, call, name, clock):
    persona("remember", content="一日だけの話", expires_at="1d")
    persona("remember", content="三日の話", expires_at="3d")
    call("POST", "/api/persona/copy", to=f"{name}-twin")
    twin, third = connect(server, f"{name}-twin"), connect(server, f"{name}-third")
    third("remember", content="元からの話")
    clock.now = NOON + DAY
    assert contents(twin("recall", mode="recent")) == ["三日の話"]
    call("POST", "/api/persona/merge", into=f"{name}-third")
    assert contents(third("recall", mode="recent")) == ["三日の話", "元からの話"]
    clock.now = NOON + 3 * DAY
    assert contents(third("recall", mode="recent")) == ["元からの話"]


def test_a_token_that_may_not_delete_sets_no_time_for_what_is_there(own_server, connect, own_http):
    secret = create_token(own_server.data, name="", personas=None, scopes=["read", "write"], now=NOON)[1]
    headers = {"Authorization": f"Bearer {secret}", "X-Persona": "nilou"}
    caller = connect(own_server, headers=headers)
    key = caller("remember", content="一日だけ", session_id="s", expires_at="1d")["key"]
    assert "needs a token with the scope delete" in caller.refusal("revise", key=key, expires_at="1d")
    refused = own_http.post("/api/session/expire", json={"session_id": "s", "expires_at": "1d"}, headers=headers)
    assert refused.status_code == 403
    assert "expires_at" not in caller("revise", key=key, expires_at="never")


def test_where_nothing_can_be_written_an_expired_memory_is_left_out_all_the_same(persona, server, name, clock, monkeypatch):
    persona("remember", content="鍵は植木鉢の下", expires_at="1d", occurred_at="2025-11-01")
    persona("remember", content="鍵は新しい")
    with server.runtime.personas.reading(name) as opened:
        monkeypatch.setattr(opened.database, "unwritable", StoreReadOnly("the disk is read-only"))
        clock.now = NOON + DAY
        for asked in ({"query": "鍵"}, {"mode": "recent"}, {"query": "鍵", "mode": "recent"}):
            assert contents(persona("recall", **asked)) == ["鍵は新しい"]
        assert contents(persona("get_context", query="鍵")) == ["鍵は新しい"]


def test_the_background_moves_it_without_a_call_and_erases_it_later(persona, server, name, call):
    key = persona("remember", content="置き手紙", expires_at="1d")["key"]
    settings = Settings(embeddings_model=None, reranker_model=None)

    def chore(now: datetime) -> datetime | None:
        with server.runtime.personas.reading(name) as opened:
            while retention_rules.step(opened, now, settings, IndexCache()):
                pass
            return retention_rules.next_due(opened, now, settings)

    assert chore(NOON) == NOON + DAY
    assert chore(NOON + DAY) == NOON + 31 * DAY
    assert persona("recall", keys=[key])["hits"][0]["deleted_at"]
    chore(NOON + 32 * DAY)
    assert persona("recall", keys=[key])["missing"] == [key]
