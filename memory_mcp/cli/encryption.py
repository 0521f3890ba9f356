"""`memory-mcp key`, `encrypt`, `decrypt` and `rotate-key`: encryption at rest. All but `key` require that the server is stopped."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import ConfigFile, DataDirectory, existing_data_directory, settings_of
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
from memory_mcp.config.settings import Encryption, Settings
from memory_mcp.errors import ConfigError, InvalidInput, MemoryMCPError
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.personas.registry import Personas

PersonaNames = Annotated[
    list[str] | None, typer.Option("--persona", "-p", help="A persona; may be repeated. Default: all.", metavar="NAME")
]

key = typer.Typer(name="key", help="Create or show the master key of the encryption.", no_args_is_help=True)


@key.command()
def new(
    file: Annotated[Path | None, typer.Argument(help="The file to create, readable only by you.", metavar="[FILE]")] = None,
    in_keyring: Annotated[bool, typer.Option("--keyring", help="Store it in the system's keyring instead of a file.")] = False,
) -> None:
    """Create a master key without printing it. Keep a copy of it apart from the data and the backups."""
    if (file is None) != in_keyring:
        raise InvalidInput("a destination for the key is required", "", "Name a file, or use --keyring")
    if file is not None:
        made = new_key(sentence("the file {}", file))
        _write_key(file, made)
        tell('The master key {} is in {}. Set it in config.json: {"encryption": {"key_file": "{}"}}', made.id, file, file.absolute())
    else:
        made = new_key("the keyring")
        if keyring().get_password(KEYRING_SERVICE, KEYRING_USER):
            raise InvalidInput(
                "the keyring already has a master key", "a new one couldn't decrypt the existing data", "See `memory-mcp rotate-key`"
            )
        keyring().set_password(KEYRING_SERVICE, KEYRING_USER, made.text)
        tell('The master key {} is in the keyring. Set it in config.json: {"encryption": {"keyring": true}}', made.id)
    tell("Without the key, encrypted data is lost: keep a copy elsewhere.")


@key.command()
def show(
    config: ConfigFile = None,
    secret: Annotated[bool, typer.Option("--secret", help="Print the key itself, for a backup on paper.")] = False,
) -> None:
    """Show the id and the source of the current master key."""
    master = _master(settings_of(config).encryption)
    typer.echo(master.text if secret else worded("{}, from {}", master.id, master.source))


def encrypt(personas: PersonaNames = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Encrypt existing personas. The server must be stopped. With encryption.enabled, new personas are encrypted when they are created."""
    from memory_mcp.cli.doctor_checks import readable_backups  # noqa: PLC0415  the other commands don't need the stores
    from memory_mcp.upkeep.encryption import encrypt as change  # noqa: PLC0415  as above

    settings = settings_of(config)
    _master(settings.encryption)
    with _stopped(settings, data) as there:
        _report("encrypted", "encrypting", there, personas, lambda names, done: change(there, names, done))
        kept = there.directory / ".adopted"
        readable = readable_backups(there.directory, settings)
    if kept.exists():
        tell("{} contains data of an older server, which is not encrypted. Remove it when you no longer need it.", kept, err=True)
    if readable:
        tell(readable, err=True)


def decrypt(personas: PersonaNames = None, config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Decrypt personas, and destroy their keys. The server must be stopped."""
    from memory_mcp.upkeep.encryption import decrypt as change  # noqa: PLC0415  as above

    with _stopped(settings_of(config), data) as there:
        _report("decrypted", "decrypting", there, personas, lambda names, done: change(there, names, done))


def rotate_key(
    config: ConfigFile = None,
    data: DataDirectory = None,
    new_file: Annotated[
        Path | None,
        typer.Option("--new-key-file", help="A key created by `key new`; required if the current key is not in a file.", metavar="FILE"),
    ] = None,
) -> None:
    """Replace the master key. The server must be stopped. Existing backups keep the old key."""
    settings = settings_of(config)
    old = _master(settings.encryption)
    with _stopped(settings, data) as there:
        if settings.encryption.key_file and new_file is None:
            count, made = _rotate_file(there, Path(settings.encryption.key_file), old)
        else:
            count, made = _rotate_elsewhere(there, settings.encryption, old, new_file)
    tell("{} persona(s) now have the master key {}. Existing backups need {}: keep it as long as the backups.", count, made.id, old.id)


def _rotate_file(there: "Personas", file: Path, old: MasterKey) -> tuple[int, MasterKey]:
    new_path = file.with_name(f"{file.name}.new")
    if not new_path.exists():  # an existing one belongs to an interrupted rotation, which continues
        _write_key(new_path, new_key(""))
    made = key_in_file(new_path)

    def activate() -> None:
        from memory_mcp.store.files.durable_files import sync_directory  # noqa: PLC0415  as above

        if not replaced_key_file(file, old.id).exists():
            _write_key(replaced_key_file(file, old.id), old)
        new_path.replace(file)
        sync_directory(file.absolute().parent)

    return _rotated(there, old, made, activate), made


def _rotate_elsewhere(there: "Personas", configured: Encryption, old: MasterKey, new_file: Path | None) -> tuple[int, MasterKey]:
    if new_file is None:
        raise InvalidInput(
            "a new key is required", "the current key is from {}", "Create a key and name it with --new-key-file", old.source
        )
    made = key_in_file(new_file)
    by_keyring = configured.keyring and not configured.key_file and old.source == "the keyring"

    def activate() -> None:
        if by_keyring:
            keyring().set_password(KEYRING_SERVICE, KEYRING_USER, made.text)

    count = _rotated(there, old, made, activate)
    if not by_keyring:
        instruction = f"Set encryption.key_file to {new_file}" if configured.key_file else f"Set {VARIABLE} to the key in {new_file}"
        tell("{} before the server starts.", instruction)
    return count, made


def _rotated(there: "Personas", old: MasterKey, made: MasterKey, activate: Callable[[], None]) -> int:
    from memory_mcp.upkeep.encryption import rotate, state  # noqa: PLC0415  as above

    with progress("rotating", len(state(there.directory).encrypted)) as advance:
        return rotate(there.directory, old, made, activate, lambda _name: advance(1))


def _report(
    past: str,
    doing: str,
    personas: "Personas",
    requested: list[str] | None,
    change: Callable[[list[str], Callable[[str, str], None]], None],
) -> None:
    from memory_mcp.upkeep.encryption import selected  # noqa: PLC0415  as above

    names, failed = selected(requested or [], personas.stores()), 0
    with progress(doing, len(names)) as advance:

        def done(name: str, error: str) -> None:
            nonlocal failed
            failed += bool(error)
            tell("{}: {}", name, error or sentence(past), err=bool(error))
            advance(1)

        change(names, done)
    if not names:
        tell("There are no personas here.")
    if failed:
        raise typer.Exit(1)


@contextmanager
def _stopped(settings: Settings, data: Path | None) -> Iterator["Personas"]:
    """Opens a data directory that no server is using."""
    from memory_mcp.client.discovery import if_free  # noqa: PLC0415  as above
    from memory_mcp.personas.registry import Personas  # noqa: PLC0415  as above
    from memory_mcp.store.files.encryption_keys import Keys  # noqa: PLC0415  as above

    directory = existing_data_directory(data)
    # No persona stays open after use, since its files are about to be replaced.
    keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
    with closing(if_free(directory, lambda: Personas(directory, open_limit=0, keys=keys))) as personas:
        yield personas


def _master(configured: Encryption) -> MasterKey:
    master = master_key(configured)
    if master is None:
        raise ConfigError(
            "there is no master key",
            "none is configured",
            "Create one with `memory-mcp key new FILE` and set encryption.key_file",
        )
    return master


def _write_key(path: Path, made: MasterKey) -> None:
    from memory_mcp.store.files.durable_files import write_atomically  # noqa: PLC0415  as above

    if path.exists():
        raise InvalidInput("{} already exists", "a key is never overwritten", "Choose another name", path)
    try:
        write_atomically(path, made.text + "\n")  # readable only by its owner
    except OSError as error:
        raise MemoryMCPError("{} can't be written", "{}", "Choose another path", path, error.strerror or str(error)) from error
