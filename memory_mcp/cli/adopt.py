"""`memory-mcp adopt`: brings what an older server left into place, as `serve` does when it starts, without serving."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from memory_mcp.cli.options import DataDirectory
from memory_mcp.config.reading import default_data_directory


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(adopt)


def adopt(
    data: DataDirectory = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Take over what an older server stored. `serve` does the same when it starts. Exit status 1: something has to stay."""
    # The stores and their libraries, which the other commands do without.
    from memory_mcp.upkeep.legacy_adoption import adopt_all, foreseen  # noqa: PLC0415

    directory = data or default_data_directory()
    things, stores = foreseen(directory) if dry_run else adopt_all(directory, datetime.now(UTC))
    verb = "would be" if dry_run else "are"
    for thing in things:
        typer.echo(thing.sentence(done=not dry_run))
    for name, refused in stores.items():
        typer.echo(f"{name}: {refused or f'its older tables {verb} taken over'}")
    if not things and not stores:
        typer.echo("There is nothing of an older server here.")
    if any(thing.refused for thing in things) or any(stores.values()):
        raise typer.Exit(1)
