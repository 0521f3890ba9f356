"""How long memories are kept: what goes into the trash by itself, what is erased from there, and what never goes."""

import json
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.errors import Overloaded
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import erasure
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import history, purge, retention_rules

DAY = timedelta(days=1)


@pytest.fixture
def chore(nilou, now):
    """Does the chore to its end, so many days from now, under some rules. Returns how often it was called."""

    def run(days, **rules):
        settings = Settings(embeddings_model=None, reranker_model=None, retention=rules)
        shelf, steps = IndexCache(), 1
        while retention_rules.step(nilou, now + days * DAY, settings, shelf):
            steps += 1
            assert steps < 50
        return steps

    return run


def keys_of(recalled):
    return {hit.memory.key for hit in recalled.hits}


def listed(nilou, moment, **rules):
    found = retention_rules.list_due(nilou, Settings(retention=rules).retention, moment)
    return [(due.memory.key, due.rule) for due in found.to_trash], [(due.memory.key, due.rule) for due in found.to_erase]


def test_each_kind_has_days_of_its_own_and_none_of_them_is_on_by_itself(say, ask, nilou, chore, now):
    talk, fact = say("話したこと", kind="conversation").key, say("大事なこと").key
    assert listed(nilou, now + 1_000 * DAY) == ([], [])
    assert listed(nilou, now + 31 * DAY, conversation_days=30) == ([(talk, "conversation_days 30")], [])
    assert listed(nilou, now + 29 * DAY, conversation_days=30) == ([], [])
    chore(31, conversation_days=30)
    assert keys_of(ask(mode="recent")) == {fact}
    assert history.of(nilou, talk).done[-1].metadata == {"rule": "conversation_days 30", "by": "retention"}


def test_of_a_long_memory_the_beginning_is_listed_and_the_whole_is_recorded_as_it_goes(say, nilou, chore, now):
    text = "話したこと。" * 30_000
    key = say(text, kind="conversation").key
    (due,) = retention_rules.list_due(nilou, Settings(retention={"conversation_days": 30}).retention, now + 31 * DAY).to_trash
    assert text.startswith(due.memory.content)
    assert len(due.memory.content) < 200
    chore(31, conversation_days=30)
    assert history.of(nilou, key).memory.content == text
    with nilou.database.read() as connection:
        (before,) = connection.execute("SELECT before FROM operations WHERE key = ? AND operation = 'delete'", (key,)).fetchone()
    assert json.loads(before) == {"content": text}


def test_what_lies_in_the_trash_for_thirty_days_is_erased(say, nilou, chore, now):
    key, kept = say("捨てた話").key, say("残る話").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    chore(29)
    assert history.of(nilou, key).memory.deleted_at == now
    chore(31)
    with nilou.database.read() as connection:
        assert [row[0] for row in connection.execute("SELECT key FROM memories")] == [kept]
        assert erasure.sweep_due(connection) is None


def test_a_trash_without_an_end_keeps_everything(say, nilou, chore, now):
    key = say("捨てた話").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    chore(10_000, trash_days=None)
    assert history.of(nilou, key).memory.deleted_at == now


def test_what_retention_forgets_lies_in_the_trash_first(say, nilou, chore, now):
    key = say("話したこと", kind="conversation").key
    chore(31, conversation_days=30, trash_days=30)
    assert history.of(nilou, key).memory.deleted_at == now + 31 * DAY
    chore(60, conversation_days=30, trash_days=30)
    assert history.of(nilou, key)
    chore(62, conversation_days=30, trash_days=30)
    assert listed(nilou, now + 100 * DAY, conversation_days=30) == ([], [])


def test_what_is_important_or_carries_a_tag_to_keep_never_goes(say, ask, chore):
    important, tagged, plain = say("誓い", importance=0.8).key, say("写真", tags=["KEEP"]).key, say("天気").key
    chore(31, fact_days=30)
    assert keys_of(ask(mode="recent")) == {important, tagged}
    chore(31, fact_days=30, keep_importance=None, keep_tags=["ずっと"])
    assert keys_of(ask(mode="recent")) == set()
    assert plain


def test_a_change_and_a_restore_begin_the_time_anew(say, ask, nilou, chore, now):
    changed, restored, left = say("直した").key, say("戻した").key, say("そのまま").key
    chore(0)
    revise(nilou, changed, Revision(content="直したあと"), now=now + 20 * DAY, privacy=Privacy())
    chore(31, fact_days=30)
    assert keys_of(ask(mode="recent")) == {changed}
    revise(nilou, restored, Revision(restore=True), now=now + 31 * DAY, privacy=Privacy())
    chore(32, fact_days=30)
    assert keys_of(ask(mode="recent")) == {changed, restored}
    chore(62, fact_days=30)
    assert keys_of(ask(mode="recent")) == set()
    assert left


def test_what_was_replaced_does_not_come_to_light_when_its_successor_is_over(say, ask, nilou, chore, now):
    old = say("東京に住んでいる", importance=0.9).key
    new = say("京都に住んでいる", supersedes=old).key
    chore(31, fact_days=30)
    assert keys_of(ask(mode="recent")) == {new}
    forget(nilou, [old], reason=None, dry_run=False, now=now, privacy=Privacy())
    chore(31, fact_days=30, trash_days=None)
    assert keys_of(ask(mode="recent")) == set()


@pytest.mark.slow
def test_more_than_a_batch_is_done_in_several_steps(say, nilou, ask, chore):
    for number in range(230):
        say(f"話 {number}")
    steps = chore(31, fact_days=30)
    assert steps >= 3
    assert keys_of(ask(mode="recent")) == set()
    assert chore(62, fact_days=30) >= 3
    with nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM memories").get == 0
        assert connection.execute("SELECT count(*) FROM tombstones").get == 230


def test_nothing_to_do_writes_nothing(say, nilou, chore):
    say("話")
    before = nilou.database.size_bytes()
    assert chore(100, fact_days=1_000) == 1
    assert nilou.database.size_bytes() == before


def test_a_purge_that_a_crash_interrupted_is_swept_by_the_next_round(say, nilou, chore, now):
    key = say("zqxunique な話").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    purge.erase(nilou, [key], rule="asked for", now=now)
    assert b"zqxuniqu" in b"".join(file.read_bytes() for file in nilou.database.path.parent.glob("memory.sqlite*"))
    chore(0)
    assert b"zqxuniqu" not in b"".join(file.read_bytes() for file in nilou.database.path.parent.glob("memory.sqlite*"))


@pytest.mark.slow
def test_somebody_who_reads_for_long_puts_the_sweep_off(say, nilou, chore, now):
    key = say("zqxunique な話").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        connection.execute("SELECT count(*) FROM memories").fetchall()
        with pytest.raises(Overloaded, match="isn't removed from its files yet"):
            chore(31)
    chore(31)
    with nilou.database.read() as connection:
        assert erasure.sweep_due(connection) is None
