"""`memory-mcp stdio` is a whole installation: one process serves the data directory, the others reach it, and any of them may end."""

import asyncio
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from processes import ROOT, clean_environment, command, serving
from stdio_host import StdioHost, call, request

from memory_mcp.personas.server_lock import LOCK_OWNER_NAME, read_note

pytestmark = pytest.mark.slow

NO_MODELS = '{"embeddings_model": null, "reranker_model": null}'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(NO_MODELS)
    return tmp_path / "memory"


def talk(data: Path, *lines: bytes, options: tuple[str, ...] = (), **environment: str) -> tuple[int, dict[Any, dict[str, Any]], str]:
    """Writes lines to a process of its own and ends its stdin. Returns its status, its messages by id, and its stderr."""
    done = command("stdio", "--data", str(data), *options, stdin=b"".join(lines), environment=environment)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {message["id"]: message for message in messages}, done.stderr


def structured(message: dict[str, Any]) -> dict[str, Any]:
    return dict(message["result"]["structuredContent"])


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.thorough)])
def test_one_line_of_a_client_is_a_whole_installation(data: Path, mode: str) -> None:
    environment = clean_environment({"MEMORY_MCP_PERSONA": "さくら"})
    transport = StdioTransport(
        sys.executable, ["-m", "memory_mcp", "stdio", "--data", str(data)], env=environment, cwd=str(ROOT), keep_alive=False
    )

    async def talked() -> tuple[list[dict[str, Any]], list[str], dict[str, Any], dict[str, Any], Any]:
        async with Client(transport, mode=mode) as client:
            await client.call_tool("remember", {"content": "舞台で踊った"})
            recalled = await client.call_tool("recall", {"query": "舞台"})
            refused = await client.call_tool("recall", {"query": ""}, raise_on_error=False)
            tools = [tool.model_dump(mode="json") for tool in await client.list_tools()]
            about = [str(listed) for listed in (await client.list_resources(), await client.list_prompts())]
            note = read_note(data)
            assert note
            async with httpx2.AsyncClient() as stranger:
                assert (await stranger.get(f"{note.url}/api/personas")).status_code == 401
            return tools, about, recalled.structured_content or {}, {"url": note.url}, refused

    async def by_http(url: str) -> tuple[list[dict[str, Any]], list[str]]:
        async with Client(f"{url}/mcp", mode=mode) as client:
            tools = [tool.model_dump(mode="json") for tool in await client.list_tools()]
            return tools, [str(listed) for listed in (await client.list_resources(), await client.list_prompts())]

    tools, about, recalled, _, refused = asyncio.run(talked())
    assert (recalled["persona"], [hit["content"] for hit in recalled["hits"]]) == ("さくら", ["舞台で踊った"])
    assert "query is empty" in refused.content[0].text
    with serving(data.parent, NO_MODELS, data=data) as server:
        # Not compared as bytes: over stdin this client speaks the earlier era, and the SDK writes the keys of a schema in another order there.
        assert (tools, about) == asyncio.run(by_http(server.url))
        assert "舞台で踊った" in server.memory_mcp("recall", "舞台", "-p", "さくら").stdout


def test_what_was_asked_before_stdin_ends_is_answered(data: Path) -> None:
    lines = [call(number, "remember", content=f"花見その{number}") for number in range(1, 9)]
    status, messages, log = talk(data, b"\n", *lines, options=("-p", "さくら"))
    assert (status, sorted(messages)) == (0, list(range(1, 9))), log
    assert all(structured(message)["stored"] for message in messages.values())
    _, messages, _ = talk(data, call(1, "recall", mode="recent", top_k=50), options=("-p", "さくら"))
    assert {hit["content"] for hit in structured(messages[1])["hits"]} == {f"花見その{number}" for number in range(1, 9)}


def test_what_is_no_call_is_refused_as_by_http(data: Path) -> None:
    too_long = call(2, "remember", content="あ" * 1_500_000)
    status, messages, _ = talk(data, b"what?\n", b"[1]\n", request(1, "tools/cook"), too_long, request(3, "ping"))
    assert status == 0
    assert messages[1]["error"]["code"] == -32601
    assert "one call takes at most 4 MiB" in messages[2]["error"]["message"]
    assert messages[3]["result"] == {}
    assert set(messages) == {1, 2, 3}


def test_a_stream_of_changes_ends_with_stdin(data: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listen = request(1, "subscriptions/listen", _meta=meta, notifications={"toolsListChanged": True})
    done = command("stdio", "--data", str(data), stdin=listen + request(2, "tools/list", _meta=meta))
    assert done.returncode == 0
    assert [len(message["result"]["tools"]) > 5 for line in done.stdout.splitlines() if (message := json.loads(line)).get("id") == 2] == [
        True
    ]


def test_processes_that_start_at_once_share_one_server(tmp_path: Path, data: Path) -> None:
    for round_ in range(2):
        with ExitStack() as stack:
            hosts = [stack.enter_context(StdioHost(tmp_path, data, "-p", "さくら")) for _ in range(4 - round_)]
            asked = [host.begin("remember", content=f"{round_}の{number}") for number, host in enumerate(hosts)]
            assert all(host.answer(number)["stored"] for host, number in zip(hosts, asked, strict=True))
            expected = {f"{earlier}の{number}" for earlier in range(round_ + 1) for number in range(4 - earlier)}
            assert [host.contents() for host in hosts] == [expected] * len(hosts)
            assert [host.end() for host in hosts] == [0] * len(hosts)
    assert not (data / LOCK_OWNER_NAME).exists()


def test_when_the_process_that_serves_ends_another_takes_over(tmp_path: Path, data: Path) -> None:
    with ExitStack() as hosts:
        first = hosts.enter_context(StdioHost(tmp_path, data))
        first("remember", content="一")  # it serves from now on
        second, third = (hosts.enter_context(StdioHost(tmp_path, data)) for _ in range(2))
        assert second.contents() == third.contents() == {"一"}
        asked = [second.begin("remember", content=f"途中{number}") for number in range(20)]
        assert first.end() == 0
        assert {second.answer(number)["stored"] for number in asked} <= {True, False}
        assert third.contents() == second.contents() == {"一", *(f"途中{number}" for number in range(20))}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_stop_answers_first(tmp_path: Path, data: Path, number: int) -> None:
    with StdioHost(tmp_path, data) as host:
        host("remember", content="一")
        assert host.stop(number) == 0
        assert not (data / LOCK_OWNER_NAME).exists()


def test_the_server_at_the_address_of_one_that_was_killed_is_not_asked(tmp_path: Path, data: Path) -> None:
    with serving(tmp_path, NO_MODELS, data=tmp_path / "other") as other:
        data.mkdir()
        note = {"process": other.process.pid, "url": other.url, "secret": "of a server that was killed"}
        (data / LOCK_OWNER_NAME).write_text(json.dumps(note))
        _, messages, _ = talk(data, call(1, "remember", content="ここだけの話"))
        assert structured(messages[1])["stored"]
        assert other.memory_mcp("recall", "話").stdout == ""


def test_a_server_that_runs_is_used_and_its_restart_survived(tmp_path: Path, data: Path) -> None:
    with serving(tmp_path, NO_MODELS, data=data) as server:
        port = int(server.url.rpartition(":")[2])
        host = StdioHost(tmp_path, data)
        with host:
            host("remember", content="一")
            assert "一" in server.memory_mcp("recall", "一").stdout
            server.stop()
            with serving(tmp_path, NO_MODELS, data=data, port=port) as again:
                assert host.contents() == {"一"}
                assert "一" in again.memory_mcp("recall", "一").stdout


def test_a_server_that_runs_by_itself_takes_over_and_the_processes_use_it(tmp_path: Path, data: Path) -> None:
    with StdioHost(tmp_path, data) as first, StdioHost(tmp_path, data) as second:
        first("remember", content="一")
        assert second.contents() == {"一"}
        with serving(tmp_path, NO_MODELS, data=data) as server:
            for host in (first, second):
                assert host("remember", content=f"二{host.process.pid}")["stored"]
            assert len(json.loads(server.memory_mcp("recall", "--mode", "recent", "--json").stdout)["hits"]) == 3
            assert (note := read_note(data))
            assert note.process == server.process.pid
        assert len(first.contents()) == 3


def test_a_backup_is_restored_and_personas_are_encrypted_beside_a_process_that_serves(tmp_path: Path, data: Path) -> None:
    key, there = tmp_path / "master.key", ("--data", str(data), "--config", str(tmp_path / "config.json"))
    assert command("key", "new", str(key)).returncode == 0
    data.with_name("config.json").write_text(json.dumps({**json.loads(NO_MODELS), "encryption": {"key_file": str(key)}}))
    with StdioHost(tmp_path, data, "-p", "さくら") as host:
        host("remember", content="一")
        assert command("backup", *there).returncode == 0
        (made,) = data.glob(".backups/*/*.sealed")
        host("remember", content="二")
        done = command("restore", str(made), "--replace", *there)
        assert done.returncode == 0, done.stderr
    with StdioHost(tmp_path, data, "-p", "さくら") as host:
        assert host.contents() == {"一"}
        done = command("encrypt", *there)
        assert done.returncode == 0, done.stderr
    assert b"SQLite format 3" not in b"".join(file.read_bytes()[:16] for file in data.rglob("memory.sqlite"))


def test_tokens_are_required_as_by_http(tmp_path: Path, data: Path) -> None:
    token = command("token", "create", "-p", "さくら", "--data", str(data)).stdout.strip()
    status, messages, log = talk(data, call(1, "remember", content="一"))
    assert (status, messages) == (1, {})
    assert log.splitlines()[-2 if log.endswith("stopped\n") else -1].startswith("memory-mcp: this server requires a token")
    _, messages, _ = talk(data, call(1, "remember", content="一"), MEMORY_MCP_TOKEN=token)
    assert structured(messages[1])["persona"] == "さくら"


def test_why_it_can_not_serve_is_said_in_one_line(data: Path) -> None:
    data.with_name("config.json").write_text("{")
    status, messages, log = talk(data)
    assert (status, messages) == (1, {})
    assert "config.json is not valid JSON" in log.splitlines()[-1]


def test_encrypted_memories_are_served_with_the_key(data: Path) -> None:
    data.with_name("config.json").write_text('{"embeddings_model": null, "reranker_model": null, "encryption": {"enabled": true}}')
    key = {"MEMORY_MCP_KEY": "ab" * 32}
    _, messages, log = talk(data, call(1, "remember", content="秘密の場所"), **key)
    assert structured(messages[1])["stored"], log
    assert not any("秘密の場所".encode() in file.read_bytes() for file in data.rglob("*") if file.is_file())
    status, messages, log = talk(data, call(1, "recall", query="場所"))
    assert (status, messages) == (1, {})
    assert "master key" in log.splitlines()[-1]
