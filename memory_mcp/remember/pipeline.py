"""The steps of storing a memory: redact → split → one transaction (deduplicate; memory, chunks, lexical rows, entities and relations,
operation, queue row) → log → similar memories. Related ones are the caller's: search/related.py.

An answer means that the memory is on the disk and can be found.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Chunk, Clash, Draft, Filters, Memory, Outcome, Remembered, Similar
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.graph.update import entity_linking
from memory_mcp.language.budget import preview
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.sentences import split
from memory_mcp.language.tokens import is_single_kanji, jaccard, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.deduplication import RETRY_WINDOW, Known, is_stricter, settle
from memory_mcp.remember.revise import Revision, replace_memory, revise_stored, unknown_predecessor
from memory_mcp.remember.validation import redacted
from memory_mcp.store import expiry, memories, memory_rows, operations, trash
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import CONFIRM, Operation
from memory_mcp.store.timestamps import optional_to_text
from memory_mcp.store.vectors import chunks as chunk_table
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.tracing import span, spanned

logger = logging.getLogger(__name__)

EDITED = "edited in an imported file"
# Nearly equal memories are reported, and the new one is stored all the same: the least Jaccard index of the tokens, and the most that are
# reported.
SIMILARITY_FLOOR, SIMILAR_LIMIT = 0.7, 5
# Nearly equal texts share nearly all tokens, so a few rare ones find them: the limits of tokens, and of rows for each token.
LOOKUP_TOKENS, LOOKUP_ROWS = 12, 200


def remember(persona: Persona, draft: Draft, *, now: datetime, zone: ZoneInfo, privacy: Privacy) -> Remembered:
    """Stores a draft, and finds stored memories that are nearly equal.

    Raises:
        InvalidInput: a key contains what may not be stored.
        MemoryNotFound: `supersedes` names no memory of this persona.
        StoreError: it could not be stored; nothing was.
    """
    draft, redaction = redacted(draft, privacy)
    chunks = split(draft.content)
    with span("store"):
        key, operation, added_relations, expires_at = persona.database.write(
            lambda connection: _store(connection, persona.names, draft, chunks, now, zone)
        )
    if operation:
        persona.log.append(persona.name, operation)
    similar, rivals = _compared(persona, draft, key)
    stored = operation is not None and operation.operation == "create"
    return Remembered(
        key,
        stored,
        similar,
        rivals,
        redaction.redacted,
        redaction.flagged,
        added_relations=added_relations,
        expires_at=expires_at,
    )


@spanned("similar")
def _compared(persona: Persona, draft: Draft, key: str) -> tuple[tuple[Similar, ...], tuple[str, ...]]:
    """Current memories nearly equal to a new one, and the keys of others that replace the same predecessor. The memory is stored
    already, so a failure here is only logged.
    """
    try:
        with persona.database.read() as connection:
            rivals = memory_rows.successors(connection, draft.supersedes) if draft.supersedes else []
            return _similar(connection, draft.content, except_key=key), tuple(rival for rival in rivals if rival != key)
    except (MemoryMCPError, apsw.Error, MemoryError, OSError) as error:
        logger.warning("%s of %s is stored, and could not be compared: %s", key, persona.name, error)
        return (), ()


def _similar(connection: apsw.Connection, content: str, except_key: str) -> tuple[Similar, ...]:
    """Current memories with nearly the tokens of `content`, the most similar first."""
    wanted = dict.fromkeys(tokens(content))
    pairs = [token for token in wanted if not is_single_kanji(token)][: LOOKUP_TOKENS * 2] or list(wanted)
    lookup = (bm25_index.rarer(connection, pairs, LOOKUP_ROWS) or pairs)[:LOOKUP_TOKENS]
    candidates = [memory_id for memory_id, _ in bm25_index.search(connection, bm25_index.Terms(lookup), Filters(), SIMILAR_LIMIT + 1)]
    near = [
        (memory, similarity)
        for memory in memories.by_ids(connection, candidates).values()
        if memory.key != except_key and (similarity := jaccard(wanted.keys(), set(tokens(memory.content)))) >= SIMILARITY_FLOOR
    ]
    nearest = sorted(near, key=lambda pair: -pair[1])[:SIMILAR_LIMIT]
    return tuple(Similar(memory.key, round(similarity, 2), preview(memory.content)) for memory, similarity in nearest)


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
    """Stores many drafts in one commit, each with an outcome of its own: `stored`, `already_known`, `revised` or `refused`.

    `then` runs in the same commit, with the outcomes: what it raises undoes all of it.
    """
    private = [_private(draft, privacy) for draft in drafts]
    wanted = [(draft, split(draft.content)) for draft, _ in private if draft]

    def store(connection: apsw.Connection) -> tuple[list[Outcome], list[Operation]]:
        stored, done = _store_many(connection, persona.names, wanted, now, zone, privacy, clash)
        results = iter(stored)
        outcomes = [result if isinstance(result, Outcome) else _with_counts(next(results), result) for _, result in private]
        then(connection, outcomes)
        return outcomes, done

    outcomes, done = persona.database.write_apart(store)
    persona.log.append(persona.name, *done)
    return outcomes


def _private(draft: Draft, privacy: Privacy) -> tuple[Draft, Redaction] | tuple[None, Outcome]:
    try:
        private, redaction = redacted(draft, privacy)
    except InvalidInput as error:
        return None, Outcome("", "refused", str(error))
    same = (private.content, private.questions, private.source) == (draft.content, draft.questions, draft.source)
    return (private if same else replace(private, embedded=None)), redaction  # its vectors are of the text before redaction


def _with_counts(outcome: Outcome, redaction: Redaction) -> Outcome:
    found = redaction.redacted or redaction.flagged
    return replace(outcome, redacted=redaction.redacted, flagged=redaction.flagged) if found else outcome


def _store(
    connection: apsw.Connection, names: KnownNames, draft: Draft, chunks: Sequence[Chunk], now: datetime, zone: ZoneInfo
) -> tuple[str, Operation | None, int, datetime | None]:
    """The key, the operation, the number of relations that a stored memory got, and when the memory expires."""
    entity_linking.check_relation_types(connection, draft.relations)
    known = settle(connection, draft, now)
    if known:
        return (known.key, *_stored_again(connection, known.key, draft, now.astimezone(zone)))
    changed, operation = _insert(connection, names, draft, chunks, now, zone)
    operations.record(connection, operation)
    relation_queue.enqueue(connection, changed[:1])
    trash.update_indexes(connection, changed)
    return str(operation.key), operation, 0, draft.expires_at


def _stored_again(connection: apsw.Connection, key: str, draft: Draft, now: datetime) -> tuple[Operation | None, int, datetime | None]:
    """Adds the new relations of a repeated write to the stored memory, and what it replaces, extends its expiry if the write's is later,
    and records the repetition. Returns the operation, the number of added relations, and when the memory expires.
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
        return None, 0, expires_at
    operations.record(connection, operation)
    return operation, len(added), expires_at


def _store_many(
    connection: apsw.Connection,
    names: KnownNames,
    split_drafts: Sequence[tuple[Draft, Sequence[Chunk]]],
    now: datetime,
    zone: ZoneInfo,
    privacy: Privacy,
    clash: Clash,
) -> tuple[list[Outcome], list[Operation]]:
    outcomes: list[Outcome] = []
    done: list[Operation] = []
    created: list[Operation] = []
    new: list[int] = []
    replaced: list[int] = []
    writes = [memories.write_digest(draft) for draft, _ in split_drafts]
    known = Known.among(connection, [draft for draft, _ in split_drafts], writes)
    for (draft, chunks), write in zip(split_drafts, writes, strict=True):
        try:
            entity_linking.check_relation_types(connection, draft.relations)
            outcome = settle(connection, draft, now, clash) if known.may_hold(draft, write) else None
            if outcome is None:
                (memory_id, *others), operation = _insert(connection, names, draft, chunks, now, zone, write)
                outcome = Outcome(str(operation.key), "stored")
                created.append(operation)
                new.append(memory_id)
                replaced += others
                known.add(draft, write)
            elif outcome.outcome == "revised":
                stored = memories.by_keys(connection, [outcome.key])[outcome.key]
                operations.record(connection, *created)
                done += created
                created.clear()
                done += revise_stored(connection, names, outcome.key, _as_revision(draft, stored), now.astimezone(zone), privacy)[1]
        except MemoryMCPError as error:
            outcome = Outcome(draft.restored.key or "", "refused", str(error))
        outcomes.append(outcome)
    operations.record(connection, *created)
    relation_queue.enqueue(connection, new)
    trash.update_indexes(connection, [*new, *replaced])
    return outcomes, [*done, *created]


def _as_revision(draft: Draft, stored: Memory) -> Revision:
    """The changes of an edited copy. It may raise the privacy level but never lowers it: a copy without a level has the default one."""
    closes = is_stricter(draft.privacy_level, stored.privacy_level)
    return Revision(
        content=draft.content,
        tags=draft.tags,
        importance=draft.importance,
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
    write: str | None = None,
) -> tuple[list[int], Operation]:
    """Stores a new memory, whose digest is `write`. Returns its id with those of the memories that it replaces, and the operation, which is to be recorded."""
    if draft.supersedes and not draft.restored.key and not memories.by_keys(connection, [draft.supersedes]):
        raise unknown_predecessor(draft.supersedes)
    memory_id, key = memories.insert(connection, draft, now, write)
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
