"""Proposes memories to clean up: duplicates to merge, memories of low value, and faded memories. Changes nothing.

Pairs with the same words are found by the Jaccard index of their tokens, with a prefix filter (Bayardo et al. 2007: two sets that are
this similar share one of their rarest tokens); pairs with the same meaning by the cosine of their stored vectors. Memories that differ
in a number or a negation are never proposed: 「7月3日」 and 「7月4日」 have nearly the same words.
"""

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory
from memory_mcp.encoders.model_families import scale_of
from memory_mcp.encoders.models import Embedder, Models
from memory_mcp.language.low_value import LowValue, low_value
from memory_mcp.language.tokens import jaccard, normalise, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, usage_and_forgetting
from memory_mcp.store.usage_and_forgetting import forgetting_curve
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.nearness import apart, means_near
from memory_mcp.store.vectors.stored_vectors import Ids, Matrix

SAME_WORDS = 0.8
# Limits of one comparison: the number of latest memories, of their tokens together (300 MB at worst), and of characters of a memory.
COMPARED, TOKENS, LONGEST = 10_000, 800_000, 2_000
GROUP_LIMIT = 10
FADED_BELOW = 0.05
# The maximum number of latest memories with a common rare token that one memory is compared with.
NEAR_LIMIT = 200
ALMOST = 0.999
_BLOCK = 1_024

Why = Literal["same text", "same words", "same meaning"]

_NUMBERS = re.compile(r"\d++(?:[.:/]\d++)*+|(?<![一二三四五六七八九十百千])[一二三四五六七八九十百千]++(?=[年月日時分人回個歳階番])")
_NEGATIONS = re.compile(
    r"ない|なく|なかった|ません|ぬ(?=[。、\s]|$)|ず(?=[、に])|嫌|苦手|禁止|やめ|\b(?:not|no|never|none|cannot|without|hates?|dislikes?|stopped|quit)\b|n't\b"
)


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A memory similar to the kept one of its group, the similarity (0 to 1), and the kind of similarity."""

    memory: Memory
    similarity: float
    why: Why


@dataclass(frozen=True, slots=True)
class Group:
    """A proposal to merge the similar memories into `kept`."""

    kept: Memory
    similar: tuple[SimilarMemory, ...]


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals from the `compared` latest memories of `of`; each list contains the first few, and the counts include all.

    `meaning`: whether stored vectors were compared as well.
    """

    compared: int
    of: int
    meaning: bool
    groups: tuple[Group, ...]
    groups_count: int
    low_value: tuple[tuple[Memory, LowValue], ...]
    low_value_count: int
    faded: tuple[tuple[Memory, float], ...]
    faded_count: int


@dataclass(frozen=True, slots=True)
class _Pair:
    first: int
    second: int
    similarity: float
    why: Why


_Similar = tuple[int, list[_Pair]]


@dataclass(frozen=True, slots=True)
class _Compared:
    """What a comparison found, by the ids of the memories, so that no erased text stays here."""

    compared: int
    total: int
    meaning: bool
    grouped: Sequence[_Similar]
    flags: Sequence[tuple[int, LowValue]]
    faded: Sequence[tuple[int, float]]


def proposals(persona: Persona, models: Models, settings: Settings, now: datetime, limit: int) -> Proposals:
    """The proposals for a persona. After a write, takes a second for 10,000 memories: don't call it in a thread that other requests wait for."""
    with persona.database.read() as connection:
        embedder = models.of_generation(stored_vectors.serving_generation(connection))
    key = (settings.decay, f"{now:%Y-%m-%d %H}", embedder and (embedder.generation, embedder.centers and embedder.centers.known))
    comparison = persona.database.kept("proposals", lambda: _compare(persona, embedder, settings, now), key)
    grouped, flags, faded = comparison.grouped[:limit], comparison.flags[:limit], comparison.faded[:limit]
    with persona.database.read() as connection:
        shown = memories.beginnings(connection, _shown(grouped, flags, faded))
    return Proposals(
        compared=comparison.compared,
        of=comparison.total,
        meaning=comparison.meaning,
        groups=tuple(
            Group(
                shown[kept],
                tuple(SimilarMemory(shown[pair.second], round(pair.similarity, 3), pair.why) for pair in similar if pair.second in shown),
            )
            for kept, similar in grouped
            if kept in shown
        ),
        groups_count=len(comparison.grouped),
        low_value=tuple((shown[memory_id], flag) for memory_id, flag in flags if memory_id in shown),
        low_value_count=len(comparison.flags),
        faded=tuple((shown[memory_id], round(left, 3)) for memory_id, left in faded if memory_id in shown),
        faded_count=len(comparison.faded),
    )


def _compare(persona: Persona, embedder: Embedder | None, settings: Settings, now: datetime) -> _Compared:
    with persona.database.read() as connection:
        rows = usage_and_forgetting.comparable(connection, COMPARED, TOKENS, LONGEST)
        total = memories.counts(connection)["memories"]
        # Vectors without their model say nothing: nobody knows from which cosine two texts say the same.
        owners, vectors = stored_vectors.single_vectors(connection, embedder.generation if embedder else "", [row.id for row in rows])
    # No read transaction stays open during the comparison, because it would block checkpoints of the write-ahead log.
    normal = {row.id: normalise(row.content) for row in rows}
    flags = {row.id: flag for row in rows if (flag := low_value(row.content, normal[row.id]))}
    informative = [row for row in rows if row.id not in flags]
    centers = embedder.centers if embedder else None
    compared = apart(vectors, means_near(vectors, centers.statements), centers.known) if centers else vectors
    grouped = _groups(informative, normal, owners, compared, scale_of(centers).same)
    return _Compared(len(rows), total, len(vectors) > 0, grouped, list(flags.items()), _faded(informative, settings, now))


def _shown(grouped: Sequence[_Similar], flagged: Sequence[tuple[int, LowValue]], faded: Sequence[tuple[int, float]]) -> set[int]:
    """The ids of all memories in the result."""
    members = {each for kept, similar in grouped for each in (kept, *(pair.second for pair in similar))}
    return members | {memory_id for memory_id, _ in (*flagged, *faded)}


def _groups(
    rows: Sequence[usage_and_forgetting.Row], normal: Mapping[int, str], owners: Ids, vectors: Matrix, same_meaning: float
) -> list[_Similar]:
    """Groups of similar memories: identical texts first, then one of each text compared with the others."""
    same = _same_texts(rows, normal)
    buckets = _comparable([texts[0] for texts in same], normal)
    pairs = itertools.chain(_by_words(buckets), _by_meaning(buckets, owners, vectors, same_meaning))
    return _grouped(same, pairs, {row.id: row for row in rows})


def _by_words(buckets: Sequence[Sequence[usage_and_forgetting.Row]]) -> Iterator[_Pair]:
    known: dict[str, str] = {}
    for rows in buckets:
        # Equal tokens share one string object to save memory.
        words = {row.id: frozenset(known.setdefault(token, token) for token in tokens(row.content)) for row in rows}
        frequency = Counter(token for tokens_of_memory in words.values() for token in tokens_of_memory)
        by_token: dict[str, list[int]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: len(words[row.id])):
            own = words[row.id]
            rarest = sorted(own, key=lambda token: (frequency[token], token))
            prefix = rarest[: len(own) - math.ceil(SAME_WORDS * len(own)) + 1]
            near = dict.fromkeys(
                other for token in prefix for other in by_token[token][-NEAR_LIMIT:] if len(words[other]) >= SAME_WORDS * len(own)
            )
            for other in near:
                similarity = jaccard(own, words[other])
                if similarity >= SAME_WORDS:
                    yield _Pair(row.id, other, min(similarity, ALMOST), "same words")
            for token in prefix:
                by_token[token].append(row.id)


def _by_meaning(buckets: Sequence[Sequence[usage_and_forgetting.Row]], owners: Ids, vectors: Matrix, least: float) -> Iterator[_Pair]:
    """Pairs of stored vectors with a cosine of at least `least`, computed in blocks that take a few MB."""
    bucket_of = {row.id: number for number, rows in enumerate(buckets) for row in rows}
    bucket_numbers = np.array([bucket_of.get(owner, -1) for owner in owners.tolist()], np.int64)
    in_bucket = bucket_numbers >= 0
    owners, vectors, bucket_numbers = owners[in_bucket], vectors[in_bucket], bucket_numbers[in_bucket]
    for start in range(0, len(owners), _BLOCK):
        end = min(start + _BLOCK, len(owners))
        cosines = vectors[start:end] @ vectors[:end].T
        near = (cosines >= least) & (bucket_numbers[start:end, None] == bucket_numbers[None, :end])
        for row, column in itertools.islice(np.argwhere(np.tril(near, start - 1)).tolist(), _BLOCK * NEAR_LIMIT):
            yield _Pair(int(owners[start + row]), int(owners[column]), min(float(cosines[row, column]), ALMOST), "same meaning")


def _same_texts(rows: Sequence[usage_and_forgetting.Row], normal: Mapping[int, str]) -> list[list[usage_and_forgetting.Row]]:
    """The rows grouped by text, ignoring width and case."""
    by_text: dict[str, list[usage_and_forgetting.Row]] = defaultdict(list)
    for row in rows:
        by_text[" ".join(normal[row.id].split())].append(row)
    return list(by_text.values())


def _comparable(rows: Sequence[usage_and_forgetting.Row], normal: Mapping[int, str]) -> list[list[usage_and_forgetting.Row]]:
    """The rows in buckets with the same numbers and negations; only rows of the same bucket are compared."""
    buckets: dict[tuple[tuple[str, ...], ...], list[usage_and_forgetting.Row]] = defaultdict(list)
    for row in rows:
        buckets[tuple(tuple(sorted(pattern.findall(normal[row.id]))) for pattern in (_NUMBERS, _NEGATIONS))].append(row)
    return [bucket for bucket in buckets.values() if len(bucket) > 1]


def _grouped(
    same: Sequence[Sequence[usage_and_forgetting.Row]], pairs: Iterable[_Pair], rows: Mapping[int, usage_and_forgetting.Row]
) -> list[_Similar]:
    """Disjoint groups in which every member is similar to the kept one, the best of the possible centers. The most similar come first."""
    near: dict[int, dict[int, _Pair]] = defaultdict(dict)
    all_pairs = itertools.chain((_Pair(each.id, texts[0].id, 1.0, "same text") for texts in same for each in texts[1:]), pairs)
    for pair in all_pairs:
        for memory_id, other in ((pair.first, pair.second), (pair.second, pair.first)):
            known = near[memory_id].get(other)
            if known is None or known.similarity < pair.similarity:
                near[memory_id][other] = _Pair(memory_id, other, pair.similarity, pair.why)
    grouped: set[int] = set()
    groups: list[_Similar] = []
    for center in sorted(near, key=lambda memory_id: (-len(near[memory_id]), _worth(rows[memory_id]))):
        free = near[center].keys() - grouped
        if center in grouped or not free:
            continue
        members = {center, *free}
        kept = min((each for each in members if near[each].keys() >= members - {each}), key=lambda each: _worth(rows[each]))
        similar = sorted((near[kept][other] for other in members - {kept}), key=lambda pair: (-pair.similarity, -pair.second))
        groups.append((kept, similar[:GROUP_LIMIT]))
        grouped |= {kept, *(pair.second for pair in similar[:GROUP_LIMIT])}
    return sorted(groups, key=lambda group: (-group[1][0].similarity, -group[0]))


def _worth(row: usage_and_forgetting.Row) -> tuple[float, int, int]:
    """A sort key for the memory to keep: the most important, then the longest, then the latest."""
    return -row.importance, -len(row.content), -row.id


def _faded(rows: Sequence[usage_and_forgetting.Row], settings: Settings, now: datetime) -> list[tuple[int, float]]:
    """Memories with little retention left that aren't marked as important, the most faded first."""
    half_life = settings.decay.half_life_days
    left = [
        (row.id, forgetting_curve(row.last_touched, row.importance, row.usage_count, now, half_life))
        for row in rows
        if row.importance < 0.7
    ]
    return sorted(((memory_id, value) for memory_id, value in left if value < FADED_BELOW), key=lambda faded: faded[1])
