"""`memory-mcp backup`, with or without a running server, and `memory-mcp restore`, which requires that the server is stopped."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import ConfigFile, DataDirectory, existing_data_directory, memories_in_words, settings_of, size_in_words
from memory_mcp.cli.progress import steps
from memory_mcp.config.master_key import MasterKey, earlier_key, key_in_file, master_key
from memory_mcp.config.reading import default_data_directory
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError, InvalidInput, MemoryMCPError, StoreError

if TYPE_CHECKING:
    from memory_mcp.upkeep.restore import Restored

PersonaNames = Annotated[
    list[str] | None, typer.Option("--persona", "-p", help="A persona; may be repeated. Default: all.", metavar="NAME")
]
BackupDirectory = Annotated[
    Path | None, typer.Option("--to", help="The directory of the backups. Default: backup.directory in config.json.", metavar="DIR")
]

group = typer.Typer(name="backup", help="Back up personas, and list their backups.", invoke_without_command=True)


@group.callback()
def backup(
    context: typer.Context, personas: PersonaNames = None, to: BackupDirectory = None, config: ConfigFile = None, data: DataDirectory = None
) -> None:
    """Back up all personas, and verify the backups. The server may be running. Exit status 1: a backup failed."""
    if context.invoked_subcommand:
        return
    # Imported here: the other commands don't need the stores and their libraries.
    from memory_mcp.personas.registry import names_in, open_read_only  # noqa: PLC0415
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415
    from memory_mcp.upkeep.backup import Backups  # noqa: PLC0415
    from memory_mcp.upkeep.encryption import selected  # noqa: PLC0415

    settings, directory = _settings(config, to), existing_data_directory(data)
    keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
    names = selected(personas or [], names_in(directory))
    failed = 0
    for name in names:
        try:
            with steps(name) as progress, open_read_only(directory, name, keys) as persona:
                made, manifest = Backups(directory, keys).make(persona, datetime.now(UTC), settings, progress)
            counts = manifest.contents
            typer.echo(f"{name}: {worded(memories_in_words(counts.memories))}, {size_in_words(made.size_bytes)}: {made.path}")
        except MemoryMCPError as error:
            failed += 1
            typer.echo(f"{name}: {worded(str(error))}", err=True)
    if not names:
        tell("There are no personas here.")
    elif keys.master is None:
        tell("There is no master key: the backups are not encrypted. See `memory-mcp key --help`.", err=True)
    if failed:
        raise typer.Exit(1)


@group.command("list")
def list_backups(to: BackupDirectory = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """List the backups, the newest first."""
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above
    from memory_mcp.upkeep.backup import Backups  # noqa: PLC0415  as above

    settings, directory = _settings(config, to), data or default_data_directory()
    backups = Backups(directory, Keys()).listed(settings)
    for made in backups:
        at = made.made_at.astimezone(settings.zone).isoformat(sep=" ", timespec="minutes")
        kind = "encrypted" if made.sealed else "plain"
        typer.echo(f"{_persona_of(directory / made.folder)}  {at}  {size_in_words(made.size_bytes)}  {worded(kind)}  {made.path}")
    if not backups:
        tell("There are no backups.")


def _persona_of(directory: Path) -> str:
    """The name of the persona in a directory, or of the directory where the persona is gone."""
    from memory_mcp.personas.directories import identity  # noqa: PLC0415  as above

    try:
        return identity(directory) or directory.name
    except StoreError:
        return directory.name


def restore(
    file: Annotated[Path, typer.Argument(help="A backup file; see `memory-mcp backup list`.", metavar="FILE")],
    name: Annotated[str | None, typer.Option("--as", help="Restore under another name.", metavar="NAME")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the existing persona, which is lost.")] = False,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="The master key of the backup.", metavar="FILE")] = None,
    config: ConfigFile = None,
    data: DataDirectory = None,
) -> None:
    """Restore a persona from a backup. The server must be stopped."""
    from memory_mcp.client.discovery import if_free  # noqa: PLC0415  as above
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415  as above
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above
    from memory_mcp.upkeep.restore import restore as make  # noqa: PLC0415  as above

    settings = _settings(config, None)
    given_key = key_in_file(key_file) if key_file else None
    master = _master(settings, given_key)
    if not file.exists():
        raise InvalidInput("{} does not exist", "", "See `memory-mcp backup list`", file)

    def find_key(wanted: str) -> bytes | None:
        candidates: list[MasterKey | None] = [given_key, master, earlier_key(settings.encryption, wanted)]
        return next((key.secret for key in candidates if key and key.id == wanted), None)

    directory = data or default_data_directory()
    keys = Keys(master, settings.encryption.enabled)
    with closing(if_free(directory, lambda: Personas(directory, open_limit=0, keys=keys))) as personas, steps("restoring") as progress:
        done = make(personas, file, find_key, datetime.now(UTC), to=name, instead=replace, progress=progress)
    _report(done, settings, given=given_key is not None and master is given_key)


def _master(settings: Settings, given_key: MasterKey | None) -> MasterKey | None:
    """The configured master key, or the given one if there is none. On another machine the configured key file may not exist."""
    try:
        return master_key(settings.encryption) or given_key
    except ConfigError:
        if given_key is None:
            raise
        return given_key


def _report(done: "Restored", settings: Settings, *, given: bool) -> None:
    at = done.made_at.astimezone(settings.zone).isoformat(sep=" ", timespec="minutes")
    tell("{}: as it was {}, {}{}", done.persona, at, memories_in_words(done.contents.memories), ", encrypted" if done.encrypted else "")
    if done.erased_again:
        tell("{} erased since then left out", memories_in_words(done.erased_again))
    if done.unknown_erased:
        tell("There is no record of what was erased since then: erased memories may be back, and must be purged again.", err=True)
    if given and done.encrypted:
        tell("Name the key file in encryption.key_file before the server starts.")


def _settings(config: Path | None, to: Path | None) -> Settings:
    settings = settings_of(config)
    return settings.model_copy(update={"backup": settings.backup.model_copy(update={"directory": str(to)})}) if to else settings
