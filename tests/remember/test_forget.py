"""Putting memories in the trash."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.remember.forget import forget
from memory_mcp.store import memories
from memory_mcp.store.vectors import index_queue


@pytest.fixture
def forgotten(nilou, now):
    def run(*keys, dry_run=False):
        return [(outcome.key, outcome.outcome) for outcome in forget(nilou, keys, reason=None, dry_run=dry_run, now=now, privacy=Privacy())]

    return run


def keys_of(recalled) -> list[str]:
    return [hit.memory.key for hit in recalled.hits]


def test_a_forgotten_memory_is_in_no_answer_and_still_in_the_store(say, ask, nilou, forgotten, now):
    key, other = say("京都の寺").key, say("京都の店").key
    assert forgotten(key) == [(key, "forgotten")]
    assert keys_of(ask("京都")) == keys_of(ask(mode="recent")) == [other]
    with nilou.database.read() as connection:
        assert memories.by_keys(connection, [key])[key].deleted_at == now
        assert memories.counts(connection) == {"memories": 1, "superseded": 0, "in_trash": 1}


def test_each_key_has_its_own_outcome_once(say, forgotten):
    key, gone = say("京都").key, say("奈良").key
    forgotten(gone)
    assert forgotten(key, gone, "memory_x", key) == [(key, "forgotten"), (gone, "already_forgotten"), ("memory_x", "not_found")]


def test_a_dry_run_tells_what_would_happen_and_does_nothing(say, ask, forgotten):
    key = say("京都").key
    assert forgotten(key, "memory_x", dry_run=True) == [(key, "would_forget"), ("memory_x", "not_found")]
    assert keys_of(ask("京都")) == [key]


def test_the_vector_index_is_told(say, nilou, forgotten):
    key = say("京都").key
    nilou.database.write(lambda connection: connection.execute("DELETE FROM index_queue"))
    forgotten(key)
    with nilou.database.read() as connection:
        assert index_queue.length(connection) == 1


def test_one_persona_cannot_forget_for_another(say, ask, personas, now):
    key = say("京都").key
    with personas.writing("collei") as collei:
        (outcome,) = forget(collei, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert outcome.outcome == "not_found"
    assert keys_of(ask("京都")) == [key]


def test_a_queued_memory_that_is_queued_again_moves_to_the_end_with_a_new_number(nilou):
    def requeue(connection):
        index_queue.enqueue(connection, [1, 2])
        index_queue.enqueue(connection, [1])
        return connection.execute("SELECT memory_id FROM index_queue ORDER BY sequence").fetchall()

    assert nilou.database.write(requeue) == [(2,), (1,)]
    with nilou.database.read() as connection:
        assert connection.execute("SELECT sequence FROM index_queue ORDER BY sequence").fetchall() == [(2,), (3,)]


def test_of_a_chain_of_replacements_only_the_newest_is_current_whichever_is_forgotten(nilou, say, ask, now):
    first = say("太郎は東京に住んでいる。").key
    second = say("太郎は京都に引っ越した。", supersedes=first).key
    third = say("太郎は札幌に引っ越した。", supersedes=second).key

    def current():
        return {hit.memory.key for hit in ask("太郎はどこに住んでいる？引っ越した？").hits}

    assert current() == {third}
    forget(nilou, [second], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert current() == {third}
    forget(nilou, [third], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert current() == {first}
