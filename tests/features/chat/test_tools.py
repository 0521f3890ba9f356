"""The tools of a conversation: of all servers of a settings file, under names of their own, in the dialect of each vendor."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import get_args

import pytest
from chat_models import ScriptedModel
from fastmcp import Client
from langchain_google_genai._function_utils import convert_to_genai_function_declarations

from memory_mcp.chat import ApprovalNeeded, Connection, Conversation, ToolResult, ToolServer, memory_server
from memory_mcp.config.settings import Settings, Toolset
from memory_mcp.errors import InvalidInput
from memory_mcp.features.chat.server_files import servers_of
from memory_mcp.features.chat.tools import Tool, Toolbox, specifications
from memory_mcp.features.chat.web import WebTurn
from memory_mcp.server.application import mcp_server

# The keywords that OpenAI's strict mode, Gemini and Ollama's templates all know.
COMMON = {"type", "properties", "required", "items", "description", "enum", "default"}

STDIO_SERVER = """
import os
from fastmcp import FastMCP
mcp = FastMCP("notes")

@mcp.tool(annotations={"readOnlyHint": True})
def recall(topic: str) -> str:
    return f"note on {topic} for {os.environ.get('NOTES_OWNER')}, {os.environ.get('ANTHROPIC_API_KEY')}"

@mcp.tool
def write(text: str) -> str:
    return "written"

@mcp.tool
def drop_everything() -> str:
    return "dropped"

mcp.run(show_banner=False)
"""


@pytest.fixture(scope="module")
def all_tools():
    async def listed():
        toolbox = Toolbox()
        mcp = mcp_server(Settings(toolsets=list(get_args(Toolset))))
        async with Client(mcp) as client:
            await toolbox.open([ToolServer("memory", lambda: client.transport)])
            tools = list(toolbox.tools.values())
            await toolbox.close()
        return tools

    return asyncio.run(listed())


def keywords(schema):
    """Those of a schema and of all within it."""
    found = set(schema)
    for inner in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        found |= keywords(inner)
    return found


def test_all_our_tools_use_what_every_vendor_knows(all_tools):
    assert {"remember", "recall"} < {tool.name for tool in all_tools}
    for tool in all_tools:
        for vendor in ("openai", "google"):
            (specified,) = specifications([tool], vendor)
            parameters = specified["function"]["parameters"]
            assert keywords(parameters) <= COMMON, tool.name
            assert set(parameters["properties"]) == set(tool.schema["properties"])


def test_gemini_takes_all_our_tools_without_a_complaint(all_tools, caplog):
    with caplog.at_level(logging.WARNING):
        (declared,) = convert_to_genai_function_declarations(specifications(all_tools, "google"))
    assert caplog.records == []
    of_gemini = {one.name: set(one.parameters.properties if one.parameters else ()) for one in declared.function_declarations}
    assert of_gemini == {tool.name: set(tool.schema["properties"]) for tool in all_tools}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"n": {"type": "integer", "enum": [1, 2]}, "title": {"type": "string", "title": "T"}}},
        {"oneOf": [{"type": "object", "properties": {"n": {"type": "string"}}}, {"type": "object", "properties": {"title": {}}}]},
        {"type": "object", "properties": {"n": {"type": ["string", "null"]}, "title": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
    ],
)
def test_an_odd_schema_of_another_server_loses_no_argument(schema):
    tool = Tool("odd", "odd", "other", "", schema, reads_only=True)
    (specified,) = specifications([tool], "google")
    (declared,) = convert_to_genai_function_declarations([specified])
    assert set(getattr(declared.function_declarations[0].parameters, "properties", ())) == ({"n", "title"} if schema else set())


@pytest.fixture
def other_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """other_server(**entry): the file with a stdio server of somebody else, in the form of VS Code or of Claude."""
    program = tmp_path / "notes.py"
    program.write_text(STDIO_SERVER, encoding="utf-8")
    monkeypatch.setenv("OWNER", "健太")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-others")

    def other_server(key="servers", variable="${env:OWNER}", **entry):
        server = {"type": "stdio", "command": sys.executable, "args": [str(program)], "env": {"NOTES_OWNER": variable}, **entry}
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({key: {"notes": server}}), encoding="utf-8")
        return path

    return other_server


def talk(model, server, path, persona):
    async def talked():
        events = []
        async with Conversation(model, Connection(server.url, persona=persona), servers=servers_of(path)) as conversation:
            async for event in conversation.say("x"):
                events.append(event)
                if isinstance(event, ApprovalNeeded):
                    conversation.answer(event.call.id, allowed=True)
            return conversation.toolbox, events

    return asyncio.run(talked())


@pytest.mark.slow
@pytest.mark.parametrize(("key", "variable"), [("servers", "${env:OWNER}"), ("mcpServers", "${OWNER}"), ("mcpServers", "${NONE:-健太}")])
def test_a_server_of_somebody_else_is_started_its_clash_told_apart_and_its_writes_asked_for(server, name, other_server, key, variable):
    calls = [
        {"name": "notes__recall", "args": '{"topic": "苺"}'},
        {"name": "recall", "args": '{"query": "苺"}'},
        {"name": "write", "args": '{"text": "a"}'},
    ]
    toolbox, events = talk(ScriptedModel(steps=[calls, "はい"]), server, other_server(key, variable, excludeTools=["drop_*"]), name)
    texts = {event.call.name: event.text for event in events if isinstance(event, ToolResult)}
    assert texts["notes__recall"] == "note on 苺 for 健太, None"  # the keys of the vendors are not its business
    assert "unmatched: 苺" in texts["recall"]
    assert [event.call.name for event in events if isinstance(event, ApprovalNeeded)] == ["write"]
    assert "drop_everything" not in toolbox.tools


def test_a_server_by_http_with_headers_is_asked_as_its_persona(server, name, tmp_path, monkeypatch):
    monkeypatch.setenv("WHO", f"{name}-other")
    path = tmp_path / "mcp.json"
    entry = {"type": "http", "url": f"{server.url}/mcp", "headers": {"X-Persona": "${env:WHO}"}, "includeTools": ["get_context"]}
    path.write_text(json.dumps({"servers": {"memory": entry}}), encoding="utf-8")
    toolbox, events = talk(ScriptedModel(steps=[{"name": "memory-2__get_context"}, "はい"]), server, path, name)
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert f"persona: {name}-other" in result.text
    assert [tool for tool in toolbox.tools if tool.startswith("memory-2")] == ["memory-2__get_context"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"url": "http://127.0.0.1:9/mcp"}, "connect"),
        ({"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${env:NOT_SET}"}}, "NOT_SET is not set"),
        ({"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${input:token}"}}, "it asks for the input token"),
        ({"command": "/nowhere/program"}, "/nowhere/program"),
        ({}, "neither a command nor a url"),
    ],
)
def test_a_server_that_cannot_be_reached_is_left_out_with_the_reason(server, name, tmp_path, entry, why):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"servers": {"broken": entry}}), encoding="utf-8")
    toolbox, events = talk(ScriptedModel(steps=["はい"]), server, path, name)
    assert why in toolbox.missing["broken"]
    assert events[-1].outcome == "done"


def test_the_page_gets_the_kind_of_a_fault_and_the_log_no_key(server, name, caplog):
    def refused():
        raise ConnectionRefusedError("no answer from https://bob:Hunter2@search.example/mcp?api_key=sk-secret 'x'")

    memory = memory_server(Connection(server.url, persona=name))
    turn = WebTurn.of(ScriptedModel(steps=["はい"]), {name: memory}, servers=[ToolServer("search", refused)])

    async def events():
        return [event async for event in turn.events("x")]

    with caplog.at_level(logging.WARNING):
        (left_out,) = [event for event in asyncio.run(events()) if event["event"] == "left_out"]
    assert left_out == {"event": "left_out", "server": "search", "why": "ConnectionRefusedError"}
    assert "no answer from https://search.example/mcp 'x'" in caplog.text
    assert "Hunter2" not in caplog.text
    assert "sk-secret" not in caplog.text


@pytest.mark.parametrize("text", ["", "[]", '{"servers": ["x"]}', '{"servers": {"a": "b"}}', "// comment\n{}"])
def test_a_file_of_another_form_is_refused(tmp_path, text):
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="can't be read as a list of MCP servers"):
        servers_of(path)
