"""In about how many rows of the lexical index a token stands, and which tokens stand in too many to find anything by.

To walk a long list costs about as much as to search by it, so what was counted is kept for a while.
"""

import json
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memory_mcp.text.tokens import is_single_kanji

# Up to so many rows are counted one by one; how many more there are is told from a part of the store.
COUNTED_ROWS = 1_000
SAMPLED_PART = 10
# What stands in more than this share of all rows is common.
COMMON_SHARE, COMMON_KANJI_SHARE = 0.2, 0.1

KEPT_SECONDS = 600.0
KEPT_TOKENS = 4_096
# Counts are good for until the store has grown by this share of its rows.
KEPT_GROWTH = 0.05


class WordCounts:
    """What was counted lately in one persona's index. Follows its growth, and is told when much of it goes.

    A count decides which tokens find, which put in order and which are left out; one that is somewhat old decides it a little worse.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        # By the token's hash: words of a question, or of what was erased since, have no business here.
        self._counted: dict[int, float | None] = {}
        self._rows = range(0)
        self._until = 0.0

    def uncommon(self, connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
        """In about how many rows each of these tokens stands, without the common ones. `ids`: of all rows."""
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
        """After memories have left the index: what was common may not be so any more."""
        with self._guard:
            self._counted, self._until = {}, 0.0


def rows_with(connection: apsw.Connection, tokens: Sequence[str], limit: int, after: int = 0) -> dict[str, tuple[int, int]]:
    """How many rows beyond the id `after` each of these tokens stands in, counted up to `limit`, and the id of the last that was counted."""
    counted = """
        SELECT value, (SELECT json_array(count(*), max(id))
            FROM (SELECT rowid AS id FROM lexical WHERE lexical MATCH '"' || value || '"' AND rowid > ?3 LIMIT ?2))
        FROM json_each(?1)
    """
    rows: Iterable[Any] = connection.execute(counted, (json.dumps(list(tokens)), limit, after)) if tokens else ()
    return {token: (count, last or 0) for token, found in rows for count, last in [json.loads(found)]}


def _uncommon(connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
    """How many rows a frequent token stands in is told from how far its first ones reach and from the newest part of the store; it is
    common if it is so in both: what is spoken of only lately is what is asked for."""
    counted: dict[str, float] = {}
    reaching: dict[str, int] = {}
    for token, (count, last) in rows_with(connection, tokens, COUNTED_ROWS).items():
        if count < COUNTED_ROWS:
            counted[token] = count
        else:
            reaching[token] = last
    rows = len(ids)
    newest = rows_with(connection, list(reaching), rows, after=ids.stop - 1 - rows // SAMPLED_PART)
    for token, last in reaching.items():
        early, late = COUNTED_ROWS * rows / (last - ids.start + 1), newest[token][0] * SAMPLED_PART
        if min(early, late) <= rows * (COMMON_KANJI_SHARE if is_single_kanji(token) else COMMON_SHARE):
            counted[token] = max((early + late) / 2, COUNTED_ROWS)
    return counted
