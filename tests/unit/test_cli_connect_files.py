"""`connect --write` and `--remove` change nothing in a client's files but our own entry and our own instructions."""

import json
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from memory_mcp.cli import app

URL = "http://127.0.0.1:8000"
WRITABLE = [
    "vscode",
    "claude-code",
    "codex",
    "cursor",
    "gemini",
    "claude-desktop",
    "windsurf",
    "zed",
    "roo",
    "goose",
    "lmstudio",
    "librechat",
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, of a user with an empty home."""
    for variable in ("HOME", "USERPROFILE", "APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def connect(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["connect", "-p", "さくら", "--url", URL, "--language", "en", *arguments])
    assert done.exit_code == 0, done.exception
    return done.stdout


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["connect", "-p", "さくら", "--url", URL, *arguments])
    assert done.exit_code != 0
    return str(done.exception)


def files(below: Path) -> dict[str, str]:
    return {str(path.relative_to(below)): path.read_text() for path in sorted(below.rglob("*")) if path.is_file()}


def parsed(text: str, name: str) -> Any:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return yaml.safe_load(text) if name.endswith(("yaml", "yml")) else json.loads(text)


@pytest.mark.parametrize("client", WRITABLE)
def test_what_is_written_where_nothing_was_is_what_is_printed_and_is_taken_out_again(client: str, tmp_path: Path) -> None:
    shown = connect("--client", client, "--only", "snippet") if client != "claude-code" else None
    connect("--client", client, "--write")
    (settings,) = [name for name in files(tmp_path) if name.endswith((".json", ".toml", ".yaml"))]
    written = parsed(files(tmp_path)[settings], settings)
    (table,) = written.values()
    assert list(table) == ["memory"]
    assert shown is None or written == parsed(shown, settings)
    connect("--client", client, "--remove")
    assert [name for name in files(tmp_path) if not name.endswith(".bak")] == []


def test_the_other_servers_and_settings_stay_as_they_are(project: Path) -> None:
    before = '{\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x",\n\t\t\t"env": {\n\t\t\t\t"KEY": "s3cret"\n\t\t\t}\n\t\t}\n\t},\n\t"theme": "暗い"\n}\n'
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text(before)
    said = connect("--client", "cursor", "--write", "--only", "snippet")
    after = json.loads(Path(".cursor/mcp.json").read_text())
    assert after["mcpServers"].pop("memory") == {"url": f"{URL}/mcp", "headers": {"X-Persona": "%E3%81%95%E3%81%8F%E3%82%89"}}
    assert after == json.loads(before)
    assert '\t\t"other"' in Path(".cursor/mcp.json").read_text()
    assert "s3cret" not in said
    (kept,) = Path(".cursor").glob("*.bak")
    assert kept.read_text() == before
    connect("--client", "cursor", "--remove", "--only", "snippet")
    assert Path(".cursor/mcp.json").read_text() == before


def test_a_file_that_is_removed_because_nothing_is_left_in_it_is_kept_beside_it() -> None:
    Path(".cursor").mkdir()
    before = '{"mcpServers": {"memory": {"command": "mine"}}}'
    Path(".cursor/mcp.json").write_text(before)
    said = connect("--client", "cursor", "--remove", "--only", "snippet")
    (kept,) = Path(".cursor").iterdir()
    assert kept.name in said
    assert kept.read_text() == before


def test_comments_in_toml_stay(tmp_path: Path) -> None:
    config = tmp_path / "home/.codex/config.toml"
    config.parent.mkdir(parents=True)
    before = '# mine\nmodel = "o9"  # the good one\n\n[mcp_servers.other]\ncommand = "x" # why\n'
    config.write_text(before)
    connect("--client", "codex", "--write", "--only", "snippet")
    assert config.read_text().startswith(before)
    assert tomllib.loads(config.read_text())["mcp_servers"]["memory"]["url"] == f"{URL}/mcp"
    connect("--client", "codex", "--remove", "--only", "snippet")
    assert config.read_text().strip() == before.strip()


COMMENT = re.compile(r"(?<!:)//.*|/\*.*\*/")
COMMENTED = [
    '{"mcpServers": {} // mine\n}',
    '// mine\n{\n  "theme": "暗い", // the good one\n  "mcpServers": {\n    // "off": {},\n    "other": {"url": "http://x"} // why\n  },\n}\n',
    '{\r\n\t"mcpServers": {\r\n\t\t"other": {"args": ["a", /* b */ "c",], },\r\n\t\t// last\r\n\t},\r\n}\r\n',
    '{ "mcpServers": { "other": 1 } }',
]


@pytest.mark.parametrize("before", COMMENTED)
def test_everything_else_of_a_json_file_stays_as_it_is_written(before: str) -> None:
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_bytes(before.encode())
    connect("--client", "cursor", "--write", "--only", "snippet")
    after = Path(".cursor/mcp.json").read_bytes().decode()
    assert f'"url": "{URL}/mcp"' in after
    assert COMMENT.findall(after) == COMMENT.findall(before)
    connect("--client", "cursor", "--write", "--only", "snippet", "-p", "nilou")
    assert Path(".cursor/mcp.json").read_bytes().decode() == after.replace("%E3%81%95%E3%81%8F%E3%82%89", "nilou")
    connect("--client", "cursor", "--remove", "--only", "snippet")
    assert Path(".cursor/mcp.json").read_bytes().decode() == before


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {} /* mine }'),
        ("librechat", "librechat.yaml", "version: 1  # mine\n"),
        ("cursor", ".cursor/mcp.json", "[]"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": []}'),
    ],
)
def test_a_file_that_would_lose_something_is_left_alone(client: str, file: str, text: str) -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(text)
    assert refused("--client", client, "--write")
    assert Path(file).read_text() == text
    assert not list(Path().rglob("*.bak"))


def test_writing_twice_changes_nothing_more() -> None:
    connect("--client", "vscode", "--write", "--with-token")
    first = files(Path())
    assert connect("--client", "vscode", "--write", "--with-token").count("nothing to change") == 2
    assert files(Path()) == first


def test_two_personas_live_in_one_client_and_one_of_them_leaves() -> None:
    connect("--client", "vscode", "--write", "--with-token")
    connect("--client", "vscode", "--write", "--with-token", "--name", "nilou", "-p", "nilou")
    settings = json.loads(Path(".vscode/mcp.json").read_text())
    assert list(settings["servers"]) == ["memory", "nilou"]
    assert len(settings["inputs"]) == 1
    connect("--client", "vscode", "--remove")
    settings = json.loads(Path(".vscode/mcp.json").read_text())
    assert list(settings["servers"]) == ["nilou"]
    assert len(settings["inputs"]) == 1
    told = Path(".github/copilot-instructions.md").read_text()
    assert "`nilou`" in told
    assert "`memory`" not in told
    connect("--client", "vscode", "--remove", "--name", "nilou")
    assert not Path(".vscode/mcp.json").exists()


def test_the_instructions_stand_beside_what_was_there() -> None:
    Path("AGENTS.md").write_text("# Ours\n\nUse tabs.\n")
    connect("--client", "cursor", "--write", "--only", "instructions")
    assert Path("AGENTS.md").read_text().startswith("# Ours\n\nUse tabs.\n\n<!-- memory")
    connect("--client", "cursor", "--remove", "--only", "instructions")
    assert Path("AGENTS.md").read_text().rstrip() == "# Ours\n\nUse tabs."


@pytest.mark.parametrize(
    "before", ["# Ours", "# Ours\n", "# Ours\n\n", "\n# Ours\n\n\n", "# Ours\r\n\r\nUse tabs.\r\n", "\ufeff# Ours\n", "a\r\nb\nc\r\n"]
)
def test_the_instructions_leave_a_file_byte_for_byte_as_it_was(before: str) -> None:
    Path("AGENTS.md").write_bytes(before.encode())
    for _ in range(2):
        connect("--client", "cursor", "--write")
        connect("--client", "cursor", "--write", "--language", "ja")
    assert len(list(Path().glob("AGENTS.md*.bak"))) == 1
    assert "<!-- memory" in Path("AGENTS.md").read_text(encoding="utf-8")
    connect("--client", "cursor", "--remove")
    assert Path("AGENTS.md").read_bytes() == before.encode()


def test_what_is_written_twice_and_taken_out_leaves_no_other_file() -> None:
    before = {
        ".claude/settings.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
        ".mcp.json": '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}',
        "CLAUDE.md": "# Ours\n",
        "CLAUDE.md.bak": "mine",
    }
    Path(".claude").mkdir()
    for name, text in before.items():
        Path(name).write_text(text)
    connect("--client", "claude-code", "--write", "--hooks", "--language", "ja")
    connect("--client", "claude-code", "--write", "-p", "nilou")
    kept = {name.removesuffix(".memory-mcp.bak"): text for name, text in files(Path()).items() if name.endswith(".memory-mcp.bak")}
    assert kept == {name: text for name, text in before.items() if name != "CLAUDE.md.bak"}
    connect("--client", "claude-code", "--remove", "-p", "nilou")
    assert files(Path()) == before


def test_to_take_out_no_persona_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_MCP_PERSONA", raising=False)
    connect("--client", "claude-code", "--write", "--hooks")
    done = CliRunner().invoke(app, ["connect", "--client", "claude-code", "--remove"])
    assert done.exit_code == 0, done.exception
    assert files(Path()) == {}


@pytest.mark.parametrize("how", [(), ("--stdio",)])
def test_hooks_follow_their_server_to_another_persona_and_leave_those_of_other_servers(how: tuple[str, ...]) -> None:
    hooks = Path(".claude/settings.json")
    connect("--client", "claude-code", "--write", "--hooks", "-p", "work", *how)
    connect("--client", "claude-code", "--write", "--hooks", "-p", "nilou", "--name", "second", *how)
    said = connect("--client", "claude-code", "--write", "-p", "private", *how)
    assert "The hooks that imported into work now import into private." in said
    text = hooks.read_text()
    assert ["--persona work" in text, text.count("--persona private"), text.count("--persona nilou")] == [False, 3, 3]
    assert "hooks that" not in connect("--client", "claude-code", "--write", "-p", "private", *how)
    connect("--client", "claude-code", "--remove", "--name", "second")
    text = hooks.read_text()
    assert [text.count("--persona private"), "--persona nilou" in text] == [3, False]


def test_the_file_behind_a_link_is_changed_and_keeps_its_permissions(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").symlink_to(real)
    connect("--client", "cursor", "--write", "--only", "snippet")
    assert Path(".cursor/mcp.json").is_symlink()
    assert "memory" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_said() -> None:
    Path(".cursor").mkdir(mode=0o500)
    assert "can't be changed" in refused("--client", "cursor", "--write")


def test_settings_without_a_file_of_their_own_need_one_that_is_named() -> None:
    assert "Paste them there, or name a file" in refused("--client", "cline", "--write")
    connect("--client", "cline", "--write", "--file", "cline.json")
    assert json.loads(Path("cline.json").read_text())["mcpServers"]["memory"]["type"] == "streamableHttp"


def test_writing_and_removing_at_once_is_refused() -> None:
    assert "contradict" in refused("--client", "cursor", "--write", "--remove")


HOOKED = {
    "vscode": ".github/hooks/memory.json",
    "claude-code": ".claude/settings.json",
    "codex": "../home/.codex/hooks.json",
    "gemini": "../home/.gemini/settings.json",
}


@pytest.mark.parametrize(("client", "file"), HOOKED.items())
def test_hooks_stand_beside_those_of_others_and_are_taken_out_again(client: str, file: str) -> None:
    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    before = json.dumps({"theme": "dark", "hooks": {"SessionStart": [theirs], "Notification": [theirs]}}, indent=2) + "\n"
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(before)
    for url in ("http://127.0.0.1:9", URL):
        connect("--client", client, "--write", "--hooks", "--only", "hooks", "--url", url)
    after = json.loads(Path(file).read_text())
    assert after["theme"] == "dark"
    assert after["hooks"]["Notification"] == [theirs]
    assert after["hooks"]["SessionStart"][0] == theirs
    assert [str(groups).count("memory-mcp") for groups in after["hooks"].values()].count(1) == 3
    connect("--client", client, "--write", "--hooks", "--only", "hooks", "-p", "nilou")
    assert len(json.loads(Path(file).read_text())["hooks"]["SessionStart"]) == 3
    connect("--client", client, "--remove")
    connect("--client", client, "--remove", "-p", "nilou")
    assert json.loads(Path(file).read_text())["hooks"] == json.loads(before)["hooks"]


def test_a_hook_runs_as_it_is_written_with_any_name() -> None:
    for name in ("さくら", "a b", "it's", "a$HOME", "a;b"):
        shown = json.loads(connect("--client", "vscode", "--only", "hooks", "-p", name))
        words = shlex.split(shown["hooks"]["Stop"][0]["command"])
        assert words[-5:] == ["hook", "--persona", name, "--url", URL]


def test_hooks_are_written_only_where_they_are_asked_for_and_run() -> None:
    connect("--client", "claude-code", "--write")
    assert not Path(".claude").exists()
    assert "runs no hooks" in refused("--client", "cursor", "--hooks")
