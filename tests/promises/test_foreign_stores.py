"""Whoever used another memory server brings everything along: each row is a memory, or is refused by its name."""

import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from foreign_stores import FOREIGN, ForeignStore, PointStruct, make_foreign
from older_stores import NOON, STORES, Trap, adopt, exported, make_store, rows_of, run_until, started

from memory_mcp.config.settings import Privacy
from memory_mcp.features.adoption import moving
from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas.registry import Personas
from memory_mcp.transfer.formats.import_rows import LeftOut, ReadOptions
from memory_mcp.transfer.formats.readers import FormatPart, by_persona, database, detect_format, json_lines
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines

pytestmark = pytest.mark.slow

IN_PLACE = [name for name, store in FOREIGN.items() if store.in_place]
NAME = "kept"


def import_database(personas, path, zone, persona=None):
    """What `memory-mcp import` does. Returns what was refused."""
    refused = []
    for name, items in by_persona(FormatPart(detect_format(path), path), ReadOptions(), print, persona):
        origins = []
        read = list(items)
        refused += [item.where for item in read if item.refused]
        lines = list(enumerate(json_lines(iter(read), lambda _item: None, origins.append, lambda _item: None), start=1))
        options = ImportOptions(NOON, zone, privacy=Privacy(), clash="refuse")
        result = import_lines(lambda name=name: personas.writing(name or NAME), lines, options)
        refused += [origins[error.line - 1] for error in result.errors]
    return refused


def memories_of(personas, name):
    return [line for line in exported(personas, name) if "content" in line and "version_of" not in line]


def check(personas, store):
    for owner, texts in store.texts.items():
        lines = memories_of(personas, owner or NAME)
        assert sorted(line["content"] for line in lines) == sorted(texts)
        assert {line["content"] for line in lines if "deleted_at" in line} == store.in_trash & set(texts)
    return sum(len(memories_of(personas, owner or NAME)) for owner in store.texts)


@pytest.fixture
def elsewhere(tmp_path):
    personas = Personas(tmp_path / "elsewhere")
    yield personas
    personas.close()


@pytest.mark.parametrize("place", ["flat", "directory"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_each_row_of_an_adopted_database_is_a_memory_or_refused_by_its_name(data_directory, caplog, figure, name, place):
    store = FOREIGN[name]
    if place == "directory" and len(store.texts) > 1:
        pytest.skip("a directory is one persona's")
    make_foreign(data_directory / (f"{NAME}.sqlite" if place == "flat" else f"{NAME}/memory.sqlite"), store)
    caplog.set_level("INFO")
    with started(data_directory) as personas:
        recalled = check(personas, store)
        assert set(personas.names()) == {owner or NAME for owner in store.texts}
    for owner, texts in store.texts.items():
        dropped = len(store.in_trash & set(texts))
        told = (
            f"{owner or NAME}: {len(texts) - dropped} memories of an older server were adopted"
            + f", and {dropped} into the trash" * bool(dropped)
        )
        assert told in caplog.messages
    for row in store.refused:
        assert f"have no text and stay in its table: {row}" in caplog.text
    assert legacy_items(data_directory) == []
    assert adopt(data_directory) == []
    figure("rows of other programs' databases", store.rows)
    figure("rows of other programs neither recalled nor refused by name", store.rows - recalled - len(store.refused))


@pytest.mark.parametrize("name", FOREIGN)
def test_each_row_of_an_imported_database_is_a_memory_or_refused_by_its_name(tmp_path, elsewhere, zone, figure, name):
    store = FOREIGN[name]
    path = tmp_path / "store.sqlite"
    make_foreign(path, store)
    before = path.read_bytes()
    refused = import_database(elsewhere, path, zone)
    recalled = check(elsewhere, store)
    assert [where for where in refused if not where.startswith("store.sqlite, mention")] == [
        f"store.sqlite, {row}" for row in store.refused
    ]
    lines = {owner: exported(elsewhere, owner or NAME) for owner in store.texts}
    assert import_database(elsewhere, path, zone) == refused
    assert {owner: exported(elsewhere, owner or NAME) for owner in store.texts} == lines
    assert path.read_bytes() == before
    figure("rows of other programs' databases", store.rows)
    figure("rows of other programs neither recalled nor refused by name", store.rows - recalled - len(store.refused))


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_import_makes_the_same_memories_and_graph_as_the_adoption(data_directory, tmp_path, elsewhere, zone, name):
    store = FOREIGN[name]
    make_foreign(tmp_path / "store.sqlite", store)
    shutil.copy(tmp_path / "store.sqlite", data_directory / f"{NAME}.sqlite")
    import_database(elsewhere, tmp_path / "store.sqlite", zone)
    with started(data_directory) as adopted:
        for owner in store.texts:
            told = []
            for personas in (adopted, elsewhere):
                with personas.writing(owner or NAME) as persona:
                    while update_graph(persona, NOON):
                        pass
                random = {"deleted_at", "entity_id"}
                lines = exported(personas, owner or NAME)
                told.append([{field: value for field, value in line.items() if field not in random} for line in lines])
            assert sorted(map(json.dumps, told[0])) == sorted(map(json.dumps, told[1]))


def test_every_user_of_the_specification_becomes_a_persona_with_all_that_is_theirs(data_directory):
    make_foreign(data_directory / "long_memory.sqlite", FOREIGN["long_memory_MCP"])
    with started(data_directory) as personas:
        assert personas.names() == ["alice", "ボブ#work_pack"]
        meeting, dropped, later = memories_of(personas, "alice")
        with personas.reading("alice") as persona, persona.database.read() as connection:
            mentions = set(
                connection.execute(
                    "SELECT m.content, e.name, em.link_type FROM entity_mentions em "
                    "JOIN memories m ON m.id = em.memory JOIN entities e ON e.id = em.entity"
                )
            )
            links = connection.execute(
                "SELECT s.content, l.type, t.content, l.weight FROM memory_links l "
                "JOIN memories s ON s.id = l.source JOIN memories t ON t.id = l.target"
            ).fetchall()
        entity = next(line for line in exported(personas, "alice") if "entity" in line)
        types = [line for line in exported(personas, "alice") if "entity_type" in line]
    assert (meeting["importance"], meeting["category"], meeting["session_id"], meeting["usage_count"]) == (0.9, "work", "01J", 3)
    assert meeting["created_at"] == "2025-08-18T03:00:00.000000+00:00"
    assert meeting["metadata"]["mood"] == "calm"
    assert meeting["metadata"]["legacy"]["latitude"] == 35.68
    assert meeting["metadata"]["legacy"]["summary_text"] == "会議"
    assert (dropped["deleted_at"] > "2026", dropped["metadata"]["legacy"]["invalidated_at"]) == (True, "2025-08-19 00:00:00")
    assert mentions == {(meeting["content"], "田中太郎", "involves"), (later["content"], "田中太郎", "performed_by")}
    assert links == [(meeting["content"], "causality", later["content"], 0.7)]
    assert (entity["type"], entity["subtype"], entity["description"]) == ("Person", "Engineer", "Pythonが得意な同僚")
    assert set(entity["aliases"]) >= {"田中さん", "Tanaka"}
    assert entity["entity_id"] == "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert [line["entity_type"] for line in types] == ["Ship"]


def test_a_database_in_utf16_is_split_too(data_directory):
    store = FOREIGN["long_memory_MCP"]
    make_foreign(data_directory / "long_memory.sqlite", replace(store, script=f"PRAGMA encoding = 'UTF-16le';{store.script}"))
    with started(data_directory) as personas:
        check(personas, store)


@pytest.mark.parametrize("column", ["user_id", "name", "relation_type", "raw_text"])
def test_text_that_is_none_costs_its_row_at_most(data_directory, column):
    table = {"name": "entities", "relation_type": "memory_links"}.get(column, "memories")
    broken = f"UPDATE {table} SET {column} = CAST(x'93fa967b' AS TEXT) WHERE id = 1;"
    store = FOREIGN["long_memory_MCP"]
    make_foreign(data_directory / "long_memory.sqlite", replace(store, script=store.script + broken))
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with tags"])
    with started(data_directory) as personas:
        assert len(memories_of(personas, "nilou")) == 2
        if column == "user_id":
            assert (data_directory / "long_memory.sqlite").exists()
        else:
            assert len(memories_of(personas, "alice")) == 3


@pytest.mark.parametrize(
    ("column", "value", "kept"),
    [("entity_id", "'not a uuid'", True), ("aliases", f"'[\"{'あ' * 20_000}\"]'", True), ("attributes", "'{'", True), ("name", "' '", False),
     ("name", f"'{'あ' * 20_000}'", False), ("importance_score", "9e999", True), ("created_at", "'yesterday'", True)],
)  # fmt: skip
def test_an_entity_with_values_that_can_not_be_stored_loses_those_or_is_refused(data_directory, caplog, column, value, kept):
    script = f"{FOREIGN['long_memory_MCP'].script} UPDATE entities SET {column} = {value} WHERE id = 1;"
    make_foreign(data_directory / "long_memory.sqlite", replace(FOREIGN["long_memory_MCP"], script=script))
    with started(data_directory) as personas:
        assert len(memories_of(personas, "alice")) == 3
        assert ("田中太郎" in [line.get("entity") for line in exported(personas, "alice")]) == kept
        with personas.reading("alice") as persona, persona.database.read() as connection:
            names = [row[0] for row in connection.execute("SELECT alias FROM entity_aliases")]
    assert max(map(len, names), default=0) < 1_000
    assert kept or "about the graph could not be adopted: entity" in caplog.text


def test_killed_at_any_step_of_a_split_the_next_start_goes_on(tmp_path, figure, thorough):
    store = FOREIGN["long_memory_MCP"]
    make_foreign(tmp_path / "whole" / "long_memory.sqlite", store)
    steps = int(run_until(tmp_path / "whole", 10**9).stdout.split()[-1])
    # A few steps more or less from run to run: writes that wait together share a commit.
    for number in range(1, steps - steps // 10, max(1, steps // (8 if thorough else 5))):
        data = tmp_path / f"killed{number}"
        make_foreign(data / "long_memory.sqlite", store)
        assert run_until(data, number).returncode == -9
        with started(data) as personas:
            check(personas, store)
            assert personas.names() == ["alice", "ボブ#work_pack"]
        assert legacy_items(data) == []
        assert len(list(data.joinpath(".adopted").rglob("several_personas/long_memory.sqlite"))) == 1
        figure("adoptions killed at different steps", 1)


def test_nothing_of_one_user_is_in_the_files_of_another(data_directory):
    make_foreign(data_directory / "long_memory.sqlite", FOREIGN["long_memory_MCP"])
    adopt(data_directory)
    (original,) = data_directory.joinpath(".adopted").rglob("several_personas/long_memory.sqlite")
    assert len(rows_of(original)) == 5
    for file in [*data_directory.glob("alice/*"), *data_directory.glob(".adopted/*/alice/*")]:
        assert "佐藤".encode() not in file.read_bytes()
        assert "ボブ".encode() not in file.read_bytes()


def test_users_of_whom_one_is_a_persona_already_are_not_merged(data_directory):
    make_store(data_directory / "alice" / "memory.sqlite", STORES["with tags"])
    path = data_directory / "long_memory.sqlite"
    make_foreign(path, FOREIGN["long_memory_MCP"])
    before = path.read_bytes()
    (item,) = [item for item in adopt(data_directory) if item.source == path.name]
    assert "never merged" in item.refused
    assert path.read_bytes() == before
    with started(data_directory) as personas:
        assert personas.names() == ["alice"]
        assert len(memories_of(personas, "alice")) == 2


@pytest.mark.parametrize("left", ["alice", "ボブ#work_pack"])
def test_an_adoption_that_was_interrupted_between_two_users_goes_on(data_directory, monkeypatch, left):
    make_foreign(data_directory / "long_memory.sqlite", FOREIGN["long_memory_MCP"])
    copy_rows = moving.copy_rows

    def interrupted(source, schema, owner, target):
        if owner == left:
            raise OSError(28, "No space left on device")
        copy_rows(source, schema, owner, target)

    with monkeypatch.context() as full:
        full.setattr(moving, "copy_rows", interrupted)
        assert len([item for item in adopt(data_directory) if item.refused]) == 2
    assert (data_directory / "long_memory.sqlite").exists()
    with started(data_directory) as personas:
        check(personas, FOREIGN["long_memory_MCP"])
    assert legacy_items(data_directory) == []
    assert list(data_directory.joinpath(".staging").iterdir()) == []


def test_a_database_of_several_in_one_persona_s_directory_stays_as_it_is(data_directory, caplog):
    path = data_directory / NAME / "memory.sqlite"
    make_foreign(path, FOREIGN["long_memory_MCP"])
    before = path.read_bytes()
    adopt(data_directory)
    assert path.read_bytes() == before
    assert "it contains the memories of several, such as alice, ボブ#work_pack" in caplog.text


@pytest.mark.parametrize("name", [name for name in FOREIGN if name not in IN_PLACE])
def test_a_database_that_can_only_be_imported_stays_where_it_is_and_says_so(data_directory, name):
    make_foreign(data_directory / "other.sqlite", FOREIGN[name])
    before = (data_directory / "other.sqlite").read_bytes()
    (item,) = adopt(data_directory)
    assert "`memory-mcp import other.sqlite`" in item.refused
    assert (data_directory / "other.sqlite").read_bytes() == before


def test_an_import_for_one_persona_takes_that_user_s_rows(tmp_path, elsewhere, zone):
    path = tmp_path / "store.sqlite"
    make_foreign(path, FOREIGN["long_memory_MCP"])
    import_database(elsewhere, path, zone, "alice")
    assert elsewhere.names() == ["alice"]
    with pytest.raises(Exception, match="'nilou' is none of them"):
        import_database(elsewhere, path, zone, "nilou")


def test_what_was_replaced_and_who_was_mentioned_is_known_from_mcp_memory_service(tmp_path, elsewhere, zone):
    make_foreign(tmp_path / "store.sqlite", FOREIGN["mcp-memory-service 10"])
    import_database(elsewhere, tmp_path / "store.sqlite", zone)
    strawberry, peach, _ = memories_of(elsewhere, NAME)
    assert (strawberry["key"], strawberry["tags"], strawberry["category"]) == ("aaa1", ["food", "旅人"], "preference")
    assert strawberry["metadata"] == {"author": "paimon", "legacy": {"created_at": 1761793200.5, "updated_at": 1761793200.5}}
    assert peach["supersedes"] == "aaa1"
    assert [line["link"] for line in exported(elsewhere, NAME) if "link" in line] == ["contradicts"]


def test_the_tables_that_an_import_leaves_out_are_counted(tmp_path):
    path = tmp_path / "history.db"
    make_foreign(path, FOREIGN["mem0's history"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO messages(id, content) VALUES ('1', 'hello'), ('2', 'world')")
        connection.commit()
    left_out = LeftOut()
    for item in database(path):
        if item.left_out:
            left_out.add(item)
    assert left_out.sentence() == "left out: rows of other tables: 2 (history.db, table messages; …)"


@pytest.mark.parametrize("written", [None, {"user_info": {"name": "蛍"}}, "[no context"])
def test_who_the_persona_of_nous_is_comes_along_where_the_file_says_nothing(data_directory, elsewhere, zone, written):
    path = data_directory / NAME / "memory.sqlite"
    make_foreign(path, FOREIGN["Nous"])
    import_database(elsewhere, path, zone)
    if written:
        path.with_name("persona_context.json").write_text(written if isinstance(written, str) else json.dumps(written), encoding="utf-8")
    with started(data_directory) as personas, personas.reading(NAME) as adopted, elsewhere.reading(NAME) as imported:
        assert len(memories_of(personas, NAME)) == 3
        if isinstance(written, str):
            assert path.with_name("persona_context.json").read_text(encoding="utf-8") == written
            return
        told = adopted.context.read()
        assert told["user_info"]["name"] == ("蛍" if written else "空")
        assert {**told, "user_info": imported.context.read()["user_info"]} == imported.context.read()
    assert told["user_info"]["preferred_address"] == "旅人"
    assert (told["persona_info"]["nickname"], told["current_emotion"], told["environment"]) == ("ニィロウ", "joy", "beach")
    assert told["speech_style"] == "polite"


def test_earlier_texts_of_mem0_are_earlier_versions(tmp_path, elsewhere, zone):
    make_foreign(tmp_path / "history.db", FOREIGN["mem0's history"])
    import_database(elsewhere, tmp_path / "history.db", zone)
    with elsewhere.reading(NAME) as persona:
        lines = [json.loads(line) for line in export_lines(persona, ExportOptions(deleted=True, versions=True))]
    assert [(line["version_of"], line["content"]) for line in lines if "version_of" in line] == [("m1", "旅人は苺が好き")]
    assert next(line["revision"] for line in lines if line.get("key") == "m1") == 2


def test_nothing_that_a_pickled_point_names_is_run(tmp_path, elsewhere, zone):
    sprung = tmp_path / "sprung"
    trap = PointStruct("p", {"data": "罠", "user_id": Trap(sprung)})
    make_foreign(
        tmp_path / "storage.sqlite",
        ForeignStore("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)", {}, points={"a": Trap(sprung), "b": trap}),
    )
    with closing(sqlite3.connect(tmp_path / "storage.sqlite")) as connection:
        connection.execute("INSERT INTO points VALUES ('c', ?)", (b"\x80\x04cposix\nsystem\n(X\x05\x00\x00\x00falsetR.",))
        connection.execute("INSERT INTO points VALUES ('d', ?)", (pickle.dumps([])[:-1],))
        connection.commit()
    refused = import_database(elsewhere, tmp_path / "storage.sqlite", zone)
    assert not sprung.exists()
    assert [line["content"] for line in memories_of(elsewhere, NAME)] == ["罠"]
    assert refused == [f"storage.sqlite, row {number}" for number in (1, 3, 4)]


def test_a_point_of_mem0_expires_at_the_end_of_its_day_and_never_by_a_date_that_is_none(tmp_path, elsewhere, zone):
    dates = {"一月": "2030-01-31", "いつか": "someday", "ずっと": None}
    points = {text: PointStruct(f"p{number}", {"data": text, "expiration_date": day}) for number, (text, day) in enumerate(dates.items())}
    make_foreign(tmp_path / "storage.sqlite", ForeignStore("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)", {}, points=points))
    assert import_database(elsewhere, tmp_path / "storage.sqlite", zone) == []
    told = {line["content"]: line.get("expires_at") for line in memories_of(elsewhere, NAME)}
    assert told == {"一月": "2030-02-01T00:00:00.000000+00:00", "いつか": None, "ずっと": None}


def test_a_database_of_ours_brings_its_times_of_expiry_along(elsewhere, zone):
    line = json.dumps({"content": "期限つき", "expires_at": "2030-02-01T00:00:00.000000+00:00"}).encode()
    import_lines(lambda: elsewhere.writing("first"), [(1, line)], ImportOptions(NOON, zone, privacy=Privacy()))
    assert import_database(elsewhere, elsewhere.path_of("first"), zone) == []
    assert [line["expires_at"] for line in memories_of(elsewhere, NAME)] == ["2030-02-01T00:00:00.000000+00:00"]


def test_relations_of_basic_memory_are_in_the_graph(tmp_path, elsewhere, zone):
    make_foreign(tmp_path / "memory.db", FOREIGN["basic-memory"])
    import_database(elsewhere, tmp_path / "memory.db", zone)
    told = [(line["source"], line["relation"], line["target"]) for line in exported(elsewhere, NAME) if "relation" in line]
    assert told == [("コーヒー", "relates_to", "抹茶"), ("コーヒー", "opposition", "紅茶")]
