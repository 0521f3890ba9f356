"""How a request says for whom it is, and that a name which can't be used is never taken for somebody else's."""

import json
import socket
from datetime import UTC, datetime
from urllib.parse import quote

import httpx2
import pytest

from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.both_eras

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x"}}}
MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def raw_stats(server, path, *headers):
    """The answer to a GET whose bytes no client library has checked."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        lines = [b"GET " + path + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *headers]
        connection.sendall(b"\r\n".join([*lines, b"", b""]))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def persona_of(caller):
    return caller("recall", query="x")["persona"]


def refused(caller):
    return caller.refusal("recall", query="x")


def test_the_header_names_the_persona(server, connect):
    assert persona_of(connect(server, "nilou")) == "nilou"


@pytest.mark.parametrize("value", ["さくら".encode(), "%E3%81%95%E3%81%8F%E3%82%89", "%e3%81%95%e3%81%8f%e3%82%89"])
def test_a_japanese_name_comes_as_bytes_or_percent_encoded(server, connect, value):
    assert persona_of(connect(server, headers=[("X-Persona", value)])) == "さくら"


@pytest.mark.parametrize("name", ["nilou", "さくら", "a/b", "100%", "A B", "con"])
def test_the_path_names_the_persona(server, connect, name):
    assert persona_of(connect(server, path=f"/p/{quote(name, safe='')}/mcp")) == name


def test_a_slash_at_the_end_of_the_path_changes_nothing(server, connect):
    assert persona_of(connect(server, path="/p/nilou/mcp/")) == "nilou"
    assert persona_of(connect(server, "nilou", path="/mcp/")) == "nilou"


def test_the_path_works_beside_mcp_too(http):
    assert http.get("/p/%E3%81%95%E3%81%8F%E3%82%89/api/stats").json()["persona"] == "さくら"
    assert http.get("/p/nilou/api/stats/").json()["persona"] == "nilou"


def test_dots_in_the_path_are_a_name_and_lead_nowhere(server):
    assert raw_stats(server, b"/p/../api/stats")["persona"] == ".."
    assert raw_stats(server, b"/p/%2E%2E%2Fnilou/api/stats")["persona"] == "../nilou"


@pytest.mark.parametrize("blanks", [b" ", b"\t", b" \t "])
def test_blanks_around_the_header_are_no_part_of_the_name(server, blanks):
    header = b"X-Persona:" + blanks + "さくら".encode() + blanks
    assert raw_stats(server, b"/api/stats", header)["persona"] == "さくら"
    assert raw_stats(server, b"/api/stats", b"X-Persona:" + blanks)["error"].startswith("the persona name is empty")


def test_both_spellings_of_one_name_are_the_same_persona(server, connect):
    assert persona_of(connect(server, headers=[("X-Persona", "がく".encode())])) == "がく"
    assert persona_of(connect(server, headers=[("X-Persona", "か\u3099く".encode())])) == "がく"


def test_the_same_name_twice_is_one_name(server, connect):
    twice = connect(server, headers=[("X-Persona", "さくら".encode()), ("X-Persona", "%E3%81%95%E3%81%8F%E3%82%89")])
    assert persona_of(twice) == "さくら"
    assert persona_of(connect(server, "nilou", path="/p/nilou/mcp")) == "nilou"


def test_two_names_in_one_request_are_refused(server, connect):
    said = refused(connect(server, headers=[("X-Persona", "nilou"), ("X-Persona", "dehya")]))
    assert said == "the request has 2 different X-Persona headers: one call is for one persona. Send the header once."


def test_a_path_and_a_header_that_disagree_are_refused(server, connect):
    said = refused(connect(server, "dehya", path="/p/nilou/mcp"))
    assert said == "the URL and the X-Persona header name different personas: one call is for one persona. Send only one of them."


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        *(("美玲", encoding) for encoding in ("euc_jp", "gb18030", "big5")),
        *(("José", "latin-1"), ("龍", "big5"), ("Lily李娜", "gbk"), ("K한", "euc_kr"), ("Dr Иван", "cp1251"), ("Jiří", "cp1250")),
    ],
)
def test_a_name_in_another_encoding_than_utf_8_is_refused_whoever_has_the_name_of_its_bytes(server, connect, name, encoding):
    sent = name.encode(encoding)
    assert persona_of(connect(server, headers=[("X-Persona", sent.decode("latin-1").encode())])) == sent.decode("latin-1")
    assert "is not UTF-8" in refused(connect(server, headers=[("X-Persona", sent)]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "the persona name is empty"),
        ("%20", "the persona name is empty"),
        ("%00", "the invisible character U+0000 at position 1"),
        ("nil%E2%80%8Bou", "the invisible character U+200B at position 4"),
        ("%20nilou", "begins or ends with a blank"),
        ("a" * 201, "the persona name has 201 characters: 200 are the limit"),
        (b"\xff\xfe", "the X-Persona header is not UTF-8"),
        ("%F0%9F", "the X-Persona header is not UTF-8"),
        ("さくら".encode("shift_jis"), "the X-Persona header is not UTF-8"),
    ],
)
def test_a_header_that_names_nobody_is_refused_and_not_served_as_default(server, connect, value, words):
    connect(server)("remember", content="default のひみつ")
    caller = connect(server, headers=[("X-Persona", value)])
    for tool, arguments in (("recall", {"query": "ひみつ"}), ("remember", {"content": "x"}), ("get_context", {})):
        assert words in caller.refusal(tool, **arguments)


@pytest.mark.parametrize("name", ["", "%20", "%F0%9F", "%FF", "a%00", "%ED%A0%80"])
def test_a_path_that_names_nobody_is_refused_and_not_served_as_default(http, name):
    answer = http.get(f"/p/{name}/api/stats")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("the persona name ")


@pytest.mark.parametrize("value", ["${env:PERSONA}", "{{LIBRECHAT_USER_NAME}}", "%3Cyour%20persona%3E", "null", "b64:e3t1c2VyfX0="])
def test_a_placeholder_that_a_client_left_is_nobody_in_a_header_and_in_a_path(server, connect, http, value):
    caller = connect(server, headers=[("X-Persona", value)])
    for tool, arguments in (("recall", {"query": "x"}), ("remember", {"content": "秘密の合図は三回のノック。"}), ("get_context", {})):
        assert "a placeholder which was not filled in" in caller.refusal(tool, **arguments)
    answer = http.post(f"/p/{value.replace('{', '%7B')}/api/memories", json={"content": "x"})
    assert answer.status_code == 400
    assert "a placeholder which was not filled in" in answer.json()["error"]


def test_one_that_a_placeholder_has_made_can_be_renamed_and_erased_and_nothing_else(own_server, connect):
    for name in ("{{user}}", "b64:44GV44GP44KJ"):
        with own_server.runtime.personas.writing(name):
            pass
    with httpx2.Client(base_url=own_server.url) as http:
        for name, new in (("{{user}}", "lost"), ("b64:44GV44GP44KJ", "found")):
            sent = {"X-Persona": quote(name)}
            assert http.get("/api/stats", headers=sent).json().get("persona") in (None, "さくら")
            assert http.post("/api/persona/rename", headers=sent, json={"to": new}).json()["persona"] == new
        assert "placeholder" in http.post("/api/persona/rename", headers={"X-Persona": "lost"}, json={"to": "{{user}}"}).json()["error"]


def test_librechats_base64_is_the_name_that_it_encodes(server, connect):
    assert persona_of(connect(server, headers=[("X-Persona", "b64:44GV44GP44KJ")])) == "さくら"
    assert persona_of(connect(server, path="/p/b64%3A44GV44GP44KJ/mcp")) == "さくら"
    assert "not Base64 of a name in UTF-8" in refused(connect(server, headers=[("X-Persona", "b64:gqCCog==")]))


@pytest.mark.parametrize(
    "header",
    ["X-Personna", "Persona", "x-personas", "XPersona", "X-Persna", "X_Persona", "X-PERSOAN", "X-Person", "Z-Persona", "--Persona"],
)
def test_a_misspelled_header_is_refused_and_the_right_one_named(http, header):
    for answer in (
        http.post("/api/memories", headers={header: "nilou"}, json={"content": "x"}),
        http.get("/api/context", headers={header: "a"}),
    ):
        assert answer.status_code == 400
        expected = f"the header {header.lower()!r} names no persona: it looks like a misspelling of X-Persona. Send it as X-Persona."
        assert answer.json()["error"] == expected


def test_a_header_that_is_no_misspelling_is_let_alone(http):
    others = ("X-Pool-Size", "X-Version", "X-Real-IP", "X-Reason", "Personality", "X-Personalized", "Person", "X-Request-Id")
    headers = dict.fromkeys(others, "nilou")
    assert http.get("/api/stats", headers=headers).json()["persona"] == "default"
    assert http.get("/api/stats", headers={"X-Persona": "dehya", "X-Personas": "nilou"}).json()["persona"] == "dehya"
    assert http.get("/health", headers={"X-Personna": "nilou"}).status_code == 200


def test_without_a_name_the_persona_default_is_served(server, connect):
    assert persona_of(connect(server)) == "default"


def test_where_there_are_others_an_answer_as_default_says_that_no_header_came(own_server, connect):
    nameless, note = connect(own_server), "no X-Persona header came, so this is the persona default; there are others"
    assert "persona_note" not in nameless("remember", content="ひとり")
    connect(own_server, "nilou")("remember", content="ふたり")
    assert nameless("remember", content="だれの記憶？")["persona_note"] == note
    assert nameless("get_context")["persona_note"] == note
    assert f"persona_note: {note}" in nameless.result("get_context", {}).content[0].text
    assert "persona_note" not in nameless("recall", query="記憶")  # each word would cost tokens, in each call
    assert "persona_note" not in connect(own_server, "default")("get_context")
    assert "persona_note" not in connect(own_server, path="/p/default/mcp")("get_context")
    with httpx2.Client(base_url=own_server.url) as http:
        assert http.get("/api/recall?query=x").json()["persona_note"] == note
        assert http.post("/api/import", content=b'{"content": "x"}\n').json()["persona_note"] == note
        assert "persona_note" not in http.get("/api/personas").json()
        assert http.get("/ready").json()["calls_without_persona"] == {"mcp": 4, "http": 1, "import": 1}


def test_a_token_for_default_alone_hears_nothing_of_others(own_server):
    for name in ("default", "nilou"):
        with own_server.runtime.personas.writing(name):
            pass
    made = {
        names: create_token(
            own_server.data, name="", personas=list(names), scopes=["read", "write"], now=datetime(2025, 10, 30, 3, tzinfo=UTC)
        )[1]
        for names in (("default",), ("default", "missing"), ("default", "nilou"))
    }
    with httpx2.Client(base_url=own_server.url) as http:
        told = {names: http.get("/api/context", headers={"Authorization": f"Bearer {secret}"}).json() for names, secret in made.items()}
    assert [names for names, answer in told.items() if "persona_note" in answer] == [("default", "nilou")]


def test_without_a_name_a_server_that_wants_one_refuses(own_server, connect):
    own_server.configure(on_missing_persona="error")
    caller = connect(own_server)
    assert refused(caller).startswith("no persona is named: this server serves none by default. Send an X-Persona header")
    assert caller.refusal("remember", content="x").startswith("no persona is named")
    assert own_server.directories() == set()


def test_auto_serves_default_for_as_long_as_it_is_alone(own_server, connect):
    own_server.configure(on_missing_persona="auto")
    nameless = connect(own_server)
    nameless("remember", content="ひとり")
    assert persona_of(nameless) == "default"
    connect(own_server, "nilou")("remember", content="ふたり")
    assert refused(nameless).startswith("no persona is named: this server has several, and must not guess")


def test_a_header_that_changes_between_the_calls_of_a_session_is_followed(server, http):
    for name in ("nilou", "dehya", "nilou"):
        headers = {**MCP_HEADERS, "x-persona": name, "mcp-session-id": "one-session"}
        answer = http.post("/mcp", json=ASKED, headers=headers).json()
        assert answer["result"]["structuredContent"]["persona"] == name


def test_no_tool_takes_a_persona_as_an_argument(persona):
    for tool in persona.wait(persona.client.list_tools):
        assert "persona" not in tool.input_schema["properties"]
        assert "no argument 'persona'" in persona.refusal(tool.name, persona="nilou")


def test_names_that_look_alike_on_disk_are_different_personas(own_server, own_http):
    names = ["a/b", "a_b", "a-b", "A-B", "..", "con", "default"]
    for name in names:
        own_http.post("/api/import", json={"content": f"ひみつは{name}"}, headers={"X-Persona": quote(name)})
    for name in names:
        exported = own_http.get("/api/export", headers={"X-Persona": quote(name)}).text
        assert [json.loads(line)["content"] for line in exported.splitlines()] == [f"ひみつは{name}"]
    assert {entry.name for entry in own_server.data.parent.iterdir()} == {"memory", "config.json"}
    assert len(own_server.directories()) == len(names)
