"""What could be tidied: memories that say the same and might be merged, those that say nothing, those that fade. Nothing is done.

Pairs of the same words are found by the Jaccard index of the tokens, with a prefix filter (Bayardo et al. 2007: two sets that are so
alike share one of their rarest tokens); pairs of the same meaning by the cosine of the vectors that are stored. What differs in a
number or in a no is never proposed: 「7月3日」 and 「7月4日」 are nearly the same words.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, tidying, vector_table
from memory_mcp.store.vector_table import Ids, Matrix
from memory_mcp.text.low_value import LowValue, low_value
from memory_mcp.text.retention import retention
from memory_mcp.text.tokens import jaccard, normalise, tokens

SAME_WORDS, SAME_MEANING = 0.8, 0.95
# The latest so many memories are compared with each other.
COMPARED = 20_000
GROUP_LIMIT = 10
FADED_BELOW = 0.05
_BLOCK = 1_024

Why = Literal["same text", "same words", "same meaning"]

_NUMBERS = re.compile(r"\d+(?:[.:/]\d+)*|[一二三四五六七八九十百千]+(?=[年月日時分人回個歳階番])")
_NEGATIONS = re.compile(
    r"ない|なく|なかった|ません|ぬ(?=[。、\s]|$)|ず(?=[、に])|嫌|苦手|禁止|やめ|\b(?:not|no|never|none|cannot|without|hates?|dislikes?|stopped|quit)\b|n't\b"
)


@dataclass(frozen=True, slots=True)
class Alike:
    """A memory that says what the kept one of its group says, how alike the two are (0 to 1), and in what."""

    memory: Memory
    similarity: float
    why: Why


@dataclass(frozen=True, slots=True)
class Group:
    """A proposal: `alike` might be merged into `kept`."""

    kept: Memory
    alike: tuple[Alike, ...]


@dataclass(frozen=True, slots=True)
class Proposals:
    """What was found among the `compared` latest memories of `of`; each list holds its first few, and the counts all.

    `meaning` says whether stored vectors were compared as well.
    """

    compared: int
    of: int
    meaning: bool
    groups: tuple[Group, ...]
    groups_count: int
    worthless: tuple[tuple[Memory, LowValue], ...]
    worthless_count: int
    faded: tuple[tuple[Memory, float], ...]
    faded_count: int


@dataclass(frozen=True, slots=True)
class _Pair:
    one: int
    other: int
    similarity: float
    why: Why


def proposals(persona: Persona, settings: Settings, now: datetime, limit: int) -> Proposals:
    """The proposals for a persona. Takes a second for 10,000 memories: never call it where somebody waits for something else."""
    with persona.database.read() as connection:
        rows = tidying.comparable(connection, COMPARED)
        total = memories.counts(connection)["memories"]
        generation = vector_table.serving_generation(connection)
        owners, vectors = tidying.single_vectors(connection, generation, [row.id for row in rows]) if generation else (None, None)
        flags = {row.id: flag for row in rows if (flag := low_value(row.content))}
        telling = [row for row in rows if row.id not in flags]
        pairs = [*_by_words(telling), *(_by_meaning(telling, owners, vectors) if owners is not None and vectors is not None else [])]
        grouped = _grouped(pairs, {row.id: row for row in telling})
        faded = _faded(telling, settings, now)
        wanted = {
            *(key for kept, alike in grouped[:limit] for key in (kept, *(pair.other for pair in alike))),
            *list(flags)[:limit],
            *(memory_id for memory_id, _ in faded[:limit]),
        }
        found = memories.by_ids(connection, wanted)
    return Proposals(
        compared=len(rows),
        of=total,
        meaning=vectors is not None and len(vectors) > 0,
        groups=tuple(
            Group(found[kept], tuple(Alike(found[pair.other], round(pair.similarity, 3), pair.why) for pair in alike))
            for kept, alike in grouped[:limit]
        ),
        groups_count=len(grouped),
        worthless=tuple((found[memory_id], flag) for memory_id, flag in list(flags.items())[:limit]),
        worthless_count=len(flags),
        faded=tuple((found[memory_id], round(left, 3)) for memory_id, left in faded[:limit]),
        faded_count=len(faded),
    )


def _by_words(rows: Sequence[tidying.Row]) -> Iterator[_Pair]:
    words = {row.id: frozenset(tokens(row.content)) for row in rows}
    contents = {row.id: row.content for row in rows}
    stands_in = Counter(token for found in words.values() for token in found)
    by_token: dict[str, list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: len(words[row.id])):
        own = words[row.id]
        rarest = sorted(own, key=lambda token: (stands_in[token], token))
        prefix = rarest[: len(own) - math.ceil(SAME_WORDS * len(own)) + 1]
        near = {other for token in prefix for other in by_token[token] if len(words[other]) >= SAME_WORDS * len(own)}
        for other in near:
            alike = jaccard(own, words[other])
            if alike >= SAME_WORDS:
                same = normalise(contents[other]) == normalise(row.content)
                yield _Pair(row.id, other, 1.0 if same else min(alike, 0.999), "same text" if same else "same words")
        for token in prefix:
            by_token[token].append(row.id)


def _by_meaning(rows: Sequence[tidying.Row], owners: Ids, vectors: Matrix) -> Iterator[_Pair]:
    """Pairs of stored vectors that point nearly the same way, block by block: no more than a few MB at a time."""
    telling = np.isin(owners, [row.id for row in rows])
    owners, vectors = owners[telling], vectors[telling]
    for start in range(0, len(owners), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors[: start + _BLOCK].T
        for row, column in np.argwhere(cosines >= SAME_MEANING).tolist():
            if column < start + row:
                yield _Pair(int(owners[start + row]), int(owners[column]), min(float(cosines[row, column]), 1.0), "same meaning")


def _grouped(pairs: Sequence[_Pair], rows: Mapping[int, tidying.Row]) -> list[tuple[int, list[_Pair]]]:
    """Stars: every member is itself like the one that is kept. The likest first; no memory stands in two groups."""
    near: dict[int, dict[int, _Pair]] = defaultdict(dict)
    for pair in pairs:
        if not _contradict(rows[pair.one].content, rows[pair.other].content):
            for one, other in ((pair.one, pair.other), (pair.other, pair.one)):
                known = near[one].get(other)
                if known is None or known.similarity < pair.similarity:
                    near[one][other] = _Pair(one, other, pair.similarity, pair.why)
    taken: set[int] = set()
    groups: list[tuple[int, list[_Pair]]] = []
    for kept in sorted(near, key=lambda memory_id: (-len(near[memory_id]), *_worth(rows[memory_id]))):
        free = {other: pair for other, pair in near[kept].items() if other not in taken} if kept not in taken else {}
        if not free:
            continue
        best = min((kept, *(other for other in free if near[other].keys() >= free.keys() - {other})), key=lambda each: _worth(rows[each]))
        alike = sorted((near[best][other] for other in {kept, *free} - {best}), key=lambda pair: (-pair.similarity, -pair.other))
        groups.append((best, alike[:GROUP_LIMIT]))
        taken |= {best, *(pair.other for pair in alike[:GROUP_LIMIT])}
    return sorted(groups, key=lambda group: (-group[1][0].similarity, -group[0]))


def _worth(row: tidying.Row) -> tuple[float, int, int]:
    """The most important, then the one that says most, then the latest: smaller comes first."""
    return -row.importance, -len(row.content), -row.id


def _contradict(one: str, other: str) -> bool:
    """Whether two texts that are nearly the same differ in a number or in a no."""
    first, second = normalise(one), normalise(other)
    return any(Counter(what.findall(first)) != Counter(what.findall(second)) for what in (_NUMBERS, _NEGATIONS))


def _faded(rows: Sequence[tidying.Row], settings: Settings, now: datetime) -> list[tuple[int, float]]:
    """What might be forgotten: little retention is left, and nobody called it important. The faintest first."""
    half_life = settings.decay.half_life_days
    left = [(row.id, retention(row.last_touched, row.importance, row.usage_count, now, half_life)) for row in rows if row.importance < 0.7]
    return sorted(((memory_id, value) for memory_id, value in left if value < FADED_BELOW), key=lambda found: found[1])
