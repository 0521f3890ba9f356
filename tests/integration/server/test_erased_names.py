"""What is left of a name when the memory that told it is erased for good."""

import sqlite3

import pytest


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph"]) as served:
        yield served


@pytest.fixture
def erase(persona, http, name):
    """erase(key): forgets a memory and erases it for good."""

    def erase(key):
        persona("forget", keys=[key])
        asked = http.post("/api/purge", json={"keys": [key]}, headers={"X-Persona": name}).json()
        http.post("/api/purge", json={"keys": [key], "confirm": asked["confirm"]}, headers={"X-Persona": name}).raise_for_status()

    return erase


@pytest.fixture
def entity(http, name):
    """entity(called): who is called so, as the route tells it."""
    return lambda called: http.get("/api/graph/entity", params={"entity": called}, headers={"X-Persona": name}).json()["entity"]


def test_whoever_loses_the_name_that_he_got_first_goes_by_one_that_is_left(persona, erase, entity, server, name):
    key = persona("remember", content="[[田中太郎|たなっち]]と歩いた")["key"]
    persona("remember", content="たなっちは元気", relations=["たなっち > likes > 苺"])
    erase(key)
    told = entity("たなっち")
    assert (told["name"], told.get("aliases", [])) == ("たなっち", [])
    assert "similar names are" not in persona.refusal("entity_neighbors", entity="田中太郎")
    assert [hit["content"] for hit in persona("recall", query="田中太郎", mode="keyword")["hits"]] == []
    assert persona("recall", query="たなっち likes", mode="keyword")["hits"][0]["content"] == "たなっちは元気"
    with sqlite3.connect(next(server.directory_of(name).glob("memory.sqlite"))) as stored:
        assert "田中太郎" not in "\n".join(stored.iterdump())


@pytest.mark.parametrize("further", [{"source": "田中太郎"}, {"tags": ["田中太郎"]}, {"relations": ["田中太郎 > likes > 苺"]}])
def test_a_name_that_another_memory_is_filed_under_or_relates_somebody_by_stays(persona, erase, entity, further):
    key = persona("remember", content="[[田中太郎|たなっち]]と歩いた")["key"]
    persona("remember", content="たなっちは元気", **further)
    erase(key)
    assert entity("たなっち")["name"] == "田中太郎"


def test_a_name_that_somebody_wrote_stays_the_one_he_goes_by(persona, erase, entity, http, name):
    key = persona("remember", content="[[田中太郎|たなっち]]と歩いた")["key"]
    persona("remember", content="たなっちは元気")
    persona("relate", relations=["田中太郎 > likes > 苺"])
    erase(key)
    assert entity("たなっち")["name"] == "田中太郎"


def test_whoever_has_no_other_name_that_is_left_keeps_his_own(persona, erase, entity):
    key = persona("remember", content="[[健太|ケン]]が来た")["key"]
    persona("remember", content="けんたが走った。[[健太]]")
    erase(key)
    assert (entity("健太")["name"], entity("健太").get("aliases", [])) == ("健太", [])


def test_a_relative_and_a_day_keep_their_names(persona, erase, entity):
    key = persona("remember", content="母と2025-10-17に会った")["key"]
    persona("remember", content="お母さんが2025年10月17日に来た。ママだ")
    erase(key)
    assert (entity("お母さん")["name"], entity("2025年10月17日")["name"]) == ("母", "2025-10-17")


def test_a_name_that_another_memory_writes_in_another_case_stays(persona, erase, entity):
    key = persona("remember", content="[[田中太郎|Kenny]]と歩いた")["key"]
    persona("remember", content="[[田中太郎|ＫＥＮＮＹ]]が来た")
    erase(key)
    assert entity("kenny")["name"] == "田中太郎"
