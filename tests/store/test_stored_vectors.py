"""The vectors in SQLite: what the later steps of the schema do to older files, and what counts as waiting."""

import json

import numpy as np

from memory_mcp.config.settings import Privacy
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.vectors import chunks, stored_vectors

MOMENT = "2025-10-30T03:00:00.000000+00:00"


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
