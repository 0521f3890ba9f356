"""The full-text index (FTS5) and its BM25 weights: a memory's text, and the texts just before and after it in its session.

The neighbors are columns of their own with smaller weights: an answer such as 「うん、好き」 is found by the question that it
answers. Merged into the body they would outweigh it (measured: docs/decisions/0002-lexical-tokens.md), and so they would beside a
long text: BM25 divides by the length of all columns, and a statement between two long answers would count as long as both. So only
neighboring turns that are both short lend each other their words. The questions stored with a
memory (docs/decisions/0016-questions-and-guesses.md), the relations that its writer stated, and what it replaced, under the same condition,
go into the column of the preceding memory, where a question would be: the memory's own text counts more.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any

import apsw

from memory_mcp.domain import Filters
from memory_mcp.language.synonyms import Synonyms
from memory_mcp.language.tokens import TOKENS_VERSION, is_grammar, is_single_kanji, tokens
from memory_mcp.store import properties
from memory_mcp.store.graph import relations
from memory_mcp.store.lexical.stored_words import COUNTED_ROWS, TokenCounts, rows_with
from memory_mcp.store.memories import CURRENT, where
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids

BODY_WEIGHT, PREVIOUS_WEIGHT, NEXT_WEIGHT = 1.0, 0.5, 0.2
# What phrases count beside words: as in sequential dependence models (Metzler and Croft, 2005), a fraction.
PHRASE_WEIGHT = 0.3
# What a synonym counts of the word itself, in rows that lack the word (docs/decisions/0047-synonyms.md).
SYNONYM_WEIGHT = 0.6
SYNONYM_ROWS = 50
# BM25 counts times the share of the question's words that a memory has to this power (docs/decisions/0050-whole-words.md). So many of the
# best are read.
WHOLE_WORDS_POWER = 0.3
WHOLE_WORDS_ROWS = 20
_BM25 = f"bm25(lexical, {BODY_WEIGHT}, {PREVIOUS_WEIGHT}, {NEXT_WEIGHT})"
# The longest turn, in tokens, that has neighbors or is one.
SHORT_TURN_TOKENS = 200
REBUILD_PAGE = 1_000
# What is near to a text has a token in fewer rows, and so many rows are read for it at most.
SHARED_ROWS, ROWS_READ = 400, 600
# In fewer rows no token is common.
FEW_ROWS = 20
# From this many rows on, only the rarest tokens of a query select rows (about LEADING_ROWS of them); the other informative ones only rank
# these rows, and common tokens and grammar are dropped (docs/decisions/0002-lexical-tokens.md).
MANY_ROWS = 5_000
LEADING_ROWS = 1_000

# The number of segment pages merged at once (10 ms on 2 cores), so that other writes get in between.
MERGED_PAGES = 100
# Up to so many segments aren't worth merging, unless those beside the largest have more than this share of all pages, and more than
# so many pages.
FEW_SEGMENTS, MOST_BESIDE_LARGEST, FEW_PAGES = 4, 0.1, 10

_VERSION_PROPERTY = "lexical_version"
# Changes with the tokens and with the content of the columns. Until .5, words that were stored at the same time could get into each other.
ROWS_VERSION = f"{TOKENS_VERSION}.9"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a search looks for: tokens, of which a repeated one counts twice, and what counts beside them.

    What has `phrases` gains `PHRASE_WEIGHT` of what BM25 gives these; what has `synonyms` or words of the `same_sound` instead of their
    word, `SYNONYM_WEIGHT` of what it gives these, and needs no other token. A memory that has more of the `words` as a whole comes before
    one that has parts of them. In a small store, where no token is common, the tokens among `fragments` only rank, and `kana_words` find.
    """

    tokens: Sequence[str]
    phrases: Sequence[str] = ()
    synonyms: Sequence[Synonyms] = ()
    same_sound: Sequence[Synonyms] = ()
    words: Sequence[str] = ()
    fragments: Set[str] = frozenset()
    kana_words: Sequence[str] = ()


def refresh(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Update the rows of these memories, of their neighbors in their sessions, and of what replaced them.

    Call it in the transaction that stored, changed, deleted, or restored the memories.
    """
    changed = dict.fromkeys(ids)
    neighbors = _neighbors(connection, list(changed))
    beside = (other for pair in neighbors.values() for other in pair if other is not None)
    others = [other for other in dict.fromkeys([*beside, *_replacing(connection, changed)]) if other not in changed]
    _write_rows(connection, [*changed, *others], {**neighbors, **(_neighbors(connection, others) if others else {})})


def is_outdated(connection: apsw.Connection) -> bool:
    """Whether the index was made by another version of this code."""
    return properties.value(connection, _VERSION_PROPERTY) != ROWS_VERSION


def rebuild_if_outdated(connection: apsw.Connection) -> None:
    """Rebuild the index if it was made by another version of this code."""
    if is_outdated(connection):
        rebuild(connection)


def rebuild(connection: apsw.Connection) -> None:
    """Rebuild the whole index."""
    connection.execute("DELETE FROM lexical")
    last = 0
    while page := [row[0] for row in connection.execute("SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT ?", (last, REBUILD_PAGE))]:
        _write_rows(connection, page, _neighbors(connection, page))
        last = page[-1]
    properties.put(connection, _VERSION_PROPERTY, ROWS_VERSION)


def is_fragmented(connection: apsw.Connection) -> bool:
    """Whether the index has enough segments that merging is worthwhile."""
    pages = _pages(connection)
    return len(pages) > FEW_SEGMENTS or _is_much_beside_largest(pages)


def merge_segments(connection: apsw.Connection) -> bool:
    """Merge a few pages: of all segments where there is much beside the largest, else of similar ones. Returns whether anything was
    merged.
    """
    return start_full_merge(connection) if _is_much_beside_largest(_pages(connection)) else merge_similar_segments(connection)


def _is_much_beside_largest(pages: Sequence[int]) -> bool:
    return sum(pages) - max(pages, default=0) > max(MOST_BESIDE_LARGEST * sum(pages), FEW_PAGES)


def _pages(connection: apsw.Connection) -> list[int]:
    """The number of pages of each segment."""
    return [row[0] for row in connection.execute("SELECT count(*) FROM lexical_idx GROUP BY segid")]


def merge_similar_segments(connection: apsw.Connection) -> bool:
    """Merge a few pages of segments of similar size, from two on (set by migration 0021). Returns whether anything was merged.

    Each write adds a segment, and a token is looked up in all of them. The larger a segment, the more rarely it is rewritten.
    """
    return _merge(connection, MERGED_PAGES)


def start_full_merge(connection: apsw.Connection) -> bool:
    """Start merging all segments into one; `merge_similar_segments` continues. Returns whether anything was merged."""
    return _merge(connection, -MERGED_PAGES)


def _merge(connection: apsw.Connection, pages: int) -> bool:
    before = connection.total_changes()
    connection.execute("INSERT INTO lexical(lexical, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2  # documented by FTS5: fewer means that nothing was left to merge


def search(
    connection: apsw.Connection,
    terms: Terms,
    filters: Filters,
    limit: int,
    also: Sequence[int] = (),
    counts: TokenCounts | None = None,
) -> list[tuple[int, float]]:
    """(memory id, BM25) of the best `limit` matches, best first, then of those of `also` that match; larger is better.

    The memories in `also` match the filters. A memory, also one of `also`, must contain an informative token: one that is neither grammar
    nor common, nor, in a small store, a fragment. In a large store it must contain one of the rarest, unless these match fewer than `limit`
    memories. `counts` caches token counts.
    """
    if not terms.tokens:
        return []
    query, phrases, words = terms.tokens, terms.phrases, terms.words
    with_phrases = dict(_matching(connection, _any_of(phrases), filters=filters, limit=limit, also=also)) if phrases and limit else {}
    rows = _rows(connection)
    if len(rows) > MANY_ROWS:
        query = _without_phrases(query)
    # The name in another script is as frequent as who has it, and rare synonyms must not replace it.
    alternatives = ((terms.synonyms, SYNONYM_ROWS), (terms.same_sound, LEADING_ROWS)) if limit else ()
    others = [other for some, _ in alternatives for each in some for other in each.others]
    if len(rows) < FEW_ROWS:
        in_kana = [word for word in terms.kana_words if " " in word and not all(map(is_grammar, word.split()))]
        counted = dict.fromkeys([*query, *in_kana, *others], 0.0)
    else:
        in_kana, counted = [], (counts or TokenCounts()).uncommon(connection, [*query, *others], rows)
    instead = " OR ".join(filter(None, (_instead(some, counted, rows, most) for some, most in alternatives if some)))
    with_synonyms = dict(_matching(connection, instead, filters=filters, limit=limit, also=also)) if instead else {}
    matching = partial(_matching, connection, filters=filters, limit=limit, also=(*also, *with_phrases))
    if not limit or filters.session_id:  # a session has fewer memories than the rarest tokens
        matches = matching(_any_of(query))
    else:
        leading, informative, ranking = _by_rarity([*query, *in_kana], terms.fragments, counted, rows)
        selecting = set(leading)
        matches = _selected(matching, leading, [token for token in (*informative, *ranking) if token not in selecting])
        if len(matches) < limit and len(leading) < len(informative):
            matches = _selected(matching, informative, ranking)
    of_first, of_others = _parts_for_words(connection, words, matches) if limit and len(words) > 1 else ({}, 1.0)
    scores = {memory_id: bm25 * of_first.get(memory_id, of_others) for memory_id, bm25 in matches}
    for weight, further in ((SYNONYM_WEIGHT, with_synonyms), (PHRASE_WEIGHT, with_phrases)):
        for memory_id, bm25 in further.items():
            scores[memory_id] = scores.get(memory_id, 0.0) + weight * bm25
    return _best(scores.items(), limit, set(also))


def _best(matches: Iterable[tuple[int, float]], limit: int, also: Set[int]) -> list[tuple[int, float]]:
    """The best `limit` of these matches, best first, then those of `also`."""
    ranked = sorted(matches, key=itemgetter(1), reverse=True)
    return ranked[:limit] + [match for match in ranked[limit:] if match[0] in also]


def _parts_for_words(
    connection: apsw.Connection, words: Sequence[str], ranked: Sequence[tuple[int, float]]
) -> tuple[dict[int, float], float]:
    """Memory → the part that is left of its BM25: the share of these words that it has as a whole, of those that any of the first has,
    smoothed, (n + 1) / (all + 1), to the power. Only the first `WHOLE_WORDS_ROWS` are read; the others, whose part is the second
    value, count as having the fewest.
    """
    had = matched(connection, words, [memory_id for memory_id, _ in ranked[:WHOLE_WORDS_ROWS]])
    held = len({word for some in had.values() for word in some})
    parts = {memory_id: ((len(some) + 1) / (held + 1)) ** WHOLE_WORDS_POWER for memory_id, some in had.items()}
    return parts, min(parts.values(), default=1.0)


def _selected(matching: Callable[..., list[tuple[int, float]]], selecting: Sequence[str], others: Sequence[str]) -> list[tuple[int, float]]:
    """The matches of any of the `selecting` tokens, each scored once: with the other tokens if it has any, else without them."""
    if not others:
        return matching(_any_of(selecting))
    return matching(*(f"({_any_of(selecting)}) {operator} ({_any_of(others)})" for operator in ("AND", "NOT")))


def scan(connection: apsw.Connection, text: str, filters: Filters, limit: int) -> list[int]:
    """Ids of the latest memories that contain `text` literally: for a query without tokens (「…」, ！？)."""
    if not text.strip():
        return []
    condition, values = where(filters)
    rows = connection.execute(
        f"SELECT m.id FROM memories m WHERE {CURRENT} AND m.kind <> 'summary' AND instr(m.content, ?) {condition} ORDER BY m.id DESC LIMIT ?",
        (text, *values, limit),
    )
    return [row[0] for row in rows]


def rarer(connection: apsw.Connection, query: Sequence[str], rows: int) -> list[str]:
    """The tokens that occur in at most `rows` rows, in order."""
    counted = rows_with(connection, query, rows + 1)
    return [token for token in query if counted[token][0] <= rows]


def rarest(connection: apsw.Connection, query: Sequence[str], limit: int, counts: TokenCounts) -> list[str]:
    """The rarest tokens of a query, at most `limit`, without common ones: what is alike has most of them. In a small store, all tokens."""
    rows = _rows(connection)
    if len(rows) <= MANY_ROWS:
        return list(query)
    counted = counts.uncommon(connection, query, rows)
    return sorted(counted, key=counted.__getitem__)[:limit]


def near_text(connection: apsw.Connection, text: Sequence[str], most_tokens: int, filters: Filters, limit: int) -> list[tuple[int, float]]:
    """(memory id, BM25) of the best matches of a stored text, best first: by the rarest of its tokens that others have, too, at most
    `most_tokens`. A kanji that is part of one of its pairs of kanji says nothing more, and tokens in `SHARED_ROWS` or more are slow to
    search by and say little; together those that are chosen are in at most `ROWS_READ` rows."""
    in_pairs = {kanji for token in text if len(token) == 2 and all(map(is_single_kanji, token)) for kanji in token}
    counted = rows_with(connection, [token for token in text if not (token in in_pairs or is_grammar(token))], SHARED_ROWS)
    held = sorted((count, token) for token, (count, _) in counted.items() if 1 < count < SHARED_ROWS)
    read = accumulate(count for count, _ in held)
    chosen = [token for (_, token), rows in zip(held[:most_tokens], read, strict=False) if rows <= ROWS_READ]
    return _matching(connection, _any_of(chosen), filters=filters, limit=limit, also=()) if chosen else []


def frequencies(connection: apsw.Connection, query: Sequence[str]) -> tuple[int, dict[str, int]]:
    """The number of rows, and in how many of them each token is, counted up to `COUNTED_ROWS`."""
    counted = rows_with(connection, list(dict.fromkeys(query)), COUNTED_ROWS)
    return len(_rows(connection)), {token: count for token, (count, _) in counted.items()}


def held(connection: apsw.Connection, query: Sequence[str], ids: Sequence[int], counts: TokenCounts) -> tuple[dict[int, float], float]:
    """Memory → the sum of how rare those of these tokens are that it has, 1 for one that no row has, nearly 0 for a common one, as if all
    rows had it; and that sum of all tokens."""
    rows = _rows(connection)
    counted, most = counts.uncommon(connection, query, rows), math.log(2 * (len(rows) + 1))
    rarities = {token: 1 - math.log(2 * min(counted.get(token, len(rows)), len(rows)) + 1) / most for token in query}
    had = matched(connection, query, ids)
    return {memory_id: sum(rarities[token] for token in had.get(memory_id, ())) for memory_id in ids}, sum(rarities.values())


def matched(connection: apsw.Connection, query: Sequence[str], ids: Sequence[int]) -> dict[int, list[str]]:
    """Memory → those tokens, and phrases of tokens, of the query that its row has."""
    # In one text, of which no token has a line break: as rows each is a step, and as JSON each character is looked at twice.
    lines = "SELECT group_concat(concat_ws('  ', id, c0, c1, c2, ''), char(10)) FROM lexical_content WHERE id IN (SELECT value FROM json_each(?))"
    text = connection.execute(lines, (json_ids(ids),)).get
    rows = text.split("\n") if text else ()
    searched = [(token, f" {token} ") for token in query]
    return {int(row[: row.index(" ")]): [token for token, written in searched if written in row] for row in rows}


def is_small(connection: apsw.Connection) -> bool:
    """Whether a store has so few memories that none of their words is common."""
    return len(_rows(connection)) < FEW_ROWS


def _rows(connection: apsw.Connection) -> range:
    """The range of all row ids."""
    ends = "SELECT coalesce((SELECT min(id) FROM lexical_docsize), 0), coalesce((SELECT max(id) + 1 FROM lexical_docsize), 0)"
    return range(*connection.execute(ends).get)


def _by_rarity(
    query: Sequence[str], fragments: Set[str], counted: Mapping[str, float], rows: range
) -> tuple[list[str], list[str], list[str]]:
    """The tokens that select rows, all that are informative, and in a store of few rows the rest, which only ranks rows. Where nothing else
    is asked for, what is common or grammar selects."""
    weak = fragments if len(rows) < FEW_ROWS else frozenset()
    content = [token for token in query if not (is_grammar(token) or token in weak)] or list(query)
    informative = [token for token in content if token in counted] or content
    among = set(informative)
    if len(rows) <= MANY_ROWS or counted.keys().isdisjoint(query):
        return informative, informative, [token for token in query if token not in among]
    leading = _rarest_in({token: counted[token] for token in informative if token in counted}, LEADING_ROWS)
    return [token for token in informative if token in leading] or informative, informative, []


def _without_phrases(query: Sequence[str]) -> list[str]:
    """The tokens, with those of the phrases among them once each: a phrase takes several times as long as its tokens."""
    parts = dict.fromkeys(token for phrase in query if " " in phrase for token in phrase.split())
    return [*(token for token in query if " " not in token), *parts]


def _instead(synonyms: Sequence[Synonyms], counted: Mapping[str, float], rows: range, most: int) -> str:
    """What matches a synonym where its word is missing, of the rarest synonyms in about `most` rows."""
    searched = dict.fromkeys(other for each in synonyms for other in each.others)
    if len(rows) >= FEW_ROWS:
        searched = _rarest_in({other: count for other in searched if (count := counted.get(other))}, most)
    found = ((each.word, [other for other in each.others if other in searched] * each.times) for each in synonyms)
    return " OR ".join(f'(({_any_of(others)}) NOT "{word}")' for word, others in found if others)


def _rarest_in(counted: Mapping[str, float], rows: int) -> dict[str, None]:
    """The rarest of these tokens, which are in about so many rows together; of equally rare ones the first."""
    rarest = sorted(counted, key=counted.__getitem__)
    covered = accumulate((counted[token] for token in rarest), initial=0.0)
    return dict.fromkeys(token for token, before in zip(rarest, covered, strict=False) if before < rows)


def _any_of(tokens_: Sequence[str]) -> str:
    return '"' + '" OR "'.join(tokens_) + '"'


def _matching(connection: apsw.Connection, *expressions: str, filters: Filters, limit: int, also: Sequence[int]) -> list[tuple[int, float]]:
    """(memory id, BM25) of the best `limit` rows that match one of these expressions, best first, then of the matches in `also`, in one
    query. No row may match two of them.
    """
    condition, values = where(filters)
    joined = "JOIN memories m ON m.id = lexical.rowid" if condition else ""
    one = f"SELECT lexical.rowid AS id, -{_BM25} AS score FROM lexical {joined} WHERE lexical MATCH ? {condition}"
    matching = " UNION ALL ".join([one] * len(expressions))
    best = "ORDER BY score DESC LIMIT ?"
    parameters = (*(value for expression in expressions for value in (expression, *values)), limit)
    if also:
        sql = f"""
            WITH matching AS MATERIALIZED ({matching}), best AS MATERIALIZED (SELECT id, score FROM matching {best})
            SELECT id, score FROM best UNION ALL
            SELECT id, score FROM matching WHERE id IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT id FROM best)
        """
        rows = bulk_rows(connection, "id, score", sql, (*parameters, json_ids(also)))
    else:  # materializing every match costs a tenth of the search
        rows = bulk_rows(connection, "id, score", f"{matching} {best}", parameters)
    return list(map(tuple, rows))


def _neighbors(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
    """Memory → the memories just before and after it in its session, by event time, not counting those in the trash."""
    before, after = adjacent_turns(connection, ids, "before"), adjacent_turns(connection, ids, "after")
    return {memory_id: (before.get(memory_id), after.get(memory_id)) for memory_id in before.keys() | after.keys()}


def _write_rows(connection: apsw.Connection, ids: Sequence[int], neighbors: Mapping[int, tuple[int | None, int | None]]) -> None:
    """Replace the rows of these memories. Memories in the trash, replaced memories, and summaries get none."""
    current = {
        row[0]
        for row in connection.execute(
            f"SELECT m.id FROM memories m WHERE {CURRENT} AND m.kind <> 'summary' AND m.id IN (SELECT value FROM json_each(?))",
            (json_ids(ids),),
        )
    }
    replaced = _replaced(connection, current)
    needed = current | set(replaced.values())
    needed |= {other for memory_id in current for other in neighbors.get(memory_id, ()) if other is not None}
    bodies = _bodies(connection, needed)
    questions, stated = _questions(connection, current), _stated(connection, current)
    connection.execute("DELETE FROM lexical WHERE rowid IN (SELECT value FROM json_each(?))", (json_ids(ids),))
    rows = []
    for memory_id in ids:
        if memory_id in current:
            before, after = (_lent(bodies, memory_id, other) for other in neighbors.get(memory_id, (None, None)))
            earlier = _lent(bodies, memory_id, replaced.get(memory_id))
            preceding = filter(None, (before, questions.get(memory_id), stated.get(memory_id), earlier))
            rows.append((memory_id, bodies[memory_id], " ".join(preceding), after))
    connection.executemany("INSERT INTO lexical(rowid, body, previous, next) VALUES (?, ?, ?, ?)", rows)


def _lent(bodies: Mapping[int, str], memory_id: int, other: int | None) -> str:
    """The tokens of a neighboring turn, or of what this one replaced, if both are short."""
    if other is None or max(bodies[memory_id].count(" "), bodies[other].count(" ")) >= SHORT_TURN_TOKENS:
        return ""
    return bodies[other]


def _replaced(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Memory → the one that it replaced, outside the trash: who asks in the words of the old one means the new one."""
    rows: Iterable[Any] = connection.execute(
        "SELECT m.id, p.id FROM memories m JOIN memories p ON p.key = m.supersedes "
        "WHERE p.deleted_at IS NULL AND m.id IN (SELECT value FROM json_each(?))",
        (json_ids(ids),),
    )
    return dict(rows)


def _replacing(connection: apsw.Connection, ids: Iterable[int]) -> list[int]:
    """The memories that replaced these."""
    rows: Iterable[Any] = connection.execute(
        "SELECT s.id FROM memories m JOIN memories s ON s.supersedes = m.key WHERE m.id IN (SELECT value FROM json_each(?))",
        (json_ids(ids),),
    )
    return [memory_id for (memory_id,) in rows]


def _bodies(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Memory → the tokens of its source and content."""
    rows: Iterable[Any] = connection.execute(
        "SELECT id, content, source FROM memories WHERE id IN (SELECT value FROM json_each(?))", (json_ids(ids),)
    )
    return {memory_id: " ".join(tokens(f"{source}: {content}" if source else content)) for memory_id, content, source in rows}


def _questions(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Memory → the tokens of the questions stored with it."""
    rows: Iterable[Any] = connection.execute(
        "SELECT id, questions FROM memories WHERE questions IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (json_ids(ids),),
    )
    return {memory_id: " ".join(tokens("\n".join(json.loads(questions)))) for memory_id, questions in rows}


def _stated(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Memory → the tokens of the relations that it states."""
    stated_relations = relations.stated_in(connection, ids, {})
    return {
        memory_id: " ".join(tokens("\n".join(f"{relation.source} {relation.relation} {relation.target}" for relation in stated)))
        for memory_id, stated in stated_relations.items()
    }
