"""`memory-mcp serve`: runs the server in the foreground."""

from typing import Annotated

import typer

from memory_mcp.cli.options import ConfigFile, DataDirectory
from memory_mcp.config.reading import default_config_path, default_data_directory


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(serve)


def serve(
    config: ConfigFile = None,
    data: DataDirectory = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of server_host.", metavar="HOST")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of server_port; 0 takes a free one.", metavar="PORT")] = None,
) -> None:
    """Run the server until Ctrl-C."""
    # The server's imports are not for the other commands to pay.
    from memory_mcp.app import serve as run_server  # noqa: PLC0415

    run_server(config or default_config_path(), data or default_data_directory(), host, port)
