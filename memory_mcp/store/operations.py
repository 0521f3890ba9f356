"""The record of operations on memories: a table in each persona's database, and a log shared by all personas.

A row is written in the transaction of the change, with the content before and after. A log line is written after the commit and
never contains content. A change that failed has a row and a line with the kind of the error.
"""

import gzip
import json
import logging
import os
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal, cast

import apsw

from memory_mcp.store import properties
from memory_mcp.store.files.durable_files import open_private
from memory_mcp.store.timestamps import from_text, to_text

LOG_NAME = "memory_operations.log"
_NAME = "name"  # among the properties
_UNRECORDED = {"conversations": "updated_at", "feedback": "at"}  # table → its column of times
LOG_BYTES = 10 * 1024 * 1024
LOGS_KEPT = 5
# Of the log so much is read to find the last events.
EVENTS_READ_BYTES = 1024 * 1024

# The operation on a memory that was stored again.
CONFIRM = "confirm"

# What becomes of a full log: files beyond LOGS_KEPT are dropped, each is compressed and kept, or it is never full.
Rotation = Literal["drop", "archive", "off"]

# What concerns the whole server, and no persona.
SERVER_EVENTS = ("refused", "create_token", "revoke_token", "configure", "grant", "revoke_grant")
# Lines without a row: files that were moved, and events of the server.
_LOGGED_ONLY = ("adopt", *SERVER_EVENTS)

# Through which entry point the current operation was called, and the id of its token: "mcp 94b80eb5b2". Empty: the server itself does it.
_caller: ContextVar[str] = ContextVar("caller", default="")

logger = logging.getLogger(__name__)
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@contextmanager
def called_by(caller: str) -> Iterator[None]:
    """Until the end of the block, operations recorded on this thread, or by its writes, name this caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


@dataclass(frozen=True, slots=True)
class Operation:
    """One change, or with `error`, the kind of an error, one that failed. `before`, `after`, and `metadata` are stored only in the
    persona's table, because they may quote a memory.
    """

    operation: str
    key: str | None
    timestamp: datetime
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    operation_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def success(self) -> bool:
        return self.error is None


def record(connection: apsw.Connection, *done: Operation) -> None:
    """Insert a row for each. Call it in the transaction of the change."""
    connection.executemany(
        "INSERT INTO operations(timestamp, operation_id, operation, key, before, after, success, error, metadata, caller) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        [
            (
                to_text(operation.timestamp),
                operation.operation_id,
                operation.operation,
                operation.key,
                _json(operation.before),
                _json(operation.after),
                int(operation.success),
                operation.error,
                _json(operation.metadata or None),
                _caller.get() or None,
            )
            for operation in done
        ],
    )


@dataclass(frozen=True, slots=True)
class Done:
    """An operation, without the content. `caller` is the entry point and the id of the token, if one called."""

    operation: str
    timestamp: datetime
    metadata: Mapping[str, Any]
    key: str | None = None
    caller: str = ""
    error: str | None = None
    id: int = 0


def of_key(connection: apsw.Connection, key: str) -> list[Done]:
    """The successful operations on the memory of this key, in order."""
    rows = connection.execute("SELECT operation, timestamp, metadata FROM operations WHERE key = ? AND success ORDER BY id", (key,))
    return [Done(operation, from_text(timestamp), json.loads(metadata) if metadata else {}) for operation, timestamp, metadata in rows]


def latest(connection: apsw.Connection, limit: int, before: int | None = None, operation: str | None = None) -> list[Done]:
    """The latest operations, also those that failed; those before an id if one is given, and of one kind if it is named."""
    conditions = {"id < ?": before, "operation = ?": operation}
    given = {condition: value for condition, value in conditions.items() if value is not None}
    rows = connection.execute(
        f"SELECT operation, timestamp, metadata, key, caller, error, id FROM operations WHERE {' AND '.join(['TRUE', *given])} "
        "ORDER BY id DESC LIMIT ?",
        (*given.values(), limit),
    )
    return [
        Done(kind, from_text(timestamp), json.loads(metadata) if metadata else {}, key, caller or "", error, number)
        for kind, timestamp, metadata, key, caller, error, number in rows
    ]


def kinds(connection: apsw.Connection) -> list[str]:
    """The kinds of operations that were recorded."""
    return [row[0] for row in connection.execute("SELECT DISTINCT operation FROM operations ORDER BY operation")]


def former_names(connection: apsw.Connection) -> set[str]:
    """The earlier names of this persona."""
    rows = connection.execute("SELECT metadata ->> '$.from' FROM operations WHERE operation = 'rename_persona' AND json_valid(metadata)")
    return {row[0] for row in rows}


def note_name(connection: apsw.Connection, name: str) -> None:
    """Store the persona's name in the database, for copies of the file alone. A database that has it isn't written to."""
    if stated_name(connection) != name:
        properties.put(connection, _NAME, name)


def stated_name(connection: apsw.Connection) -> str | None:
    """The name of the persona that the database belonged to when it was last opened, None if it has none."""
    return properties.value(connection, _NAME)


def latest_time(connection: apsw.Connection) -> datetime | None:
    """When the last change was."""
    return _latest(connection, {"operations": "timestamp", **_UNRECORDED})


def latest_unrecorded(connection: apsw.Connection) -> datetime | None:
    """When the last change was that is no operation: a turn of a conversation, or a verdict on a memory."""
    return _latest(connection, _UNRECORDED)


def _latest(connection: apsw.Connection, columns: Mapping[str, str]) -> datetime | None:
    there = {table: column for table, column in columns.items() if connection.table_exists(None, table)}
    times = [connection.execute(f"SELECT max({column}) FROM {table}").get for table, column in there.items()]
    return max((from_text(text) for text in times if text), default=None)


def is_recorded(connection: apsw.Connection, operation_id: str) -> bool:
    """Whether the operation has a row."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM operations WHERE operation_id = ?)", (operation_id,)).get)


def latest_logged(directory: Path) -> dict[str, str]:
    """The id of the last operation of each persona in the log, of those that a row of its database records, too. Empty if there is no
    log.
    """
    latest: dict[str, str] = {}
    for path in (directory / f"{LOG_NAME}.1", directory / LOG_NAME):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                _follow(latest, line)
    return latest


def latest_events(directory: Path, limit: int) -> list[dict[str, Any]]:
    """The last events of the server in the end of its log, the latest first."""
    events: list[dict[str, Any]] = []
    for path in (directory / LOG_NAME, directory / f"{LOG_NAME}.1"):
        with suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - EVENTS_READ_BYTES))
            for line in reversed(file.read().splitlines()):
                with suppress(ValueError, KeyError, TypeError):  # a line that the cut or a crash has shortened, or of another program
                    event = json.loads(line)
                    events += [event] if event["operation"] in SERVER_EVENTS else []
        if len(events) >= limit:
            break
    return events[:limit]


def _follow(latest: dict[str, str], line: str) -> None:
    with suppress(ValueError, KeyError, TypeError):  # a line that a crash cut off, or of another program
        logged = json.loads(line)
        persona, operation = logged["persona"], logged["operation"]
        if operation == "erase_persona":
            latest.pop(persona, None)
        elif operation not in _LOGGED_ONLY:
            latest[persona] = logged["operation_id"]


class _TolerantHandler(RotatingFileHandler):
    """Reports a failure to write the log once, instead of failing the operation, which is already committed."""

    _failure_logged = False

    def __init__(self, path: Path, rotation: Rotation) -> None:
        self._rotation = rotation
        size = 0 if rotation == "off" else LOG_BYTES
        super().__init__(path, maxBytes=size, backupCount=LOGS_KEPT, encoding="utf-8", delay=True)

    def doRollover(self) -> None:  # noqa: N802  the name is logging's
        if self._rotation != "archive":
            super().doRollover()
            return
        if self.stream:
            self.stream.close()
            self.stream = None  # the next line opens it again
        _archive(Path(self.baseFilename))

    def _open(self) -> TextIOWrapper:
        """Open the log readable by its owner alone, because it names personas."""
        return cast(TextIOWrapper, open(self.baseFilename, self.mode, encoding=self.encoding, opener=open_private))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002  the name is logging's
        if not self._failure_logged:
            logger.error("%s can't be written (%s); operations continue without it", LOG_NAME, sys.exception())
        self._failure_logged = True


class OperationsLog:
    """`memory_operations.log`: JSON lines, append-only, rotated, one for all personas."""

    def __init__(self, directory: Path, rotation: Rotation = "drop") -> None:
        self._handler = _TolerantHandler(directory / LOG_NAME, rotation)

    def append(self, persona: str, *done: Operation) -> None:
        """Append a line for each: the operation, key, and persona, but no content."""
        lines = [
            {
                "timestamp": to_text(operation.timestamp),
                "persona": persona,
                "operation_id": operation.operation_id,
                "operation": operation.operation,
                "key": operation.key,
                "success": operation.success,
                **({"error": operation.error} if operation.error else {}),
            }
            for operation in done
        ]
        if lines:
            self._write(*lines)

    def append_event(self, event: str, timestamp: datetime, facts: Mapping[str, Any]) -> None:
        """Append a line for one of `SERVER_EVENTS`; `facts` say who did what."""
        head = {"timestamp": to_text(timestamp), "operation_id": uuid.uuid4().hex, "operation": event, "success": event != "refused"}
        self._write({**head, **facts})

    def _write(self, *lines: Mapping[str, Any]) -> None:
        self._handler.handle(logging.makeLogRecord({"msg": "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)}))

    def close(self) -> None:
        self._handler.close()


def _archive(path: Path) -> None:
    """Compress a full log under a name of its own. After a crash in between, its lines are there twice, with the same operation ids."""
    archived = datetime.now(UTC)
    target = path.with_name(f"{path.stem}.{archived:%Y%m%dT%H%M%S.%fZ}.log.gz")
    unfinished = target.with_name(f"{target.name}.part")
    with path.open("rb") as full, open(unfinished, "wb", opener=open_private) as file:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb") as packed:
            shutil.copyfileobj(full, packed)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(target)
    path.unlink()


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else _ENCODER.encode(value)
