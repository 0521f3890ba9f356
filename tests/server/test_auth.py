"""Calls with a token, without one, and with one that does not reach so far."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from mcp import MCPError

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.server.application import scope_needs
from memory_mcp.server.mcp.tools import OperationTool
from memory_mcp.store.files.access_tokens import FILE_NAME, create_token, revoke_token

pytestmark = [pytest.mark.slow, pytest.mark.both_eras]  # a server for each of most tests

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x"}}}
NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)  # the server's clock stands still there
MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture
def token(own_server):
    """token("nilou", scopes=…): the secret of a new token; no name means every persona."""

    def token(*personas, scopes=TOKEN_SCOPES, expires_at=None):
        made = create_token(own_server.data, name="", personas=personas or None, scopes=scopes, now=NOON, expires_at=expires_at)
        return made[1]

    return token


def bearer(secret, persona=None):
    return {"Authorization": f"Bearer {secret}", **({"X-Persona": persona} if persona else {})}


@pytest.fixture
def caller(own_server, connect):
    """caller(secret, "nilou"): an MCP client that sends this token."""
    return lambda secret, persona=None, **options: connect(own_server, headers=bearer(secret, persona), **options)


@pytest.fixture
def told(own_server):
    """The refusals in the operations log."""

    def told():
        lines = (own_server.data / "memory_operations.log").read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if line["operation"] == "refused"]

    return told


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/personas"), ("GET", "/api/stats"), ("POST", "/api/import"), ("GET", "/api/export")]
)
@pytest.mark.parametrize("prefix", ["", "/p/nilou"])
def test_without_a_token_every_route_is_shut_as_soon_as_there_is_one(own_http, token, method, path, prefix):
    assert own_http.request(method, prefix + path, content=b'{"content": "x"}').status_code == 200
    token("nilou")
    answer = own_http.request(method, prefix + path, content=b'{"content": "x"}')
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"].startswith("this server wants a token: the request has none. Send `Authorization: Bearer`")


def test_without_a_token_mcp_answers_401_as_json_rpc(own_http, token):
    token("nilou")
    for path in ("/mcp", "/mcp/", "/p/nilou/mcp"):
        answer = own_http.post(path, json=ASKED, headers=MCP_HEADERS)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["message"].startswith("this server wants a token")


def test_a_client_of_either_era_is_told_that_a_token_is_wanted(own_server, connect, token):
    token("nilou")
    with pytest.raises(MCPError, match="this server wants a token"):
        connect(own_server, "nilou")


def test_unknown_addresses_are_shut_too_and_name_no_service_that_hands_out_tokens(own_http, token):
    token("nilou")
    assert own_http.get("/nowhere").status_code == 401
    assert own_http.get("/.well-known/oauth-protected-resource").status_code == 404
    assert own_http.get("/.well-known/oauth-authorization-server").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer nilou")],
        [("Authorization", "Bearer mmcp_0123456789_" + "0" * 64)],
        [("Authorization", "Basic bmlsb3U6eA==")],
        [("Authorization", "")],
        [("Authorization", b"Bearer \xff\xfe")],
        [("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
    ],
)
def test_what_is_no_token_of_this_server_is_refused_also_where_strangers_may_look(own_http, token, headers):
    token("nilou")
    for path in ("/api/stats", "/ready"):
        answer = own_http.get(path, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "mmcp_0" not in answer.text


def test_two_headers_are_refused_even_if_one_is_good(own_http, token):
    secret = token("nilou")
    good = ("Authorization", f"Bearer {secret}")
    assert own_http.get("/api/stats", headers=[good]).status_code == 200
    for other in (good, ("Authorization", "Bearer x")):
        answer = own_http.get("/api/stats", headers=[good, other])
        assert answer.status_code == 401
        assert "2 Authorization headers" in answer.json()["error"]


def test_on_a_server_without_tokens_one_that_is_sent_is_not_looked_at(own_http):
    assert own_http.get("/api/stats", headers=bearer("anything")).status_code == 200


def test_an_expired_and_a_revoked_token_say_what_they_are(own_server, own_http, token):
    expired = token("nilou", expires_at=NOON + timedelta(seconds=1))
    revoked = token("nilou")
    own_http.get("/api/stats", headers=bearer(expired)).raise_for_status()
    revoke_token(own_server.data, revoked.split("_")[1], NOON)
    assert "it is revoked" in own_http.get("/api/stats", headers=bearer(revoked)).json()["error"]
    assert (
        own_http.get("/api/stats", headers=bearer(revoked[:-1] + "x")).json()["error"].startswith("this token is not one of this server's")
    )
    path = own_server.data / FILE_NAME
    path.write_text(path.read_text(encoding="utf-8").replace("2025-10-30T03:00:01", "2025-10-30T03:00:00"), encoding="utf-8")
    assert "it is expired" in own_http.get("/api/stats", headers=bearer(expired)).json()["error"]


def test_a_revoked_last_token_leaves_the_door_shut(own_server, own_http, token):
    secret = token("nilou")
    revoke_token(own_server.data, secret.split("_")[1], NOON)
    assert own_http.get("/api/stats").status_code == 401
    assert own_http.get("/api/stats", headers=bearer(secret)).status_code == 401


def test_tokens_go_before_allow_anonymous(own_server, own_http, token):
    own_server.configure(allow_anonymous=True)
    token("nilou")
    assert own_http.get("/api/stats").status_code == 401


def test_damaged_token_file_refuses_everybody_with_a_reason(own_server, own_http, token):
    secret = token("nilou")
    path = own_server.data / FILE_NAME
    good = path.read_text(encoding="utf-8")
    path.write_text("{", encoding="utf-8")
    for headers in ({}, bearer(secret)):
        answer = own_http.get("/api/stats", headers=headers)
        assert answer.status_code == 500
        assert answer.json()["error"].startswith("no call is accepted at the moment")
    path.write_text(good, encoding="utf-8")
    assert own_http.get("/api/stats", headers=bearer(secret)).status_code == 200


def test_health_is_open_and_ready_tells_strangers_no_more_than_that(own_http, token):
    secret = token("nilou", scopes=["read"])
    assert own_http.get("/health").status_code == 200
    assert own_http.get("/ready").json() == {"ready": True}
    assert own_http.get("/p/nilou/ready").json() == {"ready": True}
    known = own_http.get("/ready", headers=bearer(secret)).json()
    assert known["mode"] == "keyword"
    assert "config_error" not in known  # it may quote config.json
    assert own_http.get("/ready", headers=bearer(token("nilou", scopes=["admin"]))).json()["config_error"] is None


def test_a_token_for_one_persona_chooses_it(own_server, caller, token):
    own_server.configure(on_missing_persona="error")
    nameless = caller(token("さくら"))
    nameless("remember", content="桜餅")
    assert nameless("recall", query="桜餅")["persona"] == "さくら"
    assert own_server.directories() == {own_server.directory_of("さくら").name}


def test_a_token_for_several_wants_one_named_unless_default_is_among_them(caller, token):
    assert caller(token("nilou", "dehya")).refusal("recall", query="x") == (
        "no persona is named: the token is for several. Send one of them as X-Persona, or begin the path with /p/{persona}."
    )
    assert caller(token("default", "dehya"))("recall", query="x")["persona"] == "default"
    assert caller(token())("recall", query="x")["persona"] == "default"


def test_header_and_path_choose_within_the_token(caller, token):
    secret = token("nilou", "dehya")
    caller(secret, "nilou")("remember", content="睡蓮")
    caller(secret, path="/p/dehya/mcp")("remember", content="砂漠")
    assert [hit["content"] for hit in caller(secret, "nilou")("recall", mode="recent")["hits"]] == ["睡蓮"]
    assert "name different personas" in caller(secret, "dehya", path="/p/nilou/mcp").refusal("recall", query="x")


def test_a_persona_that_is_not_the_tokens_reads_as_if_there_were_none(own_server, caller, token):
    caller(token(), "alice")("remember", content="アリスのひみつ", state={"emotion": "ひみつ"})
    stranger = caller(token("nilou"), "alice")
    assert stranger("recall", query="ひみつ") == {
        "persona": "alice", "new_persona": True, "mode": "keyword", "reranked": False, "degraded": [], "index_lag": 0, "more": 0, "hits": [], "confidence": "nothing like it"
    }  # fmt: skip
    assert "ひみつ" not in json.dumps(stranger("get_context", query="ひみつ"), ensure_ascii=False)
    assert json.loads(stranger.wait(stranger.client.read_resource, "memory://stats")[0].text)["memories"] == 0


@pytest.mark.parametrize("name", ["alice", "alicf", ".."])
def test_a_write_as_another_persona_is_refused_in_the_same_words_whether_or_not_it_exists(own_server, caller, token, name):
    caller(token(), "alice")("remember", content="アリスのひみつ")
    before = own_server.directories()
    stranger = caller(token("nilou", "dehya"), name)
    words = f"this token may not write as {name!r}: it is for dehya, nilou. Send one of its personas as X-Persona, or use another token."
    assert stranger.refusal("remember", content="x") == words
    assert stranger.refusal("update_context", emotion="x") == words
    assert stranger("forget", keys=["memory_0"])["outcomes"][0]["outcome"] == "not_found"
    assert stranger.refusal("revise", key="memory_0", content="x") == "no memory has the key memory_0. Take the key from a recall."
    assert own_server.directories() == before


def test_a_foreign_import_stores_nothing_and_a_foreign_export_is_empty(own_http, caller, token):
    caller(token(), "alice")("remember", content="アリスのひみつ")
    headers = bearer(token("nilou"), "alice")
    refused = own_http.post("/api/import", content=b'{"content": "x"}', headers=headers)
    assert (refused.status_code, refused.json()["stored"]) == (403, 0)
    exported = own_http.get("/api/export", headers=headers)
    assert (exported.status_code, exported.content) == (200, b"")
    assert own_http.get("/api/stats", headers=bearer(token(), "alice")).json()["memories"] == 1


def test_lists_and_guesses_name_only_the_tokens_personas(own_http, caller, token):
    for name in ("alice", "alicia", "dehya"):
        caller(token(), name)("remember", content="x")
    secret = token("alicia", "nilou")
    assert [found["name"] for found in own_http.get("/api/personas", headers=bearer(secret)).json()["personas"]] == ["alicia"]
    assert caller(secret, "alic")("recall", query="x")["did_you_mean"] == ["alicia"]
    assert "did_you_mean" not in caller(token("nilou"), "alic")("recall", query="x")
    assert len(own_http.get("/api/personas", headers=bearer(token())).json()["personas"]) == 3


@pytest.mark.parametrize("operation", ["rename", "copy"])
def test_a_new_name_is_compared_with_the_tokens_personas_only(own_http, caller, token, operation):
    for name in ("foreign", "nilou", "dehya"):
        caller(token(), name)("remember", content="x")
    headers = bearer(token("nilou", "dehya", "Foreign", "Dehya"), "nilou")
    similar = own_http.post(f"/api/persona/{operation}", json={"to": "Dehya"}, headers=headers)
    assert (similar.status_code, "too similar" in similar.text) == (400, True)
    named = own_http.post(f"/api/persona/{operation}", json={"to": "Foreign"}, headers=headers)
    assert (named.status_code, named.json()["persona"]) == (200, "Foreign")
    assert own_http.get("/api/stats", headers=bearer(token(), "foreign")).json()["memories"] == 1


def test_auto_counts_only_the_personas_of_the_token(own_server, caller, token):
    own_server.configure(on_missing_persona="auto")
    caller(token(), "alice")("remember", content="x")
    assert caller(token("default", "nilou"))("recall", query="x")["persona"] == "default"
    assert "several, and must not guess" in caller(token()).refusal("recall", query="x")


def test_a_tool_beyond_the_scopes_is_refused_with_what_it_needs_and_does_nothing(own_server, caller, token):
    reader = caller(token("nilou", scopes=["read"]))
    words = "remember needs a token with the scope write: this one has read. Ask the server's owner for another."
    assert reader.refusal("remember", content="x") == words
    assert reader.refusal("remember", nonsense=1) == words
    assert own_server.directories() == set()
    writer = caller(token("nilou", scopes=["delete", "export"]))
    assert writer.refusal("revise", key="x") == (
        "revise needs a token with the scopes read and write: this one has delete, export. Ask the server's owner for another."
    )


def test_all_tools_are_listed_and_an_unknown_one_is_unknown_whatever_the_scopes(caller, token):
    reader = caller(token("nilou", scopes=["read"]))
    assert len(reader.wait(reader.client.list_tools)) == 6
    assert reader.refusal("ingest").startswith("There is no tool 'ingest'")


def test_write_only_token_gets_no_similar_memories(caller, token):
    caller(token("nilou"))("remember", content="ニロウは睡蓮の花が好き")
    writer = caller(token("nilou", scopes=["write"]))
    answer = writer("remember", content="ニロウは睡蓮の花がとても好き")
    assert (answer["stored"], answer["similar"]) == (True, [])
    assert caller(token("nilou"))("remember", content="ニロウは睡蓮の花が大好き")["similar"]


def test_write_only_token_is_not_told_what_is_near_to_what_it_stores(caller, token):
    everyone, writer = caller(token("nilou")), caller(token("nilou", scopes=["write"]))
    old = everyone("remember", content="ニロウの好きな花は睡蓮。")["key"]
    assert not writer("remember", content="ニロウの好きな花は蓮になった。").get("related")
    assert old in [near["key"] for near in everyone("remember", content="ニロウの好きな花は薔薇になった。")["related"]]


def test_write_only_token_is_not_told_which_notes_left_their_vault(own_http, token):
    note = {
        "key": "obsidian_a_0",
        "content": "睡蓮",
        "metadata": {"origin": {"format": "obsidian", "vault": "本棚", "note": "秘密の花.md"}},
    }
    body = "".join(json.dumps(line) + "\n" for line in (note, {"pieces_of": "obsidian_a", "pieces": 1}))
    for secret, told in ((token("nilou", scopes=("write",)), False), (token("nilou", scopes=("read", "write")), True)):
        headers = {"Authorization": f"Bearer {secret}"}
        assert own_http.post("/api/import", content=body, headers=headers).json()["refused"] == 0
        answer = own_http.post("/api/import", content='{"notes_of": "本棚"}'.encode(), headers=headers).json()
        assert ("deleted_notes" in answer) == told


def test_a_route_beyond_the_scopes_is_a_403(own_http, token):
    headers = bearer(token("nilou", scopes=["read", "write"]))
    answer = own_http.get("/api/export", headers=headers)
    assert answer.status_code == 403
    assert (
        answer.json()["error"]
        == "GET /api/export needs a token with the scope export: this one has read, write. Ask the server's owner for another."
    )


def test_every_tool_resource_prompt_and_route_says_what_it_needs(own_server, portal):
    needs = scope_needs()
    mcp = own_server.mcp
    tools = portal.call(mcp.list_tools)
    assert all(isinstance(tool, OperationTool) for tool in tools)
    names = [tool.name for tool in tools]
    names += [str(resource.uri) for resource in portal.call(mcp.list_resources)]
    names += [prompt.name for prompt in portal.call(mcp.list_prompts)]
    names += [f"{method} {route.path}" for route in mcp._additional_http_routes for method in route.methods - {"HEAD"}]
    assert [name for name in names if name not in needs] == []
    assert set(names) <= set(needs)
    assert {scope for wanted in needs.values() for scope in wanted} == set(TOKEN_SCOPES)


def test_undeclared_operations_need_the_admin_scope(own_server, caller, token):
    def undeclared(what: str = "x") -> str:
        return what

    own_server.mcp.tool(undeclared)
    own_server.mcp.resource("memory://undeclared/{what}")(undeclared)
    reader, owner = caller(token("nilou", scopes=["read", "write"])), caller(token("nilou", scopes=["admin"]))
    assert "undeclared needs a token with the scope admin" in reader.refusal("undeclared")
    assert not owner.result("undeclared", {}).is_error
    with pytest.raises(Exception, match="needs a token with the scope admin"):
        reader.wait(reader.client.read_resource, "memory://undeclared/x")
    assert owner.wait(owner.client.read_resource, "memory://undeclared/x")[0].text == "x"


def test_refusals_are_in_the_log_of_operations_with_the_tokens_id_and_without_its_secret(own_server, own_http, caller, token, told):
    secret = token("nilou", scopes=["read"])
    identity = secret.split("_")[1]
    own_http.get("/api/stats", headers={"Authorization": "Bearer mmcp_0123456789_" + "0" * 64})
    own_http.get(f"/{secret}")
    reader = caller(secret, "nilou")
    reader.refusal("remember", content="だれにも言わない秘密")
    caller(secret, "alice")("recall", query="だれにも言わない秘密")
    assert [(line["reason"], line["token"], line.get("asked"), line.get("persona")) for line in told()] == [
        ("token", None, "GET /api/stats", None),
        ("token", None, "GET an unknown address", None),
        ("scope", identity, "remember", None),
        ("persona", identity, None, "alice"),
    ]
    log = (own_server.data / "memory_operations.log").read_text(encoding="utf-8")
    assert secret.rpartition("_")[2] not in log
    assert "秘密" not in log


def test_calls_beyond_the_rate_limit_are_a_429_that_says_when_to_come_back(own_server, own_http, token, told):
    one, other = token("nilou"), token("dehya")
    own_server.configure(rate_limit={"per_minute": 1, "burst": 2})
    assert [own_http.get("/api/stats", headers=bearer(one)).status_code for _ in range(3)] == [200, 200, 429]
    refused = own_http.post("/mcp", json=ASKED, headers={**MCP_HEADERS, **bearer(one)})
    assert (refused.status_code, 1 <= int(refused.headers["retry-after"]) <= 60) == (429, True)
    assert refused.json()["error"]["message"].startswith("too many calls: 1 a minute are the limit, and 2 at once. Try again in ")
    assert own_http.get("/api/stats", headers=bearer(other)).status_code == 200
    assert [own_http.get("/api/stats").status_code for _ in range(3)] == [401, 401, 429]
    assert own_http.get("/health").status_code == 200
    assert {(line["reason"], line["token"]) for line in told()} >= {("rate_limit", one.split("_")[1]), ("rate_limit", None)}
    own_server.configure()
    assert own_http.get("/api/stats", headers=bearer(one)).status_code == 200


def test_a_server_without_tokens_limits_by_address(own_server, own_http):
    own_server.configure(rate_limit={"per_minute": 1, "burst": 1})
    assert [own_http.get("/api/stats").status_code for _ in range(2)] == [200, 429]


def test_a_large_body_of_a_stranger_is_not_read(own_server, own_http, token):
    token("nilou")
    answer = own_http.post("/mcp", content=b"x" * 8_000_000, headers=MCP_HEADERS)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("forwarded", "client"), [("203.0.113.9", "203.0.113.9"), ("2001:db8::7", "2001:db8::/64"), ("だれか<script>".encode(), "unknown")]
)
def test_caller_behind_a_local_proxy_is_the_forwarded_address(own_http, token, told, forwarded, client):
    token("nilou")
    assert own_http.get("/api/stats", headers=[("X-Forwarded-For", forwarded)]).status_code == 401
    assert [line["client"] for line in told()] == [client]
