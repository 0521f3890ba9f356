"""What the graph learns while nobody calls: who is named together, what follows what, who was named before anybody knew the name.

A step works off a few memories, in one transaction: a crash leaves them waiting.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Protocol

import apsw

from memory_mcp.graph.extract.extraction import found_in
from memory_mcp.graph.extract.tag_names import may_be_a_name
from memory_mcp.graph.update import background_links, entity_linking
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph import background_tasks, memory_links, mentions, relation_queue, relations, visibility
from memory_mcp.store.graph.entities import names, records
from memory_mcp.store.graph.relations import Evidence, Pair
from memory_mcp.text.mention import Mention
from memory_mcp.text.privacy.redaction import FLAG_PREFIX
from memory_mcp.text.speakers import is_role

BATCH_MEMORIES = 50
# A memory that names more says little about any two of them: the first so many are paired.
TOGETHER_LIMIT = 8
# One memory that names two makes a weak relation; seven make one of 0.8.
TOGETHER_WEIGHT = 0.2
TOGETHER_CONFIDENCE = 0.5
# Who speaks, and what a memory is filed under, is a name to look for.
FILED_CONFIDENCE = 0.5
# So many new names are looked for in older memories at once.
BATCH_NAMES = 20


class Dictionary(Protocol):
    """Finds names in a text that it knows."""

    def open(self) -> None: ...

    def find(self, text: str) -> Iterable[Mention]: ...


def weave(persona: Persona, now: datetime, dictionary: Dictionary | None = None) -> bool:
    """One batch of what waits; names that a `dictionary` knows are looked for too. Returns whether there is more."""
    with persona.database.read() as connection:
        memories_wait, names_wait = relation_queue.length(connection) > 0, names.unread_names(connection, 1) != []
    if memories_wait:
        if dictionary:
            dictionary.open()  # not while a write holds up all others
        persona.database.write(lambda connection: _take_in(connection, persona, now, dictionary))
    elif names_wait:
        persona.database.write(_read_again)
    return memories_wait or names_wait


def _take_in(connection: apsw.Connection, persona: Persona, now: datetime, dictionary: Dictionary | None) -> None:
    waiting = relation_queue.first(connection, BATCH_MEMORIES)
    for memory, content in relation_queue.unnamed(connection, waiting).items():
        entity_linking.name_again(connection, persona.names, memory, content, now, changed=False)
    if dictionary:
        entity_linking.name_further(connection, waiting, dictionary.find, now)
    for label, type_ in visibility.labels_of(connection, waiting):
        for name, told in _names_of(label, type_):
            records.find_or_create(connection, name, told, FILED_CONFIDENCE, now)
    relations.sum_up(connection, _pair_up(connection, waiting, now), now)
    memory_links.link(connection, waiting, now)
    background_links.link_contradicting(connection, waiting, now)
    background_tasks.enqueue(connection, waiting)
    relation_queue.done(connection, waiting)


def _names_of(label: str, type_: str | None) -> list[tuple[str, str | None]]:
    """Whom a source or a tag names. Who speaks is somebody; a tag that is a common word (会議, 重要) would be found in every text that
    holds it, and is no name."""
    if label.startswith(FLAG_PREFIX) or (type_ and is_role(label)):
        return []
    if type_:
        return [(label, type_)]
    whole = [one for one in found_in(label, ()) if one.end - one.start == len(label) and one.subtype is None]
    return [(one.name, one.type) for one in whole] or ([(label, None)] if may_be_a_name(label) else [])


def _read_again(connection: apsw.Connection) -> None:
    """Older memories that hold a name which nobody knew when they were stored wait to be read for names once more."""
    learned = names.unread_names(connection, BATCH_NAMES)
    relation_queue.enqueue_unnamed(connection, names.memories_containing(connection, learned))
    names.note_read_until(connection, learned[-1][0])


def _pair_up(connection: apsw.Connection, memory_ids: Sequence[int], now: datetime) -> set[Pair]:
    changed: set[Pair] = set()
    evidence: list[Evidence] = []
    named = mentions.of_memories(connection, memory_ids)
    for memory in memory_ids:
        changed |= relations.remove_of_memory(connection, memory, ["co_occurrence"])
        together = combinations(named.get(memory, [])[:TOGETHER_LIMIT], 2)
        evidence += [
            Evidence(one, other, "co_occurrence", TOGETHER_WEIGHT, TOGETHER_CONFIDENCE, "co_occurrence", memory=memory)
            for one, other in together
        ]
    return changed | relations.add(connection, evidence, now)
