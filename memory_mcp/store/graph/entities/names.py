"""The names of one persona's entities, kept ready to be looked for in a text."""

import json
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memory_mcp.text import name_similarity
from memory_mcp.text.gazetteer import Called, Candidate, Gazetteer, is_looked_for
from memory_mcp.text.names import bare, fold, folded_with_places

# So many new names are looked for beside the others; then all are made ready anew (10,000 names: some 20 ms).
RECENT_LIMIT = 300

# A relative is the writer's own or somebody else's, and 10月17日 is another day each year, which only the rules tell apart.
_NAMES = (
    "SELECT a.alias, e.id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
    "JOIN entities k ON k.id = coalesce(e.merged_into, e.id) WHERE a.id > ? AND coalesce(k.subtype, '') NOT IN ('family', 'day') "
    "AND k.name NOT GLOB '[0-9]*月[0-9]*日' ORDER BY a.id"
)
# What is changed since it was last looked at: one row, whether or not there are names.
_STATE = (
    "SELECT coalesce(p.value, ''), coalesce(a.id, 0), coalesce(a.mark, 0) FROM (SELECT 1) LEFT JOIN properties p ON p.name = 'names_changed' "
    "LEFT JOIN (SELECT id, mark FROM entity_aliases ORDER BY id DESC LIMIT 1) a"
)
_WHO = (
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


class KnownNames:
    """Looks for the names that a persona's database knows. Follows it: a name that was just stored is found in the next text.

    What it holds may have been read within a write that was given up: the numbers of names are given again then, so each has a mark
    of chance, and what is held is good for as long as the last of its names still has the same.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._changed: str | None = None
        self._all, self._recent = Gazetteer(()), Gazetteer(())
        self._all_until = self._recent_until = (0, 0)

    def called(self, connection: apsw.Connection, text: str) -> list[Called]:
        """The known names that may stand in the text, each with who is called so, the most mentioned first; of those that are one the one
        whose own the name is."""
        everything, recent = self._ready(connection)
        places: dict[tuple[int, int], list[int]] = {}
        folded = folded_with_places(text)
        for start, end, who in (*everything.find(*folded), *recent.find(*folded)):
            places.setdefault((start, end), []).extend(who)
        if not places:
            return []
        rows: list[tuple[Any, ...]] = connection.execute(
            _WHO, (json.dumps(sorted({entity for who in places.values() for entity in who})),)
        ).fetchall()
        return [Called(*place, _meant(connection, rows, who, text[slice(*place)])) for place, who in places.items()]

    def _ready(self, connection: apsw.Connection) -> tuple[Gazetteer, Gazetteer]:
        changed, number, mark = connection.execute(_STATE).fetchone() or ("", 0, 0)
        newest = (number, mark)
        with self._guard:
            if changed == self._changed and newest == self._recent_until:
                return self._all, self._recent
            since = self._all_until[0]
            still = connection.execute("SELECT mark FROM entity_aliases WHERE id = ?", (since,)).get if since else 0
            if changed != self._changed or still != self._all_until[1] or newest[0] - since > RECENT_LIMIT:
                self._all, self._recent = _gazetteer(connection, 0), Gazetteer(())
                self._changed, self._all_until = changed, newest
            else:
                self._recent = _gazetteer(connection, since)
            self._recent_until = newest
            return self._all, self._recent


def roots(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, int]:
    """For each of these entities what it is merged into, or itself."""
    wanted = json.dumps(list(entities))
    return dict(
        connection.execute("SELECT id, coalesce(merged_into, id) FROM entities WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
    )


def people_with_shorter_or_longer_names(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, set[int]]:
    """Of the people among these, who else may be meant: 田中 may be 田中誠, who is one of two. Merged ones as what they are merged into."""
    own = connection.execute(
        "SELECT id, name FROM entities WHERE type = 'Person' AND id IN (SELECT value FROM json_each(?))", (json.dumps(list(entities)),)
    )
    people = [(id_, bare(name)) for id_, name in list(own)]
    if not people:
        return {}
    longer = [(id_, name + " " * name.isascii()) for id_, name in people if len(name) > 1 and _may_be_a_part(name)]
    parts = ((id_, part) for id_, name in people for part in name_similarity.parts(name, "Person") if name.startswith(part))
    shorter = [(id_, part) for id_, part in parts if _may_be_a_part(part)]
    rows = connection.execute(_SHORTER_OR_LONGER, (json.dumps(longer), json.dumps(shorter)))
    found: dict[int, set[int]] = {}
    for one, other in rows:
        found.setdefault(one, set()).add(other)
    return found


def _may_be_a_part(name: str) -> bool:
    """アン is no part of アンナ as 田中 is one of 田中誠, and Minji of Minji Kim."""
    return name.isascii() or "\u4e00" <= name[-1] <= "\u9fff"


def mark_changed(connection: apsw.Connection) -> None:
    """Names were taken away, or mean somebody else now: whoever keeps them ready has to begin anew."""
    connection.execute("INSERT OR REPLACE INTO properties(name, value) VALUES ('names_changed', lower(hex(randomblob(8))))")


def unread_names(connection: apsw.Connection, limit: int) -> list[tuple[int, str]]:
    """The names that older memories were not read for yet, the first first: number and name."""
    until = connection.execute("SELECT CAST(value AS INTEGER) FROM properties WHERE name = 'names_read_until'").get or 0
    rows = connection.execute("SELECT id, alias FROM entity_aliases WHERE id > ? ORDER BY id LIMIT ?", (until, limit))
    return [(int(number), str(alias)) for number, alias in rows]


def note_read_until(connection: apsw.Connection, number: int) -> None:
    """Older memories were read for the names up to this one."""
    connection.execute("INSERT OR REPLACE INTO properties(name, value) VALUES ('names_read_until', ?)", (str(number),))


def memories_containing(connection: apsw.Connection, learned: Iterable[tuple[int, str]]) -> list[int]:
    """The memories that hold one of these names, letter by letter, and don't name the one who is called so: nobody knew, or another one was
    meant. `learned`: the names by number."""
    rows = connection.execute(
        "SELECT DISTINCT m.id FROM json_each(?) n JOIN entity_aliases a ON a.id = n.value JOIN memories m ON m.kind <> 'summary' "
        "AND instr(m.content, a.alias) WHERE NOT EXISTS (SELECT 1 FROM entity_mentions em WHERE em.memory = m.id AND em.entity = a.entity)",
        (json.dumps([number for number, alias in learned if is_looked_for(alias)]),),
    )
    return [int(row[0]) for row in rows]


def _meant(connection: apsw.Connection, rows: Sequence[tuple[Any, ...]], who: Sequence[int], written: str) -> tuple[Candidate, ...]:
    """Who may be called so; of several with it as a further name those to whom somebody gave it by hand, if there are."""
    found = _candidates([row for row in rows if row[0] in who], written)
    if len(found) == 1 or any(candidate.is_own for candidate in found):
        return found
    given = {row[0] for row in connection.execute("SELECT entity FROM entity_aliases WHERE folded = ? AND by_hand", (fold(written),))}
    return _candidates([row for row in rows if row[0] in given.intersection(who)], written) or found


def _candidates(rows: Iterable[tuple[Any, ...]], written: str) -> tuple[Candidate, ...]:
    found: dict[int, Candidate] = {}
    for entity, own_name, root, name, type_ in rows:
        is_own = bare(own_name) == bare(written)
        if root not in found or (is_own and not found[root].is_own):
            found[root] = Candidate(entity, name, type_, is_own)
    return tuple(found.values())


def _gazetteer(connection: apsw.Connection, after: int) -> Gazetteer:
    return Gazetteer(connection.execute(_NAMES, (after,)))
