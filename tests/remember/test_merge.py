"""Merging on request, and undoing it: afterwards everything is as it was."""

import json
import random
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge, undo
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import erasure
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import index_queue
from memory_mcp.transfer.jsonlines import ExportOptions, export_lines

STRAWBERRY, BERRY = "健太は苺が好き", "健太は苺が大好き"


@pytest.fixture
def exported(nilou):
    return lambda: list(export_lines(nilou, ExportOptions(deleted=True)))


@pytest.fixture
def row(exported):
    """A memory as the export has it."""
    return lambda key: next(found for found in map(json.loads, exported()) if found["key"] == key)


@pytest.fixture
def pair(say):
    """Two memories that say the same: (kept, other)."""
    kept = say(STRAWBERRY, tags=["食べ物"], importance=0.4).key
    return kept, say(BERRY, tags=["苺", "食べ物"], importance=0.9).key


def found(ask, query="苺が好き"):
    return {hit.memory.key for hit in ask(query, top_k=50).hits}


def test_the_kept_one_gets_all_tags_and_the_greatest_importance_and_the_others_go_into_the_trash(nilou, now, pair, row, ask):
    kept, other = pair
    merged = merge(nilou, [other], kept, reason="同じこと", now=now, privacy=Privacy())
    assert [(outcome.key, outcome.outcome) for outcome in merged.outcomes] == [(kept, "kept"), (other, "merged")]
    assert row(kept)["tags"] == ["食べ物", "苺"]
    assert row(kept)["importance"] == 0.9
    assert row(kept)["content"] == STRAWBERRY
    assert row(other)["deleted_at"]
    assert found(ask) == {kept}
    (hit,) = ask(keys=[other]).hits
    assert hit.memory.superseded_by == kept


def test_what_is_secret_is_not_merged_with_what_is_not(nilou, now, say):
    kept, hidden = say("鍵は棚の上").key, say("鍵は棚の上にある", privacy_level="secret", tags=["隠し場所"]).key
    for keys, into in (([hidden], kept), ([kept], hidden)):
        with pytest.raises(InvalidInput, match="one of them is secret"):
            merge(nilou, keys, into, reason=None, now=now, privacy=Privacy())


def test_undoing_a_merge_leaves_everything_as_it_was(nilou, now, pair, exported, ask):
    before, seen = exported(), found(ask)
    merged = merge(nilou, [pair[1]], pair[0], reason=None, now=now + timedelta(hours=1), privacy=Privacy())
    assert exported() != before
    undone = undo(nilou, merged.operation_id, now=now + timedelta(hours=2))
    assert {outcome.outcome for outcome in undone.outcomes} == {"restored"}
    assert exported() == before
    assert found(ask) == seen


@pytest.mark.slow
def test_any_merges_undone_in_the_opposite_order_leave_everything_as_it_was(nilou, say, now, exported, ask, thorough):
    chance = random.Random(7)
    for round_ in range(40 if thorough else 8):
        keys: list[str] = []
        for number in range(9):
            replaced = chance.choice(keys) if keys and chance.random() < 0.3 else None
            said = say(
                f"{round_}の庭に花が咲いた、{number % 3}回目",
                session_id=chance.choice([None, "s1"]),
                tags=chance.sample("abcdef", chance.randrange(4)),
                importance=chance.random(),
                supersedes=replaced,
                occurred_at=f"2025-10-{number + 1:02}",
            )
            keys.append(said.key)
        if chance.random() < 0.5:
            revise(nilou, keys[-1], Revision(tags=("x",)), now=now, privacy=Privacy())
        states = []
        for _ in range(3):
            current = [key for key in keys if not (state := ask(keys=[key]).hits[0].memory).deleted_at and not state.superseded_by]
            if len(current) < 2:
                break
            chosen = chance.sample(current, chance.randrange(2, min(len(current), 4) + 1))
            before = exported(), found(ask, f"{round_}の庭に花が咲いた")
            states.append((before, merge(nilou, chosen, chosen[0], reason=None, now=now, privacy=Privacy()).operation_id))
            assert not found(ask, f"{round_}の庭に花が咲いた") & set(chosen[1:])
        for before, operation_id in reversed(states):
            undo(nilou, operation_id, now=now)
            assert (exported(), found(ask, f"{round_}の庭に花が咲いた")) == before


def test_what_a_merged_memory_had_replaced_stays_replaced(nilou, say, now, ask, row):
    old = say("健太は苺が苦手").key
    kept, other = say(STRAWBERRY).key, say(BERRY, supersedes=old).key
    merged = merge(nilou, [other], kept, reason=None, now=now, privacy=Privacy())
    assert found(ask) == {kept}
    forget(nilou, [kept], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert found(ask) == {old}
    revise(nilou, kept, Revision(restore=True), now=now, privacy=Privacy())
    assert found(ask) == {kept}
    undo(nilou, merged.operation_id, now=now)
    assert found(ask) == {kept, other}


def test_what_was_merged_twice_over_comes_back_step_by_step(nilou, say, now, ask):
    first, second, third = (say(f"苺が{much}好き").key for much in ("", "大", "とても"))
    one = merge(nilou, [first], second, reason=None, now=now, privacy=Privacy())
    two = merge(nilou, [second], third, reason=None, now=now, privacy=Privacy())
    assert found(ask) == {third}
    undo(nilou, one.operation_id, now=now)
    assert found(ask) == {first, third}
    undo(nilou, two.operation_id, now=now)
    assert found(ask) == {first, second, third}


def test_a_merged_memory_that_is_restored_by_hand_stands_for_itself_again(nilou, now, pair, ask):
    kept, other = pair
    merged = merge(nilou, [other], kept, reason=None, now=now, privacy=Privacy())
    revise(nilou, other, Revision(restore=True), now=now, privacy=Privacy())
    assert found(ask) == {kept, other}
    outcomes = {outcome.key: outcome.outcome for outcome in undo(nilou, merged.operation_id, now=now).outcomes}
    assert outcomes == {kept: "restored", other: "unchanged"}


def test_what_was_changed_since_is_left_as_it_is_and_told(nilou, now, pair, row):
    kept, other = pair
    merged = merge(nilou, [other], kept, reason=None, now=now, privacy=Privacy())
    revise(nilou, kept, Revision(content="健太は苺もメロンも好き"), now=now, privacy=Privacy())
    outcomes = {outcome.key: outcome.outcome for outcome in undo(nilou, merged.operation_id, now=now).outcomes}
    assert outcomes == {kept: "unchanged", other: "restored"}
    assert row(kept)["content"] == "健太は苺もメロンも好き"
    assert row(kept)["tags"] == ["食べ物", "苺"]


def test_a_merge_is_undone_once(nilou, now, pair):
    merged = merge(nilou, [pair[1]], pair[0], reason=None, now=now, privacy=Privacy())
    undo(nilou, merged.operation_id, now=now)
    with pytest.raises(InvalidInput, match="undone already"):
        undo(nilou, merged.operation_id, now=now)


def test_what_cannot_be_merged_is_refused_and_nothing_is_changed(nilou, say, now, pair, exported, zone):
    kept, other = pair
    gone = say("消えた").key
    forget(nilou, [gone], reason=None, dry_run=False, now=now, privacy=Privacy())
    replaced = say("前の話").key
    say("今の話", supersedes=replaced)
    summary = remember(nilou, Draft("まとめ", kind="summary"), now=now, zone=zone, privacy=Privacy()).key
    before = exported()
    for keys, error, words in [
        ([kept], InvalidInput, "nothing to merge"),
        ([], InvalidInput, "nothing to merge"),
        ([other, gone], InvalidInput, "in the trash"),
        ([replaced], InvalidInput, "has replaced it"),
        ([summary], InvalidInput, "a summary"),
        ([other, "memory_none"], MemoryNotFound, "no memory has the key"),
    ]:
        with pytest.raises(error, match=words):
            merge(nilou, keys, kept, reason=None, now=now, privacy=Privacy())
    with pytest.raises(MemoryNotFound, match="no merge"):
        undo(nilou, "0" * 32, now=now)
    assert exported() == before


def test_the_vectors_follow(nilou, now, pair):
    def waiting():
        with nilou.database.read() as connection:
            return len(index_queue.oldest(connection, 100))

    def settled(connection):
        index_queue.remove(connection, index_queue.oldest(connection, 100))

    nilou.database.write(settled)
    merged = merge(nilou, [pair[1]], pair[0], reason=None, now=now, privacy=Privacy())
    assert waiting() >= 1
    nilou.database.write(settled)
    undo(nilou, merged.operation_id, now=now)
    assert waiting() >= 1


@pytest.mark.parametrize("erased", ["the merged one", "the kept one, which another has replaced"])
def test_after_a_purge_nothing_that_was_replaced_comes_to_light(nilou, say, now, ask, erased):
    old = say("健太は苺が苦手").key
    kept, other = say(STRAWBERRY).key, say(BERRY, supersedes=old).key
    merge(nilou, [other], kept, reason=None, now=now, privacy=Privacy())
    newest = kept
    if erased != "the merged one":
        newest = say("健太は苺もメロンも好き", supersedes=kept).key
        forget(nilou, [kept], reason=None, dry_run=False, now=now, privacy=Privacy())
    gone = other if erased == "the merged one" else kept

    def purge(connection):
        erasure.release_derived(connection, [gone])
        (replaced,) = connection.execute("SELECT supersedes FROM memories WHERE key = ?", (gone,)).fetchone()
        connection.execute("UPDATE memories SET supersedes = ? WHERE supersedes = ?", (replaced, gone))
        connection.execute("DELETE FROM memories WHERE key = ?", (gone,))
        ids = [row[0] for row in connection.execute("SELECT id FROM memories")]
        bm25_index.refresh(connection, ids)

    nilou.database.write(purge)
    assert found(ask) == {newest}
