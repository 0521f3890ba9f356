"""Memories as JSON lines: what /api/import stores and what /api/export writes, so that a second export equals the first.

One line is one memory: `content`, and any other field of `FIELDS`. Other kinds of lines are told by their first field:
`version_of` (an earlier state of a memory), `persona_context`, `pieces_of` (of how many pieces a note is now), and those of
`graph_lines`. A line that
can't be used is refused by its number, and the rest goes on.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Clash, Draft, Memory, Outcome, Stated, Version
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.store import memories, versions
from memory_mcp.store.graph import relations, visibility
from memory_mcp.store.timestamps import optional_to_text, to_text
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.text.privacy.redaction import Redaction
from memory_mcp.text.relation_notation import told
from memory_mcp.transfer import graph_lines, other_lines
from memory_mcp.transfer.graph_lines import Said
from memory_mcp.transfer.line_fields import draft_of, parsed, pieces_of, version_of
from memory_mcp.transfer.line_vectors import Generations, as_json
from memory_mcp.transfer.other_lines import CONTEXT, PIECES, VERSION, Besides

EXPORT_PAGE = 200
# So many refusals are told one by one; further ones are only counted.
ERRORS_LISTED = 10_000

# A line with vectors that would be longer is written without: vectors can be made again, and an import takes 2 MiB at once.
LINE_WITH_VECTORS_BYTES = 1024 * 1024

Opened = Callable[[], AbstractContextManager[Persona]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not stored, by its number from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of a batch of lines: of memories, of notes that were edited or got shorter (`dropped` pieces), of earlier
    states, of memories with vectors that no model here made, and of what was said of the graph. Results add up: `first + second`."""

    stored: int = 0
    already_known: int = 0
    refused: int = 0
    errors: tuple[Refusal, ...] = ()
    revised: int = 0
    dropped: int = 0
    versions: int = 0
    context: int = 0
    vectors: int = 0
    vectors_left: int = 0
    graph: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "ImportResult") -> "ImportResult":
        return ImportResult(
            self.stored + other.stored,
            self.already_known + other.already_known,
            self.refused + other.refused,
            (*self.errors, *other.errors[: ERRORS_LISTED - len(self.errors)]),
            self.revised + other.revised,
            self.dropped + other.dropped,
            self.versions + other.versions,
            self.context + other.context,
            self.vectors + other.vectors,
            self.vectors_left + other.vectors_left,
            self.graph + other.graph,
            _total([self.redacted, other.redacted]),
            _total([self.flagged, other.flagged]),
        )


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How lines are to be taken: times without an offset are local ones of `zone`; `foreseen` makes it a dry run, which stores nothing;
    without `may_delete` nothing is put in the trash."""

    now: datetime
    zone: ZoneInfo
    privacy: Privacy
    clash: Clash = "refuse"
    generations: Generations = field(default_factory=dict)
    foreseen: Foreseen | None = None
    may_delete: bool = True


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an export takes along beyond the memories that are neither in the trash nor secret."""

    deleted: bool = False
    secret: bool = False
    versions: bool = False
    vectors: bool = False
    context: bool = False

    def takes(self, memory: Memory) -> bool:
        """Whether this memory is among those that leave."""
        return (self.deleted or memory.deleted_at is None) and (self.secret or memory.privacy_level != "secret")


def import_lines(opened: Opened, lines: Sequence[tuple[int, bytes]], how: ImportOptions) -> ImportResult:
    """Stores the memories of these numbered lines in one commit, then what else the lines say.

    The persona is opened only when a line is worth storing: opening one that doesn't exist creates it.

    Raises:
        StoreError: the batch could not be stored; of its memories none was.
    """
    drafts: list[tuple[int, Draft]] = []
    others: list[tuple[int, Besides]] = []
    said: list[tuple[int, Said]] = []
    refusals: list[Refusal] = []
    vectors_left = 0
    for number, line in lines:
        try:
            row = parsed(line)
            if row is None:
                continue
            kind = graph_lines.kind_of(row)
            if kind:
                said.append((number, graph_lines.redacted(graph_lines.checked(kind, row, how.zone, how.now), how.privacy)))
                continue
            other = _other(row, how.zone)
            if other is not None:
                others.append((number, other))
                continue
            arrived = draft_of(row, how.now, how.zone, how.generations)
            vectors_left += "vectors" in row and arrived.embedded is None
            drafts.append((number, arrived))
        except InvalidInput as error:
            refusals.append(Refusal(number, Redaction(how.privacy).text(str(error))))
    result = ImportResult(refused=len(refusals), errors=tuple(refusals), vectors_left=vectors_left)
    if drafts or others or said:
        with opened() as persona:
            result += _of_graph(persona, [one for one in said if one[1].is_early], how)
            result += _drafted(persona, drafts, how)
            result += _of_graph(persona, [one for one in said if not one[1].is_early], how)
            result += _beside(persona, others, how)
    in_order = sorted(result.errors, key=lambda refusal: refusal.line)
    return replace(result, errors=tuple(in_order[:ERRORS_LISTED]))


def export_lines(persona: Persona, leaving: ExportOptions = ExportOptions()) -> Iterator[str]:
    """Every memory as a line without its line feed, in the order in which they were stored; each once, whatever is written meanwhile.
    The persona's context stands first, then whom somebody described; the earlier states of a memory stand behind it, and last what was
    said of the graph outside of any."""
    if leaving.context and persona.exists:
        yield json.dumps({CONTEXT: persona.context.read()}, ensure_ascii=False)
    if persona.exists:
        yield from graph_lines.before(persona, deleted=leaving.deleted, secret=leaving.secret)
    yield from _memory_lines(persona, leaving)
    if persona.exists:
        yield from graph_lines.after(persona, deleted=leaving.deleted, secret=leaving.secret)


def _memory_lines(persona: Persona, leaving: ExportOptions) -> Iterator[str]:
    last = 0
    with persona.database.read() as connection:
        called = visibility.export_names(connection, leaving.deleted, leaving.secret)
    while True:
        with persona.database.read() as connection:
            page = memories.page_for_export(connection, last, EXPORT_PAGE, leaving.deleted, leaving.secret)
            generation = stored_vectors.serving_generation(connection) if leaving.vectors else None
            # What was replaced or is in the trash may have vectors or not, by chance; nobody searches among them.
            current = [memory.id for memory in page if memory.deleted_at is None and memory.superseded_by is None]
            embedded = stored_vectors.embedded_of(connection, generation, current) if generation else {}
            stated = relations.stated_in(connection, [memory.id for memory in page], called)
        if not page:
            return
        for memory in page:
            further = {"vectors": as_json(embedded[memory.id])} if memory.id in embedded else {}
            yield line_of(memory, stated.get(memory.id, ()), further)
            if leaving.versions and memory.revision > 1:
                with persona.database.read() as connection:
                    earlier = versions.for_export(connection, memory.key, leaving.secret)
                yield from map(line_of_version, earlier)
        last = page[-1].id


def line_of(memory: Memory, stated: Sequence[Stated] = (), further: Mapping[str, Any] | None = None) -> str:
    """A memory, with the relations that it states, as a JSON line. `further` fields are left out where they would make it too long."""
    row = row_of(memory, stated)
    if further:
        whole = json.dumps({**row, **further}, ensure_ascii=False)
        if len(whole.encode()) <= LINE_WITH_VECTORS_BYTES:
            return whole
    return json.dumps(row, ensure_ascii=False)


def row_of(memory: Memory, stated: Sequence[Stated] = ()) -> dict[str, Any]:
    """A memory as the object of its line: fields in the order of `FIELDS`, unset ones left out, times in UTC."""
    values = {
        "key": memory.key,
        "content": memory.content,
        "created_at": to_text(memory.created_at),
        "updated_at": to_text(memory.updated_at),
        "tags": list(memory.tags) or None,
        "occurred_at": optional_to_text(memory.occurred_at),
        "importance": memory.importance,
        "source": memory.source,
        "session_id": memory.session_id,
        "kind": memory.kind,
        "state": dict(memory.state) or None,
        "questions": list(memory.questions) or None,
        "relations": [text for text in dict.fromkeys(map(told, stated)) if text] or None,
        "revision": memory.revision,
        "supersedes": memory.supersedes,
        "deleted_at": optional_to_text(memory.deleted_at),
        "usage_count": memory.usage_count or None,
        "last_used_at": optional_to_text(memory.last_used_at),
        "metadata": dict(memory.metadata) or None,
        "category": memory.category,
        "privacy_level": memory.privacy_level,
    }
    return {name: value for name, value in values.items() if value is not None}


def line_of_version(version: Version) -> str:
    """An earlier state of a memory as a JSON line."""
    return json.dumps(row_of_version(version), ensure_ascii=False)


def row_of_version(version: Version) -> dict[str, Any]:
    """The same as the object of its line, unset fields left out."""
    values = {
        VERSION: version.key,
        "revision": version.revision,
        "content": version.content,
        "tags": list(version.tags) or None,
        "importance": version.importance,
        "updated_at": to_text(version.updated_at),
        "reason": version.reason,
        "category": version.category,
        "privacy_level": version.privacy_level,
    }
    return {name: value for name, value in values.items() if value is not None}


def _other(row: Mapping[str, Any], zone: ZoneInfo) -> Besides | None:
    """What a line says that is no memory; None for one that is."""
    if VERSION in row:
        return version_of(row, zone)
    if PIECES in row:
        return pieces_of(row)
    return other_lines.checked_context(row) if CONTEXT in row else None


def _drafted(persona: Persona, drafts: Sequence[tuple[int, Draft]], how: ImportOptions) -> ImportResult:
    arrived = [draft for _, draft in drafts]
    outcomes: list[Outcome] = []
    if how.foreseen:
        with persona.database.read() as connection:
            outcomes = how.foreseen.outcomes(connection, arrived, how.now, how.clash, how.privacy)
    elif arrived:
        outcomes = remember_many(persona, arrived, now=how.now, zone=how.zone, privacy=how.privacy, clash=how.clash)
    refusals = tuple(
        Refusal(number, Redaction(how.privacy).text(outcome.reason))
        for (number, _), outcome in zip(drafts, outcomes, strict=True)
        if outcome.outcome == "refused"
    )
    counted = [outcome.outcome for outcome in outcomes]
    new = [outcome for outcome in outcomes if outcome.outcome in ("stored", "revised")]
    with_vectors = [bool(draft.embedded) for draft in arrived]
    return ImportResult(
        counted.count("stored"),
        counted.count("already_known"),
        len(refusals),
        refusals,
        revised=counted.count("revised"),
        vectors=sum(taken for taken, outcome in zip(with_vectors, counted, strict=True) if outcome == "stored"),
        redacted=_total(outcome.redacted for outcome in new),
        flagged=_total(outcome.flagged for outcome in new),
    )


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()))


def _of_graph(persona: Persona, said: Sequence[tuple[int, Said]], how: ImportOptions) -> ImportResult:
    taken = graph_lines.take(persona, [one for _, one in said], how.now, how.foreseen)
    refusals = tuple(
        Refusal(number, Redaction(how.privacy).text(str(found)))
        for (number, _), found in zip(said, taken, strict=True)
        if isinstance(found, InvalidInput)
    )
    return ImportResult(already_known=taken.count(False), refused=len(refusals), errors=refusals, graph=taken.count(True))


def _beside(persona: Persona, others: Sequence[tuple[int, Besides]], how: ImportOptions) -> ImportResult:
    result = ImportResult()
    for number, other in others:
        found = Redaction(how.privacy)
        try:
            taken = _counted(other_lines.take(persona, other_lines.redacted(other, found), how.now, how.foreseen, how.may_delete))
            result += replace(taken, redacted=found.redacted, flagged=found.flagged) if taken.versions or taken.context else taken
        except InvalidInput as error:
            result += ImportResult(refused=1, errors=(Refusal(number, Redaction(how.privacy).text(str(error))),))
    return result


def _counted(counts: Mapping[str, int]) -> ImportResult:
    return ImportResult(
        already_known=counts.get("already_known", 0),
        dropped=counts.get("dropped", 0),
        versions=counts.get("versions", 0),
        context=counts.get("context", 0),
    )
