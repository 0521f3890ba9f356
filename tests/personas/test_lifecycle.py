"""A persona as a whole: renamed, copied, merged, erased; and what a crash in the middle leaves."""

import errno
import json
import os
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput, Overloaded, PersonaUnknown, StoreError
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.personas import lifecycle, recovery
from memory_mcp.personas.lifecycle import merge
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge as merge_memories
from memory_mcp.remember.merge import undo
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store import tombstones
from memory_mcp.store.graph.entities import entity_merges, records
from memory_mcp.store.vectors import index_queue
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import history, purge, summarization


@pytest.fixture
def says(personas, now, zone):
    """Remembers something as any persona."""

    def says(name, content, **fields):
        with personas.writing(name) as persona:
            return remember(persona, draft(content, now=now, zone=zone, **fields), now=now, zone=zone, privacy=Privacy()).key

    return says


@pytest.fixture
def contents(personas):
    def contents(name, registry=None):
        with (registry or personas).reading(name) as persona, persona.database.read() as connection:
            return [row[0] for row in connection.execute("SELECT content FROM memories ORDER BY id")]

    return contents


@pytest.fixture
def found(personas, now, settings):
    def found(name, query):
        with personas.reading(name) as persona:
            asked = question(settings=settings, now=now, query=query)
            answer = recall(persona, asked, models=unloaded_models(settings), settings=settings, now=now)
            return [hit.memory.content for hit in answer.hits]

    return found


def test_a_renamed_persona_has_everything_under_its_new_name_and_nothing_under_the_old(personas, says, contents, found, now):
    says("nilou", "苺が好き")
    with personas.writing("nilou") as nilou:
        nilou.context.update({"user_info": {"name": "健太"}})
    shelf = IndexCache()
    assert lifecycle.rename(personas, "nilou", "ニィロウ", shelf, now) == "ニィロウ"
    assert personas.names() == ["ニィロウ"]
    assert contents("ニィロウ") == ["苺が好き"]
    assert found("ニィロウ", "苺") == ["苺が好き"]
    assert not personas.exists("nilou")
    with personas.reading("ニィロウ") as persona:
        assert persona.context.read()["user_info"]["name"] == "健太"
        with persona.database.read() as connection:
            told = connection.execute("SELECT metadata FROM operations WHERE operation = 'rename_persona'").get
    assert json.loads(told) == {"from": "nilou", "to": "ニィロウ"}
    assert list((personas.directory / recovery.UNFINISHED_NAME).iterdir()) == []


def test_a_name_that_somebody_has_or_one_too_like_it_is_refused(personas, says, now):
    says("nilou", "苺が好き")
    says("さくら", "桃が好き")
    for name, why in (("さくら", "already"), ("ＮＩＬＯＵ", "too similar"), ("", "empty")):
        with pytest.raises(InvalidInput, match=why):
            lifecycle.copy(personas, "nilou", name, now)
    with pytest.raises(PersonaUnknown, match="no persona 'nilo'"):
        lifecycle.rename(personas, "nilo", "x", IndexCache(), now)
    assert lifecycle.rename(personas, "nilou", "Nilou", IndexCache(), now) == "Nilou"
    assert personas.names() == ["Nilou", "さくら"]


def test_a_copy_has_everything_and_goes_its_own_way(personas, says, contents, now):
    key = says("nilou", "苺が好き")
    with personas.writing("nilou") as nilou:
        revise(nilou, key, Revision(content="苺が大好き"), now=now, privacy=Privacy())
    assert lifecycle.copy(personas, "nilou", "collei", now) == "collei"
    says("collei", "桃も好き")
    assert (contents("nilou"), contents("collei")) == (["苺が大好き"], ["苺が大好き", "桃も好き"])
    with personas.reading("collei") as collei:
        assert [version.content for version in history.of(collei, key).versions] == ["苺が好き"]


def test_an_erased_persona_is_nowhere_and_can_begin_anew(personas, says, contents, now):
    says("nilou", "zqxunique")
    says("collei", "残る")
    directory = personas.path_of("nilou").parent
    (directory / "key.json").write_text("secret")
    lifecycle.erase(personas, "nilou", IndexCache(), now)
    assert personas.names() == ["collei"]
    assert not directory.exists()
    assert [file for file in personas.directory.rglob("*") if file.is_file() and b"zqxunique" in file.read_bytes()] == []
    says("nilou", "新しい")
    assert contents("nilou") == ["新しい"]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@pytest.mark.parametrize("absolute", [True, False])
def test_a_persona_whose_directory_is_a_link_is_erased_where_its_files_are(personas, says, tmp_path, now, absolute):
    elsewhere = tmp_path / "big disk" / "nilou"
    elsewhere.mkdir(parents=True)
    link = personas.directory / "nilou"
    link.symlink_to(elsewhere if absolute else os.path.relpath(elsewhere, personas.directory), target_is_directory=True)
    says("nilou", "zqxunique")
    lifecycle.erase(personas, "nilou", IndexCache(), now)
    assert personas.names() == []
    assert not link.is_symlink()
    assert not elsewhere.exists()
    assert list((personas.directory / recovery.UNFINISHED_NAME).iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_what_else_is_where_a_link_leads_stays(personas, says, tmp_path, now):
    (tmp_path / "big disk" / "photos").mkdir(parents=True)
    (personas.directory / "nilou").symlink_to(tmp_path / "big disk", target_is_directory=True)
    says("nilou", "zqxunique")
    lifecycle.erase(personas, "nilou", IndexCache(), now)
    assert [entry.name for entry in (tmp_path / "big disk").iterdir()] == ["photos"]
    assert [entry.name for entry in personas.directory.iterdir() if entry.is_symlink()] == []
    says("nilou", "新しい")


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_database_that_is_a_link_is_erased_where_it_is(personas, says, contents, tmp_path, now):
    says("nilou", "zqxunique")
    with personas.exclusive("nilou"):
        moved = tmp_path / "big disk.sqlite"
        (personas.directory / "nilou" / "memory.sqlite").rename(moved)
        (personas.directory / "nilou" / "memory.sqlite").symlink_to(moved)
    (tmp_path / "another's").write_text("stays")
    (personas.directory / "nilou" / "notes").symlink_to(tmp_path / "another's")
    assert contents("nilou") == ["zqxunique"]
    lifecycle.erase(personas, "nilou", IndexCache(), now)
    assert not moved.exists()
    assert (tmp_path / "another's").read_text() == "stays"


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_an_interrupted_erasing_of_a_link_is_finished_at_the_next_start(personas, says, data_directory, tmp_path, restarted):
    elsewhere = tmp_path / "big disk"
    elsewhere.mkdir()
    (elsewhere / "memory.sqlite").write_bytes(b"half")
    recovery.unfinished_path(data_directory, recovery.ERASE_PREFIX).symlink_to(elsewhere, target_is_directory=True)
    restarted()
    assert not elsewhere.exists()
    assert list((data_directory / recovery.UNFINISHED_NAME).iterdir()) == []


def test_a_persona_stays_whole_when_what_is_to_go_before_it_can_not(personas, says, contents, now):
    says("nilou", "苺が好き")

    def fail():
        raise StoreError("the backups can't be removed", "", "")

    with pytest.raises(StoreError, match="backups"):
        lifecycle.erase(personas, "nilou", IndexCache(), now, first=fail)
    assert contents("nilou") == ["苺が好き"]


def test_whoever_asks_meanwhile_is_told_to_wait_and_whoever_is_in_it_is_waited_for(data_directory, now):
    personas = Personas(data_directory, alone_seconds=0.01)
    try:
        with personas.writing("nilou"), pytest.raises(Overloaded, match="nilou is in use"):
            lifecycle.erase(personas, "nilou", IndexCache(), now)
        with personas.exclusive("nilou"), pytest.raises(Overloaded, match="being moved"), personas.reading("nilou"):
            pass
        with personas.reading("nilou") as persona:
            assert persona.exists
    finally:
        personas.close()


def test_a_call_that_ends_lets_the_move_begin(personas, says, now):
    says("nilou", "苺が好き")
    entered, moved = threading.Event(), threading.Event()

    def move():
        entered.set()
        lifecycle.rename(personas, "nilou", "collei", IndexCache(), now)
        moved.set()

    with personas.writing("nilou"):
        thread = threading.Thread(target=move)
        thread.start()
        assert entered.wait(60)
        assert not moved.is_set()
    thread.join(60)
    assert personas.names() == ["collei"]


def test_a_merge_takes_memories_their_history_and_their_trash_and_leaves_the_other_as_it_was(personas, says, contents, found, now):
    key = says("nilou", "苺が好き", session_id="s", questions=["何が好き？"])
    gone = says("nilou", "捨てた話")
    with personas.writing("nilou") as nilou:
        revise(nilou, key, Revision(content="苺が大好き", reason="もっと"), now=now, privacy=Privacy())
        forget(nilou, [gone], reason=None, dry_run=False, now=now, privacy=Privacy())
    says("collei", "桃が好き", session_id="s")
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merged = merge(nilou, collei, now)
        assert (merged.taken, merged.known, merged.erased_before, merged.renamed) == (2, 0, 0, {})
        seen = history.of(collei, key)
        assert [version.content for version in seen.versions] == ["苺が好き"]
        assert [done.operation for done in seen.done] == ["create", "update"]
        assert seen.memory.metadata["merged_from"] == {"persona": "nilou", "key": key}
        assert seen.memory.session_id == "s (nilou)"
        assert history.of(collei, gone).memory.deleted_at == now
        with collei.database.read() as connection:
            assert index_queue.length(connection) == 3
    assert found("collei", "苺") == ["苺が大好き"]
    assert contents("nilou") == ["苺が大好き", "捨てた話"]


def test_merging_again_brings_only_what_is_new(personas, says, contents, now):
    says("nilou", "苺が好き")
    says("collei", "桃が好き")
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merge(nilou, collei, now)
    says("nilou", "柿も好き")
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merged = merge(nilou, collei, now)
    assert (merged.taken, merged.known) == (1, 1)
    assert contents("collei") == ["桃が好き", "苺が好き", "柿も好き"]


def test_a_key_that_is_taken_gets_another_and_what_it_replaces_is_followed(personas, says, contents, now, found):
    old = says("nilou", "東京に住んでいる")
    new = says("nilou", "京都に住んでいる", supersedes=old)
    lifecycle.copy(personas, "nilou", "collei", now)
    with personas.writing("collei") as collei:
        revise(collei, old, Revision(content="パリに住んでいる"), now=now, privacy=Privacy())
        revise(collei, new, Revision(content="ローマに住んでいる"), now=now, privacy=Privacy())
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merged = merge(nilou, collei, now)
        assert set(merged.renamed) == {old, new}
        assert history.of(collei, merged.renamed[old]).memory.superseded_by == merged.renamed[new]
        assert merge(nilou, collei, now).taken == 0
    assert set(found("collei", "住んでいる")) == {"京都に住んでいる", "ローマに住んでいる"}


def test_what_was_erased_in_the_one_does_not_come_back_from_the_other(personas, says, contents, now):
    key = says("nilou", "秘密の話です")
    lifecycle.copy(personas, "nilou", "collei", now)
    with personas.writing("collei") as collei:
        forget(collei, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
        purge.erase(collei, [key], rule="asked for", now=now)
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        assert merge(nilou, collei, now).erased_before == 1
        with collei.database.read() as connection:
            assert tombstones.erased_at(connection, key)
    assert contents("collei") == []


def test_vectors_come_along_and_need_no_model(personas, says, now):
    says("nilou", "苺が好き")
    with personas.writing("nilou") as nilou:
        nilou.database.write(lambda c: c.execute("INSERT INTO vectors(generation, chunk, blob) VALUES ('g', 1, x'0000803f')"))
    says("collei", "桃が好き")
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merge(nilou, collei, now)
        with collei.database.read() as connection:
            assert connection.execute(
                "SELECT m.content, v.generation FROM vectors v JOIN chunks c ON c.id = v.chunk JOIN memories m ON m.id = c.memory_id"
            ).fetchall() == [("苺が好き", "g")]


@pytest.fixture
def restarted(personas, data_directory):
    """The registry of the next server on the same directory."""
    opened = []

    def restarted():
        personas.close()
        opened.append(Personas(data_directory))
        return opened[0]

    yield restarted
    for registry in opened:
        registry.close()


def test_a_rename_that_was_interrupted_after_the_move_is_finished_at_the_next_start(personas, says, contents, data_directory, restarted):
    says("nilou", "苺が好き")
    told = recovery.Renaming("nilou", directory_name("さくら"), "nilou", "さくら")

    def interrupted():
        with personas.exclusive("nilou"), recovery.recorded(data_directory, told):
            recovery.move(data_directory / "nilou", data_directory / directory_name("さくら"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    registry = restarted()
    assert registry.names() == ["さくら"]
    assert contents("さくら", registry) == ["苺が好き"]


def test_a_rename_that_was_interrupted_before_the_move_has_not_happened(personas, says, contents, data_directory, restarted):
    says("nilou", "苺が好き")
    told = recovery.Renaming("nilou", directory_name("さくら"), "nilou", "さくら")
    with pytest.raises(KeyboardInterrupt), recovery.recorded(data_directory, told):
        raise KeyboardInterrupt
    registry = restarted()
    assert registry.names() == ["nilou"]
    assert contents("nilou", registry) == ["苺が好き"]
    assert list((data_directory / recovery.UNFINISHED_NAME).iterdir()) == []


def test_half_a_copy_and_half_an_erasing_are_gone_at_the_next_start(personas, says, data_directory, restarted):
    says("nilou", "苺が好き")
    for prefix in (recovery.COPY_PREFIX, recovery.ERASE_PREFIX):
        place = recovery.unfinished_path(data_directory, prefix)
        place.mkdir()
        (place / "memory.sqlite").write_bytes(b"half")
    registry = restarted()
    assert registry.names() == ["nilou"]
    assert list((data_directory / recovery.UNFINISHED_NAME).iterdir()) == []


def relations_of(persona):
    """Every relation that is not merely found in texts, by names."""
    with persona.database.read() as connection:
        return {
            tuple(row)
            for row in connection.execute(
                "SELECT s.name, r.type, t.name FROM relations r JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target "
                "WHERE r.method <> 'co_occurrence'"
            )
        }


def test_a_merge_takes_along_what_somebody_stated_or_took_back(personas, says, now):
    says("nilou", "田中さんが担当", relations=["田中 > works_on > プロジェクトA"])
    says("collei", "鈴木さんの話", relations=["鈴木 > works_on > プロジェクトA"])
    with personas.writing("nilou") as nilou:
        relate(nilou, [parse_relation("田中 > likes > 鈴木", ()), parse_relation("田中 > hates > 苺", ())], now=now, privacy=Privacy())
        unrelate(nilou, parse_relation("田中 > hates > 苺", ()), reason=None, now=now, privacy=Privacy())
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merge(nilou, collei, now)
        expected = {("田中", "works_on", "プロジェクトA"), ("鈴木", "works_on", "プロジェクトA"), ("田中", "likes", "鈴木")}
        assert relations_of(collei) == expected
        merge(nilou, collei, now)
        assert relations_of(collei) == expected
        with collei.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM entities WHERE name = 'プロジェクトA'").get == 1
            assert connection.execute("SELECT count(*) FROM relation_evidence WHERE method = 'rejected'").get == 1


def test_a_merge_takes_along_who_is_one_with_whom(personas, says, now):
    says("nilou", "話", relations=["たなっち > likes > 苺", "田中 > likes > 桃"])
    says("collei", "別の話")
    with personas.writing("nilou") as nilou:
        one, other = (entity_named(nilou, name) for name in ("田中", "たなっち"))
        nilou.database.write(lambda connection: entity_merges.merge(connection, one, other, None, now))
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merge(nilou, collei, now)
        merge(nilou, collei, now)
        assert relations_of(collei) == {("田中", "likes", "苺"), ("田中", "likes", "桃")}
        assert entity_named(collei, "たなっち") == entity_named(collei, "田中")


def entity_named(persona, name):
    with persona.database.read() as connection:
        return records.by_name(connection, name)[0].id


def test_what_a_memory_was_merged_into_stands_in_its_place_in_another_persona_too(personas, says, now, found):
    first = says("nilou", "東京に住んでいる")
    second = says("nilou", "京都に住んでいる", supersedes=first)
    third = says("nilou", "京都市に住んでいる")
    with personas.writing("nilou") as nilou:
        done = merge_memories(nilou, [second], third, reason=None, now=now, privacy=Privacy())
    says("collei", "桃が好き")
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        merge(nilou, collei, now)
        assert found("collei", "住んでいる") == ["京都市に住んでいる"]
        assert history.of(collei, first).memory.superseded_by == third
        undo(collei, done.operation_id, now=now)
        assert history.of(collei, first).memory.superseded_by == second


def test_what_came_later_replaces_what_came_with_an_earlier_merge(personas, says, now, found):
    old = says("nilou", "東京に住んでいる", relations=["私 > lives_in > 東京"])
    lifecycle.copy(personas, "nilou", "collei", now)
    with personas.writing("collei") as collei:
        revise(collei, old, Revision(content="パリに住んでいる"), now=now, privacy=Privacy())
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        renamed = merge(nilou, collei, now).renamed[old]
    says("nilou", "京都に住んでいる", supersedes=old)
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        assert merge(nilou, collei, now).taken == 1
        assert history.of(collei, renamed).memory.superseded_by
        assert history.of(collei, old).memory.superseded_by is None
    assert set(found("collei", "住んでいる")) == {"京都に住んでいる", "パリに住んでいる"}


def test_a_summary_does_not_bring_back_what_was_erased(personas, says, contents, now, settings):
    keys = [says("nilou", f"{number}番目の秘密の話", session_id="s", occurred_at="2025-10-20T12:00:00+09:00") for number in range(5)]
    lifecycle.copy(personas, "nilou", "collei", now)
    later = now + timedelta(days=2)
    with personas.writing("nilou") as nilou:
        while summarization.step(nilou, later, settings):
            pass
    with personas.writing("collei") as collei:
        forget(collei, keys[:1], reason=None, dry_run=False, now=now, privacy=Privacy())
        purge.erase(collei, keys[:1], rule="asked for", now=now)
    with personas.reading("nilou") as nilou, personas.writing("collei") as collei:
        assert any("0番目" in text for text in contents("nilou")[5:])
        assert merge(nilou, collei, later).erased_before == 3
    assert not any("0番目" in text for text in contents("collei"))


def test_a_persona_that_is_erased_while_a_reader_is_about_to_open_it_stays_erased(data_directory, says, personas, now):
    """A reader that has found it there, and comes to open it only after it has gone, as a worker may where many call at once."""

    class Late(Personas):
        def _pin(self, name):
            lifecycle.erase(self, name, IndexCache(), now)
            return super()._pin(name)

    says("nilou", "苺が好き")
    personas.close()
    late = Late(data_directory)
    with late.reading("nilou") as persona:
        assert not persona.exists
    assert late.names() == []
    assert not (data_directory / "nilou").exists()
    late.close()


def test_a_copy_that_finds_no_room_leaves_nothing_behind(personas, says, contents, now, data_directory, monkeypatch):
    says("nilou", "苺が好き")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(lifecycle, "write_identity", full)
        with pytest.raises(StoreError):
            lifecycle.copy(personas, "nilou", "collei", now)
    assert [path.name for path in data_directory.rglob("copy-*")] == []
    assert personas.names() == ["nilou"]
    assert lifecycle.copy(personas, "nilou", "collei", now) == "collei"
    assert contents("collei") == ["苺が好き"]


def overtaken(personas, monkeypatch, what, *, after):
    """Has somebody else do something just before, or just after, the next operation has a persona for itself."""
    exclusive = personas.exclusive

    @contextmanager
    def alone(*names):
        monkeypatch.undo()
        if not after:
            what()
        with exclusive(*names):
            yield
        if after:
            what()

    monkeypatch.setattr(personas, "exclusive", alone)


def test_who_is_erased_just_after_a_renaming_does_not_come_back(personas, says, now, monkeypatch):
    says("nilou", "京都")
    overtaken(personas, monkeypatch, lambda: lifecycle.erase(personas, "mio", IndexCache(), now), after=True)
    lifecycle.rename(personas, "nilou", "mio", IndexCache(), now)
    assert personas.names() == []


def test_of_two_erasures_at_once_the_second_finds_nobody(personas, says, now, monkeypatch):
    says("nilou", "京都")
    overtaken(personas, monkeypatch, lambda: lifecycle.erase(personas, "nilou", IndexCache(), now), after=False)
    with pytest.raises(PersonaUnknown):
        lifecycle.erase(personas, "nilou", IndexCache(), now)


@pytest.mark.parametrize(
    "operation",
    [
        lambda personas, now: lifecycle.rename(personas, "nilou", "mio", IndexCache(), now),
        lambda personas, now: lifecycle.copy(personas, "nilou", "mio", now),
    ],
    ids=["rename", "copy"],
)
def test_a_name_that_is_taken_meanwhile_stays_its_owner_s(personas, says, contents, now, monkeypatch, operation):
    says("nilou", "京都")
    overtaken(personas, monkeypatch, lambda: says("mio", "大阪"), after=False)
    with pytest.raises(InvalidInput, match="there is a persona 'mio' already"):
        operation(personas, now)
    assert (contents("nilou"), contents("mio")) == (["京都"], ["大阪"])
