"""What a client is shown of the server before it calls anything, and what makes calls quick."""

import gc
import json
import unicodedata

import pytest
from fastmcp.server.middleware import Middleware

pytestmark = pytest.mark.both_eras

TOKENS_LIMIT = 1_500
INSTRUCTIONS_LIMIT = 300
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def estimated_tokens(text):
    """Characters ÷ 4, Japanese characters as 1."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return wide + (len(text) - wide) / 4


def parts_of(schema):
    yield schema
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, dict | list):
            yield from parts_of(value)


@pytest.fixture
def tools(persona):
    return persona.wait(persona.client.list_tools)


def test_the_six_tools_are_listed_in_the_order_of_use(tools):
    assert [tool.name for tool in tools] == ["get_context", "remember", "recall", "revise", "forget", "update_context"]


def test_the_whole_tool_list_is_cheap_for_a_model_to_read(tools):
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert estimated_tokens(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= TOKENS_LIMIT


def test_every_tool_says_when_to_call_it_and_what_it_does_to_the_memory(tools):
    for tool in tools:
        assert tool.description
        assert "\n" not in tool.description
        hints = tool.annotations
        assert hints.title
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        assert hints.open_world_hint is False
    assert {tool.name for tool in tools if tool.annotations.read_only_hint} == {"get_context", "recall"}
    assert {tool.name for tool in tools if tool.annotations.destructive_hint} == {"forget"}


def test_every_schema_is_flat_and_says_the_type_of_every_argument(tools):
    for tool in tools:
        schema = tool.input_schema
        words = {word for part in parts_of(schema) if isinstance(part, dict) for word in part}
        assert not words & {"$ref", "$defs", "anyOf", "oneOf", "allOf"}
        assert all("type" in spec for spec in schema["properties"].values())
    required = {tool.name: tool.input_schema.get("required", []) for tool in tools}
    assert required == {
        "get_context": [],
        "remember": ["content"],
        "recall": [],
        "revise": ["key"],
        "forget": ["keys"],
        "update_context": [],
    }


def test_the_instructions_are_short_and_name_the_tools_of_a_conversation(persona):
    instructions = persona.client.instructions
    assert len(instructions) <= INSTRUCTIONS_LIMIT
    for name in ("get_context", "recall", "remember"):
        assert name in instructions


def test_both_eras_are_spoken(persona, era):
    assert persona.client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]


class Counting(Middleware):
    """Counts how often the tools are listed."""

    def __init__(self):
        self.listed = 0

    async def on_list_tools(self, context, call_next):
        self.listed += 1
        return await call_next(context)


def test_a_call_with_arguments_lists_no_tools(own_server, connect):
    counting = Counting()
    own_server.mcp.add_middleware(counting)
    caller = connect(own_server, "nilou")
    caller("remember", content="一度だけ")  # after a first call the client library lists the tools for itself
    counting.listed = 0
    caller("recall", query="一度")
    assert counting.listed == 0


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recall", {"query": "踊り", "detail": "why"}),
        ("recall", {"query": "踊り", "limit": 3}),
        ("recall", {"query": ""}),
        ("forget", {"keys": ["memory_1"], "dry_run": "true"}),
        ("nothing", {}),
    ],
)
def test_a_plain_call_is_answered_as_the_sdk_answers_it(own_server, own_http, connect, tool, arguments):
    connect(own_server, "nilou")("remember", content="踊りが好き 💃")
    seen = []

    async def seeing(context, call_next):
        seen.append(context.method)
        return await call_next(context)

    own_server.mcp._mcp_server.middleware.insert(0, seeing)

    def answer(**params):
        call = {"name": tool, "arguments": arguments, "_meta": META, **params}
        headers = {"X-Persona": "nilou", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return own_http.post("/mcp", json={"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call}, headers=headers)

    plain = answer()
    assert ("tools/call" in seen) == (tool == "nothing")
    seen.clear()
    of_sdk = answer(unknown=1)
    assert "tools/call" in seen
    assert (plain.status_code, plain.headers["content-type"], plain.content) == (200, "application/json", of_sdk.content)


@pytest.mark.parametrize(
    "wrong",
    [
        {"Mcp-Name": "forget"},
        {"Mcp-Method": "tools/list"},
        {"MCP-Protocol-Version": "2026-07-29"},
        {"Accept": "text/html"},
        {"Content-Type": "text/plain"},
    ],
)
def test_a_call_whose_headers_say_otherwise_is_refused_by_the_sdk(own_http, wrong):
    params = {"name": "remember", "arguments": {"content": "一度も"}, "_meta": META}
    headers = {"X-Persona": "nilou", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "remember", **wrong}
    answer = own_http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers=headers)
    assert answer.status_code in (400, 406)
    assert own_http.get("/api/recall", params={"query": "一度も"}, headers={"X-Persona": "nilou"}).json()["hits"] == []


def test_what_was_loaded_at_the_start_is_kept_from_the_garbage_collector(own_http):
    assert own_http.get("/health").status_code == 200
    assert gc.get_freeze_count() > 10_000


@pytest.mark.slow
def test_a_server_that_has_stopped_can_be_started_again_on_the_same_data(serving, tmp_path, connect):
    with serving(tmp_path) as first:
        key = connect(first, "nilou")("remember", content="また会えたね")["key"]
    with serving(tmp_path) as second:
        assert connect(second, "nilou")("recall", query="また")["hits"][0]["key"] == key
