"""The command `memory-mcp`: starts the server, and calls a running one. Each module here defines the commands of its name."""

import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_mcp import __version__
from memory_mcp.cli import (
    backups,
    connect,
    corrections,
    doctor,
    encryption,
    folder_sync,
    help_pages,
    hook,
    import_export,
    login_service,
    memories,
    mistakes,
    models,
    oauth,
    organize,
    personas,
    purge,
    serve,
    stdio,
    tokens,
)
from memory_mcp.cli.feature import Command, Commands
from memory_mcp.cli.japanese import worded
from memory_mcp.config.reading import have_home, language_of_machine
from memory_mcp.errors import MemoryMCPError
from memory_mcp.feature import modules
from memory_mcp.wording import sentence

INTERRUPTED, MISUSED = 130, 2
_CONTROL = re.compile("(\x1b\\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

app = typer.Typer(
    name="memory-mcp",
    help="Long-term memory for AI characters and assistants: one server, many isolated personas.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
_BROUGHT: tuple[Commands, ...] = tuple(module.COMMANDS for module in modules("commands"))
# What a page of help shows first.
EVERYDAY: tuple[Command, ...] = (
    serve.serve,
    connect.connect,
    memories.remember,
    memories.recall,
    memories.recent,
    *(command for brought in _BROUGHT for command in brought.everyday),
    import_export.import_memories,
    import_export.export_memories,
    backups.group,
    doctor.doctor,
)
# The others, by group. Each is also a command without the name of its group, which help does not list.
GROUPS: Mapping[str, tuple[str, tuple[Command, ...]]] = {
    "data": (
        "Correct, tidy up, share and erase memories; whole personas.",
        (
            memories.context,
            memories.personas,
            personas.group,
            corrections.revise,
            corrections.forget,
            memories.expire_session,
            corrections.history,
            purge.purge,
            organize.organize,
            folder_sync.sync,
            *(command for brought in _BROUGHT for command in brought.data),
        ),
    ),
    "admin": (
        "Tokens, models, encryption, services, older servers, restoring; what clients run by themselves.",
        (
            tokens.token,
            oauth.oauth,
            models.models,
            login_service.service,
            backups.restore,
            encryption.key,
            encryption.encrypt,
            encryption.decrypt,
            encryption.rotate_key,
            *(command for brought in _BROUGHT for command in brought.admin),
            stdio.stdio,
            hook.hook,
        ),
    ),
}


def _add(to: typer.Typer, command: Command, *, hidden: bool = False) -> None:
    if isinstance(command, typer.Typer):
        to.add_typer(command, hidden=hidden)
    else:  # `import` can't be the name of a function
        to.command(command.__name__.removesuffix("_memories").replace("_", "-"), hidden=hidden)(command)


for everyday in EVERYDAY:
    _add(app, everyday)
for name, (purpose, members) in GROUPS.items():
    group = typer.Typer(name=name, help=purpose, no_args_is_help=True)
    for member in members:
        _add(group, member)
        _add(app, member, hidden=True)
    app.add_typer(group)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memory-mcp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    _version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


class Terminal(io.TextIOWrapper):
    """A stream to a terminal that shows control characters instead of obeying them: a memory could fill the clipboard or rename the window.

    Line ends, tabs, the carriage returns of a progress bar, and colors remain.
    """

    def write(self, text: str, /) -> int:
        return super().write(_CONTROL.sub(lambda match: match[1] or f"\\x{ord(match[0]):02x}", text))


def main() -> None:
    """The console entry point: runs a command and exits."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty():
            setattr(sys, name, Terminal(stream.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True))
        elif isinstance(stream, io.TextIOWrapper):  # a redirected stream on Windows can't write Japanese otherwise
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit status. Every error becomes one line on stderr."""
    have_home()
    command = typer.main.get_command(app)
    try:
        status = _run(command, arguments)
        sys.stdout.flush()
    except MemoryMCPError as error:
        return _print_error(str(error))
    except typer.TyperException as error:
        return _print_misuse(error, command, arguments)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as `head`, closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001  the top level: users need a message, not a traceback
        return _print_error(_unforeseen(error))
    return status if isinstance(status, int) else 0


def _run(command: Any, arguments: Sequence[str]) -> object:
    if (shown := _show_page(command, arguments)) is not None:
        return shown
    if "--help" in arguments or len(arguments) < 2:
        _hide_types_of_flags(command)
    return command(list(arguments), prog_name="memory-mcp", standalone_mode=False)


def _show_page(command: Any, arguments: Sequence[str]) -> int | None:
    """Prints a page of help in Japanese, if one is asked for on a Japanese machine. Returns the exit status; None if none is asked for."""
    asked, called, words = help_pages.named(command, arguments)
    if language_of_machine() != "ja" or not help_pages.is_wanted(asked, words):
        return None
    typer.echo(help_pages.page(asked, called))
    return 0 if "--help" in words or asked is command else MISUSED


def _hide_types_of_flags(command: Any) -> None:
    """A page of help would show `--json <bool>`, as if a value had to follow."""
    for described in help_pages.descriptions(command):
        if getattr(described, "is_flag", False):
            described.metavar = ""


def _print_misuse(error: typer.TyperException, command: Any, arguments: Sequence[str]) -> int:
    message, context = error.format_message(), getattr(error, "ctx", None)
    if not message:  # a group without a command has shown its help
        return error.exit_code
    called = context.command_path if context else "memory-mcp"
    if language_of_machine() == "ja" and (mistaken := mistakes.mistake(error, *help_pages.named(command, arguments)[::2])):
        return _print_error(sentence("{} See `{} --help`.", mistaken, called), error.exit_code)
    return _print_error(f"{message if message.endswith(('.', '?')) else f'{message}.'} See `{called} --help`.", error.exit_code)


def _print_error(message: str, status: int = 1) -> int:
    typer.echo(f"memory-mcp: {' '.join(worded(message).split())}", err=True)
    return status


def _unforeseen(error: Exception) -> str:
    """The words for an error that no command foresees; a file that this user may not read, as in another user's home, can be anywhere."""
    if isinstance(error, PermissionError) and error.filename:
        return sentence("{} can't be read: {}. Check its permissions.", error.filename, error.strerror)
    return f"unexpected {type(error).__name__}: {error} ({_source_line(error)})."


def _source_line(error: Exception) -> str:
    """The file and line that raised the error, for bug reports."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "unknown line"
