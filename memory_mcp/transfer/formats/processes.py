"""Reads files in worker processes: the server waits for what they send, with a limit of time for each part."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter

from memory_mcp.errors import InvalidInput, Overloaded
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ImportItem, Report
from memory_mcp.transfer.formats.worker import LIMIT_SECONDS, MEMORY_LIMIT_BYTES, Answer, Asked, Counted, End, Failed, Part, Recognized
from memory_mcp.worker_processes import NotStarted, Pool, Worker

# After a larger file the process ends, and all of its memory is given back; the next small one need not wait for another.
KEPT_AFTER_BYTES = 1024 * 1024
_PROGRAM = "from memory_mcp.transfer.formats.worker import main; main({})"


class Reading:
    """The reading of one file."""

    def __init__(self, worker: Worker, asked: Asked, limit_seconds: float) -> None:
        self._worker, self._asked, self._limit_seconds = worker, asked, limit_seconds
        self.is_complete = self._is_stopped = self._is_over = False
        self._guard = threading.Lock()

    def answers(self) -> Iterator[Answer]:
        """What the process tells of the file, up to its end.

        Raises:
            MemoryMCPError: the file can't be read.
            RuntimeError: reading failed.
        """
        self._worker.send(self._asked)
        while not self.is_complete:
            answer: Answer | None = self._worker.receive(self._limit_seconds)
            if answer is None:
                raise self._broken()
            if isinstance(answer, Failed):
                self.is_complete = answer.refusal is not None
                raise answer.refusal or _failure(answer)
            self.is_complete = isinstance(answer, End)
            yield answer

    def stop(self) -> None:
        """Ends it at once, from another thread, unless it is over."""
        with self._guard:
            if not self._is_over:
                self._is_stopped = True
                self._worker.kill()

    def close(self) -> None:
        """From now on the process may read for somebody else."""
        with self._guard:
            self._is_over = True

    def _broken(self) -> InvalidInput:
        if self._is_stopped:
            return InvalidInput("the file was not read to its end", "the import was ended")
        if self._worker.was_killed:
            limit = f"a part of it takes more than {self._limit_seconds:g} s"
            return InvalidInput("the file can't be read", "{}", "Take out what is unusually long, or split it", limit)
        return InvalidInput("the file can't be read", "the process that read it has ended, as where memory runs out", "Split it")


class ReadingProcesses:
    """The processes of one server that read files. Thread-safe."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        """A process that sends nothing for `limit_seconds` while it is waited for is killed."""
        self._limit_seconds = limit_seconds
        self._pool = Pool(_PROGRAM.format(memory_limit_bytes))

    @contextmanager
    def reading(self, asked: Asked) -> Iterator[Reading]:
        """A process that reads a file.

        Raises:
            Overloaded: none can be started now.
        """
        try:
            worker = self._pool.take()
        except NotStarted as error:
            raise Overloaded("the file was not read", error.why, error.do) from error
        reading = Reading(worker, asked, self._limit_seconds)
        try:
            yield reading
        finally:
            reading.close()
            is_kept = reading.is_complete and asked.path.stat().st_size <= KEPT_AFTER_BYTES
            (self._pool.give_back if is_kept else self._pool.end)(worker)

    def close(self) -> None:
        """Ends all processes."""
        self._pool.close()


@contextmanager
def read_apart(asked: Asked, report: Report) -> Iterator[tuple[int, Iterator[tuple[Format, Iterator[ImportItem]]]]]:
    """How many lines a file has, and its items by their formats, read in a process of its own. `report` is called with sentences about defects.

    Raises:
        MemoryMCPError: the file can't be read.
        RuntimeError: reading failed.
    """
    processes = ReadingProcesses()
    try:
        with processes.reading(asked) as reading:
            answers = reading.answers()
            total = next((answer.lines for answer in answers if isinstance(answer, Counted)), 0)
            by_format = groupby(_items(answers, report), key=itemgetter(0))
            yield total, ((kind, (item for _, item in items)) for kind, items in by_format)
    finally:
        processes.close()


def _items(answers: Iterator[Answer], report: Report) -> Iterator[tuple[Format, ImportItem]]:
    """The items, each with its format; what is left out comes last."""
    format_ = Format.AUTO
    for answer in answers:
        match answer:
            case Recognized():
                format_ = answer.format
            case Part(lines=lines, refused=refused, notes=notes):
                yield from ((format_, ImportItem(where, json.loads(line))) for where, line in lines)
                yield from ((format_, ImportItem(where, refused=reason)) for where, reason in refused)
                for note in notes:
                    report(note)
            case End(left_out_kinds=kinds):
                yield from (
                    (format_, ImportItem(kind.places[min(number, len(kind.places) - 1)], left_out=kind.kind))
                    for kind in kinds
                    for number in range(kind.count)
                )


def _failure(failed: Failed) -> RuntimeError:
    failure = RuntimeError(failed.failure)
    failure.add_note(failed.trace)
    return failure
