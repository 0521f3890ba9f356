"""Which current memories are near to one that was just stored: whoever wrote it may know that one of them no longer holds.

They share nouns or names with it, or their vectors stand out as near to its own: that of the text as the index embeds it, so that the index
finds it in the cache.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import apsw

from memory_mcp import lexicon, time_limit
from memory_mcp.domain import Filters, Memory
from memory_mcp.encoders.models import Embedder, Models, Vectors
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.errors import MemoryMCPError
from memory_mcp.language.analysis import Analysis, analysis
from memory_mcp.language.tokens import is_grammar, is_single_kanji, is_unspaced, tokens
from memory_mcp.patterns import bounded
from memory_mcp.personas.registry import Persona
from memory_mcp.relate.news import EVENT, PARTS, POLAR, VALUE, WORDS, chains
from memory_mcp.search.meaning import Meaning, from_meaning, similarities
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.time_limit import on_thread

RELATED_LIMIT = 3
# So many are found by words, and by meaning: the memory itself, and others that say nearly the same, are among them.
FOUND = 7
# Of a long text so many characters are searched, and so many of its rarest tokens.
LONGEST, TOKENS = 500, 12
# The share that a related memory has of what the subjects of the text count by BM25, all of which the text itself has; and how much nearer
# than the next one by meaning is what stands out, in units of the model's spread. Of e5, 45 of 60 everyday changes are so much nearer to
# what they change, and none of ten texts is to what it has nothing to do with.
LEAST_WORDS, LEAST_GAP = 0.25, 1.33
# So long may an answer wait for the vector, and for the search.
EMBEDDING_SECONDS, SEARCH_SECONDS = 0.3, 0.5

# The memory is stored already: nothing that goes wrong here may fail the answer.
FAILURES = (MemoryMCPError, apsw.Error, ArithmeticError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)

_PART = bounded(PARTS["part_of_noun"])
# Words that any text has, as tokens.
_TELLING = frozenset(token for word in lexicon.words("en", "vague", "relating", "telling") for token in tokens(word))

logger = logging.getLogger(__name__)


def related(
    persona: Persona, key: str, known: Collection[str], *, models: Models, zone: ZoneInfo, now: datetime, indexes: IndexCache | None
) -> list[Memory]:
    """At most `RELATED_LIMIT` memories near to the stored one with this key, the nearest first, without those of the keys `known`; none
    where they can't be found in time."""
    try:
        with on_behalf_of(persona.name):
            meaning = _meaning_of(persona, key, models, zone, indexes) if models.loaded and indexes else None
            with time_limit.limited(SEARCH_SECONDS), persona.database.read_briefly() as connection:
                return _near(connection, persona, key, known, meaning, now)
    except FAILURES as error:
        logger.warning("what is related to %s of %s was not found: %s", key, persona.name, error)
        return []


def _near(
    connection: apsw.Connection, persona: Persona, key: str, known: Collection[str], meaning: Meaning | None, now: datetime
) -> list[Memory]:
    stored = memories.by_keys(connection, [key]).get(key)
    if stored is None:
        return []
    filters = Filters(unexpired_at=now) if persona.has_expired else Filters()
    about = subjects(analysis(stored.content[:LONGEST]))
    parts = (tokens(word) if is_unspaced(word) else [word] for word in about)
    sought = [token for word, read in zip(about, parts, strict=True) for token in read if len(word) == 1 or not is_single_kanji(token)]
    words = dict(bm25_index.near_text(connection, list(dict.fromkeys(sought)), TOKENS, filters, FOUND))
    own = words.pop(stored.id, None) or max(words.values(), default=1.0)
    by_words = memories.by_ids(connection, words)
    known_texts = {memory_id: analysis(memory.content[:LONGEST]) for memory_id, memory in by_words.items()}
    scores = {
        memory_id: words[memory_id] / own
        for memory_id, text in known_texts.items()
        if words[memory_id] >= LEAST_WORDS * own and _is_about(text, about)
    }
    if meaning:
        scores = _with_meaning(connection, meaning, scores, set(from_meaning(connection, meaning, filters, FOUND)) - {stored.id})
    nearest = sorted(scores, key=lambda memory_id: (-scores[memory_id], -memory_id))[:FOUND]
    further = [memory_id for memory_id in nearest if memory_id not in by_words]
    by_id = {**by_words, **(memories.by_ids(connection, further) if further else {})}
    distinct = {by_id[memory_id].content: by_id[memory_id] for memory_id in reversed(nearest) if memory_id in by_id}
    others = (memory for memory in reversed(distinct.values()) if memory.kind != "summary" and memory.content != stored.content)
    return list(islice((memory for memory in others if memory.key not in known), RELATED_LIMIT))


def subjects(text: Analysis) -> list[str]:
    """What a text is about: its nouns and names, without what has changed of them, days, numbers, and words that any text has. Japanese ones are parts
    that other nouns may share: pairs of kanji, words in katakana, a kanji alone; others are tokens."""
    found: list[str] = []
    for sentence in text.sentences:
        still = VALUE.sub(_gap, EVENT.sub("、", sentence))
        nouns = [noun for chain in chains(f"{still}。") for noun in chain.nouns if noun not in WORDS["generic"] and not POLAR.match(noun)]
        found += [match[1] or match[0] for noun in nouns for match in _PART.finditer(noun)]
        rest = analysis(still)
        for token in rest.query_tokens:
            if not (is_unspaced(token) or token.isdecimal() or token in _TELLING):
                found.append(token)
        found += [part for word in rest.kana_words for part in word.split()]
    return [part for part in dict.fromkeys(found) if not is_grammar(part)]


def _gap(value: re.Match[str]) -> str:
    """What is left of a value: the first letter of the word behind it, where it took that for its unit."""
    is_part = value[0][-1:].isascii() and value[0][-1:].isalpha() and value.string[value.end() : value.end() + 1].isalpha()
    return f"、{value[0][-1:]}" if is_part else "、"


def _is_about(text: Analysis, words: Sequence[str]) -> bool:
    """True if a text has one of these words, a single kanji as a word by itself."""
    own = frozenset(subjects(text)) if any(map(is_single_kanji, words)) else frozenset()
    return any(word in (own if is_single_kanji(word) else text.plain if is_unspaced(word) else text.tokens) for word in words)


def _with_meaning(connection: apsw.Connection, meaning: Meaning, shares: Mapping[int, float], found: Collection[int]) -> dict[int, float]:
    """The scores of those with a share of the words, and of those `found` by meaning that stand out: the others are clearly less near."""
    nearness = {each: similar.nearness for each, similar in similarities(connection, meaning, [*{*shares, *found}]).items()}
    by_nearness = sorted((each for each in found if each in nearness), key=lambda each: -nearness[each])
    gaps = [nearness[one] - nearness[other] for one, other in pairwise(by_nearness[: RELATED_LIMIT + 1])]
    outstanding = by_nearness[: gaps.index(max(gaps)) + 1] if gaps and max(gaps) >= LEAST_GAP * meaning.scale.spread else []
    best = max(nearness.values(), default=0.0)
    return {
        each: (1 - meaning.scale.weight) * share
        + meaning.scale.weight * (nearness[each] / best if each in nearness and best > 0 else share)
        for each, share in {**dict.fromkeys(outstanding, 0.0), **shares}.items()
    }


def _meaning_of(persona: Persona, key: str, models: Models, zone: ZoneInfo, indexes: IndexCache) -> Meaning | None:
    """The vector of the memory with this key, and the index; None where one of them is not there in time."""
    with persona.database.read_briefly() as connection:
        stored = memories.by_keys(connection, [key]).get(key)
        embedder = models.of_generation(stored_vectors.serving_generation(connection))
        if not (stored and embedder):
            return None
        chunks = stored_vectors.unembedded(connection, embedder.generation, 1, zone, of=[stored.id])
    index = indexes.get(persona.database, embedder.generation) if chunks else None
    if not (index and index.count and embedder.covers(chunks[0].text)):
        return None
    vectors = _embedded(embedder, chunks[0].text)
    if vectors is None:
        return None
    return Meaning(tuple(vectors), index, None, embedder.generation, embedder.centers, is_statement=True)


def _embedded(embedder: Embedder, text: str) -> Vectors | None:
    """The vector of a text as a row, which the cache has from then on. The wait ends before the model does, if that takes long."""
    try:
        return on_thread(lambda: embedder.embed_documents([text], is_awaited=True), "related").result(EMBEDDING_SECONDS)
    except TimeoutError:
        return None
    except FAILURES as error:
        logger.warning("what is related was not found by meaning: %s", error)
        return None
