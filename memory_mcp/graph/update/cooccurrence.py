"""Background step: relations between entities that memories name together, links between memories, and mentions of names learned later.

A step takes a few memories from the queue, in one transaction: after a crash they are still in the queue.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Protocol

import apsw

from memory_mcp.graph.extract.extraction import extract_mentions
from memory_mcp.graph.update import entity_linking
from memory_mcp.language.names import NAMES_AT_ONCE, Mention, is_role
from memory_mcp.language.privacy.redaction import FLAG_PREFIX
from memory_mcp.language.synonyms import is_word
from memory_mcp.personas.registry import Persona
from memory_mcp.relate.links import link_by_rules
from memory_mcp.store import memories
from memory_mcp.store.graph import background_tasks, memory_links, mentions, relation_queue, relations, visibility
from memory_mcp.store.graph.entities import names, records
from memory_mcp.store.graph.memory_links import Link
from memory_mcp.store.graph.relations import Evidence, Pair

BATCH_MEMORIES = 50
# A memory that names many entities is little evidence about any two of them: only the first few are paired.
ENTITIES_LIMIT = 8
# The weight of a co-occurrence in one memory; seven memories add up to 0.8.
COOCCURRENCE_WEIGHT = 0.2
COOCCURRENCE_CONFIDENCE = 0.5
# The confidence of an entity named by a source or a tag.
LABEL_CONFIDENCE = 0.5
# Memories against which the relations of one stand, links of each at most, and how much they are believed.
COMPARED, CONTRADICTIONS_EACH, CONTRADICTION_CONFIDENCE = 40, 5, 0.5
# New names that are looked for in older memories at once: each time, all texts are read.
BATCH_NAMES = NAMES_AT_ONCE
_BETWEEN_WORDS = re.compile("[/・:：#\\s]+")


class Names(Protocol):
    """Finds names in texts beside what the rules find, such as by a dictionary."""

    def open(self) -> None: ...

    def find(self, text: str) -> Iterable[Mention]: ...


def update_graph(persona: Persona, now: datetime, further: Names | None = None) -> bool:
    """Works off one batch of the queue, with the names that `further` finds, too. Returns whether there may be more."""
    with persona.database.read() as connection:
        memories_wait, names_wait = relation_queue.length(connection) > 0, names.unread_names(connection, 1) != []
    if memories_wait:
        if further:
            further.open()  # outside of the write, which blocks all others
        persona.database.write(lambda connection: _process(connection, persona, now, further))
    elif names_wait:
        _queue_older_memories(persona)
    return memories_wait or names_wait


def _process(connection: apsw.Connection, persona: Persona, now: datetime, further: Names | None) -> None:
    waiting = relation_queue.first(connection, BATCH_MEMORIES)
    entity_linking.relink_entities(connection, persona.names, relation_queue.unnamed(connection, waiting), now, changed=False)
    if further:
        entity_linking.link_dictionary_names(connection, waiting, further.find, now)
    for label, type_ in visibility.labels_of(connection, waiting):
        for name, type_of_name in _names_in_label(label, type_):
            records.find_or_create(connection, name, type_of_name, LABEL_CONFIDENCE, now)
    relations.sum_up(connection, _cooccurrences(connection, waiting, now), now)
    memory_links.link_memories(connection, waiting, now)
    _link_contradicting(connection, waiting, now)
    link_by_rules(connection, persona.words, waiting, now)
    background_tasks.enqueue(connection, waiting)
    relation_queue.done(connection, waiting)


def _names_in_label(label: str, type_: str | None) -> list[tuple[str, str | None]]:
    """The names in a source or a tag. A source that is no role is a name; a tag that is a common word (会議, 重要) is none, as it would be
    found in every text that contains it.
    """
    if label.startswith(FLAG_PREFIX) or (type_ and is_role(label)):
        return []
    if type_:
        return [(label, type_)]
    whole = [mention for mention in extract_mentions(label, ()) if mention.end - mention.start == len(label)]
    return [(mention.name, mention.type) for mention in whole if mention.subtype is None] or (
        [(label, None)] if may_be_a_name(label) else []
    )


def may_be_a_name(tag: str) -> bool:
    """Whether a tag may be the name of an entity: it is no word of the dictionary, nor made of such words, as 会議/重要 is. A tag in lower
    case is a word.
    """
    parts = [part for part in _BETWEEN_WORDS.split(tag) if part]
    return not (tag.isascii() and tag.islower()) and any(not is_word(part) for part in parts)


def _queue_older_memories(persona: Persona) -> None:
    """Queues older memories that contain a name learned since they were stored. Those stored after this read know the names already."""
    with persona.database.read() as connection:
        learned = names.unread_names(connection, BATCH_NAMES)
        older = names.memories_containing(connection, learned)

    def queue(connection: apsw.Connection) -> None:
        relation_queue.enqueue_unnamed(connection, older)
        names.note_read_until(connection, learned[-1][0])

    persona.database.write(queue)


def _cooccurrences(connection: apsw.Connection, memory_ids: Sequence[int], now: datetime) -> set[Pair]:
    changed: set[Pair] = set()
    evidence: list[Evidence] = []
    entities = mentions.of_memories(connection, memory_ids)
    for memory in memory_ids:
        changed |= relations.remove_of_memory(connection, memory, ["co_occurrence"])
        pairs = combinations(entities.get(memory, [])[:ENTITIES_LIMIT], 2)
        evidence += [
            Evidence(first, second, "co_occurrence", COOCCURRENCE_WEIGHT, COOCCURRENCE_CONFIDENCE, "co_occurrence", memory=memory)
            for first, second in pairs
        ]
    return changed | relations.add(connection, evidence, now)


def _link_contradicting(connection: apsw.Connection, memory_ids: Sequence[int], now: datetime) -> None:
    """Links these memories to those that may contradict them by the relations that they state. It is a hint: nothing is merged or replaced."""
    current = memories.by_ids(connection, memory_ids).values()
    contradictions = [
        Link(min(memory.id, other), max(memory.id, other), "contradiction", 0.5, CONTRADICTION_CONFIDENCE, "contradiction")
        for memory in current
        if not (memory.deleted_at or memory.superseded_by or memory.kind == "summary")
        for other in sorted(memory_links.contradicting_memories(connection, memory.id, COMPARED))[:CONTRADICTIONS_EACH]
    ]
    memory_links.replace(connection, memory_ids, "contradiction", contradictions, now)
