"""Writes memory_mcp/language/dictionaries/readings.tsv: how kanji are read in words and names, from KANJIDIC, JMdict and JMnedict.

    pip download --no-deps jamdict-data==1.5
    .venv/bin/python distribution/readings.py jamdict_data-1.5.tar.gz

A line is a reading in hiragana, the kanji that usually have it in words or names, those that rarely have it, and the frequent words that are read so although their kanji
aren't (眼鏡 as めがね), all separated by tabs. A reading is what a kanji has within a word: voiced, shortened, or without its ending.
"""

import re
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from synonyms import TARGET, unpacked

from memory_mcp.characters import HIRAGANA, KANJI

# Of the words and names with a kanji, the share where it has a usual reading, or a rare one, and the least number of these.
USUAL_SHARE, RARE_SHARE, LEAST = 0.1, 0.005, 2
# Kanji of a word, and those of them whose reading is rare.
LONGEST, RARE_LIMIT = 4, 1
REPEATED = "々"
_WORD, _KANA = re.compile(f"[{KANJI}]{{1,{LONGEST}}}"), re.compile(f"[{HIRAGANA}ー]+")
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}
_VOICED = str.maketrans("かきくけこさしすせそたちつてとはひふへほ", "がぎぐげござじずぜぞだぢづでどばびぶべぼ")
_HALF_VOICED = str.maketrans("はひふへほ", "ぱぴぷぺぽ")
# What a verb ends with, and its form in compounds: 渡る, 渡り.
_IN_COMPOUNDS = str.maketrans("うくぐすつぬぶむる", "いきぎしちにびみり")

WORDS = """
    SELECT j.text, n.text, EXISTS (SELECT 1 FROM KJP p WHERE p.kid = j.ID) FROM Kanji j JOIN Kana n ON n.idseq = j.idseq
    WHERE length(j.text) <= 4
"""
NAMES = """
    SELECT DISTINCT j.text, n.text, 0 FROM NEKanji j JOIN NEKana n ON n.idseq = j.idseq JOIN NETranslation t ON t.idseq = j.idseq
    JOIN NETransType k ON k.tid = t.ID WHERE length(j.text) <= 4 AND k.text IN ('surname', 'given', 'fem', 'masc')
"""
READINGS = """
    SELECT c.literal, r.value FROM character c JOIN rm_group g ON g.cid = c.ID JOIN reading r ON r.gid = g.ID
    WHERE r.r_type IN ('ja_on', 'ja_kun') AND (c.grade IS NOT NULL OR c.freq IS NOT NULL)
    UNION SELECT c.literal, n.value FROM character c JOIN nanori n ON n.cid = c.ID WHERE c.grade IS NOT NULL OR c.freq IS NOT NULL
"""


def readings(connection: sqlite3.Connection) -> Iterator[list[str]]:
    """The lines of the file, each in columns."""
    known: dict[str, set[str]] = defaultdict(set)
    for kanji, written in connection.execute(READINGS):
        known[kanji] |= set(_forms(written))
    words = {
        (word, kana.translate(_TO_HIRAGANA)): is_frequent for word, kana, is_frequent in chain(*map(connection.execute, (NAMES, WORDS)))
    }
    parts = {word: _aligned(*word, known) for word in words if _WORD.fullmatch(word[0]) and _KANA.fullmatch(word[1])}
    counted, totals = Counter[tuple[str, str]](), Counter[str]()
    for (word, _), read in parts.items():
        if read:
            counted.update(zip(word, read, strict=True))
            totals.update(word)
    shares = {each: count / totals[each[0]] for each, count in counted.items() if count >= LEAST}
    columns: dict[str, tuple[list[str], list[str], list[str]]] = defaultdict(lambda: ([], [], []))
    for (kanji, kana), share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if share >= RARE_SHARE:
            columns[kana][share < USUAL_SHARE].append(kanji)
    for (word, kana), read in parts.items():
        if words[word, kana] and len(word) > 1 and not _is_found([shares.get(each, 0.0) for each in zip(word, read, strict=False)]):
            columns[kana][2].append(word)
    for kana, (usual, rare, irregular) in sorted(columns.items()):
        yield [kana, "".join(usual), "".join(rare), *irregular]


def _is_found(shares: Sequence[float]) -> bool:
    """Whether kanji with these shares of their readings are found as a word."""
    return min(shares, default=0.0) >= RARE_SHARE and sum(share < USUAL_SHARE for share in shares) <= RARE_LIMIT


def _forms(written: str) -> Iterator[str]:
    """A reading of KANJIDIC as it is within a word: わた.る as わた and わたり, and each with the first sound voiced or the last one doubled."""
    stem, _, ending = written.strip("-").translate(_TO_HIRAGANA).partition(".")
    plain = {stem, stem + ending, stem + ending[:-1] + ending[-1:].translate(_IN_COMPOUNDS), stem + ending[:-1]}
    for form in plain:
        if _KANA.fullmatch(form):
            for first in {form, form[0].translate(_VOICED) + form[1:], form[0].translate(_HALF_VOICED) + form[1:]}:
                yield first
                if len(first) > 1 and first[-1] in "きくちつ":
                    yield first[:-1] + "っ"


def _aligned(word: str, kana: str, known: dict[str, set[str]]) -> tuple[str, ...]:
    """The part of a reading that each kanji has; nothing where they have no such readings."""

    @cache
    def rest(index: int, start: int) -> tuple[str, ...] | None:
        if index == len(word):
            return () if start == len(kana) else None
        before = index - (word[index] == REPEATED)
        for end in range(len(kana), start, -1):
            if kana[start:end] in known[word[max(before, 0)]] and (following := rest(index + 1, end)) is not None:
                return (kana[start:end], *following)
        return None

    return rest(0, 0) or ()


def _main(package: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        connection = sqlite3.connect(unpacked(package, Path(directory)))
        lines: Iterable[list[str]] = readings(connection)
        (TARGET / "readings.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
