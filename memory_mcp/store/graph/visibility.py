"""What only the trash holds of the graph, and no door tells until it is taken out again: whom only its memories speak of or are filed under,
and further names that only they have and nobody put down by hand."""

import json
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import chain
from typing import Any

import apsw

from memory_mcp.text.names import bare, fold

# Who or what is asked about, by ?1, with all that is one with it.
_WANTED = (
    "SELECT coalesce(e.merged_into, e.id) AS root, e.id FROM json_each(?1) w JOIN entities e ON coalesce(e.merged_into, e.id) = +w.value"
)
_SPEAKS = """
SELECT g.root, em.memory FROM wanted g JOIN entity_mentions em ON em.entity = g.id
UNION ALL SELECT g.root, v.memory FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id WHERE v.memory IS NOT NULL
UNION ALL SELECT g.root, v.memory FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id WHERE v.memory IS NOT NULL
"""
_ALONE = "SELECT e.id AS root, e.id FROM json_each(?1) w JOIN entities e ON e.id = w.value"
# Of whom nothing speaks but memories in the trash, and whether these do: of whom nothing does, somebody may be filed under.
_UNSPOKEN = """
WITH wanted AS MATERIALIZED ({wanted}), speaks AS ({speaks} UNION ALL SELECT g.root, NULL FROM wanted g)
SELECT s.root, count(s.memory) > 0 FROM speaks s LEFT JOIN memories m ON m.id = s.memory
WHERE s.root NOT IN (SELECT g.root FROM wanted g JOIN entities e ON e.id = g.id WHERE e.made_by <> 'text'
    UNION ALL SELECT g.root FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
    UNION ALL SELECT g.root FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected')
GROUP BY s.root HAVING min(s.memory IS NULL OR m.deleted_at IS NOT NULL)
"""
_CALLED = "SELECT g.root, a.bare FROM ({wanted}) g JOIN entity_aliases a ON a.entity = g.id"
# What memories that name somebody say or said before they were changed, and by which names they state relations of him: those in the trash, or
# the others. One that an older version stored did not keep the name. Days are told by rules: one name stands for every form.
_SAY = f"""
WITH wanted AS MATERIALIZED (SELECT g.root, g.id, e.name, g.id <> g.root OR e.made_by <> 'text' AS has_further
    FROM ({_WANTED}) g JOIN entities e ON e.id = g.id AND coalesce(e.subtype, '') <> 'day')
SELECT g.root, m.content || coalesce((SELECT char(10) || group_concat(o.content, char(10)) FROM memory_versions o WHERE o.key = m.key), '')
FROM {{mentions}} WHERE m.deleted_at {{deleted}}
UNION ALL SELECT g.root, coalesce(v.source_said, g.name) FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
UNION ALL SELECT g.root, coalesce(v.target_said, g.name) FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
"""
# CROSS: left to itself, SQLite looks at all memories there are. The trash is the smaller part: looked through first. A relation makes a further
# name only where whoever it names was merged or renamed since.
_SAYING_IN_THE_TRASH = _SAY.format(
    mentions="memories m CROSS JOIN entity_mentions em ON em.memory = m.id JOIN wanted g ON g.id = em.entity",
    deleted="IS NOT NULL",
    relations_of="g.has_further",
)
_SAYING = _SAY.format(
    mentions="wanted g CROSS JOIN entity_mentions em ON em.entity = g.id CROSS JOIN memories m ON m.id = em.memory",
    deleted="IS NULL",
    relations_of="true",
)
# Each with whether a source or a tag may have given it: that is a further name only where he was merged or renamed since.
_ALIASES = f"""
SELECT g.root, a.alias, a.bare, g.id <> g.root OR k.made_by <> 'text' FROM ({_WANTED}) g JOIN entities k ON k.id = g.root
JOIN entity_aliases a ON a.entity = g.id AND NOT a.by_hand AND a.alias <> k.name
WHERE NOT EXISTS (SELECT 1 FROM entities h JOIN entity_aliases b ON b.entity = h.id
    WHERE coalesce(h.merged_into, h.id) = +g.root AND b.by_hand AND b.folded = a.folded)
"""


def hidden_entities(connection: apsw.Connection, entities: Iterable[int], *, alone: bool = False) -> set[int]:
    """Those of these entities of whom only memories in the trash speak, or are filed under them: each with all that is merged into it, or
    `alone`. Whoever was made or changed by hand, or was related so, is told."""
    asked = list(entities)
    if not asked or _is_empty(connection):
        return set()
    wanted = _ALONE if alone else _WANTED
    unspoken = {root: bool(spoken) for root, spoken in _rows(connection, _UNSPOKEN.format(wanted=wanted, speaks=_SPEAKS), asked)}
    called: dict[int, set[str]] = {root: set() for root in unspoken}
    for root, name in _rows(connection, _CALLED.format(wanted=wanted), list(unspoken)):
        called[root].add(name)
    forgotten = labels_in_trash(connection, _all(called[root] for root, spoken in unspoken.items() if not spoken))
    hidden = {root for root, spoken in unspoken.items() if spoken or called[root] & forgotten}
    current = labels_outside_trash(connection, _all(called[root] for root in hidden))
    return {root for root in hidden if current.isdisjoint(called[root])}


def hidden_names(connection: apsw.Connection, entities: Iterable[int], fits: Callable[[str], bool] = bool) -> dict[int, set[str]]:
    """By entity, those of its further names that only memories in the trash hold, in whatever case and width, and nobody put down by hand;
    of those that `fits` is true for."""
    asked = list(entities)
    if not asked or _is_empty(connection):
        return {}
    aliases = _names_of_the_trash(connection, asked, fits)
    for entity, left in aliases.items():
        for _, content in _rows(connection, _SAYING, [entity]):
            text = fold(content)
            for alias in [alias for alias in left if fold(alias) in text]:
                del left[alias]
            if not left:
                break
    current = labels_outside_trash(connection, _all(left.values() for left in aliases.values()))
    kept = {entity: {alias for alias, name in left.items() if name not in current} for entity, left in aliases.items()}
    return {entity: left for entity, left in kept.items() if left}


def _names_of_the_trash(connection: apsw.Connection, asked: list[int], fits: Callable[[str], bool]) -> dict[int, dict[str, str]]:
    """By entity, its further names that memories in the trash hold or are filed under, with how each is compared."""
    forgotten: dict[int, list[str]] = {}
    for entity, content in _rows(connection, _SAYING_IN_THE_TRASH, asked):
        forgotten.setdefault(entity, []).append(fold(content))
    known = [row for row in _rows(connection, _ALIASES, asked) if fits(row[1])]
    filed = labels_in_trash(connection, {name for _, _, name, may_be_filed in known if may_be_filed})
    found: dict[int, dict[str, str]] = {}
    for entity, alias, name, may_be_filed in known:
        if (may_be_filed and name in filed) or any(fold(alias) in text for text in forgotten.get(entity, ())):
            found.setdefault(entity, {})[alias] = name
    return found


def _all(sets: Iterable[Iterable[str]]) -> set[str]:
    return set(chain.from_iterable(sets))


def _rows(connection: apsw.Connection, sql: str, asked: list[int]) -> Iterable[Any]:
    return connection.execute(sql, (json.dumps(asked),)) if asked else ()


def _is_empty(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE deleted_at IS NOT NULL LIMIT 1").get is None


# Many memories have the same tags: each list is taken apart once.
_LABELS = """
SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND m.deleted_at {deleted}
UNION ALL SELECT CAST(t.value AS TEXT) FROM (SELECT DISTINCT m.tags FROM memories m WHERE m.tags IS NOT NULL AND m.deleted_at {deleted}
    UNION SELECT v.tags FROM {earlier} ON v.key = m.key WHERE v.tags IS NOT NULL AND m.deleted_at {deleted}) k
JOIN json_each(iif(json_valid(k.tags), k.tags, '[]')) t ON t.type <> 'null'
"""
# The trash is the smaller part: looked through first.
_IN_THE_TRASH = _LABELS.format(deleted="IS NOT NULL", earlier="memories m CROSS JOIN memory_versions v")
_OPEN = _LABELS.format(deleted="IS NULL", earlier="memory_versions v CROSS JOIN memories m")


def labels_of(connection: apsw.Connection, memory_ids: Iterable[int]) -> list[tuple[str, str | None]]:
    """Who said these memories, as a Person, and what they are tagged with, of an unknown type."""
    wanted = json.dumps(list(memory_ids))
    sources = connection.execute(
        "SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND m.id IN (SELECT value FROM json_each(?))", (wanted,)
    ).fetchall()
    tags = connection.execute(
        "SELECT DISTINCT CAST(t.value AS TEXT) FROM memories m, json_each(CASE WHEN json_valid(m.tags) THEN m.tags ELSE '[]' END) t "
        "WHERE m.id IN (SELECT value FROM json_each(?))",
        (wanted,),
    ).fetchall()
    return [*((str(source), "Person") for (source,) in sources), *((str(tag), None) for (tag,) in tags)]


def all_labels(connection: apsw.Connection) -> set[str]:
    """The names under which memories are filed, those in the trash too: who said them, and their tags. Without honorifics."""
    every = [row[0] for row in connection.execute("SELECT id FROM memories")]
    return {bare(label) for label, _ in labels_of(connection, every)}


def labels_in_trash(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """Those of these names, without honorifics, that memories in the trash are filed under, or were before their tags were changed."""
    return _filed(connection, names, _IN_THE_TRASH)


def labels_outside_trash(connection: apsw.Connection, names: Set[str]) -> set[str]:
    """The same of all other memories."""
    return _filed(connection, names, _OPEN)


def _filed(connection: apsw.Connection, names: Set[str], labels: str) -> set[str]:
    return {name for (label,) in connection.execute(labels) if (name := bare(label)) in names} if names else set()


# Of a memory m.
_WITHHELD = "(NOT ?2 AND m.privacy_level = 'secret')"
STAYS = f"((NOT ?1 AND m.deleted_at IS NOT NULL) OR {_WITHHELD})"
SAID = "SELECT id, source, target FROM relation_evidence WHERE memory IS NULL"
_HIDDEN = f"""
SELECT t.entity FROM (
    SELECT entity, memory FROM entity_mentions
    UNION ALL SELECT source, memory FROM relation_evidence WHERE memory IS NOT NULL
    UNION ALL SELECT target, memory FROM relation_evidence WHERE memory IS NOT NULL) t
JOIN memories m ON m.id = t.memory JOIN entities e ON e.id = t.entity
GROUP BY t.entity HAVING min({STAYS}) AND (max({_WITHHELD}) OR max(e.made_by = 'text'))
EXCEPT SELECT source FROM ({SAID} AND validation_status <> 'rejected')
EXCEPT SELECT target FROM ({SAID} AND validation_status <> 'rejected')
"""
_HELD = f"""
SELECT a.entity, a.alias FROM entity_mentions em JOIN memories m ON m.id = em.memory JOIN entity_aliases a ON a.entity = em.entity
WHERE instr(m.content, a.alias) OR EXISTS (SELECT 1 FROM memory_versions o WHERE o.key = m.key AND instr(o.content, a.alias))
GROUP BY a.id HAVING min({STAYS}) AND (max({_WITHHELD}) OR NOT max(a.by_hand))
"""


def entities_withheld_from_export(connection: apsw.Connection, deleted: bool, secret: bool) -> set[int]:
    """The entities of which only memories speak that stay. Merges aside."""
    return {row[0] for row in connection.execute(_HIDDEN, (deleted, secret))}


def names_withheld_from_export(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, set[str]]:
    """By entity, merges aside, those of its names that memories which name it hold, or held before they were changed, and none of them leaves."""
    found: dict[int, set[str]] = {}
    for entity, alias in connection.execute(_HELD, (deleted, secret)):
        found.setdefault(entity, set()).add(alias)
    return found


def replacement_names(connection: apsw.Connection, held: Mapping[int, Set[str]]) -> dict[int, str]:
    """Of the entities whose own name is among those that are `held`: the first of their names that is not. Who has none keeps his own."""
    rows = connection.execute(
        "SELECT a.entity, a.alias, e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE e.id IN (SELECT value FROM json_each(?)) ORDER BY a.id",
        (json.dumps(list(held)),),
    )
    found: dict[int, str] = {}
    for entity, alias, name in rows:
        if name in held[entity] and alias not in held[entity]:
            found.setdefault(entity, alias)
    return found


def export_names(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, str]:
    """By entity, the name that it leaves by, where that is not its own."""
    return replacement_names(connection, names_withheld_from_export(connection, deleted, secret))
