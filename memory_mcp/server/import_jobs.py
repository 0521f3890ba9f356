"""Imports of files that a browser or a program has sent, in the background: whose turn is next, and their progress until they end or are
canceled.
"""

import itertools
import logging
import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from memory_mcp import process
from memory_mcp.errors import InvalidInput, MemoryMCPError, Overloaded
from memory_mcp.personas.recovery import IMPORTS_NAME
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY
from memory_mcp.transfer.formats import ZIP_SUFFIX
from memory_mcp.transfer.formats.import_rows import KindCount
from memory_mcp.transfer.jsonlines import ImportResult

if TYPE_CHECKING:  # the readers take 3 MB, and are imported for the first file
    from memory_mcp.transfer.formats.processes import ReadingProcesses
    from memory_mcp.transfer.formats.worker import Answer, Asked

JOBS_KEPT, JOBS_KEPT_IN_ALL = 30, 1_000
WAITING_LIMIT = 10
REFUSED_LISTED = 500
NAME_LIMIT = 120

State = Literal["waiting", "reading", "storing", "done", "failed", "canceled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "canceled"})

logger = logging.getLogger(__name__)

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


class Canceled(Exception):
    """The import was canceled."""


@dataclass(slots=True, eq=False)
class ImportJob:
    """One import, of the persona's owner or of a token. `format` is that of its first files, `of_formats` has the counts of each; `total` is the number of entries, once they are counted; `refused` names the
    first places and reasons, `unreadable` counts entries that no line could be made of; `error` is why it failed.
    """

    id: str
    persona: str
    file: str
    dry_run: bool
    token: str | None = None
    state: State = "waiting"
    format: str = ""
    of_formats: dict[str, dict[str, int]] = field(default_factory=dict)
    done: int = 0
    total: int | None = None
    result: ImportResult = field(default_factory=ImportResult)
    refused: list[tuple[str, str]] = field(default_factory=list)
    unreadable: int = 0
    left_out: str = ""
    left_out_kinds: tuple[KindCount, ...] = ()
    notes: list[str] = field(default_factory=list)
    error: MemoryMCPError | None = None
    is_canceled: bool = False
    end_reading: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    @property
    def caller(self) -> str:
        """Whose import it is."""
        return caller_of(self.persona, self.token)

    @property
    def callers(self) -> tuple[str, str]:
        """The same, and for which of its personas."""
        return self.caller, f"{self.token or ''} {self.persona}"

    def cancel(self) -> None:
        """End it after the batch that is being stored."""
        self.is_canceled = True
        if end_reading := self.end_reading:
            end_reading()

    def check(self) -> None:
        """Raises Canceled once it is to end."""
        if self.is_canceled:
            raise Canceled


Work = Callable[[ImportJob, Path], None]


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """What imports may take: how many wait, of one caller and of all; how many run and how many of those store at once; how many bytes
    lie in the data directory meanwhile. A caller with no more than `small_bytes` there is not refused for what the others have there.
    Files of no more than `quick_bytes` have `quick_at_once` places of their own besides the others', where no large one keeps them
    waiting.
    """

    waiting: int = WAITING_LIMIT
    waiting_in_all: int = 200
    at_once: int = 4
    quick_at_once: int = 2
    storing_at_once: int = 2
    bytes_of_caller: int = 4 * 1024**3
    bytes_in_all: int = 16 * 1024**3
    small_bytes: int = 64 * 1024**2
    quick_bytes: int = 1024**2


class ImportJobs:
    """The imports of a server, and the files that they read. What was stored before one ends stays; the file is removed.

    A caller is a token; without one, a persona. One import of each runs at a time. The next one is of the caller, and of that one's
    persona, whose turn was longest ago: however many one sends, others' don't wait for them.
    """

    def __init__(self, limits: ImportLimits = ImportLimits(), readers: "ReadingProcesses | None" = None) -> None:
        self._limits = limits
        self._jobs: OrderedDict[str, ImportJob] = OrderedDict()
        self._waiting: list[tuple[ImportJob, Path, Work]] = []
        self._running: dict[str, threading.Thread] = {}
        self._quick: set[str] = set()  # those of the running that have a place for small files
        self._staged: dict[str, tuple[str, int]] = {}
        self._turns, self._last_turn = itertools.count(1), dict[str, int]()
        self._lock = threading.Lock()
        self._is_closed = False
        self.storing = InTurn(limits.storing_at_once)
        self._readers = readers

    @contextmanager
    def staged(self, data_directory: Path, name: str, persona: str = "", token: str | None = None) -> Iterator[Path]:
        """A path for a file of this name. What is there at the end stays only if `start` has taken it.

        The name matters: formats are known by it, and notes by that of their vault.

        Raises:
            Overloaded: too many of this caller's imports wait.
        """
        identity, caller = secrets.token_hex(8), caller_of(persona, token)
        with self._lock:
            self._check_place(caller, arriving=sum(owner == caller for owner, _ in self._staged.values()))
            self._staged[identity] = (caller, 0)
        own = data_directory / IMPORTS_NAME / identity
        own.parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)  # `parents` would make it readable for all
        own.mkdir(mode=PRIVATE_DIRECTORY)
        try:
            yield own / safe_name(name)
        finally:
            job = self._jobs.get(identity)
            if job is None or job.is_over:
                self._remove(own)

    def add_bytes(self, path: Path, count: int) -> None:
        """Called before so many bytes are written to a staged file.

        Raises:
            Overloaded: they don't fit.
        """
        with self._lock:
            caller, size = self._staged[path.parent.name]
            own = count + sum(bytes_ for owner, bytes_ in self._staged.values() if owner == caller)
            in_all = count + sum(bytes_ for _, bytes_ in self._staged.values())
            limit = self._limits.bytes_of_caller
            if own > limit or (in_all > self._limits.bytes_in_all and own > self._limits.small_bytes):
                raise Overloaded(
                    "the files that wait to be imported take too much room",
                    "{} bytes of one caller are the limit, {} of all",
                    "Try again when an import has ended",
                    f"{limit:,}",
                    f"{self._limits.bytes_in_all:,}",
                )
            self._staged[path.parent.name] = caller, size + count

    def start(self, path: Path, persona: str, work: Work, *, dry_run: bool, token: str | None = None) -> ImportJob:
        """Have a staged file imported when its turn comes.

        Raises:
            Overloaded: too many wait.
        """
        job = ImportJob(path.parent.name, persona, path.name, dry_run, token)
        with self._lock:
            self._check_place(job.caller)
            self._waiting.append((job, path, work))
            self._jobs[job.id] = job
            self._forget_old(job.caller)
            self._start_next()
        return job

    def of_persona(self, persona: str) -> list[ImportJob]:
        """The imports into a persona, the latest first."""
        with self._lock:
            return [job for job in reversed(self._jobs.values()) if job.persona == persona]

    @contextmanager
    def reading(self, job: ImportJob, asked: "Asked") -> "Iterator[Iterator[Answer]]":
        """What a process tells of the file of an import. It is ended with the import.

        Raises:
            Canceled: it was ended before.
        """
        from memory_mcp.transfer.formats.processes import ReadingProcesses  # noqa: PLC0415  see the top

        with self._lock:
            self._readers = readers = self._readers or ReadingProcesses()
        with readers.reading(asked) as reading:
            job.end_reading = reading.stop
            job.check()
            yield reading.answers()

    def close(self) -> None:
        """Cancel what runs and waits, and wait for the end of the batches that are being stored."""
        with self._lock:
            self._is_closed = True
            for job in self._jobs.values():
                job.cancel()
            threads = list(self._running.values())
        for thread in threads:
            thread.join()
        for _, path, _ in self._waiting:
            self._remove(path.parent)
        if self._readers:
            self._readers.close()

    def _forget_old(self, caller: str) -> None:
        """Forgets the oldest imports that are over: of one caller, and of all."""
        over = [job for job in self._jobs.values() if job.is_over]
        own = [job for job in over if job.caller == caller]
        for job in {*own[: max(0, len(own) - JOBS_KEPT)], *over[: max(0, len(over) - JOBS_KEPT_IN_ALL)]}:
            del self._jobs[job.id]

    def _check_place(self, caller: str, arriving: int = 0) -> None:
        """`arriving` are the caller's files that arrive, wait and are read: twice as many as may wait, so that none of them keeps the
        others waiting.
        """
        waiting = [job.caller for job, _, _ in self._waiting]
        limit = self._limits.waiting if len(waiting) < self._limits.waiting_in_all else 0
        if waiting.count(caller) >= limit or arriving > 2 * self._limits.waiting:
            raise Overloaded("too many imports are waiting", "{} are the limit", "Try again when one has ended", self._limits.waiting)

    def _start_next(self) -> None:
        """Starts what may run now. The lock is held."""
        while not self._is_closed:
            is_full = len(self._running) - len(self._quick) >= self._limits.at_once
            free = [waiting for waiting in self._waiting if waiting[0].caller not in self._running]
            if is_full:
                free = [waiting for waiting in free if self._is_quick(waiting[1])] if len(self._quick) < self._limits.quick_at_once else []
            if not free:
                return
            following = min(free, key=lambda waiting: [self._last_turn.get(name, 0) for name in waiting[0].callers])
            self._waiting.remove(following)
            job = following[0]
            if is_full:
                self._quick.add(job.caller)
            self._last_turn.update(dict.fromkeys(job.callers, next(self._turns)))
            thread = threading.Thread(target=self._run, args=following, name=f"import {job.id}", daemon=True)
            self._running[job.caller] = thread
            thread.start()

    def _is_quick(self, path: Path) -> bool:
        """A zip is none: it may hold much more than its size."""
        return path.suffix.lower() != ZIP_SUFFIX and self._staged[path.parent.name][1] <= self._limits.quick_bytes

    def _run(self, job: ImportJob, path: Path, work: Work) -> None:
        state, error = _outcome(job, path, work)
        self._remove(path.parent)
        process.return_freed()
        with self._lock:
            job.end_reading = None
            job.error, job.state = error, state  # after the file: when an import is over, nothing of it is left
            del self._running[job.caller]
            self._quick.discard(job.caller)
            self._start_next()

    def _remove(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        with self._lock:
            self._staged.pop(directory.name, None)


class InTurn:
    """So many at once; the others wait in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._at_once, self._changed = at_once, threading.Condition()
        self._present: list[object] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        place = object()
        with self._changed:
            self._present.append(place)
            self._changed.wait_for(lambda: place in self._present[: self._at_once])
        try:
            yield
        finally:
            with self._changed:
                self._present.remove(place)
                self._changed.notify_all()


def caller_of(persona: str, token: str | None) -> str:
    """Whose import it is: the token's, or without one the persona's. A blank begins no id of a token."""
    return token or f" {persona}"


def _outcome(job: ImportJob, path: Path, work: Work) -> tuple[State, MemoryMCPError | None]:
    try:
        if not job.is_canceled:
            work(job, path)
    except Canceled:
        return "canceled", None
    except MemoryMCPError as error:
        return ("canceled", None) if job.is_canceled else ("failed", error)
    except Exception:
        logger.exception("an import failed in a way that was not foreseen")
        return "failed", InvalidInput("the file could not be read", "the server's log says why", "Check its format")
    return ("canceled" if job.is_canceled and not job.done else "done"), None


def safe_name(name: str) -> str:
    """The last part of a file's name, without what no file may be called."""
    last = _UNSAFE.sub("", PurePosixPath(name.replace("\\", "/")).name).strip().lstrip(".")
    stem, dot, suffix = last.rpartition(".")
    while len(last.encode()) > NAME_LIMIT:
        stem = stem[:-1]
        last = f"{stem}{dot}{suffix[:20]}" if stem else suffix[:20]
    return last or "upload"
