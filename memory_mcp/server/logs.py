"""The server's log on stderr: one line for each event, as text or as JSON, for the product and its libraries.

Imports next to nothing, because the log is set up before the server's libraries are loaded.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from logging.handlers import MemoryHandler
from typing import Any, Literal

from memory_mcp.errors import without_passwords
from memory_mcp.server import call_record

LogFormat = Literal["text", "json"]

PRODUCT = logging.getLogger("memory_mcp")
LIBRARIES = ("fastmcp", "uvicorn", "mcp")
HELD_LIMIT = 1_000
# The fields of a line besides its message: of a call that has ended, the status and the duration.
FACTS = ("status", "duration_ms")


class JsonLines(logging.Formatter):
    """Writes each event as one JSON object. It has what the line of text would have, and which call it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of an event."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_passwords(record.getMessage()),
        }
        if call := call_record.current():
            line |= {"request": call.number, "operation": call.operation}
        line |= {fact: getattr(record, fact) for fact in FACTS if hasattr(record, fact)}
        if record.exc_info:
            line["exception"] = without_passwords(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


class _TextLines(logging.Formatter):
    """Writes each event as text, with the facts of a call that has ended."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line, with a traceback if there is one."""
        return without_passwords(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The line without a traceback."""
        facts = [f"{fact}={getattr(record, fact)}" for fact in FACTS if hasattr(record, fact)]
        return f"{super().formatMessage(record)} ({', '.join(facts)})" if facts else super().formatMessage(record)


def hold() -> None:
    """Keep what is logged until `configure` sets how it is written: reading the settings may log warnings."""
    logging.root.handlers[:] = [MemoryHandler(capacity=HELD_LIMIT, flushLevel=logging.CRITICAL + 1)]


def configure(level: str, log_format: LogFormat = "text") -> None:
    """Send all logs to stderr in this format, the product's from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else _TextLines())
    held = [earlier for earlier in logging.root.handlers if isinstance(earlier, MemoryHandler)]
    logging.root.handlers[:] = [handler]
    for earlier in held:
        earlier.setTarget(handler)
        earlier.close()
    logging.root.setLevel(logging.WARNING)
    logging.captureWarnings(log_format == "json")  # a warning of Python itself would be a line that is no JSON
    PRODUCT.setLevel(level.upper())
    for name in LIBRARIES:
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(logging.ERROR)  # their warnings are about refused calls, which the caller learns anyway


def announce(message: str) -> None:
    """Write a line that scripts wait for, whatever the level: as it is, or as the message of a JSON object."""
    (handler,) = logging.root.handlers
    if isinstance(handler.formatter, JsonLines):
        handler.handle(logging.makeLogRecord({"name": PRODUCT.name, "levelno": logging.INFO, "levelname": "INFO", "msg": message}))
    else:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
