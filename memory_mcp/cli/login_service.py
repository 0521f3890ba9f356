"""`memory-mcp service`: starts the server when you log in: by systemd on Linux, launchd on macOS, a scheduled task on Windows."""

import os
import plistlib
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_mcp.cli.japanese import tell
from memory_mcp.cli.options import ConfigFile
from memory_mcp.cli.stdio import Data
from memory_mcp.config.reading import config_beside, personal_data_directory
from memory_mcp.errors import InvalidInput, MemoryMCPError

UNIT = "memory-mcp.service"
LABEL = "memory-mcp"
TASK = "Memory MCP"
ENTRY = ""
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


@dataclass(frozen=True, slots=True)
class Starter:
    """The system's service that starts programs at login. `text` is the server's entry in its format, for a command; `file` where that lies, if in
    a file; and the commands that `start` the server, now and at each login, that `stop` it, and that are to be run once the file is gone. `ENTRY`
    in a command stands for the entry itself."""

    text: Callable[[list[str]], str]
    file: Path | None
    start: Sequence[Sequence[str]]
    stop: Sequence[Sequence[str]]
    once_gone: Sequence[Sequence[str]] = ()
    stops_first: bool = False

    def install(self, command: list[str]) -> None:
        """Start the server, now and at each login."""
        if self.stops_first:
            self.remove()
        entry = self.text(command)
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(entry, encoding="utf-8")
        for words in self.start:
            _run(*(entry.strip() if word == ENTRY else word for word in words))

    def remove(self) -> None:
        """Undo that."""
        if self.file and not self.file.exists():
            return
        for words in self.stop:
            _run(*words)
        if self.file:
            self.file.unlink()
        for words in self.once_gone:
            _run(*words)


def systemd(file: Path) -> Starter:
    """A user unit."""
    systemctl = ("systemctl", "--user")
    reload, enable, restart = (*systemctl, "daemon-reload"), (*systemctl, "enable", UNIT), (*systemctl, "restart", UNIT)
    # Restarted, also where an earlier one runs.
    return Starter(_unit, file, [reload, enable, restart], [(*systemctl, "disable", "--now", UNIT)], [reload])


def _unit(command: list[str]) -> str:
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


def launchd(file: Path, user: int) -> Starter:
    """A launch agent."""
    start, stop = ("launchctl", "bootstrap", f"gui/{user}", str(file)), ("launchctl", "bootout", f"gui/{user}/{LABEL}")
    return Starter(_agent, file, [start], [stop], stops_first=True)


def _agent(command: list[str]) -> str:
    agent: Mapping[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": command,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "Umask": 0o077,
        "StandardErrorPath": str(Path.home() / "Library/Logs/memory-mcp.log"),
    }
    return plistlib.dumps(dict(agent), sort_keys=False).decode()


def scheduled_task() -> Starter:
    """A task of Windows at the user's login, without a window."""
    create = ("schtasks", "/Create", "/F", "/TN", TASK, "/SC", "ONLOGON", "/RL", "LIMITED", "/TR", ENTRY)
    stop = [("schtasks", "/End", "/TN", TASK), ("schtasks", "/Delete", "/F", "/TN", TASK)]
    return Starter(lambda command: f"{subprocess.list2cmdline(command)}\n", None, [create, ("schtasks", "/Run", "/TN", TASK)], stop)


def _starter() -> Starter:
    if sys.platform == "win32":
        return scheduled_task()
    if sys.platform == "darwin":
        return launchd(Path.home() / f"Library/LaunchAgents/{LABEL}.plist", os.getuid())
    return systemd(Path.home() / ".config/systemd/user" / UNIT)


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
