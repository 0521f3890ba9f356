"""`memory-mcp service`: starts the server when you log in: by systemd on Linux, launchd on macOS, a scheduled task on Windows."""

import os
import plistlib
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from memory_mcp.cli.japanese import tell
from memory_mcp.cli.options import ConfigFile
from memory_mcp.cli.stdio import Data
from memory_mcp.config.reading import config_beside, personal_data_directory
from memory_mcp.errors import InvalidInput, MemoryMCPError

UNIT = "memory-mcp.service"
LABEL = "memory-mcp"
TASK = "Memory MCP"
RUN_SECONDS = 30
# Control characters, half characters, and what ends a line or a paragraph.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})

service = typer.Typer(name="service", help="Start the server when you log in.", no_args_is_help=True)


@service.command()
def install(
    data: Data = None,
    config: ConfigFile = None,
    only_print: Annotated[bool, typer.Option("--print", help="Only print what would be written.")] = False,
) -> None:
    """Start the server now, and whenever you log in."""
    directory = (data or personal_data_directory()).absolute()
    files = ["--data", str(directory), "--config", str((config or config_beside(directory)).absolute())]
    command, starter = _printable([*_program(), "serve", *files]), _starter()
    if only_print:
        typer.echo(starter.text(command), nl=False)
        return
    directory.mkdir(parents=True, exist_ok=True)
    starter.install(command)
    tell("The server of {} runs, and starts when you log in. `memory-mcp service remove` undoes that.", directory)


@service.command()
def remove() -> None:
    """Stop the server, and don't start it any more. The memories stay."""
    _starter().remove()
    tell("The server no longer starts when you log in.")


class Starter(Protocol):
    """The system's service that starts programs at login."""

    def text(self, command: list[str]) -> str:
        """The server's entry in its format."""

    def install(self, command: list[str]) -> None:
        """Start the server, now and at each login."""

    def remove(self) -> None:
        """Undo that."""


@dataclass(frozen=True, slots=True)
class Systemd:
    """A user unit."""

    file: Path

    def text(self, command: list[str]) -> str:
        return f"""[Unit]
Description=Memory MCP
After=network.target

[Service]
ExecStart={" ".join(_quoted(word) for word in command)}
Restart=on-failure
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""

    def install(self, command: list[str]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text(command), encoding="utf-8")
        _run("systemctl", "--user", "daemon-reload")
        _run("systemctl", "--user", "enable", UNIT)
        _run("systemctl", "--user", "restart", UNIT)  # also where an earlier one runs

    def remove(self) -> None:
        if self.file.exists():
            _run("systemctl", "--user", "disable", "--now", UNIT)
            self.file.unlink()
            _run("systemctl", "--user", "daemon-reload")


@dataclass(frozen=True, slots=True)
class Launchd:
    """A launch agent."""

    file: Path
    user: int

    def text(self, command: list[str]) -> str:
        log = str(Path.home() / "Library/Logs/memory-mcp.log")
        agent: Mapping[str, Any] = {
            "Label": LABEL,
            "ProgramArguments": command,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "Umask": 0o077,
            "StandardErrorPath": log,
        }
        return plistlib.dumps(dict(agent), sort_keys=False).decode()

    def install(self, command: list[str]) -> None:
        self.remove()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text(command), encoding="utf-8")
        _run("launchctl", "bootstrap", f"gui/{self.user}", str(self.file))

    def remove(self) -> None:
        if self.file.exists():
            _run("launchctl", "bootout", f"gui/{self.user}/{LABEL}")
            self.file.unlink()


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """A task of Windows at the user's login, without a window."""

    def text(self, command: list[str]) -> str:
        return f"{subprocess.list2cmdline(command)}\n"

    def install(self, command: list[str]) -> None:
        line = self.text(command).strip()
        _run("schtasks", "/Create", "/F", "/TN", TASK, "/SC", "ONLOGON", "/RL", "LIMITED", "/TR", line)
        _run("schtasks", "/Run", "/TN", TASK)

    def remove(self) -> None:
        _run("schtasks", "/End", "/TN", TASK)
        _run("schtasks", "/Delete", "/F", "/TN", TASK)


def _starter() -> Starter:
    if sys.platform == "win32":
        return ScheduledTask()
    if sys.platform == "darwin":
        return Launchd(Path.home() / f"Library/LaunchAgents/{LABEL}.plist", os.getuid())
    return Systemd(Path.home() / ".config/systemd/user" / UNIT)


def _program() -> list[str]:
    """The interpreter of this installation, which exists wherever a command was put; on Windows the one without a window."""
    interpreter = Path(sys.executable)
    windowless = interpreter.with_name("pythonw.exe")
    return [str(windowless if sys.platform == "win32" and windowless.exists() else interpreter), "-m", "memory_mcp"]


def _printable(command: list[str]) -> list[str]:
    """The command, as its words can be in each system's format: in a unit a line feed begins another line.

    Raises:
        InvalidInput: a word has a control character.
    """
    for word in command:
        if any(unicodedata.category(character) in _UNPRINTABLE for character in word):
            raise InvalidInput("{} has a control character", "", "Rename that file or directory", repr(word))
    return command


def _quoted(word: str) -> str:
    """A word of systemd's ExecStart, in which %, $, quotes and backslashes mean something."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _run(*command: str) -> None:
    """Raises MemoryMCPError if the command is missing, fails, or takes too long."""
    executable = shutil.which(command[0])
    if executable is None:
        raise MemoryMCPError(
            "{} is not there", "this machine starts programs at login in another way", "See docs/operations.md", command[0]
        )
    try:
        done = subprocess.run([executable, *command[1:]], capture_output=True, text=True, timeout=RUN_SECONDS, check=False)  # noqa: S603  words of our own
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MemoryMCPError("`{}` doesn't answer", "{}", "Try again", " ".join(command), error) from error
    if done.returncode:
        raise MemoryMCPError("`{}` failed", "{}", "Mend that and try again", " ".join(command), (done.stderr or done.stdout).strip())
