"""How long the work of a call may take: it asks between two steps, and SQLite asks within a statement.

The limit holds for the thread that has set it. What is done on behalf of many, such as a commit, has none. What can't be ended at all, such as
a model's work, runs on a thread of its own (`on_thread`).
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Thread
from typing import TypeVar

from memory_mcp.errors import SearchUnfinished

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Ends `seconds` after its start, at `ends_at` by `time.monotonic`, or earlier: once `is_given_up`, as by a caller who has gone."""

    seconds: float
    ends_at: float
    is_given_up: Callable[[], bool]

    @property
    def is_over(self) -> bool:
        return self.is_given_up() or time.monotonic() >= self.ends_at

    def passed(self) -> SearchUnfinished:
        """The error of what is not done yet."""
        if self.is_given_up():
            return SearchUnfinished("the search was ended", "its caller has closed the connection", "Ask again")
        return SearchUnfinished(
            "the search was not done within {} s",
            "the question or the memories are very long, or the server has much else to do",
            "Ask in fewer words, or try again when less is going on",
            f"{self.seconds:g}",
        )


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)


@contextmanager
def limited(seconds: float, is_given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """What the block does may take so many seconds.

    Raises:
        SearchUnfinished: it took longer, or was given up.
    """
    token = _current.set(TimeLimit(seconds, time.monotonic() + seconds, is_given_up))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> TimeLimit | None:
    """The limit of this thread's work, if it has one."""
    return _current.get()


def check() -> None:
    """Between two steps: whether there is time for the next one.

    Raises:
        SearchUnfinished: there is none.
    """
    limit = _current.get()
    if limit and limit.is_over:
        raise limit.passed()


def on_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Work on a thread of its own. It can't be stopped, but who waits for it may stop waiting."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # who waits may be cancelled, and others wait for it later

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  any error of a library, also a panic, goes to who waits
            result.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return result
