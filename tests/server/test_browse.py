"""GET /api/memories and GET /api/memory: memories by filters, page by page, and everything that is known of one."""

import json
from urllib.parse import urlencode

import pytest

LINES = [
    {"key": "a", "content": "健太は横浜に住んでいる。", "source": "健太", "tags": ["住所"], "occurred_at": "2024-05-01T00:00:00+09:00"},
    {
        "key": "b",
        "content": "健太は[[鎌倉|Location]]に引っ越した。",
        "source": "健太",
        "supersedes": "a",
        "importance": 0.9,
        "session_id": "秋",
    },
    {"key": "c", "content": "健太は苺が好き。", "tags": ["食べ物"], "privacy_level": "private", "category": "好み"},
    {"key": "d", "content": "ごみ箱の話。", "deleted_at": "2025-10-30T01:00:00+00:00"},
    {"key": "e", "content": "転職の経験。", "kind": "experience", "supersedes": "b"},
]


@pytest.fixture
def get(http, name):
    """get("/api/memories", …): the answer of a route about a persona of this test."""

    def get(path, status=200, **query):
        answer = http.get(f"{path}?{urlencode(query, doseq=True)}", headers={"X-Persona": name})
        assert answer.status_code == status, answer.text
        return answer.json()

    return get


@pytest.fixture
def send(http, name):
    """Stores JSON lines."""

    def send(lines):
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert http.post("/api/import", content=body, headers={"X-Persona": name}).json()["stored"] == len(lines)

    return send


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ({}, "ec"),
        ({"shelf": "superseded"}, "ba"),
        ({"shelf": "trash"}, "d"),
        ({"shelf": "all"}, "edcba"),
        ({"shelf": "all", "source": "健太"}, "ba"),
        ({"tags": "食べ物"}, "c"),
        ({"kind": "experience"}, "e"),
        ({"category": "好み"}, "c"),
        ({"privacy_level": "private"}, "c"),
        ({"shelf": "all", "session_id": "秋"}, "b"),
        ({"shelf": "all", "min_importance": "0.8"}, "b"),
        ({"shelf": "all", "date_range": "2024-05"}, "a"),
    ],
)
def test_memories_are_listed_by_filters_the_latest_told_first(send, get, filters, keys):
    send(LINES)
    assert "".join(memory["key"] for memory in get("/api/memories", **filters)["memories"]) == keys


def test_every_memory_is_on_exactly_one_page_whatever_is_stored_meanwhile(send, get):
    send([{"key": f"k{number:02}", "content": f"記憶{number}"} for number in range(25)])
    page = get("/api/memories", limit=10)
    seen = [memory["key"] for memory in page["memories"]]
    send([{"key": "later", "content": "後から"}])
    while "next" in page:
        page = get("/api/memories", limit=10, after=page["next"])
        seen += [memory["key"] for memory in page["memories"]]
    assert seen == [f"k{number:02}" for number in reversed(range(25))]


def test_what_cannot_be_a_filter_is_refused_in_our_words(get):
    assert "it is one of current, superseded, trash, all" in get("/api/memories", 400, shelf="nowhere")["error"]
    assert "it is `next` of the page before" in get("/api/memories", 400, after="x")["error"]
    assert get("/api/memories")["memories"] == []


def test_one_memory_is_shown_with_its_text_whom_it_names_and_what_replaced_what(send, get):
    send(LINES)
    answer = get("/api/memory", key="b")
    assert answer["memory"]["content"] == "健太は[[鎌倉|Location]]に引っ越した。"
    assert (answer["memory"]["importance"], answer["memory"]["privacy_level"], answer["memory"]["revision"]) == (0.9, "internal", 1)
    assert {"name": "鎌倉", "type": "Location"} in answer["entities"]
    assert [other["key"] for other in answer["replaced"]] == ["a"]
    assert [other["key"] for other in answer["replaced_by"]] == ["e"]
    assert [other["key"] for other in get("/api/memory", key="a")["replaced_by"]] == ["b", "e"]


def test_whom_a_memory_in_the_trash_names_is_not_told(send, get):
    send([{"key": "x", "content": "[[睡蓮|Person]]に会った。", "deleted_at": "2025-10-30T01:00:00+00:00"}])
    answer = get("/api/memory", key="x")
    assert answer["memory"]["deleted_at"]
    assert answer["entities"] == []


def test_a_memory_that_does_not_exist_is_not_found(get):
    assert "no memory has the key nobody" in get("/api/memory", 404, key="nobody")["error"]


def test_a_memory_is_shown_as_it_was_at_the_end_of_a_day(send, get, http, name):
    send([{**line, "created_at": f"2025-0{month}-01T00:00:00+00:00"} for line, month in zip(LINES[:2], (5, 7), strict=True)])
    assert get("/api/memory", key="a", as_of="2025-04")["as_of"] == {"until": "2025-05-01T00:00:00+09:00"}
    assert get("/api/memory", key="a", as_of="2025-06-15")["as_of"] == {
        "until": "2025-06-16T00:00:00+09:00",
        "revision": 1,
        "content": "健太は横浜に住んでいる。",
        "current": "a",
    }
    assert get("/api/memory", key="a", as_of="2025-08")["as_of"]["current"] == "b"
    assert "as_of" not in get("/api/memory", key="a")
    assert get("/api/memory", 400, key="a", as_of="そのうち")["error"]


def test_memories_are_counted_by_the_day_on_which_they_were_told(send, get):
    send(
        [
            {"key": "old", "content": "古い話", "created_at": "2025-01-01T00:00:00+00:00"},
            {"key": "late", "content": "夜更けの話", "created_at": "2025-10-28T15:30:00+00:00"},
            {"key": "x", "content": "今日の話"},
            {"key": "y", "content": "ごみ箱の話", "deleted_at": "2025-10-30T01:00:00+00:00"},
        ]
    )
    assert get("/api/memories/days", days=3)["days"] == [
        {"day": "2025-10-28", "memories": 0},
        {"day": "2025-10-29", "memories": 1},
        {"day": "2025-10-30", "memories": 1},
    ]
    assert len(get("/api/memories/days")["days"]) == 30
    assert "days is 367" in get("/api/memories/days", 400, days=367)["error"]
