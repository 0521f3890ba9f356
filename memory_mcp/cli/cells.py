"""`memory-mcp cell`: many servers that share the personas. Which cell a persona belongs to, splitting cells, and files for a router."""

from pathlib import Path
from typing import Annotated

import typer

from memory_mcp.cli.options import DataDirectory, existing_data_directory
from memory_mcp.cli.progress import steps

group = typer.Typer(help="Many servers that share the personas: docs/scale.md.", no_args_is_help=True)

Of = Annotated[int, typer.Option("--of", min=1, help="How many cells there are.", metavar="N")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group.command()(owner)
    group.command()(split)
    group.command()(haproxy)
    app.add_typer(group, name="cell")


def owner(name: Annotated[str, typer.Argument(help="The persona.", metavar="NAME")], of: Of) -> None:
    """Print the number of the cell that a persona belongs to."""
    from memory_mcp.personas.cells import owner_of  # noqa: PLC0415  `--help` doesn't need it
    from memory_mcp.personas.names import canonical_name  # noqa: PLC0415

    typer.echo(owner_of(canonical_name(name), of))


def haproxy(
    of: Of,
    server: Annotated[str, typer.Option("--server", help="The address of each cell, with {cell} for its number.", metavar="HOST:PORT")],
    bind: Annotated[str, typer.Option("--bind", help="Where HAProxy listens, in its words.")] = ":8000",
    claim: Annotated[str | None, typer.Option("--claim", help="The claim of OAuth tokens that names the persona.", metavar="NAME")] = None,
) -> None:
    """Print a configuration of HAProxy that leads each call to the cell of its persona."""
    from memory_mcp.cli.cell_files import haproxy as made  # noqa: PLC0415  `--help` doesn't need it

    typer.echo(made(of, server, bind, claim), nl=False)


def split(
    to: Annotated[Path, typer.Option("--to", help="The empty data directory of the new cell.", metavar="DIR")],
    data: DataDirectory = None,
) -> None:
    """Make two cells of one, twice as many in all. No server may run. After an interruption, run it again."""
    from memory_mcp.upkeep.cell_split import split as make  # noqa: PLC0415  as above

    directory = existing_data_directory(data)
    with steps("splitting") as progress:
        done = make(directory, to, progress)
    for cell, personas, where in ((done.kept, done.kept_personas, directory), (done.new, done.moved_personas, to)):
        typer.echo(f"{where}: cell.index {cell.index}, cell.of {cell.of}, {personas:,} personas")
