"""The memories that `remember` reports as similar: current ones that are nearly equal to what was just written. It is stored all the same."""

import logging

import apsw

from memory_mcp.domain import Draft, Filters, Similar
from memory_mcp.errors import MemoryMCPError
from memory_mcp.language.budget import preview
from memory_mcp.language.tokens import is_single_kanji, jaccard, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, memory_rows
from memory_mcp.store.lexical import bm25_index
from memory_mcp.tracing import spanned

logger = logging.getLogger(__name__)

# The least Jaccard index of the tokens, and the most that are reported.
SIMILARITY_FLOOR, SIMILAR_LIMIT = 0.7, 5
# Nearly equal texts share nearly all tokens, so a few rare ones find them: the limits of tokens, and of rows for each token.
LOOKUP_TOKENS, LOOKUP_ROWS = 12, 200


@spanned("similar")
def compared(persona: Persona, draft: Draft, key: str) -> tuple[tuple[Similar, ...], tuple[str, ...]]:
    """Current memories nearly equal to what was just written, and the keys of others that replace the same predecessor. The memory is stored
    already, so a failure here is only logged.
    """
    try:
        with persona.database.read() as connection:
            rivals = memory_rows.successors(connection, draft.supersedes) if draft.supersedes else []
            return _similar(connection, draft.content, except_key=key), tuple(rival for rival in rivals if rival != key)
    except (MemoryMCPError, apsw.Error, MemoryError, OSError) as error:
        logger.warning("%s of %s is stored, and could not be compared: %s", key, persona.name, error)
        return (), ()


def _similar(connection: apsw.Connection, content: str, except_key: str) -> tuple[Similar, ...]:
    """Current memories with nearly the tokens of `content`, the most similar first."""
    wanted = dict.fromkeys(tokens(content))
    pairs = [token for token in wanted if not is_single_kanji(token)][: LOOKUP_TOKENS * 2] or list(wanted)
    lookup = (bm25_index.rarer(connection, pairs, LOOKUP_ROWS) or pairs)[:LOOKUP_TOKENS]
    candidates = [memory_id for memory_id, _ in bm25_index.search(connection, bm25_index.Terms(lookup), Filters(), SIMILAR_LIMIT + 1)]
    near = [
        (memory, similarity)
        for memory in memories.by_ids(connection, candidates).values()
        if memory.key != except_key and (similarity := jaccard(wanted.keys(), set(tokens(memory.content)))) >= SIMILARITY_FLOOR
    ]
    nearest = sorted(near, key=lambda pair: -pair[1])[:SIMILAR_LIMIT]
    return tuple(Similar(memory.key, round(similarity, 2), preview(memory.content)) for memory, similarity in nearest)
