"""Entities, their types and who is one under many names, over the routes and the tool."""

import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "graph"])]  # a persona with a graph for each test

PLACE = "/api/graph/"


@pytest.fixture
def send(http, name):
    """send("POST", "merges", entity=…): the answer of a route as this test's persona; GET and DELETE send a query."""

    def send(method, route, status=200, **fields):
        place = {"params": fields} if method in ("GET", "DELETE") else {"json": fields}
        answer = http.request(method, PLACE + route, headers={"X-Persona": name}, **place)
        assert answer.status_code == status, answer.text
        told = answer.json()
        if status != 200:
            assert set(told) == {"error"}
            return told["error"]
        assert told["persona"] == name
        return told

    return send


@pytest.fixture
def names_of(send):
    return lambda **asked: [entity["name"] for entity in send("GET", "entities", **asked)["entities"]]


@pytest.fixture
def kim(persona):
    persona("remember", content="[[Minji Kim|Person]] lives in Berlin", relations=["Minji Kim > likes > tea"])
    persona("remember", content="[[minji-kim|Person]] came with Dr. Park", relations=["minji-kim > knows > Park"])


def test_an_entity_is_made_found_changed_and_taken_away(send, names_of):
    made = send("POST", "entities", name=" ミケ ", type="Object", description="猫", aliases=["みけちゃん"], importance=1)
    assert made["new_persona"]
    one = made["entity"]
    assert (one["name"], one["type"], one["aliases"], one["description"], one["importance"]) == ("ミケ", "Object", ["みけちゃん"], "猫", 1)
    assert names_of(query="みけ") == names_of(type="Object") == ["ミケ"]
    assert names_of(type="Person") == names_of(query="ダイズ") == []
    changed = send("PATCH", "entity", entity=one["id"], name="ミケ太郎", description="", aliases=["ミケ", "タロー"], type="Person")[
        "entity"
    ]
    assert changed == {
        **{word: one[word] for word in ("id", "confidence", "importance")},
        "name": "ミケ太郎",
        "type": "Person",
        "aliases": ["タロー", "ミケ"],
    }
    assert send("GET", "entity", entity="タロー")["entity"] == changed
    assert "no entity is named" in send("GET", "entity", 404, entity="みけちゃん")
    assert send("DELETE", "entity", entity="ミケ") == {"persona": made["persona"], "deleted": "ミケ太郎"}
    assert "no entity is named" in send("DELETE", "entity", 404, entity="ミケ")


def test_attributes_and_a_subtype_are_put_down_kept_and_taken_away(send, http, name):
    said = {"role": "engineer", "skills": ["Python", "木工"], "desk": {"floor": 3}}
    made = send("POST", "entities", name="田中太郎", type="Person", subtype=" colleague ", attributes=said)["entity"]
    assert (made["subtype"], made["attributes"]) == ("colleague", said)
    kept = send("PATCH", "entity", entity="田中太郎", description="同僚")["entity"]
    assert (kept["subtype"], kept["attributes"], kept["description"]) == ("colleague", said, "同僚")
    lines = http.get("/api/export", headers={"X-Persona": name}).text
    http.post("/api/import", content=lines, headers={"X-Persona": f"{name}-moved"})
    moved = http.get("/api/graph/entity", params={"entity": "田中太郎"}, headers={"X-Persona": f"{name}-moved"}).json()["entity"]
    assert (moved["subtype"], moved["attributes"]) == ("colleague", said)
    bare = send("PATCH", "entity", entity="田中太郎", subtype="", attributes={})["entity"]
    assert not {"subtype", "attributes"} & set(bare)
    assert "Send an object" in send("PATCH", "entity", 400, entity="田中太郎", attributes=["x"])
    assert "attributes has 10,0" in send("PATCH", "entity", 400, entity="田中太郎", attributes={"x": "y" * 10_000})
    assert "subtype has 101" in send("PATCH", "entity", 400, entity="田中太郎", subtype="y" * 101)


def test_a_subtype_that_comes_along_is_put_where_there_is_none(send, http, name):
    send("POST", "entities", name="田中太郎", type="Person")
    line = json.dumps({"entity": "田中太郎", "type": "Person", "subtype": "colleague"})
    assert http.post("/api/import", content=line, headers={"X-Persona": name}).json()["graph"] == 1
    assert send("GET", "entity", entity="田中太郎")["entity"]["subtype"] == "colleague"


def test_entities_come_page_by_page_the_most_mentioned_first(persona, send, names_of):
    for _ in range(2):
        persona("remember", content=f"佐藤さんと鈴木さんが{_}回目の散歩をした")
    persona("remember", content="佐藤さんが来た")
    assert names_of(limit=1) == ["佐藤"]
    assert names_of(limit=1, offset=1) == ["鈴木"]
    assert send("GET", "entities", offset=7)["entities"] == []
    assert send("GET", "entities", limit=1)["in_all"] == 2


def test_a_name_that_is_given_later_is_found_in_texts_from_then_on(persona, send):
    send("POST", "entities", name="ダイズ", type="Object")
    assert persona("remember", content="ダイズと散歩した")["stored"]
    assert send("GET", "entity", entity="ダイズ")["entity"]["mentions"] == 1


@pytest.mark.parametrize(
    ("method", "route", "fields", "said"),
    [
        ("POST", "entities", {}, "name is missing"),
        ("POST", "entities", {"name": "  "}, "empty name"),
        ("POST", "entities", {"name": "\u200b\u2060"}, "empty name"),
        ("POST", "entities", {"name": "x" * 101}, "100 are the limit"),
        ("POST", "entities", {"name": "x", "type": "Ghost"}, "known are Concept"),
        ("POST", "entities", {"name": "x", "importance": 2}, "0 to 1"),
        ("POST", "entities", {"name": "x", "importance": True}, "a number"),
        ("POST", "entities", {"name": "x", "aliases": [""]}, "empty name"),
        ("POST", "entities", {"name": "x", "aliases": [7]}, "a list of strings"),
        ("POST", "entities", {"name": "x", "aliases": ["x"] * 101}, "100 are the limit"),
        ("POST", "entities", {"name": "x", "description": "x" * 2001}, "2,000 are the limit"),
        ("POST", "entities", {"name": "x\x00"}, "NUL"),
        ("POST", "entities", {"name": "x", "colour": "red"}, "unknown field"),
        ("POST", "entities", {"name": "田中さん"}, "belongs to '田中'"),
        ("GET", "entities", {"limit": 501}, "1 to 500"),
        ("GET", "entities", {"limit": -1}, "from 1 to 500"),
        ("GET", "entities", {"type": "Ghost"}, "known are Concept"),
        ("GET", "entities", {"offset": "x"}, "whole number"),
        ("GET", "entity", {}, "entity is missing"),
        ("PATCH", "entity", {"name": "x"}, "entity is missing"),
        ("PATCH", "entity", {"entity": "田中", "type": "Ghost"}, "known are Concept"),
        ("PATCH", "entity", {"entity": "田中", "name": "佐藤"}, "belongs to '佐藤'"),
        ("PATCH", "entity", {"entity": "田中", "aliases": ["ｻﾄｳ", "佐藤"]}, "belongs to '佐藤'"),
        ("POST", "types", {"name": "Pet"}, "kind is missing"),
        ("POST", "types", {"kind": "entity"}, "name is missing"),
        ("POST", "types", {"kind": "entity", "name": "person"}, "'Person' already"),
        ("POST", "types", {"kind": "entity", "name": "a|b"}, "none of |"),
        ("POST", "types", {"kind": "entity", "name": "Pet", "color": "red"}, "hexadecimal"),
        ("POST", "types", {"kind": "relation", "name": "x" * 51}, "50 characters"),
        ("DELETE", "types", {"kind": "entity", "name": "Person"}, "begins with it"),
        ("DELETE", "types", {"kind": "relation", "name": "Pet"}, "there is no type"),
        ("POST", "merges", {}, "nothing to do"),
        ("POST", "merges", {"entity": "田中"}, "one of the two is missing"),
        ("POST", "merges", {"entity": "田中", "into": "田中さん"}, "one already"),
        ("POST", "merges", {"entity": "田中", "into": "京都"}, "a Person, the other a Location"),
        ("POST", "merges", {"undo": 1}, "no merge 1"),
        ("POST", "merges", {"undo": -(2**70)}, "number of a merge"),
        ("POST", "merges", {"undo": 1, "entity": "田中"}, "one call does one thing"),
        ("POST", "merges", {"entity": "田中", "into": "田中", "distinct": True}, "one now"),
        ("GET", "merges", {"limit": 0}, "1 to 100"),
    ],
)
def test_what_can_not_be_done_is_refused_with_what_can(persona, send, method, route, fields, said):
    persona("remember", content="田中さんと佐藤さんが京都駅へ行った。[[京都|Location]]")
    assert said in send(method, route, 400, **fields)


def test_what_is_refused_makes_no_persona_exist(send, server, name):
    send("POST", "entities", 400, name="x", type="Ghost")
    send("POST", "types", 400, kind="entity", name="a|b")
    send("PATCH", "entity", 404, entity="x", name="y")
    send("POST", "merges", 404, entity="x", into="y")
    send("GET", "types")
    assert not server.directory_of(name).exists()


def test_types_are_added_used_and_taken_away_only_unused(persona, send):
    told = send("POST", "types", kind="entity", name="Pet", display_name="ペット", color="#00ff00")
    assert {"name": "Pet", "display_name": "ペット", "used": 0, "user_defined": True, "color": "#00ff00"} in told["entity_types"]
    persona("remember", content="[[ミケ|Pet]]が来た", relations=["ダイズ|Pet > hunts > ミケ"])
    assert send("GET", "entity", entity="ミケ")["entity"]["type"] == "Pet"
    assert send("GET", "entity", entity="ダイズ")["entity"]["type"] == "Pet"
    assert "entities of it: 2" in send("DELETE", "types", 400, kind="entity", name="Pet")
    for one in ("ミケ", "ダイズ"):
        send("DELETE", "entity", entity=one)
    assert "Pet" not in [one["name"] for one in send("DELETE", "types", kind="entity", name="Pet")["entity_types"]]
    persona("relate", relations=["甲 > rivals > 乙", "乙 > rivals > 甲"])
    assert len(persona("entity_neighbors", entity="甲")["neighbors"]) == 1
    send("POST", "types", kind="relation", name="rivals", directed=False)
    (near,) = persona("entity_neighbors", entity="甲")["neighbors"]
    assert (near["via"], near["weight"]) == ("甲 — rivals — 乙", 0.96)
    assert "relations of it: 1" in send("DELETE", "types", 400, kind="relation", name="rivals")


def test_two_names_are_proposed_merged_and_taken_apart(persona, send, kim):
    (proposal,) = send("GET", "merges")["proposals"]
    assert {proposal["entity"], proposal["into"]} == {"Minji Kim", "minji-kim"}
    assert (proposal["type"], proposal["score"], proposal["why"]) == ("Person", 0.85, ["the same but for spaces and signs"])
    done = persona("merge_entities", entity="minji-kim", into="Minji Kim", reason="one person")
    assert (done["into"]["name"], done["into"]["aliases"], done["into"]["mentions"]) == ("Minji Kim", ["minji-kim"], 2)
    assert {near["name"] for near in persona("entity_neighbors", entity="minji-kim")["neighbors"]} == {"tea", "Park"}
    listed = persona("merge_entities")
    assert listed["proposals"] == []
    assert [(one["merge"], one["reason"], "undone_at" in one) for one in listed["merges"]] == [(done["merge"], "one person", False)]
    assert send("GET", "entity", entity="Minji Kim")["merges"] == listed["merges"]
    undone = send("POST", "merges", undo=done["merge"])
    assert (undone["undone"], undone["into"]["name"], undone["entity"]["name"]) == (done["merge"], "Minji Kim", "minji-kim")
    assert {near["name"] for near in persona("entity_neighbors", entity="minji-kim")["neighbors"]} == {"Park"}
    assert "undone already" in persona.refusal("merge_entities", undo=done["merge"])
    assert "undone_at" in send("GET", "merges")["merges"][0]


def test_who_is_said_to_be_two_is_not_proposed_again(persona, send, kim):
    assert persona("merge_entities", entity="minji-kim", into="Minji Kim", distinct=True)["distinct"] == ["minji-kim", "Minji Kim"]
    assert send("GET", "merges")["proposals_in_all"] == 0


def test_one_of_several_of_a_name_is_meant_by_its_id(persona, send):
    persona("remember", content="[[みどり|Person]]は[[みどり|Organization]]で働く。[[ミドリ|Person]]も")
    words = persona.refusal("merge_entities", entity="ミドリ", into="みどり")
    assert "2 entities are named 'みどり'" in words
    (person,) = [one["id"] for one in send("GET", "entities", type="Person", query="みどり")["entities"]]
    assert persona("merge_entities", entity="ミドリ", into=person)["into"]["id"] == person


def test_the_operations_tell_what_was_done_and_are_emptied_when_a_name_is_gone(server, persona, send, name, kim):
    number = persona("merge_entities", entity="minji-kim", into="Minji Kim")["merge"]
    persona("merge_entities", undo=number)
    send("PATCH", "entity", entity="tea", description="緑茶")
    with server.runtime.personas.reading(name) as own, own.database.read() as connection:
        rows = connection.execute("SELECT operation, before, after FROM operations WHERE operation LIKE '%entit%' ORDER BY id").fetchall()
    assert [row[0] for row in rows] == ["merge_entities", "unmerge_entities", "change_entity"]
    assert all("names" in row[2] for row in rows)


def test_half_of_a_character_in_a_body_is_told_as_such(http):
    answer = http.post("/api/graph/types", content=b'{"kind": "entity", "name": "\\ud83d"}')
    assert (answer.status_code, "half of a character" in answer.json()["error"]) == (400, True)
