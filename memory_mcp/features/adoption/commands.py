"""`memory-mcp adopt` only migrates the data of an older server."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from memory_mcp.cli.feature import Commands
from memory_mcp.cli.japanese import tell
from memory_mcp.cli.options import DataDirectory
from memory_mcp.config.reading import default_data_directory
from memory_mcp.wording import sentence


def adopt(
    data: DataDirectory = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")] = False,
) -> None:
    """Migrate the data of an older server, as `serve` does when it starts. Exit status 1: something could not be migrated."""
    # Imported here: the other commands don't need the stores and their libraries.
    from memory_mcp.client.discovery import if_free  # noqa: PLC0415
    from memory_mcp.features.adoption.moving import adopt_all, preview  # noqa: PLC0415

    directory = data or default_data_directory()
    things, stores = preview(directory) if dry_run else if_free(directory, lambda: adopt_all(directory, datetime.now(UTC)))
    verb = "would be" if dry_run else "are"
    for thing in things:
        tell(thing.sentence(done=not dry_run))
    for name, refused in stores.items():
        tell("{}: {}", name, refused or sentence("its older tables {} taken over", verb))
    if not things and not stores:
        tell("There is no data of an older server here.")
    if any(thing.refused for thing in things) or any(stores.values()):
        raise typer.Exit(1)


COMMANDS = Commands(admin=(adopt,))
