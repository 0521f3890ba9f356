"""The vectors in SQLite: what the later steps of the schema do to older files, and what counts as waiting."""

import json

import numpy as np
import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import migrations
from memory_mcp.store.vectors import chunks, index_queue, stored_vectors

MOMENT = "2025-10-30T03:00:00.000000+00:00"


@pytest.fixture
def from_first_schema(data_directory, monkeypatch):
    """nilou as the first version left her: two memories, the first with questions and a vector, nothing waiting."""

    def make(questions: str | None) -> Personas:
        monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        first = Personas(data_directory)
        with first.writing("nilou") as persona:
            persona.database.write(lambda connection: fill(connection, questions))
        first.close()
        monkeypatch.undo()
        return Personas(data_directory)

    def fill(connection, questions):
        connection.executemany(
            "INSERT INTO memories(id, key, content, created_at, updated_at, questions) VALUES (?, ?, ?, ?, ?, ?)",
            [(1, "k1", "ミケ", MOMENT, MOMENT, questions), (2, "k2", "京都", MOMENT, MOMENT, None)],
        )
        connection.execute('INSERT INTO chunks(memory_id, start, "end") VALUES (1, 0, 2), (2, 0, 2)')
        connection.execute("INSERT INTO vectors(chunk, generation, blob) VALUES (1, 'g', ?)", (np.ones(4, "<f4").tobytes(),))

    return make


@pytest.mark.parametrize(
    ("questions", "expected"),
    [('["猫の名前は？", "何を飼う？"]', ["猫の名前は？", "何を飼う？"]), (None, []), ("[]", []), ("[", []), ('[1, "", null]', ["1"])],
)
def test_questions_of_an_older_file_become_chunks_and_wait(from_first_schema, zone, questions, expected):
    personas = from_first_schema(questions)
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        found = connection.execute("SELECT memory_id, question FROM chunks WHERE question IS NOT NULL ORDER BY id").fetchall()
        assert found == [(1, question) for question in expected]
        assert index_queue.length(connection) == (1 if expected else 0)
        assert [chunk.text for chunk in stored_vectors.unembedded(connection, "g", 9, zone, of=[1])] == expected
    personas.close()


def test_vectors_of_an_older_file_are_kept(from_first_schema):
    personas = from_first_schema(None)
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        found, vectors = stored_vectors.of_chunks(connection, "g", [1, 2])
        assert (found.tolist(), vectors.tolist()) == ([1], [[1, 1, 1, 1]])
    personas.close()


def test_vectors_go_with_their_chunks_and_the_index_is_told(nilou, say):
    say("京都")

    def replace(connection):
        stored_vectors.write(connection, "g", [1, 7], np.ones((2, 4), np.float32))
        chunks.replace(connection, 1, chunks.of_memory(connection, 1))

    nilou.database.write(replace)
    with nilou.database.read() as connection:
        assert stored_vectors.counts(connection) == {}
        assert stored_vectors.dropped_chunks(connection) == [1]
        assert list(chunks.of_memories(connection, [1])) == [2]


def test_a_vector_takes_little_more_room_than_its_numbers(nilou, now, zone):
    """A table WITHOUT ROWID would take 4.7 KB for each."""
    count, blob = 2_000, bytes(1024)

    def fill(connection):
        connection.executemany('INSERT INTO chunks(memory_id, start, "end") VALUES (?, 0, 0)', [(number,) for number in range(count)])
        connection.execute("INSERT INTO vectors(generation, chunk, blob) SELECT 'model:256', id, ? FROM chunks", (blob,))

    nilou.database.write(fill)
    with nilou.database.read() as connection:
        pages = connection.execute("PRAGMA page_count").get * connection.execute("PRAGMA page_size").get
    assert pages / count < 1_700


def test_what_waits_is_told_exactly_for_a_short_list_and_counted_for_a_long_one(nilou, say, now):
    for number in range(3):
        say(f"記憶{number}")

    def embed_one(connection):
        stored_vectors.write(connection, "g", [2], np.ones((1, 4), np.float32))

    nilou.database.write(embed_one)
    with nilou.database.read() as connection:
        assert stored_vectors.waiting(connection, "g") == stored_vectors.lag(connection, "g") == 2
        assert stored_vectors.chunks_lacking(connection, "g") == 2


def test_replacements_in_a_chain_are_current_or_not_as_everywhere_else(personas, now, zone):
    with personas.writing("nilou") as persona:
        keys = []
        for content in ("ミケ", "タマ", "クロ"):
            made = draft(content, now=now, zone=zone, supersedes=keys[-1] if keys else None)
            keys.append(remember(persona, made, now=now, zone=zone, privacy=Privacy()).key)
        with persona.database.read() as connection:
            assert [chunk.text for chunk in stored_vectors.unembedded(connection, "g", 9, zone)] == ["[2025-10-30] クロ"]
            current = connection.execute(f"SELECT json_group_array(m.key) FROM memories m WHERE {stored_vectors.SEARCHABLE}").get
            assert json.loads(current) == keys[-1:]
