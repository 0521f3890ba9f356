"""The command `memory-mcp`: it starts the server, and talks to a running one. Each command is in the file of its group."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from memory_mcp import __version__
from memory_mcp.cli import (
    adopt,
    backups,
    connect,
    doctor,
    encryption,
    history,
    import_export,
    memories,
    models,
    organize,
    personas,
    serve,
    tokens,
)
from memory_mcp.errors import MemoryMCPError

INTERRUPTED = 130

app = typer.Typer(
    name="memory-mcp",
    help="Long-term memory for AI characters and assistants: one server, many personas, none shared.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for group in (
    serve,
    memories,
    import_export,
    organize,
    history,
    personas,
    backups,
    connect,
    tokens,
    models,
    doctor,
    adopt,
    encryption,
):
    group.register(app)


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


def main() -> None:
    """The console entry: runs a command and exits."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a redirected stream on Windows can't write Japanese otherwise
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit status. Whatever goes wrong becomes one line on stderr."""
    try:
        status = app(list(arguments), prog_name="memory-mcp", standalone_mode=False)
        sys.stdout.flush()
    except MemoryMCPError as error:
        return _complain(str(error))
    except typer.TyperException as error:
        said = error.format_message()
        return _complain(f"{said if said.endswith(('.', '?')) else f'{said}.'} See `memory-mcp --help`.", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001  the top: a traceback helps nobody who typed a command
        return _complain(f"unexpected {type(error).__name__}: {error} ({_place(error)}).")
    return status if isinstance(status, int) else 0


def _complain(message: str, status: int = 1) -> int:
    typer.echo(f"memory-mcp: {' '.join(message.split())}", err=True)
    return status


def _place(error: Exception) -> str:
    """Where it was raised, for a report."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "somewhere"
