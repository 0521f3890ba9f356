"""Whatever goes wrong on the command line is one clear line on stderr and a status that is not 0."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import memory_mcp
from memory_mcp import __version__, cli
from memory_mcp.cli.options import configured_address

Run = Callable[..., tuple[int, str, str]]

# Port 9 is `discard`: nothing listens there.
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("URL", "TOKEN", "CONFIG", "DATA"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line. Returns its status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(arguments)
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def complaint(answer: tuple[int, str, str]) -> str:
    status, out, err = answer
    assert status != 0
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("memory-mcp: ")
    return line


def test_the_version_is_told(run: Run) -> None:
    assert run("--version") == (0, f"memory-mcp {__version__}\n", "")


@pytest.mark.feature("chat")
def test_help_names_what_is_used_every_day_and_the_groups_of_the_rest(run: Run) -> None:
    for arguments in (["--help"], []):
        status, out, _ = run(*arguments)
        assert status == 0
        named = re.findall(r"^│ ([a-z]+)  ", out, re.MULTILINE)
        assert sorted(named) == sorted("serve connect remember recall recent chat import export doctor backup data admin".split())


def test_a_command_of_a_group_is_the_one_without_the_name_of_the_group(run: Run) -> None:
    tree: Any = typer.main.get_command(cli.app)
    for name in cli.GROUPS:
        described_together = run(name, "--help")[1]
        assert run(next(iter(tree.commands[name].commands)), "--help")[0] == 0
        for command in tree.commands[name].commands:
            described, alone = tree.commands[name].commands[command], tree.commands[command]
            assert (alone.help, [each.name for each in alone.params]) == (described.help, [each.name for each in described.params])
            assert alone.hidden
            assert f" {command} " in described_together


@pytest.mark.parametrize("command", "serve remember recall personas stdio import export connect token models doctor".split())
def test_every_command_explains_itself(run: Run, command: str) -> None:
    status, out, _ = run(command, "--help")
    assert status == 0
    assert f"memory-mcp {command}" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["recal"], "Did you mean 'recall'?"),
        (["history"], "Missing argument 'KEY'"),
        (["recall", "x", "--top-k", "0"], "greater than or equal to 1. See"),
        (["recall", "x", "--nonsense"], "--nonsense"),
        (["serve", "--port", "70000"], "less than or equal to 65535. See `memory-mcp serve --help`."),
        pytest.param(["cell", "haproxy"], "See `memory-mcp cell haproxy --help`.", marks=pytest.mark.feature("cells")),
        (["nonsense"], "See `memory-mcp --help`."),
        (["connect", "--client", "emacs", "-p", "a"], "'emacs'"),
        (["connect", "--client", "vscode", "-p", " "], "the persona name is empty"),
        (["recall", "x", "-p", "a\u200bb"], "invisible character"),
        (["recall", "x", "--url", "localhost:8000"], "is not the URL of a server"),
        (["recall", "x", "--url", "http://host:port"], "is not the URL of a server"),
        (["recall", "x", "--url", NOBODY, "--token", "t0k"], "--token"),
        (["token", "create"], "a token is for some personas or for all"),
        (["token", "create", "-p", "a", "--all-personas"], "a token is for some personas or for all"),
        (["token", "create", "-p", " "], "the persona name is empty"),
        (["token", "create", "-p", "a", "--scopes", "read,wrte"], "'wrte' is not a scope. Use read, write, delete, export, admin"),
        (["token", "create", "-p", "a", "--scopes", ","], "it is empty"),
        (["token", "create", "-p", "a", "--expires", "soon"], "is not a time. Write 12h, 90d"),
        (["token", "create", "-p", "a", "--expires", "2020-01-01"], "would have expired already"),
        (["token", "create", "-p", "a", "--name", "x" * 101], "100 are the limit"),
        (["token", "revoke", "0000000000"], "no token has the id '0000000000'"),
        (["recall", "x", "--url", NOBODY], "no server answers at http://127.0.0.1:9"),
        (["remember", "x", "--url", NOBODY], "no server answers"),
        (["personas", "--url", NOBODY], "no server answers"),
        (["export", "--url", NOBODY], "no server answers"),
        (["stdio", "--url", NOBODY], "no server answers"),
        (["import", "nowhere.jsonl", "--url", NOBODY], "nowhere.jsonl does not exist"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(run: Run, arguments: list[str], reason: str) -> None:
    assert reason in complaint(run(*arguments))


def test_a_token_of_the_environment_that_no_header_can_hold_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MCP_TOKEN", "ü")
    assert "the token contains invalid characters" in complaint(run("recall", "x", "--url", NOBODY))


def test_an_import_asks_for_a_format_where_the_name_says_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    assert "Choose its format (on the command line: --format)" in complaint(run("import", "data.bin", "--url", NOBODY))
    assert "it is a directory" in complaint(run("import", "empty", "--format", "jsonl", "--url", NOBODY))
    assert "it is a file" in complaint(run("import", "data.bin", "--format", "obsidian", "--url", NOBODY))
    assert "nothing to import" in complaint(run("import", "empty", "--url", NOBODY))


def test_a_failed_export_leaves_no_file_and_keeps_the_one_before(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("before")
    complaint(run("export", "out.jsonl", "--url", NOBODY))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.jsonl", "before")]


def test_an_unexpected_error_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(cli, "app", broken)
    assert "unexpected ZeroDivisionError: by zero (test_errors.py" in complaint(run())


def test_an_interruption_is_quiet_and_has_its_own_status(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = typer.Typer()

    @interrupted.command()
    def wait() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    assert run() == (130, "", "")


def test_the_server_is_where_the_configuration_says(tmp_path: Path) -> None:
    assert configured_address() == "http://127.0.0.1:8000"
    (tmp_path / "config.json").write_text(json.dumps({"server_host": "0.0.0.0", "server_port": 8123}))  # noqa: S104
    assert configured_address() == "http://127.0.0.1:8123"
    (tmp_path / "config.json").write_text(json.dumps({"server_host": "::1", "server_port": 8123}))
    assert configured_address() == "http://[::1]:8123"
    (tmp_path / "config.json").write_text("{broken")
    assert configured_address() == "http://127.0.0.1:8000"


@pytest.mark.slow
def test_the_help_loads_neither_the_server_nor_the_stores() -> None:
    heavy = {"fastmcp", "httpx2", "apsw", "numpy", "torch", "langchain_community", "uvicorn"}
    assert loaded_of(heavy, "import memory_mcp.cli as cli; cli.run(['--help'])") == ""


@pytest.mark.slow
def test_a_server_that_starts_loads_neither_models_nor_clients() -> None:
    heavy = {"torch", "onnxruntime", "faiss", "sudachipy", "rustworkx", "langchain_core", "fastmcp.client", "griffe"}
    start = "import memory_mcp.app, memory_mcp.features.chat.web, memory_mcp.config.settings as c, memory_mcp.server.application as a"
    assert loaded_of(heavy, f"{start}; a.mcp_server(c.Settings())") == ""


def loaded_of(heavy: set[str], code: str) -> str:
    """Which of these modules a process has loaded after some code."""
    code = f"import sys; {code}; sys.exit(', '.join({heavy} & set(sys.modules)))"
    root = Path(memory_mcp.__file__).parents[1]
    return subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False).stderr.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_a_terminal_is_shown_control_characters_and_does_not_obey_them():
    ours, theirs = os.openpty()
    code = "import sys, memory_mcp.cli as c; c.run = lambda _: print('a\\x1b]52;c;cm0=\\x07b\\x9b2J\\x1b[1mc\\x1b[0m\\t猫'); c.main()"
    subprocess.run([sys.executable, "-c", code], stdout=theirs, cwd=Path(memory_mcp.__file__).parents[1], check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 1_000).decode()
    os.close(ours)
    assert shown == "a\\x1b]52;c;cm0=\\x07b\\x9b2J\x1b[1mc\x1b[0m\t猫\r\n"
