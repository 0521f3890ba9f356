"""What was stated about the graph is exported and imported with the memories, and never what only a secret memory contains."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.features.graph.entity_edits import mark_distinct
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas import lifecycle
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.forget import forget
from memory_mcp.remember.merge import merge
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import persona_merge
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.graph.entities import entity_merges, names, records
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.formats import knowledge_graph, mem0
from memory_mcp.transfer.formats.sources import source_of
from memory_mcp.transfer.graph_lines import left_out
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, ImportResult, export_lines, import_lines
from memory_mcp.transfer.obsidian_export import files
from memory_mcp.upkeep.summarization import step

ALL = ExportOptions(deleted=True, secret=True, versions=True)


def woven(persona, now):
    while update_graph(persona, now):
        pass


def summarized(persona, now, settings):
    while step(persona, now, settings):
        pass


def exported(persona, leaving=ALL):
    return list(export_lines(persona, leaving))


def said(persona, leaving=ALL):
    """The lines that are no memories, without what differs from run to run."""
    rows = [json.loads(line) for line in exported(persona, leaving)]
    passing = {"entity_id", "created_at", "merged_at", "decided_at"}
    return [{name: value for name, value in row.items() if name not in passing} for row in rows if "content" not in row]


@pytest.fixture
def read(now, zone):
    def read(into, *lines, **how):
        rows = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]

        @contextmanager
        def opened():
            yield into

        return import_lines(
            opened,
            [(number, row.encode()) for number, row in enumerate(rows, start=1)],
            ImportOptions(now, zone, **{"privacy": Privacy(), **how}),
        )

    return read


@pytest.fixture
def sakura(personas):
    with personas.writing("さくら") as persona:
        yield persona


@pytest.fixture
def told(nilou, say, now):
    """A persona of whose graph everything was said that can be: types, somebody by hand, relations, one taken back, who is one with whom."""

    def own_types(connection):
        connection.execute("INSERT INTO entity_types VALUES ('Pet', 'ペット', NULL, '#aabbcc', 1)")
        connection.execute("INSERT INTO relation_types VALUES ('rivals', 'ライバル', 'they compete', 0, 1)")
        made = records.create(connection, "ダイズ", "Pet", 1.0, now, description="柴犬\u2028三歳", made_by="user")
        connection.execute("UPDATE entities SET attributes = ? WHERE id = ?", ('{"色": "茶", "x": [1]}', made))
        records.add_aliases(connection, made, ["だいちゃん"])

    def one_and_another(connection):
        kept, merged = (records.find_or_create(connection, name, "Person", 1.0, now) for name in ("田中", "たなっち"))
        entity_merges.merge(connection, kept, merged, "同じ人", now)
        relations.rebuild_sums(connection, [kept, merged], now)
        mentions.recount(connection, [kept, merged])
        other = records.find_or_create(connection, "鈴木", "Person", 1.0, now)
        number = entity_merges.merge(connection, other, kept, None, now)
        entity_merges.undo(connection, number, now)
        relations.rebuild_sums(connection, [kept, merged, other], now)
        mentions.recount(connection, [kept, merged, other])
        names.mark_changed(connection)

    nilou.database.write(own_types)
    say("田中さんと散歩した。[[ダイズ]]も来た", relations=["田中 > walks > ダイズ"])
    say("たなっちと鈴木さんの話", session_id="s")
    first, second = say("京都で鈴木さんと会った", session_id="s"), say("京都で鈴木さんに会った", session_id="s")
    nilou.database.write(one_and_another)
    woven(nilou, now)
    relate(
        nilou,
        [StatedRelation("鈴木", "rivals", "たなっち"), StatedRelation("鈴木", "lives_in", "大阪", None, "Location")],
        now=now,
        privacy=Privacy(),
    )
    unrelate(nilou, StatedRelation("鈴木", "lives_in", "大阪"), reason="引っ越した", now=now, privacy=Privacy())
    merge(nilou, [second.key], first.key, reason=None, now=now, privacy=Privacy())
    nilou.database.write(
        lambda connection: connection.execute(
            "INSERT INTO memory_links SELECT a.id, b.id, 'causality', 0.7, 0.9, 'stated', '2025-10-30T03:00:00.000000+00:00' "
            "FROM memories a JOIN memories b ON b.key = ? WHERE a.id = 1",
            (first.key,),
        )
    )
    return nilou


def summed_up(persona):
    with persona.database.read() as connection:
        rows = connection.execute(
            "SELECT s.name, s.type, r.type, t.name, t.type, r.weight, r.evidence_count, r.validation_status FROM relations r "
            "JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target"
        )
        found = {(*sorted([row[:2], row[3:5]]), *row[2:3], *row[5:]) for row in rows}
        counted = connection.execute("SELECT name, type, extraction_count FROM entities WHERE merged_into IS NULL ORDER BY name, type")
        return found, counted.fetchall()


def test_relations_of_the_reference_server_and_of_mem0_are_relations_here(nilou, read, now, tmp_path):
    told = [
        {"type": "entity", "name": "ツミキ", "entityType": "person", "observations": ["積み木が好き"]},
        {"type": "entity", "name": "Aki_Lab", "entityType": "company", "observations": []},
        {"type": "relation", "from": "ツミキ", "to": "Aki_Lab", "relationType": "works at"},
    ]
    (tmp_path / "memory.json").write_text("".join(json.dumps(line) + "\n" for line in told))
    relations = [{"source": "Aki_Lab", "relationship": "located_in", "target": "京都"}]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": [], "relations": relations}))
    for name, reader in (("memory.json", knowledge_graph), ("mem0.json", mem0)):
        rows = [item.row for item in reader.read(source_of(tmp_path / name), None)]
        assert read(nilou, *rows, clash="keep").refused == 0
        first = exported(nilou)
        assert read(nilou, *rows, clash="keep").stored == 0
        assert exported(nilou) == first
    woven(nilou, now)
    pairs, counted = summed_up(nilou)
    kinds = {relation[2] for relation in pairs}
    assert {"works_at", "located_in"} <= kinds
    assert {("ツミキ", "Person", 2), ("Aki_Lab", "Organization", 2)} <= set(counted)


def test_a_graph_moves_with_its_memories_and_a_second_export_equals_the_first(told, sakura, read, now):
    first = exported(told)
    kinds = [next(iter(json.loads(line))) for line in first]
    assert kinds == [
        "entity_type",
        "relation_type",
        *["entity"] * 5,
        *["key"] * 4,
        *["relation"] * 2,
        *["merged_entity"] * 2,
        "distinct_entity",
        "link",
        "merged_memory",
    ]
    moved = read(sakura, *first)
    assert (moved.stored, moved.refused, moved.graph) == (4, 0, len(first) - 4)
    woven(sakura, now)
    assert exported(sakura) == first
    assert summed_up(sakura) == summed_up(told)
    with sakura.database.read() as connection:
        (kept,) = records.by_name(connection, "たなっち")
        assert (kept.name, records.by_name(connection, "だいちゃん")[0].attributes) == ("田中", {"色": "茶", "x": [1]})


def test_summaries_move_as_they_are_and_stay_so_when_their_sources_are_read_again(told, sakura, say, read, now, settings):
    for number in range(6):
        say(f"10月17日の田中さんとの話、その{number}は長かった。", session_id="旅", source="健太")
    revise(told, say("九月の予定", session_id="旅").key, Revision(content="十月の予定", reason="直した"), now=now, privacy=Privacy())
    later = now + timedelta(days=1)
    woven(told, now)
    summarized(told, later, settings)
    forget(told, [say("忘れてほしい一言").key], reason=None, dry_run=False, now=later, privacy=Privacy())
    first = exported(told)
    assert sum(json.loads(line).get("kind") == "summary" for line in first) == 2
    assert read(sakura, *first).refused == 0
    assert exported(sakura) == first
    woven(sakura, later)
    summarized(sakura, later + timedelta(days=1), settings)
    assert exported(sakura) == first
    assert summed_up(sakura) == summed_up(told)


def test_a_corrected_summary_moves_without_an_entity_for_its_date(nilou, sakura, say, read, now, settings):
    for number in range(6):
        say(f"長い話の続き、その{number}。", session_id="旅")
    summarized(nilou, now + timedelta(hours=1), settings)
    key = next(row["key"] for row in map(json.loads, exported(nilou)) if row.get("kind") == "summary")
    revise(nilou, key, Revision(content="2025-10-30 · 話の続き"), now=now, privacy=Privacy())
    first = exported(nilou)
    read(sakura, *first)
    assert exported(sakura) == first


def test_two_whose_merge_was_undone_are_not_proposed_again_after_an_import(nilou, sakura, say, read, now):
    say("田中さんと[[田中太郎|Person]]は別の日に来た")

    def one_and_two_again(connection):
        kept, merged = (records.find_or_create(connection, name, "Person", 1.0, now) for name in ("田中", "田中太郎"))
        entity_merges.undo(connection, entity_merges.merge(connection, kept, merged, None, now), now)

    nilou.database.write(one_and_two_again)
    read(sakura, *exported(nilou))
    for persona in (nilou, sakura):
        with persona.database.read() as connection:
            assert len(entity_merges.distinct_pairs(connection)) == 1


def test_a_second_import_of_a_graph_changes_nothing_and_a_dry_run_tells_what_would_come(told, sakura, read):
    first = exported(told)
    foreseen = read(sakura, *first, dry_run=Foreseen())
    assert exported(sakura) == []
    assert (foreseen.stored, foreseen.graph, foreseen.refused) == (4, len(first) - 4, 0)
    assert read(told, *first) == ImportResult(already_known=len(first))
    assert exported(told) == first


def test_lines_that_come_one_by_one_make_the_same_graph(told, sakura, read, now):
    first = exported(told)
    for line in first:
        assert read(sakura, line).refused == 0
    woven(sakura, now)
    assert exported(sakura) == first
    assert summed_up(sakura) == summed_up(told)


def test_an_export_of_before_is_taken_as_ever(told, sakura, read):
    older = [line for line in exported(told) if "content" in json.loads(line)]
    assert read(sakura, *older) == ImportResult(stored=4)


def test_a_name_that_only_a_secret_or_forgotten_memory_is_filed_under_is_in_no_export(nilou, say, now):
    say("[[花子|Person]]が来た")
    say("会った", privacy_level="secret", source="密偵")
    key = say("会わない", tags=["陰謀団"]).key
    woven(nilou, now)

    def merged(connection):
        kept = records.by_name(connection, "花子")[0].id
        for name in ("密偵", "陰謀団"):
            entity_merges.merge(connection, kept, records.by_name(connection, name)[0].id, None, now)

    nilou.database.write(merged)
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    for options, hidden in (
        (ExportOptions(), "密偵 陰謀団"),
        (ExportOptions(deleted=True), "密偵"),
        (ExportOptions(secret=True), "陰謀団"),
    ):
        lines = "".join(exported(nilou, options))
        assert not [name for name in hidden.split() if name in lines]
        assert left_out(nilou, deleted=options.deleted, secret=options.secret) == len(hidden.split())  # the lines of the merges
    assert all(name in "".join(exported(nilou)) for name in ("密偵", "陰謀団"))
    assert left_out(nilou, deleted=True, secret=True) == 0


def test_graph_of_secret_memories_is_exported_only_with_the_flag(nilou, say, now):
    say("[[山田太郎|ヤマちゃん]]と付き合っている", privacy_level="secret", relations=["山田太郎 > loves > 花子"])
    say("花子さんと会った")

    def describe(connection):
        found = records.by_name(connection, "山田太郎")[0].id
        connection.execute("UPDATE entities SET description = 'ひみつの人', made_by = 'user' WHERE id = ?", (found,))
        other = records.find_or_create(connection, "太郎", "Person", 1.0, now)
        entity_merges.merge(connection, found, other, "ひみつ", now)
        records.add_aliases(connection, records.by_name(connection, "花子")[0].id, ["はなちゃん"])

    nilou.database.write(describe)
    woven(nilou, now)
    unrelate(nilou, StatedRelation("山田太郎", "loves", "花子"), reason="ちがう", now=now, privacy=Privacy())
    open_ = "\n".join(exported(nilou, ExportOptions()))
    assert not [word for word in ("山田", "ヤマちゃん", "loves", "ひみつ", "太郎", "ちがう") if word in open_]
    assert "はなちゃん" in open_
    assert all(word in "\n".join(exported(nilou)) for word in ("山田", "ヤマちゃん", "loves", "ひみつの人", "ちがう"))


def test_a_refusal_of_what_only_a_secret_memory_says_stays_with_it_though_both_are_known_otherwise(nilou, say, now):
    say("太郎さんと花子さんが来た")
    say("二人のこと", privacy_level="secret", relations=["太郎 > loves > 花子"])
    unrelate(nilou, StatedRelation("太郎", "loves", "花子"), reason=None, now=now, privacy=Privacy())
    assert [row["entity"] for row in said(nilou, ExportOptions())] == ["太郎", "花子"]
    assert [next(iter(row)) for row in said(nilou)] == ["entity", "entity", "relation"]


def test_entity_named_only_in_the_trash_is_exported_with_the_trash(nilou, say, now):
    key = say("[[犬山|Person]]が来た").key
    nilou.database.write(lambda connection: connection.execute("UPDATE entities SET description = '隣の人'"))
    assert [row["entity"] for row in said(nilou, ExportOptions())] == ["犬山"]
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert said(nilou, ExportOptions()) == []
    assert [row["entity"] for row in said(nilou, ExportOptions(deleted=True))] == ["犬山"]


def test_later_of_statement_and_removal_wins(nilou, read, now):
    relate(nilou, [StatedRelation("田中", "likes", "苺")], now=now, privacy=Privacy())
    unrelate(nilou, StatedRelation("田中", "likes", "苺"), reason=None, now=now, privacy=Privacy())
    row = {"relation": "likes", "source": "田中", "target": "苺"}
    assert read(nilou, {**row, "created_at": "2025-01-01T00:00:00Z"}).graph == 1
    assert summed_up(nilou)[0] == set()
    nilou.database.write(lambda connection: connection.execute("DELETE FROM relation_evidence WHERE method = 'stated'"))
    assert read(nilou, {**row, "created_at": "2026-01-01T00:00:00Z"}).graph == 1
    assert len(summed_up(nilou)[0]) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"relation": "likes", "source": "田中"}, "target is missing"),
        ({"relation": "likes", "source": "田中", "target": "田中"}, "are the same"),
        ({"relation": "likes", "source": "田中", "target": "苺", "weight": 1.5}, "must be from 0 to 1"),
        ({"relation": "likes", "source": "田中", "target": "苺", "created_at": "いつか"}, "not an ISO time"),
        ({"entity": " "}, "blank or too long"),
        ({"entity": "田中", "aliases": ["x"] * 101}, "101 aliases"),
        ({"entity": "田中", "attributes": {"x": "y" * 10_001}}, "attributes is too long"),
        ({"entity": "田中", "color": "#fff"}, "unknown field 'color'"),
        ({"entity": "田\x00中"}, "NUL"),
        ({"link": "causality", "source": "memory_1", "target": "memory_2"}, "no memory with the key memory_1"),
        ({"merged_memory": "memory_1", "into_memory": "memory_2"}, "no memory with the key memory_1"),
        ({"merged_entity": "田中"}, "into_entity is missing"),
        ({"entity": "鈴木", "entity_id": "田中"}, "names are looked up as ids"),
        ({"entity": "鈴木", "made_by": "somebody"}, "it is one of text, user"),
        ({"distinct_entity": "田中"}, "from_entity is missing"),
        ({"distinct_entity": "田中", "from_entity": "鈴木", "decided_at": "いつか"}, "not an ISO time"),
        ({"relation_type": "rivals", "directed": "no"}, "must be true or false"),
    ],
)
def test_a_line_that_can_not_be_used_is_refused_by_its_number_and_leaves_nothing(nilou, read, line, why):
    result = read(nilou, line, {"content": "良い"})
    assert (result.stored, result.graph, [error.line for error in result.errors]) == (1, 0, [1])
    assert why in result.errors[0].reason
    assert said(nilou) == []


def test_what_may_not_be_stored_is_taken_out_of_lines_of_the_graph_too(nilou, read):
    token = "sk-" + "aB3dE5gH7jK9mN1pQ3sT5vX7" * 2
    read(nilou, {"entity": "田中", "description": f"鍵は {token}", "attributes": {"api_key": token}, "aliases": ["タナ"]})
    assert token not in "\n".join(exported(nilou))
    assert "タナ" in "\n".join(exported(nilou))


def test_a_copy_and_a_renamed_persona_have_the_same_graph(told, personas, now):
    first, graph = exported(told), summed_up(told)
    personas.close()
    again = Personas(personas.directory)
    lifecycle.copy(again, "nilou", "写し", now)
    lifecycle.rename(again, "nilou", "ニィロウ", IndexCache(), now)
    for name in ("写し", "ニィロウ"):
        with again.reading(name) as persona:
            assert exported(persona) == first
            assert summed_up(persona) == graph
    again.close()


def test_a_merge_of_personas_takes_along_links_that_nothing_derives(told, sakura, now):
    with told.database.read() as there:
        sakura.database.write(lambda here: persona_merge.merge_into(here, there, "nilou", now))
    assert [row["link"] for row in said(sakura) if "link" in row] == ["causality"]


def groups(persona):
    with persona.database.read() as connection:
        return {
            row[0]: row[1] for row in connection.execute("SELECT e.name, k.name FROM entities e JOIN entities k ON k.id = e.merged_into")
        }


def apart(persona):
    with persona.database.read() as connection:
        rows = connection.execute(
            "SELECT a.name, b.name, d.reason FROM entity_distinctions d JOIN entities a ON a.id = d.one JOIN entities b ON b.id = d.other"
        )
        return {(*sorted(row[:2]), row[2]) for row in rows}


def test_entities_marked_distinct_stay_distinct_after_import_and_copy(nilou, sakura, personas, say, read, now):
    say("田中さんと鈴木さん")
    say("高橋さんは秘密", privacy_level="secret")
    for other in ("鈴木", "高橋"):
        mark_distinct(nilou, "田中", other, reason="別の人", now=now, privacy=Privacy())
    open_ = exported(nilou, ExportOptions())
    assert "高橋" not in "\n".join(open_)
    assert read(sakura, *open_).refused == 0
    assert apart(sakura) == {("田中", "鈴木", "別の人")}
    with personas.writing("写し") as third, nilou.database.read() as there:
        third.database.write(lambda here: persona_merge.merge_into(here, there, "nilou", now))
        assert apart(third) == apart(nilou) == {("田中", "鈴木", "別の人"), ("田中", "高橋", "別の人")}


def test_contradictory_merges_leave_each_entity_one_parent(nilou, read):
    def line(merged, into):
        return {"merged_entity": merged, "type": "Person", "into_entity": into, "into_type": "Person"}

    assert read(nilou, line("甲", "乙"), line("乙", "甲"), line("乙", "丙"), line("丙", "甲")).graph == 2
    assert groups(nilou) == {"甲": "丙", "乙": "丙"}
    assert read(nilou, line("甲", "丁")).graph == 1
    assert groups(nilou) == dict.fromkeys("甲乙丙", "丁")
    assert read(nilou, line("甲", "丁"), line("丁", "乙")).graph == 0


def test_import_neither_merges_nor_splits_existing_entities(nilou, read):
    apart_line = {"distinct_entity": "甲", "from_entity": "乙"}
    merge_line = {"merged_entity": "甲", "into_entity": "乙"}
    assert [read(nilou, line).graph for line in (apart_line, apart_line, merge_line)] == [1, 0, 0]
    assert groups(nilou) == {}
    others = [{name: value.replace("甲", "丙").replace("乙", "丁") for name, value in line.items()} for line in (merge_line, apart_line)]
    assert [read(nilou, line).graph for line in others] == [1, 0]
    assert groups(nilou) == {"丙": "丁"}
    assert len(apart(nilou)) == 1


def test_entity_is_exported_by_a_name_that_is_not_secret(nilou, say, now, zone):
    say("[[田中太郎|たなっち]]のこと", privacy_level="secret")
    say("たなっちが来た", relations=["たなっち > visits > 京都"])
    relate(nilou, [StatedRelation("たなっち", "likes", "苺")], now=now, privacy=Privacy())
    mark_distinct(nilou, "たなっち", "苺", reason=None, now=now, privacy=Privacy())
    open_ = said(nilou, ExportOptions())
    assert "田中太郎" not in "\n".join(exported(nilou, ExportOptions()))
    assert "田中太郎" not in "\n".join(file.text for file in files(nilou, ExportOptions(), zone))
    assert [row["source"] for row in open_ if "relation" in row] == ["たなっち"]
    assert "田中太郎" in json.dumps(said(nilou), ensure_ascii=False)


def test_a_note_that_reads_like_a_refusal_is_none(nilou, read, now):
    relate(nilou, [StatedRelation("田中", "likes", "苺")], now=now, privacy=Privacy())
    row = {"relation": "likes", "source": "田中", "target": "苺", "method": "heard", "created_at": "2024-01-01T00:00:00Z"}
    assert read(nilou, {**row, "notes": "rejected"}).graph == 1


def test_a_day_of_each_year_and_one_of_a_single_year_stay_two(nilou, personas, say, read, now):
    say("2025年3月14日は雪")
    say("母の誕生日は3月14日")
    woven(nilou, now)
    with personas.writing("other") as other:
        read(other, *exported(nilou))
        woven(other, now)
        assert summed_up(other) == summed_up(nilou)
        assert [row["entity"] for row in said(other)] == [row["entity"] for row in said(nilou)] == ["2025-03-14", "3月14日"]


def test_removed_relation_stays_removed_after_a_later_import(nilou, personas, say, read, now):
    say("式の話", at=now - timedelta(hours=2), relations=["結婚式 > held_at > 椿山荘"])
    unrelate(nilou, StatedRelation("結婚式", "held_at", "椿山荘"), reason=None, now=now - timedelta(hours=1), privacy=Privacy())
    say("母も言った", relations=["結婚式 > held_at > 椿山荘"])
    assert summed_up(nilou)[0] == set()
    with personas.writing("other") as other:
        read(other, *exported(nilou))
        assert summed_up(other) == summed_up(nilou)
        assert said(other) == said(nilou)


def test_relations_of_two_namesakes_move_with_their_memory_and_beside_it(nilou, personas, say, read, now):
    say("出身の話", relations=["松本|人物 > born_in > 松本|Location"])
    relate(nilou, [StatedRelation("松本", "named_after", "松本", "Person", "Location")], now=now, privacy=Privacy())
    assert {row[:3] for row in summed_up(nilou)[0]} == {
        (("松本", "Location"), ("松本", "Person"), type_) for type_ in ("born_in", "named_after")
    }
    with personas.writing("other") as other:
        assert read(other, *exported(nilou)).refused == 0
        assert summed_up(other) == summed_up(nilou)
