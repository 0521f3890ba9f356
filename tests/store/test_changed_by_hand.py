"""A database that somebody has changed with another program: what can be read is, the rest is named, and no other persona is affected."""

import json

import apsw
import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import StoreError
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.inspection import inspect
from memory_mcp.transfer.jsonlines import export_lines

CHANGES = {
    "created_at = 'yesterday'": "created_at",
    "created_at = '2025-10-30T12:00:00'": "created_at",
    "created_at = 17": "created_at",
    "updated_at = ''": "updated_at",
    "occurred_at = 'いつか'": "occurred_at",
    "tags = 'nope'": "tags",
    "state = '{broken'": "state",
    "state = '[1]'": "state",
    "questions = '1'": "questions",
    "metadata = '[]'": "metadata",
    "content = x'e78cabff'": "content",
    "last_used_at = 'soon'": "last_used_at",
}


def by_hand(persona, *statements):
    connection = apsw.Connection(str(persona.database.path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(("change", "column"), CHANGES.items())
def test_a_row_with_a_value_that_can_not_be_read_hides_no_memory(nilou, say, ask, caplog, change, column):
    changed = say("苺が好き", tags=["果物"]).key
    other = say("苺を買った", tags=["果物"]).key
    by_hand(nilou, f"UPDATE memories SET {change} WHERE key = '{changed}'")
    assert {hit.memory.key for hit in ask("苺").hits} == {changed, other}
    assert other in {hit.memory.key for hit in ask("苺", tags=["果物"]).hits}
    assert {hit.memory.key for hit in ask(mode="recent").hits} == {changed, other}
    assert {row["key"] for row in map(json.loads, export_lines(nilou)) if "content" in row} == {changed, other}
    assert f"{changed} is read without its {column}" in caplog.text
    assert inspect(nilou.database.path).malformed == ((changed, [column]),)


def test_a_table_that_is_gone_refuses_this_persona_in_our_words_and_no_other(personas, nilou, say, now, zone):
    say("苺が好き")
    with personas.writing("collei") as collei:
        remember(collei, draft("桃が好き", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    by_hand(nilou, "DROP TABLE memory_versions")
    with pytest.raises(StoreError, match=r"can't be used.*memory_versions"), nilou.database.read() as connection:
        connection.execute("SELECT * FROM memory_versions").fetchall()
    with personas.reading("collei") as collei:
        assert len(list(export_lines(collei))) == 1


def test_a_file_of_a_newer_version_is_refused_and_not_written(nilou, say, data_directory, personas):
    say("苺が好き")
    by_hand(nilou, "INSERT INTO migrations VALUES ('9999 of a version to come', '2099-01-01')")
    personas.close()
    path = data_directory / "nilou" / "memory.sqlite"
    before = path.read_bytes()
    again = Personas(data_directory)
    with pytest.raises(StoreError, match="written by a newer version"), again.writing("nilou"):
        pass
    again.close()
    assert path.read_bytes() == before
    assert "newer version" in inspect(path).refused
