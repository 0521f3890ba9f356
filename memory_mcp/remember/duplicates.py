"""Finds stored memories nearly equal to a new one; they are reported, and the new one is stored all the same."""

import apsw

from memory_mcp.domain import Filters, Similar
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.text.budget import preview
from memory_mcp.text.tokens import is_single_kanji, jaccard, tokens

SIMILARITY_FLOOR = 0.7
CANDIDATES = 5
# Nearly equal texts share nearly all tokens, so a few rare ones find them: the limits of tokens, and of rows for each token.
LOOKUP_TOKENS, LOOKUP_ROWS = 12, 200


def similar_to(connection: apsw.Connection, content: str, except_key: str) -> tuple[Similar, ...]:
    """Current memories with nearly the tokens of `content` (Jaccard index of the two sets), the most similar first."""
    wanted = dict.fromkeys(tokens(content))
    pairs = [token for token in wanted if not is_single_kanji(token)][: LOOKUP_TOKENS * 2] or list(wanted)
    lookup = (bm25_index.rarer(connection, pairs, LOOKUP_ROWS) or pairs)[:LOOKUP_TOKENS]
    near = memories.by_ids(connection, [memory_id for memory_id, _ in bm25_index.search(connection, lookup, Filters(), CANDIDATES + 1)])
    similar = [
        Similar(memory.key, round(similarity, 2), preview(memory.content))
        for memory in near.values()
        if memory.key != except_key and (similarity := jaccard(wanted.keys(), set(tokens(memory.content)))) >= SIMILARITY_FLOOR
    ]
    return tuple(sorted(similar, key=lambda memory: -memory.similarity)[:CANDIDATES])
