"""What was done, over HTTP: to a persona's memories, through which entry point, with which token; and the events of the server."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


@pytest.fixture
def token(own_server):
    """token("nilou", scopes=…): the id and the headers of a new token; no name means every persona."""

    def token(*personas, scopes=TOKEN_SCOPES, name=""):
        made, secret = create_token(own_server.data, name=name, personas=personas or None, scopes=scopes, now=NOON)
        return made.id, {"Authorization": f"Bearer {secret}", "X-Persona": "nilou"}

    return token


@pytest.fixture
def listed(own_http):
    """listed(headers, …): the operations that the route lists."""

    def listed(headers=None, **query):
        answer = own_http.get("/api/operations", headers=headers or {"X-Persona": "nilou"}, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["operations"]

    return listed


def send(http, headers, *lines):
    http.post("/api/import", content="".join(json.dumps(line) + "\n" for line in lines).encode(), headers=headers).raise_for_status()


def test_each_operation_says_when_what_through_which_entry_point_and_with_which_token(own_server, own_http, connect, token, listed):
    importer, imports = token("nilou", name="nightly")
    reviser, revises = token("nilou", name="VS Code")
    _, admin = token()
    send(own_http, imports, {"key": "a", "content": "苺"})
    chat = connect(own_server, headers=revises)
    chat("revise", key="a", content="桃", reason="聞き間違い")
    chat("forget", keys=["a"])
    assert [(done["what"], done["key"], done["through"], done["token"], done["token_name"]) for done in listed(admin)] == [
        ("delete", "a", "mcp", reviser, "VS Code"),
        ("update", "a", "mcp", reviser, "VS Code"),
        ("create", "a", "import", importer, "nightly"),
    ]
    assert all(done["at"] == "2025-10-30T12:00:00+09:00" for done in listed(admin))
    assert "苺" not in json.dumps(listed(admin), ensure_ascii=False)


def test_what_somebody_wrote_as_a_reason_is_told_to_readers_alone(own_server, connect, token, listed):
    _, writer = token("nilou")
    chat = connect(own_server, headers=writer)
    key = chat("remember", content="苺が好き")["key"]
    chat("revise", key=key, content="桃が好き", reason="聞き間違い")
    assert listed(token("nilou", scopes=["admin", "read"])[1])[0]["facts"] == {"reason": "聞き間違い"}
    assert "facts" not in listed(token("nilou", scopes=["admin"])[1])[0]


def test_the_server_itself_is_no_caller(own_server, own_http, listed):
    send(own_http, {"X-Persona": "nilou"}, {"key": "a", "content": "苺", "expires_at": "2025-10-31T00:00:00+00:00"})
    own_server.clock.now = datetime(2025, 11, 5, tzinfo=UTC)
    own_http.get("/api/memories", headers={"X-Persona": "nilou"})
    gone, made = listed()
    assert (gone["what"], gone["facts"]["by"], "through" in gone) == ("delete", "retention", False)
    assert made["through"] == "import"


def test_what_failed_says_through_which_entry_point_it_was_called(own_http, listed):
    headers = {"X-Persona": "nilou"}
    send(own_http, headers, {"key": "a", "content": "苺"})
    own_http.post("/api/memories", json={"content": "桃", "supersedes": "b"}, headers=headers)
    assert [(done["what"], done.get("error"), done["through"]) for done in listed()][:1] == [("remember", "MemoryNotFound", "http")]


def test_of_what_was_erased_nothing_is_told_but_that_it_was(own_http, listed):
    headers = {"X-Persona": "nilou"}
    send(own_http, headers, {"key": "a", "content": "睡蓮の話", "deleted_at": "2025-10-29T00:00:00+00:00"})
    asked = own_http.post("/api/purge", json={"keys": ["a"]}, headers=headers).json()
    own_http.post("/api/purge", json={"keys": ["a"], "confirm": asked["confirm"]}, headers=headers).raise_for_status()
    assert [(done["what"], done["through"]) for done in listed()] == [("purge", "http"), ("create", "import")]
    assert "睡蓮" not in own_http.get("/api/operations", headers=headers).text


def test_operations_come_page_by_page_and_by_kind(own_http, listed):
    headers = {"X-Persona": "nilou"}
    send(own_http, headers, *({"key": f"k{number}", "content": f"苺{number}"} for number in range(7)))
    first = own_http.get("/api/operations", params={"limit": 4}, headers=headers).json()
    second = own_http.get("/api/operations", params={"limit": 4, "before": first["next"]}, headers=headers).json()
    assert [done["key"] for done in (*first["operations"], *second["operations"])] == [f"k{number}" for number in reversed(range(7))]
    assert "next" not in second
    assert first["kinds"] == ["create"]
    assert listed(operation="delete") == []


def test_a_call_that_failed_is_told_by_the_kind_of_its_error(own_server, connect, listed):
    chat = connect(own_server, "nilou")
    chat("remember", content="苺")
    with pytest.raises(Exception, match="no memory"):
        chat("revise", key="nobody", content="桃")
    assert (listed()[0]["what"], listed()[0]["error"]) == ("revise", "MemoryNotFound")


def test_events_are_the_servers_and_for_tokens_of_all_personas(own_http, token):
    one, admin = token("nilou"), token()
    reader = token("nilou", scopes=["read"])
    own_http.get("/api/operations", headers=reader[1])
    own_http.patch("/api/config", json={"values": {"min_score": 0.1}}, headers=admin[1])
    events = own_http.get("/api/events", headers=admin[1]).json()["events"]
    assert [(event["what"], event.get("reason"), event["token"]) for event in events] == [
        ("configure", None, admin[0]),
        ("refused", "scope", reader[0]),
    ]
    assert events[0]["settings"] == ["min_score"]
    for headers in (one[1], reader[1]):
        assert own_http.get("/api/events", headers=headers).status_code == 403
