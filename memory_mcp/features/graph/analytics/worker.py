"""The worker process of analyses. Requests and answers contain numbers only; it opens no database."""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from memory_mcp.errors import MemoryMCPError
from memory_mcp.store.graph.network import Network
from memory_mcp.worker_processes import answer_server

# The server kills an analysis after fewer seconds; without a server the worker ends itself.
ALONE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """The result; or an error that the analysis raised on purpose; or a `failure` in a few words with its `trace` for the log."""

    result: Any = None
    refusal: MemoryMCPError | None = None
    failure: str | None = None
    trace: str = ""


def answers(request: tuple[Callable[[Network], Any], Network]) -> Iterator[Answer]:
    """The answer to a request: an analysis, and the network that it is of."""
    analysis, network = request
    try:
        answer = Answer(analysis(network))
    except MemoryMCPError as error:
        answer = Answer(refusal=error)
    except BaseException as error:  # noqa: BLE001  a panic in Rust raises no `Exception`; the server needs an answer
        answer = Answer(failure="".join(traceback.format_exception_only(error)).strip(), trace=traceback.format_exc())
    yield answer


def main() -> None:
    """Answers until the server has gone."""
    answer_server(answers, ALONE_SECONDS)
