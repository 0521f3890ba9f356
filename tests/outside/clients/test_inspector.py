"""The MCP Inspector's command line against a server process, in both protocol eras."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from processes import RunningServer, serving

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("era", ["legacy", "modern"])]

LAUNCHER = Path(__file__).parent / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOOL_ERROR = 5

Inspect = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("server"), '{"embeddings_model": null, "reranker_model": null}') as server:
        yield server


@pytest.fixture
def inspect(node: Any, server: RunningServer, era: str) -> Inspect:
    """inspect("tools/list", "--strict"): one run of the Inspector as a persona of the era's own."""

    def inspect(method: str, *further: str) -> CompletedProcess[str]:
        where = ["--server-url", f"{server.url}/mcp", "--transport", "http", "--protocol-era", era]
        who = ["--header", f"X-Persona: inspector-{era}"]
        return node.run(LAUNCHER, "--cli", *where, *who, "--method", method, "--format", "json", "-q", *further)

    return inspect


def answer_of(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)["result"]


def call(inspect: Inspect, tool: str, **arguments: Any) -> CompletedProcess[str]:
    return inspect("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments, ensure_ascii=False))


def test_the_tools_are_listed_and_their_schemas_are_portable(inspect, era):
    tools = answer_of(inspect("tools/list", "--strict"))["tools"]
    assert [tool["name"] for tool in tools] == ["get_context", "remember", "recall", "revise", "forget", "update_context"]


def test_what_is_remembered_by_one_run_is_recalled_by_the_next(inspect, era):
    answer_of(call(inspect, "remember", content="検査官は緑茶が好き"))
    found = answer_of(call(inspect, "recall", query="緑茶"))["structuredContent"]
    assert (found["persona"], [hit["content"] for hit in found["hits"]]) == (f"inspector-{era}", ["検査官は緑茶が好き"])


def test_a_refused_call_is_told_as_one(inspect, era):
    done = call(inspect, "remember", content="x", importance=7)
    assert done.returncode == TOOL_ERROR
    assert "importance" in done.stdout + done.stderr


def test_resources_and_prompts_are_read(inspect, era):
    (contents,) = answer_of(inspect("resources/read", "--uri", "memory://info"))["contents"]
    assert json.loads(contents["text"])["persona"] == f"inspector-{era}"
    told = answer_of(inspect("prompts/get", "--prompt-name", "session_start", "--prompt-args", "topic=緑茶"))
    assert "緑茶" in told["messages"][0]["content"]["text"]
