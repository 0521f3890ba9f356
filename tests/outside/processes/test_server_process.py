"""The server as a process of its own over a real socket: two personas at once, stops and kills, edits of config.json."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from processes import SPAWNED, RunningServer, command, serving

pytestmark = pytest.mark.slow

WRITERS = 4
ACKNOWLEDGED_BEFORE_THE_KILL = 60
MCP_HEADERS = {"accept": "application/json, text/event-stream"}

Call = tuple[str, dict[str, Any]]


async def talk(client: Client, calls: list[Call]) -> list[dict[str, Any]]:
    async with client:
        return [(await client.call_tool(tool, arguments)).structured_content for tool, arguments in calls]


def client_of(server: RunningServer, persona: str, mode: str = "auto") -> Client:
    return Client(StreamableHttpTransport(f"{server.url}/mcp", headers={"X-Persona": quote(persona)}), mode=mode)


def plain_call(server: RunningServer, persona: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call without a client library: one POST, one answer."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = httpx2.post(f"{server.url}/mcp", json=call, headers={**MCP_HEADERS, "X-Persona": quote(persona)}, trust_env=False)
    return answer.raise_for_status().json()["result"]["structuredContent"]


def get(server: RunningServer, path: str, persona: str = "nilou") -> httpx2.Response:
    return httpx2.get(server.url + path, headers={"X-Persona": quote(persona)}, trust_env=False).raise_for_status()


def remembered(server: RunningServer, persona: str = "nilou") -> list[str]:
    return [json.loads(line)["content"] for line in get(server, "/api/export", persona).content.splitlines()]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_personas_at_once_recall_only_their_own(shared_server: RunningServer, mode: str) -> None:
    first, second = f"さくら-{mode}", f"nilou-{mode}"
    secrets = {first: "桜餅のひみつ", second: "睡蓮のひみつ"}

    async def at_once() -> list[list[dict[str, Any]]]:
        by_header = client_of(shared_server, first, mode)
        by_path = Client(StreamableHttpTransport(f"{shared_server.url}/p/{second}/mcp"), mode=mode)
        return await asyncio.gather(
            *(
                talk(client, [("remember", {"content": secret}), ("recall", {"query": "ひみつ"}), ("get_context", {})])
                for client, secret in zip((by_header, by_path), secrets.values(), strict=True)
            )
        )

    for (persona, secret), (stored, found, context) in zip(secrets.items(), asyncio.run(at_once()), strict=True):
        assert (stored["stored"], stored["persona"]) == (True, persona)
        assert (found["persona"], found["mode"], found["reranked"]) == (persona, "keyword", False)
        assert [reason.partition("_")[0] for reason in found["degraded"]] == ["embedder", "reranker"]
        assert [hit["content"] for hit in found["hits"]] == [secret]
        assert (context["persona"], context["memories"]) == (persona, 1)


def test_stopping_and_starting_keeps_everything(tmp_path: Path) -> None:
    with serving(tmp_path, command=SPAWNED) as first:
        for persona in ("さくら", "nilou"):
            plain_call(first, persona, "remember", content=f"{persona}の思い出", occurred_at="昨日", tags=["旅"])
            plain_call(first, persona, "update_context", emotion="嬉しい", user_info={"name": "空"})
        exported = get(first, "/api/export", "さくら").content
        assert first.stop(signal.SIGTERM) == 0
    with serving(tmp_path) as second:
        assert get(second, "/api/export", "さくら").content == exported
        for persona in ("さくら", "nilou"):
            assert [hit["content"] for hit in plain_call(second, persona, "recall", query="思い出")["hits"]] == [f"{persona}の思い出"]
            assert plain_call(second, persona, "get_context")["state"] == {"emotion": "嬉しい"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with serving(tmp_path) as first:

        def write_until_the_end(writer: int) -> None:
            number = 0
            while True:
                content = f"書き手{writer}の記憶その{number}"
                try:
                    plain_call(first, "nilou", "remember", content=content)
                except httpx2.TransportError:
                    return
                acknowledged.append(content)
                if len(acknowledged) >= ACKNOWLEDGED_BEFORE_THE_KILL:
                    os.kill(first.process.pid, signal.SIGKILL)
                number += 1

        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(write_until_the_end, range(WRITERS)))
        assert first.process.wait(60) == -signal.SIGKILL
    assert len(acknowledged) >= ACKNOWLEDGED_BEFORE_THE_KILL
    with serving(tmp_path) as second:
        assert set(acknowledged) <= set(remembered(second))
        assert plain_call(second, "nilou", "recall", query=acknowledged[-1])["hits"][0]["content"] == acknowledged[-1]
        assert plain_call(second, "nilou", "remember", content="そのあと")["stored"]


def in_place(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def by_rename(file: Path, text: str) -> None:
    fresh = file.with_name("config.json.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


@pytest.mark.parametrize("edit", [in_place, by_rename])
def test_an_edited_configuration_is_in_force_at_the_next_call(running_server: RunningServer, edit: Callable[[Path, str], None]) -> None:
    for number in range(8):
        plain_call(running_server, "nilou", "remember", content=f"花の思い出その{number}")

    def hits() -> int:
        return len(plain_call(running_server, "nilou", "recall", query="花の思い出")["hits"])

    assert hits() == 5
    edit(running_server.config, '{"reranker_top_n": 2}')
    assert hits() == 2
    edit(running_server.config, '{"reranker_top_n": 7, "timezone": "UTC"}')
    assert hits() == 7
    assert plain_call(running_server, "nilou", "get_context")["now"].endswith("+00:00")
    edit(running_server.config, '{"reranker_top_n": 3')
    assert hits() == 7
    assert "is not valid JSON" in get(running_server, "/ready").json()["config_error"]
    edit(running_server.config, '{"reranker_top_n": "three"}')
    assert hits() == 7
    assert 'reranker_top_n = "three"' in get(running_server, "/ready").json()["config_error"]
    edit(running_server.config, '{"reranker_top_n": 3}')
    assert hits() == 3
    assert get(running_server, "/ready").json()["config_error"] is None


def test_an_edit_that_can_not_be_used_is_logged_although_nobody_calls(
    running_server: RunningServer, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    running_server.config.write_text('{"server_port": "http"}', encoding="utf-8")
    eventually(lambda: "The last valid settings stay in effect." in running_server.log.read_text(encoding="utf-8"))
    running_server.config.write_text('{"server_port": 1234}', encoding="utf-8")
    eventually(lambda: "takes effect only after a restart: server_port" in running_server.log.read_text(encoding="utf-8"))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells what a process has loaded")
def test_a_server_without_models_never_loads_torch(tmp_path: Path) -> None:
    with serving(tmp_path, command=SPAWNED) as server:
        plain_call(server, "light", "remember", content="軽い記憶")
        assert plain_call(server, "light", "recall", query="軽い記憶")["hits"]
        loaded = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "apsw" in loaded
    for library in ("libtorch", "transformers", "faiss", "langchain"):
        assert library not in loaded


def test_a_client_that_hangs_up_in_the_middle_leaves_no_half_memory_and_no_traceback(
    running_server: RunningServer, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    plain_call(running_server, "nilou", "remember", content="前からある記憶")
    address = httpx2.URL(running_server.url)
    for path in ("/api/import", "/mcp"):
        with socket.create_connection((address.host, address.port)) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Persona: nilou\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
            connection.sendall(head.encode() + b'{"content": "one"}\n{"cont')
    eventually(lambda: "/api/import: the client hung up" in running_server.log.read_text(encoding="utf-8"))
    assert remembered(running_server) == ["前からある記憶"]
    assert running_server.stop() == 0
    assert "Traceback" not in running_server.log.read_text(encoding="utf-8")


def test_a_page_of_another_site_is_refused_over_a_real_socket(shared_server: RunningServer) -> None:
    headers = {"Origin": "http://evil.example"}
    assert httpx2.get(f"{shared_server.url}/api/export", headers=headers, trust_env=False).status_code == 403
    assert httpx2.get(f"{shared_server.url}/health", headers={"Host": "evil.example"}, trust_env=False).status_code == 421


@pytest.mark.parametrize(
    ("config", "arguments", "words"),
    [
        ("{}", ["--host", "0.0.0.0"], "refusing to listen on 0.0.0.0"),  # noqa: S104  what must be refused
        ('{"server_host": "::"}', [], "set allow_anonymous to true in config.json"),
        ('{"server_port": 8000,', [], "is not valid JSON"),
        ('{"reranker_top_n": 0}', [], "reranker_top_n = 0"),
        ("{}", ["--data", "{directory}/config.json/memory"], "the data directory {directory}/config.json/memory can't be used"),
        ("{}", ["--host", "192.0.2.1"], "refusing to listen on 192.0.2.1"),
        ('{"allow_anonymous": true}', ["--host", "192.0.2.1"], "can't listen on 192.0.2.1:0"),
        (
            '{"oauth": {"authorization_server": "built_in", "public_url": "https://m.example"}}',
            ["--host", "192.0.2.1"],
            "can't listen on 192.0.2.1:0",
        ),
        ('{"oauth": {"authorization_server": "built_in"}}', [], "OAuth requires oauth.public_url"),
        ('{"allow_anonymous": true}', ["--host", "no.such.host.invalid"], "can't listen on no.such.host.invalid:0"),
    ],
)
def test_a_server_that_can_not_start_says_why_in_one_line(
    tmp_path: Path, thorough: bool, config: str, arguments: list[str], words: str
) -> None:
    spawned = thorough or words == "is not valid JSON"  # one of them as a user starts it
    file = tmp_path / "config.json"
    file.write_text(config, encoding="utf-8")
    given = [argument.format(directory=tmp_path) for argument in arguments]
    done = command("serve", "--port", "0", "--config", str(file), "--data", str(tmp_path / "memory"), *given, spawned=spawned)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("memory-mcp: ")
    assert words.format(directory=tmp_path) in said
    assert not (tmp_path / "memory").exists()


def test_a_server_that_can_not_read_its_tokens_does_not_start_and_with_some_it_may_listen_further(tmp_path: Path) -> None:
    data, arguments = tmp_path / "memory", ["serve", "--port", "0", "--config", str(tmp_path / "none.json")]
    assert command("token", "create", "--all-personas", "--data", str(data)).returncode == 0
    done = command(*arguments, "--host", "192.0.2.1", "--data", str(data))
    assert "can't listen on 192.0.2.1" in done.stderr  # no machine's address: it got that far
    (data / "tokens.json").write_text("{", encoding="utf-8")
    done = command(*arguments, "--data", str(data))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("memory-mcp: tokens.json is invalid")
