"""Backups: one file for each persona and moment, made beside whoever writes, and read back before it counts.

    snapshot → archive (tar, Zstandard, sealed where there is a key) → read it back: checksums, every page, the numbers → rename

What fails removes what it wrote; a process that dies leaves a file whose name begins with a dot, which the next backup removes.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from memory_mcp import __version__
from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.config.settings import Settings
from memory_mcp.errors import MemoryMCPError, Overloaded, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import IDENTITY_NAME, identity_text
from memory_mcp.personas.registry import Persona
from memory_mcp.store import migrations
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import Manifest
from memory_mcp.store.files.durable_files import refusal, sync_directory
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.sealed import ENDING as SEALED_ENDING
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.sqlite.errors import translated_errors
from memory_mcp.store.sqlite.snapshots import Progress

DIRECTORY_NAME = ".backups"
ENDING = ".tar.zst"
PRIVATE = 0o700
INTERVAL = timedelta(minutes=5)

_LOCK_NAME = ".lock"
_NAME = re.compile(rf"(\d{{8}}T\d{{6}}Z)(?:-\d+)?{re.escape(ENDING)}({re.escape(SEALED_ENDING)})?")


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that is there. `folder` is the name of the persona's directory."""

    path: Path
    folder: str
    made_at: datetime
    size_bytes: int
    sealed: bool


def unseen(_done: int, _all: int) -> None:
    """Nobody looks at the progress."""


class Backups:
    """Makes and keeps the backups of one data directory; `keys` seal them."""

    def __init__(self, data_directory: Path, keys: Keys) -> None:
        self._data, self._keys = data_directory, keys

    def directory(self, settings: Settings) -> Path:
        """Where backups are kept."""
        return Path(settings.backup.directory) if settings.backup.directory else self._data / DIRECTORY_NAME

    def listed(self, settings: Settings, folder: str | None = None) -> list[Backup]:
        """Those that there are, of one persona's directory or of all, the newest first."""
        try:
            found = [backup for path in self.directory(settings).glob(f"{folder or '*'}/*") if (backup := _backup(path))]
        except OSError as error:
            raise refusal(error, f"{self.directory(settings)} can't be read", "Mend its permissions") from error
        return sorted(found, key=lambda backup: (backup.made_at, backup.path.name), reverse=True)

    def step(self, persona: Persona, now: datetime, settings: Settings) -> bool:
        """Once a day: a backup, unless nothing was written since the last one, and an end to those that are too old."""
        folder = persona.database.path.parent.name
        made = self.listed(settings, folder)
        if not made or made[0].made_at < _due(now, settings):
            if not made or self._has_changed(persona, made[0]):
                self.make(persona, now, settings)
            self.prune(folder, now, settings)
        return False

    def make(self, persona: Persona, now: datetime, settings: Settings, progress: Progress = unseen) -> tuple[Backup, Manifest]:
        """Makes a backup of what the persona holds now. Others write meanwhile.

        Raises:
            Overloaded: one is being made already.
            StoreError: the persona can't be read, or the backup not be written; there is none then.
        """
        folder = persona.database.path.parent.name
        target = self.directory(settings) / folder
        secret = self._keys.master.secret if self._keys.master else None
        name = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        ending = ENDING + (SEALED_ENDING if secret else "")
        try:
            with _alone(target), atomic_replace.scratch(self._data, folder) as scratch:
                path = _unused(target, name, ending)
                unfinished = target / f".{path.name}.part"
                database = scratch / DATABASE_NAME
                # What is encrypted is never plain on a disk. The key of the copies is in memory alone.
                key = secrets.token_bytes(KEY_BYTES) if persona.database.key else None
                manifest, small = _gather(persona, now, (database, key), progress)
                backup_archive.write(unfinished, manifest, small, (database, key), secret, progress)
                database.unlink()
                _verify(unfinished, secret, (database, key), progress)
                unfinished.replace(path)
                sync_directory(target)
        except OSError as error:
            raise refusal(error, f"the backup of {persona.name} can't be written", f"Make {target} exist and be writable") from error
        return Backup(path, folder, now, path.stat().st_size, secret is not None), manifest

    def prune(self, folder: str, now: datetime, settings: Settings) -> list[Path]:
        """Removes backups of a persona that are older than `backup.keep_days`, but never the newest. Returns them."""
        old = [found for found in self.listed(settings, folder)[1:] if found.made_at < now - timedelta(days=settings.backup.keep_days)]
        for found in old:
            found.path.unlink()
        return [found.path for found in old]

    def remove_all(self, folder: str, settings: Settings) -> int:
        """Removes every backup of a persona, as when it is erased; whatever else lies there stays. Returns how many there were.

        Raises:
            Overloaded: one is being made.
            StoreError: one can't be removed; those before it are gone.
        """
        target = self.directory(settings) / folder
        found = self.listed(settings, folder)
        if not found:
            return 0
        try:
            with _alone(target):
                for backup in found:
                    backup.path.unlink()
                sync_directory(target)
            _remove_empty(target)
        except OSError as error:
            raise refusal(error, f"the backups in {target} can't be removed", "Make it writable for the server") from error
        return len(found)

    def follow(self, folder: str, to: str, settings: Settings) -> None:
        """Lets the backups of a persona that has another name lie under its new directory's name, where its next ones will.

        Raises:
            Overloaded: one is being made.
            StoreError: one can't be moved; it stays where it is.
        """
        source, target = self.directory(settings) / folder, self.directory(settings) / to
        found = self.listed(settings, folder)
        if not found or folder == to:
            return
        try:
            with _alone(source), _alone(target):
                for backup in found:
                    begin, _, ending = backup.path.name.partition(ENDING)
                    backup.path.rename(_unused(target, begin, ENDING + ending))
                sync_directory(target)
            _remove_empty(source)
        except OSError as error:
            raise refusal(error, f"the backups in {source} can't be moved to {target}", "Move them by hand") from error

    def _has_changed(self, persona: Persona, last: Backup) -> bool:
        try:
            with backup_archive.opened(last.path, self._secret_of) as (manifest, _):
                known = manifest
        except (MemoryMCPError, OSError):
            return True  # it can't be told, as after another master key
        with persona.database.read() as connection:
            operation = snapshots.contents(connection).last_operation
        return (operation, _digest(persona.context.text())) != (known.contents.last_operation, known.context_sha256)

    def _secret_of(self, key_id: str) -> bytes | None:
        master = self._keys.master
        return master.secret if master and master.id == key_id else None


def newest_beside(path: Path) -> Backup | None:
    """The newest backup in the directory of this one, which may be itself; None where there is none that has kept its name."""
    found = [backup for beside in path.absolute().parent.iterdir() if (backup := _backup(beside))]
    return max(found, key=lambda backup: (backup.made_at, backup.path.name), default=None)


def _verify(path: Path, secret: bytes | None, database: tuple[Path, bytes | None], progress: Progress) -> None:
    """Reads a backup from end to end, and its database too.

    Raises:
        StoreDamaged: something is not as it was written.
    """
    with backup_archive.opened(path, lambda _: secret) as (manifest, extract):
        extract(*database, progress)
    snapshots.verify(*database, manifest.contents)


def _gather(persona: Persona, now: datetime, copy: tuple[Path, bytes | None], progress: Progress) -> tuple[Manifest, dict[str, bytes]]:
    """Copies the database, under a key or plain; the manifest that says what there is, and the other files."""
    with persona.database.read() as connection:
        if migrations.pending(connection):
            raise StoreError(f"{persona.name} is in an older form", "", "Start the server, which brings it up to date")
        contents = snapshots.contents(connection)
        with translated_errors(persona.database.path):
            snapshots.copy_snapshot(connection, *copy, progress)
    text = persona.context.text()
    small = {IDENTITY_NAME: identity_text(persona.name).encode()}
    if text:
        small[CONTEXT_NAME] = text.encode()
    files = {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in small.items()}
    files[DATABASE_NAME] = backup_archive.size_and_digest(*copy)
    return Manifest(persona.name, now, __version__, copy[1] is not None, contents, _digest(text), files), small


def _due(now: datetime, settings: Settings) -> datetime:
    """The last moment at which a backup was due."""
    local = now.astimezone(settings.zone)
    due = local.replace(hour=settings.backup.hour, minute=0, second=0, microsecond=0)
    return due if due <= local else due - timedelta(days=1)


def next_due(persona: Persona, now: datetime, settings: Settings) -> datetime:  # noqa: ARG001  as a chore is asked
    """When it is looked next whether there is something to back up, or a backup is too old, if nothing is written until then."""
    return _due(now, settings) + timedelta(days=1)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _backup(path: Path) -> Backup | None:
    told = _NAME.fullmatch(path.name)
    if told is None or not path.is_file():
        return None
    made_at = datetime.strptime(told[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return Backup(path, path.parent.name, made_at, path.stat().st_size, bool(told[2]))


def _remove_scraps(target: Path) -> None:
    for scrap in target.glob(".*.part"):
        scrap.unlink()


def _remove_empty(target: Path) -> None:
    """Removes a directory of backups that holds none any more, nor anything else."""
    (target / _LOCK_NAME).unlink(missing_ok=True)
    if not any(target.iterdir()):
        target.rmdir()
    sync_directory(target.parent)


def _unused(target: Path, name: str, ending: str) -> Path:
    path, number = target / f"{name}{ending}", 2
    while path.exists():
        path, number = target / f"{name}-{number}{ending}", number + 1
    return path


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Nobody else makes a backup of this persona meanwhile; what an interrupted one left is removed."""
    if not target.parent.exists():
        target.parent.mkdir(mode=PRIVATE, parents=True)
    target.mkdir(mode=PRIVATE, exist_ok=True)
    try:
        with FileLock(target / _LOCK_NAME, timeout=0):
            _remove_scraps(target)
            try:
                yield
            except BaseException:
                _remove_scraps(target)  # it may hold the last bytes of a full disk
                raise
    except Timeout:
        raise Overloaded(f"a backup of {target.name} is being made already", "", "Try again when it is done") from None
