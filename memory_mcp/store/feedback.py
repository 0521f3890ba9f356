"""Feedback on memories: verdicts, one row each, and their counts; when each memory was last shown to each caller; and how many searches
found something. And the weights of its search that a persona has instead of those of config.json, fitted to its feedback (`memory-mcp weights`).

The rows of a memory that was merged into another count for that one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import JUDGEMENTS, OUTCOMES, Feedback, Verdict
from memory_mcp.language.tokens import tokens
from memory_mcp.store import properties
from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.sqlite.reading import grouped, json_ids
from memory_mcp.store.timestamps import from_text, to_text

_IN_JUDGEMENTS = ", ".join(f"'{verdict}'" for verdict in JUDGEMENTS)
_COLUMNS = "memory, verdict, at, caller, run, query"
# A memory, and those that were merged into it, directly or through others.
_WHOLE = """
WITH RECURSIVE whole(wanted, id, key) AS (
    SELECT m.id, m.id, m.key FROM memories m WHERE m.id IN (SELECT value FROM json_each(?1))
    UNION SELECT w.wanted, m.id, m.key FROM whole w JOIN merges g ON g.into_key = w.key JOIN memories m ON m.key = g.key)
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each verdict was given on a memory, and when last."""

    times: Mapping[str, int] = field(default_factory=dict)
    last: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        return sum(map(self.of, OUTCOMES))

    @property
    def rate(self) -> float:
        """The share of the tries that worked; half of one that worked partly. 1 if it was not tried."""
        return (self.of("worked") + self.of("partly") / 2) / self.tried if self.tried else 1.0

    @property
    def balance(self) -> float:
        """The balance of the judgements, from -1 (against) to 1 (for); near 0 as long as there are few."""
        against = self.of("hurt") + self.of("stale")
        return (self.of("helped") - against) / (self.of("helped") + against + 2)

    @property
    def last_tried(self) -> datetime | None:
        return max((self.last[verdict] for verdict in (*OUTCOMES, "used", "helped") if verdict in self.last), default=None)

    def of(self, verdict: str) -> int:
        """How often this verdict was given."""
        return self.times.get(verdict, 0)

    def is_over(self, verdict: str, by: Sequence[str]) -> bool:
        """Whether one of the verdicts `by` was given later than the last `verdict`."""
        last = self.last.get(verdict)
        return any(other in self.last and (last is None or self.last[other] > last) for other in by)


def add(connection: apsw.Connection, memory_id: int, feedback: Iterable[Feedback], caller: str = "") -> None:
    """Store verdicts. Of the judgements of one run on a memory, the last one counts."""
    for entry in feedback:
        if entry.run and entry.verdict in JUDGEMENTS:
            connection.execute(
                f"DELETE FROM feedback WHERE memory = ? AND caller = ? AND run = ? AND verdict IN ({_IN_JUDGEMENTS})",
                (memory_id, caller, entry.run),
            )
        connection.execute(
            f"INSERT INTO feedback({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (memory_id, entry.verdict, to_text(entry.at), caller, entry.run, entry.query or None),
        )


def of_run(connection: apsw.Connection, run: str, caller: str) -> dict[str, list[Verdict]]:
    """The verdicts that a run of this caller has counted already, by key."""
    rows = connection.execute(
        "SELECT m.key, f.verdict FROM feedback f JOIN memories m ON m.id = f.memory WHERE f.run = ? AND f.run <> '' AND f.caller = ? ORDER BY f.rowid",
        (run, caller),
    )
    return grouped(rows)


def counts(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, Counts]:
    """Memory → its counts, for those of these that have any."""
    sql = f"{_WHOLE} SELECT w.wanted, f.verdict, count(*), max(f.at) FROM whole w JOIN feedback f ON f.memory = w.id GROUP BY w.wanted, f.verdict"
    times: dict[int, dict[str, int]] = {}
    last: dict[int, dict[str, datetime]] = {}
    for memory_id, verdict, count, at in connection.execute(sql, (json_ids(memory_ids),)):
        times.setdefault(memory_id, {})[verdict] = count
        last.setdefault(memory_id, {})[verdict] = from_text(at)
    return {memory_id: Counts(times[memory_id], last[memory_id]) for memory_id in times}


def judgements(connection: apsw.Connection, memory_ids: Sequence[int]) -> dict[int, tuple[float, str]]:
    """Memory → the balance of its judgements, and `stale` or `hurt` if that stands against it, for those of these that were judged."""
    if connection.execute(f"SELECT 1 FROM feedback WHERE verdict IN ({_IN_JUDGEMENTS}) LIMIT 1").get is None:
        return {}
    balances = {memory_id: counted.balance for memory_id, counted in counts(connection, memory_ids).items() if counted.balance}
    against = standing_against(connection, memory_ids)
    return {memory_id: (balances.get(memory_id, 0.0), against.get(memory_id, "")) for memory_id in balances.keys() | against.keys()}


def standing_against(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, str]:
    """Memory → `stale` or `hurt`, for those of these against which that stands: it was said last, of the text that the memory has now.
    `hurt` stands only where it was said more often than that it helped, because it is about one question.
    """
    rows: Iterable[Any] = connection.execute(
        f"{_WHOLE} SELECT w.wanted, max(iif(f.verdict = 'stale', f.rowid, 0)), max(iif(f.verdict = 'hurt', f.rowid, 0)), "
        "max(iif(f.verdict IN ('helped', 'worked'), f.rowid, 0)), sum(f.verdict = 'hurt'), sum(f.verdict = 'helped') "
        "FROM whole w JOIN memories m ON m.id = w.wanted JOIN feedback f ON f.memory = w.id "
        "WHERE f.verdict IN ('stale', 'hurt', 'helped', 'worked') AND (m.revision = 1 OR f.at > m.updated_at) GROUP BY w.wanted",
        (json_ids(memory_ids),),
    )
    standing: dict[int, str] = {}
    for memory_id, stale, hurt, helped, times_hurt, times_helped in rows:
        if stale > helped:
            standing[memory_id] = "stale"
        elif hurt > helped and times_hurt > times_helped:
            standing[memory_id] = "hurt"
    return standing


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, list[Feedback]]:
    """Memory → its verdicts in their order, as an export has them."""
    rows = connection.execute(
        "SELECT memory, verdict, at, run, query FROM feedback WHERE memory IN (SELECT value FROM json_each(?)) ORDER BY rowid",
        (json_ids(memory_ids),),
    )
    return grouped((memory_id, Feedback(verdict, from_text(at), run, query or "")) for memory_id, verdict, at, run, query in rows)


def labelled(connection: apsw.Connection) -> list[tuple[str, str, str]]:
    """The judgements that say which query they are about, oldest first: query, key and verdict."""
    rows: Iterable[Any] = connection.execute(
        f"SELECT f.query, m.key, f.verdict FROM feedback f JOIN memories m ON m.id = f.memory "
        f"WHERE f.query IS NOT NULL AND f.verdict IN ({_IN_JUDGEMENTS}) AND m.deleted_at IS NULL ORDER BY f.at, f.rowid"
    )
    return list(rows)


def forget_queries(connection: apsw.Connection, texts: Iterable[str]) -> None:
    """Drop the queries that share a word with one of these texts, which are erased for good: a query may quote them."""
    words = {token for text in texts for token in tokens(text)}
    queries = [row[0] for row in connection.execute("SELECT DISTINCT query FROM feedback WHERE query IS NOT NULL")]
    quoting = [query for query in queries if not words.isdisjoint(tokens(query))]
    if quoting:
        connection.execute("UPDATE feedback SET query = NULL WHERE query IN (SELECT value FROM json_each(?))", (json.dumps(quoting),))


def record_showings(connection: apsw.Connection, showings: Mapping[tuple[str, str], datetime], kept_since: datetime) -> None:
    """Record when memories were last shown, (caller, key) → when, and drop what is older than `kept_since`."""
    connection.executemany(
        "INSERT INTO showings(memory, caller, at) SELECT id, ?, ? FROM memories WHERE key = ? ON CONFLICT DO UPDATE SET at = excluded.at",
        [(caller, to_text(at), key) for (caller, key), at in showings.items()],
    )
    connection.execute("DELETE FROM showings WHERE at < ?", (to_text(kept_since),))


def last_shown(connection: apsw.Connection, caller: str, keys: Sequence[str]) -> dict[str, datetime]:
    """Key → when the memory was last shown to this caller, as far as that is written down."""
    rows = connection.execute(
        "SELECT m.key, s.at FROM memories m JOIN showings s ON s.memory = m.id AND s.caller = ? WHERE m.key IN (SELECT value FROM json_each(?))",
        (caller, json.dumps(list(keys))),
    )
    return {key: from_text(at) for key, at in rows}


def record_searches(connection: apsw.Connection, searches: Mapping[date, tuple[int, int]]) -> None:
    """Add to the numbers of searches: day → how many there were, and how many of them found something."""
    connection.executemany(
        "INSERT INTO searches VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET asked = asked + excluded.asked, answered = answered + excluded.answered",
        [(day.isoformat(), *numbers) for day, numbers in searches.items()],
    )


@dataclass(frozen=True, slots=True)
class Overview:
    """How recall does: searches by day (day, asked, answered), the numbers of verdicts, how many current memories there are and were
    ever shown, and how many of those shown at least `often` times were never used or found helpful.
    """

    searches: tuple[tuple[str, int, int], ...]
    verdicts: Mapping[str, int]
    memories: int
    shown: int
    unused: int


_CURRENT_ONES = "m.deleted_at IS NULL AND m.kind <> 'summary'"
_UNUSED = f"{_CURRENT_ONES} AND m.usage_count >= ? AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.memory = m.id AND f.verdict IN ('used', 'helped', 'worked'))"
_HURT = (
    f"{_CURRENT_ONES} AND m.id IN (SELECT memory FROM feedback WHERE verdict IN ({_IN_JUDGEMENTS}) "
    "GROUP BY memory HAVING sum(iif(verdict = 'helped', -1, 1)) > 0)"
)
_LISTS = {
    "never_shown": (f"{_CURRENT_ONES} AND m.usage_count < ?", "m.created_at"),
    "shown_and_unused": (_UNUSED, "m.usage_count DESC"),
    "hurt": (f"{_HURT} AND m.usage_count >= ?", "m.id DESC"),
}


def overview(connection: apsw.Connection, days: int, often: int) -> Overview:
    """The numbers of a persona, with the last `days` days that had searches."""
    searches: list[Any] = connection.execute("SELECT day, asked, answered FROM searches ORDER BY day DESC LIMIT ?", (days,)).fetchall()
    verdicts = dict(connection.execute("SELECT verdict, count(*) FROM feedback GROUP BY verdict"))
    total, shown = connection.execute(
        f"SELECT count(*), count(*) FILTER (WHERE m.usage_count > 0) FROM memories m WHERE {_CURRENT_ONES}"
    ).get
    unused = connection.execute(f"SELECT count(*) FROM memories m WHERE {_UNUSED}", (often,)).get
    return Overview(tuple(reversed(searches)), verdicts, total, shown, unused)


def listed(connection: apsw.Connection, which: str, limit: int, often: int) -> list[int]:
    """The ids of the first memories that were never shown (the oldest first), shown `often` but never used, or judged as hurting."""
    condition, order = _LISTS[which]
    least = {"never_shown": 1, "shown_and_unused": often, "hurt": 0}[which]
    return [row[0] for row in connection.execute(f"SELECT m.id FROM memories m WHERE {condition} ORDER BY {order} LIMIT ?", (least, limit))]


_WEIGHTS = "fusion_weights"
# What may be fitted.
FITTED = ("dense_weight", "session_weight", "graph_weight", "graph_weight_dense", "rerank_weight")


def own_weights(database: Database) -> Mapping[str, float]:
    """The weights that the persona has instead of those of config.json, usually none. Read in every search."""
    return database.kept("own weights", lambda: _read(database))


def set_own_weights(connection: apsw.Connection, weights: Mapping[str, float]) -> None:
    """Give the persona weights of its own; without any it has those of config.json again."""
    if weights:
        properties.put(connection, _WEIGHTS, json.dumps(dict(weights)))
    else:
        properties.remove(connection, _WEIGHTS)


def with_own_weights(database: Database, settings: Settings) -> Settings:
    """The settings with the persona's own weights."""
    own = own_weights(database)
    return with_weights(settings, own) if own else settings


def with_weights(settings: Settings, weights: Mapping[str, float]) -> Settings:
    """The settings with other weights of the fusion."""
    return settings.model_copy(update={"fusion": settings.fusion.model_copy(update=dict(weights))})


def _read(database: Database) -> Mapping[str, float]:
    with database.read_statement() as connection:
        stored = properties.value(connection, _WEIGHTS)
    return {name: value for name, value in json.loads(stored).items() if name in FITTED} if stored else {}
