"""`connect --write` and `--remove` change nothing in a client's files but our own entry and our own instructions."""

import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import DATA
from typer.testing import CliRunner

from memory_mcp.cli import app
from memory_mcp.cli.client_files import with_block
from memory_mcp.cli.client_recipes import ClientName, dumped, recipe_of
from memory_mcp.cli.connect import Language, instructions
from memory_mcp.config.reading import user_data_directory

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
    for variable in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "data"))
    for variable in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
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
    """The files of the user and of the project; not those that are kept."""
    paths = [path.relative_to(below) for path in sorted(below.rglob("*")) if path.is_file()]
    return {str(path): (below / path).read_bytes().decode() for path in paths if path.parts[0] != "data"}


def kept_states(file: str) -> list[str]:
    """The states of a file that are kept, the first one first."""
    (directory,) = user_data_directory().parent.glob(f"client-files/{Path(file).name}~*")
    return [copy.read_bytes().decode() for copy in sorted(directory.glob("[0-9]*"))]


def parsed(text: str, name: str) -> Any:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return yaml.safe_load(text) if name.endswith(("yaml", "yml")) else json.loads(text)


@pytest.mark.parametrize("client", WRITABLE)
def test_what_is_written_where_nothing_was_is_what_is_printed_and_is_taken_out_again(client: str, tmp_path: Path, project: Path) -> None:
    shown = connect("--client", client, "--only", "snippet") if client != "claude-code" else None
    connect("--client", client, "--write")
    (settings,) = [name for name in files(tmp_path) if name.endswith((".json", ".toml", ".yaml"))]
    written = parsed(files(tmp_path)[settings], settings)
    (table,) = written.values()
    assert list(table) == ["memory"]
    assert shown is None or written == parsed(shown, settings)
    connect("--client", client, "--remove")
    assert files(tmp_path) == {}
    assert [path for path in tmp_path.rglob("*") if path.is_dir() and tmp_path / "data" not in (path, *path.parents)] == [project]


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
    assert kept_states("mcp.json") == [before]
    assert list(Path(".cursor").iterdir()) == [Path(".cursor/mcp.json")]
    connect("--client", "cursor", "--remove", "--only", "snippet")
    assert Path(".cursor/mcp.json").read_text() == before


THEIRS = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {"MEMORY_FILE_PATH": "/home/me/memory.json"}}
SERVER_FILES = {
    "vscode": (".vscode/mcp.json", "servers"),
    "claude-code": (".mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "codex": ("../home/.codex/config.toml", "mcp_servers"),
    "goose": ("../home/.config/goose/config.yaml", "extensions"),
}


@pytest.mark.parametrize(("client", "place"), SERVER_FILES.items())
def test_the_server_of_another_program_keeps_its_name_unless_it_is_to_be_replaced_and_comes_back(
    client: str, place: tuple[str, str]
) -> None:
    file, key = place
    recipe = recipe_of(ClientName(client))
    assert recipe is not None
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    before = dumped({key: {"memory": THEIRS, "x": {"command": "x"}}}, recipe.form) + "\n"
    Path(file).write_text(before)
    assert "has another server called 'memory'" in (said := refused("--client", client, "--write"))
    assert "--name" in said
    assert "stays" in connect("--client", client, "--remove")
    assert files(Path(".."))[file.removeprefix("../") if file.startswith("..") else f"project/{file}"] == before
    connect("--client", client, "--write", "--name", "ours")
    connect("--client", client, "--remove", "--name", "ours")
    assert Path(file).read_text() == before
    connect("--client", client, "--write", "--force")
    assert parsed(Path(file).read_text(), file)[key]["memory"] != THEIRS
    connect("--client", client, "--write", "--only", "snippet", "-p", "nilou")
    connect("--client", client, "--remove")
    assert parsed(Path(file).read_text(), file) == parsed(before, file)


@pytest.mark.parametrize(
    ("client", "file", "before"),
    [
        ("librechat", "librechat.yaml", "version: 1\n"),
        ("librechat", "librechat.yaml", "version: 1\nmcpServers: {}\n"),
        ("vscode", ".vscode/mcp.json", "{}"),
        ("vscode", ".vscode/mcp.json", '{"servers": {}}\n'),
        ("vscode", ".vscode/mcp.json", '{\n  "servers": {\n    "b": {}\n  }\n}\n'),
        ("vscode", ".vscode/mcp.json", '{\n  "inputs": [],\n  "servers": {\n    "b": {}\n  }\n}\n'),
        ("zed", "../home/.config/zed/settings.json", '// mine\n{\n  "theme": "One", // dark\n}\n'),
        ("codex", "../home/.codex/config.toml", 'model = "x"\n'),
    ],
)
def test_a_file_that_had_no_servers_is_as_it_was(client: str, file: str, before: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(before)
    connect("--client", client, "--write", "--with-token")
    connect("--client", client, "--remove")
    assert Path(file).read_text() == before


def test_what_was_taken_out_by_hand_does_not_come_back() -> None:
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"memory": THEIRS}}))
    connect("--client", "cursor", "--write", "--force", "--only", "snippet")
    Path(".cursor/mcp.json").write_text("{}")
    connect("--client", "cursor", "--write", "--only", "snippet")
    connect("--client", "cursor", "--remove", "--only", "snippet")
    assert Path(".cursor/mcp.json").read_text() == "{}"


def test_every_state_before_a_change_is_kept_outside_of_the_project_for_its_owner_alone() -> None:
    Path(".cursor").mkdir()
    states = []
    for number in range(3):
        states.append(json.dumps({"mcpServers": {f"other{number}": {"command": "x"}}}))
        Path(".cursor/mcp.json").write_text(states[-1])
        connect("--client", "cursor", "--write", "--only", "snippet")
    written = Path(".cursor/mcp.json").read_text()
    connect("--client", "cursor", "--remove", "--only", "snippet")
    assert kept_states("mcp.json") == [*states, written]
    assert list(Path().rglob("*.bak")) == []
    if os.name != "nt":
        copies = list(user_data_directory().parent.glob("client-files/mcp.json~*/*"))
        assert [copy.stat().st_mode & 0o077 for copy in copies] == [0] * 5


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
    assert not (user_data_directory().parent / "client-files").exists()


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


def test_two_personas_in_one_file_each_have_their_own_server_and_their_own_time() -> None:
    for persona, name in (("さくら", "memory"), ("レオン", "leon")):
        connect("--client", "vscode", "--write", "-p", persona, "--name", name, "--language", "ja")
    told = Path(".github/copilot-instructions.md").read_text()
    for persona, name in (("さくら", "memory"), ("レオン", "leon")):
        assert f"`{name}` は {persona} の長期記憶です" in told
        assert f"`{name}` は {persona} として話すときだけ使います" in told


def test_the_instructions_of_an_earlier_version_name_their_persona_once_another_stands_beside_them() -> None:
    connect("--client", "vscode", "--write")
    file = Path(".github/copilot-instructions.md")
    earlier = with_block(file.read_text(), "memory", instructions(Language.JAPANESE))
    file.write_text(earlier)
    connect("--client", "vscode", "--write", "--name", "leon", "-p", "レオン")
    assert "あなただけのもの" not in file.read_text()
    assert "`memory` は さくら の長期記憶です" in file.read_text()
    connect("--client", "vscode", "--remove", "--name", "leon")
    assert file.read_text() == with_block(earlier, "memory", instructions(Language.JAPANESE, persona="さくら"))


def test_instructions_that_another_client_reads_stay_until_no_client_needs_them() -> None:
    Path("AGENTS.md").write_text("# Ours\n")
    for client in ("cursor", "codex", "zed"):
        connect("--client", client, "--write")
    for client in ("codex", "cursor"):
        assert "The instructions in AGENTS.md stay" in connect("--client", client, "--remove")
        assert "`memory` is the long-term memory of さくら" in Path("AGENTS.md").read_text()
    connect("--client", "zed", "--remove")
    assert Path("AGENTS.md").read_text() == "# Ours\n"
    Path("CLAUDE.md").symlink_to("AGENTS.md")
    for client in ("cursor", "claude-code"):
        connect("--client", client, "--write")
    assert "The instructions in CLAUDE.md stay: cursor" in connect("--client", "claude-code", "--remove")
    connect("--client", "claude-code", "--remove", "--force")
    assert Path("AGENTS.md").read_text() == "# Ours\n"


def test_instructions_name_nobody_where_clients_that_share_them_know_different_personas_by_one_name() -> None:
    connect("--client", "cursor", "--write")
    connect("--client", "codex", "--write", "-p", "nilou")
    told = Path("AGENTS.md").read_text()
    assert "nilou" not in told
    assert "さくら" not in told
    assert "`memory` is your long-term memory" in told


USER_FILES = {
    "vscode": {"home/.config/Code/User/mcp.json"},
    "claude-code": {"home/.claude.json", "home/.claude/CLAUDE.md"},
    "codex": {"home/.codex/config.toml", "home/.codex/AGENTS.md"},
    "cursor": {"home/.cursor/mcp.json"},
    "gemini": {"home/.gemini/settings.json", "home/.gemini/GEMINI.md"},
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere VS Code has another directory")
@pytest.mark.parametrize(("client", "expected"), USER_FILES.items())
def test_a_client_is_connected_for_all_projects_of_a_user(client: str, expected: set[str], tmp_path: Path) -> None:
    connect("--client", client, "--scope", "user", "--write")
    assert set(files(tmp_path)) == expected
    connect("--client", client, "--scope", "user", "--remove")
    assert files(tmp_path) == {}
    if client == "claude-code":
        connect("--client", client, "--scope", "user", "--write", "--hooks")
        assert set(files(tmp_path)) == {*expected, "home/.claude/settings.json"}
        assert "claude mcp add --transport http --scope user memory" in connect("--client", client, "--scope", "user", "--only", "snippet")
    assert "no settings for all projects" in refused("--client", "roo", "--scope", "user")


def test_a_directory_that_was_there_stays() -> None:
    for directory in (".vscode", ".github"):
        Path(directory).mkdir()
    connect("--client", "vscode", "--write", "--hooks")
    connect("--client", "vscode", "--remove")
    assert sorted(path.name for path in Path().rglob("*")) == [".github", ".vscode"]


CLIENT_FILES = json.loads((DATA / "client_files_2026_11.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("written", CLIENT_FILES, ids=lambda written: written["client"])
def test_what_an_earlier_version_wrote_is_taken_out_and_what_was_there_comes_back(
    written: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in written["after"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["connect", "--client", written["client"], "--remove"])
    assert done.exit_code == 0, done.exception
    left = files(tmp_path)
    assert sorted(left) == sorted(written["before"])
    for name, text in written["before"].items():
        assert parsed(left[name], name) == parsed(text, name) if name.endswith(".json") else left[name] == text


@pytest.mark.parametrize("written", CLIENT_FILES, ids=lambda written: written["client"])
def test_what_an_earlier_version_wrote_is_ours_to_write_again(
    written: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in written["after"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    connect("--client", written["client"], "--write", "-p", "レオン")
    assert not list(tmp_path.rglob("*.bak"))
    connect("--client", written["client"], "--remove")
    assert sorted(files(tmp_path)) == sorted(written["before"])


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
    assert kept_states("AGENTS.md")[0] == before
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
    for name in (".claude/settings.json", ".mcp.json", "CLAUDE.md"):
        assert kept_states(name)[0] == before[name]
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
