"""The long-lived objects that all requests share, made by the composition root."""

import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from memory_mcp.config.live import LiveConfig
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models
from memory_mcp.jobs.chore_worker import ChoreWorker
from memory_mcp.jobs.index_worker import IndexWorker
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.personas.registry import Personas
from memory_mcp.server.conversing import Conversing, Runs
from memory_mcp.server.import_jobs import ImportJobs
from memory_mcp.server.oauth.clients import fetch_public
from memory_mcp.store.vectors.index_cache import IndexCache

T = TypeVar("T")
_MAKING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Runtime:
    """One server's parts. `clock` answers with an aware datetime; without an `index` nothing is embedded and words alone are searched;
    without `chores` there is no upkeep in the background, and without `usage` nothing is counted. `forget_cached` drops what models
    have answered. `token_uses`: when each token was last used since the start, by its id. `instance` names this start of the server; with
    `secret`, only callers that send it are let in. `unnamed_calls` counts the calls, by entry point, that named no persona and were served
    as `default` although there are others. `yield_lock` stops it for another server.
    `conversing` runs the conversations of the chat room, if what they need is installed; `runs` are their turns.
    `fetch_document` reads an OAuth client's metadata from the web."""

    config: LiveConfig
    personas: Personas
    models_for: Callable[[Settings], Models]
    clock: Callable[[], datetime]
    started_at: datetime
    indexes: IndexCache | None = None
    index: IndexWorker | None = None
    chores: ChoreWorker | None = None
    forget_cached: Callable[[], None] = lambda: None
    usage: Usage | None = None
    _shared: dict[type, Any] = field(default_factory=dict)
    imports: ImportJobs = field(default_factory=ImportJobs)
    token_uses: dict[str, datetime] = field(default_factory=dict)
    unnamed_calls: Counter[str] = field(default_factory=Counter)
    instance: str = ""
    secret: str | None = None
    yield_lock: Callable[[], None] | None = None
    conversing: Conversing | None = None
    runs: Runs = field(default_factory=Runs)
    fetch_document: Callable[[str], Awaitable[bytes]] = fetch_public

    def shared(self, kind: type[T]) -> T:
        """The one object of a class, made with the first call that needs it; `close` closes it."""
        with _MAKING:
            if kind not in self._shared:
                self._shared[kind] = kind()
            made: T = self._shared[kind]
            return made

    def close(self) -> None:
        """Close what calls have shared."""
        for made in self._shared.values():
            made.close()

    def wake(self, persona: str) -> None:
        """Tell the background workers that a persona was written."""
        for worker in (self.index, self.chores):
            if worker:
                worker.wake(persona)
