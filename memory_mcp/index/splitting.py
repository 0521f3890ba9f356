"""Splits long memories into pieces by a model's own tokens: one memory, many vectors. Short memories, nearly all, are not read for this.

A memory is split before it leaves the queue or is embedded in another generation. After a crash, another model or another rule, it
is only checked again.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import LongTexts
from memory_mcp.domain import Chunk
from memory_mcp.encoders.models import Embedder
from memory_mcp.language.sentences import CHUNK_CHARACTERS, cut_at_ends, sentence_ends
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, long_texts, stored_vectors
from memory_mcp.store.vectors.stored_vectors import Unembedded

# Increase it when `pieces` splits the same text differently: long texts are then split again.
VERSION = "2"
MIN_TOKENS = 16
# A text and its label may have so many more tokens together than separately.
JOINT_TOKENS = 2
# A piece has no more tokens on its own than within its text, plus these.
SPARE_TOKENS = 32
DEFAULT_RULES = LongTexts()


def apply_rule(persona: Persona, embedder: Embedder, rules: LongTexts) -> None:
    """Queues the long texts of the embedder's generation again if they were split by another rule."""
    # What, with texts and tokens, determines the pieces of a generation.
    rule = f"{VERSION}:{rules.chunk_tokens}:{rules.overlap_tokens}:{embedder.max_tokens}"
    with persona.database.read() as connection:
        if long_texts.rule(connection, embedder.generation) == rule:
            return
    persona.database.write(lambda connection: long_texts.set_rule(connection, embedder.generation, rule, _surely_short(embedder, rules)))


def split_long(persona: Persona, embedder: Embedder, memory_ids: Collection[int], rules: LongTexts, zone: ZoneInfo) -> bool:
    """Splits those of these memories that are long for the embedder. Returns whether the pieces of any have changed."""
    generation = embedder.generation
    with persona.database.read() as connection:
        texts = long_texts.among(connection, generation, memory_ids, _surely_short(embedder, rules), zone)
        current = {text.memory_id: chunks.in_generation(connection, text.memory_id, generation) for text in texts}
    splits = [(text, pieces(text.content, text.label, embedder, rules)) for text in texts]
    changed = [(text, split) for text, split in splits if split != current[text.memory_id]]
    if not changed:
        return False

    def resplit(connection: apsw.Connection) -> None:
        for text, split in changed:
            long_texts.resplit(connection, generation, text, split)

    persona.database.write(resplit)
    return True


def next_unembedded(persona: Persona, embedder: Embedder, rules: LongTexts, zone: ZoneInfo, after: int, batch: int) -> list[Unembedded]:
    """The next chunks without a vector, after splitting the long memories among them. New pieces have the highest numbers and come last."""
    checked: set[int] = set()
    while True:
        with persona.database.read() as connection:
            unembedded = stored_vectors.unembedded(connection, embedder.generation, batch, zone, after=after)
        ready = next((index for index, chunk in enumerate(unembedded) if chunk.memory_id not in checked), len(unembedded))
        if ready or not unembedded:
            return unembedded[:ready]
        memory_ids = {chunk.memory_id for chunk in unembedded}
        if not split_long(persona, embedder, memory_ids, rules, zone):
            return unembedded
        checked |= memory_ids


def pieces(content: str, label: str, embedder: Embedder, rules: LongTexts) -> list[Chunk]:
    """Splits `content` into pieces that fit the model's limit together with `label`.

    A piece may have a few tokens more on its own than within the whole text, so where the limit is near, the tokens of each are counted.
    """
    spans, label_tokens = embedder.token_spans(content), len(embedder.token_spans(label))
    limit = embedder.max_tokens
    size = min(rules.chunk_tokens, max(limit - label_tokens, limit // 2, MIN_TOKENS)) if limit else rules.chunk_tokens
    if len(spans) <= size and (limit is None or len(spans) + label_tokens + JOINT_TOKENS <= limit):
        return [Chunk(0, len(content))]  # the usual case, which counts the tokens only once
    while True:
        overlap = min(rules.overlap_tokens * size // rules.chunk_tokens, size // 2)
        split = split_by_tokens(content, spans, size, overlap)
        if limit is None or size + label_tokens + SPARE_TOKENS <= limit or size <= MIN_TOKENS:
            return split
        longest = max(len(embedder.token_spans(label + content[piece.start : piece.end])) for piece in split)
        if longest <= limit:
            return split
        size = max(min(size - (longest - limit), size - 1), MIN_TOKENS)


def _surely_short(embedder: Embedder, rules: LongTexts) -> int:
    """A text of at most so many bytes, with its label, is certainly one piece."""
    return min(rules.chunk_tokens, embedder.max_tokens or rules.chunk_tokens, CHUNK_CHARACTERS)


def split_by_tokens(content: str, spans: Sequence[tuple[int, int]], limit: int, overlap: int) -> list[Chunk]:
    """As `split` of `language.sentences`, but measured in tokens, given their sorted (start, end) in the content. The chunks cover every character."""
    if len(spans) <= limit:
        return [Chunk(0, len(content))]
    # Several tokens may share a character, and spaces belong to none: characters between two tokens go to the earlier chunk.
    begins = list(accumulate((start for start, _ in spans), max))
    token_ends = list(accumulate((end for _, end in spans), max))
    ends = [bisect_right(token_ends, end) for end in sentence_ends(content)]
    offsets = [0, *begins[1:], len(content)]
    cuts = [(offsets[start], offsets[end]) for start, end in cut_at_ends(len(spans), ends, limit, overlap)]
    return [Chunk(start, end) for start, end in cuts if start < end]
