"""The graph's tools as a client calls them."""

import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from memory_mcp.graph.update.cooccurrence import update_graph

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "graph"])]  # a persona with a graph for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


@pytest.fixture
def project(persona):
    persona("remember", content="田中さんがプロジェクトAの担当になった", relations=["田中 > works_on > プロジェクトA"])
    persona("relate", relations=["プロジェクトA > ends_on > 2025-10-17"])


def test_a_path_leads_from_a_person_to_a_deadline(persona, name, project):
    answer = persona("find_path", source="田中さん", target="2025-10-17")
    assert answer == {
        "persona": name,
        "source": "田中",
        "target": "2025-10-17",
        "paths": [
            {
                "length": 2,
                "strength": 0.64,
                "entities": ["田中", "プロジェクトA", "2025-10-17"],
                "steps": ["田中 > works_on > プロジェクトA", "プロジェクトA > ends_on > 2025-10-17"],
            }
        ],
    }


def test_what_relate_answers_is_what_it_stored(persona):
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    told = persona("relate", relations=[f"健太 > password > {secret}", f"{secret} > knows > 凛"])
    assert told["related"] == ["健太 > password > [REDACTED_API_KEY]", "[REDACTED_API_KEY] > knows > 凛"]


def test_neighbours_are_told_with_the_relation_that_leads_to_them(persona, project):
    answer = persona("entity_neighbors", entity="プロジェクトA")
    assert answer["entity"]["type"] == "Task"
    assert {(near["name"], near["via"]) for near in answer["neighbors"]} == {
        ("田中", "田中 > works_on > プロジェクトA"),
        ("2025-10-17", "プロジェクトA > ends_on > 2025-10-17"),
    }
    assert [near["name"] for near in persona("entity_neighbors", entity="田中", depth="3", relation_types="works_on")["neighbors"]] == [
        "プロジェクトA"
    ]
    assert persona("entity_neighbors", entity=answer["entity"]["id"])["entity"] == answer["entity"]


def test_a_neighbour_tells_how_many_further_relations_there_are(persona, http, name):
    persona(
        "relate", relations=["健太 > likes > 苺", "健太 > hates > 苺", "苺 > reminds_of > 健太", "健太 > likes > 柿", "柿 > is_a > 果物"]
    )

    def further(**arguments):
        told = persona("entity_neighbors", entity="健太", **arguments)["neighbors"]
        return {one["name"]: one.get("more_relations") for one in told}

    assert further(depth=2) == {"苺": 2, "柿": None, "果物": None}
    assert further(relation_types=["likes", "hates"]) == {"苺": 1, "柿": None}
    assert further(relation_types=["hates"]) == {"苺": None}
    ways = persona("find_path", source="健太", target="苺", algorithm="all", max_depth=1)["paths"]
    assert {way["steps"][0] for way in ways} == {"健太 > likes > 苺", "健太 > hates > 苺", "苺 > reminds_of > 健太"}
    route = http.get("/api/graph/neighbors", params={"entity": "苺"}, headers={"X-Persona": name}).json()
    assert [(one["name"], one["more_relations"]) for one in route["neighbors"]] == [("健太", 2)]


def test_further_relations_are_those_that_are_sure_enough_and_say_more_than_being_named_together(persona, server, name):
    persona("remember", content="[[健太]]と[[苺]]", relations=["健太 > likes > 苺"])
    persona("relate", relations=["健太 > hates > 苺"])
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, NOON):
            pass
        opened.database.write(lambda connection: connection.execute("UPDATE relations SET confidence = 0.3 WHERE type = 'likes'"))

    def told(**arguments):
        (one,) = persona("entity_neighbors", entity="健太", **arguments)["neighbors"]
        return one["via"], one.get("more_relations")

    assert told() == ("健太 > hates > 苺", 1)
    assert told(min_confidence=0.4) == ("健太 > hates > 苺", None)
    assert told(relation_types=["co_occurrence"]) == ("健太 — co_occurrence — 苺", None)
    assert told(relation_types=["co_occurrence", "likes"]) == ("健太 > likes > 苺", None)


def test_recall_tells_what_is_related_to_whom_the_query_names(persona, project):
    told = persona("recall", query="田中さんのプロジェクトはいつまで？")
    assert told["relations"] == ["田中 > works_on > プロジェクトA", "プロジェクトA > ends_on > 2025-10-17"]
    assert persona("recall", query="田中さんの話", mode="entity_focused")["mode"] == "graph"
    assert "relations" not in persona("recall", query="天気は？")


def test_a_snapshot_is_what_vis_js_draws_or_plain_json(persona, project):
    drawn = persona("graph_snapshot")
    ids = {node["id"] for node in drawn["nodes"]}
    assert {node["label"] for node in drawn["nodes"]} == {"田中", "プロジェクトA", "2025-10-17"}
    assert all({edge["from"], edge["to"]} <= ids and edge["arrows"] == "to" for edge in drawn["edges"])
    assert {persona("entity_neighbors", entity=node["id"])["entity"]["name"] for node in drawn["nodes"]} == {
        "田中",
        "プロジェクトA",
        "2025-10-17",
    }
    told = persona("graph_snapshot", format="json", types=["Person"])
    assert ([entity["name"] for entity in told["entities"]], told["relations"], told["entities_in_all"]) == (["田中"], [], 3)


def test_a_snapshot_around_some_entities_goes_as_many_hops_as_asked(persona, project):
    def around(*names, **asked):
        drawn = persona("graph_snapshot", around=list(names), **asked)
        return [node["label"] for node in drawn["nodes"]], sorted(edge["label"] for edge in drawn["edges"])

    assert around("田中") == (["田中", "プロジェクトA"], ["works_on"])
    assert around("田中", depth=2) == (["田中", "プロジェクトA", "2025-10-17"], ["ends_on", "works_on"])
    assert around("田中", "2025-10-17", depth=0) == (["田中", "2025-10-17"], [])
    assert around("田中", depth=2, types=["TimeUnit"]) == (["田中", "2025-10-17"], [])
    assert around("田中", depth=2, limit=2)[0] == ["田中", "プロジェクトA"]
    drawn = persona("graph_snapshot", around=["2025-10-17", "田中さん", "田中"])
    assert drawn["around"] == [node["id"] for node in drawn["nodes"][:2]]


def test_a_snapshot_keeps_the_relations_of_some_types_or_of_a_strength_and_whom_they_relate(persona, project):
    persona("remember", content="田中さんは[[佐藤|Person]]さんと会った。", relations=["田中 > knows > 佐藤"])

    def kept(**asked):
        drawn = persona("graph_snapshot", **asked)
        return {node["label"] for node in drawn["nodes"]}, {edge["label"] for edge in drawn["edges"]}

    assert kept(relation_types=["knows"]) == ({"田中", "佐藤"}, {"knows"})
    strongest = max(edge["value"] for edge in persona("graph_snapshot")["edges"])
    assert kept(min_weight=strongest)[1]
    assert kept(min_weight=1.0, around=["田中"], relation_types=["hates"]) == ({"田中"}, set())


def test_a_snapshot_says_where_to_draw_each_entity_always_the_same(persona, project):
    drawn = persona("graph_snapshot", positions=True)
    places = {(node["x"], node["y"]) for node in drawn["nodes"]}
    assert len(places) == 3
    assert all(0 <= x <= 1_000 and 0 <= y <= 800 for x, y in places)
    assert persona("graph_snapshot", positions=True) == drawn
    assert {(entity["x"], entity["y"]) for entity in persona("graph_snapshot", format="json", positions=True)["entities"]} == places
    assert "x" not in persona("graph_snapshot")["nodes"][0]


def test_without_the_libraries_for_graphs_there_are_no_positions_and_the_refusal_says_what_to_install(persona, project, monkeypatch):
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    assert "[graph]" in persona.refusal("graph_snapshot", positions=True)
    assert persona("graph_snapshot")["nodes"]


def test_types_are_taken_in_upper_or_lower_case(persona, project):
    assert [node["label"] for node in persona("graph_snapshot", types=["person"])["nodes"]] == ["田中"]


def test_where_nothing_leads_and_memories_wait_to_be_read_the_answer_says_so(persona):
    persona("remember", content="佐藤さんと鈴木さんが渋谷駅に来た")
    note = persona("entity_neighbors", entity="佐藤")["note"]
    assert "1 memory waits" in note
    assert persona("find_path", source="佐藤", target="鈴木")["note"] == f"佐藤 and 鈴木 have no relations yet; {note}"


def test_of_several_who_are_called_alike_the_others_are_told_and_all_are_found(persona):
    persona("remember", content="[[アキラ|Person]]が来た")
    persona("remember", content="[[アキラ|Organization]]の社屋", relations=["アキラ|Organization > located_at > 港区"])
    told = persona("find_path", source="アキラ", target="港区")
    assert [(one["type"], one["name"]) for one in told["namesakes"]] == [("Organization", "アキラ")]
    assert told["paths"] == []
    assert len(persona("find_path", source=told["namesakes"][0]["id"], target="港区")["paths"]) == 1
    assert len(persona("recall", query="アキラ", mode="graph")["hits"]) == 2


def test_the_own_mother_is_found_along_the_graph_and_not_somebody_elses(persona):
    persona("remember", content="お母さんは神戸でパン屋をしている")
    found = persona("recall", query="母の店はどこ？", mode="graph")["hits"]
    assert [hit["content"] for hit in found] == ["お母さんは神戸でパン屋をしている"]
    persona("remember", content="[[健太|Person]]は元気")
    found = persona("recall", query="健太の母の店はどこ？", mode="graph")["hits"]
    assert [hit["content"] for hit in found] == ["[[健太|Person]]は元気"]


def test_a_relation_is_taken_back(persona, project):
    assert persona("unrelate", relation="田中 > works_on > プロジェクトA", reason="異動")["unrelated"]
    assert persona("entity_neighbors", entity="田中")["neighbors"] == []
    again = persona("unrelate", relation="田中 > works_on > プロジェクトA")
    assert (again["unrelated"], again["note"]) == (False, "there was no such relation")


def test_a_text_that_is_changed_tells_which_relations_of_it_stay(persona):
    key = persona(
        "remember", content="木下は名古屋に住む", relations=["木下 > lives_in > 名古屋", "木下 > likes > 苺", "木下 > relates_to > 柿"]
    )["key"]
    persona("unrelate", relation="木下 > likes > 苺")
    assert "note" not in persona("revise", key=key, importance=0.9)
    assert "note" not in persona("revise", key=key, content="木下は名古屋に住む")
    note = persona("revise", key=key, content="木村は名古屋に住む")["note"]
    assert note.startswith("the relations that it states stay: 木下 > lives_in > 名古屋, 木下 > relates_to > 柿; unrelate")
    for relation in ("木下 > lives_in > 名古屋", "木下 > relates_to > 柿"):
        assert persona("unrelate", relation=relation)["unrelated"] is True
    assert "note" not in persona("revise", key=key, content="木村は大阪に住む")


def test_of_many_relations_that_stay_some_are_told_and_the_others_counted(persona):
    key = persona("remember", content="会議のまとめ", relations=[f"木下 > knows > 部員{letter}" for letter in "ABCDEFG"])["key"]
    note = persona("revise", key=key, content="会議の記録")["note"]
    assert [letter for letter in "ABCDEFG" if f"木下 > knows > 部員{letter}" in note] == list("ABCDE")
    assert "and 2 more" in note


def test_the_relations_that_stay_are_told_by_the_names_that_they_were_stated_by(persona):
    persona("remember", content="[[健太|ケン]]が来た")
    key = persona("remember", content="楽しい日", relations=["ケン > likes > 苺"])["key"]
    assert "ケン > likes > 苺" in persona("revise", key=key, content="楽しい一日")["note"]


def test_what_a_write_states_beyond_the_one_that_is_there_is_added_to_it(persona):
    said = {"content": "今日の会話のまとめ", "occurred_at": "2025-10-01"}
    first = persona("remember", **said, relations=["健太 > likes > 苺"])
    again = persona("remember", **said, relations=["健太 > likes > 苺", "健太 > likes > 桃"])
    assert (again["stored"], again["key"], again["indexed"]) == (False, first["key"], "now")
    assert again["note"].endswith("added to it: 1")
    assert {near["name"] for near in persona("entity_neighbors", entity="健太")["neighbors"]} == {"苺", "桃"}
    assert persona("remember", **said, relations=["健太 > likes > 桃"])["note"] == "this very write is stored already; revise changes it"
    persona("forget", keys=[first["key"]])
    assert "no entity is named '健太'" in persona.refusal("entity_neighbors", entity="健太")


def test_where_no_relation_is_of_a_type_that_was_asked_for_the_answer_says_of_which_they_are(persona, project):
    persona("remember", content="佐藤さんと鈴木さんが渋谷駅に来た")
    told = persona("entity_neighbors", entity="プロジェクトA", relation_types=["friend"])
    assert (told["neighbors"], told["note"]) == (
        [],
        "along relations of the type friend nothing is reached; those of プロジェクトA are of ends_on (1), works_on (1)",
    )
    assert (
        persona("entity_neighbors", entity="佐藤", relation_types=["friend"])["note"]
        == "along relations of the type friend nothing is reached; 佐藤 has no relations yet"
    )
    assert "note" not in persona("entity_neighbors", entity="田中", relation_types=["works_on"])
    assert "memories wait" in persona("entity_neighbors", entity="佐藤", relation_types=["co_occurrence"])["note"]


def test_a_path_is_looked_for_along_relations_of_some_types_and_so_sure(persona, project):
    ends = {"source": "田中", "target": "10月17日"}
    for algorithm in ("shortest", "strongest", "all"):
        both = persona("find_path", **ends, algorithm=algorithm, relation_types=["works_on", "ends_on"], min_confidence=1)
        assert [path["length"] for path in both["paths"]] == [2]
        one = persona("find_path", **ends, algorithm=algorithm, relation_types=["works_on"])
        assert one["paths"] == []
        assert one["note"] == (
            "no path of at most 4 hops leads from 田中 to 2025-10-17 along relations of the type works_on; a larger max_depth, up to 6, may find one; "
            "the relations of 田中 are of works_on (1)"
        )


@pytest.mark.parametrize("algorithm", ["shortest", "strongest", "all"])
def test_where_a_way_is_longer_than_was_asked_for_the_answer_says_so(persona, algorithm):
    chain = ["健太", "花子", "太郎", "次郎", "三郎", "四郎", "五郎", "六郎"]
    persona("relate", relations=[f"{one} > knows > {other}" for one, other in pairwise(chain)])
    asked = {"source": "健太", "algorithm": algorithm}
    cut = persona("find_path", **asked, target="太郎", max_depth=1)
    assert (cut["paths"], cut["note"]) == (
        [],
        "no path of at most 1 hop leads from 健太 to 太郎; a larger max_depth, up to 6, may find one",
    )
    assert persona("find_path", **asked, target="太郎", max_depth=2)["paths"]
    assert persona("find_path", **asked, target="六郎", max_depth=6)["note"] == "no path of at most 6 hops leads from 健太 to 六郎"
    persona("remember", content="[[みどり|Person]]が来た")
    assert persona("find_path", **asked, target="みどり")["note"].startswith("みどり has no relations yet")


def test_a_relation_that_is_over_is_shown_with_its_days(persona):
    told = persona("relate", relations=["田中 > works_at > X社"], valid_from="2010年4月", valid_to="2015-03", notes="新卒で入社")
    assert (told["valid_from"], told["valid_to"]) == ("2010-04-01", "2015-03-31")
    (near,) = persona("entity_neighbors", entity="田中")["neighbors"]
    assert (near["via"], near["valid_from"], near["valid_to"]) == ("田中 > works_at > X社", "2010-04-01", "2015-03-31")
    (path,) = persona("find_path", source="田中", target="X社")["paths"]
    assert path["steps"] == ["田中 > works_at > X社 (2010-04-01..2015-03-31)"]
    (relation,) = persona("graph_snapshot", format="json")["relations"]
    assert (relation["valid_to"], relation["notes"]) == ("2015-03-31", "新卒で入社")
    assert "valid_to" not in persona("relate", relations=["田中 > works_at > X社"], valid_from="昨日")
    (near,) = persona("entity_neighbors", entity="田中")["neighbors"]
    assert (near["valid_from"], "valid_to" in near) == ("2025-10-29", False)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("entity_neighbors", {"entity": "誰か"}, "no entity is named"),
        ("entity_neighbors", {"entity": " "}, "entity is missing"),
        ("entity_neighbors", {"entity": "田中", "depth": 4}, "depth is 4"),
        ("entity_neighbors", {"entity": "田中", "min_confidence": 2}, "min_confidence is 2"),
        ("find_path", {"source": "田中", "target": "誰か"}, "known are"),
        ("find_path", {"source": "田中", "target": "プロジェクトA", "algorithm": "quickest"}, "shortest, strongest, all"),
        ("graph_snapshot", {"format": "svg"}, "vis or json"),
        ("graph_snapshot", {"types": ["Person", "Ghost"]}, "known are Concept, Document"),
        ("graph_snapshot", {"around": ["田中", "誰か"]}, "known are"),
        ("graph_snapshot", {"around": [" "]}, "around is missing"),
        ("graph_snapshot", {"around": ["田中"] * 51}, "50 are the limit"),
        ("graph_snapshot", {"around": ["田中"], "depth": 4}, "depth is 4"),
        ("relate", {"relations": ["田中 > プロジェクトA"]}, 'Write it as "A > works_on > B"'),
        ("relate", {"relations": ["田中|Ghost > knows > 佐藤"]}, "there is no type 'Ghost'"),
        ("relate", {"relations": ["田中さん > knows > 田中"]}, "are one"),
        ("relate", {"relations": []}, "1 to 50"),
        ("relate", {"relations": ["a > b > c"], "valid_from": "いつか"}, "valid_from 'いつか' is no date"),
        ("relate", {"relations": ["a > b > c"], "valid_from": "..2015"}, "valid_from '..2015' is open at one end"),
        ("relate", {"relations": ["a > b > c"], "valid_from": "2015", "valid_to": "2014"}, "valid_to is before valid_from"),
        ("relate", {"relations": ["a > b > c"], "notes": "x" * 501}, "notes has 501 characters"),
        ("relate", {"relations": "田中 > knows > 佐藤, 佐藤 > knows > 鈴木"}, "Send a list with one relation in each entry"),
        ("relate", {"relations": "田中 > knows > 佐藤; 佐藤 > knows > 鈴木"}, "Send a list with one relation in each entry"),
        ("remember", {"content": "x", "relations": "a > b > c\nc > d > e"}, "Send a list with one relation in each entry"),
        ("unrelate", {"relation": "田中 > knows > 誰か"}, "not known"),
        ("remember", {"content": "x", "relations": ["x"]}, "A > works_on > B"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_what_can(persona, project, tool, arguments, said):
    words = persona.refusal(tool, **arguments)
    if said == "known are":
        assert "誰か" in words
    else:
        assert said in words


def test_asking_about_a_persona_that_does_not_exist_creates_nothing(server, persona, name):
    assert persona("graph_snapshot")["new_persona"]
    persona.refusal("entity_neighbors", entity="田中")
    persona.refusal("unrelate", relation="a > b > c")
    assert not server.directory_of(name).exists()


def test_to_take_a_relation_back_of_a_further_name_of_several_is_refused_with_who_they_are(persona):
    persona("remember", content="[[健太|ケン]]と[[健二|ケン]]に会った", relations=["健太|Person > likes > 苺", "健二|Person > likes > 苺"])
    words = persona.refusal("unrelate", relation="ケン > likes > 苺")
    assert "2 are called 'ケン'" in words
    assert "健太 (Person)" in words
    assert "健二 (Person)" in words
    assert persona("unrelate", relation="健太 > likes > 苺")["unrelated"]


def test_to_take_back_a_relation_of_somebody_unknown_is_refused_with_who_that_is(persona):
    persona("relate", relations=["健太郎 > likes > 苺"])
    assert "'誰か' is not known: no name is similar" in persona.refusal("unrelate", relation="誰か > likes > 苺")
    assert "'桃' is not known" in persona.refusal("unrelate", relation="健太郎 > likes > 桃")
    assert "'健太' is not known: similar names are 健太郎" in persona.refusal("unrelate", relation="健太 > likes > 苺")
    assert "'誰か' and '桃' are not known" in persona.refusal("unrelate", relation="誰か > likes > 桃")


def test_to_take_back_what_only_the_trash_states_is_refused_as_of_nobody(persona):
    key = persona("remember", content="[[健太|Person]]は[[苺|Object]]が好き", relations=["健太 > likes > 苺"])["key"]
    persona("forget", keys=[key])
    assert "'健太' and '苺' are not known" in persona.refusal("unrelate", relation="健太 > likes > 苺")


@pytest.mark.parametrize("algorithm", ["shortest", "strongest", "all"])
def test_from_somebody_to_the_same_by_another_name_is_no_step(persona, project, algorithm):
    answer = persona("find_path", source="田中", target="田中さん", algorithm=algorithm)
    assert answer["paths"] == [{"length": 0, "strength": 1, "entities": ["田中"], "steps": []}]
    assert "note" not in answer


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "[[\u200e]]", "田中\x00", "\u200b|Person"])
def test_a_relation_of_a_name_that_nobody_can_see_is_refused(persona, unseen):
    for relation in (f"{unseen} > knows > 苺", f"苺 > knows > {unseen}"):
        refused = persona.refusal("relate", relations=[relation])
        assert "can't be" in refused or "NUL" in refused
        assert persona.refusal("remember", content="来た", relations=[relation])


@pytest.mark.parametrize("seen", ["\U0001fae8", "\U0001fac6", "\ue000", "👨\u200d👩", "אבג"])
def test_a_relation_of_any_name_that_can_be_seen_is_kept(persona, seen):
    persona("relate", relations=[f"{seen} > knows > 苺"])
    assert persona("entity_neighbors", entity=seen)["neighbors"][0]["name"] == "苺"


def test_a_mark_around_nothing_that_can_be_seen_names_nobody(persona):
    persona("remember", content="[[\u200b]]と[[\ufeff|Person]]と[[苺|\u200b]]")
    told = persona("graph_snapshot", format="json")["entities"]
    assert [(one["name"], one.get("aliases")) for one in told] == [("苺", None)]
