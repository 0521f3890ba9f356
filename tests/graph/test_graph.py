"""The graph of one persona: who is named, what relates them, and how both follow what becomes of the memories."""

from zoneinfo import ZoneInfo

import pytest
from graph_work import sum_up_from_the_ground

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.features.graph.query.neighbors import find_neighbors
from memory_mcp.features.graph.query.paths import ALGORITHMS, find_path
from memory_mcp.features.graph.query.picture import Section, snapshot
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.entities import entity_merges, records
from memory_mcp.store.graph.neighbors import DEGREE_LIMIT

UTC = ZoneInfo("UTC")


class Graph:
    """A persona's graph, as its tests see it: names instead of numbers."""

    def __init__(self, persona, now):
        self.persona, self.now = persona, now

    def weave(self):
        steps = 0
        while update_graph(self.persona, self.now):
            steps += 1
            assert steps < 1_000
        return steps

    def of(self, name):
        with self.persona.database.read() as connection:
            return records.by_name(connection, name)

    def neighbours(self, name, depth=1, **rules):
        with self.persona.database.read() as connection:
            found = find_neighbors(connection, name, UTC, depth, **rules)
            return {near["name"]: (near["distance"], near["via"].split()[2], near["weight"]) for near in found["neighbors"]}

    def paths(self, source, target, algorithm="shortest", depth=4):
        with self.persona.database.read() as connection:
            found = find_path(connection, source, target, algorithm, depth)
            return [path["entities"] for path in found["paths"]]

    def summed_up(self):
        """The relations, and the mentions that are counted, as rows that can be compared."""
        with self.persona.database.read() as connection:
            rows = connection.execute(
                "SELECT s.name, r.type, t.name, r.weight, r.evidence_count, r.confidence FROM relations r "
                "JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target ORDER BY 1, 2, 3"
            ).fetchall()
            counted = connection.execute(
                "SELECT name, extraction_count, first_mentioned_at, last_mentioned_at FROM entities ORDER BY id"
            ).fetchall()
        return rows, counted

    def sum_up_anew(self):
        """The same, from the ground up."""
        sum_up_from_the_ground(self.persona, self.now)
        return self.summed_up()


@pytest.fixture
def graph(nilou, now):
    return Graph(nilou, now)


@pytest.fixture
def project(say, graph):
    """田中さん → プロジェクトA → 締切: the keys of the two memories."""
    keys = (
        say("田中さんがプロジェクトAの担当になった", relations=["田中 > works_on > プロジェクトA"]).key,
        say("プロジェクトAの締切は10月17日").key,
    )
    graph.weave()
    return keys


def test_a_question_about_somebody_leads_over_the_project_to_its_deadline(project, graph):
    assert graph.paths("田中さん", "10月17日") == [["田中", "プロジェクトA", "2025-10-17"]]
    assert graph.neighbours("田中", depth=2)["2025-10-17"][0] == 2


def test_a_relation_that_is_stated_is_there_at_once_and_one_of_being_named_together_when_nobody_calls(say, graph):
    say("佐藤さんと鈴木さんが来た", relations=["佐藤 > knows > 鈴木"])
    assert graph.neighbours("佐藤") == {"鈴木": (1, "knows", 0.8)}
    assert graph.weave()
    assert graph.neighbours("佐藤", types=["co_occurrence"]) == {"鈴木": (1, "co_occurrence", 0.2)}


def test_each_memory_that_names_both_makes_the_relation_heavier_and_never_more_than_one(say, graph):
    for day in range(30):
        say(f"佐藤さんと鈴木さんが{day}回目の散歩をした")
    graph.weave()
    ((_, _, weight),) = graph.neighbours("佐藤").values()
    assert 0.99 < weight <= 1


def test_a_memory_in_the_trash_speaks_for_nothing_and_out_of_it_again(project, graph, nilou, now):
    before = graph.summed_up()
    forget(nilou, [project[0]], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert graph.neighbours("プロジェクトA") == {"2025-10-17": (1, "co_occurrence", 0.2)}
    assert graph.of("田中")[0].extraction_count == 0
    revise(nilou, project[0], Revision(restore=True), now=now, privacy=Privacy())
    assert graph.summed_up() == before


def test_a_memory_that_is_replaced_speaks_for_nothing(project, say, graph):
    say("田中さんは異動した", supersedes=project[0])
    assert "プロジェクトA" not in graph.neighbours("田中")


def test_a_changed_text_names_whom_it_names_now_and_what_was_stated_stands(project, graph, nilou, now):
    revise(nilou, project[0], Revision(content="伊藤さんが引き継いだ"), now=now, privacy=Privacy())
    graph.weave()
    assert graph.of("伊藤")[0].extraction_count == 1
    assert graph.of("田中")[0].extraction_count == 0
    assert graph.neighbours("田中") == {"プロジェクトA": (1, "works_on", 0.8)}


def test_what_is_summed_up_bit_by_bit_is_what_it_comes_to_from_the_ground_up(say, graph, nilou, now):
    keys = [say(f"{one}さんと{other}さんが会った").key for one in ("佐藤", "鈴木", "高橋", "伊藤") for other in ("渡辺", "佐藤", "中村")]
    graph.weave()
    forget(nilou, keys[::3], reason=None, dry_run=False, now=now, privacy=Privacy())
    revise(nilou, keys[1], Revision(content="高橋さんは一人でいた"), now=now, privacy=Privacy())
    revise(nilou, keys[0], Revision(restore=True), now=now, privacy=Privacy())
    graph.weave()
    assert graph.summed_up() == graph.sum_up_anew()


def test_two_names_of_one_person_become_one_and_two_again(say, graph, nilou, now):
    say("田中さんと[[京都|Location]]へ行った")
    say("たなっちが[[プロジェクトA|Task]]を始めた。[[たなっち|Person]]は元気")
    graph.weave()
    before = graph.summed_up()
    one, other = graph.of("田中")[0].id, graph.of("たなっち")[0].id

    number = nilou.database.write(lambda connection: entity_merges.merge(connection, one, other, "the same", now))
    assert set(graph.neighbours("田中")) == {"京都", "プロジェクトA"}
    assert graph.of("たなっち")[0].name == "田中"
    assert graph.of("田中")[0].extraction_count == 2

    def undo(connection):
        entity_merges.undo(connection, number, now)

    nilou.database.write(undo)
    assert graph.summed_up() == before
    with pytest.raises(InvalidInput, match="no merge"):
        nilou.database.write(undo)


def test_a_relation_that_was_taken_back_stays_away_whatever_is_said_later_until_it_is_stated_again(say, graph, nilou, now):
    say("佐藤さんと鈴木さんが来た")
    graph.weave()
    assert unrelate(nilou, StatedRelation("佐藤", "co_occurrence", "鈴木"), reason="not so", now=now, privacy=Privacy())
    say("佐藤さんと鈴木さんがまた来た")
    graph.weave()
    assert graph.neighbours("佐藤") == {}
    assert not unrelate(nilou, StatedRelation("鈴木", "co_occurrence", "佐藤"), reason=None, now=now, privacy=Privacy())
    relate(nilou, [StatedRelation("鈴木", "co_occurrence", "佐藤")], now=now, privacy=Privacy())
    assert set(graph.neighbours("佐藤")) == {"鈴木"}
    with pytest.raises(EntityNotFound):
        unrelate(nilou, StatedRelation("佐藤", "knows", "誰か知らない人"), reason=None, now=now, privacy=Privacy())


def test_a_name_that_is_learned_later_is_found_in_what_was_said_before(say, graph):
    say("ダイズと散歩した")
    assert graph.of("ダイズ") == []
    say("[[ダイズ|Object]]は犬の名前")
    graph.weave()
    assert graph.of("ダイズ")[0].extraction_count == 2


def test_a_name_of_one_kanji_that_is_learned_later_is_found_in_what_was_said_before_too(say, graph):
    say("庭の苔が青い")
    say("苔寺は遠い")
    say("みどりは苔が大好きだ", relations=["みどり|Person > likes > 苔"])
    graph.weave()
    assert graph.of("苔")[0].extraction_count == 2


def test_an_entity_is_as_sure_as_the_surest_that_speaks_of_it(say, graph):
    say("田中さんが来た")
    assert graph.of("田中")[0].confidence == 0.6
    say("田中さんが担当になった", relations=["田中 > works_on > プロジェクトA"])
    assert graph.of("田中")[0].confidence == 1.0
    say("佐藤さんは[[佐藤]]だ")
    say("佐藤さんがまた来た")
    assert graph.of("佐藤")[0].confidence == 1.0


def test_who_is_marked_and_called_politely_is_a_person_unless_it_is_known_as_something_else(say, graph):
    say("[[トヨタ|Organization]]に勤めた")
    say("[[健太]]さんと[[ゆき]]ちゃんが[[トヨタ]]さんへ行った。[[ベータ]]様々な試験")
    say("[[青木様]]と[[たなっち|田中さん]]")
    assert [graph.of(name)[0].type for name in ("健太", "ゆき", "青木", "たなっち")] == ["Person"] * 4
    assert [entity.type for entity in graph.of("トヨタ")] == ["Organization"]
    assert graph.of("ベータ")[0].type == "Concept"


def test_a_relation_of_one_with_itself_under_two_names_is_refused(say, graph, nilou, now):
    say("渡辺先生が来た")
    with pytest.raises(InvalidInput, match="are one"):
        relate(nilou, [StatedRelation("佐藤", "knows", "鈴木"), StatedRelation("渡辺先生", "knows", "渡辺")], now=now, privacy=Privacy())
    assert graph.of("佐藤") == []


def test_memories_that_are_older_than_the_graph_are_read_for_names(say, graph, nilou, now):
    say("佐藤さんが来た")
    nilou.database.write(
        lambda connection: connection.execute(
            "DELETE FROM entities; DELETE FROM graph_queue; INSERT INTO graph_queue SELECT id, 0 FROM memories"
        )
    )
    graph.weave()
    assert graph.of("佐藤")[0].extraction_count == 1


def test_the_strongest_path_may_be_longer_than_the_shortest(graph, nilou, now):
    relate(nilou, [StatedRelation("A子", "knows", "B子"), StatedRelation("B子", "knows", "C子")], now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        ends = [records.by_name(connection, name)[0].id for name in ("A子", "C子")]
    weak = relations.Evidence(ends[0], ends[1], "knows", 0.1, 1.0, "stated")
    nilou.database.write(lambda connection: relations.sum_up(connection, relations.add(connection, [weak], now), now))
    assert graph.paths("A子", "C子", "shortest") == [["A子", "C子"]]
    assert graph.paths("A子", "C子", "strongest") == [["A子", "B子", "C子"]]
    assert graph.paths("A子", "C子", "all") == [["A子", "B子", "C子"], ["A子", "C子"]]
    assert graph.paths("A子", "C子", "all", depth=1) == [["A子", "C子"]]


def test_a_path_leads_through_somebody_who_has_many_stronger_relations(graph, nilou, now):
    relate(nilou, [StatedRelation("A子", "knows", "町")], now=now, privacy=Privacy())

    def write(connection):
        town = records.by_name(connection, "町")[0].id
        others = [records.create(connection, f"隣人{number}", "Person", 0.6, now) for number in range(DEGREE_LIMIT + 50)]
        strong = [relations.Evidence(other, town, "knows", 0.9, 1.0, "stated") for other in others[1:]]
        weak = relations.Evidence(others[0], town, "knows", 0.1, 1.0, "stated")
        relations.sum_up(connection, relations.add(connection, [*strong, weak], now), now)

    nilou.database.write(write)
    for algorithm in ALGORITHMS:
        assert graph.paths("A子", "隣人0", algorithm) == [["A子", "町", "隣人0"]]


def test_who_is_not_related_has_no_path_and_who_is_not_known_is_refused_with_who_is(graph, nilou, now):
    relate(nilou, [StatedRelation("A子", "knows", "B子"), StatedRelation("C子", "knows", "D子")], now=now, privacy=Privacy())
    assert graph.paths("A子", "D子") == graph.paths("A子", "D子", "all") == []
    with pytest.raises(EntityNotFound, match="A子"):
        graph.paths("A", "D子")


def test_the_picture_shows_who_counts_most_and_how_much_there_is(say, graph, nilou):
    for number in range(5):
        say(f"佐藤さんと{'鈴木高橋伊藤渡辺中村'[number * 2 : number * 2 + 2]}さんが来た")
    graph.weave()
    with nilou.database.read() as connection:
        found = snapshot(connection, limit=3)
        people = snapshot(connection, section=Section(types=["Location"]))
    assert found.entities[0].name == "佐藤"
    assert (len(found.entities), found.entities_in_all, found.relations_in_all) == (3, 6, 5)
    assert {end for relation in found.relations for end in (relation.source, relation.target)} <= {entity.id for entity in found.entities}
    assert people.entities == ()


def test_memories_of_one_conversation_are_linked_in_their_order(say, graph, nilou, now):
    first = say("おはよう", session_id="s1", occurred_at="2025-10-01T08:00:00+09:00")
    third = say("おやすみ", session_id="s1", occurred_at="2025-10-01T22:00:00+09:00")
    graph.weave()
    second = say("こんにちは", session_id="s1", occurred_at="2025-10-01T12:00:00+09:00")
    say("別の話", session_id="s2")
    graph.weave()
    with nilou.database.read() as connection:
        rows = connection.execute(
            "SELECT p.key, m.key FROM memory_links l JOIN memories p ON p.id = l.source JOIN memories m ON m.id = l.target "
            "WHERE l.type = 'temporal_sequence' ORDER BY m.occurred_at"
        ).fetchall()
    assert (first.key, second.key) in rows
    assert (second.key, third.key) in rows
