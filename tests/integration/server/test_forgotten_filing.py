"""Whom only memories in the trash are filed under, by `source` or a tag, is told at no door of the graph, and is there again with them."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.graph.update.cooccurrence import update_graph

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
WHO, WHAT = "密偵", "陰謀"


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph", "upkeep"]) as served:
        yield served


@pytest.fixture
def chores(server, name):
    """What the graph learns while nobody calls."""

    def chores():
        with server.runtime.personas.writing(name) as persona:
            while update_graph(persona, NOON):
                pass

    return chores


@pytest.fixture(params=["internal", "secret"])
def filed(request, persona, chores):
    """The key of the only memory that 密偵 said and that is tagged with 陰謀."""
    persona("remember", content="[[花子|Person]]が来た")
    key = persona("remember", content="黒川さんは会員だ。", source=WHO, tags=[WHAT], privacy_level=request.param)["key"]
    chores()
    return key


@pytest.fixture
def http_text(http, name):
    def http_text(path, **params):
        return http.get(f"/api/graph/{path}", params=params, headers={"X-Persona": name}).text

    return http_text


@pytest.fixture
def told(persona, http_text):
    """told(name): what the doors of the graph say when they are asked about a name, without repeating it."""

    def told(asked):
        said = [
            *(persona.result("entity_neighbors", {"entity": one}).content[0].text for one in (asked, asked[0], f"{asked}の")),
            persona.result("find_path", {"source": asked, "target": "花子"}).content[0].text,
            persona.result("merge_entities", {"entity": asked, "into": "花子"}).content[0].text,
            persona.result("merge_entities", {}).content[0].text,
            persona.result("unrelate", {"relation": f"{asked} > knows > 花子"}).content[0].text,
            persona.result("graph_snapshot", {}).content[0].text,
            persona.result("recall", {"query": f"{asked}のことは？", "mode": "graph"}).content[0].text.replace(f"{asked}のことは", ""),
            persona.result("organize", {}).content[0].text,
            *(http_text("entity", entity=one) for one in (asked, asked[0])),
            http_text("entities", query=asked[0]),
            http_text("neighbors", entity=asked),
            http_text("paths", source=asked, target="花子"),
            http_text("merges"),
            http_text("export", format="json"),
        ]
        repeats = (f"'{asked}'", f"'{asked}の'", f"'{asked} > knows > 花子'", f"{asked} > knows > 花子")
        for repeat in repeats:
            said = [text.replace(repeat, "") for text in said]
        return [text for text in said if asked in text or asked in json.dumps(text, ensure_ascii=False)]

    return told


@pytest.mark.parametrize("asked", [WHO, WHAT])
def test_whom_only_the_trash_is_filed_under_is_told_at_no_door(persona, filed, told, asked):
    assert persona("entity_neighbors", entity=asked)["entity"]["name"] == asked
    persona("forget", keys=[filed])
    assert told(asked) == []


@pytest.mark.parametrize("asked", [WHO, WHAT])
def test_the_words_are_those_for_a_name_that_nobody_ever_said(persona, filed, asked):
    def refusals(name):
        calls = {
            "entity_neighbors": {"entity": name},
            "find_path": {"source": name, "target": "花子"},
            "merge_entities": {"entity": name, "into": "花子"},
        }
        return [persona.refusal(tool, **arguments).replace(name, "") for tool, arguments in calls.items()]

    persona("forget", keys=[filed])
    assert refusals(asked) == refusals("無名")


def test_both_are_told_again_when_the_memory_is_restored(persona, filed):
    before = [persona("entity_neighbors", entity=one) for one in (WHO, WHAT)]
    persona("forget", keys=[filed])
    persona("revise", key=filed, restore=True)
    assert [persona("entity_neighbors", entity=one) for one in (WHO, WHAT)] == before


@pytest.mark.parametrize("further", [{"source": WHO, "tags": [WHAT]}, {"source": f"{WHO}さん", "tags": [f"{WHAT}様"]}])
def test_whom_another_memory_is_filed_under_too_stays(persona, filed, chores, further):
    persona("remember", content="元気だ", **further)
    chores()
    persona("forget", keys=[filed])
    assert [persona("entity_neighbors", entity=one)["entity"]["name"] for one in (WHO, WHAT)] == [WHO, WHAT]


def test_whom_the_text_of_another_memory_names_stays(persona, filed):
    persona("remember", content=f"[[{WHO}]]が来た")
    persona("forget", keys=[filed])
    assert persona("entity_neighbors", entity=WHO)["entity"]["mentions"] == 1
    assert "no name is similar" in persona.refusal("entity_neighbors", entity=WHAT)


def test_who_is_related_or_changed_by_hand_stays(persona, filed, http, name):
    persona("relate", relations=[f"{WHO} > knows > 花子"])
    http.patch("/api/graph/entity", json={"entity": WHAT, "description": "謎"}, headers={"X-Persona": name}).raise_for_status()
    persona("forget", keys=[filed])
    assert [one["name"] for one in persona("entity_neighbors", entity=WHO)["neighbors"]] == ["花子"]
    assert persona("entity_neighbors", entity=WHAT)["entity"]["description"] == "謎"


def test_the_name_of_one_who_was_merged_is_hidden_like_one_of_the_text(persona, filed, told, http_text):
    persona("merge_entities", entity=WHO, into="花子")
    assert persona("entity_neighbors", entity=WHO)["entity"]["aliases"] == [WHO]
    persona("forget", keys=[filed])
    assert told(WHO) == []
    assert json.loads(http_text("entities", query=WHO))["in_all"] == 0
    persona("revise", key=filed, restore=True)
    assert persona("entity_neighbors", entity=WHO)["entity"]["name"] == "花子"


def test_the_name_of_one_who_was_merged_stays_while_another_memory_is_filed_under_it(persona, filed, http_text):
    persona("merge_entities", entity=WHO, into="花子")
    persona("remember", content="元気だ", source=WHO)
    persona("forget", keys=[filed])
    assert persona("entity_neighbors", entity=WHO)["entity"]["aliases"] == [WHO]
    assert json.loads(http_text("entities", query=WHO))["in_all"] == 1


def test_a_tag_that_a_memory_had_before_it_was_changed_is_hidden_with_it(persona, filed, told):
    persona("revise", key=filed, tags=[])
    assert persona("entity_neighbors", entity=WHAT)["entity"]["name"] == WHAT
    persona("forget", keys=[filed])
    assert told(WHAT) == []


def test_whoever_is_made_by_such_a_name_is_the_one_that_comes_back(persona, filed, http, name):
    persona("forget", keys=[filed])
    http.post("/api/graph/entities", json={"name": WHO, "type": "Person"}, headers={"X-Persona": name}).raise_for_status()
    persona("revise", key=filed, restore=True)
    assert "namesakes" not in persona("entity_neighbors", entity=WHO)
