"""`memory-mcp service`: what it writes is what the system's own parser reads, with any path, and its undo takes it away."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory_mcp.cli import app
from memory_mcp.cli.login_service import LABEL, launchd, scheduled_task, systemd

PATHS = ["/home/さくら/data", "/a b/c", "/100%/$HOME/it's", '/back\\slash/"quoted"']


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["service", *arguments])
    assert done.exit_code == 0, done.exception
    return done.stdout


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A machine whose systemctl notes how it is called, and fails when a file says so."""
    programs = tmp_path / "bin"
    programs.mkdir()
    log = tmp_path / "called"
    systemctl = programs / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\nif [ -e "{tmp_path}/broken" ]; then echo "no bus" >&2; exit 1; fi\n')
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return lambda: log.read_text().splitlines() if log.exists() else []


needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd is Linux's")


@needs_linux
def test_the_server_is_started_at_login_and_no_longer(called: Callable[[], list[str]], tmp_path: Path) -> None:
    unit = tmp_path / "home/.config/systemd/user/memory-mcp.service"
    run("install", "--data", str(tmp_path / "memory"))
    assert f'"{tmp_path}/memory"' in unit.read_text()
    assert f'"{tmp_path}/config.json"' in unit.read_text()
    assert called() == ["--user daemon-reload", "--user enable memory-mcp.service", "--user restart memory-mcp.service"]
    run("remove")
    assert not unit.exists()
    assert (tmp_path / "memory").is_dir()
    assert called()[3:] == ["--user disable --now memory-mcp.service", "--user daemon-reload"]
    run("remove")
    assert len(called()) == 5


@needs_linux
def test_what_the_system_refuses_is_said(called: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken").touch()
    done = CliRunner().invoke(app, ["service", "install", "--data", str(tmp_path / "memory")])
    assert "no bus" in str(done.exception)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["service", "install", "--data", str(tmp_path / "memory")])
    assert "systemctl is not there" in str(done.exception)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
@pytest.mark.parametrize("path", PATHS)
def test_systemd_reads_the_unit_as_it_is_meant(path: str, tmp_path: Path) -> None:
    unit = tmp_path / "memory-mcp.service"
    unit.write_text(systemd(unit).text([sys.executable, "-m", "memory_mcp", "serve", "--data", path]))
    done = subprocess.run(["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert "memory-mcp.service" not in done.stderr, done.stderr


@pytest.mark.parametrize("path", PATHS)
def test_launchd_gets_the_words_of_the_command(path: str, tmp_path: Path) -> None:
    agent = plistlib.loads(launchd(tmp_path / "x.plist", 501).text(["python", "-m", "memory_mcp", path]).encode())
    assert agent["Label"] == LABEL
    assert agent["ProgramArguments"] == ["python", "-m", "memory_mcp", path]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_windows_gets_one_line() -> None:
    assert scheduled_task().text([r"C:\Program Files\python.exe", "-m", "memory_mcp"]) == '"C:\\Program Files\\python.exe" -m memory_mcp\n'


@needs_linux
@pytest.mark.parametrize("option", ["--data", "--config"])
@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\u2028"])
def test_a_path_that_would_begin_another_line_is_refused(
    option: str, character: str, called: Callable[[], list[str]], tmp_path: Path
) -> None:
    for further in ((), ("--print",)):
        path = f"{tmp_path}/x{character}ExecStartPre=/bin/evil"
        done = CliRunner().invoke(app, ["service", "install", option, path, *further])
        assert "has a control character" in str(done.exception)
    assert called() == []
    assert sorted(tmp_path.iterdir()) == [tmp_path / "bin"]


@needs_linux
def test_nothing_is_written_where_it_is_only_printed(called: Callable[[], list[str]], tmp_path: Path) -> None:
    assert "ExecStart=" in run("install", "--print", "--data", str(tmp_path / "memory"))
    assert not (tmp_path / "memory").exists()
    assert called() == []
