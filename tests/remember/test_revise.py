"""Changing a memory, with its earlier states kept, and bringing it back from the trash."""

from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import NOTHING
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import memory_dates, operations
from memory_mcp.store.timestamps import from_text
from memory_mcp.store.vectors import chunks, index_queue


@pytest.fixture
def versions(nilou):
    def read(key):
        with nilou.database.read() as connection:
            sql = "SELECT revision, content, tags, importance, reason FROM memory_versions WHERE key = ? ORDER BY revision"
            return connection.execute(sql, (key,)).fetchall()

    return read


def keys_of(recalled) -> list[str]:
    return [hit.memory.key for hit in recalled.hits]


def test_a_revision_changes_what_is_given_and_keeps_the_rest(say, nilou, now):
    key = say("苺が好き", tags=["食"], importance=0.9, source="user").key
    later = now + timedelta(days=1)
    memory = revise(nilou, key, Revision(content="林檎が好き"), now=later, privacy=Privacy())
    assert (memory.key, memory.content, memory.tags, memory.importance, memory.source) == (key, "林檎が好き", ("食",), 0.9, "user")
    assert (memory.revision, memory.created_at, memory.updated_at) == (2, now, later)
    assert revise(nilou, key, Revision(tags=()), now=later, privacy=Privacy()).tags == ()
    assert revise(nilou, key, Revision(importance=0), now=later, privacy=Privacy()).importance == 0.0


def test_every_earlier_state_is_kept_with_the_reason_for_its_end(say, nilou, versions, now):
    key = say("苺が好き", tags=["食"]).key
    revise(nilou, key, Revision(content="林檎が好き", reason="好みが変わった"), now=now, privacy=Privacy())
    revise(nilou, key, Revision(importance=0.9), now=now, privacy=Privacy())
    assert versions(key) == [(1, "苺が好き", '["食"]', 0.5, "好みが変わった"), (2, "林檎が好き", '["食"]', 0.5, None)]


def test_a_revised_memory_is_found_by_its_new_words_only(say, nilou, ask, now):
    key = say("苺が好き").key
    revise(nilou, key, Revision(content="林檎を愛する"), now=now, privacy=Privacy())
    assert keys_of(ask("林檎")) == [key]
    assert keys_of(ask("苺")) == []


def test_a_new_content_is_split_and_queued_anew(say, nilou, now):
    key = say("短い").key
    nilou.database.write(lambda connection: connection.execute("DELETE FROM index_queue"))
    memory = revise(nilou, key, Revision(content="長い話。" * 1000), now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        assert index_queue.length(connection) == 1
        assert chunks.of_memory(connection, memory.id)[-1].end == 4000


def test_new_tags_alone_make_no_work_for_the_index(say, nilou, now):
    key = say("短い").key
    nilou.database.write(lambda connection: connection.execute("DELETE FROM index_queue"))
    revise(nilou, key, Revision(tags=("食",)), now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        assert index_queue.length(connection) == 0


def test_a_memory_in_the_trash_is_restored_on_request_only(say, nilou, ask, now):
    key = say("苺が好き").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    with pytest.raises(InvalidInput, match=r"is in the trash.*restore=true"):
        revise(nilou, key, Revision(content="林檎が好き"), now=now, privacy=Privacy())
    memory = revise(nilou, key, Revision(restore=True), now=now, privacy=Privacy())
    assert (memory.deleted_at, memory.revision, memory.content) == (None, 1, "苺が好き")
    assert keys_of(ask("苺")) == [key]


def test_restoring_and_changing_go_together(say, nilou, ask, versions, now):
    key = say("苺が好き").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    memory = revise(nilou, key, Revision(restore=True, content="林檎が好き"), now=now, privacy=Privacy())
    assert (memory.deleted_at, memory.revision) == (None, 2)
    assert keys_of(ask("林檎")) == [key]
    assert len(versions(key)) == 1


def test_restoring_what_is_not_in_the_trash_changes_nothing(say, nilou, versions, now):
    key = say("苺が好き").key
    assert revise(nilou, key, Revision(restore=True), now=now + timedelta(days=1), privacy=Privacy()).updated_at == now
    assert versions(key) == []


def test_a_replaced_memory_stays_hidden_when_it_is_revised(say, nilou, ask, now):
    old = say("果物は苺").key
    new = say("果物は林檎", supersedes=old).key
    revise(nilou, old, Revision(content="果物はやはり苺"), now=now, privacy=Privacy())
    assert keys_of(ask("果物")) == [new]


def test_a_retry_of_the_revised_content_is_recognised(say, nilou, now):
    key = say("苺が好き").key
    revise(nilou, key, Revision(content="林檎が好き"), now=now, privacy=Privacy())
    assert say("林檎が好き").key == key


def test_a_key_that_does_not_exist_and_a_revision_of_nothing_are_refused(say, nilou, now):
    key = say("苺が好き").key
    with pytest.raises(MemoryNotFound, match="memory_x"):
        revise(nilou, "memory_x", Revision(content="x"), now=now, privacy=Privacy())
    with pytest.raises(InvalidInput, match="nothing to revise"):
        revise(nilou, key, Revision(reason="just so"), now=now, privacy=Privacy())


def test_who_said_it_and_when_it_was_are_corrected_and_come_back_with_the_earlier_revision(say, nilou, ask, now):
    key = say("明日は歯医者", source="健太").key
    day = now - timedelta(days=3)
    memory = revise(nilou, key, Revision(source="美咲", occurred_at=day), now=now, privacy=Privacy())
    assert (memory.source, memory.occurred_at, memory.content, memory.revision) == ("美咲", day, "明日は歯医者", 2)
    with nilou.database.read() as connection:  # the day that its text names follows
        (start, _) = memory_dates.of_memories(connection, [memory.id])[memory.id][0]
    assert from_text(start).astimezone(now.tzinfo).date() == (day + timedelta(days=1)).date()
    assert keys_of(ask("美咲は歯医者")) == [key]
    before = revise(nilou, key, Revision(revision=1), now=now, privacy=Privacy())
    assert (before.source, before.occurred_at) == ("健太", None)


def test_a_speaker_is_redacted_as_a_text_is(say, nilou, now):
    key = say("苺が好き").key
    memory = revise(nilou, key, Revision(source="4242 4242 4242 4242"), now=now, privacy=Privacy())
    assert "4242" not in memory.source


def test_a_stored_memory_takes_the_place_of_another_and_gives_it_back(say, nilou, ask, now):
    old, new, third = say("横浜に住む。").key, say("鎌倉に住むことにした。").key, say("葉山に住むかもしれない。").key

    def replacing(key, earlier):
        return revise(nilou, key, Revision(supersedes=earlier), now=now, privacy=Privacy())

    assert replacing(new, old).supersedes == old
    assert old not in keys_of(ask("横浜"))
    for refused in (
        lambda: replacing(new, third),
        lambda: replacing(old, new),
        lambda: replacing(third, third),
        lambda: replacing(third, NOTHING),
    ):
        with pytest.raises(InvalidInput):
            refused()
    with pytest.raises(MemoryNotFound, match="supersedes names nobody"):
        replacing(third, "nobody")
    assert replacing(new, NOTHING).supersedes is None
    assert keys_of(ask("横浜")) == [old]
    with nilou.database.read() as connection:
        assert [done.operation for done in operations.of_key(connection, new)] == ["create", "update", "update"]
