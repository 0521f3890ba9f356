"""Imports of files that a browser or a program has sent, in the background: one after another, with their progress, until they end or are canceled."""

import logging
import queue
import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from memory_mcp.errors import InvalidInput, MemoryMCPError, Overloaded
from memory_mcp.personas.recovery import IMPORTS_NAME
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY
from memory_mcp.transfer.jsonlines import ImportResult

JOBS_KEPT, WAITING_LIMIT = 30, 10
REFUSED_LISTED = 500
NAME_LIMIT = 120

State = Literal["waiting", "reading", "storing", "done", "failed", "canceled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "canceled"})

logger = logging.getLogger(__name__)

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


@dataclass(slots=True)
class ImportJob:
    """One import. `total` is the number of entries, once they are counted; `refused` names the first places and reasons, `unreadable` counts
    entries that no line could be made of; `error` is why it failed."""

    id: str
    persona: str
    file: str
    dry_run: bool
    state: State = "waiting"
    format: str = ""
    done: int = 0
    total: int | None = None
    result: ImportResult = field(default_factory=ImportResult)
    refused: list[tuple[str, str]] = field(default_factory=list)
    unreadable: int = 0
    left_out: str = ""
    notes: list[str] = field(default_factory=list)
    error: MemoryMCPError | None = None
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def is_over(self) -> bool:
        return self.state in ENDED


Work = Callable[[ImportJob, Path], None]


class Canceled(Exception):
    """The import was canceled."""


class ImportJobs:
    """The imports of a server, and the files that they read. What was stored before one ends stays; the file is removed."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, ImportJob] = OrderedDict()
        self._waiting: queue.Queue[tuple[ImportJob, Path, Work] | None] = queue.Queue(maxsize=WAITING_LIMIT)
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    @contextmanager
    def staged(self, data_directory: Path, name: str) -> Iterator[Path]:
        """A path for a file of this name. What is there at the end stays only if `start` has taken it.

        The name matters: formats are known by it, and notes by that of their vault.
        """
        identity = secrets.token_hex(8)
        own = data_directory / IMPORTS_NAME / identity
        own.parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)  # `parents` would make it readable for all
        own.mkdir(mode=PRIVATE_DIRECTORY)
        try:
            yield own / safe_name(name)
        finally:
            job = self._jobs.get(identity)
            if job is None or job.is_over:
                shutil.rmtree(own, ignore_errors=True)

    def start(self, path: Path, persona: str, work: Work, *, dry_run: bool) -> ImportJob:
        """Have a staged file imported after those that wait already.

        Raises:
            Overloaded: too many wait.
        """
        job = ImportJob(path.parent.name, persona, path.name, dry_run)
        with self._lock:
            try:
                self._waiting.put_nowait((job, path, work))
            except queue.Full:
                raise Overloaded("too many imports are waiting", f"{WAITING_LIMIT} are the limit", "Try again when one has ended") from None
            self._jobs[job.id] = job
            for old in [kept.id for kept in self._jobs.values() if kept.is_over][: max(0, len(self._jobs) - JOBS_KEPT)]:
                del self._jobs[old]
            if self._worker is None:
                self._worker = threading.Thread(target=self._run, name="imports", daemon=True)
                self._worker.start()
        return job

    def of_persona(self, persona: str) -> list[ImportJob]:
        """The imports into a persona, the latest first."""
        with self._lock:
            return [job for job in reversed(self._jobs.values()) if job.persona == persona]

    def close(self) -> None:
        """Cancel what runs and waits, and wait for the end of the batch that is being stored."""
        with self._lock:
            for job in self._jobs.values():
                job.cancel.set()
            worker = self._worker
        if worker:
            self._waiting.put(None)
            worker.join()

    def _run(self) -> None:
        while following := self._waiting.get():
            job, path, work = following
            state, error = _outcome(job, path, work)
            shutil.rmtree(path.parent, ignore_errors=True)
            job.error, job.state = error, state  # last: when an import is over, nothing of its file is left


def _outcome(job: ImportJob, path: Path, work: Work) -> tuple[State, MemoryMCPError | None]:
    try:
        if not job.cancel.is_set():
            work(job, path)
    except Canceled:
        return "canceled", None
    except MemoryMCPError as error:
        return "failed", error
    except Exception:
        logger.exception("an import failed in a way that was not foreseen")
        return "failed", InvalidInput("the file could not be read", "the server's log says why", "Check its format")
    return ("canceled" if job.cancel.is_set() and not job.done else "done"), None


def safe_name(name: str) -> str:
    """The last part of a file's name, without what no file may be called."""
    last = _UNSAFE.sub("", PurePosixPath(name.replace("\\", "/")).name).strip().lstrip(".")
    stem, dot, suffix = last.rpartition(".")
    while len(last.encode()) > NAME_LIMIT:
        stem = stem[:-1]
        last = f"{stem}{dot}{suffix[:20]}" if stem else suffix[:20]
    return last or "upload"
