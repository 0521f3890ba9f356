"""Whoever used an older server finds everything here: every row, every value, and nothing else touched."""

import base64
import json
import os
import sqlite3
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest
from older_stores import (
    CURRY,
    EVERYONE,
    NOON,
    STORES,
    TEMPLE,
    TOKYO,
    OlderStore,
    adopt,
    database_of,
    exported,
    make_everything,
    make_store,
    make_vectors,
    rows_of,
    run_until,
    started,
    with_text,
)
from unloaded_models import unloaded_models

from memory_mcp import cli
from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Question
from memory_mcp.errors import Overloaded, StoreError
from memory_mcp.features.adoption import moving
from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.store import memories, migrations
from memory_mcp.store.legacy import row_conversion
from memory_mcp.store.operations import SERVER_EVENTS, OperationsLog
from memory_mcp.transfer.jsonlines import ImportOptions, import_lines

pytestmark = pytest.mark.slow


def leaves(value):
    """Every text, number and mark in JSON, however deep."""
    if isinstance(value, dict):
        return [*value, *(leaf for entry in value.values() for leaf in leaves(entry))]
    if isinstance(value, list):
        return [leaf for entry in value for leaf in leaves(entry)]
    return [value]


def instants(said):
    """The moments among these values."""
    found = set()
    for value in said:
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            continue
        found.add((moment if moment.tzinfo else moment.replace(tzinfo=TOKYO)).astimezone(UTC))
    return found


def as_json(value):
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return None


def is_told(value, said):
    """Whether an older value is among what a memory says: itself, the same moment, its parts, or its bytes."""
    if value is None or value == "" or value in said:
        return True
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() in said
    if isinstance(value, float) and str(value) in said:
        return True
    if isinstance(value, str):
        if instants([value]) & instants(said):
            return True
        parts = as_json(value)
        if isinstance(parts, list | dict) and all(leaf in said for leaf in leaves(parts)):
            return True
        return all(part.strip() in said for part in value.split(","))
    return False


def lost(row, line):
    """The values of an older row that the memory does not tell."""
    said = leaves(line)
    return [(column, value) for column, value in row.items() if not is_told(value, said)]


def rows_left(path):
    """The older rows that are no memories, in the table that they have stayed in."""
    with closing(sqlite3.connect(path)) as connection:
        stayed = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'legacy_memories'").fetchone()
    return rows_of(path, "legacy_memories") if stayed else []


def snapshot(directory):
    """Every file that lasts and is not made again from others, with its bytes and its time."""
    passing = {".server.lock", ".server.json"}
    files = [path for path in directory.rglob("*") if path.is_file() and path.name not in passing and path.parent.name != ".personas"]
    return {path.relative_to(directory).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def found(personas, name, settings, query):
    with personas.reading(name) as persona:
        recalled = recall(persona, Question(query=query), models=unloaded_models(settings), settings=settings, now=NOON)
    return [hit.memory.content for hit in recalled.hits]


@pytest.fixture
def sprung(tmp_path):
    return tmp_path / "sprung"


def test_no_row_and_no_value_of_an_older_store_is_lost(data_directory, figure):
    personas_of = {f"persona-{number}": name for number, name in enumerate(STORES)}
    for persona, name in personas_of.items():
        make_store(data_directory / persona / "memory.sqlite", STORES[name], utf16="UTF-16" in name)
    rows = {persona: rows_of(data_directory / persona / "memory.sqlite") for persona in personas_of}
    with started(data_directory) as personas:
        lines = {persona: exported(personas, persona) for persona in personas_of}
    left = {persona: rows_left(database_of(data_directory, persona)) for persona in personas_of}
    for persona, all_rows in rows.items():
        assert left[persona] == [row for row in all_rows if row not in with_text(all_rows)]
    missing = {
        personas_of[persona]: [lost(row, line) for row, line in zip(with_text(rows[persona]), lines[persona], strict=True)]
        for persona in personas_of
    }
    figure("old table layouts adopted", len(STORES))
    figure("old rows", sum(map(len, rows.values())))
    figure("old values", sum(value is not None for some in rows.values() for row in some for value in row.values()))
    figure("rows or values lost", sum(len(values) for some in missing.values() for values in some))
    assert missing == {name: [[] for _ in with_text(store.rows)] for name, store in STORES.items()}


@pytest.mark.parametrize("name", STORES)
def test_every_older_memory_can_be_fetched_found_changed_and_joined_by_a_new_one(data_directory, settings, zone, name):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES[name], utf16="UTF-16" in name)
    with started(data_directory) as personas:
        keys = [line["key"] for line in exported(personas, "nilou")]
        with personas.writing("nilou") as persona:
            with persona.database.read() as connection:
                stored = memories.by_keys(connection, keys)
            assert sorted(stored) == sorted(keys)
            for memory in stored.values():
                assert memory.content in found(personas, "nilou", settings, memory.content)
            new = remember(persona, draft("新しい記憶", now=NOON, zone=zone), now=NOON, zone=zone, privacy=Privacy()).key
            assert new not in keys
        assert found(personas, "nilou", settings, "新しい記憶") == ["新しい記憶"]


@pytest.mark.parametrize("name", STORES)
def test_an_adopted_store_can_be_exported_and_brought_in_elsewhere(data_directory, zone, name):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES[name], utf16="UTF-16" in name)
    with started(data_directory) as personas:
        lines = exported(personas, "nilou")
        numbered = [(number, json.dumps(line).encode()) for number, line in enumerate(lines, start=1)]
        result = import_lines(lambda: personas.writing("copy"), numbered, ImportOptions(NOON, zone, privacy=Privacy()))
        assert (result.stored, result.errors) == (len(lines), ())
        assert exported(personas, "copy") == lines


def test_whom_adopted_memories_name_is_in_the_graph(data_directory):
    rows = [{**CURRY, "content": "田中さんと[[プロジェクトA|Concept]]の話をした"}, TEMPLE]
    make_store(data_directory / "nilou" / "memory.sqlite", OlderStore(STORES["without tags"].columns, rows))
    with started(data_directory) as personas, personas.writing("nilou") as persona:
        while update_graph(persona, NOON):
            pass
        with persona.database.read() as connection:
            entities = dict(connection.execute("SELECT name, extraction_count FROM entities"))
    assert {name: entities[name] for name in ("田中", "プロジェクトA")} == {"田中": 1, "プロジェクトA": 1}


@pytest.mark.parametrize("name", STORES)
def test_a_second_start_changes_no_byte(data_directory, name):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES[name], utf16="UTF-16" in name)
    adopt(data_directory)
    before = snapshot(data_directory)
    assert adopt(data_directory) == []
    assert snapshot(data_directory) == before


def test_what_has_a_place_of_ours_is_there_and_the_rest_is_in_the_metadata(data_directory):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with feelings"])
    with started(data_directory) as personas:
        line = exported(personas, "nilou")[0]
    assert line["tags"] == ["食事", "夜"]
    assert line["importance"] == 0.9
    assert line["usage_count"] == 7
    assert line["last_used_at"] == "2025-11-01T23:00:00.000000+00:00"
    assert line["state"] == {
        "emotion": "joy",
        "physical_state": "tired",
        "mental_state": "満足",
        "environment": "home",
        "relationship_status": "close",
    }
    kept = {"emotion_intensity", "action_tag", "related_keys", "summary_ref", "equipped_items"}
    assert set(line["metadata"]["legacy"]) == kept


def test_the_privacy_level_of_an_older_memory_is_ours_where_we_have_it(data_directory):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["the latest"])
    with started(data_directory) as personas:
        line = exported(personas, "nilou")[0]
    assert line["privacy_level"] == "private"
    assert "privacy_level" not in line["metadata"]["legacy"]


def test_a_value_of_ours_that_had_another_form_is_kept_beside_it(data_directory):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with our names in other forms"])
    with started(data_directory) as personas:
        first, second = exported(personas, "nilou")
    assert (first["importance"], first["metadata"]["legacy"]["importance"]) == (1.0, "8")
    assert (second["importance"], second["metadata"]["legacy"]["importance"]) == (0.5, "high")
    assert (first["kind"], first["metadata"]["legacy"]["kind"]) == ("fact", "diary")
    assert second["metadata"]["mood"] == {"level": 3}
    assert second["state"] == {"emotion": "joy"}
    assert "deleted_at" not in second


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2025-10-30T12:00:00", "2025-10-30T03:00:00+00:00"),
        ("2025-10-30 12:00:00", "2025-10-30T03:00:00+00:00"),
        ("2025/10/30 12:00:00", "2025-10-30T03:00:00+00:00"),
        ("2025-10-30T12:00:00+02:00", "2025-10-30T10:00:00+00:00"),
        ("2025-10-30T03:00:00Z", "2025-10-30T03:00:00+00:00"),
        (1761793200, "2025-10-30T03:00:00+00:00"),
        (1761793200.25, "2025-10-30T03:00:00.250000+00:00"),
        ("1761793200000", "2025-10-30T03:00:00+00:00"),
        (1761793200000000, "2025-10-30T03:00:00+00:00"),
        ("20251030120000", "2025-10-30T03:00:00+00:00"),
        ("2025-10-30", "2025-10-29T15:00:00+00:00"),
    ],
)
def test_a_time_is_read_in_whatever_form_it_was(written, meant):
    assert row_conversion.moment(written) == datetime.fromisoformat(meant)


@pytest.mark.parametrize("written", ["", "yesterday", "2025-13-45", None, b"2025-10-30", "9" * 30, 7, "0001-01-01T00:00:00"])
def test_what_is_no_time_is_taken_for_none(written):
    assert row_conversion.moment(written) is None


def test_every_layout_finds_its_place_and_every_memory_is_there(data_directory, sprung, figure):
    make_everything(data_directory, sprung)
    olds = {name: STORES[store].rows for name, store in EVERYONE.items()}
    with started(data_directory) as personas:
        assert personas.names() == sorted(EVERYONE)
        for name, rows in olds.items():
            lines = exported(personas, name)
            assert [lost(row, line) for row, line in zip(rows, lines, strict=True)] == [[] for _ in rows]
    figure("old file layouts adopted", 7)
    for name in EVERYONE:
        identity = json.loads((database_of(data_directory, name).parent / "persona.json").read_text(encoding="utf-8"))
        assert identity == {"name": name}
    assert legacy_items(data_directory) == []


def test_a_pickle_is_never_read_and_never_lost(data_directory, sprung):
    make_everything(data_directory, sprung)
    pickled = (data_directory / "vector_store" / "index.pkl").read_bytes()
    adopt(data_directory)
    kept = list(data_directory.joinpath(".adopted").rglob("index.pkl"))
    assert [path.read_bytes() for path in kept] == [pickled] * 3
    assert not sprung.exists()
    assert list(data_directory.glob("*/vector_store")) == []


def test_an_index_of_ours_beside_an_older_pickle_stays(data_directory, sprung):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with tags"])
    make_vectors(data_directory / "nilou" / "vector_store", sprung)
    (data_directory / "nilou" / "vector_store" / "manifest.json").write_text("{}")
    adopt(data_directory)
    assert sorted(path.name for path in (data_directory / "nilou" / "vector_store").iterdir()) == ["index.faiss", "manifest.json"]


def test_what_our_log_says_of_the_server_itself_is_no_older_log(data_directory):
    log = OperationsLog(data_directory)
    for event in SERVER_EVENTS:
        log.append_event(event, datetime.now(UTC), {"token": None})
    log.close()
    assert legacy_items(data_directory) == []


def test_the_older_log_is_kept_whole_and_ours_begins_anew_without_content(data_directory, sprung):
    make_everything(data_directory, sprung)
    older = (data_directory / "memory_operations.log").read_bytes()
    adopt(data_directory)
    (kept,) = data_directory.joinpath(".adopted").rglob("memory_operations.log")
    assert kept.read_bytes() == older
    lines = [json.loads(line) for line in (data_directory / "memory_operations.log").read_text(encoding="utf-8").splitlines()]
    assert {line["operation"] for line in lines} == {"adopt"}
    assert {"memory_operations.log", "vector_store", "さくら", "Yae_Miko.sqlite"} <= {line["key"] for line in lines}
    assert set(EVERYONE) <= {line["persona"] for line in lines if line["key"] is None}


def test_a_log_of_ours_stays_where_it_is(data_directory, zone):
    with started(data_directory) as personas, personas.writing("nilou") as persona:
        remember(persona, draft("京都", now=NOON, zone=zone), now=NOON, zone=zone, privacy=Privacy())
    before = snapshot(data_directory)
    assert adopt(data_directory) == []
    assert snapshot(data_directory) == before


def test_the_database_is_kept_as_it_was_before_anything_in_it_was_changed(data_directory):
    path = data_directory / "nilou" / "memory.sqlite"
    make_store(path, STORES["the latest"])
    before = rows_of(path)
    adopt(data_directory)
    (kept,) = data_directory.joinpath(".adopted").rglob("memory.sqlite")
    assert rows_of(kept) == before
    with closing(sqlite3.connect(kept)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM memory_versions").fetchone() == (1,)


def test_other_tables_of_the_older_server_stay_and_those_in_our_way_are_renamed(data_directory):
    path = data_directory / "nilou" / "memory.sqlite"
    make_store(path, STORES["the latest"])
    tables = {table: rows_of(path, table) for table in ("memory_strength", "emotion_history", "goals", "memory_versions", "properties")}
    adopt(data_directory)
    for table, rows in tables.items():
        now_named = f"legacy_{table}" if table in ("memory_versions", "properties") else table
        assert rows_of(path, now_named) == rows
    with closing(sqlite3.connect(path)) as connection:
        done = [json.loads(row[0]) for row in connection.execute("SELECT metadata FROM operations WHERE operation = 'adopt'")]
        assert connection.execute("SELECT count(*) FROM operations WHERE operation_id = 'o1'").fetchone() == (1,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (told,) = done
    assert told["memories"] == 2
    assert told["renamed_tables"] == {"memory_versions": "legacy_memory_versions", "properties": "legacy_properties"}
    assert [sql.split()[2] for sql in told["dropped"]] == ["memories_ad", "memories_au", "lately"]


def test_rows_that_refer_to_an_older_memory_do_not_hold_it_back_from_being_erased(data_directory):
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["the latest"])
    with started(data_directory) as personas, personas.writing("nilou") as persona:
        persona.database.write(lambda connection: connection.execute("DELETE FROM memories").fetchall())
        with persona.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM emotion_history").get == 1


def test_a_broken_view_of_the_older_server_is_in_nobodys_way(data_directory):
    path = data_directory / "nilou" / "memory.sqlite"
    make_store(path, OlderStore(STORES["with tags"].columns, STORES["with tags"].rows, "CREATE VIEW operations AS SELECT * FROM gone"))
    with started(data_directory) as personas:
        assert len(exported(personas, "nilou")) == 2


@pytest.mark.parametrize("target", ["nilou/memory.sqlite", "nilou.sqlite", "さくら/memory.sqlite"])
def test_changes_that_an_older_server_had_not_folded_in_yet_are_there(data_directory, tmp_path, target):
    live = tmp_path / "live.sqlite"
    make_store(live, STORES["with tags"])
    path = data_directory / target
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(live)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO memories VALUES ('late', 'まだ畳まれていない', '2025-11-01', '2025-11-01', NULL)")
        connection.commit()
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).write_bytes(live.with_name(live.name + ending).read_bytes())
    name = "さくら" if "さくら" in target else "nilou"
    with started(data_directory) as personas:
        assert [line["content"] for line in exported(personas, name)][2:] == ["まだ畳まれていない"]
    assert [entry.name for entry in data_directory.iterdir() if entry.name.endswith(("-wal", "-shm"))] == []


@pytest.mark.parametrize("target", ["nilou/memory.sqlite", "nilou.sqlite", "さくら/memory.sqlite"])
def test_a_read_only_database_is_adopted_and_can_be_written(data_directory, zone, target):
    path = data_directory / target
    make_store(path, STORES["with tags"])
    path.chmod(0o444)
    name = "さくら" if "さくら" in target else "nilou"
    with started(data_directory) as personas, personas.writing(name) as persona:
        remember(persona, draft("新しい", now=NOON, zone=zone), now=NOON, zone=zone, privacy=Privacy())
        assert len(exported(personas, name)) == 3
    assert database_of(data_directory, name).stat().st_mode & 0o200


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("target", ["nilou/memory.sqlite", "nilou.sqlite", "さくら/memory.sqlite"])
def test_adopted_files_are_readable_for_their_owner_alone(data_directory, target):
    path = data_directory / target
    make_store(path, STORES["with tags"])
    path.chmod(0o666)
    if path.parent != data_directory:
        path.parent.chmod(0o755)
        path.with_name("persona_context.json").write_text("{}")
    adopt(data_directory)
    directory = database_of(data_directory, "さくら" if "さくら" in target else "nilou").parent
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()} == {file.name: 0o600 for file in directory.iterdir()}
    assert all(kept.stat().st_mode & 0o077 == 0 for kept in data_directory.joinpath(".adopted").iterdir())


def test_a_flat_file_joins_the_context_that_is_there_already(data_directory):
    make_store(data_directory / "さくら.sqlite", STORES["with tags"])
    (data_directory / "さくら").mkdir()
    (data_directory / "さくら" / "persona_context.json").write_text('{"current_emotion": "joy"}')
    with started(data_directory) as personas, personas.reading("さくら") as persona:
        assert persona.context.read()["current_emotion"] == "joy"
        assert len(exported(personas, "さくら")) == 2


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"user_info": {"name": "User", "nickname": None, "preferred_address": None}, "persona_info": {"name": "nilou"}},
        {"current_emotion_intensity": None, "physical_sensations": {"fatigue": 0.0}, "emotion_history": [], "current_action_tag": None},
        {"last_conversation_time": "2025-10-30T12:00:00", "promises": [{"content": "映画"}], "goals": "富士山", "current_equipment": {}},
    ],
)
def test_a_context_of_any_shape_is_kept_with_everything_in_it(data_directory, context):
    make_store(data_directory / "さくら" / "memory.sqlite", STORES["with tags"])
    written = "\ufeff" + json.dumps(context, ensure_ascii=False)
    (data_directory / "さくら" / "persona_context.json").write_text(written, encoding="utf-8")
    with started(data_directory) as personas, personas.writing("さくら") as persona:
        persona.context.update({"current_emotion": "joy"})
        told = persona.context.read()
    for name, value in context.items():
        assert {**told[name], **value} == told[name] if isinstance(value, dict) else told[name] == value
    (kept,) = data_directory.joinpath(".adopted").rglob("persona_context.json")
    assert kept.read_text(encoding="utf-8") == written


def collisions(data):
    """Two stores that claim one persona, in every way that there is."""
    make_store(data / "nilou.sqlite", STORES["with tags"])
    make_store(data / "nilou" / "memory.sqlite", STORES["without tags"])
    make_store(data / unicodedata.normalize("NFC", "が") / "memory.sqlite", STORES["with tags"])
    make_store(data / unicodedata.normalize("NFD", "が") / "memory.sqlite", STORES["without tags"])
    make_store(data / directory_name("さくら") / "memory.sqlite", STORES["with tags"])
    make_store(data / "さくら" / "memory.sqlite", STORES["without tags"])
    make_store(data / "さくら.sqlite", STORES["with feelings"])


def test_two_stores_that_claim_one_persona_are_never_merged(data_directory):
    collisions(data_directory)
    (data_directory / directory_name("さくら") / "persona.json").write_text('{"name": "さくら"}', encoding="utf-8")
    if len(list(data_directory.iterdir())) < 7:
        pytest.skip("this file system has one form of が")
    stores = {path: rows_of(path) for path in [*data_directory.glob("*.sqlite"), *data_directory.glob("*/memory.sqlite")]}
    moved = adopt(data_directory)
    refused = {thing.source for thing in moved if thing.refused}
    assert refused == {"nilou.sqlite", "さくら", "さくら.sqlite", unicodedata.normalize("NFC", "が")}
    assert all("never merged" in thing.refused for thing in moved if thing.refused)
    for source in refused:
        path = data_directory / source if source.endswith(".sqlite") else data_directory / source / "memory.sqlite"
        assert rows_of(path) == stores[path]
    assert {thing.source for thing in adopt(data_directory)} == refused


@pytest.mark.parametrize("name", ["..bad ", "a\u200bb", " "])
def test_a_name_that_nobody_can_send_stays_and_is_reported(data_directory, caplog, name):
    make_store(data_directory / name / "memory.sqlite", STORES["with tags"])
    make_store(data_directory / f"{name}.sqlite", STORES["with tags"])
    moved = adopt(data_directory)
    assert [bool(thing.refused) for thing in moved] == [True, True]
    assert len(rows_of(data_directory / name / "memory.sqlite")) == len(rows_of(data_directory / f"{name}.sqlite")) == 2
    assert "stays where it is" in caplog.text


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_flat_file_that_is_no_store_stays_as_it_is(data_directory, content):
    path = data_directory / "nilou.sqlite"
    path.write_bytes(content)
    assert [bool(thing.refused) for thing in adopt(data_directory)] == [True]
    assert path.read_bytes() == content


def test_a_damaged_older_store_is_not_touched_and_the_others_are_adopted(data_directory):
    make_store(data_directory / "broken" / "memory.sqlite", STORES["with feelings"])
    path = data_directory / "broken" / "memory.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with tags"])
    with started(data_directory) as personas:
        assert len(exported(personas, "nilou")) == 2
        with pytest.raises(StoreError), personas.reading("broken"):
            pass


def test_a_caller_is_told_to_try_again_while_another_one_takes_the_store_over(data_directory, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection):
        if "nilou" in connection.filename:
            begun.set()
            go_on.wait(60)

    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with tags"])
    personas = Personas(data_directory, opening_seconds=0.01)
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, ("9999 slow", slow)])
    adoption = threading.Thread(target=moving.take_over_tables, args=(personas, threading.Event()), name="adoption")
    adoption.start()
    try:
        assert begun.wait(60)
        with pytest.raises(Overloaded, match="being migrated"), personas.reading("nilou"):
            pass
        with personas.writing("paimon") as other:
            assert other.exists
    finally:
        go_on.set()
        adoption.join()
    assert len(exported(personas, "nilou")) == 2
    personas.close()


def test_doctor_says_what_would_be_adopted_and_changes_nothing(data_directory, sprung, tmp_path, capsys):
    make_everything(data_directory, sprung)
    make_store(data_directory / "nilou.sqlite", STORES["with tags"])
    config = tmp_path / "config.json"
    config.write_text('{"embeddings_model": null, "reranker_model": null}')
    before = snapshot(data_directory)
    cli.run(["doctor", "--config", str(config), "--data", str(data_directory)])
    said = capsys.readouterr().out
    assert snapshot(data_directory) == before
    for thing in ("さくら", "Yae_Miko.sqlite", "default.sqlite", "vector_store", "nilou.sqlite", "memory_operations.log"):
        assert f"{thing} " in said
    assert "never merged" in said


def test_adopting_by_hand_says_the_same_as_its_dry_run_and_does_it(data_directory, sprung, capsys):
    make_everything(data_directory, sprung)
    before = snapshot(data_directory)
    assert cli.run(["adopt", "--dry-run", "--data", str(data_directory)]) == 0
    foreseen = capsys.readouterr().out
    assert snapshot(data_directory) == before
    assert cli.run(["adopt", "--data", str(data_directory)]) == 0
    assert all(name in foreseen for name in EVERYONE)
    assert legacy_items(data_directory) == []
    assert cli.run(["adopt", "--data", str(data_directory)]) == 0
    assert "no data of an older server" in capsys.readouterr().out


@pytest.mark.timeout(1200)
def test_killed_at_any_step_the_next_start_goes_on_and_nothing_is_lost(tmp_path, figure, thorough):
    sprung = tmp_path / "sprung"
    make_everything(tmp_path / "whole", sprung)
    steps = int(run_until(tmp_path / "whole", 10**9).stdout.split()[-1])
    # A few steps more or less from run to run: writes that wait together share a commit.
    points = range(1, steps - steps // 50, max(1, steps // (100 if thorough else 8)))
    places = {number: tmp_path / f"killed{number}" for number in points}
    for data in places.values():
        make_everything(data, sprung)
    with ThreadPoolExecutor(2) as adopting:
        killed = sum(done.returncode == -9 for done in adopting.map(lambda number: run_until(places[number], number), points))
    for data in places.values():
        with started(data) as personas:
            assert personas.names() == sorted(EVERYONE)
            for name, store in EVERYONE.items():
                lines = exported(personas, name)
                assert [lost(row, line) for row, line in zip(STORES[store].rows, lines, strict=True)] == [[], []]
        assert legacy_items(data) == []
        assert len(list(data.joinpath(".adopted").rglob("index.pkl"))) == 3
        kept = list(data.joinpath(".adopted").rglob("*.sqlite"))
        assert {tuple(row["key"] for row in rows_of(path)) for path in kept} == {(CURRY["key"], "memory_20251031090000")}
        assert [path.name for path in kept if path.name == "memory.sqlite"] == ["memory.sqlite"] * len(EVERYONE)
        assert list(data.rglob("memory.sqlite*.part")) == []
        before = snapshot(data)
        assert adopt(data) == []
        assert snapshot(data) == before
    figure("adoptions killed at different steps", killed)
    assert killed == len(points)
    assert not sprung.exists()
