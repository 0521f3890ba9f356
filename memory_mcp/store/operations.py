"""What was done to a persona's memories: a row beside the data, and a line in the log that all personas share.

The row is written in the transaction that did it, with the content before and after. The line is written after the commit
and never holds content.
"""

import json
import logging
import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

import apsw

from memory_mcp.store.timestamps import from_text, to_text

LOG_NAME = "memory_operations.log"
LOG_BYTES = 10 * 1024 * 1024
LOGS_KEPT = 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operation:
    """One change. `before`, `after`, `error` and `metadata` stay in the persona's own table: they may quote a memory."""

    operation: str
    key: str | None
    timestamp: datetime
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    success: bool = True
    error: str | None = None
    operation_id: str = field(default_factory=lambda: uuid.uuid4().hex)


def record(connection: apsw.Connection, operation: Operation) -> None:
    """Writes the row. Call it in the transaction of the change itself."""
    connection.execute(
        "INSERT INTO operations(timestamp, operation_id, operation, key, before, after, success, error, metadata) VALUES (?,?,?,?,?,?,?,?,?)",
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
        ),
    )


@dataclass(frozen=True, slots=True)
class Done:
    """Something that was done to a memory, without what it said then."""

    operation: str
    timestamp: datetime
    metadata: Mapping[str, Any]


def of_key(connection: apsw.Connection, key: str) -> list[Done]:
    """What was done to the memory of this key, in order."""
    found = connection.execute("SELECT operation, timestamp, metadata FROM operations WHERE key = ? AND success ORDER BY id", (key,))
    return [Done(operation, from_text(timestamp), json.loads(metadata) if metadata else {}) for operation, timestamp, metadata in found]


def former_names(connection: apsw.Connection) -> set[str]:
    """What this persona was called before it was renamed."""
    found = connection.execute("SELECT metadata ->> '$.from' FROM operations WHERE operation = 'rename_persona' AND json_valid(metadata)")
    return {row[0] for row in found}


class _TolerantHandler(RotatingFileHandler):
    """A log that can't be written never fails the operation, which has happened: it is said once instead."""

    _complained = False

    def _open(self) -> TextIOWrapper:
        """Readable by its owner alone: it names personas."""
        return cast(
            TextIOWrapper,
            open(self.baseFilename, self.mode, encoding=self.encoding, opener=lambda path, flags: os.open(path, flags, 0o600)),
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002  the name is logging's
        if not self._complained:
            logger.error("%s can't be written (%s); operations go on without it", LOG_NAME, sys.exception())
        self._complained = True


class OperationsLog:
    """`memory_operations.log`: JSON lines, append-only, rotated, one for all personas."""

    def __init__(self, directory: Path) -> None:
        self._handler = _TolerantHandler(directory / LOG_NAME, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8", delay=True)

    def append(self, persona: str, operation: Operation) -> None:
        """Adds a line: what was done, to which key, in which persona; never what the memory says."""
        line = {
            "timestamp": to_text(operation.timestamp),
            "persona": persona,
            "operation_id": operation.operation_id,
            "operation": operation.operation,
            "key": operation.key,
            "success": operation.success,
        }
        self._write(line)

    def append_refusal(self, timestamp: datetime, facts: Mapping[str, Any]) -> None:
        """Adds a line for a call that was refused at the door; `facts` say who called, for what, and why not."""
        line = {"timestamp": to_text(timestamp), "operation_id": uuid.uuid4().hex, "operation": "refused", "success": False, **facts}
        self._write(line)

    def _write(self, line: Mapping[str, Any]) -> None:
        self._handler.handle(logging.makeLogRecord({"msg": json.dumps(line, ensure_ascii=False)}))

    def close(self) -> None:
        self._handler.close()


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
