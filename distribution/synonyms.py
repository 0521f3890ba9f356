"""Writes the dictionaries of memory_mcp/language/dictionaries: groups of words that mean the same, from JMdict and the synonyms of SudachiDict.

    pip download --no-deps jamdict-data==1.5
    git clone https://github.com/WorksApplications/SudachiDict    # and check out the commit of dictionaries/README.md
    .venv/bin/python distribution/synonyms.py jamdict_data-1.5.tar.gz SudachiDict/src/main/text/synonyms.txt

A line is a group: its words, separated by tabs, the most usual first. English words are stems, as in the lexical index; a verb or an adjective is
what all its forms begin with. A word after `-` is in the group but is not looked up: it mostly means something else.
"""

import csv
import lzma
import re
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from memory_mcp.characters import HAN, HIRAGANA, is_japanese
from memory_mcp.language.tokens import is_function_word, normalise, tokens

TARGET = Path(__file__).parents[1] / "memory_mcp" / "language" / "dictionaries"
# An English gloss of more words explains instead of translating.
GLOSS_WORDS = 2
INFLECTED = ("Ichidan", "Godan", "Kuru", "adjective (keiyoushi)")
GRAMMAR = {"particle", "auxiliary verb", "auxiliary", "pronoun", "conjunction", "prefix", "suffix", "counter", "interjection (kandoushi)"}
NOUN = "noun (common) (futsuumeishi)"
# How frequent a word is: the number of its 500 in a newspaper, or less exactly, or not at all.
USUAL, KNOWN, RARE = 30, 50, 99
_OFTEN = {"ichi1", "news1", "spec1", "gai1"}
_HIRAGANA, _KANJI = re.compile(f"[{HIRAGANA}ー]+"), re.compile(f"[{HAN}]")
_ASIDE, _BEFORE_GLOSS = re.compile(r"\((?:[^()]|\([^()]*\))*\)"), re.compile(r"(?:to be|to|an?|the) ")


def jmdict(database: Path) -> Iterator[list[str]]:
    """Each English translation, by the first sense of frequent words, with these words."""
    connection = sqlite3.connect(database)
    columns = {
        name: _by_first(connection, sql)
        for name, sql in {
            "kanji_ranks": "SELECT kid, text FROM KJP",
            "kana_ranks": "SELECT kid, text FROM KNP",
            "kanji": "SELECT idseq, ID, text FROM Kanji ORDER BY ID",
            "kana": "SELECT idseq, ID, text FROM Kana ORDER BY ID",
            "senses": "SELECT idseq, ID FROM Sense ORDER BY ID",
            "kinds": "SELECT sid, text FROM pos",
            "notes": "SELECT sid, text FROM misc",
            "glosses": "SELECT sid, text FROM SenseGloss WHERE lang IN ('eng', '') OR lang IS NULL",
        }.items()
    }
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for entry, senses in columns["senses"].items():
        sense = senses[0][0]
        kinds = [kind for (kind,) in columns["kinds"][sense]]
        if GRAMMAR & set(kinds) and NOUN not in kinds:
            continue
        written = _ranked(columns["kanji"][entry], columns["kanji_ranks"])
        if not written or any("usually written using kana" in note for (note,) in columns["notes"][sense]):
            written |= _ranked(columns["kana"][entry], columns["kana_ranks"])
        inflected = any(kind.startswith(INFLECTED) for kind in kinds)
        for gloss in filter(None, (_gloss(text) for (text,) in columns["glosses"][sense])):
            for word, rank in written.items():
                if kept := _beginning(word) if inflected else _kept(word):
                    groups[gloss][kept] = min(rank, groups[gloss].get(kept, RARE))
    for gloss, words in sorted(groups.items()):
        yield [gloss, *sorted(words, key=lambda word: (words[word], word))]


def sudachi(lines: Iterable[str]) -> Iterator[list[str]]:
    """The groups of synonyms.txt; its docs/synonyms.md explains the columns."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for row in csv.reader(lines):
        if not row or row[2] == "2":
            continue
        word = normalise(row[8])
        kept = (_beginning(word) if row[1] == "2" else _kept(word)) if is_japanese(word) else " ".join(tokens(word))
        if kept:
            groups[row[0]][("-" if row[2] == "1" else "") + kept] = None
    yield from (list(words) for words in groups.values() if len(words) > 1)


def _by_first(connection: sqlite3.Connection, sql: str) -> dict[object, list[tuple[object, ...]]]:
    found = defaultdict(list)
    for first, *rest in connection.execute(sql):
        found[first].append(tuple(rest))
    return found


def _ranked(words: Iterable[tuple[object, ...]], marks: dict[object, list[tuple[object, ...]]]) -> dict[str, int]:
    """The frequent ones of these words, with their ranks."""
    return {normalise(str(text)): _rank({str(mark) for (mark,) in marks[key]}) for key, text in words if key in marks}


def _rank(marks: set[str]) -> int:
    numbered = [int(mark[2:]) for mark in marks if mark.startswith("nf")]
    return min(numbered, default=USUAL if marks & _OFTEN else KNOWN)


def _gloss(text: str) -> str:
    written = _BEFORE_GLOSS.sub("", _ASIDE.sub("", text).strip().casefold().strip(' .!?"'), count=1)
    is_word = len(written.split()) in range(1, GLOSS_WORDS + 1) and not is_function_word(written) and not re.search(r"\d", written)
    return " ".join(tokens(written)) if is_word and not is_japanese(written) else ""


def _beginning(word: str) -> str:
    """What all forms of a verb or an adjective begin with: 遅れ of 遅れる. Those of kana alone are too short for that."""
    return _kept(word if _HIRAGANA.fullmatch(word) or not _HIRAGANA.fullmatch(word[-1]) else word[:-1])


def _kept(word: str) -> str:
    return "" if len(word) < (3 if _HIRAGANA.fullmatch(word) else 2) and not _KANJI.fullmatch(word) else word


def _write(name: str, groups: Iterable[list[str]]) -> None:
    (TARGET / name).write_text("".join("\t".join(words) + "\n" for words in groups), encoding="utf-8", newline="\n")


def unpacked(package: Path, directory: Path) -> Path:
    """The database of jamdict-data, in this directory."""
    database = directory / "jamdict.db"
    with tarfile.open(package) as archive:
        packed = next(member for member in archive if member.name.endswith("jamdict.db.xz"))
        archive.extract(packed, directory, filter="data")
    with lzma.open(directory / packed.name) as unpacked_, database.open("wb") as file:
        shutil.copyfileobj(unpacked_, file)
    return database


def _main(package: Path, synonyms: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        _write("jmdict.tsv", jmdict(unpacked(package, Path(directory))))
    with synonyms.open(encoding="utf-8", newline="") as lines:
        _write("sudachi.tsv", sudachi(lines))


if __name__ == "__main__":
    _main(*map(Path, sys.argv[1:]))
