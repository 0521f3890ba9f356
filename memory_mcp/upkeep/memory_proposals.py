"""What could be tidied: memories that say the same and might be merged, those that say nothing, those that fade. Nothing is done.

Pairs of the same words are found by the Jaccard index of the tokens, with a prefix filter (Bayardo et al. 2007: two sets that are so
alike share one of their rarest tokens); pairs of the same meaning by the cosine of the vectors that are stored. What differs in a
number or in a no is never proposed: 「7月3日」 and 「7月4日」 are nearly the same words.
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
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, memory_usage
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.stored_vectors import Ids, Matrix
from memory_mcp.text.forgetting_curve import forgetting_curve
from memory_mcp.text.low_value import LowValue, low_value
from memory_mcp.text.tokens import jaccard, normalise, tokens

SAME_WORDS, SAME_MEANING = 0.8, 0.95
# The latest so many memories are compared with each other, of so many tokens together, which take 300 MB at worst; none longer than that.
COMPARED, TOKENS, LONGEST = 10_000, 800_000, 2_000
GROUP_LIMIT = 10
FADED_BELOW = 0.05
# One memory is compared with the last so many that share a rare word with it.
NEAR_LIMIT = 200
ALMOST = 0.999
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


_Found = tuple[int, list[_Pair]]


def proposals(persona: Persona, settings: Settings, now: datetime, limit: int) -> Proposals:
    """The proposals for a persona. Takes a second for 10,000 memories: never call it where somebody waits for something else."""
    with persona.database.read() as connection:
        rows = memory_usage.comparable(connection, COMPARED, TOKENS, LONGEST)
        total = memories.counts(connection)["memories"]
        generation = stored_vectors.serving_generation(connection)
        owners, vectors = stored_vectors.single_vectors(connection, generation or "", [row.id for row in rows])
    # No database is held open while this compares: that would keep the write-ahead log from being folded in.
    flags = {row.id: flag for row in rows if (flag := low_value(row.content))}
    telling = [row for row in rows if row.id not in flags]
    grouped = _groups(telling, owners, vectors)
    faded = _faded(telling, settings, now)
    with persona.database.read() as connection:
        found = memories.by_ids(connection, _shown(grouped[:limit], list(flags)[:limit], faded[:limit]))
    return Proposals(
        compared=len(rows),
        of=total,
        meaning=len(vectors) > 0,
        groups=tuple(
            Group(
                found[kept], tuple(Alike(found[pair.other], round(pair.similarity, 3), pair.why) for pair in alike if pair.other in found)
            )
            for kept, alike in grouped[:limit]
            if kept in found
        ),
        groups_count=len(grouped),
        worthless=tuple((found[memory_id], flag) for memory_id, flag in list(flags.items())[:limit] if memory_id in found),
        worthless_count=len(flags),
        faded=tuple((found[memory_id], round(left, 3)) for memory_id, left in faded[:limit] if memory_id in found),
        faded_count=len(faded),
    )


def _shown(grouped: Sequence[_Found], flagged: Sequence[int], faded: Sequence[tuple[int, float]]) -> set[int]:
    """The ids of everything that is shown."""
    members = {each for kept, alike in grouped for each in (kept, *(pair.other for pair in alike))}
    return members | {*flagged} | {memory_id for memory_id, _ in faded}


def _groups(rows: Sequence[memory_usage.Row], owners: Ids, vectors: Matrix) -> list[_Found]:
    """Who says the same as whom: the same texts first, and one of each compared with the others."""
    same = _same_texts(rows)
    buckets = _comparable([texts[0] for texts in same])
    pairs = itertools.chain(_by_words(buckets), _by_meaning(buckets, owners, vectors))
    return _grouped(same, pairs, {row.id: row for row in rows})


def _by_words(buckets: Sequence[Sequence[memory_usage.Row]]) -> Iterator[_Pair]:
    known: dict[str, str] = {}
    for rows in buckets:
        # One object for each token, however many texts it stands in.
        words = {row.id: frozenset(known.setdefault(token, token) for token in tokens(row.content)) for row in rows}
        stands_in = Counter(token for found in words.values() for token in found)
        by_token: dict[str, list[int]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: len(words[row.id])):
            own = words[row.id]
            rarest = sorted(own, key=lambda token: (stands_in[token], token))
            prefix = rarest[: len(own) - math.ceil(SAME_WORDS * len(own)) + 1]
            near = dict.fromkeys(
                other for token in prefix for other in by_token[token][-NEAR_LIMIT:] if len(words[other]) >= SAME_WORDS * len(own)
            )
            for other in near:
                alike = jaccard(own, words[other])
                if alike >= SAME_WORDS:
                    yield _Pair(row.id, other, min(alike, ALMOST), "same words")
            for token in prefix:
                by_token[token].append(row.id)


def _by_meaning(buckets: Sequence[Sequence[memory_usage.Row]], owners: Ids, vectors: Matrix) -> Iterator[_Pair]:
    """Pairs of stored vectors that point nearly the same way, block by block: no more than a few MB at a time."""
    bucket_of = {row.id: place for place, rows in enumerate(buckets) for row in rows}
    places = np.array([bucket_of.get(owner, -1) for owner in owners.tolist()], np.int64)
    owners, vectors, places = owners[places >= 0], vectors[places >= 0], places[places >= 0]
    for start in range(0, len(owners), _BLOCK):
        end = min(start + _BLOCK, len(owners))
        cosines = vectors[start:end] @ vectors[:end].T
        near = (cosines >= SAME_MEANING) & (places[start:end, None] == places[None, :end])
        for row, column in itertools.islice(np.argwhere(np.tril(near, start - 1)).tolist(), _BLOCK * NEAR_LIMIT):
            yield _Pair(int(owners[start + row]), int(owners[column]), min(float(cosines[row, column]), ALMOST), "same meaning")


def _same_texts(rows: Sequence[memory_usage.Row]) -> list[list[memory_usage.Row]]:
    """The rows by what they say, whatever their width and case."""
    by_text: dict[str, list[memory_usage.Row]] = defaultdict(list)
    for row in rows:
        by_text[" ".join(normalise(row.content).split())].append(row)
    return list(by_text.values())


def _comparable(rows: Sequence[memory_usage.Row]) -> list[list[memory_usage.Row]]:
    """The rows in buckets of those that name the same numbers and deny as often: only within one can two say the same."""
    buckets: dict[tuple[tuple[str, ...], ...], list[memory_usage.Row]] = defaultdict(list)
    for row in rows:
        text = normalise(row.content)
        buckets[tuple(tuple(sorted(what.findall(text))) for what in (_NUMBERS, _NEGATIONS))].append(row)
    return [bucket for bucket in buckets.values() if len(bucket) > 1]


def _grouped(same: Sequence[Sequence[memory_usage.Row]], pairs: Iterable[_Pair], rows: Mapping[int, memory_usage.Row]) -> list[_Found]:
    """Stars: each member is itself like the one that is kept, which is the worthiest of those it could be. The likest come first, and
    no memory stands in two groups."""
    near: dict[int, dict[int, _Pair]] = defaultdict(dict)
    every = itertools.chain((_Pair(each.id, texts[0].id, 1.0, "same text") for texts in same for each in texts[1:]), pairs)
    for pair in every:
        for one, other in ((pair.one, pair.other), (pair.other, pair.one)):
            known = near[one].get(other)
            if known is None or known.similarity < pair.similarity:
                near[one][other] = _Pair(one, other, pair.similarity, pair.why)
    taken: set[int] = set()
    groups: list[_Found] = []
    for centre in sorted(near, key=lambda memory_id: (-len(near[memory_id]), _worth(rows[memory_id]))):
        free = near[centre].keys() - taken
        if centre in taken or not free:
            continue
        members = {centre, *free}
        kept = min((each for each in members if near[each].keys() >= members - {each}), key=lambda each: _worth(rows[each]))
        alike = sorted((near[kept][other] for other in members - {kept}), key=lambda pair: (-pair.similarity, -pair.other))
        groups.append((kept, alike[:GROUP_LIMIT]))
        taken |= {kept, *(pair.other for pair in alike[:GROUP_LIMIT])}
    return sorted(groups, key=lambda group: (-group[1][0].similarity, -group[0]))


def _worth(row: memory_usage.Row) -> tuple[float, int, int]:
    """The most important, then the one that says most, then the latest: smaller comes first."""
    return -row.importance, -len(row.content), -row.id


def _faded(rows: Sequence[memory_usage.Row], settings: Settings, now: datetime) -> list[tuple[int, float]]:
    """What might be forgotten: little retention is left, and nobody called it important. The faintest first."""
    half_life = settings.decay.half_life_days
    left = [
        (row.id, forgetting_curve(row.last_touched, row.importance, row.usage_count, now, half_life))
        for row in rows
        if row.importance < 0.7
    ]
    return sorted(((memory_id, value) for memory_id, value in left if value < FADED_BELOW), key=lambda found: found[1])
