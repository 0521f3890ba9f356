"""The steps of storing a draft that `validation.draft` has checked: redact → split → one transaction (deduplicate; memory, chunks, lexical rows, entities and relations,
operation, queue row) → log → similar memories. The caller then notes the conversation and looks up related
memories (search/related.py), which may embed the text, for .3 s at most.

An answer means that the memory is on the disk and can be found. A process that dies before the commit has stored nothing, and after it
everything but perhaps the line of the log. What follows the commit (log, similar) never fails the answer, and a caller who has gone stops
nothing: the next try finds the memory stored.

The same write again is no second memory: a draft with the same content, source, session and `occurred_at`, without one only within ten
minutes (`deduplication.settle`). It adds its relations, what it replaces and its expiry to the stored memory (`_stored_again`), whose tags,
questions and importance stay. Vectors, and the
queue's relations by a model, are made in the background (`index/sync.py`, `features/graph/background.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Chunk, Clash, Draft, Memory, Outcome, Remembered
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.graph.update import entity_linking
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.sentences import split
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.deduplication import RETRY_WINDOW, Known, is_stricter, settle
from memory_mcp.remember.revise import Revision, replace_memory, revise_stored, unknown_predecessor
from memory_mcp.remember.similar import compared
from memory_mcp.remember.validation import redacted
from memory_mcp.store import expiry, memories, memory_rows, operations, trash
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.operations import CONFIRM, Operation
from memory_mcp.store.timestamps import optional_to_text
from memory_mcp.store.vectors import chunks as chunk_table
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.tracing import span

EDITED = "edited in an imported file"


class _Write(NamedTuple):
    """What a draft came to: the key of its memory, and the operation; None where the same write changes nothing. `added_relations` counts those
    that were added to a memory stored before, `expires_at` is when it expires now."""

    key: str
    operation: Operation | None
    added_relations: int
    expires_at: datetime | None


def remember(persona: Persona, draft: Draft, *, now: datetime, zone: ZoneInfo, privacy: Privacy) -> Remembered:
    """Stores a draft, and finds stored memories that are nearly equal. `stored` is False for the same write again, with the key of the first.

    Raises:
        InvalidInput: a key contains what may not be stored, or is another memory's; a relation has a type that is not known.
        MemoryNotFound: `supersedes` names no memory of this persona.
        StoreError: it could not be stored; nothing was.
    """
    draft, redaction = redacted(draft, privacy)
    chunks = split(draft.content)
    with span("store"):
        write = persona.database.write(lambda connection: _store(connection, persona.names, draft, chunks, now, zone))
    if write.operation:
        persona.log.append(persona.name, write.operation)
    similar, rivals = compared(persona, draft, write.key)
    is_new = write.operation is not None and write.operation.operation == "create"
    counts = redaction.redacted, redaction.flagged
    return Remembered(write.key, is_new, similar, rivals, *counts, added_relations=write.added_relations, expires_at=write.expires_at)


def remember_many(
    persona: Persona,
    drafts: Sequence[Draft],
    *,
    now: datetime,
    zone: ZoneInfo,
    privacy: Privacy,
    clash: Clash = "refuse",
    then: Callable[[apsw.Connection, Sequence[Outcome]], None] = lambda *_: None,
) -> list[Outcome]:
    """Stores many drafts in one commit that no other write shares, each with an outcome of its own: `stored`, `already_known`, `revised` or
    `refused`. A refused draft leaves no row, and does not stop the others.

    `clash`: what becomes of a draft whose key another memory has (`deduplication.settle`). `then` runs in the same commit, with the outcomes:
    what it raises undoes all of it. Nothing is compared with what is similar.
    """
    redacted_drafts = [_redacted_or_refused(draft, privacy) for draft in drafts]
    drafts_with_chunks = [(draft, split(draft.content)) for draft, _ in redacted_drafts if draft]

    def store(connection: apsw.Connection) -> tuple[list[Outcome], list[Operation]]:
        stored, done = _store_many(connection, persona.names, drafts_with_chunks, now, zone, privacy, clash)
        results = iter(stored)
        outcomes = [result if isinstance(result, Outcome) else _with_counts(next(results), result) for _, result in redacted_drafts]
        then(connection, outcomes)
        return outcomes, done

    outcomes, done = persona.database.write_apart(store)
    persona.log.append(persona.name, *done)
    return outcomes


def _redacted_or_refused(draft: Draft, privacy: Privacy) -> tuple[Draft, Redaction] | tuple[None, Outcome]:
    try:
        private, redaction = redacted(draft, privacy)
    except InvalidInput as error:
        return None, Outcome("", "refused", str(error))
    same = (private.content, private.questions, private.source) == (draft.content, draft.questions, draft.source)
    return (private if same else replace(private, embedded=None)), redaction  # its vectors are of the text before redaction


def _with_counts(outcome: Outcome, redaction: Redaction) -> Outcome:
    found = redaction.redacted or redaction.flagged
    return replace(outcome, redacted=redaction.redacted, flagged=redaction.flagged) if found else outcome


def _store(connection: apsw.Connection, names: KnownNames, draft: Draft, chunks: Sequence[Chunk], now: datetime, zone: ZoneInfo) -> _Write:
    """Stores a draft, or adds it to the memory of the same write."""
    if draft.relations:
        entity_linking.check_relation_types(connection, draft.relations)
    settled = settle(connection, draft, now)
    if settled:
        return _stored_again(connection, settled.key, draft, now.astimezone(zone))
    changed, operation = _insert(connection, names, draft, chunks, now, zone)
    operations.record(connection, operation)
    relation_queue.enqueue(connection, changed[:1])
    trash.update_indexes(connection, changed)
    return _Write(str(operation.key), operation, 0, draft.expires_at)


def _stored_again(connection: apsw.Connection, key: str, draft: Draft, now: datetime) -> _Write:
    """Adds to the stored memory what a repeated write has that is new: relations, and what it replaces. The later expiry of both counts, and a
    write without one removes it.

    The operation is an update if anything changed. Else a repetition more than ten minutes after the memory, which has a time of its
    own, is recorded as a confirmation, and an earlier one, a retry, is not.
    """
    memory = memories.by_keys(connection, [key])[key]
    added = entity_linking.add_missing_relations(connection, memory.id, draft.relations, now) if draft.relations else ()
    after: dict[str, Any] = {}
    if added:
        trash.update_indexes(connection, [memory.id])
        after["relations"] = [f"{relation.source} > {relation.relation} > {relation.target}" for relation in added]
    if draft.supersedes and memory.supersedes is None:
        replace_memory(connection, memory, draft.supersedes, now)
        after["supersedes"] = draft.supersedes
    expires_at = max(memory.expires_at, draft.expires_at) if memory.expires_at and draft.expires_at else None
    if expires_at != memory.expires_at:
        expiry.set_expiry(connection, memory.id, expires_at)
        after["expires_at"] = optional_to_text(expires_at)
    if after:
        operation = Operation("update", key, now, after=after)
    elif now - memory.created_at > RETRY_WINDOW:
        operation = Operation(CONFIRM, key, now)
    else:
        return _Write(key, None, 0, expires_at)
    operations.record(connection, operation)
    return _Write(key, operation, len(added), expires_at)


def _store_many(
    connection: apsw.Connection,
    names: KnownNames,
    drafts_with_chunks: Sequence[tuple[Draft, Sequence[Chunk]]],
    now: datetime,
    zone: ZoneInfo,
    privacy: Privacy,
    clash: Clash,
) -> tuple[list[Outcome], list[Operation]]:
    """The outcome of each draft, and the operations. Those of new memories are recorded together, at the end or before a revision, so that all
    are in the order of the drafts. Types in relations are not checked: what other programs write there stays part of the name."""
    outcomes: list[Outcome] = []
    done: list[Operation] = []
    created: list[Operation] = []
    new: list[int] = []
    replaced: list[int] = []
    digests = [memories.write_digest(draft) for draft, _ in drafts_with_chunks]
    known = Known.among(connection, [draft for draft, _ in drafts_with_chunks], digests)
    for (draft, chunks), digest in zip(drafts_with_chunks, digests, strict=True):
        # A draft has no savepoint: whatever raises a MemoryMCPError must do so before its first row is written.
        try:
            outcome = settle(connection, draft, now, clash) if known.may_hold(draft, digest) else None
            if outcome is None:
                (memory_id, *others), operation = _insert(connection, names, draft, chunks, now, zone, digest)
                outcome = Outcome(str(operation.key), "stored")
                created.append(operation)
                new.append(memory_id)
                replaced += others
                known.add(draft, digest)
            elif outcome.outcome == "revised":
                stored = memories.by_keys(connection, [outcome.key])[outcome.key]
                operations.record(connection, *created)
                done += created
                created.clear()
                done += revise_stored(
                    connection, names, outcome.key, _as_revision(draft, stored, has_labels=clash == "revise"), now.astimezone(zone), privacy
                )[1]
        except MemoryMCPError as error:
            outcome = Outcome(draft.restored.key or "", "refused", str(error))
        outcomes.append(outcome)
    operations.record(connection, *created)
    relation_queue.enqueue(connection, new)
    trash.update_indexes(connection, [*new, *replaced])
    return outcomes, [*done, *created]


def _as_revision(draft: Draft, stored: Memory, *, has_labels: bool) -> Revision:
    """The changes of an edited copy, which has tags and an importance of its own only if it `has_labels`. It may raise the privacy level but never lowers it: a
    copy without a level has the default one."""
    closes = is_stricter(draft.privacy_level, stored.privacy_level)
    return Revision(
        content=draft.content,
        tags=draft.tags if has_labels else None,
        importance=draft.importance if has_labels else None,
        privacy_level=draft.privacy_level if closes else None,
        reason=EDITED,
    )


def _insert(
    connection: apsw.Connection,
    names: KnownNames,
    draft: Draft,
    chunks: Sequence[Chunk],
    now: datetime,
    zone: ZoneInfo,
    digest: str | None = None,
) -> tuple[list[int], Operation]:
    """Stores a new memory, whose write has this `digest`. Returns its id with those of the memories that it replaces, and the operation,
    which is to be recorded."""
    # What is restored may replace a memory that comes later, or that is gone.
    if draft.supersedes and not draft.restored.key and not memories.by_keys(connection, [draft.supersedes]):
        raise unknown_predecessor(draft.supersedes)
    memory_id, key = memories.insert(connection, draft, now, digest)
    chunk_table.add(connection, memory_id, chunks, draft.questions)
    if draft.embedded:
        chunk_table.resplit(connection, memory_id, draft.embedded.generation, draft.embedded.chunks)
        stored_vectors.store_embedded(connection, memory_id, draft.embedded)
    entity_linking.link_entities(connection, names, memory_id, draft, now.astimezone(zone))
    replaced = _superseded_ids(connection, draft)
    if replaced:
        trash.update_graph(connection, replaced, now)
    return [memory_id, *replaced], Operation("create", key, now, after={"content": draft.content, "tags": list(draft.tags)})


def _superseded_ids(connection: apsw.Connection, draft: Draft) -> list[int]:
    """The memories that a draft replaces, directly and through its predecessor: their visibility may change."""
    if not draft.supersedes:
        return []
    direct = list(memories.by_keys(connection, [draft.supersedes]).values())
    return [*(memory.id for memory in direct), *memory_rows.replaced_by(connection, direct)]
