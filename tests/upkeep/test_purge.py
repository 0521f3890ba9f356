"""Erasing for good: what goes, what stays, and that not a byte of it is left in the persona's files."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from datetime import timedelta
from pathlib import Path

import apsw
import numpy as np
import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.features.graph import relation_edits
from memory_mcp.graph.query.retrieval import known_entities
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import tombstones
from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.vectors import chunks, index_files, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ImportOptions, export_lines, import_lines
from memory_mcp.upkeep import history, purge
from memory_mcp.upkeep.summarization import step

SECRET = "鰻鱧鯰の密談は zqxunique です"
# The word and its pairs of characters as the lexical index writes them; nothing else that the tests store has one of them.
TRACES = ["zqxuniqu", "鰻", "鱧", "鯰", "密談"]


@pytest.fixture
def indexes():
    return IndexCache()


@pytest.fixture
def trash(nilou, now):
    def run(*keys):
        forget(nilou, keys, reason=None, dry_run=False, now=now, privacy=Privacy())

    return run


@pytest.fixture
def erased(nilou, now, indexes, trash):
    """Puts memories into the trash and erases them."""

    def run(*keys):
        trash(*keys)
        done = purge.erase(nilou, keys, rule="asked for", now=now)
        assert purge.sweep(nilou, indexes)
        return done

    return run


def traces(directory: Path) -> dict[str, list[str]]:
    """Which of the traces stand in which file, plain or escaped."""
    found = {}
    for file in directory.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            held = [trace for trace in TRACES if trace.encode() in raw or json.dumps(trace)[1:-1].encode() in raw]
            if held:
                found[file.relative_to(directory).as_posix()] = held
    return found


def test_no_byte_of_it_is_left_and_an_ordinary_sqlite_opens_the_file(say, nilou, erased, now, zone):
    for number in range(60):
        say(f"海辺の散歩 {number}", session_id="s")
    key = say(SECRET, session_id="s", questions=["鰻鱧鯰は？"], tags=["鰻"], state={"emotion": "密談"}).key
    say("そのあとで", session_id="s")
    revise(nilou, key, Revision(content="忘れてほしい話"), now=now, privacy=Privacy())
    revise(nilou, key, Revision(content=SECRET + " もう一度", reason="鯰のこと"), now=now, privacy=Privacy())
    directory = nilou.database.path.parent
    assert set(traces(directory)) >= {"memory.sqlite-wal"}
    assert erased(key).keys == (key,)
    assert traces(directory) == {}
    with closing(sqlite3.connect(f"{directory.joinpath('memory.sqlite').as_uri()}?mode=ro", uri=True)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert plain.execute("SELECT count(*) FROM memories").fetchone() == (61,)
        assert plain.execute("SELECT count(*) FROM lexical WHERE lexical MATCH '\"海辺\"'").fetchone() >= (60,)


def test_pages_that_were_freed_before_deleting_was_secure_are_written_anew(nilou, say, erased, data_directory):
    key = say("ただの話").key
    nilou.database.prepare(lambda connection: connection.execute("PRAGMA secure_delete=OFF"))

    def leave_free_pages(connection):
        connection.execute("CREATE TABLE scratch (text TEXT)")
        connection.executemany("INSERT INTO scratch VALUES (?)", [(SECRET * 50,)] * 50)
        connection.execute("DROP TABLE scratch")

    nilou.database.write(leave_free_pages)
    nilou.database.prepare(lambda connection: connection.execute("PRAGMA secure_delete=ON"))
    assert traces(data_directory)
    erased(key)
    assert traces(data_directory) == {}


def test_the_next_erasing_leaves_nothing_either_and_writes_no_file_anew(say, nilou, erased, now, zone, data_directory):
    erased(say("はじめの話").key)
    size = (data_directory / "nilou" / "memory.sqlite").stat().st_size
    for number in range(40):
        say(f"海辺の散歩 {number}", session_id="s")
    long = say(SECRET * 200, session_id="s").key
    key = say(SECRET, session_id="s").key
    for number in range(30):
        revise(nilou, key, Revision(content=f"{SECRET} {number}"), now=now, privacy=Privacy())
    erased(key, long)
    assert traces(data_directory / "nilou") == {}
    assert (data_directory / "nilou" / "memory.sqlite").stat().st_size > size


def test_vectors_of_all_generations_the_open_index_and_its_file_lose_it(say, nilou, erased, indexes):
    key, other = say(SECRET).key, say("別の話").key

    def embed(connection):
        found = [row[0] for row in connection.execute("SELECT id FROM chunks ORDER BY id")]
        for generation in ("one", "two"):
            stored_vectors.write(connection, generation, found, np.eye(len(found), 4, dtype=np.float32))
        stored_vectors.set_serving_generation(connection, "two")
        stored_vectors.note_change(connection)

    nilou.database.write(embed)
    index = indexes.get(nilou.database, "two")
    indexes.save(nilou.database, index)
    scraps = nilou.database.path.parent / "vector_store" / "index.faiss.damaged-1"
    scraps.write_bytes(b"old")
    assert index.count == 2
    erased(key)
    assert index.count == 1
    assert index.dirty
    assert list(scraps.parent.iterdir()) == []
    with nilou.database.read() as connection:
        assert stored_vectors.counts(connection) == {"one": 1, "two": 1}
        assert list(chunks.of_memories(connection, [1, 2]).values()) == [2]
    indexes.save(nilou.database, index)
    fresh = index_files.load(nilou.database, "two")
    assert isinstance(fresh, VectorIndex)
    assert fresh.ids().tolist() == index.ids().tolist()
    assert history.of(nilou, other).memory.content == "別の話"


def test_an_index_that_is_being_made_meanwhile_loses_it_too(nilou, indexes):
    generation = "one"
    made = VectorIndex(generation)
    made.add([1, 2], np.eye(2, 4, dtype=np.float32))
    with ThreadPoolExecutor() as pool:
        with indexes.making(nilou.database):
            erasing = pool.submit(indexes.erase, nilou.database, [1])
            with pytest.raises(TimeoutError):
                erasing.result(0.2)
            indexes.put(nilou.database, made)
        erasing.result(60)
    assert made.ids().tolist() == [2]


def test_the_fact_that_something_was_done_stays_and_what_it_was_done_to_goes(say, nilou, erased, now):
    key, other = say(SECRET).key, say("別の話です、そのまま").key
    revise(nilou, key, Revision(content="別の話です", reason="鰻"), now=now, privacy=Privacy())
    erased(key)
    with nilou.database.read() as connection:
        rows = connection.execute("SELECT operation, before, after, error, metadata FROM operations WHERE key = ? ORDER BY id", (key,))
        found = rows.fetchall()
        kept = connection.execute("SELECT after FROM operations WHERE key = ?", (other,)).get
    assert [row[0] for row in found] == ["create", "update", "delete", "purge"]
    assert [row[1:] for row in found[:3]] == [(None, None, None, None)] * 3
    assert json.loads(found[3][4]) == {"rule": "asked for"}
    assert "別の話です、そのまま" in kept


def test_an_operation_about_other_memories_that_quotes_it_loses_its_content(say, nilou, erased):
    key = say(SECRET).key

    def note(connection):
        connection.execute(
            "INSERT INTO operations(timestamp, operation_id, operation, key, before, success) VALUES ('t', 'o', 'merge', 'other', ?, 1)",
            (json.dumps({"of": [SECRET]}),),
        )

    nilou.database.write(note)
    erased(key)
    with nilou.database.read() as connection:
        assert connection.execute("SELECT before FROM operations WHERE operation = 'merge'").get is None


def test_who_is_named_in_no_memory_that_is_left_is_forgotten(say, nilou, erased, data_directory):
    say("田中さんと会った")
    key = say("鯰田さんは田中さんと鰻屋で会った").key
    with nilou.database.read() as connection:
        before = {row[0] for row in connection.execute("SELECT name FROM entities")}
    assert any("田中" in name for name in before)
    erased(key)
    with nilou.database.read() as connection:
        after = {row[0] for row in connection.execute("SELECT name FROM entities")}
    assert any("田中" in name for name in after)
    assert not any("鯰" in name for name in after)
    assert traces(data_directory / "nilou") == {}


def test_no_byte_of_what_was_stated_with_it_is_left(say, nilou, erased, data_directory, ask):
    say("となりの話", session_id="s")
    key = say("まとめ", session_id="s", relations=["鰻鱧鯰 > zqxunique > 密談"]).key
    assert [hit.memory.key for hit in ask("zqxunique").hits] == [key]
    assert traces(data_directory / "nilou")
    erased(key)
    assert traces(data_directory / "nilou") == {}


def test_a_note_of_a_relation_that_quotes_it_goes_with_it_and_the_relation_stays(say, nilou, erased, data_directory, ask, now):
    key = say("鰻鱧鯰の秘密はzqxunique").key
    say("健太と佐藤は元気")
    told, why = StatedRelation("健太", "likes", "佐藤"), RelationValidity(notes="聞いた話: 鰻鱧鯰の秘密はzqxunique")
    relation_edits.relate(nilou, [told], now=now, privacy=Privacy(), when=why)
    assert traces(data_directory / "nilou")
    erased(key)
    assert traces(data_directory / "nilou") == {}
    assert ask("健太は？").relations == ("健太 > likes > 佐藤",)


def test_only_what_is_in_the_trash_is_erased(say, nilou, trash, now):
    here, gone = say("ここにいる").key, say("捨てられた").key
    trash(gone)
    plan = purge.plan(nilou, [here, gone, "memory_x"])
    assert [(outcome.key, outcome.outcome) for outcome in plan.outcomes] == [
        (here, "not_in_trash"),
        (gone, "would_erase"),
        ("memory_x", "not_found"),
    ]
    assert purge.erase(nilou, [here, gone], rule="asked for", now=now).keys == (gone,)
    assert history.of(nilou, here).memory.content == "ここにいる"
    with pytest.raises(MemoryNotFound, match=r"erased for good at 2025-10-30 03:00 UTC"):
        history.of(nilou, gone)


def test_the_code_means_exactly_this_list(say, nilou, trash, personas, now):
    one, two = say("ひとつめ").key, say("ふたつめ").key
    trash(one, two)
    code = purge.plan(nilou, [one]).code
    assert code
    purge.check_code(code, purge.plan(nilou, [one]).code)
    for keys in ([two], [one, two], []):
        with pytest.raises(InvalidInput, match="confirm does not fit"):
            purge.check_code(code, purge.plan(nilou, keys).code)
    revise(nilou, one, Revision(restore=True), now=now, privacy=Privacy())
    trash(one)
    revise(nilou, one, Revision(content="変わった", restore=True), now=now, privacy=Privacy())
    trash(one)
    with pytest.raises(InvalidInput, match="confirm does not fit"):
        purge.check_code(code, purge.plan(nilou, [one]).code)


def test_other_memories_that_say_the_same_are_named(say, nilou, trash):
    key = say(SECRET).key
    copy = say(f"まとめ：{SECRET}、など", tags=["まとめ"]).key
    say("関係のない話")
    trash(key)
    assert purge.plan(nilou, [key]).quoted_in == (copy,)


def test_a_summary_that_goes_with_it_is_not_said_to_hold_it(say, nilou, trash, erased, now):
    few = Settings(embeddings_model=None, reranker_model=None, summaries={"min_memories": 2})
    say("海辺の散歩で田中さんと話した。", session_id="s")
    key = say(SECRET, session_id="s").key
    while step(nilou, now + timedelta(hours=1), few):
        pass
    trash(key)
    plan = purge.plan(nilou, [key])
    assert plan.quoted_in == ()
    assert len(purge.erase(nilou, [key], rule="asked for", now=now).keys) == 2


def test_what_replaced_it_takes_its_place_in_the_chain(say, ask, erased):
    first = say("東京に住んでいる").key
    second = say("大阪に住んでいる", supersedes=first).key
    third = say("京都に住んでいる", supersedes=second).key
    erased(second)
    assert [hit.memory.key for hit in ask("住んでいる").hits] == [third]
    erased(third)
    assert [hit.memory.key for hit in ask("住んでいる").hits] == [first]


def test_its_neighbours_no_longer_answer_for_it(say, ask, erased):
    say("前の話", session_id="s")
    key = say("鰻の話", session_id="s").key
    say("後の話", session_id="s")
    assert len(ask("鰻").hits) == 3
    erased(key)
    assert ask("鰻").hits == ()


def test_a_tombstone_says_when_and_not_what(say, nilou, erased, now):
    key = say(SECRET).key
    erased(key)
    with nilou.database.read() as connection:
        assert tombstones.erased_at(connection, key) == now
        assert list(tombstones.read_all(connection)) == [tombstones.digest(key)]


def test_an_import_does_not_bring_it_back_by_its_key_and_does_without(say, nilou, erased, now, zone):
    key = say(SECRET).key
    (line,) = export_lines(nilou)
    erased(key)

    told = import_lines(lambda: nullcontext(nilou), [(1, line.encode())], ImportOptions(now, zone, privacy=Privacy()))
    assert (told.stored, told.refused) == (0, 1)
    assert "was erased for good" in told.errors[0].reason
    row = json.loads(line)
    del row["key"]
    assert (
        import_lines(lambda: nullcontext(nilou), [(1, json.dumps(row).encode())], ImportOptions(now, zone, privacy=Privacy())).stored == 1
    )


@pytest.mark.slow
def test_a_reader_in_the_way_delays_the_sweep_and_it_is_still_due(say, nilou, trash, indexes, now, data_directory):
    key = say(SECRET).key
    trash(key)
    purge.erase(nilou, [key], rule="asked for", now=now)
    with nilou.database.read() as connection:
        connection.execute("SELECT count(*) FROM memories").fetchall()
        say("書き込みは進む")
        assert not purge.sweep(nilou, indexes)
    assert purge.sweep(nilou, indexes)
    assert traces(data_directory / "nilou") == {}


def test_a_sweep_without_a_purge_does_nothing(say, nilou, indexes):
    say("話")
    size = nilou.database.size_bytes()
    assert purge.sweep(nilou, indexes)
    assert nilou.database.size_bytes() == size


def test_tables_of_an_older_server_lose_its_rows_whatever_form_the_text_has(say, nilou, erased, data_directory):
    key = say(SECRET).key

    def older(connection):
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        connection.execute("CREATE TABLE by_key (memory_key TEXT, vector BLOB)")
        connection.execute("CREATE VIRTUAL TABLE old_words USING fts5(text)")
        connection.execute("CREATE VIRTUAL TABLE old_index USING fts5(body, content='notes', content_rowid='id')")
        connection.executemany("INSERT INTO notes(body) VALUES (?)", [(SECRET,), (json.dumps({"c": SECRET}),), ("残る",)])
        connection.execute("INSERT INTO by_key VALUES (?, x'00')", (key,))
        connection.execute("INSERT INTO by_key VALUES ('other', ?)", (b"\x80\x04" + SECRET.encode() + b"\x00",))
        connection.execute("INSERT INTO by_key VALUES ('kept', x'01')")
        connection.executemany("INSERT INTO old_words VALUES (?)", [(SECRET,), ("残る",)])
        connection.execute("INSERT INTO old_index(old_index) VALUES ('rebuild')")

    nilou.database.write(older)
    assert erased(key).unsearched == ()
    with nilou.database.read() as connection:
        assert connection.execute("SELECT body FROM notes").fetchall() == [("残る",)]
        assert connection.execute("SELECT memory_key FROM by_key").fetchall() == [("kept",)]
        assert connection.execute("SELECT text FROM old_words").fetchall() == [("残る",)]
        assert connection.execute("SELECT rowid FROM old_index WHERE old_index MATCH 'zqxunique'").fetchall() == []
    assert traces(data_directory) == {}


def test_files_that_older_servers_left_are_named_and_stay(say, nilou, trash, data_directory):
    key = say(SECRET).key
    trash(key)
    kept = data_directory / ".adopted" / "20250101T000000Z"
    kept.mkdir(parents=True)
    (kept / "nilou.sqlite-wal").write_bytes(b"..." + SECRET.encode())
    (kept / "nilou").mkdir()
    (kept / "nilou" / "persona_context.json").write_text("{}")
    (kept / "collei.sqlite").write_bytes(SECRET.encode())
    (kept / "memory_operations.log").write_text(json.dumps({"after": SECRET}))
    with closing(sqlite3.connect(kept / "nilou" / "memory.sqlite")) as old, old:
        old.execute("CREATE TABLE memories (key TEXT, content TEXT)")
        old.execute("INSERT INTO memories VALUES ('k', ?)", ("あ" * 3_000 + SECRET,))
    names = [f".adopted/20250101T000000Z/{name}" for name in ("memory_operations.log", "nilou/memory.sqlite", "nilou.sqlite-wal")]
    assert sorted(purge.plan(nilou, [key]).kept_in) == sorted(names)


@pytest.mark.slow
def test_many_at_once_in_a_large_store_leave_nothing(nilou, erased, now, zone, data_directory):
    drafts = [draft(f"海辺の散歩 {number} で話したこと", now=now, zone=zone, session_id="s") for number in range(600)]
    secrets = [draft(f"{SECRET} {number}", now=now, zone=zone, session_id="s") for number in range(40)]
    remember_many(nilou, drafts[:300], now=now, zone=zone, privacy=Privacy())
    keys = [outcome.key for outcome in remember_many(nilou, secrets, now=now, zone=zone, privacy=Privacy())]
    remember_many(nilou, drafts[300:], now=now, zone=zone, privacy=Privacy())
    erased(*keys)
    assert traces(data_directory / "nilou") == {}


def test_work_between_two_commits_is_in_no_transaction_and_its_failure_is_its_own(tmp_path):
    database = Database(tmp_path / "some.sqlite")
    try:
        database.write(lambda connection: connection.execute("CREATE TABLE t (a)"))
        assert database.write_alone(lambda connection: connection.in_transaction) is False

        def fail(_connection):
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            database.write_alone(fail)
        database.write(lambda connection: connection.execute("INSERT INTO t VALUES (1)"))
        with database.read() as connection:
            assert connection.execute("SELECT a FROM t").get == 1
    finally:
        database.close()


def test_no_byte_is_left_of_what_was_summarised_merged_related_filed_and_revised(nilou, say, erased, now, data_directory):
    few = Settings(embeddings_model=None, reranker_model=None, summaries={"min_memories": 2})
    say("海辺の散歩で田中さんと話した。", session_id="s")
    say("来週の旅行の宿を田中さんが予約した。", session_id="s")
    told = {"tags": ["鰻"], "source": "鱧代", "questions": ["鰻は？"], "metadata": {"note": "密談"}, "state": {"emotion": "密談"}}
    stated = [StatedRelation("鱧代", "密談する", "田中さん")]
    key = say("[[鯰田]]は[[田中さん|鰻さん]]と密談した。 zqxunique", session_id="s", **told).key
    other = say("鯰田さんは田中さんと鰻屋で会った。", session_id="鱧の会", relations=["鱧代 > 密談する > 田中さん"]).key
    relation_edits.relate(nilou, stated, now=now, privacy=Privacy())
    relation_edits.unrelate(nilou, stated[0], reason="密談ではない", now=now, privacy=Privacy())
    while update_graph(nilou, now):
        pass
    while step(nilou, now + timedelta(hours=1), few):
        pass
    revise(nilou, key, Revision(content="[[鰻村]]の話", reason="鯰のこと"), now=now, privacy=Privacy())
    revise(nilou, key, Revision(content="ただの話をした。", tags=()), now=now, privacy=Privacy())
    merge(nilou, [other], key, reason="密談", now=now, privacy=Privacy())
    while update_graph(nilou, now) or step(nilou, now + timedelta(hours=2), few):
        pass
    with nilou.database.read() as connection:
        assert known_entities(connection, nilou.names, "鯰田")
    erased(key, other)
    while update_graph(nilou, now) or step(nilou, now + timedelta(hours=3), few):
        pass
    assert purge.sweep(nilou, IndexCache())
    nilou.database.write_alone(lambda connection: connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE))
    assert traces(data_directory) == {}
    with nilou.database.read() as connection:
        assert not known_entities(connection, nilou.names, "鯰田と鱧代と鰻村と鰻さん")
        assert known_entities(connection, nilou.names, "田中さん")


def test_what_other_memories_are_filed_under_stays_known(nilou, say, erased, now):
    say("宿を予約した。", tags=["白鷺号"], source="蛍")
    key = say("ただの話をした。", tags=["鰻"]).key
    while update_graph(nilou, now):
        pass
    erased(key)
    with nilou.database.read() as connection:
        assert {mention.name for _, mention in known_entities(connection, nilou.names, "蛍と白鷺号と鰻")} == {"蛍", "白鷺号"}


def test_what_somebody_stated_on_its_own_stays_and_is_told_so_that_it_can_be_taken_back_before(nilou, say, trash, erased, now):
    stated = StatedRelation("鱧代", "密談する", "田中さん")
    say("田中さんと会った。")
    key = say("[[鱧代]]と会った。").key
    relation_edits.relate(nilou, [stated], now=now, privacy=Privacy())
    trash(key)
    plan = purge.plan(nilou, [key])
    assert plan.stated == ("鱧代 > 密談する > 田中",)
    relation_edits.unrelate(nilou, stated, reason="密談ではない", now=now, privacy=Privacy())
    assert (purge.plan(nilou, [key]).stated, purge.plan(nilou, [key]).code) == ((), plan.code)
    erased(key)
    assert traces(nilou.database.path.parent) == {}


def test_what_was_stated_of_an_erased_name_goes_with_the_next_purge_after_it_was_taken_back(nilou, say, erased, now):
    stated = StatedRelation("鱧代", "密談する", "田中さん")
    say("田中さんと会った。")
    key, other = say("[[鱧代]]と会った。").key, say("もういい話").key
    relation_edits.relate(nilou, [stated], now=now, privacy=Privacy())
    erased(key)
    assert {trace for found in traces(nilou.database.path.parent).values() for trace in found} == {"鱧", "密談"}  # as it was stated
    relation_edits.unrelate(nilou, stated, reason="密談ではない", now=now, privacy=Privacy())
    erased(other)
    assert traces(nilou.database.path.parent) == {}


def test_a_state_that_only_an_erased_memory_told_is_in_the_context_no_more(nilou, say, erased):
    say("苺を食べた。", state={"mental_state": "おだやか"})
    first = say("はじめの話", state={"emotion": "鰻のせいで不安"}).key
    second = say("ただの話", state={"emotion": "鰻のせいで不安", "mental_state": "おだやか"}).key
    nilou.context.update({"current_emotion": "鰻のせいで不安", "mental_state": "おだやか", "environment": "海辺"})
    erased(first)
    assert nilou.context.read()["current_emotion"] == "鰻のせいで不安"
    erased(second)
    left = nilou.context.read()
    assert (left["current_emotion"], left["mental_state"], left["environment"]) == ("", "おだやか", "海辺")
    assert traces(nilou.database.path.parent) == {}


def test_a_state_of_an_earlier_revision_is_in_the_context_no_more_either(nilou, say, erased, now):
    key = say("ただの話", state={"emotion": "鰻のせいで不安"}).key
    nilou.context.update({"current_emotion": "鰻のせいで不安"})
    revise(nilou, key, Revision(content="別の話"), now=now, privacy=Privacy())
    nilou.database.write(lambda connection: connection.execute("UPDATE memories SET state = NULL"))
    erased(key)
    assert nilou.context.read()["current_emotion"] == ""


def test_a_context_that_quotes_it_is_named(nilou, say, trash):
    key = say(SECRET).key
    trash(key)
    assert not purge.plan(nilou, [key]).in_context
    nilou.context.update({"environment": f"あの話：{SECRET}"})
    assert purge.plan(nilou, [key]).in_context


def test_a_context_that_can_not_be_read_is_named_as_it_may_quote_what_is_erased(nilou, say, trash):
    key = say(SECRET).key
    trash(key)
    (nilou.database.path.parent / "persona_context.json").write_text(f'{{"environment": "{SECRET}')
    assert purge.plan(nilou, [key]).in_context


def test_a_context_that_can_not_be_read_keeps_nothing_from_being_erased(nilou, say, erased):
    key = say(SECRET, state={"emotion": "鰻"}).key
    (nilou.database.path.parent / "persona_context.json").write_text("{")
    assert erased(key).keys == (key,)
