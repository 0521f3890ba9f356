"""Revises a memory, keeping its earlier versions, and restores one from the trash."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import NOTHING, Expiry, Memory, PrivacyLevel
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.graph.update import entity_linking
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.sentences import split
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.validation import update_flags, version_redacted
from memory_mcp.store import expiry, memories, memory_merges, memory_rows, operations, summary_rows, trash, versions
from memory_mcp.store.experience_text import read
from memory_mcp.store.graph import relation_queue, relations
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.operations import Operation
from memory_mcp.store.timestamps import to_text
from memory_mcp.store.vectors import chunks
from memory_mcp.store.versions import Version

# What is kept with a change beside the text, the tags and the importance.
LABELS = ("category", "privacy_level", "expires_at", "source", "occurred_at")


@dataclass(frozen=True, slots=True)
class Revision:
    """The changes; None leaves a field as it is. `supersedes`: the key of the memory that this one replaces, or NOTHING; `revision`: an earlier version
    to restore first.
    """

    content: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    category: str | None = None
    privacy_level: PrivacyLevel | None = None
    expires_at: Expiry | None = None
    source: str | None = None
    occurred_at: datetime | None = None
    supersedes: str | None = None
    restore: bool = False
    reason: str | None = None
    revision: int | None = None

    @property
    def changes(self) -> bool:
        """Whether any field of the memory changes."""
        fields = (self.content, self.tags, self.importance, self.revision, *(getattr(self, name) for name in LABELS))
        return any(field is not None for field in fields)


def private(revision: Revision, rules: Privacy) -> tuple[Revision, Redaction]:
    """The redacted revision, and the findings."""
    redaction = Redaction(rules)
    return replace(
        revision,
        content=redaction.optional(revision.content),
        tags=None if revision.tags is None else tuple(dict.fromkeys(redaction.texts(revision.tags))),
        category=redaction.optional(revision.category),
        source=redaction.optional(revision.source),
        reason=redaction.optional(revision.reason),
    ), redaction


def revise(persona: Persona, key: str, revision: Revision, *, now: datetime, privacy: Privacy) -> Memory:
    """The memory as it is afterwards.

    Raises:
        MemoryNotFound: this persona has no memory with that key, or it had no such revision.
        InvalidInput: it is in the trash and `restore` is not set; it has expired, and gets no other time; or there is no change.
    """
    if not (revision.changes or revision.restore or revision.supersedes):
        raise InvalidInput("nothing to revise", "only a key, or a reason, was given", "Say what is to change, such as content")
    wanted, _ = private(revision, privacy)
    memory, done = persona.database.write(lambda connection: revise_stored(connection, persona.names, key, wanted, now, privacy))
    persona.log.append(persona.name, *done)
    return memory


def expire_session(persona: Persona, session_id: str, expires_at: Expiry, *, now: datetime) -> int:
    """Changes when the memories that a session has now expire. Returns how many there are.

    Raises:
        MemoryNotFound: this persona has no memory of that session.
    """
    done = persona.database.write(lambda connection: _expire_session(connection, session_id, expires_at, now))
    persona.log.append(persona.name, *done)
    return len(done)


def _expire_session(connection: apsw.Connection, session_id: str, expires_at: Expiry, now: datetime) -> list[Operation]:
    after = {"expires_at": expiry.expiry_text(expires_at)}
    done = [
        Operation("update", key, now, before={"expires_at": before}, after=after, metadata={"reason": "expiry of its session"})
        for key, before in expiry.set_session_expiry(connection, session_id, expires_at)
    ]
    if not done:
        raise MemoryNotFound("no memory is of the session {}", "", "Take the session_id from a recall", repr(session_id[:80]))
    operations.record(connection, *done)
    return done


def relations_left(persona: Persona, memory: Memory) -> list[str]:
    """The relations that a memory still states although its last revision changed its text."""
    with persona.database.read() as connection:
        before = next((version for version in versions.of_key(connection, memory.key) if version.revision == memory.revision - 1), None)
        if before is None or before.content == memory.content:
            return []
        return relations.current_statements(connection, memory.id)


def revise_stored(
    connection: apsw.Connection, names: KnownNames, key: str, revision: Revision, now: datetime, privacy: Privacy
) -> tuple[Memory, Sequence[Operation]]:
    """The same inside a transaction, of a redacted revision: the memory afterwards, and the operations to log."""
    memory = memories.by_keys(connection, [key]).get(key)
    if memory is None:
        raise MemoryNotFound("no memory has the key {}", "", "Take the key from a recall", key)
    done: list[Operation] = []
    if memory.deleted_at is not None:
        if not revision.restore:
            raise InvalidInput(
                "{} is in the trash",
                "it was forgotten at {} UTC",
                "Send restore=true to bring it back",
                key,
                f"{memory.deleted_at:%Y-%m-%d %H:%M}",
            )
        if memory.expires_at and memory.expires_at <= now and revision.expires_at is None:
            raise InvalidInput(
                "{} has expired",
                "its time was over at {} UTC",
                "Bring it back by revise with restore=true and expires_at: a time to come, or never",
                key,
                f"{memory.expires_at:%Y-%m-%d %H:%M}",
            )
        memories.set_deleted(connection, memory.id, None)
        memory_merges.drop(connection, [key])
        trash.refresh(connection, [memory], now)
        done.append(Operation("restore", key, now, metadata=_reason(revision)))
    if revision.changes:
        done.append(_change(connection, names, memory, revision, now, privacy))
    if revision.supersedes:
        replace_memory(connection, memory, revision.supersedes, now)
        done.append(Operation("update", key, now, after={"supersedes": revision.supersedes}, metadata=_reason(revision)))
    operations.record(connection, *done)
    return memories.by_keys(connection, [key])[key], done


def replace_memory(connection: apsw.Connection, memory: Memory, key: str, now: datetime) -> None:
    """Makes a stored memory replace the one with this key; NOTHING: none any more.

    Raises:
        MemoryNotFound: no memory has the key.
        InvalidInput: it is the memory itself, or replaces it; or the memory replaces another one.
    """
    undone = key == NOTHING
    replaced = list(memories.by_keys(connection, [memory.supersedes or "" if undone else key]).values())
    if undone and not memory.supersedes:
        raise InvalidInput("{} replaces no memory", "", "Name a key in supersedes", memory.key)
    if not (undone or replaced):
        raise unknown_predecessor(key)
    ids = [*(each.id for each in replaced), *memory_rows.replaced_by(connection, replaced)]
    if memory.id in ids:
        raise InvalidInput("{} can't replace {}", "it is the same memory, or that one replaces it", "Leave supersedes out", memory.key, key)
    if not undone and memory.supersedes not in (None, key):
        raise InvalidInput("{} replaces {} already", "", "Send supersedes=nothing first", memory.key, memory.supersedes)
    memories.set_predecessor(connection, memory.id, None if undone else key)
    trash.update_graph(connection, ids, now)
    trash.update_indexes(connection, [memory.id, *ids])
    relation_queue.enqueue(connection, [memory.id])


def unknown_predecessor(key: str) -> MemoryNotFound:
    """The error for a memory that is to replace an unknown one."""
    return MemoryNotFound(
        "supersedes names {}", "this persona has no memory with that key", "Take the key from a recall, or leave supersedes out", key
    )


def _change(
    connection: apsw.Connection, names: KnownNames, memory: Memory, revision: Revision, now: datetime, privacy: Privacy
) -> Operation:
    earlier = _earlier(connection, memory, revision.revision, privacy) if revision.revision is not None else None
    versions.keep(connection, memory, revision.reason)
    base = _put_back(connection, memory, earlier) if earlier else memory
    kept = earlier or memory
    content = kept.content if revision.content is None else revision.content
    tags = kept.tags if revision.tags is None else revision.tags
    if revision.content is not None or revision.tags is not None or earlier:
        tags = update_flags(base, content, tags, privacy)
    importance = kept.importance if revision.importance is None else revision.importance
    memories.change(
        connection,
        base,
        content=content,
        tags=tags,
        importance=importance,
        now=now,
        category=revision.category,
        privacy_level=revision.privacy_level,
        expires_at=revision.expires_at,
        source=revision.source,
        occurred_at=revision.occurred_at,
    )
    questions = read(content).matched_by if memory.kind == "experience" and memory.questions else base.questions
    told = replace(base, source=revision.source or base.source, occurred_at=revision.occurred_at or base.occurred_at)
    if _searched(replace(told, content=content, questions=questions)) != _searched(memory):
        memories.set_questions(connection, memory.id, questions)
        chunks.replace(connection, memory.id, split(content), questions)
        trash.update_indexes(connection, [memory.id])
        if memory.kind != "summary":
            entity_linking.relink_entities(connection, names, {memory.id: content}, now)
    if content != memory.content or (revision.privacy_level == "secret" and memory.privacy_level != "secret"):
        summary_rows.withhold(connection, [memory], now)
    labelled = [name for name in LABELS if getattr(revision, name) is not None]
    return Operation(
        "update",
        memory.key,
        now,
        before={"content": memory.content, "tags": list(memory.tags), "importance": memory.importance, **_named(memory, labelled)},
        after={"content": content, "tags": list(tags), "importance": importance, **_named(revision, labelled)},
        metadata={**_reason(revision), **({"from_revision": earlier.revision} if earlier else {})},
    )


def _put_back(connection: apsw.Connection, memory: Memory, earlier: Version) -> Memory:
    """Restores all fields but the text from an earlier version."""
    versions.restore_further(connection, memory.id, earlier)
    return memories.by_keys(connection, [memory.key])[memory.key]


def _searched(memory: Memory) -> tuple[object, ...]:
    """The fields of a memory that are indexed."""
    return memory.content, memory.questions, memory.source, memory.session_id, memory.occurred_at


def _named(of: Memory | Revision, names: Sequence[str]) -> dict[str, str | None]:
    values = {name: getattr(of, name) for name in names}
    return {name: to_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _earlier(connection: apsw.Connection, memory: Memory, number: int, privacy: Privacy) -> Version:
    known = {version.revision: version for version in versions.of_key(connection, memory.key)}
    if number not in known:
        kept = ", ".join(str(revision) for revision in sorted(known)) or "none"
        raise MemoryNotFound("{} has no earlier revision {}", "there are {}", "See its history", memory.key, number, kept)
    return version_redacted(known[number], Redaction(privacy))


def _reason(revision: Revision) -> dict[str, str]:
    return {"reason": revision.reason} if revision.reason else {}
