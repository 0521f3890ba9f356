"""Which stored memories say nearly the same as a new one: reported, never refused or dropped."""

import apsw

from memory_mcp.domain import Filters, Similar
from memory_mcp.store import lexical, memories
from memory_mcp.text.budget import preview
from memory_mcp.text.tokens import is_single_kanji, jaccard, tokens

SIMILARITY_FLOOR = 0.7
CANDIDATES = 5
# A long text is looked up by its first tokens only; the comparison itself takes the whole of both.
LOOKUP_TOKENS = 24


def similar_to(connection: apsw.Connection, content: str, except_key: str) -> tuple[Similar, ...]:
    """Current memories whose tokens are nearly the tokens of `content` (Jaccard index of the two sets), the likest first."""
    wanted = set(tokens(content))
    lookup = [token for token in dict.fromkeys(tokens(content)) if not is_single_kanji(token)][:LOOKUP_TOKENS] or list(wanted)
    near = memories.by_ids(connection, [memory_id for memory_id, _ in lexical.search(connection, lookup, Filters(), CANDIDATES + 1)])
    found = [
        Similar(memory.key, round(similarity, 2), preview(memory.content))
        for memory in near.values()
        if memory.key != except_key and (similarity := jaccard(wanted, set(tokens(memory.content)))) >= SIMILARITY_FLOOR
    ]
    return tuple(sorted(found, key=lambda similar: -similar.similarity)[:CANDIDATES])
