"""Looking through memories without a question: a list by filters, page by page, and everything that is known of one memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, NotRequired, cast
from zoneinfo import ZoneInfo

import apsw
from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.dates.resolve import parse_range
from memory_mcp.domain import KINDS, PRIVACY_LEVELS, SHELVES, Filters, Kind, Memory, PrivacyLevel, Shelf
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.language.budget import preview
from memory_mcp.language.labels import label
from memory_mcp.search.question import question
from memory_mcp.search.stores import in_pool
from memory_mcp.server.actions.organize import brief
from memory_mcp.server.arguments import Arguments, Between, DateRange, OneOf, Share, Text, TextList, http
from memory_mcp.server.call import Call, client_language
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Count, ReadingAnswer, heading, local, memory_view, omit_empty
from memory_mcp.store import memories, memory_pages, memory_rows, versions
from memory_mcp.store.graph import mentions
from memory_mcp.store.graph.entities import lookup, records
from memory_mcp.store.memory_pages import Position
from memory_mcp.store.timestamps import from_text

PAGE, PAGE_LIMIT = 50, 200
DAYS_LIMIT = 366
PREVIEW_CHARACTERS = 200
# A chain of replacements is shown so far in either direction; no honest one is longer.
CHAIN_LIMIT = 50


class ListArguments(Arguments):
    shelf: Annotated[Shelf, OneOf(SHELVES), http("Current memories, replaced ones, those in the trash, or all.")] = "current"
    kind: Annotated[Text, OneOf(KINDS), http("Only memories of this kind.")] = ""
    tags: Annotated[TextList, http("Only memories with all of these tags.")] = []
    source: Annotated[Text, http("Only what this speaker said.")] = ""
    session_id: Annotated[Text, http("Only memories of this conversation.")] = ""
    category: Annotated[Text, http("Only memories of this category.")] = ""
    privacy_level: Annotated[Text, OneOf(PRIVACY_LEVELS), http("Only memories of this privacy level.")] = ""
    min_importance: Annotated[Share, http("Only memories of this importance or more.")] = 0.0
    date_range: Annotated[DateRange, http("2025-10-01..2025-10-17, a day, or 先週.")] = ""
    after: Annotated[Text, http("`next` of the page before.")] = ""
    limit: Annotated[int, Between(1, PAGE_LIMIT), http("How many memories.")] = PAGE


class MemoryList(ReadingAnswer):
    memories: list[dict[str, Any]]
    next: NotRequired[str]


@operation(needs=["read"], route=Route("GET", "/api/memories"), answer=MemoryList)
def list_memories(call: Call, arguments: ListArguments) -> Json:
    """List memories by filters, those told last first, page by page."""
    filters, language = _filters(call, arguments), client_language(call)
    privacy_level = cast("PrivacyLevel | None", arguments.privacy_level or None)
    after = _position(arguments.after) if arguments.after.strip() else None
    with call.reading() as persona, persona.database.read() as connection:
        if persona.has_expired and arguments.shelf == "current":
            filters = replace(filters, unexpired_at=call.now)
        page = memory_pages.positions(
            connection, filters, arguments.limit + 1, shelf=arguments.shelf, privacy_level=privacy_level, after=after
        )
        shown = page[: arguments.limit]
        by_id = memories.beginnings(connection, [position.id for position in shown], PREVIEW_CHARACTERS)
        listed = [
            memory_view(by_id[position.id], preview(by_id[position.id].content, PREVIEW_CHARACTERS), call.settings.zone, call.now, language)
            for position in shown
        ]
        following = f"{shown[-1].told_at}/{shown[-1].id}" if len(page) > len(shown) else None
        return {**heading(call, persona), "memories": listed, **omit_empty(next=following)}


def _filters(call: Call, arguments: ListArguments) -> Filters:
    asked = question(
        settings=call.settings,
        now=call.now,
        mode="recent",
        tags=arguments.tags,
        date_range=arguments.date_range,
        min_importance=arguments.min_importance,
        category=arguments.category,
        session_id=arguments.session_id,
    )
    return replace(asked.filters, kind=cast("Kind | None", arguments.kind or None), source=label(arguments.source, "source"))


def _position(text: str) -> Position:
    timestamp, _, number = text.strip().partition("/")
    try:
        from_text(timestamp)
        return Position(timestamp, int(number))
    except ValueError:
        raise InvalidInput("after is {}", "it is `next` of the page before", "Leave it out for the first page", repr(text[:80])) from None


class DaysArguments(Arguments):
    days: Annotated[int, Between(1, DAYS_LIMIT), http("How many days, today being the last.")] = 30


class DayOfMemories(TypedDict):
    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    memories: Count


class MemoriesPerDay(ReadingAnswer):
    days: list[DayOfMemories]


@operation(needs=["read"], route=Route("GET", "/api/memories/days"), answer=MemoriesPerDay)
def memories_per_day(call: Call, arguments: DaysArguments) -> Json:
    """Return how many memories were told on each of the latest days."""
    today = call.local_now.date()
    days = [today - timedelta(days=back) for back in reversed(range(arguments.days))]
    since = datetime.combine(days[0], time(), call.settings.zone)
    with call.reading() as persona, persona.database.read() as connection:
        counts = Counter[date]()
        for moment, count in memory_pages.timeline_since(connection, since):
            counts[moment.astimezone(call.settings.zone).date()] += count
        return {**heading(call, persona), "days": [{"day": day.isoformat(), "memories": counts[day]} for day in days]}


class KeyArguments(Arguments):
    key: Annotated[Text, http("The key of the memory.", minLength=1)]


class MemoryArguments(KeyArguments):
    as_of: Annotated[Text, http("A date: also what it said at the end of that day, and which memory was the current one then.")] = ""


class NamedEntity(TypedDict):
    name: str
    type: str


class OneMemory(ReadingAnswer):
    memory: dict[str, Any]
    entities: list[NamedEntity]
    replaced: list[dict[str, Any]]
    replaced_by: list[dict[str, Any]]
    as_of: NotRequired[dict[str, Any]]


@operation(needs=["read"], route=Route("GET", "/api/memory"), answer=OneMemory)
def get_memory(call: Call, arguments: MemoryArguments) -> Json:
    """Return everything that is known of one memory: its text, its use, whom it names, what it replaced and what replaced it."""
    key = label(arguments.key, "key")
    if key is None:
        raise InvalidInput("key is missing", "", "Take one from GET /api/memories")
    as_of = parse_range(arguments.as_of, call.now, call.settings.zone).end if arguments.as_of.strip() else None
    call, key = call.locate(key)
    with call.reading() as persona, persona.database.read() as connection:
        memory = memories.by_keys(connection, [key]).get(key)
        if memory is None:
            raise MemoryNotFound("no memory has the key {}", "", "Take the key from a recall", key[:200])
        replaced, replaced_by = _replaced(connection, memory), _successors(connection, memory)
        zone = call.settings.zone
        further = omit_empty(
            metadata=dict(memory.metadata),
            questions=list(memory.questions),
            usage_count=memory.usage_count or None,
            last_used_at=local(memory.last_used_at, zone),
        )
        view = memory_view(in_pool(call.foreign_pool, memory), memory.content, zone, call.now, client_language(call))
        full = {**view, "importance": memory.importance, "privacy_level": memory.privacy_level, "revision": memory.revision, **further}
        return {
            **heading(call, persona),
            "memory": full,
            "entities": _entities(connection, memory),
            "replaced": [brief(other, call) for other in replaced],
            "replaced_by": [brief(other, call) for other in replaced_by],
            **({"as_of": _as_of(connection, [*replaced_by[::-1], memory, *replaced], memory, as_of, zone)} if as_of else {}),
        }


def _entities(connection: apsw.Connection, memory: Memory) -> list[Json]:
    """The entities that the memory names, in the order of its text; none for a memory in the trash, since its names may be hidden."""
    ids = [] if memory.deleted_at else mentions.of_memories(connection, [memory.id]).get(memory.id, [])
    known = records.by_ids(connection, ids)
    seen = lookup.visible(connection, [known[entity] for entity in ids if entity in known])
    return [{"name": entity.name, "type": entity.type} for entity in seen]


def _as_of(connection: apsw.Connection, chain: Sequence[Memory], memory: Memory, end: datetime, zone: ZoneInfo) -> Json:
    """Return the text of a memory before `end`, and which memory of its chain, the latest first, was the current one."""
    states = [(memory.updated_at, memory.revision, memory.content)]
    states += [(version.since, version.revision, version.content) for version in versions.of_key(connection, memory.key)]
    text = next(((revision, content) for since, revision, content in states if since < end), None) if memory.created_at < end else None
    current = next((other.key for other in chain if other.created_at < end), None)
    return {"until": local(end, zone), **(omit_empty(revision=text[0], content=text[1]) if text else {}), **omit_empty(current=current)}


def _replaced(connection: apsw.Connection, memory: Memory) -> list[Memory]:
    """The memories that this one replaced, directly or through others, the latest first."""
    latest = sorted(memory_rows.replaced_by(connection, [memory]), reverse=True)[:CHAIN_LIMIT]
    earlier = memories.beginnings(connection, latest)
    return [earlier[memory_id] for memory_id in latest if memory_id in earlier]


def _successors(connection: apsw.Connection, memory: Memory) -> list[Memory]:
    """The memory that replaced this one, the one that replaced that, and so on."""
    chain = [memory]
    while (key := chain[-1].superseded_by) and len(chain) <= CHAIN_LIMIT and key not in {known.key for known in chain}:
        chain += memories.beginnings(connection, memories.ids_of_keys(connection, [key])).values()
    return chain[1:]
