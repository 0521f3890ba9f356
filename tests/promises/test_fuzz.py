"""Whatever is sent to /mcp, the answer is an answer: no failure of the server, no traceback, no hang, and it lives on."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fuzzing import LEGACY, MODERN, PERSONAS, TEXT, TREES, Fuzzed, arguments_of, explore, fuzzed, meta
from hypothesis import strategies as st

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
TOOLSETS = ["core", "upkeep", "compat", "graph", "experience"]
METHODS = (
    "tools/call tools/list initialize ping server/discover resources/read resources/list resources/templates/list resources/subscribe prompts/get "
    "prompts/list completion/complete logging/setLevel subscriptions/listen notifications/initialized notifications/cancelled tasks/get nothing"
).split()
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "花"}}}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with fuzzed(tmp_path_factory.mktemp("fuzzed"), toolsets=TOOLSETS) as target:
        yield target


def in_era(call: dict[str, Any], era: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The call as a client of an era sends it, with its headers."""
    if era == LEGACY:
        return call, {**ACCEPT, "mcp-protocol-version": LEGACY}
    params = call["params"] if isinstance(call.get("params"), dict) else {}
    headers = {**ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": str(call["method"])}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str) and name.isascii() and name.isprintable() and name.strip():
        headers["mcp-name"] = name
    return {**call, "params": {**params, "_meta": meta()}}, headers


def post(target: Fuzzed, body: bytes, headers: dict[str, str] | list[tuple[str, bytes]], persona: bytes = b"fuzz") -> Any:
    listed = list(headers.items()) if isinstance(headers, dict) else headers
    return target.sound(target.http.post("/mcp", content=body, headers=[("X-Persona", persona), *listed]))


def noted(figure: Any, target: Fuzzed, name: str, before: int) -> None:
    target.assert_unharmed()
    figure(f"fuzz: {name}", f"{target.cases - before} cases, 0 failures")


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_tools_take_or_refuse_whatever_arguments_they_are_given(target, era, figure, thorough):
    before = target.cases
    listing, headers = in_era({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, era)
    tools = post(target, json.dumps(listing).encode(), headers)["result"]["tools"]
    assert {"remember", "recall", "search_memory_rag"} <= {tool["name"] for tool in tools}
    for tool in tools:

        def check(case: Any, name: str = tool["name"]) -> None:
            arguments, persona = case
            call, headers = in_era({**CALL, "params": {"name": name, "arguments": arguments}}, era)
            told = post(target, json.dumps(call).encode(), headers, persona)
            assert "result" in told or "error" in told

        explore(st.tuples(arguments_of(tool["inputSchema"]), PERSONAS), check, 400 if thorough else 20)
    noted(figure, target, f"arguments of {len(tools)} tools, {era}", before)


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_any_method_with_any_parameters_is_answered(target, era, figure, thorough):
    before = target.cases
    parameters = st.fixed_dictionaries(
        {},
        optional={"name": TREES, "uri": TEXT | st.just("memory://info"), "arguments": TREES, "_meta": TREES, "cursor": TREES, "ref": TREES},
    )
    calls = st.fixed_dictionaries(
        {
            "jsonrpc": st.just("2.0"),
            "id": st.integers() | TEXT,
            "method": st.sampled_from(METHODS) | TEXT,
            "params": parameters | TREES,
        }
    )

    def check(call: dict[str, Any]) -> None:
        shaped, headers = in_era(call, era)
        encoded = {name: value for name, value in headers.items() if value.isascii() and value.isprintable() and value.strip() == value}
        post(target, json.dumps(shaped).encode(), encoded)

    explore(calls, check, 2_000 if thorough else 200)
    noted(figure, target, f"methods and parameters, {era}", before)


def mutated() -> st.SearchStrategy[bytes]:
    """A good body with some bytes of it replaced, left out or doubled."""
    whole = json.dumps(CALL).encode()
    spots = st.integers(0, len(whole))

    def cut(first: int, second: int, piece: bytes) -> bytes:
        return whole[: min(first, second)] + piece + whole[max(first, second) :]

    return st.builds(cut, spots, spots, st.binary(max_size=6))


ODD_BODIES = [
    b"",
    b"\0",
    b"null",
    b"[]",
    b"[" + b",".join([json.dumps(CALL).encode()] * 50) + b"]",
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember","arguments":' + b'{"content":' * 900 + b"1" + b"}" * 902,
    b'{"jsonrpc":"2.0","id":' + b"9" * 4_000 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember","name":"recall","arguments":{"query":"a","query":"b"}}}',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    json.dumps(CALL).encode("utf-16"),
    json.dumps(CALL, ensure_ascii=False).encode("shift_jis"),
    b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b" " * 1_000_000 + b"{}}",
    b"x" * (4 * 1024 * 1024),
    b"x" * (4 * 1024 * 1024 + 1),
]


def test_a_body_that_is_no_call_is_refused(target, figure, thorough):
    before = target.cases
    for body in ODD_BODIES:
        post(target, body, ACCEPT)
    explore(
        st.binary(max_size=200) | TREES.map(lambda tree: json.dumps(tree).encode()),
        lambda body: post(target, body, ACCEPT),
        1_200 if thorough else 120,
    )
    explore(mutated(), lambda body: post(target, body, ACCEPT), 2_500 if thorough else 250)
    noted(figure, target, "bodies", before)


# What a header's value may hold on the wire: h11 refuses the rest before it is sent, and `raw` sends it all the same.
WIRE = st.binary(max_size=60).map(lambda value: bytes(byte for byte in value if byte > 32 and byte != 127))
HEADERS = {
    "content-type": [b"text/plain", b"application/json; charset=utf-16", b"multipart/form-data", b"application/json, text/plain", b""],
    "content-encoding": [b"gzip", b"br", b"nothing"],
    "accept": [b"*/*", b"text/html", b"application/json", b"text/event-stream", b"", b"a" * 5_000],
    "mcp-protocol-version": [LEGACY.encode(), MODERN.encode(), b"2024-11-05", b"1", b"v999.0.0"],
    "mcp-method": [b"tools/call", b"TOOLS/CALL", b"tools/list", b"=?base64?!!?="],
    "mcp-name": [b"recall", b"remember", b"=?base64?cmVjYWxs?="],
    "mcp-session-id": [b"of-somebody-else", b"\xff\xfe"],
    "last-event-id": [b"1"],
    "host": [b"127.0.0.1", b"evil.example", b"", b"[::1]:80", b"a b"],
    "origin": [b"null", b"evil.example", b"file:///"],
    "x-persona": [
        b"nilou",
        b"",
        b" ",
        b"%",
        b"%00",
        b"%ff",
        b"\xff",
        "さくら".encode(),
        b"a" * 10_000,
        b"..%2f..",
        b"%2e%2e",
        b"con",
        b"nilou, mona",
    ],
    "authorization": [b"Bearer ", b"Bearer x", b"Basic eA==", b"\xff"],
    "expect": [b"100-continue"],
}


def headers() -> st.SearchStrategy[list[tuple[str, bytes]]]:
    one = st.sampled_from(sorted(HEADERS)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(HEADERS[name]) | WIRE))
    return st.lists(one, max_size=6)


def test_any_header_is_taken_or_refused(target, figure, thorough):
    before = target.cases
    bodies = [json.dumps(CALL).encode(), json.dumps(in_era(CALL, MODERN)[0]).encode()]

    def check(case: tuple[list[tuple[str, bytes]], bytes]) -> None:
        told, body = case
        named = {name for name, _ in told}
        usual = [(name, value.encode()) for name, value in ACCEPT.items() if name not in named]
        try:
            target.sound(target.http.post("/mcp", content=body, headers=[*usual, *told]))
        except httpx2.LocalProtocolError:
            return  # our own client would not send it

    explore(st.tuples(headers(), st.sampled_from(bodies)), check, 2_000 if thorough else 200)
    noted(figure, target, "headers", before)


def test_any_address_and_method_is_answered(target, figure, thorough):
    before = target.cases
    pieces = st.sampled_from(
        ["", "p", "mcp", "api", "stats", "export", "%2e%2e", "..", "%00", "%ff", "a%2Fb", "nilou", "%E3%81%8C", "?", "#", "//", "health"]
    )
    paths = st.lists(pieces | WIRE.map(lambda raw: "".join(f"%{byte:02x}" for byte in raw)), max_size=5).map(
        lambda parts: "/" + "/".join(parts)
    )
    methods = st.sampled_from("GET HEAD POST PUT DELETE PATCH OPTIONS TRACE BREW".split())

    def check(case: tuple[str, str]) -> None:
        target.raw(f"{case[0]} {case[1]} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode())

    explore(st.tuples(methods, paths), check, 1_500 if thorough else 150)
    noted(figure, target, "addresses", before)


def request(*headers: bytes, body: bytes = b"", path: bytes = b"/mcp") -> bytes:
    return b"\r\n".join([b"POST " + path + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *headers, b"", b""]) + body


CHUNKED = b"Transfer-Encoding: chunked"
WHOLE = json.dumps(CALL).encode()
RAW = [
    b"",
    b"\r\n" * 100,
    b"\0" * 1_000,
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET /mcp HTTP/9.9\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    request(b"Content-Length: 10", body=b"{"),
    request(b"Content-Length: -1", body=b"{}"),
    request(b"Content-Length: 99999999999999999999", body=b"{}"),
    request(b"Content-Length: 2", b"Content-Length: 3", body=b"{}"),
    request(b"Content-Length: 2", CHUNKED, body=b"2\r\n{}\r\n0\r\n\r\n"),
    request(CHUNKED, body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(WHOLE), WHOLE)),
    request(CHUNKED, body=b"".join(b"1\r\n%c\r\n" % byte for byte in WHOLE) + b"0\r\n\r\n"),
    request(CHUNKED, body=b"zz\r\n{}\r\n0\r\n\r\n"),
    request(CHUNKED, body=b"ffffffffffffffff\r\n{}"),
    request(CHUNKED, body=b"5\r\n{}"),
    request(CHUNKED, body=b"-2\r\n{}\r\n0\r\n\r\n"),
    request(b"X-Persona: \xff\xfe", b"Content-Length: 2", body=b"{}"),
    request(b"X-Persona: a\0b", b"Content-Length: 2", body=b"{}"),
    request(b"X-Persona: a\rb", b"Content-Length: 2", body=b"{}"),
    request(b"X-Persona : a", b"Content-Length: 2", body=b"{}"),
    request(*[b"X-Persona: nilou"] * 200, b"Content-Length: 2", body=b"{}"),
    request(b"X-Long: " + b"a" * 200_000, b"Content-Length: 2", body=b"{}"),
    request(b"Content-Length: 2", body=b"{}", path=b"/p/" + b"a" * 60_000 + b"/mcp"),
    request(b"Content-Length: 2", body=b"{}", path=b"http://elsewhere.example/mcp"),
    request(b"Content-Length: 2", body=b"{}", path=b"*"),
    request(b"Content-Length: 0", path=b"/api/import"),
    request(CHUNKED, body=b'5\r\n{"con', path=b"/api/import"),
]


def test_bytes_that_are_hardly_http_are_refused(target, figure, thorough):
    before = target.cases
    for sent in RAW:
        target.raw(sent)
    known = [*RAW, b"\r\n", b": ", b"\0", WHOLE]
    # Numbers of pieces, not the pieces: hypothesis warns of a case that takes pages to print.
    pieces = st.integers(0, len(known) - 1) | st.binary(max_size=30)

    def check(case: list[int | bytes]) -> None:
        target.raw(b"".join(known[piece] if isinstance(piece, int) else piece for piece in case))

    explore(st.lists(pieces, min_size=1, max_size=4), check, 1_000 if thorough else 100)
    noted(figure, target, "bytes", before)


def test_a_refusal_does_not_repeat_what_it_refuses(target):
    for tool, arguments in {
        "recall": {"query": "x", "mode": "m" * 1_000_000},
        "remember": {"content": "x", "kind": "k" * 1_000_000},
        "revise": {"key": "k" * 1_000_000, "content": "x"},
        "forget": {"keys": ["k" * 10_000] * 100},
        "update_context": {"user_info": {"n" * 1_000_000: "x"}},
    }.items():
        post(target, json.dumps({**CALL, "params": {"name": tool, "arguments": arguments}}).encode(), ACCEPT)
    post(target, json.dumps({**CALL, "params": {"name": "t" * 1_000_000, "arguments": {}}}).encode(), ACCEPT)
