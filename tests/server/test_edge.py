"""What is refused before anybody parses MCP: bodies that nobody can use, wrong hosts and origins, wrong addresses."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import httpx2
import pytest
from mcp import MCPError
from starlette.responses import PlainTextResponse

from memory_mcp.config.settings import Calls
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.bounds import Bounds
from memory_mcp.server.concurrency import ConcurrencyLimiter
from memory_mcp.server.edge import Edge
from memory_mcp.store import operations
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of many tests

MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
LIBRARY_WORDS = ("pydantic", "Traceback", "https://", "validation error", "sys.")


def call_of(**arguments):
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "remember", "arguments": arguments}}


@pytest.fixture
def post(http, name):
    """Posts the bytes of an MCP call as a persona that nobody else is."""

    def post(body, **headers):
        answer = http.post("/mcp", content=body, headers={**MCP_HEADERS, "X-Persona": name, **headers})
        assert not [said for said in LIBRARY_WORDS if said in answer.text], answer.text
        return answer

    return post


def test_five_megabytes_are_refused_with_the_way_that_takes_them(post, server, name):
    answer = post(json.dumps(call_of(content="x" * 5_000_000)))
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == (
        "The call has 4.8 MiB or more; one call takes at most 4 MiB. Nothing was stored. "
        "Split it, or send many memories as JSON lines to POST /api/import."
    )
    assert not server.directory_of(name).exists()


def test_five_megabytes_that_do_not_say_their_size_are_refused_too(post):
    answer = post(b"x" * 100_000 for _ in range(50))
    assert answer.status_code == 413
    assert "4 MiB" in answer.json()["error"]["message"]


def test_the_size_is_refused_under_the_path_of_a_persona_too(http):
    answer = http.post("/p/nilou/mcp", content=b"x" * 5_000_000, headers=MCP_HEADERS)
    assert answer.status_code == 413


def test_a_client_library_hears_of_a_memory_that_is_too_large(persona):
    with pytest.raises(MCPError, match="one call takes at most 4 MiB"):
        persona("remember", content="x" * 5_000_000)
    assert persona("remember", content="小さい記憶")["stored"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not JSON"),
        (b'{"jsonrpc": "2.0", "id": 7,', "is not JSON (Expecting property name"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}', "is not UTF-8 (byte 40)"),
        (
            '{"content": "記憶"}'.encode("shift_jis"),
            "is not UTF-8 (byte 14): it seems to be Shift_JIS (CP932). Nothing was stored. Send it as",
        ),
        ('{"content": "記憶"}'.encode("euc_jp"), "it seems to be EUC-JP"),
        ('{"content": "記憶"}'.encode("utf-16"), "it seems to be UTF-16"),
        (b"[" * 100_000, "lists within lists without end"),
        (b'{"id": ' + b"9" * 5_000 + b"}", "a number of thousands of digits"),
        (b"{}", "This is no call that MCP knows. Send JSON-RPC 2.0"),
        (b"null", "This is no call that MCP knows"),
        (b"[]", "This is no call that MCP knows"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": 5}', "This is no call that MCP knows"),
        (b'{"jsonrpc": "2.0", "id": 7, "result": 5}', "This is no call that MCP knows"),
    ],
)
def test_a_body_that_is_no_call_is_refused_in_our_words(post, body, words):
    answer = post(body)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert words in message
    assert "Nothing was stored." in message


def test_a_call_with_more_arguments_than_any_tool_takes_is_refused_before_they_are_looked_at(http):
    call = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {f"a{n}": n for n in range(50_000)}},
    }
    answer = http.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
    assert answer.status_code == 400
    assert answer.json()["id"] == 7
    assert "50,000 arguments" in answer.json()["error"]["message"]


def test_a_query_in_another_encoding_is_refused_and_the_encoding_named(http):
    answer = http.get("/api/recall?query=" + "".join(f"%{byte:02X}" for byte in "健太は海老アレルギー".encode("cp932")))
    assert answer.status_code == 400
    assert answer.json()["error"] == "the query is not UTF-8 (byte 7): it seems to be Shift_JIS (CP932). Send it as UTF-8."


@pytest.mark.parametrize("encoding", ["cp932", "shift_jis", "euc_jp", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso2022_jp", "cp1252"])
def test_a_body_of_a_route_in_another_encoding_is_refused_and_the_encoding_named(http, encoding):
    text = "déjà vu" if encoding == "cp1252" else "健太は海老アレルギー。"
    answer = http.post("/api/memories", content=json.dumps({"content": text}, ensure_ascii=False).encode(encoding))
    names = {"cp932": "Shift_JIS (CP932)", "shift_jis": "Shift_JIS (CP932)", "euc_jp": "EUC-JP", "iso2022_jp": "ISO-2022-JP"}
    known = names | {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252 (Latin)"}
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(f": it seems to be {known.get(encoding, encoding.upper())}. Send it as UTF-8.")


@pytest.mark.parametrize("accept", [None, "", "*/*", "application/json", "application/*;q=0.8", "text/html, */*"])
def test_a_call_is_answered_whatever_form_its_client_takes_or_if_it_does_not_say(server, accept):
    headers = [("content-type", "application/json"), *([("accept", accept)] if accept is not None else [])]
    with httpx2.Client(base_url=server.url) as client:
        del client.headers["accept"]
        answer = client.post("/mcp", headers=headers, content=json.dumps(call_of(content="x")))
    assert (answer.status_code, answer.json()["id"]) == (200, 7)


def test_a_client_that_takes_no_json_hears_what_to_send(server):
    with httpx2.Client(base_url=server.url) as client:
        answer = client.post("/mcp", headers={"accept": "text/html"}, json=call_of(content="x"))
    assert answer.status_code == 406
    assert "application/json" in answer.text


@pytest.mark.parametrize("escaped", [rb"\ud83d", rb"\uDE00 alone", rb"\uD83D\u0041"])
def test_half_a_character_is_refused_wherever_it_stands(post, escaped, server, name):
    body = json.dumps(call_of(content="HERE")).encode().replace(b"HERE", escaped)
    answer = post(body)
    assert answer.status_code == 400
    assert answer.json()["id"] == 7
    assert answer.json()["error"]["message"].startswith("A text of the call holds half of a surrogate pair")
    assert post(json.dumps(call_of(HERE=1)).encode().replace(b"HERE", escaped)).status_code == 400
    assert not server.directory_of(name).exists()


def test_an_identity_that_is_half_a_character_is_not_sent_back(post):
    answer = post(rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}')
    assert (answer.status_code, answer.json()["id"]) == (400, None)


def test_a_whole_character_written_as_two_halves_is_welcome(post):
    answer = post(rb'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":{"content":"\ud83d\ude00"}}}')
    assert answer.json()["result"]["structuredContent"]["stored"]


def test_a_call_that_does_not_say_it_is_json_is_told_so(post):
    answer = post(json.dumps(call_of(content="x")), **{"content-type": "text/plain"})
    assert answer.status_code in (400, 415)
    assert "application/json" in answer.json()["error"]


def test_a_failure_that_nobody_foresaw_is_answered_without_its_details(portal, server):
    async def asked():
        edge = Edge(
            PlainTextResponse("Internal Server Error", status_code=500),
            Authenticator(server.runtime, ()),
            ConcurrencyLimiter(Calls),
            Bounds(),
        )
        transport = httpx2.ASGITransport(edge)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", verify=False) as client:
            return await client.get("/api/stats")

    answer = portal.call(asked)
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("The server failed in a way that it did not foresee. Its log says how.")


@pytest.mark.parametrize("path", ["/nothing", "/api/nothing", "/p/nilou", "/p/nilou/nothing", "/p/a/p/b/mcp", "/"])
def test_an_address_where_nothing_is_says_where_things_are(http, path):
    answer = http.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("There is nothing here. MCP is at /mcp")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/mcp"), ("PUT", "/mcp"), ("POST", "/health"), ("GET", "/api/import"), ("DELETE", "/api/export")]
)
def test_a_method_that_an_address_does_not_take_is_refused_in_our_words(http, method, path):
    answer = http.request(method, path, headers=MCP_HEADERS)
    assert answer.status_code == 405
    assert answer.json()["error"].startswith("This address does not take that HTTP method")


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("POST", "/api/tools/remember", "Perhaps you mean POST /api/memories."),
        ("POST", "/p/nilou/api/get_context", "Perhaps you mean GET /api/context."),
        ("GET", "/api/memorys", "Perhaps you mean"),
        ("GET", "/api/xyzzy", "All routes: GET /api/openapi.json."),
        ("GET", "/api", "All routes: GET /api/openapi.json."),
        ("POST", "/api/recall", "Here it takes GET."),
    ],
)
def test_an_address_that_nearly_is_one_says_which(http, method, path, named):
    answer = http.request(method, path)
    assert answer.status_code == (405 if path == "/api/recall" else 404)
    assert named in answer.json()["error"]


@pytest.mark.parametrize("path", ["/mcp", "/health", "/ready", "/api/stats", "/api/export", "/p/nilou/api/stats"])
def test_another_hosts_name_is_refused_everywhere(http, path):
    method = "POST" if path == "/mcp" else "GET"
    content = json.dumps(call_of(content="x")) if path == "/mcp" else None
    answer = http.request(method, path, content=content, headers={**MCP_HEADERS, "Host": "evil.example"})
    assert answer.status_code == 421
    assert answer.json()["error"].startswith("The Host header names a host that this server does not answer for. Use 127.0.0.1")


@pytest.mark.parametrize("path", ["/mcp", "/health", "/api/stats", "/api/export", "/p/nilou/api/stats"])
@pytest.mark.parametrize("origin", ["http://evil.example", "https://localhost.evil.example", "null"])
def test_a_page_of_another_site_is_refused_everywhere(http, path, origin):
    method = "POST" if path == "/mcp" else "GET"
    content = json.dumps(call_of(content="x")) if path == "/mcp" else None
    answer = http.request(method, path, content=content, headers={**MCP_HEADERS, "Origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"].startswith("This origin may not call this server")


def test_a_page_of_this_host_may_call(http, server):
    for origin in (f"http://localhost:{server.port}", f"http://127.0.0.1:{server.port}"):
        assert http.get("/api/stats", headers={"Origin": origin}).status_code == 200
        assert http.post("/mcp", json=call_of(content=origin), headers={**MCP_HEADERS, "Origin": origin}).status_code == 200


def test_a_host_that_the_configuration_allows_is_answered(serving, tmp_path):
    with serving(tmp_path, allowed_hosts=["memory", "*.lan"]) as served, httpx2.Client(base_url=served.url) as http:
        for host in ("memory", f"memory:{served.port}", "box.lan", "localhost"):
            assert http.get("/health", headers={"Host": host}).status_code == 200
        assert http.get("/health", headers={"Host": "evil.example"}).status_code == 421


def test_a_call_too_many_is_refused_with_a_time_to_come_again_and_counts_for_nothing(own_server, own_http, monkeypatch):
    release, working = threading.Event(), threading.Event()
    record = operations.record

    def slowly(*arguments, **named):
        working.set()
        assert release.wait(60)
        return record(*arguments, **named)

    monkeypatch.setattr(operations, "record", slowly)
    headers = {**MCP_HEADERS, "X-Persona": "nilou"}
    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(own_http.post, "/mcp", json=call_of(content="a"), headers=headers)
        assert working.wait(60)
        own_server.configure(calls={"at_once": 1, "waiting": 0})
        told = own_http.get("/api/stats")
        assert told.status_code == 503
        assert (told.headers["retry-after"], told.json()["error"][:31]) == ("1", "too many calls are waiting: the")
        called = own_http.post("/mcp", json=call_of(content="b"), headers={**MCP_HEADERS, "X-Persona": "さくら".encode()})
        assert (called.status_code, called.headers["retry-after"]) == (503, "1")
        assert called.json()["error"]["code"] == -32000
        assert own_http.get("/health").status_code == own_http.get("/ready").status_code == 200
        own_server.configure(calls={"at_once": 2, "at_once_per_persona": 1, "waiting": 0, "waiting_per_persona": 0})
        for same in ("nilou", "%6eilou"):
            told = own_http.get("/api/stats", headers={"X-Persona": same})
            assert (told.status_code, told.headers["retry-after"]) == (429, "1")
        assert own_http.get("/api/stats", headers={"X-Persona": "さくら".encode()}).status_code == 200
        release.set()
        assert writing.result().json()["result"]["structuredContent"]["stored"]
    assert own_server.directories() == {"nilou"}


@contextmanager
def half_sent(port, path, beginning=b"{", count=1, headers=""):
    """Connections on which calls have begun, and nothing more comes."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: */*\r\nX-Persona: stalled-%d\r\n"
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(count)]
        for number, connection in enumerate(opened):
            connection.sendall((head % number + headers).encode() + b"Content-Length: 1000\r\n\r\n" + beginning)
        yield opened


@pytest.mark.parametrize(("path", "count"), [("/mcp", 30), ("/api/purge", 30), ("/api/import", 3)])
def test_a_body_that_does_not_come_keeps_nobody_waiting(own_server, own_http, path, count):
    own_server.configure(calls={"at_once": 4, "waiting": 0, "at_once_per_persona": 1, "waiting_per_persona": 0})
    line = b'{"content": "a"}\n' if path == "/api/import" else b"{"
    with half_sent(own_server.port, path, line, count):
        for number in range(20):
            assert own_http.get("/api/stats", headers={"X-Persona": f"stalled-{number}"}).status_code == 200
            answer = own_http.post("/mcp", json=call_of(content=f"b {number}"), headers={**MCP_HEADERS, "X-Persona": "nilou"})
            assert answer.json()["result"]["structuredContent"]["stored"]


def test_one_token_has_the_imports_of_one_caller_however_many_personas_it_names(own_server, own_http):
    own_server.configure(calls={"at_once": 4, "waiting": 0, "at_once_per_persona": 1, "waiting_per_persona": 0})
    nilous, dehyas = (
        create_token(own_server.data, name=name, personas=[name], scopes=["write"], now=own_server.runtime.clock(), expires_at=None)[1]
        for name in ("nilou", "dehya")
    )

    def imported(secret, persona):
        headers = {"Authorization": f"Bearer {secret}", "X-Persona": persona}
        return own_http.post("/api/import", content=b'{"content": "a"}', headers=headers).status_code

    with half_sent(own_server.port, "/api/import", b'{"content": "begun', 1, headers=f"Authorization: Bearer {nilous}\r\n"):
        assert [imported(nilous, persona) for persona in ("nilou", "foreign", "another")] == [429, 429, 429]
        assert imported(dehyas, "dehya") == 200


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/mcp", "/api/purge", "/api/import"])
def test_a_body_that_stops_arriving_is_given_up(own_server, own_http, path):
    own_server.bounds.silence_seconds = 0.2
    with half_sent(own_server.port, path, headers="Connection: close\r\n") as [connection]:
        answer = b"".join(iter(lambda: connection.recv(4_096), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the rest of the call did not come" in answer
    assert own_server.runtime.personas.names() == []


@pytest.mark.parametrize(("calls_before", "beginning"), [(0, b""), (0, b"POST /mcp HTTP/1.1\r\nHost: 127"), (1, b"GET /he")])
def test_a_connection_on_which_no_request_begins_or_its_headers_do_not_end_is_closed(own_server, calls_before, beginning):
    if not calls_before:
        own_server.bounds.silence_seconds = 0.2
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=60) as connection:
        for _ in range(calls_before):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(4_096)
        own_server.bounds.silence_seconds = 0.2
        with suppress(ConnectionError):  # it may be closed already
            connection.sendall(beginning)
            assert connection.recv(4_096) == b""


@pytest.mark.slow
def test_what_an_import_had_stored_before_it_stopped_is_stored_and_said(own_server, own_http):
    own_server.bounds.silence_seconds = 0.2
    lines = b"".join(b'{"content": "%d"}\n' % number for number in range(200))
    told = ("POST /api/import HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "X-Persona: nilou", f"Content-Length: {len(lines) + 99}")
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=60) as connection:
        connection.sendall("\r\n".join([*told, "", ""]).encode() + lines)
        answer = b"".join(iter(lambda: connection.recv(4_096), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["stored"] == 200
    assert own_http.get("/api/stats", headers={"X-Persona": "nilou"}).json()["memories"] == 200
    with own_server.runtime.personas.reading("nilou") as persona, persona.database.read() as connection:
        failures = connection.execute("SELECT operation, error FROM operations WHERE NOT success").fetchall()
    assert failures == [("POST /api/import", "BodyLate")]


@pytest.mark.parametrize("identity", ["1.5", "1e3", "null", "true", "{}", "[1]"])
def test_a_call_with_an_id_that_json_rpc_does_not_know_is_refused_and_not_done(server, http, name, identity):
    body = json.dumps(call_of(content="x")).replace('"id": 7', f'"id": {identity}')
    assert identity in body
    answer = http.post("/mcp", content=body, headers={**MCP_HEADERS, "X-Persona": name})
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, -32600, None)
    assert name not in server.runtime.personas.names()
