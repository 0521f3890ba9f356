"""The lexical index: what a memory says, and what was said just before and after it in the same session.

The neighbours are columns of their own with smaller weights: an answer such as 「うん、好き」 is found by the question that
it answers. Joined into the body they would drown it (measured: docs/decisions/0002-lexical-tokens.md). The questions that a
memory is said to answer stand where a question stood that was asked just before it (docs/decisions/0016-questions-and-guesses.md), and so do
the relations that its writer stated: what it says itself counts more.
"""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import apsw

from memory_mcp.domain import Filters
from memory_mcp.store.graph import relations
from memory_mcp.store.lexical.token_frequencies import WordCounts, rows_with
from memory_mcp.store.memories import CURRENT, event_time_of, session_order, where
from memory_mcp.store.sqlite.bulk_rows import packed
from memory_mcp.text.tokens import TOKENS_VERSION, tokens

BODY_WEIGHT, PREVIOUS_WEIGHT, NEXT_WEIGHT = 1.0, 0.5, 0.2
_BM25 = f"bm25(lexical, {BODY_WEIGHT}, {PREVIOUS_WEIGHT}, {NEXT_WEIGHT})"
REBUILD_PAGE = 1_000
# From this many rows on, the rarest tokens of a query find, so many that they stand in about LEADING_ROWS rows, and the others only
# put what these found in order; what is common is dropped (docs/decisions/0002-lexical-tokens.md).
MANY_ROWS = 5_000
LEADING_ROWS = 1_000

# So many pages of segments are merged in one piece (10 ms on 2 cores): others write in between.
MERGED_PAGES = 100
# So many segments are no burden.
FEW_SEGMENTS = 4

_VERSION_PROPERTY = "lexical_version"
# What the tokens are, and which column holds what.
ROWS_VERSION = f"{TOKENS_VERSION}.2"


def refresh(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Makes the rows of these memories, and of their neighbours in their sessions, what they should be.

    Call it in the transaction that stored, changed, deleted or restored them.
    """
    changed = list(dict.fromkeys(ids))
    neighbours = _neighbours(connection, changed)
    affected = list(dict.fromkeys([*changed, *(other for pair in neighbours.values() for other in pair if other is not None)]))
    _write_rows(connection, affected)


def is_outdated(connection: apsw.Connection) -> bool:
    """Whether the index was made by another version of the rows."""
    return _version(connection) != ROWS_VERSION


def rebuild_if_outdated(connection: apsw.Connection) -> None:
    """Builds the index anew when it was made by another version of the rows."""
    if is_outdated(connection):
        rebuild(connection)


def rebuild(connection: apsw.Connection) -> None:
    """Builds the whole index anew."""
    connection.execute("DELETE FROM lexical")
    last = 0
    while page := [row[0] for row in connection.execute("SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT ?", (last, REBUILD_PAGE))]:
        _write_rows(connection, page)
        last = page[-1]
    _note_version(connection)


def is_scattered(connection: apsw.Connection) -> bool:
    """Whether the index has so many segments that it is worth merging some."""
    return int(connection.execute("SELECT count(DISTINCT segid) FROM lexical_idx").get) > FEW_SEGMENTS


def merge_alike(connection: apsw.Connection) -> bool:
    """A piece of the merge of segments of like size, from two on (as migration 0021 says to FTS5). Whether anything was merged.

    Each write adds a segment, and a token is looked up in all of them. The larger one is, the more rarely it is written anew.
    """
    return _merge(connection, MERGED_PAGES)


def begin_to_merge_all(connection: apsw.Connection) -> bool:
    """The first piece of the merge of all segments into one; what is left is `merge_alike`'s. Whether anything was merged."""
    return _merge(connection, -MERGED_PAGES)


def _merge(connection: apsw.Connection, pages: int) -> bool:
    before = connection.total_changes()
    connection.execute("INSERT INTO lexical(lexical, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2  # so says FTS5: less means that nothing was left to merge


def _version(connection: apsw.Connection) -> str | None:
    found: str | None = connection.execute("SELECT value FROM properties WHERE name = ?", (_VERSION_PROPERTY,)).get
    return found


def _note_version(connection: apsw.Connection) -> None:
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_VERSION_PROPERTY, ROWS_VERSION))


def search(
    connection: apsw.Connection,
    query: Sequence[str],
    filters: Filters,
    limit: int,
    also: Sequence[int] = (),
    counts: WordCounts | None = None,
) -> list[tuple[int, float]]:
    """(memory id, BM25) of the best `limit` matches, best first, and then of those of `also` that match; larger is better.

    `query` holds tokens; one that is in it twice counts twice. The memories in `also` pass the filters. In a large store a memory that
    has none of the rarest tokens is no match, nor is one of `also`, unless these find fewer than `limit`. `counts` has what this persona's
    index was counted for already.
    """
    if not query:
        return []
    leading, others = _by_rarity(connection, query, counts or WordCounts())
    matching = partial(_matching, connection, filters=filters, limit=limit, also=also)
    if not limit or len(leading) == len(query):
        return matching(_any_of(query))
    # Scored once, each by what it has: what finds alone is the whole score of a row that has none of the others.
    parts = [f"({_any_of(leading)}) {but} ({_any_of(others)})" for but in ("AND", "NOT")] if others else [_any_of(leading)]
    found = [match for part in parts for match in matching(part)]
    if len(found) < limit:
        return matching(_any_of(query))
    ranked = sorted(found, key=itemgetter(1), reverse=True)
    wanted = set(also)
    return ranked[:limit] + [match for match in ranked[limit:] if match[0] in wanted]


def scan(connection: apsw.Connection, text: str, filters: Filters, limit: int) -> list[int]:
    """Ids of the latest memories whose content holds `text` as it is: for a query that has no token (「…」, ！？)."""
    condition, values = where(filters)
    found = connection.execute(
        f"SELECT m.id FROM memories m WHERE {CURRENT} AND m.kind <> 'summary' AND instr(m.content, ?) {condition} ORDER BY m.id DESC LIMIT ?",
        (text, *values, limit),
    )
    return [row[0] for row in found]


def rarer(connection: apsw.Connection, query: Sequence[str], rows: int) -> list[str]:
    """The tokens that stand in at most `rows` rows, in their order."""
    counted = rows_with(connection, query, rows + 1)
    return [token for token in query if counted[token][0] <= rows]


def _by_rarity(connection: apsw.Connection, query: Sequence[str], counts: WordCounts) -> tuple[list[str], list[str]]:
    """The tokens that find, and those that only order what these found. In a small store all find."""
    ends = "SELECT coalesce((SELECT min(id) FROM lexical_docsize), 0), coalesce((SELECT max(id) FROM lexical_docsize), 0)"
    first, last = connection.execute(ends).get
    if last - first < MANY_ROWS:
        return list(query), []
    counted = counts.uncommon(connection, query, range(first, last + 1))
    if not counted:
        return list(query), []
    leading: set[str] = set()
    found = 0.0
    for token in sorted(counted, key=counted.__getitem__):
        if found >= LEADING_ROWS:
            break
        leading.add(token)
        found += counted[token]
    return [token for token in query if token in leading], [token for token in query if token in counted.keys() - leading]


def _any_of(tokens_: Sequence[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens_)


def _matching(connection: apsw.Connection, expression: str, filters: Filters, limit: int, also: Sequence[int]) -> list[tuple[int, float]]:
    """(memory id, BM25) of the best `limit` rows of an expression, best first, then of those of `also` that it matches. One walk finds both."""
    condition, values = where(filters) if filters else ("", ())
    joined = "JOIN memories m ON m.id = lexical.rowid" if filters else ""
    matching = f"SELECT lexical.rowid AS id, -{_BM25} AS score FROM lexical {joined} WHERE lexical MATCH ? {condition}"
    best = "ORDER BY score DESC LIMIT ?"
    asked = (expression, *values, limit)
    if also:
        sql = f"""
            WITH matching AS MATERIALIZED ({matching}), best AS MATERIALIZED (SELECT id, score FROM matching {best})
            SELECT id, score FROM best UNION ALL
            SELECT id, score FROM matching WHERE id IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT id FROM best)
        """
        found = packed(connection, "id, score", sql, (*asked, json.dumps(list(also))))
    else:  # to keep every match for a second look costs a tenth of the search
        found = packed(connection, "id, score", f"{matching} {best}", asked)
    return [(memory_id, bm25) for memory_id, bm25 in found]


def _neighbours(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
    """The memories just before and after each of these in its session, by event time. Those in the trash don't count."""
    rows = connection.execute(
        f"""
        SELECT m.id,
            (SELECT p.id FROM memories p WHERE p.session_id = m.session_id AND p.deleted_at IS NULL AND p.kind <> 'summary'
                AND {session_order("p", "<", "m")} ORDER BY {event_time_of("p")} DESC, p.id DESC LIMIT 1),
            (SELECT n.id FROM memories n WHERE n.session_id = m.session_id AND n.deleted_at IS NULL AND n.kind <> 'summary'
                AND {session_order("n", ">", "m")} ORDER BY {event_time_of("n")}, n.id LIMIT 1)
        FROM memories m WHERE m.id IN (SELECT value FROM json_each(?)) AND m.session_id IS NOT NULL
        """,
        (json.dumps(list(ids)),),
    )
    return {memory_id: (previous, following) for memory_id, previous, following in rows}


def _write_rows(connection: apsw.Connection, ids: Sequence[int]) -> None:
    """Replaces the rows of these memories; one in the trash, or replaced by a newer one, gets none, and neither does a summary."""
    neighbours = _neighbours(connection, ids)
    current = {
        row[0]
        for row in connection.execute(
            f"SELECT m.id FROM memories m WHERE {CURRENT} AND m.kind <> 'summary' AND m.id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
    }
    needed = current | {other for memory_id in current for other in neighbours.get(memory_id, ()) if other is not None}
    bodies = _bodies(connection, needed)
    questions, stated = _questions(connection, current), _stated(connection, current)
    connection.executemany("DELETE FROM lexical WHERE rowid = ?", [(memory_id,) for memory_id in ids])
    rows = []
    for memory_id in ids:
        if memory_id in current:
            before, after = ("" if other is None else bodies[other] for other in neighbours.get(memory_id, (None, None)))
            beside = filter(None, (before, questions.get(memory_id), stated.get(memory_id)))
            rows.append((memory_id, bodies[memory_id], " ".join(beside), after))
    connection.executemany("INSERT INTO lexical(rowid, body, previous, next) VALUES (?, ?, ?, ?)", rows)


def _bodies(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Who said it, and what."""
    rows: Iterable[Any] = connection.execute(
        "SELECT id, content, source FROM memories WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )
    return {memory_id: " ".join(tokens(f"{source}: {content}" if source else content)) for memory_id, content, source in rows}


def _questions(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The questions that those of these memories answer that were stored with some."""
    rows: Iterable[Any] = connection.execute(
        "SELECT id, questions FROM memories WHERE questions IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {memory_id: " ".join(tokens("\n".join(json.loads(questions)))) for memory_id, questions in rows}


def _stated(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The relations that those of these memories state that state some."""
    found = relations.stated_in(connection, ids, {})
    return {
        memory_id: " ".join(tokens("\n".join(f"{one.source} {one.relation} {one.target}" for one in stated)))
        for memory_id, stated in found.items()
    }
