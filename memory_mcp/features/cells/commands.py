"""`memory-mcp cell`: many servers that share the personas. Splitting and restoring cells, and configurations of a router and of copies."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from memory_mcp.cli.feature import Commands
from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import ConfigFile, DataDirectory, existing_data_directory, settings_of
from memory_mcp.cli.progress import steps
from memory_mcp.config.master_key import earlier_key, master_key
from memory_mcp.config.reading import default_data_directory
from memory_mcp.dates.resolve import iso_span
from memory_mcp.errors import InvalidInput

group = typer.Typer(name="cell", help="Many servers that share the personas: docs/scale.md.", no_args_is_help=True)

Of = Annotated[int, typer.Option("--of", min=1, help="How many cells there are.", metavar="N")]


@group.command()
def owner(name: Annotated[str, typer.Argument(help="The persona.", metavar="NAME")], of: Of) -> None:
    """Print the number of the cell that a persona belongs to."""
    from memory_mcp.personas.cells import owner_of  # noqa: PLC0415  `--help` doesn't need it
    from memory_mcp.personas.names import canonical_name  # noqa: PLC0415

    typer.echo(owner_of(canonical_name(name), of))


@group.command()
def haproxy(
    of: Of,
    server: Annotated[
        str,
        typer.Option(
            "--server",
            help="The address of each cell, with {cell} for its number. HAProxy adds no search domain to a name.",
            metavar="HOST:PORT",
        ),
    ],
    bind: Annotated[str, typer.Option("--bind", help="Where HAProxy listens, in its words.")] = ":8000",
    claim: Annotated[str | None, typer.Option("--claim", help="The claim of OAuth tokens that names the persona.", metavar="NAME")] = None,
) -> None:
    """Print a configuration of HAProxy that leads each call to the cell of its persona."""
    from memory_mcp.features.cells.router_files import haproxy as made  # noqa: PLC0415  `--help` doesn't need it

    typer.echo(made(of, server, bind, claim), nl=False)


@group.command()
def litestream(
    to: Annotated[str, typer.Option("--to", help="A directory of another disk, or a URL such as s3://bucket/memory.", metavar="PLACE")],
    data: DataDirectory = None,
) -> None:
    """Print a configuration of Litestream, which copies plain personas within seconds."""
    from memory_mcp.features.cells.router_files import litestream as made  # noqa: PLC0415  as above

    typer.echo(made(existing_data_directory(data), to), nl=False)


@group.command()
def restore(
    copies: Annotated[Path | None, typer.Option("--copies", help="Where Litestream has copied to.", metavar="DIR")] = None,
    backups: Annotated[
        Path | None,
        typer.Option("--backups", help="The directory of the backups. Default: backup.directory in config.json.", metavar="DIR"),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", help="As of this time: 2026-11-24T03:10, in the zone of config.json, or 2026-11-24T03:10:00+09:00.", metavar="TIME"
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="The master key of the backups. Default: that of config.json.", metavar="FILE")
    ] = None,
    config: ConfigFile = None,
    data: DataDirectory = None,
) -> None:
    """Restore a lost cell into an empty data directory: each persona from its newest backup or copy. Exit status 1: one was not."""
    from memory_mcp.features.cells.restore import restore_cell  # noqa: PLC0415  as above
    from memory_mcp.personas.cells import Cell  # noqa: PLC0415  as above
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415  as above
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above

    settings = settings_of(config)
    if backups:
        settings = settings.model_copy(update={"backup": settings.backup.model_copy(update={"directory": str(backups)})})
    if key_file:
        settings = settings.model_copy(update={"encryption": settings.encryption.model_copy(update={"key_file": str(key_file)})})
    now = datetime.now(UTC)
    moment = _earlier(at, now, settings.zone) if at else None
    master = master_key(settings.encryption)

    def find_key(wanted: str) -> bytes | None:
        known = [master, earlier_key(settings.encryption, wanted)]
        return next((key.secret for key in known if key and key.id == wanted), None)

    cell, keys = Cell.configured(settings.cell), Keys(master, settings.encryption.enabled)
    personas = Personas(data or default_data_directory(), open_limit=0, keys=keys, cell=cell)
    try:
        done = []
        for persona in restore_cell(personas, copies, find_key, now, settings, moment):
            done.append(persona)
            if persona.refused:
                typer.echo(f"{persona.persona}: {worded(persona.refused)}", err=True)
            elif moment:
                changed = persona.until.astimezone(settings.zone).isoformat(sep=" ", timespec="seconds") if persona.until else "never"
                tell("{}: changed last {}" if persona.source == "copy" else "{}: backed up {}", persona.persona, changed)
    finally:
        personas.close()
    there = [persona for persona in done if not persona.refused]
    counts = Counter(persona.source for persona in there)
    tell("{}: {} personas, {} from copies and {} from backups", cell, f"{len(there):,}", f"{counts['copy']:,}", f"{counts['backup']:,}")
    if known := not moment and [persona.until for persona in there if persona.until]:
        latest = max(known).astimezone(settings.zone).isoformat(sep=" ", timespec="seconds")
        tell("The latest change is of {}. What was acknowledged after the last copy or backup of a persona is lost.", latest)
    if len(there) < len(done):
        raise typer.Exit(1)


def _earlier(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    span = iso_span(text.strip(), zone)
    if span is None or span.start > now:
        raise InvalidInput("{} is not a time before now", "", "Write it like 2026-11-24T03:10 or 2026-11-24T03:10:00+09:00", repr(text))
    return span.start.astimezone(zone)


@group.command()
def split(
    to: Annotated[Path, typer.Option("--to", help="The empty data directory of the new cell.", metavar="DIR")],
    data: DataDirectory = None,
) -> None:
    """Make two cells of one, twice as many in all. No server may run. After an interruption, run it again."""
    from memory_mcp.features.cells.split import split as make  # noqa: PLC0415  as above

    directory = existing_data_directory(data)
    with steps("splitting") as progress:
        done = make(directory, to, progress)
    for cell, personas, where in ((done.kept, done.kept_personas, directory), (done.new, done.moved_personas, to)):
        typer.echo(f"{where}: cell.index {cell.index}, cell.of {cell.of}, {personas:,} personas")


COMMANDS = Commands(admin=(group,))
