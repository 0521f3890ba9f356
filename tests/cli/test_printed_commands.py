"""Every command that a message, a page or the help names works as it is written: it exists, and takes these arguments."""

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

import memory_mcp
from memory_mcp.cli import app

ROOT = Path(memory_mcp.__file__).parent
COMMAND = re.compile(r"`(memory-mcp [^`]+)`")


def printed() -> Iterator[str]:
    """The commands in the strings of the program; what is filled in at run time is VALUE, and may stand for a name or a file."""
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        module = ast.parse(source if "`memory-mcp " in source else "")
        for node in (inner for statement in module.body[1:] for inner in ast.walk(statement)):  # without the module's docstring
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            yield from COMMAND.findall(text)


COMMANDS = sorted(set(printed()) - {"memory-mcp token", "memory-mcp key", "memory-mcp backup", "memory-mcp models", "memory-mcp persona"})


def of_feature(line: str) -> list[pytest.MarkDecorator]:
    """The mark of a command that a feature brings."""
    return [pytest.mark.feature(name) for command, name in (("cell", "cells"), ("adopt", "adoption")) if line.split()[1] == command]


def test_there_are_printed_commands() -> None:
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("line", [pytest.param(line, marks=of_feature(line)) for line in COMMANDS])
def test_a_printed_command_is_taken_as_it_is_printed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    group = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    for command in _commands(group):
        monkeypatch.setattr(command, "callback", lambda **_: ran.append("ran"))
    with suppress(typer.Exit):
        group.main(words, prog_name="memory-mcp", standalone_mode=False)
    assert ran or "--help" in words


def _commands(group: Any) -> Iterator[Any]:
    for command in getattr(group, "commands", {}).values():
        yield command
        yield from _commands(command)
