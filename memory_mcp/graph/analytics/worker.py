"""The process beside the server in which analyses run: what it is asked comes in on its standard input, what it found goes out on its
standard output.

Both are pickles, of this program to itself, and hold numbers only. It opens no database, and ends when the server closes its input.
"""

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

# No analysis goes on for longer.
LIMIT_SECONDS = 60.0
# The server ends it then. A little later the process ends itself, where there is no server any more.
_GRACE_SECONDS = 5
# With less priority than the server: whoever recalls goes first. Much less, and under load an analysis would never end.
NICENESS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, or why nothing was: `failure` in a word or two, `trace` for the log."""

    found: Any = None
    failure: str | None = None
    trace: str = ""


def answer(asked: BinaryIO) -> bytes:
    """What the next analysis finds in its graph, as an `Answer`.

    Raises:
        EOFError: there is none any more.
    """
    try:
        analysis, network = pickle.load(asked)  # noqa: S301  the server wrote it
        _end_in(int(LIMIT_SECONDS) + _GRACE_SECONDS)
        return pickle.dumps(Answer(analysis(network)), pickle.HIGHEST_PROTOCOL)
    except EOFError:
        raise
    except BaseException as error:  # noqa: BLE001  a library in Rust that panics raises what is no `Exception`; the server has to hear of it
        said = "".join(traceback.format_exception_only(error)).strip()
        return pickle.dumps(Answer(failure=said, trace=traceback.format_exc()))


def _end_in(seconds: int) -> None:
    """Ends this process then, whatever it is doing, unless it is said again; 0 for never."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def main() -> None:
    """Answers until the server has gone."""
    # Of a terminal or of systemd they reach the server, too, which then closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(OSError):  # where a container forbids it, it goes on as it is
            os.nice(NICENESS)
    # Whatever a library prints must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        while True:
            answers.write(answer(sys.stdin.buffer))
            answers.flush()
            _end_in(0)
    except (EOFError, OSError):  # the server has gone
        return
