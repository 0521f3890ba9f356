"""The call that a request makes: its settings, its moment, its persona, its language.

Only this module turns a request into a persona's open handle; `addressing` decides which persona that is.
"""

import logging
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import apsw
from fastmcp.server.dependencies import get_http_request
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from memory_mcp.config.settings import Settings
from memory_mcp.dates.format import Language, language_of
from memory_mcp.domain import Showing
from memory_mcp.encoders.models import Models
from memory_mcp.errors import ClockUnusable, MemoryMCPError, NotAllowed, Overloaded, PersonaUnknown, StoreError
from memory_mcp.personas.names import NAME_LIMIT, pool_store
from memory_mcp.personas.registry import Persona
from memory_mcp.search.rerank import rerank_deadline
from memory_mcp.search.stores import NO_POOLS, Pools
from memory_mcp.server.addressing import DEFAULT_PERSONA, HEADER, PATH_PERSONA, POOL_HEADER, named, pool_in, resolve
from memory_mcp.server.auth import ADMISSION, Admission
from memory_mcp.server.caller_presence import CALLER, Caller
from memory_mcp.server.feature import pools
from memory_mcp.server.runtime import Runtime
from memory_mcp.server.sessions import is_dashboard
from memory_mcp.store import memories, operations
from memory_mcp.store.feedback import with_own_weights
from memory_mcp.store.operations import Operation, called_by
from memory_mcp.time_limit import limited
from memory_mcp.upkeep import retention_rules
from memory_mcp.wording import sentence

# What the edge leaves in the ASGI scope: the moment at which the request came in, by `time.monotonic`, …
ARRIVED = "memory_mcp.arrived"
TURN = "memory_mcp.turn"  # … and what a call that streams its body waits for before each part of its work
# What a search takes in the largest stores is below a second: whatever takes so long would take minutes.
SEARCH_SECONDS = 10.0
FIRST_YEAR, LAST_YEAR = 2, 9998  # `datetime` ends a year earlier and later

logger = logging.getLogger(__name__)

_LANGUAGES: tuple[Language, ...] = ("ja", "en")


@dataclass(slots=True)
class Call:
    """One request: one settings snapshot, one moment, and the persona it may read and write.

    With `pool` it reads and writes this pool instead, as far as its persona may. `is_pool_addressed`: the whole request is about the pool.
    `is_trial`: its settings are tried out, and count as they are. `is_persona_there`: what `writing_on` writes to exists already.
    """

    runtime: Runtime
    scope: Scope
    headers: Sequence[str]
    admission: Admission
    pool: str = ""
    is_pool_addressed: bool = False
    is_trial: bool = False
    is_persona_there: bool = False
    settings: Settings = field(init=False)
    _arrived_at: datetime = field(init=False)
    _noted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.settings = self.runtime.config.current()
        self._arrived_at = self.runtime.clock()
        self._note_call()

    @property
    def now(self) -> datetime:
        """The moment of the request, the same for all its parts.

        Raises:
            ClockUnusable: the days around it are outside the calendar.
        """
        if not FIRST_YEAR <= self._arrived_at.year <= LAST_YEAR:
            raise ClockUnusable(
                "the clock of the server's machine is wrong", "it shows the year {}", "Set it, and try again", self._arrived_at.year
            )
        return self._arrived_at

    @property
    def models(self) -> Models:
        return self.runtime.models_for(self.settings)

    def rerank_deadline(self) -> float | None:
        """When reranking must end, counted from the request's arrival."""
        return rerank_deadline(self.settings, self.scope.get(ARRIVED, time.monotonic()))

    @property
    def local_now(self) -> datetime:
        """`now` in the configured time zone."""
        return self.now.astimezone(self.settings.zone)

    def searching(self) -> AbstractContextManager[None]:
        """What the block does is ended after `SEARCH_SECONDS`, and when the caller has gone.

        Raises:
            SearchUnfinished: it was ended.
        """
        present: Caller | None = self.scope.get(CALLER)
        return limited(SEARCH_SECONDS, lambda: present is not None and present.is_gone)

    @property
    def caller(self) -> str:
        """The entry point of the request, and the id of its token."""
        return f"{self.entry} {self.admission.token}" if self.admission.token else self.entry

    @property
    def entry(self) -> str:
        """The entry point of the request."""
        path: str = self.scope["path"]
        return "mcp" if path == "/mcp" else "dashboard" if is_dashboard(path) else "import" if path.startswith("/api/import") else "http"

    def persona_name(self) -> str:
        """The canonical name of the persona that this request is for; of a call about a pool, the name of the pool's store.

        Raises:
            InvalidPersonaName, PersonaConflict, PersonaRequired: the request doesn't name exactly one usable persona.
            PersonaElsewhere: that one belongs to another cell.
            NotAllowed: the persona doesn't read the pool.
        """
        return self._pool_store() if self.pool else self.own_name()

    def own_name(self) -> str:
        """The canonical name of the persona that this request is made as. Raises: as `persona_name`."""
        name = resolve(
            self.scope,
            headers=self.headers,
            on_missing=self.settings.on_missing_persona,
            existing=lambda: self.visible_personas(limit=2),
            token_personas=self.admission.personas,
        )
        self.runtime.personas.cell.require(name)
        return name

    @property
    def is_unnamed(self) -> bool:
        """Whether the request names no persona and is served as `default`, while its caller has others. Pages have the persona in their
        address.
        """
        if self.pool or is_dashboard(self.scope["path"]) or named(self.scope, self.headers) is not None:
            return False
        return self.own_name() == DEFAULT_PERSONA and bool(set(self.visible_personas(limit=2)) - {DEFAULT_PERSONA})

    def visible_personas(self, after: str = "", limit: int | None = None) -> list[str]:
        """The existing personas that the caller may hear of, sorted: those after a name, at most so many."""
        personas = self.runtime.personas
        if self.admission.personas is None:
            return personas.names(after, limit)
        owned = (name for name in sorted(self.admission.personas) if name > after and personas.cell.owns(name))
        return [name for name in owned if personas.is_listed(name)][:limit]

    def near(self, name: str) -> list[str]:
        """The personas with similar names, of those that the caller may hear of."""
        return self.runtime.personas.similar_names(name, None if self.admission.personas is None else self.visible_personas())

    @contextmanager
    def reading(self) -> Iterator[Persona]:
        """The persona's handle. One that doesn't exist is empty and stays uncreated; so is one that is not the token's."""
        name = self.persona_name()
        if self.reaches(name):
            handle = self.reading_of(name)
        else:
            self._note_foreign(name)
            # Its files aren't touched: neither the answer nor its time may tell that there are any.
            handle = self.runtime.personas.absent(name)
        with handle as persona:
            yield persona

    @contextmanager
    def reading_of(self, name: str) -> Iterator[Persona]:
        """The handle of a persona that the caller may reach, without what has expired."""
        with self.runtime.personas.reading(name) as persona:
            yield self._without_expired(persona)

    @contextmanager
    def writing(self) -> Iterator[Persona]:
        """The persona's handle, the persona created if need be. What was written is indexed afterwards.

        Raises:
            NotAllowed: the persona is not the token's. The refusal doesn't reveal whether it exists.
        """
        name = self.writable_name()
        with self.runtime.personas.writing(name) as opened:
            persona = self._without_expired(opened)
            try:
                yield persona
            finally:  # what fails in the end may have written before
                self._wake(persona)

    @contextmanager
    def writing_on(self) -> Iterator[Persona]:
        """As `writing`, for what a call writes in several parts: a persona that is erased meanwhile is not created again.

        Raises:
            PersonaUnknown: it was erased or renamed.
        """
        with self.changing() if self.is_persona_there else self.writing() as persona:
            if not persona.exists:
                raise PersonaUnknown(
                    "the import ended", "its persona was erased or renamed meanwhile", "Import the rest again if it is still wanted"
                )
            self.is_persona_there = True
            yield persona

    @contextmanager
    def changing(self) -> Iterator[Persona]:
        """The persona's handle for changing what is there: one that doesn't exist has nothing to change, and stays uncreated."""
        if self.pool:
            self.writable_name()
        with self.reading() as persona:
            try:
                yield persona
            finally:
                self._wake(persona)

    def reaches(self, name: str) -> bool:
        """Whether this is a persona of the caller's, or the pool that the call is about, which it reads."""
        return self.admission.reaches(name) or bool(self.pool)

    @property
    def foreign_pool(self) -> str:
        """The pool that a request addressed to a persona is about; every key in its answer names the pool. Empty if the request
        addresses the pool itself.
        """
        return "" if self.is_pool_addressed else self.pool

    def within(self, pool: str) -> "Call":
        """The same call about a pool."""
        call = copy(self)
        call.pool, call.is_pool_addressed = unicodedata.normalize("NFC", pool), self.is_pool_addressed and pool == self.pool
        return call

    def pools(self) -> Mapping[str, bool]:
        """The pools that the caller reads as its persona, each with whether it also writes to it; all of them for a caller with access
        to all personas that addresses a pool and names no persona.
        """
        shared = pools(self.settings)
        if not shared:
            return {}
        if self.is_pool_addressed and self.admission.personas is None and not self.headers and self.scope.get(PATH_PERSONA) is None:
            return dict.fromkeys(shared, True)
        name = self.own_name()
        if not self.admission.reaches(name):
            return {}
        rights = {pool: may_write(name, self.admission.token) for pool, may_write in shared.items()}
        return {pool: may_write for pool, may_write in rights.items() if may_write is not None}

    @contextmanager
    def reading_pools(self) -> Iterator[Pools]:
        """The pools that the persona reads; none for a call about a pool, which reads nothing but itself."""
        names = () if self.pool else self.pools()
        if not names:
            yield NO_POOLS
            return
        unavailable = []
        with ExitStack() as opened:
            stores = []
            for pool in names:
                try:
                    store = opened.enter_context(self.reading_of(pool_store(pool)))
                    stores += [store] if store.exists else []
                except (StoreError, Overloaded) as error:
                    logger.warning("the pool %s can't be read: %s", pool, error)
                    unavailable.append(pool)
            yield Pools(tuple(stores), tuple(unavailable))

    def locate(self, key: str) -> tuple["Call", str]:
        """The call about the store that has this key, and the key there: the persona's own, else the pool that the key names."""
        bare, _, pool = key.rpartition("@")
        if self.pool:
            return self, bare if bare and pool == self.pool else key
        if not bare or pool not in self.pools():
            return self, key
        with self.reading() as persona, persona.database.read_briefly() as connection:
            return (self, key) if memories.by_keys(connection, [key]) else (self.within(pool), bare)

    def group_by_store(self, keys: Iterable[str]) -> list[tuple["Call", list[str]]]:
        """`locate` each key, together by store, before anything in a pool is changed.

        Raises:
            NotAllowed: the caller may not write to one of the pools.
        """
        by_store: dict[str, tuple[Call, list[str]]] = {}
        for target, key in map(self.locate, keys):
            by_store.setdefault(target.pool, (target, []))[1].append(key)
        for target, _ in by_store.values():
            if target.pool:
                target.writable_name()
        return list(by_store.values())

    def _pool_store(self, *, to_write: bool = False) -> str:
        """The name of the store of the call's pool.

        Raises:
            NotAllowed: the caller may not read it, or write to it. The refusal doesn't reveal whether it exists.
        """
        rights = self.pools()
        if rights.get(self.pool, False) or (self.pool in rights and not to_write):
            return pool_store(self.pool)
        self.admission.note("pool", asked=self.pool[:NAME_LIMIT])
        raise NotAllowed(
            sentence("you may not write to the pool {}", repr(self.pool))
            if self.pool in rights
            else sentence("you may not read the pool {}", repr(self.pool)),
            "pools in config.json say who may",
            "Ask the server's owner to add the persona there",
        )

    def writable_name(self) -> str:
        """The name of the store that the caller may write to.

        Raises:
            NotAllowed: the persona is not the token's, or the persona doesn't write to the pool. The refusal doesn't reveal whether either
            exists.
        """
        if self.pool:
            return self._pool_store(to_write=True)
        name = self.own_name()
        if not self.admission.reaches(name):
            self._note_foreign(name)
            raise self.admission.foreign(name)
        return name

    def note_failure(self, operation: str, error: Exception, key: str | None = None) -> None:
        """Records that a change of the persona failed: the kind of the error, never its words, which may quote a memory.

        A call that was turned away is none: it began nothing, and the log of refusals has it where it was not allowed.
        """
        if isinstance(error, NotAllowed | Overloaded) or (self.pool and not self.pools().get(self.pool)):
            return

        def record(connection: apsw.Connection) -> Operation:
            # A key that no memory has may be anything.
            known = key if isinstance(key, str) and memories.by_keys(connection, [key]) else None
            failed = Operation(operation, known, self.now, error=type(error).__name__)
            operations.record(connection, failed)
            return failed

        try:
            with called_by(self.caller), self.reading() as persona:
                if persona.exists:
                    persona.log.append(persona.name, persona.database.write(record))
        except MemoryMCPError as unrecorded:
            logger.debug("a failed %s isn't recorded: %s", operation, unrecorded)

    def search_settings(self, persona: Persona) -> Settings:
        """The settings of a search: with the weights that the persona has of its own, unless they are tried out."""
        if self.is_trial or not persona.exists:
            return self.settings
        return with_own_weights(persona.database, self.settings)

    def note_event(self, event: str, **facts: Any) -> None:
        """Puts a change of the server itself into the operations log: what was changed with which token, never a value."""
        self.runtime.personas.log.append_event(event, self.now, {"token": self.admission.token, "client": self.admission.client, **facts})

    @property
    def reader(self) -> str:
        """Who is shown memories: the id of the request's token, whichever entry point it comes through."""
        return self.admission.token or ""

    def note_use(self, persona: Persona, keys: Sequence[str], query: str = "") -> None:
        """These memories answered the caller's question. Nothing is written here, and nothing is counted in a pool: its readers leave no
        trace.
        """
        if self.pool:
            return
        if self.runtime.usage and persona.exists and self.settings.usage.enabled:
            self.runtime.usage.note(persona.name, keys, self.local_now, self.reader, query)

    def shown(self, persona: Persona, keys: Sequence[str]) -> dict[str, Showing]:
        """Those of these memories that the caller was shown."""
        return self.runtime.usage.shown(persona, self.reader, keys) if self.runtime.usage else {}

    def _without_expired(self, persona: Persona) -> Persona:
        """The persona after what has expired was moved to the trash; where nothing can be written, it is marked `has_expired`."""
        try:
            with called_by(""):
                if persona.exists and retention_rules.trash_expired(persona, self.now):
                    self._wake(persona)
        except (StoreError, Overloaded, ClockUnusable) as error:
            logger.debug("memories of %s that have expired aren't in the trash yet: %s", persona.name, error)
            return replace(persona, has_expired=True)
        return persona

    def _note_foreign(self, name: str) -> None:
        if not self._noted:  # one call may ask for its persona more than once
            self._noted = True
            self.admission.note("persona", persona=name)

    def _note_call(self) -> None:
        """The server is in use; during a long call, such as an import, each write notes it again."""
        if self.runtime.index:
            self.runtime.index.note_call()
        if self.runtime.chores:
            self.runtime.chores.note_call()

    def _wake(self, persona: Persona) -> None:
        self._note_call()
        if persona.exists:
            self.runtime.wake(persona.name)


def current_call() -> Call:
    """The call that is being answered, for `Depends`. Names no persona yet: that happens on the worker thread."""
    return call_of(get_http_request())


def call_of(request: Request) -> Call:
    """The call that an HTTP request makes."""
    # getlist, because a plain look-up hides a second header with another name in it.
    call = Call(request.app.state.runtime, request.scope, request.headers.getlist(HEADER), request.scope[ADMISSION])
    if POOL_HEADER in request.headers:
        # No pool has the name of an empty header, of one that can't be read, or of two.
        call.pool = pool_in(request.headers.getlist(POOL_HEADER)) or " "
        call.is_pool_addressed = True
    return call


def client_language(call: Call, text: str = "") -> Language | None:
    """Return the language in which the caller gets what we word: `ago`, and the time since the last conversation.

    It is `language` in config.json, else the request's Accept-Language, else the language of `text`. None where none is known: use that of
    each memory.
    """
    if call.settings.language != "auto":
        return call.settings.language
    return accepted_language(Headers(scope=call.scope).get("accept-language", "")) or (
        language_of(text) if any(map(str.isalpha, text)) else None
    )


def accepted_language(header: str) -> Language | None:
    """Return the supported language that an Accept-Language header prefers. Libraries send `*` by themselves, which asks for none."""
    best: tuple[float, Language] | None = None
    for entry in header.split(","):
        name, _, weight = entry.strip().lower().partition(";q=")
        language = next((known for known in _LANGUAGES if name.partition("-")[0] == known), None)
        try:
            preference = float(weight or 1)
        except ValueError:
            continue
        if language and preference > (best[0] if best else 0):
            best = preference, language
    return best[1] if best else None
