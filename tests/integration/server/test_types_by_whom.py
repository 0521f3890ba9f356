"""Of what type somebody is: as somebody told, as texts let guess, or as those are who were made one with him."""

import json

import pytest


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph"]) as served:
        yield served


@pytest.fixture
def type_of(api, name):
    """type_of(entity): its type, as the route tells it."""
    return lambda entity, persona=name: api("GET", "entity", persona, entity=entity)["entity"]["type"]


def test_a_type_that_nobody_told_yields_to_that_of_whom_is_merged_and_comes_back_when_that_is_undone(persona, type_of):
    persona("remember", content="[[健太]]が来た。[[ケン|Person]]も来た")
    merged = persona("merge_entities", entity="ケン", into="健太")
    assert (merged["into"]["name"], merged["into"]["type"], type_of("ケン")) == ("健太", "Person", "Person")
    persona("remember", content="渋谷駅で会った")
    assert "can't be one" in persona.refusal("merge_entities", entity="渋谷駅", into="健太")
    undone = persona("merge_entities", undo=merged["merge"])
    assert (undone["into"]["type"], undone["entity"]["type"]) == ("Concept", "Person")


def test_of_two_merges_that_tell_a_type_either_may_be_undone(persona, type_of):
    persona("remember", content="[[健太]]が来た。[[ケン|Person]]も[[タロ|Person]]も来た")
    first, second = (persona("merge_entities", entity=one, into="健太")["merge"] for one in ("ケン", "タロ"))
    persona("merge_entities", undo=first)
    assert type_of("健太") == "Person"
    persona("merge_entities", undo=second)
    assert type_of("健太") == "Concept"


def test_what_a_text_tells_after_a_merge_stays_when_that_is_undone(persona, type_of):
    persona("remember", content="[[健太]]が来た。[[ケン|Person]]も来た")
    number = persona("merge_entities", entity="ケン", into="健太")["merge"]
    persona("remember", content="[[健太|Person]]が歌った")
    persona("merge_entities", undo=number)
    assert type_of("健太") == "Person"


def test_a_type_that_somebody_told_stays_whatever_is_merged_or_read(persona, api, type_of):
    persona("remember", content="[[愛]]とは何か。[[アイ|Person]]が来た")
    api("PATCH", "entity", entity="愛", type="Concept")
    assert persona("merge_entities", entity="アイ", into="愛")["into"]["type"] == "Concept"
    persona("remember", content="[[愛]]さんが来た")
    assert type_of("愛") == "Concept"


def test_whoever_is_made_by_hand_without_a_type_gets_the_one_that_is_read_later(persona, api, type_of):
    api("POST", "entities", name="健太")
    api("POST", "entities", name="愛", type="Concept")
    assert (type_of("健太"), type_of("愛")) == ("Concept", "Concept")
    persona("remember", content="[[健太]]さんと[[愛]]さんが来た")
    assert (type_of("健太"), type_of("愛")) == ("Person", "Concept")


def test_types_are_the_same_elsewhere_and_a_merge_undone_there_too(persona, api, type_of, http, name):
    persona("remember", content="[[健太]]が来た。[[ケン|Person]]も来た", relations=["健太 > likes > 苺"])
    persona("merge_entities", entity="ケン", into="健太")
    api("POST", "entities", name="愛", type="Concept")
    persona("remember", content="[[愛]]さんが来た")
    exported = http.get("/api/export", headers={"X-Persona": name}).content
    assert [line["type_by_hand"] for line in map(json.loads, exported.splitlines()) if "type_by_hand" in line] == [True]
    elsewhere = f"{name}-elsewhere"
    for _ in range(2):
        assert http.post("/api/import", content=exported, headers={"X-Persona": elsewhere}).json()["refused"] == 0
        assert [type_of(one, elsewhere) for one in ("健太", "ケン", "愛")] == ["Person", "Person", "Concept"]
    number = api("GET", "merges", elsewhere)["merges"][0]["merge"]
    api("POST", "merges", elsewhere, undo=number)
    assert [type_of(one, elsewhere) for one in ("健太", "ケン")] == ["Concept", "Person"]


def test_types_are_the_same_where_a_persona_is_merged_into_another(persona, api, type_of, http, name):
    persona("remember", content="[[健太]]が来た。[[ケン|Person]]も来た")
    persona("merge_entities", entity="ケン", into="健太")
    api("POST", "entities", name="愛", type="Concept")
    target = f"{name}-into"
    api("POST", "entities", target, name="苺")
    http.post("/api/persona/merge", json={"into": target}, headers={"X-Persona": name}).raise_for_status()
    http.post("/api/import", content=json.dumps({"content": "[[愛]]さんが来た"}).encode(), headers={"X-Persona": target}).raise_for_status()
    assert [type_of(one, target) for one in ("健太", "愛")] == ["Person", "Concept"]
    api("POST", "merges", target, undo=api("GET", "merges", target)["merges"][0]["merge"])
    assert type_of("健太", target) == "Concept"


def test_a_type_of_one_who_was_merged_and_is_erased_goes_with_him(persona, type_of, http, name):
    persona("remember", content="[[健太]]が来た")
    key = persona("remember", content="[[ケン|Person]]が来た")["key"]
    persona("merge_entities", entity="ケン", into="健太")
    persona("forget", keys=[key])
    asked = http.post("/api/purge", json={"keys": [key]}, headers={"X-Persona": name}).json()
    http.post("/api/purge", json={"keys": [key], "confirm": asked["confirm"]}, headers={"X-Persona": name}).raise_for_status()
    assert type_of("健太") == "Concept"
