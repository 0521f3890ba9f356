"""Who sees which entities and names: one rule, for callers and for exports.

An entity is visible while something visible supports it: a memory that mentions it or is evidence of a relation of it, a memory that is
filed under its name (its source or a tag), or a person, who created it, changed it, or related it outside of any memory. It is hidden
when only hidden memories support it. The same holds for a name: hidden memories alone contain it, state a relation by it or are filed
under it, and no person wrote it.

Which memories are hidden depends on the reader. A caller never sees the trash. An export leaves out the trash and secret memories
unless it is asked for them; that a person changed an entity is no reason to export what only secret memories support.

The rule is written as SQL fragments, not as views: the reader is a parameter. Only the comparison of names is Python's (`fold` and
`bare`: width, case, honorifics). An export compares the names in texts letter by letter, because it looks at every name there is.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import apsw

from memory_mcp.language.names import bare, fold
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.sqlite.reading import grouped, json_ids

# Of a memory m; ?1 is whether the reader sees the trash, ?2 whether it sees secret memories.
_WITHHELD = "(NOT ?2 AND m.privacy_level = 'secret')"
MEMORY_HIDDEN = f"((NOT ?1 AND m.deleted_at IS NOT NULL) OR {_WITHHELD})"
_CALLER = (False, True)
# Relations that a person stated or rejected.
BY_HAND = "SELECT id, source, target FROM relation_evidence WHERE memory IS NULL"
# Of an entity e: the rule for callers as writes keep it counted. `extraction_count` counts current memories, merged entities included.
_COUNTED = (
    "e.merged_into IS NULL AND (e.extraction_count > 0 OR e.made_by <> 'text' "
    "OR EXISTS (SELECT 1 FROM entities g WHERE g.merged_into = e.id AND g.made_by <> 'text'){})"
)
MENTIONED_OR_BY_HAND = _COUNTED.format("")
PRESENT = _COUNTED.format(
    " OR EXISTS (SELECT 1 FROM relations r WHERE r.source = e.id) OR EXISTS (SELECT 1 FROM relations r WHERE r.target = e.id)"
)

# The entities that are judged, each with the ones it is judged together with: a merged entity counts for the one that is kept.
_GROUPS = (
    "SELECT coalesce(e.merged_into, e.id) AS root, e.id FROM json_each({}) w JOIN entities e ON coalesce(e.merged_into, e.id) = +w.value"
)
_ALONE = "SELECT e.id AS root, e.id FROM json_each({}) w JOIN entities e ON e.id = w.value"
_EVERY_ENTITY = "SELECT id AS root, id FROM entities"
# The rule, labels aside. Also returns whether any memory supports the entity. `join`: for a few entities, CROSS JOIN keeps SQLite from
# reading all evidence; for all entities, it would read the evidence by index, which takes twice as long.
_HIDDEN_ENTITIES = f"""
WITH members AS MATERIALIZED ({{members}}),
support(root, memory) AS (
    SELECT g.root, em.memory FROM members g JOIN entity_mentions em ON em.entity = g.id
    UNION ALL SELECT g.root, v.memory FROM members g {{join}} relation_evidence v ON v.source = g.id WHERE v.memory IS NOT NULL
    UNION ALL SELECT g.root, v.memory FROM members g {{join}} relation_evidence v ON v.target = g.id WHERE v.memory IS NOT NULL
    UNION ALL SELECT g.root, NULL FROM members g),
related_by_hand(root) AS (
    SELECT g.root FROM members g {{join}} relation_evidence v ON v.source = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
    UNION ALL SELECT g.root FROM members g {{join}} relation_evidence v
        ON v.target = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected')
SELECT s.root, count(s.memory) > 0 FROM support s LEFT JOIN memories m ON m.id = s.memory
WHERE s.root NOT IN related_by_hand
GROUP BY s.root HAVING min(s.memory IS NULL OR {MEMORY_HIDDEN})
    AND (max({_WITHHELD}) OR s.root NOT IN (SELECT g.root FROM members g JOIN entities e ON e.id = g.id WHERE e.made_by <> 'text'))
"""
_NAMES = "SELECT g.root, a.bare FROM ({members}) g JOIN entity_aliases a ON a.entity = g.id"
# What memories that mention an entity contain, now or in earlier versions, and the names by which they state relations of it: memories in
# the trash, or the others. Older versions didn't store the name of a stated relation. Days have every form of their name by rules.
_TEXTS = f"""
WITH members AS MATERIALIZED (SELECT g.root, g.id, e.name, g.id <> g.root OR e.made_by <> 'text' AS has_further
    FROM ({_GROUPS.format("?1")}) g JOIN entities e ON e.id = g.id AND coalesce(e.subtype, '') <> 'day')
SELECT g.root, m.content || coalesce((SELECT char(10) || group_concat(o.content, char(10)) FROM memory_versions o WHERE o.key = m.key), '')
FROM {{mentions}} WHERE m.deleted_at {{deleted}}
UNION ALL SELECT g.root, coalesce(v.source_said, g.name) FROM members g CROSS JOIN relation_evidence v ON v.source = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
UNION ALL SELECT g.root, coalesce(v.target_said, g.name) FROM members g CROSS JOIN relation_evidence v ON v.target = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
"""
# CROSS JOIN: left to itself, SQLite looks at every memory. The trash is the smaller part and comes first. A stated relation can be the
# source of a further name only where the entity was merged or renamed since.
_TEXTS_IN_TRASH = _TEXTS.format(
    mentions="memories m CROSS JOIN entity_mentions em ON em.memory = m.id JOIN members g ON g.id = em.entity",
    deleted="IS NOT NULL",
    relations_of="g.has_further",
)
_TEXTS_OUTSIDE_TRASH = _TEXTS.format(
    mentions="members g CROSS JOIN entity_mentions em ON em.entity = g.id CROSS JOIN memories m ON m.id = em.memory",
    deleted="IS NULL",
    relations_of="true",
)
# Further names that no person wrote, each with whether a label can be its source: only where the entity was merged or renamed since.
_ALIASES = f"""
SELECT g.root, a.alias, a.bare, g.id <> g.root OR k.made_by <> 'text' FROM ({_GROUPS.format("?1")}) g JOIN entities k ON k.id = g.root
JOIN entity_aliases a ON a.entity = g.id AND NOT a.by_hand AND a.alias <> k.name
WHERE NOT EXISTS (SELECT 1 FROM entities h JOIN entity_aliases b ON b.entity = h.id
    WHERE coalesce(h.merged_into, h.id) = +g.root AND b.by_hand AND b.folded = a.folded)
"""
_WITHHELD_NAMES = f"""
SELECT a.entity, a.alias FROM entity_mentions em JOIN memories m ON m.id = em.memory JOIN entity_aliases a ON a.entity = em.entity
WHERE instr(m.content, a.alias) OR EXISTS (SELECT 1 FROM memory_versions o WHERE o.key = m.key AND instr(o.content, a.alias))
GROUP BY a.id HAVING min({MEMORY_HIDDEN}) AND (max({_WITHHELD}) OR NOT max(a.by_hand))
"""
# Many memories share their tags: each distinct list is parsed once.
_LABELS = """
SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND {which}
UNION ALL SELECT CAST(t.value AS TEXT) FROM (SELECT DISTINCT m.tags FROM memories m WHERE m.tags IS NOT NULL AND {which}
    UNION SELECT v.tags FROM {earlier} ON v.key = m.key WHERE v.tags IS NOT NULL AND {which}) k
JOIN json_each(iif(json_valid(k.tags), k.tags, '[]')) t ON t.type <> 'null'
"""
_FROM_VERSIONS = "memory_versions v CROSS JOIN memories m"
_LABELS_IN_TRASH = _LABELS.format(which="m.deleted_at IS NOT NULL", earlier="memories m CROSS JOIN memory_versions v")
_LABELS_OUTSIDE_TRASH = _LABELS.format(which="m.deleted_at IS NULL", earlier=_FROM_VERSIONS)
_LABELS_NOT_EXPORTED = _LABELS.format(which=MEMORY_HIDDEN, earlier=_FROM_VERSIONS)
_LABELS_EXPORTED = _LABELS.format(which=f"NOT {MEMORY_HIDDEN}", earlier=_FROM_VERSIONS)


def hidden_entities(connection: apsw.Connection, entities: Iterable[int], *, alone: bool = False) -> set[int]:
    """Those of these entities that callers don't see. Each is judged with all that is merged into it, or `alone`."""
    asked = list(entities)
    if not asked or _is_trash_empty(connection):
        return set()
    members = _ALONE if alone else _GROUPS
    rows = connection.execute(_HIDDEN_ENTITIES.format(members=members.format("?3"), join="CROSS JOIN"), (*_CALLER, json.dumps(asked)))
    unsupported = {root: bool(in_trash) for root, in_trash in rows}
    names: dict[int, set[str]] = {root: set() for root in unsupported}
    for root, name in _rows(connection, _NAMES.format(members=members.format("?1")), list(unsupported)):
        names[root].add(name)
    in_trash_labels = _labels_among(
        connection, _union(names[root] for root, in_trash in unsupported.items() if not in_trash), _LABELS_IN_TRASH
    )
    hidden = {root for root, in_trash in unsupported.items() if in_trash or names[root] & in_trash_labels}
    current = _labels_among(connection, _union(names[root] for root in hidden), _LABELS_OUTSIDE_TRASH)
    return {root for root in hidden if current.isdisjoint(names[root])}


def hidden_names(connection: apsw.Connection, entities: Iterable[int], matches: Callable[[str], bool] = bool) -> dict[int, set[str]]:
    """By entity, those of its further names that callers don't see, merged names included; only names that `matches` accepts."""
    asked = list(entities)
    if not asked or _is_trash_empty(connection):
        return {}
    aliases = _names_in_trash(connection, asked, matches)
    for entity, remaining in aliases.items():
        for _, content in _rows(connection, _TEXTS_OUTSIDE_TRASH, [entity]):
            text = fold(content)
            for alias in [alias for alias in remaining if fold(alias) in text]:
                del remaining[alias]
            if not remaining:
                break
    current = _labels_among(connection, _union(remaining.values() for remaining in aliases.values()), _LABELS_OUTSIDE_TRASH)
    hidden = {entity: {alias for alias, name in remaining.items() if name not in current} for entity, remaining in aliases.items()}
    return {entity: names for entity, names in hidden.items() if names}


def visible_and_hidden(connection: apsw.Connection, name: str) -> tuple[list[Entity], set[int]]:
    """The entities with this name that a caller sees, and the ids of those that have it only because of the trash."""
    hidden: set[int] = set()
    for candidates in records.by_name_forms(connection, name):
        entities = visible_as(connection, [entity for entity in candidates if entity.id not in hidden], name)
        hidden.update({entity.id for entity in candidates} - {entity.id for entity in entities})
        if entities:
            return entities, hidden
    return [], hidden


def visible_as(connection: apsw.Connection, candidates: Sequence[Entity], name: str) -> list[Entity]:
    """Those of these entities that a caller sees and knows by this name; each with all its names."""
    wanted = bare(name)
    return not_hidden(connection, matched_by_visible_names(connection, candidates, lambda known: bare(known) == wanted))


def matched_by_visible_names(connection: apsw.Connection, candidates: Sequence[Entity], matches: Callable[[str], bool]) -> list[Entity]:
    """Those of these entities with a visible name that matches."""
    hidden = hidden_names(connection, [entity.id for entity in candidates if not matches(entity.name)], matches)
    return [entity for entity in candidates if entity.id not in hidden or not _matches_only(entity, hidden[entity.id], matches)]


def not_hidden(connection: apsw.Connection, candidates: list[Entity]) -> list[Entity]:
    """Those of these entities that a caller sees."""
    hidden = hidden_entities(connection, [entity.id for entity in candidates if not entity.extraction_count])
    return [entity for entity in candidates if entity.id not in hidden]


def _matches_only(entity: Entity, hidden: Set[str], matches: Callable[[str], bool]) -> bool:
    """Whether all names of the entity that match are hidden."""
    matching = [name for name in (*entity.aliases, *entity.merged_names) if matches(name)]
    return bool(matching) and hidden >= set(matching)


def entities_withheld_from_export(connection: apsw.Connection, deleted: bool, secret: bool) -> set[int]:
    """The entities that only memories support which an export leaves out, merged entities judged alone. `deleted` and `secret` are
    whether it contains the trash and secret memories.
    """
    reader = (deleted, secret)
    unsupported = dict(connection.execute(_HIDDEN_ENTITIES.format(members=_EVERY_ENTITY, join="JOIN"), reader))
    names: dict[int, set[str]] = {root: set() for root, in_hidden_memories in unsupported.items() if not in_hidden_memories}
    for root, name in _rows(connection, _NAMES.format(members=_ALONE.format("?1")), list(names)):
        names[root].add(name)
    hidden = _labels_among(connection, _union(names.values()), _LABELS_NOT_EXPORTED, reader)
    exported = _labels_among(connection, hidden, _LABELS_EXPORTED, reader)
    by_label = {root for root in names if names[root] & hidden and names[root].isdisjoint(exported)}
    return by_label | {root for root, in_hidden_memories in unsupported.items() if in_hidden_memories}


def names_withheld_from_export(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, set[str]]:
    """By entity, its names that occur only in memories, or earlier versions of memories, that an export leaves out; merged entities are
    judged alone.
    """
    withheld = grouped(connection.execute(_WITHHELD_NAMES, (deleted, secret)))
    return {entity: set(aliases) for entity, aliases in withheld.items()}


def replacement_names(connection: apsw.Connection, hidden: Mapping[int, Set[str]]) -> dict[int, str]:
    """For entities with a `hidden` own name, the first of their names that is not hidden. Entities without such a name are left out."""
    rows = connection.execute(
        "SELECT a.entity, a.alias, e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE e.id IN (SELECT value FROM json_each(?)) ORDER BY a.id",
        (json_ids(hidden),),
    )
    names: dict[int, str] = {}
    for entity, alias, name in rows:
        if name in hidden[entity] and alias not in hidden[entity]:
            names.setdefault(entity, alias)
    return names


def export_names(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, str]:
    """By entity, its name in an export, if that is not its own name."""
    return replacement_names(connection, names_withheld_from_export(connection, deleted, secret))


def labels_of(connection: apsw.Connection, memory_ids: Iterable[int]) -> list[tuple[str, str | None]]:
    """What these memories are filed under: their sources, as a Person, and their tags, without a type. The source of a note or of a text
    file is its title, which is no mention of a person.
    """
    wanted = json_ids(memory_ids)
    sources = connection.execute(
        "SELECT DISTINCT m.source FROM memories m WHERE m.source IS NOT NULL AND m.id IN (SELECT value FROM json_each(?)) "
        "AND NOT (json_valid(m.metadata) AND coalesce(json_extract(m.metadata, '$.origin.format') IN ('obsidian', 'text'), 0))",
        (wanted,),
    ).fetchall()
    tags = connection.execute(
        "SELECT DISTINCT CAST(t.value AS TEXT) FROM memories m, json_each(CASE WHEN json_valid(m.tags) THEN m.tags ELSE '[]' END) t "
        "WHERE m.id IN (SELECT value FROM json_each(?))",
        (wanted,),
    ).fetchall()
    return [*((str(source), "Person") for (source,) in sources), *((str(tag), None) for (tag,) in tags)]


def all_labels(connection: apsw.Connection) -> set[str]:
    """The sources and tags of all memories, the trash included, without honorifics."""
    every_memory = [row[0] for row in connection.execute("SELECT id FROM memories")]
    return {bare(label) for label, _ in labels_of(connection, every_memory)}


def _labels_among(connection: apsw.Connection, names: Set[str], labels: str, reader: tuple[bool, ...] = ()) -> set[str]:
    """Those of these names, without honorifics, that are labels, or were before a memory's tags changed."""
    return {name for (label,) in connection.execute(labels, reader) if (name := bare(label)) in names} if names else set()


def _names_in_trash(connection: apsw.Connection, asked: list[int], matches: Callable[[str], bool]) -> dict[int, dict[str, str]]:
    """By entity, its further names that memories in the trash contain or are filed under, each with its form for comparison."""
    texts = grouped((entity, fold(content)) for entity, content in _rows(connection, _TEXTS_IN_TRASH, asked))
    aliases = [row for row in _rows(connection, _ALIASES, asked) if matches(row[1])]
    labels = _labels_among(connection, {name for _, _, name, may_be_label in aliases if may_be_label}, _LABELS_IN_TRASH)
    names: dict[int, dict[str, str]] = {}
    for entity, alias, name, may_be_label in aliases:
        if (may_be_label and name in labels) or any(fold(alias) in text for text in texts.get(entity, ())):
            names.setdefault(entity, {})[alias] = name
    return names


def _union(sets: Iterable[Iterable[str]]) -> set[str]:
    return set(chain.from_iterable(sets))


def _rows(connection: apsw.Connection, sql: str, asked: list[int]) -> Iterable[Any]:
    return connection.execute(sql, (json.dumps(asked),)) if asked else ()


def _is_trash_empty(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE deleted_at IS NOT NULL LIMIT 1").get is None
