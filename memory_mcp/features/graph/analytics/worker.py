"""The worker process of analyses: reads requests from its standard input and writes answers to its standard output.

They contain numbers only. The worker opens no database, and ends when the server closes its input.
"""

import pickle
import sys
import traceback
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory_mcp.errors import MemoryMCPError
from memory_mcp.worker_processes import answers_to_server, end_after

# The server kills an analysis after fewer seconds; without a server the worker ends itself.
ALONE_SECONDS = 30


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
        end_after(ALONE_SECONDS)
        return pickle.dumps(Answer(analysis(network)), pickle.HIGHEST_PROTOCOL)
    except EOFError:
        raise
    except MemoryMCPError as error:
        return pickle.dumps(Answer(refusal=error))
    except BaseException as error:  # noqa: BLE001  a panic in Rust raises no `Exception`; the server needs an answer
        failure = "".join(traceback.format_exception_only(error)).strip()
        return pickle.dumps(Answer(failure=failure, trace=traceback.format_exc()))


def main() -> None:
    """Answers until the server has gone."""
    answers = answers_to_server()
    try:
        while True:
            answers.write(answer(sys.stdin.buffer))
            answers.flush()
            end_after(0)
    except (EOFError, OSError):  # the server has gone
        return
