"""Claude Code, Gemini CLI and Codex themselves, with what `connect --write --hooks` wrote, and a stand-in for their vendors' models.

The model's part is scripted: it says what it is told to say. What is tested is that the agents read our settings, connect, call our tools, run
our hooks, and keep transcripts that we can read.
"""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from places import CLIENTS
from processes import ROOT, RunningServer, clean_environment, serving

pytestmark = [pytest.mark.trust, pytest.mark.thorough, pytest.mark.slow, pytest.mark.timeout(300)]

AGENTS = CLIENTS / "agents"
PROGRAMS = AGENTS / "node_modules" / ".bin"
SAKURA = "%E3%81%95%E3%81%8F%E3%82%89"


@dataclass(frozen=True)
class Desk:
    """A home and a project, a server, and the address of the scripted model."""

    home: Path
    project: Path
    server: RunningServer
    model: str

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        homes = {"HOME": str(self.home), "USERPROFILE": str(self.home), "MEMORY_MCP_URL": self.server.url, "NO_COLOR": "1"}
        return subprocess.run(
            command,
            cwd=self.project,
            env=clean_environment({**homes, **environment}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=200,
            check=False,
        )

    def connect(self, client: str) -> None:
        command = shutil.which("memory-mcp", path=str(Path(sys.executable).parent))
        assert command
        done = self.run(command, "connect", "--client", client, "-p", "さくら", "--url", self.server.url, "--write", "--hooks")
        assert done.returncode == 0, done.stderr

    def memories(self) -> list[dict[str, Any]]:
        headers = {"X-Persona": SAKURA}
        answer = httpx2.get(f"{self.server.url}/api/memories", headers=headers, trust_env=False).raise_for_status().json()
        return list(answer["memories"])


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    if not PROGRAMS.is_dir():
        if request.config.getoption("--require-node"):
            pytest.fail("the packages in tests/outside/clients/agents are missing: make trust installs them")
        pytest.skip("the packages in tests/outside/clients/agents are missing: make trust installs them")
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = AGENTS / "node_modules/@copilotkit/aimock/dist/cli.js"
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps({"fixtures": fixtures(request.node.callspec.params["tool"] if hasattr(request.node, "callspec") else None)}),
        encoding="utf-8",
    )
    command = ["node", str(model), "-p", str(port), "-f", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as mock:
        try:
            assert mock.stdout is not None
            assert any("listening" in line for line in mock.stdout)
            with serving(tmp_path, '{"embeddings_model": null, "reranker_model": null}') as server:
                yield Desk(home, project, server, f"http://127.0.0.1:{port}")
        finally:
            mock.terminate()


def fixtures(tool: str | None) -> list[dict[str, Any]]:
    """What the model says; `tool` is what the agent calls `remember`."""
    call = {"name": tool, "arguments": json.dumps({"content": "健太の好物は苺大福", "source": "user"})}
    told = {"userMessage": "健太の好物は苺大福だよ"}
    return [
        {"match": {"userMessage": "何が好き"}, "response": {"content": "苺大福です。"}},
        {"match": {**told, "hasToolResult": True}, "response": {"content": "覚えました。"}},
        {"match": told, "response": {"toolCalls": [call]} if tool else {"content": "覚えました。"}},
    ]


def ask_claude_code(desk: Desk, text: str) -> str:
    done = desk.run(
        *(str(PROGRAMS / "claude"), "-p", text, "--mcp-config", ".mcp.json", "--allowedTools", "mcp__memory"),
        ANTHROPIC_API_KEY="sk-ant-none",
        ANTHROPIC_BASE_URL=desk.model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def ask_gemini(desk: Desk, text: str) -> str:
    settings = desk.home / ".gemini" / "settings.json"
    chosen = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "security": chosen}))
    done = desk.run(
        *(str(PROGRAMS / "gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", text),
        GEMINI_API_KEY="none",
        GOOGLE_GEMINI_BASE_URL=desk.model,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def ask_codex(desk: Desk, text: str) -> str:
    provider = {"name": "none", "base_url": f"{desk.model}/v1", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
    options = [word for name, value in provider.items() for word in ("-c", f"model_providers.none.{name}={value}")]
    done = desk.run(
        *(str(PROGRAMS / "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        *("--dangerously-bypass-hook-trust", *options, "-c", "model_provider=none", "-m", "gpt-5", text),
        OPENAI_API_KEY="none",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("client", "ask", "tool"),
    # The scripted model can't name a tool as Codex wants it named.
    [("claude-code", ask_claude_code, "mcp__memory__remember"), ("gemini", ask_gemini, "mcp_memory_remember"), ("codex", ask_codex, None)],
)
def test_an_agent_remembers_and_begins_the_next_conversation_with_it(
    client: str, ask: Any, tool: str | None, desk: Desk, eventually: Any
) -> None:
    desk.connect(client)
    assert "覚えました。" in ask(desk, "健太の好物は苺大福だよ")
    said = {"健太の好物は苺大福だよ", "覚えました。"} | ({"健太の好物は苺大福"} if tool else set())
    # Gemini CLI doesn't wait for its last hook.
    eventually(lambda: {memory["content"] for memory in desk.memories()} == said)
    assert "苺大福" in ask(desk, "健太は何が好き？")
    # In the transcript, since the stand-in doesn't keep every part of what it is sent.
    assert any("What you remember:" in path.read_text(encoding="utf-8") for path in desk.home.rglob("*.jsonl"))
    eventually(lambda: len(desk.memories()) == len(said) + 2)
    assert not any("What you remember" in memory["content"] for memory in desk.memories())


def test_the_agents_accept_our_plugins(desk: Desk) -> None:
    for command in (
        ("claude", "plugin", "validate", str(ROOT / "plugins/memory")),
        ("claude", "plugin", "validate", str(ROOT)),
        ("claude", "plugin", "marketplace", "add", str(ROOT)),
        ("claude", "plugin", "install", "memory@memory-mcp"),
        ("codex", "plugin", "marketplace", "add", str(ROOT)),
        ("codex", "plugin", "add", "memory@memory-mcp"),
        ("gemini", "extensions", "validate", str(ROOT / "plugins/gemini")),
    ):
        done = desk.run(str(PROGRAMS / command[0]), *command[1:])
        assert done.returncode == 0, done.stderr + done.stdout
    assert "memory" in desk.run(str(PROGRAMS / "codex"), "mcp", "list").stdout
