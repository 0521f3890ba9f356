"""Estimates in how many rows of the full-text index a token occurs, and which tokens are too common to select rows by.

Counting a frequent token costs about as much as searching by it, so the counts are cached for a while.
"""

import json
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
from pydantic_core import from_json

from memory_mcp.language.tokens import is_single_kanji
from memory_mcp.store.lexical.stored_words import StoredWords

# Up to so many rows are counted exactly; larger frequencies are estimated from a part of the store.
COUNTED_ROWS = 1_000
SAMPLED_PART = 10
# A token in more than this share of all rows is common.
COMMON_SHARE, COMMON_KANJI_SHARE = 0.2, 0.1
# The same in a store that is small enough to count all rows: only words in nearly every memory, such as the user's name.
COMMON_SHARE_OF_FEW = 0.5

KEPT_SECONDS = 600.0
KEPT_TOKENS = 4_096
# Counts are valid until the store has grown by this share of its rows.
KEPT_GROWTH = 0.05


class TokenCounts:
    """Cached counts of one persona's index, invalidated as it grows; call `clear` after deletions. `stored`: its words by their sound.

    Counts decide which tokens select, which only rank, and which are dropped; slightly old counts only decide slightly worse.
    """

    def __init__(self) -> None:
        self.stored = StoredWords()
        self._guard = threading.Lock()
        # By the token's hash, so that words of queries and of erased memories aren't kept.
        self._counted: dict[int, float | None] = {}
        self._rows = range(0)
        self._until = 0.0

    def uncommon(self, connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
        """Token → its approximate number of rows, without common tokens. `ids` is the range of all row ids."""
        with self._guard:
            grown = ids.start != self._rows.start or not 0 <= ids.stop - self._rows.stop <= len(self._rows) * KEPT_GROWTH
            if grown or time.monotonic() > self._until or len(self._counted) > KEPT_TOKENS:
                self._counted, self._rows, self._until = {}, ids, time.monotonic() + KEPT_SECONDS
            kept = self._counted
        new = [token for token in tokens if hash(token) not in kept]
        if new:
            counted = _uncommon(connection, new, ids)
            kept.update((hash(token), counted.get(token)) for token in new)
        return {token: rows for token in tokens if (rows := kept[hash(token)]) is not None}

    def clear(self) -> None:
        """Forget all counts, after memories left the index."""
        with self._guard:
            self._counted, self._until = {}, 0.0


def rows_with(connection: apsw.Connection, tokens: Sequence[str], limit: int, after: int = 0) -> dict[str, tuple[int, int]]:
    """Token → in how many rows after the id `after` it occurs, counted up to `limit`, and the id of the last row counted."""
    counted = """
        SELECT value, (SELECT json_array(count(*), max(id))
            FROM (SELECT rowid AS id FROM lexical WHERE lexical MATCH '"' || value || '"' AND rowid > ?3 LIMIT ?2))
        FROM json_each(?1)
    """
    rows: Iterable[Any] = connection.execute(counted, (json.dumps(list(tokens)), limit, after)) if tokens else ()
    return {token: (count, last or 0) for token, result in rows for count, last in [from_json(result)]}


def held(connection: apsw.Connection, phrases: Sequence[str]) -> set[str]:
    """Those of these phrases of tokens that occur in a row."""
    found = connection.execute(
        """SELECT json_group_array(value) FROM json_each(?) WHERE EXISTS (SELECT 1 FROM lexical WHERE lexical MATCH '"' || value || '"')""",
        (json.dumps(list(phrases)),),
    )
    return set(from_json(found.get))


def _uncommon(connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
    """Estimate frequent tokens twice: from how far their first rows reach, and from the newest part of the store. A token is common
    only if both estimates say so, because users ask for recent topics."""
    counted: dict[str, float] = {}
    reaching: dict[str, int] = {}
    rows = len(ids)
    for token, (count, last) in rows_with(connection, tokens, COUNTED_ROWS).items():
        if count >= COUNTED_ROWS:
            reaching[token] = last
        elif count <= rows * COMMON_SHARE_OF_FEW:
            counted[token] = count
    newest = rows_with(connection, list(reaching), rows, after=ids.stop - 1 - rows // SAMPLED_PART)
    for token, last in reaching.items():
        early, late = COUNTED_ROWS * rows / (last - ids.start + 1), newest[token][0] * SAMPLED_PART
        if min(early, late) <= rows * (COMMON_KANJI_SHARE if is_single_kanji(token) else COMMON_SHARE):
            counted[token] = max((early + late) / 2, COUNTED_ROWS)
    return counted
