"""The worker process of analyses: reads requests from its standard input and writes answers to its standard output.

Both are pickles that only this program writes and reads, and contain numbers only. The worker opens no database, and ends when the server closes
its input.
"""

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory_mcp.errors import MemoryMCPError

# No analysis goes on for longer.
LIMIT_SECONDS = 60.0
# The server kills the worker then. Without a server it ends itself a little later.
_GRACE_SECONDS = 5
# Less priority than the server, so that recalls go first. With much less an analysis would never end under load.
NICENESS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The result; or an error that the analysis raised on purpose; or a `failure` in a few words with its `trace` for the log."""

    result: Any = None
    refusal: MemoryMCPError | None = None
    failure: str | None = None
    trace: str = ""


def answer(requests: BinaryIO) -> bytes:
    """Runs the next analysis and returns its pickled `Answer`.

    Raises:
        EOFError: the server has closed the input.
    """
    try:
        analysis, network = pickle.load(requests)  # noqa: S301  the server wrote it
        _end_in(int(LIMIT_SECONDS) + _GRACE_SECONDS)
        return pickle.dumps(Answer(analysis(network)), pickle.HIGHEST_PROTOCOL)
    except EOFError:
        raise
    except MemoryMCPError as error:
        return pickle.dumps(Answer(refusal=error))
    except BaseException as error:  # noqa: BLE001  a panic in Rust raises no `Exception`; the server needs an answer
        failure = "".join(traceback.format_exception_only(error)).strip()
        return pickle.dumps(Answer(failure=failure, trace=traceback.format_exc()))


def _end_in(seconds: int) -> None:
    """Ends this process after so many seconds unless it is called again; 0 cancels."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def main() -> None:
    """Answers until the server has gone."""
    # A terminal or systemd sends them to the server too, which then closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(OSError):  # a container may forbid it
            os.nice(NICENESS)
    # Output that a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        while True:
            answers.write(answer(sys.stdin.buffer))
            answers.flush()
            _end_in(0)
    except (EOFError, OSError):  # the server has gone
        return
