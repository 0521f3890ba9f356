"""The words of each language that rules are about, one table each: particles, pronouns, honorifics, weekdays. They are data, in
`en.toml` and `ja.toml`, and so is how kana and Latin letters sound, in `sounds.toml`.
"""

import tomllib
from collections.abc import Mapping
from importlib import resources

_FILES = {
    language: tomllib.loads((resources.files("memory_mcp.lexicon") / f"{language}.toml").read_text("utf-8"))
    for language in ("en", "ja", "sounds")
}


def words(language: str, table: str) -> tuple[str, ...]:
    """The words of a table, in the order of the file. A table is a text with blanks between its words, or a list."""
    written = _FILES[language][table]
    return tuple(written.split() if isinstance(written, str) else written)


def mapping(language: str, table: str) -> Mapping[str, str]:
    """A table of pairs: a word, and what it stands for."""
    return dict(_FILES[language][table])


def grouped(language: str, table: str) -> Mapping[str, str]:
    """A table of groups, turned around: each word, and the name of its group."""
    return {word: group for group, written in mapping(language, table).items() for word in written.split()}
