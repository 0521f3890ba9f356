"""`memory-mcp key`, `encrypt`, `decrypt` and `rotate-key`: encryption at rest. All but `key` want the server stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.options import ConfigFile, DataDirectory
from memory_mcp.cli.progress import progress
from memory_mcp.config.master_key import (
    KEYRING_SERVICE,
    KEYRING_USER,
    VARIABLE,
    MasterKey,
    key_in_file,
    keyring,
    master_key,
    new_key,
    replaced_key_file,
)
from memory_mcp.config.reading import default_config_path, default_data_directory, load
from memory_mcp.config.settings import Encryption, Settings
from memory_mcp.errors import ConfigError, InvalidInput, MemoryMCPError

if TYPE_CHECKING:
    from memory_mcp.personas.registry import Personas

PersonaNames = Annotated[list[str] | None, typer.Option("--persona", "-p", help="Whose; may be repeated. Default: all.", metavar="NAME")]

key = typer.Typer(help="The master key, which opens everything that is encrypted.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    key.command()(new)
    key.command()(show)
    app.add_typer(key, name="key")
    app.command()(encrypt)
    app.command()(decrypt)
    app.command("rotate-key")(rotate_key)


def new(
    file: Annotated[Path | None, typer.Argument(help="Where to; readable by you alone.", metavar="[FILE]")] = None,
    in_keyring: Annotated[bool, typer.Option("--keyring", help="Into the system's keyring instead of a file.")] = False,
) -> None:
    """Make a master key. It is not printed. Keep a copy of it where the data and its backups are not."""
    if (file is None) != in_keyring:
        raise InvalidInput("it must be said where the key goes", "", "Name a file, or say --keyring")
    if file is not None:
        made = new_key(f"the file {file}")
        _write_key(file, made)
        typer.echo(f'The master key {made.id} is in {file}. Name it in config.json: {{"encryption": {{"key_file": "{file.absolute()}"}}}}')
    else:
        made = new_key("the keyring")
        if keyring().get_password(KEYRING_SERVICE, KEYRING_USER):
            raise InvalidInput(
                "the keyring has a master key already", "another would close what that one opens", "See `memory-mcp rotate-key`"
            )
        keyring().set_password(KEYRING_SERVICE, KEYRING_USER, made.text)
        typer.echo(f'The master key {made.id} is in the keyring. Say so in config.json: {{"encryption": {{"keyring": true}}}}')
    typer.echo("Whoever loses it loses what is encrypted: keep a copy elsewhere.")


def show(
    config: ConfigFile = None,
    secret: Annotated[bool, typer.Option("--secret", help="Print the key itself, to be written down.")] = False,
) -> None:
    """Say which master key is in force, and where it comes from."""
    master = _master(_settings(config).encryption)
    typer.echo(master.text if secret else f"{master.id}, from {master.source}")


def encrypt(personas: PersonaNames = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Encrypt personas that exist. The server must be stopped. New ones are by themselves, if encryption.enabled says so."""
    from memory_mcp.upkeep.encryption import encrypt as change  # noqa: PLC0415  the stores and their libraries

    settings = _settings(config)
    _master(settings.encryption)
    with _stopped(settings, data) as there:
        _report("encrypted", "encrypting", there, personas, lambda names, done: change(there, names, done))
        kept = there.directory / ".adopted"
    if kept.exists():
        typer.echo(f"{kept} holds what an older server left, as it was: not encrypted. Remove it when all is well.", err=True)


def decrypt(personas: PersonaNames = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Make personas plain again, and destroy their keys. The server must be stopped."""
    from memory_mcp.upkeep.encryption import decrypt as change  # noqa: PLC0415  as above

    with _stopped(_settings(config), data) as there:
        _report("decrypted", "decrypting", there, personas, lambda names, done: change(there, names, done))


def rotate_key(
    config: ConfigFile = None,
    data: DataDirectory = None,
    new_file: Annotated[
        Path | None,
        typer.Option("--new-key-file", help="A key made by `key new`, where the one in force is not in a file.", metavar="FILE"),
    ] = None,
) -> None:
    """Put another master key in the place of the one in force. The server must be stopped. Backups keep the key that they have."""
    settings = _settings(config)
    old = _master(settings.encryption)
    with _stopped(settings, data) as there:
        if settings.encryption.key_file and new_file is None:
            count, made = _rotate_file(there, Path(settings.encryption.key_file), old)
        else:
            count, made = _rotate_elsewhere(there, settings.encryption, old, new_file)
    typer.echo(f"The master key of {count} persona(s) is {made.id} now. Backups made until now want {old.id}: keep it as long as those.")


def _rotate_file(there: "Personas", file: Path, old: MasterKey) -> tuple[int, MasterKey]:
    coming = file.with_name(f"{file.name}.new")
    if not coming.exists():  # one that is there is of a rotation that was interrupted, which goes on
        _write_key(coming, new_key(""))
    made = key_in_file(coming)

    def put_in_force() -> None:
        from memory_mcp.store.files.durable_files import sync_directory  # noqa: PLC0415  as above

        if not replaced_key_file(file, old.id).exists():
            _write_key(replaced_key_file(file, old.id), old)
        coming.replace(file)
        sync_directory(file.absolute().parent)

    return _rotated(there, old, made, put_in_force), made


def _rotate_elsewhere(there: "Personas", said: Encryption, old: MasterKey, new_file: Path | None) -> tuple[int, MasterKey]:
    if new_file is None:
        raise InvalidInput(
            "it must be said what the new key is", f"the one in force is from {old.source}", "Make one and say --new-key-file"
        )
    made = key_in_file(new_file)
    by_keyring = said.keyring and not said.key_file and old.source == "the keyring"

    def put_in_force() -> None:
        if by_keyring:
            keyring().set_password(KEYRING_SERVICE, KEYRING_USER, made.text)

    count = _rotated(there, old, made, put_in_force)
    if not by_keyring:
        where = f"Name {new_file} in encryption.key_file" if said.key_file else f"Set {VARIABLE} to the key in {new_file}"
        typer.echo(f"{where} before the server starts.")
    return count, made


def _rotated(there: "Personas", old: MasterKey, made: MasterKey, put_in_force: Callable[[], None]) -> int:
    from memory_mcp.upkeep.encryption import rotate, state  # noqa: PLC0415  as above

    with progress("rotating", len(state(there.directory).encrypted)) as advance:
        return rotate(there.directory, old, made, put_in_force, lambda _name: advance(1))


def _report(
    verb: str, doing: str, there: "Personas", asked: list[str] | None, change: Callable[[list[str], Callable[[str, str], None]], None]
) -> None:
    from memory_mcp.upkeep.encryption import meant  # noqa: PLC0415  as above

    names, refused = meant(asked or [], there.names()), 0
    with progress(doing, len(names)) as advance:

        def done(name: str, why_not: str) -> None:
            nonlocal refused
            refused += bool(why_not)
            typer.echo(f"{name}: {why_not or verb}", err=bool(why_not))
            advance(1)

        change(names, done)
    if not names:
        typer.echo("There is no persona here.")
    if refused:
        raise typer.Exit(1)


@contextmanager
def _stopped(settings: Settings, data: Path | None) -> Iterator["Personas"]:
    """The personas of a data directory that no server has."""
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415  as above
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above

    directory = data or default_data_directory()
    if not directory.is_dir():
        raise InvalidInput(f"{directory} is no data directory", "", "Say where the data is with --data")
    # None stays open after it was used: its files are about to be others.
    personas = Personas(directory, open_limit=0, keys=Keys(master_key(settings.encryption), settings.encryption.enabled))
    try:
        yield personas
    finally:
        personas.close()


def _settings(config: Path | None) -> Settings:
    path = config or default_config_path()
    return load(path.read_text(encoding="utf-8") if path.exists() else "{}", str(path)).settings


def _master(said: Encryption) -> MasterKey:
    found = master_key(said)
    if found is None:
        raise ConfigError(
            "there is no master key",
            "nothing says where one is",
            "Make one with `memory-mcp key new FILE` and name it in encryption.key_file",
        )
    return found


def _write_key(path: Path, made: MasterKey) -> None:
    from memory_mcp.store.files.durable_files import write_atomically  # noqa: PLC0415  as above

    if path.exists():
        raise InvalidInput(f"{path} is there already", "a key is never overwritten", "Choose another name")
    try:
        write_atomically(path, made.text + "\n")  # readable by its owner alone
    except OSError as error:
        raise MemoryMCPError(f"{path} can't be written", error.strerror or str(error), "Choose another place") from error
