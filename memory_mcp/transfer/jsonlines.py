"""Imports and exports memories as JSON lines: an export of imported lines equals them.

A line is one memory: `content` and any other field of `FIELDS`. Other kinds of lines are recognized by their first field:
`version_of` (an earlier version of a memory), `persona_context`, `pieces_of` (the current number of pieces of a note), `notes_of` (the
vault of all notes before it), and those of `graph_lines` and `conversation_lines`. An invalid line is refused with its number; the import continues.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Clash, Conversation, Draft, Embedded, Feedback, Memory, Outcome, StatedRelation, Version
from memory_mcp.errors import InvalidInput
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.relation_notation import format_relation
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.store import feedback, memories, tombstones, versions
from memory_mcp.store.graph import relations, visibility
from memory_mcp.store.timestamps import optional_to_text, to_text
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.transfer import conversation_lines, graph_lines, non_memory_lines
from memory_mcp.transfer.additions import only_adding
from memory_mcp.transfer.conversation_lines import ConversationLine, TurnLine
from memory_mcp.transfer.graph_lines import GraphLine
from memory_mcp.transfer.line_fields import draft_of, parsed, pieces_of, vault_of, version_of
from memory_mcp.transfer.line_vectors import Generations, as_json
from memory_mcp.transfer.non_memory_lines import CONTEXT, PIECES, VAULT, VERSION, DeletedNote, OtherLine, Vault
from memory_mcp.wording import masked

EXPORT_PAGE = 200
# This many refusals, and as many deleted notes, are listed; further ones are only counted.
ERRORS_LISTED = 10_000

# A longer line is written without its vectors: they can be computed again, and an import accepts lines of up to 2 MiB.
LINE_WITH_VECTORS_BYTES = 1024 * 1024

T = TypeVar("T")
OpenPersona = Callable[[], AbstractContextManager[Persona]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The number (from 1) of a line that was refused, and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The counts of an import: memories, those of them that have expired, edited notes (`revised`) and their removed pieces (`dropped`), earlier versions, vectors that were
    stored or ignored for lack of their model (`vectors_left`), graph lines, lines of conversations, and characters that did not replace another (`context_kept`); and the notes that are no longer in their vault. Results can be added: `first + second`."""

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
    deleted_notes: tuple[DeletedNote, ...] = ()
    expired: int = 0
    conversations: int = 0
    context_kept: int = 0

    def __add__(self, other: "ImportResult") -> "ImportResult":
        return ImportResult(*(_sum(getattr(self, part.name), getattr(other, part.name)) for part in fields(self)))


def _sum(first: Any, second: Any) -> Any:
    """The sum of two counts, or of two counts by kind; or two lists joined, up to their limit."""
    if isinstance(first, Mapping):
        return _total([first, second])
    return (*first, *second)[:ERRORS_LISTED] if isinstance(first, tuple) else first + second


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import. Times without an offset are in `zone`. With `dry_run` nothing is stored; without `may_delete` nothing is moved
    to the trash, and without `may_read` the result reveals nothing that is stored. `notes` collects the key prefixes of the notes of this import, and the
    keys by which renamed ones were recognized; `stored` the keys of the memories that it stored. `adds_only`: nothing that is stored is replaced or changed."""

    now: datetime
    zone: ZoneInfo
    privacy: Privacy
    clash: Clash = "refuse"
    generations: Generations = field(default_factory=dict)
    dry_run: Foreseen | None = None
    may_delete: bool = True
    may_read: bool = True
    adds_only: bool = False
    notes: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an export includes beyond the memories that are neither in the trash nor secret."""

    deleted: bool = False
    secret: bool = False
    versions: bool = False
    vectors: bool = False
    context: bool = False
    conversations: bool = False

    def includes(self, memory: Memory) -> bool:
        """Whether this memory is exported."""
        return (self.deleted or memory.deleted_at is None) and (self.secret or memory.privacy_level != "secret")


def import_lines(open_persona: OpenPersona, lines: Sequence[tuple[int, bytes]], options: ImportOptions) -> ImportResult:
    """Stores the memories of these numbered lines in one commit, then the other lines.

    The persona is opened only if a line is valid, since opening a persona that doesn't exist creates it.

    Raises:
        StoreError: the batch could not be stored; none of its memories was.
    """
    drafts: list[tuple[int, Draft]] = []
    others: list[tuple[int, OtherLine | ConversationLine]] = []
    graph: list[tuple[int, GraphLine]] = []
    refusals: list[Refusal] = []
    vectors_left = 0
    for number, line in lines:
        try:
            row = parsed(line)
            if row is None:
                continue
            kind = graph_lines.kind_of(row)
            if kind:
                graph.append((number, graph_lines.redacted(graph_lines.checked(kind, row, options.zone, options.now), options.privacy)))
                continue
            other = _other_line(row, options.zone)
            if other is not None:
                others.append((number, other))
                continue
            draft = draft_of(row, options.now, options.zone, options.generations)
            vectors_left += "vectors" in row and draft.embedded is None
            drafts.append((number, draft))
        except InvalidInput as error:
            refusals.append(Refusal(number, masked(str(error), Redaction(options.privacy).text)))
    result = ImportResult(refused=len(refusals), errors=tuple(refusals), vectors_left=vectors_left)
    if drafts or others or graph:
        with open_persona() as persona:
            result += _import_graph(persona, [entry for entry in graph if entry[1].is_before_memories], options)
            result += _import_drafts(persona, drafts, options)
            result += _import_graph(persona, [entry for entry in graph if not entry[1].is_before_memories], options)
            result += _import_others(persona, others, options)
    in_order = sorted(result.errors, key=lambda refusal: refusal.line)
    return replace(result, errors=tuple(in_order[:ERRORS_LISTED]))


def export_lines(persona: Persona, options: ExportOptions = ExportOptions()) -> Iterator[str]:
    """Yields the lines of an export, without line feeds: the persona's context, types and entities edited by hand, the memories in the
    order in which they were stored, each followed by its earlier versions, then the graph lines that refer to them, and last the conversations. Each memory
    is exported once, even if there are writes meanwhile."""
    if options.context and persona.exists:
        yield json.dumps({CONTEXT: persona.context.read()}, ensure_ascii=False)
    if persona.exists:
        yield from graph_lines.lines_before_memories(persona, deleted=options.deleted, secret=options.secret)
    yield from _memory_lines(persona, options)
    if persona.exists:
        yield from graph_lines.lines_after_memories(persona, deleted=options.deleted, secret=options.secret)
    if options.conversations and persona.exists:
        yield from conversation_lines.lines(persona)


def _memory_lines(persona: Persona, options: ExportOptions) -> Iterator[str]:
    def embedded_of(connection: apsw.Connection, page: Sequence[Memory]) -> Mapping[int, Embedded]:
        # Vectors of superseded and deleted memories are not searched, and may be missing.
        current = [memory.id for memory in page if memory.deleted_at is None and memory.superseded_by is None]
        generation = stored_vectors.serving_generation(connection) if options.vectors else None
        return stored_vectors.embedded_of(connection, generation, current) if generation else {}

    for rows, embedded in rows_by_page(persona, options, embedded_of):
        for memory, row in rows:
            yield _line(row, {"vectors": as_json(embedded[memory.id])} if memory.id in embedded else {})
            if options.versions and memory.revision > 1:
                with persona.database.read() as connection:
                    earlier = versions.for_export(connection, memory.key, options.secret)
                yield from (json.dumps(row_of_version(version), ensure_ascii=False) for version in earlier)


def rows_by_page(
    persona: Persona, options: ExportOptions, read_more: Callable[[apsw.Connection, Sequence[Memory]], T]
) -> Iterator[tuple[list[tuple[Memory, dict[str, Any]]], T]]:
    """Yields the memories of an export page by page, each with its row, and what `read_more` reads of a page in the same snapshot."""
    last = 0
    with persona.database.read() as connection:
        entity_names = visibility.export_names(connection, options.deleted, options.secret)
    while True:
        with persona.database.read() as connection:
            page = memories.page_for_export(connection, last, EXPORT_PAGE, options.deleted, options.secret)
            stated = relations.stated_in(connection, [memory.id for memory in page], entity_names)
            verdicts = feedback.of_memories(connection, [memory.id for memory in page])
            more = read_more(connection, page)
        if not page:
            return
        yield [(memory, _row_of(memory, stated.get(memory.id, ()), verdicts.get(memory.id, ()))) for memory in page], more
        last = page[-1].id


def _line(row: Mapping[str, Any], optional_fields: Mapping[str, Any]) -> str:
    """The JSON line of a row. `optional_fields` are left out if they make it too long."""
    if optional_fields:
        line = json.dumps({**row, **optional_fields}, ensure_ascii=False)
        if len(line.encode()) <= LINE_WITH_VECTORS_BYTES:
            return line
    return json.dumps(row, ensure_ascii=False)


def _row_of(memory: Memory, stated: Sequence[StatedRelation], verdicts: Sequence[Feedback]) -> dict[str, Any]:
    """The object of a memory line: fields in the order of `FIELDS`, without unset ones; times in UTC."""
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
        "relations": [text for text in dict.fromkeys(map(format_relation, stated)) if text] or None,
        "revision": memory.revision,
        "supersedes": memory.supersedes,
        "deleted_at": optional_to_text(memory.deleted_at),
        "usage_count": memory.usage_count or None,
        "last_used_at": optional_to_text(memory.last_used_at),
        "metadata": dict(memory.metadata) or None,
        "category": memory.category,
        "privacy_level": memory.privacy_level,
        "expires_at": optional_to_text(memory.expires_at),
        "feedback": list(map(_row_of_feedback, verdicts)) or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _row_of_feedback(verdict: Feedback) -> dict[str, str]:
    values = {"verdict": verdict.verdict, "at": to_text(verdict.at), "run": verdict.run, "query": verdict.query}
    return {name: value for name, value in values.items() if value}


def row_of_version(version: Version) -> dict[str, Any]:
    """The object of a version line, without unset fields."""
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


def _other_line(row: Mapping[str, Any], zone: ZoneInfo) -> OtherLine | ConversationLine | None:
    """The content of a line that is not a memory; None for a memory."""
    if VERSION in row:
        return version_of(row, zone)
    if PIECES in row:
        return pieces_of(row)
    if VAULT in row:
        return Vault(*vault_of(row))
    return non_memory_lines.checked_context(row) if CONTEXT in row else conversation_lines.checked(row, zone)


def _import_drafts(persona: Persona, numbered: Sequence[tuple[int, Draft]], options: ImportOptions) -> ImportResult:
    drafts = _under_known_keys(persona, [draft for _, draft in numbered])
    if options.adds_only and drafts:
        with persona.database.read() as connection:
            drafts = list(only_adding(connection, drafts, options.stored))
    outcomes: list[Outcome] = []
    if options.dry_run:
        with persona.database.read() as connection:
            outcomes = options.dry_run.outcomes(connection, drafts, options.now, options.clash, options.privacy)
    elif drafts:
        outcomes = remember_many(persona, drafts, now=options.now, zone=options.zone, privacy=options.privacy, clash=options.clash)
    refusals = tuple(
        Refusal(number, masked(outcome.reason, Redaction(options.privacy).text))
        for (number, _), outcome in zip(numbered, outcomes, strict=True)
        if outcome.outcome == "refused"
    )
    options.notes.update(
        outcome.key for outcome, draft in zip(outcomes, drafts, strict=True) if draft.restored.key not in (None, outcome.key)
    )
    options.stored.update(outcome.key for outcome in outcomes if outcome.outcome == "stored")
    names = [outcome.outcome for outcome in outcomes]
    new = [outcome for outcome in outcomes if outcome.outcome in ("stored", "revised")]
    with_vectors = [bool(draft.embedded) for draft in drafts]
    return ImportResult(
        names.count("stored"),
        names.count("already_known"),
        len(refusals),
        refusals,
        revised=names.count("revised"),
        vectors=sum(has_vectors for has_vectors, name in zip(with_vectors, names, strict=True) if name == "stored"),
        redacted=_total(outcome.redacted for outcome in new),
        flagged=_total(outcome.flagged for outcome in new),
        expired=sum(
            outcome.outcome == "stored" and draft.expires_at is not None and draft.expires_at <= options.now
            for outcome, draft in zip(outcomes, drafts, strict=True)
        ),
    )


def _under_known_keys(persona: Persona, drafts: list[Draft]) -> list[Draft]:
    """The drafts, each with the first of its key and its former keys that a memory has or had."""
    keys = {key for draft in drafts if draft.restored.former_keys for key in _keys(draft)}
    if not keys:
        return drafts
    with persona.database.read() as connection:
        known = memories.stored_keys(connection, [*keys]) | tombstones.erased_among(connection, keys)
    return [
        replace(draft, restored=replace(draft.restored, key=next(filter(known.__contains__, _keys(draft)), draft.restored.key)))
        for draft in drafts
    ]


def _keys(draft: Draft) -> list[str]:
    return [*filter(None, (draft.restored.key, *draft.restored.former_keys))]


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, filter(None, counts)), Counter[str]()))


def _import_graph(persona: Persona, numbered: Sequence[tuple[int, GraphLine]], options: ImportOptions) -> ImportResult:
    lines, beside = [line for _, line in numbered], options.stored if options.adds_only else None
    results = graph_lines.import_graph_lines(persona, lines, options.now, options.dry_run, beside)
    refusals = tuple(
        Refusal(number, masked(str(result), Redaction(options.privacy).text))
        for (number, _), result in zip(numbered, results, strict=True)
        if isinstance(result, InvalidInput)
    )
    return ImportResult(already_known=results.count(False), refused=len(refusals), errors=refusals, graph=results.count(True))


def _import_others(persona: Persona, others: Sequence[tuple[int, OtherLine | ConversationLine]], options: ImportOptions) -> ImportResult:
    result = ImportResult()
    for number, other in others:
        redaction = Redaction(options.privacy)
        try:
            non_memory_lines.check_adds(options.adds_only)
            if isinstance(other, Vault):
                result += _deleted_notes(persona, other, options)
                continue
            if isinstance(other, Conversation | TurnLine):
                is_new = conversation_lines.import_line(persona, other, redaction, dry_run=options.dry_run is not None)
                imported = ImportResult(conversations=int(is_new), already_known=int(not is_new))
                result += replace(imported, redacted=redaction.redacted, flagged=redaction.flagged) if is_new else imported
                continue
            if isinstance(other, tuple):
                options.notes.add(other[0])
            line = non_memory_lines.redacted(other, redaction)
            imported = ImportResult(**non_memory_lines.import_line(persona, line, options.now, options.dry_run, options.may_delete))
            counts_redaction = imported.versions or imported.context
            result += replace(imported, redacted=redaction.redacted, flagged=redaction.flagged) if counts_redaction else imported
        except InvalidInput as error:
            result += ImportResult(refused=1, errors=(Refusal(number, masked(str(error), Redaction(options.privacy).text)),))
    return result


def _deleted_notes(persona: Persona, vault: Vault, options: ImportOptions) -> ImportResult:
    deleted = non_memory_lines.deleted_notes(persona, vault, options.notes)
    if vault.forget:
        return ImportResult(dropped=non_memory_lines.forget_notes(persona, deleted, options.now, options.dry_run, options.may_delete))
    return ImportResult(deleted_notes=tuple(deleted[:ERRORS_LISTED]) if options.may_read else ())
