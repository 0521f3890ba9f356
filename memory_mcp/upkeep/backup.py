"""Makes, lists, and prunes backups: one file per persona and time, made while the server runs, and verified before it counts.

    snapshot → archive (tar, Zstandard, sealed if there is a key) → verification: checksums, every page, row counts → rename

A failed backup removes its files; a killed process leaves a file whose name begins with a dot, which the next backup removes.
"""

import hashlib
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout

from memory_mcp import __version__
from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.config.settings import Settings
from memory_mcp.errors import MemoryMCPError, Overloaded, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import IDENTITY_NAME, identity_text
from memory_mcp.personas.registry import Persona
from memory_mcp.store import migrations, operations
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import Manifest
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, refusal, sync_directory
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.sealed import ENDING as SEALED_ENDING
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.sqlite.errors import translated_errors
from memory_mcp.store.sqlite.snapshots import Progress

DIRECTORY_NAME = ".backups"
ENDING = ".tar.zst"

_LOCK_NAME = ".lock"
_UNFINISHED = ".part"
# One copy at a time, and a little more than the database has now.
_SCRATCH_FACTOR = 1.2
_NAME = re.compile(rf"(\d{{8}}T\d{{6}}Z)(?:-\d+)?{re.escape(ENDING)}({re.escape(SEALED_ENDING)})?")


@dataclass(frozen=True, slots=True)
class Backup:
    """An existing backup. `folder` is the name of the persona's directory."""

    path: Path
    folder: str
    made_at: datetime
    size_bytes: int
    sealed: bool


def no_progress(_done: int, _all: int) -> None:
    """Ignore the progress."""


class Backups:
    """The backups of one data directory, sealed by `keys`."""

    def __init__(self, data_directory: Path, keys: Keys) -> None:
        self._data, self._keys = data_directory, keys

    def directory(self, settings: Settings) -> Path:
        """The directory of backups."""
        return Path(settings.backup.directory) if settings.backup.directory else self._data / DIRECTORY_NAME

    def listed(self, settings: Settings, folder: str | None = None, now: datetime | None = None) -> list[Backup]:
        """The backups of one persona's directory or of all, the newest first. Those of a time to come are last: a wrong clock dated them."""
        try:
            backups = [backup for path in self.directory(settings).glob(f"{folder or '*'}/*") if (backup := _backup(path))]
        except OSError as error:
            raise refusal(error, f"{self.directory(settings)} can't be read", "Mend its permissions") from error
        return _newest_first(backups, now or datetime.now(UTC))

    def step(self, persona: Persona, now: datetime, settings: Settings) -> bool:
        """Once a day, or interval: make a backup if anything changed since the last one, and prune old backups."""
        folder = persona.database.path.parent.name
        # One of a day to come was made under a wrong clock, and is no reason to make none until then.
        made = [backup for backup in self.listed(settings, folder, now) if backup.made_at <= now]
        if not made or made[0].made_at < _due(now, settings):
            if not made or self._has_changed(persona, made[0]):
                self.make(persona, now, settings)
            self.prune(folder, now, settings)
        return False

    def make(self, persona: Persona, now: datetime, settings: Settings, progress: Progress = no_progress) -> tuple[Backup, Manifest]:
        """Make a backup of a persona, which may be written meanwhile.

        Raises:
            Overloaded: a backup of this persona is being made.
            StoreError: the persona can't be read or the backup can't be written; no backup is left.
        """
        folder = persona.database.path.parent.name
        target = self.directory(settings) / folder
        secret = self._keys.master.secret if self._keys.master else None
        name = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        ending = ENDING + (SEALED_ENDING if secret else "")
        try:
            with _locked(target), self._scratch(persona, target, sealed=secret is not None) as scratch:
                path = _unused(target, name, ending)
                unfinished = target / f".{path.name}{_UNFINISHED}"
                database = scratch / DATABASE_NAME
                # Encrypted content is never written to disk in plain. The key of the copies exists only in memory.
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
        """Remove backups of a persona older than `backup.keep_days`, and of earlier days all but the last, but never the newest. Returns the
        removed ones. None dated in the future is the newest, or is removed."""
        past = [backup for backup in self.listed(settings, folder, now) if backup.made_at <= now]
        days = [backup.made_at.astimezone(settings.zone).date() for backup in past]
        today, oldest = now.astimezone(settings.zone).date(), _oldest_kept(past, now, timedelta(days=settings.backup.keep_days))
        is_thinned = settings.backup.interval_minutes is not None
        old = [
            backup
            for backup, day, later_day in zip(past[1:], days[1:], days[:-1], strict=True)
            if backup.made_at < oldest or (is_thinned and day == later_day != today)
        ]
        for backup in old:
            backup.path.unlink()
        return [backup.path for backup in old]

    def remove_all(self, folder: str, settings: Settings) -> int:
        """Remove every backup of an erased persona, but no other files. Returns their number.

        Raises:
            Overloaded: a backup is being made.
            StoreError: a backup can't be removed; earlier ones are gone.
        """
        target = self.directory(settings) / folder
        backups = self.listed(settings, folder)
        if not backups:
            return 0
        try:
            with _locked(target):
                for backup in backups:
                    backup.path.unlink()
                sync_directory(target)
            _remove_empty(target)
        except OSError as error:
            raise refusal(error, f"the backups in {target} can't be removed", "Make it writable for the server") from error
        return len(backups)

    def follow_rename(self, folder: str, to: str, settings: Settings) -> None:
        """Move the backups of a renamed persona under its new directory name.

        Raises:
            Overloaded: a backup is being made.
            StoreError: a backup can't be moved; it stays in the old directory.
        """
        source, target = self.directory(settings) / folder, self.directory(settings) / to
        backups = self.listed(settings, folder)
        if not backups or folder == to:
            return
        try:
            with _locked(source), _locked(target):
                for backup in backups:
                    begin, _, ending = backup.path.name.partition(ENDING)
                    backup.path.rename(_unused(target, begin, ENDING + ending))
                sync_directory(target)
            _remove_empty(source)
        except OSError as error:
            raise refusal(error, f"the backups in {source} can't be moved to {target}", "Move them by hand") from error

    @contextmanager
    def _scratch(self, persona: Persona, target: Path, *, sealed: bool) -> Iterator[Path]:
        """An empty directory for the copy of the database: on the data disk, or, where that is read-only or full, next to the backup. In
        that case a plain copy for a sealed backup goes to this machine's temporary directory."""
        folder = persona.database.path.parent.name
        has_room = shutil.disk_usage(self._data).free > persona.database.size_bytes() * _SCRATCH_FACTOR
        with ExitStack() as stack:
            try:
                scratch = stack.enter_context(atomic_replace.scratch(self._data, folder)) if has_room else None
            except OSError:
                scratch = None
            if scratch is None:
                elsewhere = None if sealed and not persona.database.key else target
                parent = stack.enter_context(TemporaryDirectory(prefix=".scratch-", suffix=_UNFINISHED, dir=elsewhere))
                scratch = stack.enter_context(atomic_replace.scratch(Path(parent), folder))
            yield scratch

    def _has_changed(self, persona: Persona, last: Backup) -> bool:
        try:
            with backup_archive.opened(last.path, self._secret_of) as (manifest, _):
                known = manifest
        except (MemoryMCPError, OSError):
            return True  # unknown, for example after a change of the master key
        with persona.database.read() as connection:
            operation, changed_at = snapshots.contents(connection).last_operation, operations.latest_unrecorded(connection)
        if changed_at and changed_at > known.created_at:
            return True
        return (operation, _digest(persona.context.text())) != (known.contents.last_operation, known.context_sha256)

    def _secret_of(self, key_id: str) -> bytes | None:
        master = self._keys.master
        return master.secret if master and master.id == key_id else None


def newest_in_same_directory(path: Path) -> Backup | None:
    """The newest backup in the directory of this one, possibly itself; None if no file there has the name of a backup."""
    backups = [backup for file in path.absolute().parent.iterdir() if (backup := _backup(file))]
    return next(iter(_newest_first(backups, datetime.now(UTC))), None)


def _newest_first(backups: Iterable[Backup], now: datetime) -> list[Backup]:
    return sorted(backups, key=lambda backup: (backup.made_at <= now, backup.made_at, backup.path.name), reverse=True)


def _oldest_kept(past: Sequence[Backup], now: datetime, kept: timedelta) -> datetime:
    """From when on backups are kept. A clock that leaps ahead makes all of them old at once: those before a leap longer than `kept` stay until one
    from after it is that old."""
    for newer, older in pairwise(past):
        if now - newer.made_at >= kept:
            break
        if newer.made_at - older.made_at > kept:
            return older.made_at - kept
    return now - kept


def _verify(path: Path, secret: bytes | None, database: tuple[Path, bytes | None], progress: Progress) -> None:
    """Verify a backup completely, including its database.

    Raises:
        StoreDamaged: the backup doesn't match its checksums.
    """
    with backup_archive.opened(path, lambda _: secret) as (manifest, extract):
        extract(*database, progress)
    snapshots.verify(*database, manifest.contents)


def _gather(persona: Persona, now: datetime, copy: tuple[Path, bytes | None], progress: Progress) -> tuple[Manifest, dict[str, bytes]]:
    """Copy the database, encrypted or plain. Returns the manifest and the contents of the other files."""
    with persona.database.read() as connection:
        if migrations.pending(connection):
            raise StoreError("{} isn't migrated", "", "Start the server, which brings it up to date", persona.name)
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
    """The latest time at which a backup was due."""
    if settings.backup.interval_minutes is not None:
        return now - timedelta(minutes=settings.backup.interval_minutes, seconds=-1)  # names of backups have whole seconds
    local = now.astimezone(settings.zone)
    due = local.replace(hour=settings.backup.hour, minute=0, second=0, microsecond=0)
    return due if due <= local else due - timedelta(days=1)


def next_due(persona: Persona, now: datetime, settings: Settings) -> datetime:  # noqa: ARG001  as a chore is asked
    """When the next check for a backup, or for old backups, is due."""
    if settings.backup.interval_minutes is not None:
        return now + timedelta(minutes=settings.backup.interval_minutes)
    return _due(now, settings) + timedelta(days=1)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _backup(path: Path) -> Backup | None:
    match = _NAME.fullmatch(path.name)
    if match is None or not path.is_file():
        return None
    made_at = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return Backup(path, path.parent.name, made_at, path.stat().st_size, bool(match[2]))


def _remove_incomplete(target: Path) -> None:
    for entry in target.glob(f".*{_UNFINISHED}"):
        if entry.is_dir():
            atomic_replace.remove(entry)
        else:
            entry.unlink()


def _remove_empty(target: Path) -> None:
    """Remove a directory of backups if it is empty."""
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
def _locked(target: Path) -> Iterator[None]:
    """The lock for backups of one persona; remains of an interrupted backup are removed, and after a failed first one its directory."""
    if not target.parent.exists():
        target.parent.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
    is_first = not target.exists()
    target.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    try:
        with FileLock(target / _LOCK_NAME, timeout=0):
            _remove_incomplete(target)
            try:
                yield
            except BaseException:
                _remove_incomplete(target)  # to free space on a full disk
                raise
    except Timeout:
        raise Overloaded("a backup of {} is being made already", "", "Try again when it is done", target.name) from None
    except BaseException:
        if is_first:
            with suppress(OSError):  # the error that counts is the first one
                _remove_empty(target)
        raise
