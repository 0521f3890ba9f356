"""The write path on a real store: what is stored, what is recognised as the same write, what is reported as alike."""

import dataclasses
import re
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Restored
from memory_mcp.errors import InvalidInput, MemoryNotFound, Overloaded, StoreError
from memory_mcp.remember import similar
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories, tombstones
from memory_mcp.store.vectors import chunks, index_queue


@pytest.fixture
def stored(nilou):
    def read(key):
        with nilou.database.read() as connection:
            return memories.by_keys(connection, [key]).get(key)

    return read


@pytest.fixture
def counts(nilou):
    def read():
        with nilou.database.read() as connection:
            return memories.counts(connection)

    return read


def keys_of(recalled) -> list[str]:
    return [hit.memory.key for hit in recalled.hits]


def test_everything_that_was_said_of_a_memory_is_stored(say, stored, now):
    key = say(
        "京都へ行った",
        source="user",
        session_id="s1",
        kind="experience",
        tags=["旅"],
        importance=0.9,
        occurred_at="昨日",
        questions=["どこへ行った？"],
        state={"emotion": "joy"},
    ).key
    memory = stored(key)
    assert (memory.content, memory.source, memory.session_id, memory.kind) == ("京都へ行った", "user", "s1", "experience")
    assert (memory.tags, memory.importance, memory.questions, memory.state) == (("旅",), 0.9, ("どこへ行った？",), {"emotion": "joy"})
    assert (memory.created_at, memory.updated_at, memory.revision) == (now, now, 1)
    assert memory.event_time == memory.occurred_at == datetime(2025, 10, 28, 15, tzinfo=UTC)


def test_a_key_is_short_and_unique(say):
    keys = {say(f"fact {number}").key for number in range(20)}
    assert len(keys) == 20
    assert all(re.fullmatch(r"([a-z]{2}\d{3}){2}", key) for key in keys)


def test_a_new_key_is_none_that_is_had_named_or_purged(say, nilou, now, monkeypatch):
    had = say("苺が好き").key
    named, purged, free = "ab123cd456", "ef123gh456", "ij123kl456"
    say("桃が好き", supersedes=had)
    nilou.database.write(lambda connection: connection.execute("UPDATE memories SET supersedes = ? WHERE supersedes = ?", (named, had)))
    nilou.database.write(lambda connection: tombstones.add(connection, [purged], now))
    offered = iter([had, named, purged, free])
    monkeypatch.setattr(memories, "new_key", lambda: next(offered))
    assert say("梨が好き").key == free


def test_a_stored_memory_can_be_found_at_once(say, ask):
    remembered = say("苺が好き")
    assert remembered.stored
    assert keys_of(ask("苺")) == [remembered.key]


def test_a_long_memory_is_split_and_waits_for_its_vectors(say, nilou, stored):
    memory = stored(say("長い話。" * 1000).key)
    with nilou.database.read() as connection:
        pieces = chunks.of_memory(connection, memory.id)
        assert index_queue.length(connection) == 1
    assert len(pieces) > 1
    assert (pieces[0].start, pieces[-1].end) == (0, 4000)


def test_a_retry_is_answered_with_the_first_key_and_stores_nothing(say, counts, now):
    first = say("京都へ行った", source="user")
    again = say("京都へ行った", source="user", at=now + timedelta(minutes=10))
    assert (again.key, again.stored) == (first.key, False)
    assert counts()["memories"] == 1


def test_the_same_words_later_are_a_new_memory(say, now):
    first = say("おはよう")
    assert say("おはよう", at=now + timedelta(minutes=10, seconds=1)).key != first.key


def test_a_retry_that_says_when_it_happened_is_recognised_for_ever(say, now):
    first = say("京都へ行った", occurred_at="2025-10-17")
    assert say("京都へ行った", occurred_at="2025-10-17", at=now + timedelta(days=400)).key == first.key


@pytest.mark.parametrize("difference", [{"source": "other"}, {"session_id": "s2"}, {"occurred_at": "2025-10-18"}])
def test_a_write_that_differs_in_who_where_or_when_is_another(say, difference):
    same = {"source": "user", "session_id": "s1", "occurred_at": "2025-10-17"}
    assert say("京都へ行った", **same).key != say("京都へ行った", **{**same, **difference}).key


def test_what_was_forgotten_can_be_remembered_anew(say, nilou, now):
    first = say("京都へ行った").key
    forget(nilou, [first], reason=None, dry_run=False, now=now, privacy=Privacy())
    again = say("京都へ行った")
    assert again.stored
    assert again.key != first


def test_a_memory_that_replaces_another_hides_it(say, ask, stored, counts):
    old = say("好きな果物は苺").key
    new = say("好きな果物は林檎", supersedes=old).key
    assert keys_of(ask("果物")) == keys_of(ask(mode="recent")) == [new]
    assert stored(old).superseded_by == new
    assert stored(new).supersedes == old
    assert counts() == {"memories": 1, "superseded": 1, "in_trash": 0}


def test_forgetting_the_successor_brings_the_old_back_and_restoring_it_hides_it_again(say, ask, nilou, now):
    old = say("好きな果物は苺").key
    new = say("好きな果物は林檎", supersedes=old).key
    forget(nilou, [new], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert keys_of(ask("果物")) == [old]
    revise(nilou, new, Revision(restore=True), now=now, privacy=Privacy())
    assert keys_of(ask("果物")) == [new]


def test_replacing_what_does_not_exist_is_refused_and_stores_nothing(say, counts):
    with pytest.raises(MemoryNotFound, match="supersedes names memory_x"):
        say("京都", supersedes="memory_x")
    assert counts()["memories"] == 0


def test_nearly_the_same_is_stored_and_reported(say):
    first = say("昨日の夕飯は京都で食べたカレーだった")
    second = say("昨日の夕飯は京都で食べたカレーだった！")
    assert second.stored
    (similar,) = second.similar
    assert (similar.key, similar.similarity) == (first.key, 1.0)
    assert similar.preview == "昨日の夕飯は京都で食べたカレーだった"
    assert first.similar == ()


def test_a_near_duplicate_is_found_among_many_memories_of_the_same_words(say, monkeypatch):
    monkeypatch.setattr(similar, "LOOKUP_ROWS", 2)
    for number in range(20):
        say(f"日記：今日は{number}時に起きて散歩をした")
    first = say("日記：今日は雨だったので本を読んだ")
    assert [similar.key for similar in say("日記：今日は雨だったので本を読んだ！").similar] == [first.key]


def test_what_merely_shares_words_is_not_called_alike(say):
    say("昨日の夕飯は京都で食べたカレーだった")
    assert say("昨日の朝食は奈良で食べたパンだった").similar == ()


def test_neither_forgotten_nor_replaced_memories_are_called_alike(say, nilou, now):
    forgotten = say("京都の寺を見た").key
    forget(nilou, [forgotten], reason=None, dry_run=False, now=now, privacy=Privacy())
    replaced = say("奈良の鹿を見た").key
    successor = say("奈良の鹿を見たよ", supersedes=replaced).key
    assert say("京都の寺を見た！").similar == ()
    assert [similar.key for similar in say("奈良の鹿を見た！").similar] == [successor]


def test_many_are_stored_in_one_call_each_with_its_own_outcome(nilou, counts, now, zone):
    taken = remember(nilou, draft("先客", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    drafts = [
        draft("一", now=now, zone=zone),
        draft("一", now=now, zone=zone),
        draft("二", now=now, zone=zone, supersedes="no such key"),
        Draft("別の内容", restored=Restored(key=taken)),
        Draft("先客", restored=Restored(key=taken)),
        draft("三", now=now, zone=zone),
    ]
    outcomes = remember_many(nilou, drafts, now=now, zone=zone, privacy=Privacy())
    assert [outcome.outcome for outcome in outcomes] == ["stored", "already_known", "refused", "refused", "already_known", "stored"]
    assert outcomes[1].key == outcomes[0].key
    assert "no such key" in outcomes[2].reason
    assert f"the key {taken} is taken" in outcomes[3].reason
    assert counts()["memories"] == 3


def test_what_an_export_knows_is_stored_as_it_is(nilou, stored, now, zone):
    then = now - timedelta(days=100)
    told = Restored("memory_1", created_at=then, updated_at=then + timedelta(days=1), revision=4, usage_count=7, last_used_at=now)
    remember(nilou, Draft("京都", restored=told), now=now, zone=zone, privacy=Privacy())
    memory = stored("memory_1")
    known = {name: value for name, value in dataclasses.asdict(told).items() if name not in ("feedback", "is_undated", "former_keys")}
    assert {name: getattr(memory, name) for name in known} == known


def test_an_exported_memory_from_the_trash_comes_back_into_the_trash(nilou, ask, counts, now, zone):
    remember(nilou, Draft("京都", restored=Restored("memory_1", deleted_at=now)), now=now, zone=zone, privacy=Privacy())
    assert keys_of(ask("京都")) == []
    assert counts()["in_trash"] == 1


def test_an_exported_successor_may_come_before_what_it_replaces(nilou, ask, now, zone):
    successor = Draft("果物は林檎", supersedes="memory_1", restored=Restored("memory_2"))
    old = Draft("果物は苺", restored=Restored("memory_1"))
    remember_many(nilou, [successor, old], now=now, zone=zone, privacy=Privacy())
    assert keys_of(ask("果物")) == ["memory_2"]


def test_a_taken_key_is_refused_for_another_content(nilou, now, zone):
    remember(nilou, Draft("京都", restored=Restored("memory_1")), now=now, zone=zone, privacy=Privacy())
    with pytest.raises(InvalidInput, match="memory_1 is taken"):
        remember(nilou, Draft("奈良", restored=Restored("memory_1")), now=now, zone=zone, privacy=Privacy())


def test_who_replaces_what_was_replaced_before_is_told_of_the_rival(say):
    first = say("太郎は東京に住む").key
    second = say("太郎は大阪に住む", supersedes=first)
    third = say("太郎は名古屋に住む", supersedes=first)
    assert (second.rivals, third.rivals) == ((), (second.key,))


@pytest.mark.parametrize(
    "error", [StoreError("it is damaged", "", ""), Overloaded("too much", "", ""), apsw.IOError("disk I/O error"), MemoryError()]
)
def test_a_memory_that_cannot_be_compared_is_stored_all_the_same(say, nilou, monkeypatch, error):
    def failing(*_, **__):
        raise error

    monkeypatch.setattr(similar, "_similar", failing)
    stored = say("苺が好き")
    assert (stored.stored, stored.similar) == (True, ())
    with nilou.database.read() as connection:
        assert memories.by_keys(connection, [stored.key])
