"""The words of each language that rules are about, one table each: particles, pronouns, honorifics, weekdays. They are data, in
`en.toml` and `ja.toml`, and so is how kana and Latin letters sound, in `sounds.toml`.

The expressions that are made of them are data, too, in a file beside the module that reads texts by them. There `@{ja.planned}` is one of the
words of that table, `@{kanji}` a class of characters or a part of the same file; of a list one matches.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from memory_mcp.characters import EVERY_KANJI, HAN, HIRAGANA, KANJI, KATAKANA
from memory_mcp.patterns import LONGEST, bounded

_FILES = {
    language: tomllib.loads((resources.files("memory_mcp.lexicon") / f"{language}.toml").read_text("utf-8"))
    for language in ("en", "ja", "sounds")
}


def words(language: str, *tables: str) -> tuple[str, ...]:
    """The words of tables, in the order of the file. A table is a text with blanks between its words, or a list."""
    listed = (_FILES[language][table] for table in tables)
    return tuple(word for written in listed for word in (written.split() if isinstance(written, str) else written))


def mapping(language: str, table: str) -> Mapping[str, str]:
    """A table of pairs: a word, and what it stands for."""
    return dict(_FILES[language][table])


def counts(language: str, table: str) -> Mapping[str, int]:
    """A table of pairs: a word, and its number."""
    return dict(_FILES[language][table])


def any_of(listed: Iterable[str]) -> str:
    """A regular expression for one of these words, the longer one first; an apostrophe may be missing."""
    return "|".join(re.escape(word).replace("'", "'?") for word in sorted(listed, key=len, reverse=True))


def grouped(language: str, table: str) -> Mapping[str, str]:
    """A table of groups, turned around: each word, and the name of its group."""
    return {word: group for group, written in mapping(language, table).items() for word in written.split()}


Pattern = str | list[str]
# Classes of characters, to stand within brackets; and what any person is called.
CLASSES = {
    "han": HAN,
    "kanji": KANJI,
    "every_kanji": EVERY_KANJI,
    "hiragana": HIRAGANA,
    "katakana": KATAKANA,
    "particles": "".join(words("ja", "particles")),
    "days_of_week": "月火水木金土日",
    "anybody": words("ja", "anybody")[0],
}
_REFERENCE = re.compile(r"@\{(?:(ja|en)\.)?(\w+)\}")


def filled(pattern: Pattern, parts: Mapping[str, str]) -> str:
    """A pattern with the words and parts that it names. Line breaks in it are nothing."""
    whole = pattern if isinstance(pattern, str) else "|".join(pattern)
    return _REFERENCE.sub(lambda part: any_of(words(part[1], part[2])) if part[1] else parts[part[2]], re.sub(r"\n *", "", whole))


def parts_of(patterns: Mapping[str, Pattern], known: Mapping[str, str] = CLASSES) -> dict[str, str]:
    """The patterns by name, each filled with those above it and with those `known`."""
    parts = dict(known)
    for name, pattern in patterns.items():
        parts[name] = filled(pattern, parts)
    return parts


def needed(written: str) -> Iterator[str]:
    """The words of a list, with _ for a blank, and those of the tables that it names: without one of them an expression matches nothing."""
    for word in written.split():
        table = _REFERENCE.fullmatch(word)
        yield from words(table[1], table[2]) if table else [word.replace("_", " ")]


def expressions(module: str, file: str, table: str, *, longest: int = LONGEST, **known: str) -> Mapping[str, re.Pattern[str]]:
    """The expressions of a table by name, in a file beside a module (its `__file__`). `known`: further parts that they name. Each repetition in
    them ends after `longest`."""
    tables = tomllib.loads(Path(module).with_name(file).read_text("utf-8"))
    parts = parts_of(tables.get("parts", {}), {**CLASSES, **known})
    return {name: bounded(filled(pattern, parts), longest=longest) for name, pattern in tables[table].items()}
