"""`memory-mcp backup`, beside a running server or without one, and `memory-mcp restore`, with the server stopped."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.options import ConfigFile, DataDirectory
from memory_mcp.cli.progress import steps
from memory_mcp.config.master_key import MasterKey, earlier_key, key_in_file, master_key
from memory_mcp.config.reading import default_config_path, default_data_directory, load
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError, InvalidInput, MemoryMCPError

if TYPE_CHECKING:
    from memory_mcp.upkeep.restore import Restored

PersonaNames = Annotated[list[str] | None, typer.Option("--persona", "-p", help="Whose; may be repeated. Default: all.", metavar="NAME")]
Place = Annotated[Path | None, typer.Option("--to", help="Where backups are kept. Default: backup.directory.", metavar="DIR")]

MEBIBYTE = 1024 * 1024

group = typer.Typer(help="Backups of personas.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group.callback()(backup)
    group.command("list")(list_backups)
    app.add_typer(group, name="backup")
    app.command()(restore)


def backup(
    context: typer.Context, personas: PersonaNames = None, to: Place = None, config: ConfigFile = None, data: DataDirectory = None
) -> None:
    """Make a backup of every persona, and read it back. The server may run. Exit status 1: one could not be made."""
    if context.invoked_subcommand:
        return
    # The stores and their libraries, which the other commands do without.
    from memory_mcp.personas.registry import names_in, open_read_only  # noqa: PLC0415
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415
    from memory_mcp.upkeep.backup import Backups  # noqa: PLC0415
    from memory_mcp.upkeep.encryption import meant  # noqa: PLC0415

    settings, directory = _settings(config, to), _existing(data)
    keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
    names = meant(personas or [], names_in(directory))
    failed = 0
    for name in names:
        try:
            with steps(name) as progress, open_read_only(directory, name, keys) as persona:
                made, manifest = Backups(directory, keys).make(persona, datetime.now(UTC), settings, progress)
            counts = manifest.contents
            typer.echo(f"{name}: {counts.memories:,} memories, {made.size_bytes / MEBIBYTE:.1f} MiB: {made.path}")
        except MemoryMCPError as error:
            failed += 1
            typer.echo(f"{name}: {error}", err=True)
    if not names:
        typer.echo("There is no persona here.")
    elif keys.master is None:
        typer.echo("There is no master key: whoever has a backup can read it. See `memory-mcp key --help`.", err=True)
    if failed:
        raise typer.Exit(1)


def list_backups(to: Place = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """List the backups that there are, the newest first."""
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above
    from memory_mcp.upkeep.backup import Backups  # noqa: PLC0415  as above

    settings = _settings(config, to)
    found = Backups(data or default_data_directory(), Keys()).listed(settings)
    for made in found:
        at = made.made_at.astimezone(settings.zone).isoformat(sep=" ", timespec="minutes")
        typer.echo(f"{made.folder}  {at}  {made.size_bytes / MEBIBYTE:.1f} MiB  {'encrypted' if made.sealed else 'plain'}  {made.path}")
    if not found:
        typer.echo("There is no backup.")


def restore(
    file: Annotated[Path, typer.Argument(help="A backup; see `memory-mcp backup list`.", metavar="FILE")],
    name: Annotated[str | None, typer.Option("--as", help="Under another name than the one that it is of.", metavar="NAME")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Instead of the persona that is there, which is lost.")] = False,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="The master key that it was made under.", metavar="FILE")] = None,
    config: ConfigFile = None,
    data: DataDirectory = None,
) -> None:
    """Make a persona of a backup. The server must be stopped."""
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415  as above
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above
    from memory_mcp.upkeep.restore import restore as make  # noqa: PLC0415  as above

    settings = _settings(config, None)
    told = key_in_file(key_file) if key_file else None
    master = _master(settings, told)
    if not file.exists():
        raise InvalidInput(f"{file} does not exist", "", "See `memory-mcp backup list`")

    def find_key(wanted: str) -> bytes | None:
        known: list[MasterKey | None] = [told, master, earlier_key(settings.encryption, wanted)]
        return next((key.secret for key in known if key and key.id == wanted), None)

    there = Personas(data or default_data_directory(), open_limit=0, keys=Keys(master, settings.encryption.enabled))
    try:
        with steps("restoring") as progress:
            done = make(there, file, find_key, datetime.now(UTC), to=name, instead=replace, progress=progress)
    finally:
        there.close()
    _report(done, settings, given=told is not None and master is told)


def _master(settings: Settings, told: MasterKey | None) -> MasterKey | None:
    """The master key in force, or the one that was told where there is none. On another machine config.json may name a file of the first."""
    try:
        return master_key(settings.encryption) or told
    except ConfigError:
        if told is None:
            raise
        return told


def _report(done: "Restored", settings: Settings, *, given: bool) -> None:
    at = done.made_at.astimezone(settings.zone).isoformat(sep=" ", timespec="minutes")
    typer.echo(f"{done.persona}: as it was {at}, {done.contents.memories:,} memories{', encrypted' if done.encrypted else ''}")
    if done.erased_again:
        typer.echo(f"{done.erased_again:,} that were erased for good since then were left out")
    if done.unknown_erased:
        typer.echo("Nobody here knows what was erased for good since then: if something was, it is back, and to be purged again.", err=True)
    if given and done.encrypted:
        typer.echo("Name the key file in encryption.key_file before the server starts.")


def _settings(config: Path | None, to: Path | None) -> Settings:
    path = config or default_config_path()
    settings = load(path.read_text(encoding="utf-8") if path.exists() else "{}", str(path)).settings
    return settings.model_copy(update={"backup": settings.backup.model_copy(update={"directory": str(to)})}) if to else settings


def _existing(data: Path | None) -> Path:
    directory = data or default_data_directory()
    if not directory.is_dir():
        raise InvalidInput(f"{directory} is no data directory", "", "Say where the data is with --data")
    return directory
