"""The words of each language that rules are about, one table each: particles, pronouns, honorifics, weekdays. They are data, in
`en.toml` and `ja.toml`, and so is how kana and Latin letters sound, in `sounds.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources

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
