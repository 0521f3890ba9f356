"""What is known of the request that is being answered, for the metrics and the log: which operation it asks for, and how that ended.

Imports next to nothing: the log's format is chosen before the server's libraries are loaded.
"""

import itertools
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["ok", "degraded", "refused", "busy", "failed"]

# The answers of a server that is overloaded, by all callers or by one.
BUSY = (429, 503)

_numbers = itertools.count(1)


@dataclass(slots=True)
class CallRecord:
    """A request in progress. `operation` is a tool, or a method and a known address; `status` what HTTP answers, or would answer where
    a tool was refused."""

    operation: str
    status: int = 0
    is_degraded: bool = False
    is_over: bool = False
    number: int = field(default_factory=lambda: next(_numbers))
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The time since the request arrived."""
        return time.monotonic() - self.began

    @property
    def outcome(self) -> Outcome:
        """How the request ended."""
        if self.status in BUSY:
            return "busy"
        if self.status >= 500 or not self.status:  # without an answer, the caller hung up or something failed
            return "failed"
        if self.status >= 400:
            return "refused"
        return "degraded" if self.is_degraded else "ok"


_current: ContextVar[CallRecord | None] = ContextVar("memory_mcp_call", default=None)


def begin(operation: str) -> CallRecord:
    """Start the record of a request. Everything that is done for it, on any thread, finds the same one."""
    record = CallRecord(operation)
    _current.set(record)
    return record


def current() -> CallRecord | None:
    """The record of the request that is being answered; None in the background."""
    return _current.get()
