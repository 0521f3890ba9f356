"""What a memory said before: kept whole, read, and brought back."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import memories
from memory_mcp.upkeep import history


@pytest.fixture
def revised(nilou, now):
    def run(key, **changes):
        return revise(nilou, key, Revision(**changes), now=now, privacy=Privacy())

    return run


def test_every_earlier_state_is_there_with_the_reason_of_its_end_the_latest_first(say, nilou, revised):
    key = say("苺が好き", tags=["果物"], state={"emotion": "嬉しい"}, questions=["何が好き？"]).key
    revised(key, content="苺が大好き", reason="もっと好きになった")
    revised(key, tags=("食べ物",), importance=0.9)
    found = history.of(nilou, key)
    assert (found.memory.content, found.memory.tags, found.memory.revision) == ("苺が大好き", ("食べ物",), 3)
    assert [(version.revision, version.content, version.tags, version.reason) for version in found.versions] == [
        (2, "苺が大好き", ("果物",), None),
        (1, "苺が好き", ("果物",), "もっと好きになった"),
    ]
    assert found.versions[1].further["state"] == '{"emotion": "嬉しい"}'
    assert found.versions[1].further["questions"] == '["何が好き？"]'


def test_it_tells_what_was_done_and_why(say, nilou, revised, now):
    key = say("苺が好き").key
    revised(key, content="桃が好き", reason="言い間違い")
    forget(nilou, [key], reason="もういい", dry_run=False, now=now, privacy=Privacy())
    revised(key, restore=True)
    events = [(done.operation, done.metadata.get("reason")) for done in history.of(nilou, key).done]
    assert events == [("create", None), ("update", "言い間違い"), ("delete", "もういい"), ("restore", None)]


def test_an_earlier_version_comes_back_as_a_new_revision_and_is_found_again(say, ask, nilou, revised):
    key = say("苺が好き", tags=["果物"]).key
    revised(key, content="メロンは苦手", tags=("嫌い",), importance=0.1)
    memory = revised(key, revision=1, reason="戻す")
    assert (memory.content, memory.tags, memory.importance, memory.revision) == ("苺が好き", ("果物",), 0.5, 3)
    assert [hit.memory.key for hit in ask("苺").hits] == [key]
    assert ask("メロン").hits == ()
    assert [version.revision for version in history.of(nilou, key).versions] == [2, 1]
    assert history.of(nilou, key).done[-1].metadata == {"reason": "戻す", "from_revision": 1}


def test_the_other_columns_of_an_earlier_state_come_back_with_it(say, nilou, revised):
    key = say("苺が好き", state={"emotion": "嬉しい"}, questions=["何が好き？"]).key
    revised(key, content="桃が好き")
    nilou.database.write(lambda connection: connection.execute("UPDATE memories SET state = NULL, questions = '[\"他\"]'"))
    memory = revised(key, revision=1)
    assert (memory.state, memory.questions) == ({"emotion": "嬉しい"}, ("何が好き？",))
    with nilou.database.read() as connection:
        assert connection.execute("SELECT question FROM chunks WHERE question IS NOT NULL").fetchall() == [("何が好き？",)]


def test_a_revision_that_never_was_is_refused_with_those_that_are(say, revised):
    key = say("苺が好き").key
    revised(key, content="桃が好き")
    with pytest.raises(MemoryNotFound, match="no earlier revision 7: there are 1"):
        revised(key, revision=7)
    with pytest.raises(InvalidInput, match="nothing to revise"):
        revised(key)


def test_a_memory_in_the_trash_has_its_history(say, nilou, now):
    key = say("苺が好き").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert history.of(nilou, key).memory.deleted_at == now


def test_a_superseded_memory_is_marked_and_readable(say, ask, nilou):
    old = say("東京に住んでいる").key
    new = say("京都に引っ越した", supersedes=old).key
    assert history.of(nilou, old).memory.superseded_by == new
    assert [hit.memory.key for hit in ask(keys=[old]).hits] == [old]


def test_what_is_not_there_has_no_history(nilou):
    with pytest.raises(MemoryNotFound, match="no memory has the key memory_x"):
        history.of(nilou, "memory_x")


def test_a_state_that_was_kept_before_there_were_other_columns_comes_back_without_them(say, nilou, revised):
    key = say("苺が好き", state={"emotion": "嬉しい"}).key
    revised(key, content="桃が好き")
    nilou.database.write(lambda connection: connection.execute("UPDATE memory_versions SET further = NULL"))
    assert revised(key, revision=1).state == {"emotion": "嬉しい"}
    with nilou.database.read() as connection:
        assert memories.by_keys(connection, [key])[key].content == "苺が好き"
