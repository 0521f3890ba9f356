"""Conversations that run in this process: what the server is handed to run them, and the turns that run."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memory_mcp.domain import TokenScope
from memory_mcp.server.operation import Json

if TYPE_CHECKING:
    from fastmcp.client.transports import StreamableHttpTransport

Transports = Mapping[str, Callable[[], "StreamableHttpTransport"]]


class RunningTurn(Protocol):
    """A turn of a conversation. Closing its events ends it."""

    def events(self, text: str, *, off_record: bool = False) -> AsyncGenerator[Json]:
        """The events of the turn; if all has ended well, the last is `said`."""

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answer the question whether a tool may run. Call it on the event loop."""


class Conversing(Protocol):
    """What runs conversations."""

    def model(self) -> str | None:
        """The model of conversations that name none."""

    def scope(self) -> TokenScope:
        """The scope that a token needs to talk, beside `read` and `write`."""

    def vendors(self) -> list[Json]:
        """The vendors of models: `name`, the `prefix` of its models' names, `models` that are known of it, and `why` it can't be asked."""

    def prepare(self, model: str) -> None:
        """Load what a model needs in the background, which takes seconds."""

    def turn(self, model: str, transports: Transports, messages: Mapping[str, Sequence[Json]], **options: Any) -> RunningTurn:
        """Prepare a turn."""


@dataclass(frozen=True, slots=True)
class _Run:
    turn: RunningTurn
    token: str | None
    task: asyncio.Task[None]


class Runs:
    """The turns that run, by ids that only who began them knows."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def begin(self, turn: RunningTurn, token: str | None, work: Callable[[str], Any]) -> asyncio.Task[None]:
        """Start the task of a turn, which gets its id."""
        identity = secrets.token_urlsafe(16)
        task: asyncio.Task[None] = asyncio.create_task(work(identity))
        self._runs[identity] = _Run(turn, token, task)
        task.add_done_callback(lambda _: self._runs.pop(identity))
        return task

    def end(self) -> None:
        """End all turns, because the server stops. Call it on the event loop."""
        for run in self._runs.values():
            run.task.cancel()

    def answer(self, identity: str, token: str | None, call_id: str, *, allowed: bool) -> bool:
        """Answer a question of a turn. Returns whether such a turn of this token runs. Call it on the event loop."""
        run = self._runs.get(identity)
        if run is None or run.token != token:
            return False
        run.turn.answer(call_id, allowed)
        return True
