"""The words of a persona's memories: in how many rows of the full-text index a token occurs, and which words sound alike.

Counting a frequent token costs about as much as searching by it, so the counts are kept for a while. For sounds the words are read from the
texts when a question first needs them; later questions read what was stored since. Words of the trash and of earlier texts are among these,
too: the index tells whether a word is there.
"""

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from itertools import chain, compress, pairwise
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt
from pydantic_core import from_json

from memory_mcp import lexicon
from memory_mcp.characters import HAN, HIRAGANA, KATAKANA
from memory_mcp.language.kanji import LONGEST_WORD, words_read_as
from memory_mcp.language.sound import Sound, difference, largest_difference, of_kana, of_latin
from memory_mcp.language.tokens import is_single_kanji, normalise

# Up to so many rows are counted exactly; larger frequencies are estimated from a part of the store.
COUNTED_ROWS = 1_000
SAMPLED_PART = 10
# A token in more than this share of all rows is common.
COMMON_SHARE, COMMON_KANJI_SHARE = 0.2, 0.1
# The same in a store that is small enough to count all rows: only words in nearly every memory, such as the user's name.
COMMON_SHARE_OF_FEW = 0.5

KEPT_SECONDS = 600.0
KEPT_TOKENS = 4_096
# Counts are valid until the store has grown by this share of its rows.
KEPT_GROWTH = 0.05

# The words of one sound that are searched.
LIMIT = 4
# The readings, by their hashes, of which the words are kept until something is stored: one question looks each up twice.
KEPT_LIMIT = 1_000
# The texts that one `update` reads at most (.04 s): a large store is read by several.
READ_AT_ONCE = 5_000
LATIN = "a-zß-ɏ"
# The kana of a word with お or ご.
SHORTEST_POLITE, LONGEST_POLITE = 3, 8
# A single kanji is a word where no ending follows it; before it may be お or ご. One set at the beginning lets the search skip all else at once.
_WORD = re.compile(
    f"[{HAN}{KATAKANA}{LATIN}](?:(?<=[{HAN}])(?:[{HAN}]+|(?:(?<![{HIRAGANA}{HAN}][{HAN}])|(?<=[おご][{HAN}]))"
    f"(?=[^{HIRAGANA}{HAN}]|[はがをにでともへのや]|$))|(?<=[{KATAKANA}])[{KATAKANA}]+|(?<=[{LATIN}])[{LATIN}]{{2,}})"
)
# What may be a word in hiragana that begins with お or ご.
_POLITE = re.compile(f"(?=([おご][{HIRAGANA}]{{{SHORTEST_POLITE - 1},{LONGEST_POLITE}}}))")
_ENDS = frozenset((*lexicon.words("ja", "particles"), *"だでさっじ"))
_KATAKANA, _LATIN, _NUMBER = re.compile(f"[{KATAKANA}]"), re.compile(f"[{LATIN}]"), re.compile("[一二三四五六七八九十百千万]{2,}")
_NEWEST = "SELECT max(id) FROM (SELECT id FROM chunks WHERE id > ? ORDER BY id LIMIT ?)"
_TEXTS = """
    SELECT iif(typeof(source) = 'text', source || ': ', '') || content FROM memories
    WHERE kind <> 'summary' AND typeof(content) = 'text' AND id IN (SELECT memory_id FROM chunks WHERE id > ? AND id <= ?)
"""


class StoredWords:
    """The words of one persona's memories, and which of them sound like a word of a question."""

    def __init__(self) -> None:
        self._guard, self._reads_texts = threading.Lock(), threading.Lock()
        self._times_cleared = 0
        self.clear()

    def clear(self) -> None:
        """Forget all words, after memories were erased."""
        with self._guard:
            self._times_cleared += 1
            self._read_until = 0
            # The kanji after each kanji, and the hashes of words in kanji, sorted: a tenth of the memory that the words would take.
            self._followers: dict[str, str] = {}
            self._in_kanji = np.empty(0, np.int64)
            self._looked_up: dict[int, list[str]] = {}
            self._polite: set[int] = set()
            self._latin, self._katakana = _BySound(of_latin), _BySound(_of_kana)

    def update(self, connection: apsw.Connection) -> None:
        """Add the words of what was stored since the last time. While another thread does so, nothing waits for it."""
        if not self._reads_texts.acquire(blocking=False):
            return
        try:
            with self._guard:
                read_until, times_cleared = self._read_until, self._times_cleared
            newest = connection.execute(_NEWEST, (read_until, READ_AT_ONCE)).get
            if newest is None:
                return
            read: set[str] = set()
            polite: set[int] = set()
            for (text,) in connection.execute(_TEXTS, (read_until, newest)):
                read.update(_WORD.findall(text := normalise(text)))
                polite.update(hash(word) for run in _POLITE.findall(text) for word in _polite_in(run))
            with self._guard:
                if self._times_cleared == times_cleared:  # else these texts may be erased by now
                    self._add(read)
                    self._polite |= polite
                    self._read_until = newest
        finally:
            self._reads_texts.release()

    def read_as(self, kana: str) -> list[str]:
        """The words in kanji that may be read as this hiragana."""
        with self._guard:
            if len(self._looked_up) > KEPT_LIMIT:
                self._looked_up.clear()
            if hash(kana) not in self._looked_up:
                words = list(dict.fromkeys(words_read_as(kana, self._followers)))
                self._looked_up[hash(kana)] = list(compress(words, self._among(_hashes(words))))[:LIMIT]
            return self._looked_up[hash(kana)]

    def in_latin(self, kana: str) -> list[str]:
        """The words in Latin letters that sound most like this one in kana."""
        (sound,) = _of_kana(kana)
        with self._guard:
            alike = [(difference(sound, latin), word) for word, latin in self._latin.with_consonants(sound.consonants)]
        return _closest(alike, sound)

    def has_in_katakana(self, word: str) -> bool:
        """Whether the store has this word in katakana, as a whole."""
        with self._guard:
            return word in self._katakana

    def polite_among(self, words: Iterable[str]) -> set[str]:
        """Those of these words in hiragana, which begin with お or ご, that a text of the store has."""
        with self._guard:
            return {word for word in words if hash(word) in self._polite}

    def in_katakana(self, latin: str) -> list[str]:
        """The words in katakana that sound most like this one in Latin letters."""
        with self._guard:
            alike = [
                (difference(kana, sound), word)
                for sound in of_latin(latin)
                for word, kana in self._katakana.with_consonants(sound.consonants)
            ]
        return _closest(alike, of_latin(latin)[-1]) if alike else []

    def _add(self, words: Set[str]) -> None:
        in_katakana, in_latin = set(filter(_KATAKANA.match, words)), set(filter(_LATIN.match, words))
        self._katakana.add(in_katakana)
        self._latin.add(in_latin)
        self._add_kanji(words - in_katakana - in_latin)
        self._looked_up.clear()

    def _add_kanji(self, runs: Collection[str]) -> None:
        followers: dict[str, set[str]] = defaultdict(set, {run: set() for run in runs if len(run) == 1})
        for first, second in chain.from_iterable(map(pairwise, runs)):
            followers[first].add(second)
        self._followers.update((kanji, "".join(others.union(self._followers.get(kanji, "")))) for kanji, others in followers.items())
        hashes = np.sort(_hashes(set(chain.from_iterable(map(_words_in, runs)))))
        new = hashes[~self._among(hashes)]
        # Sorting all of them again for a few new ones takes 36 ms in a large store, this .1.
        self._in_kanji = np.insert(self._in_kanji, np.searchsorted(self._in_kanji, new), new)

    def _among(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these hashes are those of words."""
        if not len(self._in_kanji):
            return np.zeros(len(hashes), np.bool_)
        at = np.minimum(np.searchsorted(self._in_kanji, hashes), len(self._in_kanji) - 1)
        among: npt.NDArray[np.bool_] = self._in_kanji[at] == hashes
        return among


class _BySound:
    """Words by their consonants, which are found out when one is looked up."""

    def __init__(self, sounds: Callable[[str], Sequence[Sound]]) -> None:
        self._sounds = sounds
        self._known: set[str] = set()
        self._waiting: set[str] = set()
        self._by_consonants: dict[str, list[tuple[str, Sound]]] = defaultdict(list)

    def add(self, words: Iterable[str]) -> None:
        self._waiting.update(words)

    def __contains__(self, word: str) -> bool:
        return word in self._known or word in self._waiting

    def with_consonants(self, consonants: str) -> list[tuple[str, Sound]]:
        for word in self._waiting - self._known:
            for sound in self._sounds(word):
                self._by_consonants[sound.consonants].append((word, sound))
        self._known |= self._waiting
        self._waiting.clear()
        return self._by_consonants.get(consonants, [])


def _polite_in(run: str) -> Iterator[str]:
    """What may be a word at the beginning of a run of hiragana: before its end, or before what follows words."""
    for end in range(SHORTEST_POLITE, min(len(run), LONGEST_POLITE) + 1):
        if end == len(run) or run[end] in _ENDS:
            yield run[:end]


def _hashes(words: Iterable[str]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(hash, words), np.int64)


def _of_kana(word: str) -> Sequence[Sound]:
    return (of_kana(word),)


def _words_in(run: str) -> Iterator[str]:
    """The words that a run of kanji may be, begin or end with: 沢渡 of 沢渡課長. Numbers have too many readings."""
    if len(run) == 1:
        yield run
    for length in range(2, min(LONGEST_WORD, len(run)) + 1):
        yield from (part for part in (run[:length], run[-length:]) if not _NUMBER.fullmatch(part))


def _closest(alike: Iterable[tuple[float, str]], sound: Sound) -> list[str]:
    """Of words with these differences the least different, if they may be the same."""
    least = min((far for far, _ in alike), default=None)
    if least is None or least > largest_difference(sound):
        return []
    return list(dict.fromkeys(word for far, word in alike if far == least))[:LIMIT]


class TokenCounts:
    """Cached counts of one persona's index, invalidated as it grows; call `clear` after deletions. `stored`: its words by their sound.

    Counts decide which tokens select, which only rank, and which are dropped; slightly old counts only decide slightly worse.
    """

    def __init__(self) -> None:
        self.stored = StoredWords()
        self._guard = threading.Lock()
        # By the token's hash, so that words of queries and of erased memories aren't kept.
        self._counted: dict[int, float | None] = {}
        self._rows = range(0)
        self._until = 0.0

    def uncommon(self, connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
        """Token → its approximate number of rows, without common tokens. `ids` is the range of all row ids."""
        with self._guard:
            grown = ids.start != self._rows.start or not 0 <= ids.stop - self._rows.stop <= len(self._rows) * KEPT_GROWTH
            if grown or time.monotonic() > self._until or len(self._counted) > KEPT_TOKENS:
                self._counted, self._rows, self._until = {}, ids, time.monotonic() + KEPT_SECONDS
            kept = self._counted
        hashes = {token: hash(token) for token in tokens}
        new = [token for token, hashed in hashes.items() if hashed not in kept]
        if new:
            counted = _uncommon(connection, new, ids)
            kept.update((hashes[token], counted.get(token)) for token in new)
        return {token: rows for token, hashed in hashes.items() if (rows := kept[hashed]) is not None}

    def clear(self) -> None:
        """Forget all counts, after memories left the index."""
        with self._guard:
            self._counted, self._until = {}, 0.0


def rows_with(connection: apsw.Connection, tokens: Sequence[str], limit: int, after: int = 0) -> dict[str, tuple[int, int]]:
    """Token → in how many rows after the id `after` it occurs, counted up to `limit`, and the id of the last row counted."""
    counted = """
        SELECT value, (SELECT json_array(count(*), max(id))
            FROM (SELECT rowid AS id FROM lexical WHERE lexical MATCH '"' || value || '"' AND rowid > ?3 LIMIT ?2))
        FROM json_each(?1)
    """
    rows: Iterable[Any] = connection.execute(counted, (json.dumps(list(tokens)), limit, after)) if tokens else ()
    return {token: (count, last or 0) for token, result in rows for count, last in [from_json(result)]}


def held(connection: apsw.Connection, phrases: Sequence[str]) -> set[str]:
    """Those of these phrases of tokens that occur in a row."""
    if not phrases:
        return set()
    has_row = "EXISTS (SELECT 1 FROM lexical WHERE lexical MATCH '\"' || value || '\"')"
    found = connection.execute(f"SELECT json_group_array(value) FROM json_each(?) WHERE {has_row}", (json.dumps(list(phrases)),))
    return set(from_json(found.get))


def _uncommon(connection: apsw.Connection, tokens: Sequence[str], ids: range) -> dict[str, float]:
    """Estimate frequent tokens twice: from how far their first rows reach, and from the newest part of the store. A token is common
    only if both estimates say so, because users ask for recent topics."""
    counted: dict[str, float] = {}
    reaching: dict[str, int] = {}
    rows = len(ids)
    for token, (count, last) in rows_with(connection, tokens, COUNTED_ROWS).items():
        if count >= COUNTED_ROWS:
            reaching[token] = last
        elif count <= rows * COMMON_SHARE_OF_FEW:
            counted[token] = count
    newest = rows_with(connection, list(reaching), rows, after=ids.stop - 1 - rows // SAMPLED_PART)
    for token, last in reaching.items():
        early, late = COUNTED_ROWS * rows / (last - ids.start + 1), newest[token][0] * SAMPLED_PART
        if min(early, late) <= rows * (COMMON_KANJI_SHARE if is_single_kanji(token) else COMMON_SHARE):
            counted[token] = max((early + late) / 2, COUNTED_ROWS)
    return counted
