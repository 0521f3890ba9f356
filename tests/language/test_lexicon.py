"""The tables of words are written as a normalized text has them, each word once."""

import tomllib

import pytest
from places import ROOT

from memory_mcp.language.tokens import normalise

FILES = sorted((ROOT / "memory_mcp" / "lexicon").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_word_of_a_table_is_there_once_as_a_normalized_text_has_it(file):
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    assert tables
    for name, table in tables.items():
        listed = table.split() if isinstance(table, str) else list(table)
        if name not in ("syllables", "romanization"):  # pairs
            assert len(set(listed)) == len(listed), name
        if name not in ("read_as", "abbreviations", "letters", "trace_lines"):  # they have capitals
            assert [normalise(word) for word in listed] == listed, name
