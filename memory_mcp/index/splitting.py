"""Long memories in pieces of a model's own tokens: one memory, many vectors. Short ones, which are nearly all, are never looked at.

Who takes a memory off the to-do list, or on to another generation, has it split first. So a crash, another model or another
rule only means that it is looked at again.
"""

from collections.abc import Collection
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import LongTexts
from memory_mcp.domain import Chunk
from memory_mcp.encoders.protocols import Embedder
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, long_texts, stored_vectors
from memory_mcp.store.vectors.stored_vectors import Unembedded
from memory_mcp.text.chunk import CHUNK_CHARACTERS, split_by_tokens

# Raise it when `pieces` cuts the same text in other places: long texts are split anew then.
VERSION = "1"
LEAST_TOKENS = 16
# By so many may a text and what stands before it have more tokens together than each by itself.
JOINT_TOKENS = 2
DEFAULT_RULES = LongTexts()


def rule_of(embedder: Embedder, rules: LongTexts) -> str:
    """What the pieces of a generation depend on beside its texts and tokens."""
    return f"{VERSION}:{rules.chunk_tokens}:{rules.overlap_tokens}:{embedder.max_tokens}"


def settle(persona: Persona, embedder: Embedder, rules: LongTexts) -> None:
    """Has the long texts of the embedder's generation looked at again, if they were split by another rule."""
    said = rule_of(embedder, rules)
    with persona.database.read() as connection:
        if long_texts.rule(connection, embedder.generation) == said:
            return
    persona.database.write(lambda connection: long_texts.set_rule(connection, embedder.generation, said, _surely_short(embedder, rules)))


def split_long(persona: Persona, embedder: Embedder, memory_ids: Collection[int], rules: LongTexts, zone: ZoneInfo) -> bool:
    """Gives those of these memories that are long the pieces that the embedder wants of them. Whether any had others."""
    generation = embedder.generation
    with persona.database.read() as connection:
        texts = long_texts.among(connection, generation, memory_ids, _surely_short(embedder, rules), zone)
        current = {text.memory_id: chunks.in_generation(connection, text.memory_id, generation) for text in texts}
    wanted = [(text, pieces(text.content, text.label, embedder, rules)) for text in texts]
    changed = [(text, split) for text, split in wanted if split != current[text.memory_id]]
    if not changed:
        return False

    def resplit(connection: apsw.Connection) -> None:
        for text, split in changed:
            long_texts.resplit(connection, generation, text, split)

    persona.database.write(resplit)
    return True


def next_unembedded(persona: Persona, embedder: Embedder, rules: LongTexts, zone: ZoneInfo, after: int, batch: int) -> list[Unembedded]:
    """The next chunks that want a vector, none of a long memory that has not been split. New pieces come last, and so in their turn."""
    looked_at: set[int] = set()
    while True:
        with persona.database.read() as connection:
            found = stored_vectors.unembedded(connection, embedder.generation, batch, zone, after=after)
        ready = next((place for place, chunk in enumerate(found) if chunk.memory_id not in looked_at), len(found))
        wanting = found[:ready]
        if wanting or not found:
            return wanting
        memory_ids = {chunk.memory_id for chunk in found}
        if not split_long(persona, embedder, memory_ids, rules, zone):
            return found
        looked_at |= memory_ids


def pieces(content: str, label: str, embedder: Embedder, rules: LongTexts) -> list[Chunk]:
    """`content` in pieces that the model reads whole, each with `label` before it.

    A piece that is tokenized by itself may have a token or two more than it had within its text; so each is counted.
    """
    spans, before = embedder.token_spans(content), len(embedder.token_spans(label))
    most = embedder.max_tokens
    room = min(rules.chunk_tokens, max(most - before, most // 2, LEAST_TOKENS)) if most else rules.chunk_tokens
    if len(spans) <= room and (most is None or len(spans) + before + JOINT_TOKENS <= most):
        return [Chunk(0, len(content))]  # nearly always, and then the whole is not counted twice
    while True:
        overlap = min(rules.overlap_tokens * room // rules.chunk_tokens, room // 2)
        found = split_by_tokens(content, spans, room, overlap)
        longest = max(len(embedder.token_spans(label + content[piece.start : piece.end])) for piece in found) if most else 0
        if most is None or longest <= most or room <= LEAST_TOKENS:
            return found
        room = max(min(room - (longest - most), room - 1), LEAST_TOKENS)


def _surely_short(embedder: Embedder, rules: LongTexts) -> int:
    """A text of so many bytes, with what stands before it, is one piece."""
    return min(rules.chunk_tokens, embedder.max_tokens or rules.chunk_tokens, CHUNK_CHARACTERS)
