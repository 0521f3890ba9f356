"""Conversations over HTTP: stored turn by turn, listed, read, renamed, exported, deleted, and never somebody else's."""

import json

import pytest

pytestmark = pytest.mark.feature("chat")

SAID = [
    {"role": "user", "text": "苺の話をしよう"},
    {"role": "assistant", "text": "", "calls": [{"id": "c1", "name": "recall", "arguments": {"query": "苺"}}]},
    {"role": "tool", "text": "苺が好き", "call_id": "c1"},
    {"role": "assistant", "text": "苺、**お好き**でしたね。", "model": "openai:gpt-x"},
]


@pytest.fixture
def chats(http, name):
    """chats("GET", "/api/conversations", …): the answer as a persona; `status` is what it must have."""

    def chats(method, path="/api/conversation", status=200, persona=name, **sent):
        told = {"json": sent} if method in ("POST", "PATCH") else {"params": sent}
        answer = http.request(method, path, headers={"X-Persona": persona}, **told)
        assert answer.status_code == status, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer

    return chats


def turn(number=1, **fields):
    return {"id": "c-1", "number": number, "model": "openai:gpt-x", "messages": SAID, **fields}


def test_a_turn_is_stored_and_read_as_it_was_with_what_was_recalled_and_stored(chats, name):
    stored = chats("POST", **turn(recalled=["k1", "k1"], stored=["k2"]))["conversation"]
    assert (stored["title"], stored["turns"]) == ("苺の話をしよう", 1)
    read = chats("GET", id="c-1")
    assert read["persona"] == name
    (only,) = read["turns"]
    assert (only["messages"], only["model"], only["recalled"], only["stored"]) == (SAID, "openai:gpt-x", ["k1"], ["k2"])


def test_the_latest_conversation_is_listed_first_page_by_page(chats, clock):
    for number in range(5):
        clock.now = clock.now.replace(minute=number)
        chats("POST", **turn(id=f"c-{number}"))
    clock.now = clock.now.replace(minute=30)
    chats("POST", **turn(2, id="c-0"))
    first = chats("GET", "/api/conversations", limit=3)
    assert [known["id"] for known in first["conversations"]] == ["c-0", "c-4", "c-3"]
    rest = chats("GET", "/api/conversations", limit=3, after=first["next"])
    assert [known["id"] for known in rest["conversations"]] == ["c-2", "c-1"]
    assert "next" not in rest
    chats("GET", "/api/conversations", 400, after="yesterday")


def test_turns_are_read_page_by_page(chats):
    for number in range(1, 6):
        chats("POST", **turn(number))
    first = chats("GET", id="c-1", limit=3)
    assert [known["number"] for known in first["turns"]] == [1, 2, 3]
    assert [known["number"] for known in chats("GET", id="c-1", after=first["next"])["turns"]] == [4, 5]


def test_a_turn_that_is_stored_is_replaced_only_where_that_is_asked_for_and_what_followed_goes(chats):
    for number in (1, 2, 3):
        chats("POST", **turn(number))
    refused = chats("POST", status=400, **turn(2))
    assert refused["error"].startswith("the conversation has gone on meanwhile: turn 2 is stored already.")
    chats("POST", **turn(2, replace=True, messages=[{"role": "user", "text": "やっぱり桃"}]))
    assert [(known["number"], known["messages"][0]["text"]) for known in chats("GET", id="c-1")["turns"]] == [
        (1, "苺の話をしよう"),
        (2, "やっぱり桃"),
    ]
    chats("POST", **turn(1, replace=True, messages=[{"role": "user", "text": "梨"}]))
    assert chats("GET", id="c-1")["conversation"]["title"] == "梨"


def test_private_data_is_redacted_as_in_memories(chats, server, name):
    secret = "sk-ant-api03-" + "Ab1cD2eF3g" * 9 + "-AA"
    answer = chats("POST", **turn(messages=[{"role": "user", "text": f"鍵は {secret}"}], title=f"鍵 {secret}"))
    assert answer["redacted"] == {"api_key": 2}
    assert secret not in json.dumps(chats("GET", id="c-1"))
    assert secret.encode() not in b"".join(path.read_bytes() for path in server.directory_of(name).rglob("*") if path.is_file())


def test_a_conversation_is_renamed_exported_and_deleted(chats):
    chats("POST", **turn(stored=["k2"]))
    assert chats("PATCH", id="c-1", title="くだもの")["conversation"]["title"] == "くだもの"
    written = chats("GET", "/api/conversation/export", id="c-1")
    assert written.headers["content-disposition"] == 'attachment; filename="conversation-c-1.md"'
    assert "# くだもの" in written.text
    assert "**User**\n\n苺の話をしよう" in written.text
    assert "苺、**お好き**でしたね。\n\n*stored: k2*" in written.text
    assert chats("GET", "/api/conversation/export", id="c-1", format="json")["turns"][0]["messages"] == SAID
    assert chats("DELETE", id="c-1")["deleted"] == "c-1"
    for method, path in (("GET", "/api/conversation"), ("GET", "/api/conversation/export"), ("DELETE", "/api/conversation")):
        assert "no conversation has the id c-1" in chats(method, path, 404, id="c-1")["error"]
    assert "no conversation has the id c-1" in chats("PATCH", status=404, id="c-1", title="x")["error"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"id": "../x"}, "id can't be used"),
        ({"number": 0}, "number is 0"),
        ({"messages": []}, "messages are missing"),
        ({"messages": ["x"]}, "messages.0 "),
        ({"title": "\x00"}, "title holds a NUL character"),
        ({"model": "x" * 600}, "model has 600 characters"),
    ],
)
def test_what_is_no_turn_is_refused(chats, wrong, words):
    assert words in chats("POST", status=400, **turn(**wrong))["error"]
    assert chats("GET", "/api/conversations")["conversations"] == []


def test_a_conversation_of_another_persona_does_not_exist(chats, name, http):
    chats("POST", **turn())
    other = f"{name}-other"
    assert chats("GET", "/api/conversations", persona=other)["conversations"] == []
    for method, path in (("GET", "/api/conversation"), ("GET", "/api/conversation/export"), ("DELETE", "/api/conversation")):
        chats(method, path, 404, persona=other, id="c-1")
    chats("PATCH", status=404, persona=other, id="c-1", title="x")
    chats("POST", persona=other, **turn(messages=[{"role": "user", "text": "別の人"}]))
    assert chats("GET", id="c-1")["turns"][0]["messages"] == SAID
    exported = http.get("/api/export", params={"include_conversations": "true"}, headers={"X-Persona": other}).text
    assert "別の人" in exported
    assert "苺" not in exported


def test_asking_for_conversations_of_nobody_creates_nobody(chats, server):
    before = server.directories()
    assert chats("GET", "/api/conversations")["new_persona"]
    chats("GET", status=404, id="c-1")
    chats("PATCH", status=404, id="c-1", title="x")
    chats("DELETE", status=404, id="c-1")
    assert server.directories() == before
