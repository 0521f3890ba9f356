"""The names of one persona's entities as a gazetteer in memory, and the names that older memories are still to be searched for."""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Any

import apsw

from memory_mcp.dates.spans import composed_with_places
from memory_mcp.language.names import NAMES_AT_ONCE, Candidate, Gazetteer, Match, Spellings, bare, fold, is_searchable
from memory_mcp.store import properties
from memory_mcp.store.sqlite.reading import grouped, json_ids

# Of a person, a name that is a part of another is its shorter form; 渋谷 and 渋谷駅 are two places.
SHORTENED_TYPES = frozenset({"Person"})
# New names have a gazetteer of their own, which is joined with the one before it where that has at most so many times as many.
JOINED_RATIO = 4
# Texts that are searched for new names at once.
TEXTS_AT_ONCE = 500

# Not relatives, which are relative to the writer, nor dates such as 10月17日, another day each year: only the rules can tell.
_NAMES = (
    "SELECT a.alias, e.id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
    "JOIN entities k ON k.id = coalesce(e.merged_into, e.id) WHERE a.id > ? AND coalesce(k.subtype, '') NOT IN ('family', 'day') "
    "AND k.name NOT GLOB '[0-9]*月[0-9]*日' ORDER BY a.id"
)
# One row, whether or not there are names: the mark of the last change, and the last name.
_STATE = (
    "SELECT coalesce(p.value, ''), coalesce(a.id, 0), coalesce(a.mark, 0) FROM (SELECT 1) LEFT JOIN properties p ON p.name = 'names_changed' "
    "LEFT JOIN (SELECT id, mark FROM entity_aliases ORDER BY id DESC LIMIT 1) a"
)
_ENTITIES = (
    "SELECT e.id, e.name, k.id, k.name, k.type FROM entities e JOIN entities k ON k.id = coalesce(e.merged_into, e.id) "
    "WHERE e.id IN (SELECT value FROM json_each(?)) ORDER BY k.extraction_count DESC, k.id, e.id"
)
_SHORTER_OR_LONGER = """
WITH alike(id, entity) AS (
    SELECT q.value ->> 0, a.entity FROM json_each(?1) q JOIN entity_aliases a
        ON a.bare > q.value ->> 1 AND a.bare < (q.value ->> 1) || char(1114111)
    UNION SELECT q.value ->> 0, a.entity FROM json_each(?2) q JOIN entity_aliases a ON a.bare = q.value ->> 1)
SELECT DISTINCT l.id, k.id FROM alike l JOIN entities e ON e.id = l.entity JOIN entities k ON k.id = coalesce(e.merged_into, e.id)
WHERE k.type = 'Person' AND k.id <> l.id ORDER BY 1, 2
"""

# An entity; its own name without an honorific, and the id, name and type of what it is merged into, or of itself.
_Row = tuple[int, tuple[str, int, str, str]]

_PAGE_OF_TEXTS = "SELECT id, content FROM memories WHERE id > ? AND kind <> 'summary' ORDER BY id LIMIT ?"
_UNMENTIONED = (
    "SELECT DISTINCT n.value ->> 0 FROM json_each(?) n JOIN entity_aliases a ON a.id = n.value ->> 1 WHERE NOT EXISTS "
    "(SELECT 1 FROM entity_mentions em WHERE em.memory = n.value ->> 0 AND em.entity = a.entity)"
)


class KnownNames:
    """Finds the names of a persona's database in texts, including those that were just stored.

    Names may have been read inside a write that was rolled back, and their ids are used again then. So each name has a random mark, and
    what is in memory is valid while the last of its names still has the same mark.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._changed: str | None = None
        # The oldest names first; each with the id and the mark of the last one that it was built of.
        self._known: list[tuple[Gazetteer, tuple[int, int]]] = []

    def matches(self, connection: apsw.Connection, text: str, composed: tuple[str, Sequence[int]] | None = None) -> list[Match]:
        """The known names that may be in the text, each with the entities that have it, the most mentioned first; of merged entities the
        one that has the name itself. `composed`: what `composed_with_places` gives of the text, if it was read.
        """
        spans: dict[tuple[int, int], list[int]] = {}
        folded = composed or composed_with_places(text)
        for start, end, entities in chain.from_iterable(names.find(*folded) for names, _ in self._ready(connection)):
            spans.setdefault((start, end), []).extend(entities)
        if not spans:
            return []
        rows: list[tuple[Any, ...]] = connection.execute(
            _ENTITIES, (json.dumps(sorted({entity for entities in spans.values() for entity in entities})),)
        ).fetchall()
        by_entity = [(entity, (bare(own_name), root, name, type_)) for entity, own_name, root, name, type_ in rows]
        return [Match(*span, _likely(connection, by_entity, set(entities), text[slice(*span)])) for span, entities in spans.items()]

    def _ready(self, connection: apsw.Connection) -> list[tuple[Gazetteer, tuple[int, int]]]:
        changed, number, mark = connection.execute(_STATE).fetchone() or ("", 0, 0)
        newest = (number, mark)
        with self._guard:
            known = self._known[:] if changed == self._changed else []
            while known and known[-1][1] != newest and not _is_there(connection, *known[-1][1]):
                known.pop()
            since, _ = known[-1][1] if known else (0, 0)
            if number > since:
                names = Gazetteer(connection.execute(_NAMES, (since,)))
                while known and len(known[-1][0].entries) <= min(JOINED_RATIO * len(names.entries), NAMES_AT_ONCE - len(names.entries)):
                    names = Gazetteer((), known.pop()[0], names)
                known.append((names, newest))
            self._changed, self._known = changed, known
            return known


def _is_there(connection: apsw.Connection, number: int, mark: int) -> bool:
    is_there: bool = connection.execute("SELECT mark FROM entity_aliases WHERE id = ?", (number,)).get == mark
    return is_there


def roots(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, int]:
    """For each of these entities what it is merged into, or itself."""
    wanted = json_ids(entities)
    return dict(
        connection.execute("SELECT id, coalesce(merged_into, id) FROM entities WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
    )


def people_with_shorter_or_longer_names(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, set[int]]:
    """For the people among these entities, other people that may be meant: 田中 may mean 田中誠. Merged entities as the ones that are kept."""
    own = connection.execute(
        "SELECT id, name FROM entities WHERE type = 'Person' AND id IN (SELECT value FROM json_each(?))", (json_ids(entities),)
    )
    people = [(id_, bare(name)) for id_, name in list(own)]
    if not people:
        return {}
    longer = [(id_, name + " " * name.isascii()) for id_, name in people if len(name) > 1 and _may_be_a_part(name)]
    parts = ((id_, part) for id_, name in people for part in shorter_forms(name, "Person") if name.startswith(part))
    shorter = [(id_, part) for id_, part in parts if _may_be_a_part(part)]
    rows = connection.execute(_SHORTER_OR_LONGER, (json.dumps(longer), json.dumps(shorter)))
    return {entity: set(others) for entity, others in grouped(rows).items()}


def shorter_forms(plain: str, type_: str) -> Iterator[str]:
    """Possible shorter forms of a name without honorifics: beginnings and ends of a Japanese name, the words of others."""
    if type_ not in SHORTENED_TYPES:
        return
    words = [word for word in re.split(r"[\s・･=＝]+", plain) if len(word) > 1]
    if len(words) > 1:
        yield from words
    elif not plain.isascii() and len(plain) > 2:
        yield from (plain[:size] for size in range(2, len(plain)))
        yield from (plain[-size:] for size in range(2, len(plain)))


def _may_be_a_part(name: str) -> bool:
    """Whether longer names that begin with this one are of the same person: 田中 and 田中誠, Minji and Minji Kim, but not アン and アンナ."""
    return name.isascii() or "\u4e00" <= name[-1] <= "\u9fff"


def mark_changed(connection: apsw.Connection) -> None:
    """Notes that names were removed, or mean other entities: gazetteers in memory have to be built again."""
    connection.execute("INSERT OR REPLACE INTO properties(name, value) VALUES ('names_changed', lower(hex(randomblob(8))))")


def unread_names(connection: apsw.Connection, limit: int) -> list[tuple[int, str]]:
    """The names that older memories were not searched for yet, in the order of their ids: id and name."""
    until = int(properties.value(connection, "names_read_until") or 0)
    rows = connection.execute("SELECT id, alias FROM entity_aliases WHERE id > ? ORDER BY id LIMIT ?", (until, limit))
    return [(int(number), str(alias)) for number, alias in rows]


def note_read_until(connection: apsw.Connection, number: int) -> None:
    """Notes that older memories were searched for the names up to this id."""
    properties.put(connection, "names_read_until", str(number))


def memories_containing(connection: apsw.Connection, learned: Iterable[tuple[int, str]]) -> list[int]:
    """The memories that contain one of these names, letter by letter, without a mention of the entity that has it. `learned` are names with
    their ids. Reads every text once, whatever the number of names."""
    numbers = grouped((alias, number) for number, alias in learned if is_searchable(alias))
    spellings = Spellings(list(numbers))
    memories: list[int] = []
    last = 0
    while numbers and (page := connection.execute(_PAGE_OF_TEXTS, (last, TEXTS_AT_ONCE)).fetchall()):
        pairs = [(id_, number) for id_, content in page for name in spellings.within(str(content)) for number in numbers[name]]
        memories += [int(row[0]) for row in connection.execute(_UNMENTIONED, (json.dumps(pairs),))]
        last = int(str(page[-1][0]))
    return memories


def _likely(connection: apsw.Connection, rows: Sequence[_Row], entities: Set[int], written: str) -> tuple[Candidate, ...]:
    """The entities that a name may mean; of several that have it as a further name, those that a person gave it, if there are any."""
    candidates = _candidates([row for row in rows if row[0] in entities], written)
    if len(candidates) == 1 or any(candidate.is_own for candidate in candidates):
        return candidates
    by_hand = {row[0] for row in connection.execute("SELECT entity FROM entity_aliases WHERE folded = ? AND by_hand", (fold(written),))}
    return _candidates([row for row in rows if row[0] in by_hand & entities], written) or candidates


def _candidates(rows: Iterable[_Row], written: str) -> tuple[Candidate, ...]:
    by_root: dict[int, Candidate] = {}
    plain = bare(written)
    for entity, (own_name, root, name, type_) in rows:
        is_own = own_name == plain
        if root not in by_root or (is_own and not by_root[root].is_own):
            by_root[root] = Candidate(entity, name, type_, is_own)
    return tuple(by_root.values())
