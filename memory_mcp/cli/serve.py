"""`memory-mcp serve` runs the server in the foreground."""

from typing import Annotated

import typer

from memory_mcp.cli.options import ConfigFile, DataDirectory
from memory_mcp.config.reading import default_config_path, default_data_directory


def serve(
    config: ConfigFile = None,
    data: DataDirectory = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of server_host.", metavar="HOST")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of server_port; 0 picks a free port.", metavar="PORT")] = None,
) -> None:
    """Run the server until Ctrl-C."""
    # Imported here: the other commands don't need the server.
    from memory_mcp.app import serve as run_server  # noqa: PLC0415
    from memory_mcp.client.discovery import once_free  # noqa: PLC0415

    directory = data or default_data_directory()
    once_free(directory, lambda: run_server(config or default_config_path(), directory, host, port))
