"""Names that people write themselves stay visible whatever is forgotten or erased; names that only memories contain don't."""

import json
import sqlite3

import pytest

pytestmark = pytest.mark.slow  # a persona with a graph for each test


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph"]) as served:
        yield served


@pytest.fixture
def era():
    """One protocol era: names don't depend on it."""
    return "auto"


@pytest.fixture
def aliases(api):
    """aliases(entity): its further names, as the route tells them."""
    return lambda entity: api("GET", "entity", entity=entity)["entity"].get("aliases", [])


@pytest.fixture
def walk(persona):
    """The memory that alone says たなっち of 田中太郎."""
    persona("remember", content="[[田中太郎|Person]]が来た")
    return persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]


def test_unrelated_change_does_not_reveal_names_in_the_trash(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", importance=0.9)
    persona("forget", keys=[walk])
    assert aliases("田中太郎") == []
    changed = api("PATCH", "entity", entity="田中太郎", description="隣の人")
    assert "たなっち" not in json.dumps(changed, ensure_ascii=False)
    assert aliases("田中太郎") == []
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == ["たなっち"]


def test_written_alias_stays(persona, api, aliases):
    persona("remember", content="[[田中太郎|Person]]が来た")
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち"])
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    persona("forget", keys=[key])
    assert aliases("田中太郎") == ["たなっち"]


def test_repeating_a_name_from_a_memory_does_not_make_it_written(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち", "タロさん"])
    persona("forget", keys=[walk])
    assert aliases("田中太郎") == ["タロさん"]


def test_name_only_in_the_trash_is_visible_once_written(persona, api, aliases, walk):
    persona("forget", keys=[walk])
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち"])
    assert aliases("田中太郎") == ["たなっち"]


def test_created_entity_keeps_all_given_names(persona, api, aliases):
    api("POST", "entities", name="田中太郎", type="Person", aliases=["たなっち"])
    key = persona("remember", content="たなっちは[[田中太郎|タロさん]]とも言う")["key"]
    assert aliases("田中太郎") == ["たなっち", "タロさん"]
    persona("forget", keys=[key])
    assert aliases("田中太郎") == ["たなっち"]


def test_sending_back_the_visible_names_keeps_those_in_the_trash(persona, api, aliases, walk):
    persona("forget", keys=[walk])
    api("PATCH", "entity", entity="田中太郎", aliases=[*aliases("田中太郎"), "タロさん"])
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == ["たなっち", "タロさん"]
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"


def test_visible_name_that_is_left_out_is_removed(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", aliases=["タロさん"])
    api("PATCH", "entity", entity="田中太郎", aliases=[])
    assert aliases("田中太郎") == []
    persona("forget", keys=[walk])
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == []


def test_list_shows_no_name_that_is_only_in_the_trash(persona, api, walk):
    persona("remember", content="[[たなべ|Person]]も来た")
    assert [one["name"] for one in api("GET", "entities", query="たなっち")["entities"]] == ["田中太郎"]
    persona("forget", keys=[walk])
    for query in ("たなっち", "ﾀﾅｯﾁ", "なっ"):
        found = api("GET", "entities", query=query)
        assert (found["entities"], found["in_all"]) == ([], 0)
    both = api("GET", "entities", query="た")
    assert ([one["name"] for one in both["entities"]], both["in_all"]) == (["たなべ"], 1)
    assert [one["name"] for one in api("GET", "entities", query="田中")["entities"]] == ["田中太郎"]
    persona("revise", key=walk, restore=True)
    assert [one["name"] for one in api("GET", "entities", query="たなっち")["entities"]] == ["田中太郎"]


def test_a_search_along_the_graph_finds_nobody_by_a_name_that_only_the_trash_holds(persona, walk):
    def found():
        told = persona("recall", query="たなっちのことは？", mode="graph")
        return [hit["content"] for hit in told["hits"]]

    assert "[[田中太郎|Person]]が来た" in found()
    persona("relate", relations=["田中太郎 > likes > 苺"])
    persona("forget", keys=[walk])
    told = persona("recall", query="たなっちのことは？", mode="graph")
    assert (told["hits"], told.get("relations", [])) == ([], [])
    persona("revise", key=walk, restore=True)
    assert "[[田中太郎|Person]]が来た" in found()


def test_a_merge_is_not_proposed_for_a_name_that_only_the_trash_holds(persona):
    persona("remember", content="[[健太|ケン]]が来た")
    key = persona("remember", content="[[健二|ケン]]が来た")["key"]
    persona("remember", content="[[健二]]と走った")
    proposed = persona("merge_entities")["proposals"]
    assert [{one["entity"], one["into"]} for one in proposed] == [{"健太", "健二"}]
    persona("forget", keys=[key])
    listed = persona("merge_entities")
    assert (listed["proposals"], listed["proposals_in_all"]) == ([], 0)
    persona("revise", key=key, restore=True)
    assert len(persona("merge_entities")["proposals"]) == 1


@pytest.mark.parametrize("include_deleted", ["true", "false"])
def test_import_shows_written_names_and_not_those_in_the_trash(persona, api, http, name, walk, include_deleted):
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち", "タロさん"])
    persona("remember", content="[[田中太郎|タロさん]]が来た")
    other = persona("remember", content="[[田中太郎|タロさん]]と[[苺|Object]]")["key"]
    api("POST", "entities", name="健太", type="Person", aliases=["ケン"])
    written = persona("remember", content="健太、つまりケンが来た")["key"]
    persona("forget", keys=[walk, other, written])
    exported = http.get("/api/export", params={"include_deleted": include_deleted}, headers={"X-Persona": name})
    elsewhere = f"{name}-elsewhere"
    for _ in range(2):
        imported = http.post("/api/import", content=exported.content, headers={"X-Persona": elsewhere}).json()
        assert imported["refused"] == 0
        assert api("GET", "entity", elsewhere, entity="田中太郎")["entity"]["aliases"] == ["タロさん"]
    assert "graph" not in imported
    assert api("GET", "entity", elsewhere, entity="健太")["entity"]["aliases"] == ["ケン"]


def test_names_of_an_older_export_count_as_written(persona, api, http, name):
    lines = [
        {"entity": "田中太郎", "type": "Person", "aliases": ["たなっち"], "made_by": "user"},
        {"content": "[[田中太郎|たなっち]]と散歩した", "key": "memory_20251001000000_aaaaaaaa", "deleted_at": "2025-10-20T00:00:00+00:00"},
    ]
    sent = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    assert http.post("/api/import", content=sent.encode(), headers={"X-Persona": name}).json()["refused"] == 0
    assert api("GET", "entity", entity="田中太郎")["entity"]["aliases"] == ["たなっち"]


def test_merging_personas_keeps_written_names_visible(persona, api, http, name, walk):
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち", "タロさん"])
    key = persona("remember", content="[[田中太郎|タロさん]]が来た")["key"]
    persona("forget", keys=[walk, key])
    target = f"{name}-into"
    api("POST", "entities", target, name="苺")
    merged = http.post("/api/persona/merge", json={"into": target}, headers={"X-Persona": name})
    assert merged.status_code == 200, merged.text
    assert api("GET", "entity", target, entity="田中太郎")["entity"]["aliases"] == ["タロさん"]


def test_a_relation_is_not_taken_back_by_a_name_that_only_the_trash_holds(persona, walk):
    persona("relate", relations=["田中太郎 > likes > 苺"])
    persona("forget", keys=[walk])
    assert "not known" in persona.refusal("unrelate", relation="たなっち > likes > 苺")
    assert persona("unrelate", relation="田中太郎 > likes > 苺")["unrelated"] is True


def test_name_only_in_the_trash_gets_no_suggestions(persona, walk):
    persona("forget", keys=[walk])
    for asked in ("たなっち", "たなっちの", "なっち"):
        assert "田中太郎" not in persona.refusal("entity_neighbors", entity=asked)


def test_name_of_a_merged_entity_is_hidden_unless_written(persona, api, aliases, walk):
    api("POST", "entities", name="タロウ", type="Person", aliases=["タロさん"])
    number = persona("merge_entities", entity="タロウ", into="田中太郎")["merge"]
    both = persona("remember", content="[[タロウ|たーくん]]、つまり[[タロさん]]と泳いだ")["key"]
    assert aliases("田中太郎") == ["たなっち", "たーくん", "タロさん", "タロウ"]
    persona("forget", keys=[walk, both])
    assert aliases("田中太郎") == ["タロさん", "タロウ"]
    api("PATCH", "entity", entity="田中太郎", aliases=aliases("田中太郎"))
    persona("merge_entities", undo=number)
    assert (aliases("田中太郎"), aliases("タロウ")) == ([], ["タロさん"])
    persona("revise", key=both, restore=True)
    persona("revise", key=walk, restore=True)
    assert (aliases("田中太郎"), aliases("タロウ")) == (["たなっち"], ["たーくん", "タロさん"])


def test_merged_entity_in_the_trash_gets_no_suggestions(persona):
    persona("remember", content="[[丙野|Person]]が来た")
    key = persona("remember", content="[[乙野|Person]]が寝た", relations=["乙野 > likes > 梨"])["key"]
    persona("merge_entities", entity="乙野", into="丙野")
    persona("forget", keys=[key])
    assert "丙野" not in persona.refusal("entity_neighbors", entity="乙野")


def test_a_name_that_only_the_trash_holds_may_be_given_to_somebody_else(persona, api, walk):
    persona("forget", keys=[walk])
    api("POST", "entities", name="他人", type="Person", aliases=["たなっち"])
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "他人"
    persona("revise", key=walk, restore=True)
    told = persona("entity_neighbors", entity="たなっち")
    assert {told["entity"]["name"], *(one["name"] for one in told["namesakes"])} == {"他人", "田中太郎"}


@pytest.fixture
def passed_on(persona, api):
    """ケン was what a memory in the trash calls 健太, and is what somebody calls 健二."""
    persona("remember", content="[[健太|Person]]が来た")
    persona("remember", content="[[健二|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("forget", keys=[key])
    api("PATCH", "entity", entity="健二", aliases=["ケン"])
    return key


def test_name_from_the_trash_means_the_entity_it_was_given_to(persona, passed_on):
    persona("remember", content="ケンが走った")
    assert persona("entity_neighbors", entity="健二")["entity"]["mentions"] == 2
    persona("relate", relations=["ケン > likes > 苺"])
    assert "健二 > likes > 苺" in json.dumps(persona("recall", query="ケンは？"), ensure_ascii=False)
    assert persona("unrelate", relation="ケン > likes > 苺")["unrelated"] is True


def test_a_name_that_somebody_wrote_stays_beside_the_same_one_of_a_memory(persona, api, aliases):
    persona("remember", content="[[健太|Person]]が来た")
    api("PATCH", "entity", entity="健太", aliases=["ボウ"])
    persona("remember", content="[[ケン|Person]]が来た")
    key = persona("remember", content="[[ケン|ボウ]]が歌った")["key"]
    persona("merge_entities", entity="ケン", into="健太")
    persona("forget", keys=[key])
    assert "ボウ" in aliases("健太")
    assert persona("entity_neighbors", entity="ボウ")["entity"]["name"] == "健太"


def test_related_entity_is_displayed_by_the_stated_name(persona):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("forget", keys=[key])
    persona("relate", relations=["ケン > likes > 苺"])
    assert persona("entity_neighbors", entity="ケン")["entity"]["name"] == "健太"
    assert persona("unrelate", relation="ケン > likes > 苺")["unrelated"] is True


def test_entity_related_before_a_merge_is_displayed_by_that_name(persona):
    persona("remember", content="[[健太|Person]]が来た")
    persona("relate", relations=["ケン > likes > 苺"])
    key = persona("remember", content="[[ケン|Person]]が歌った")["key"]
    persona("merge_entities", entity="ケン", into="健太")
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity="ケン")["entity"]["name"] == "健太"
    assert persona("unrelate", relation="ケン > likes > 苺")["unrelated"] is True


def test_erasing_a_memory_leaves_the_names_that_somebody_wrote(persona, api, aliases, erase):
    persona("remember", content="[[健太|Person]]が来た")
    api("PATCH", "entity", entity="健太", aliases=["ケン"])
    key = persona("remember", content="健太、つまりケンが来た")["key"]
    erase(key)
    assert aliases("健太") == ["ケン"]


def test_name_with_another_honorific_is_found_despite_one_in_the_trash(persona, api):
    api("POST", "entities", name="モモちゃん", type="Object")
    persona("relate", relations=["モモちゃん > likes > 苺"])
    key = persona("remember", content="[[モモ|Person]]が来た")["key"]
    assert persona("entity_neighbors", entity="モモ")["entity"]["name"] == "モモ"
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity="モモ")["entity"]["name"] == "モモちゃん"
    assert "モモちゃん > likes > 苺" in json.dumps(persona("recall", query="モモは？"), ensure_ascii=False)


def test_recreated_entity_keeps_its_type_from_the_trash(persona, api):
    key = persona("remember", content="[[田中誠|Person]]が来た")["key"]
    persona("forget", keys=[key])
    api("POST", "entities", name="田中誠")
    persona("revise", key=key, restore=True)
    assert api("GET", "entity", entity="田中誠")["entity"]["type"] == "Person"


def test_name_shared_in_the_trash_reveals_no_entity(persona):
    for one in ("健太", "健二"):
        persona("remember", content=f"[[{one}|Person]]が来た")
        persona("forget", keys=[persona("remember", content=f"[[{one}|ケン]]が歌った")["key"]])
    refused = persona.refusal("unrelate", relation="ケン > likes > 苺")
    assert "健太" not in refused
    assert "健二" not in refused


def test_giving_an_entity_the_name_of_another_reports_the_other(persona, api, aliases):
    persona("remember", content="[[きなこ|Object]]が寝た。[[みどり|Organization]]が開いた")
    clinic = api("GET", "entity", entity="みどり")["entity"]["id"]
    told = api("PATCH", "entity", entity="きなこ", name="みどり")
    assert [one["id"] for one in told["namesakes"]] == [clinic]
    assert f"みどり (Organization {clinic})" in told["note"]
    assert "merge_entities makes them one, once they are of one type" in told["note"]
    cat = told["entity"]["id"]
    renamed = api("PATCH", "entity", entity=cat, name="きなこ")
    assert renamed["entity"]["aliases"] == ["みどり"]
    assert "aliases without a further name take that away" in renamed["note"]
    undone = api("PATCH", "entity", entity=cat, aliases=[])
    assert "note" not in undone
    assert "namesakes" not in undone
    assert aliases(cat) == []
    assert persona("entity_neighbors", entity="みどり")["entity"]["id"] == clinic


def test_namesake_only_in_the_trash_is_not_reported(persona, api):
    persona("remember", content="[[きなこ|Object]]が寝た")
    key = persona("remember", content="[[みどり|Organization]]が開いた")["key"]
    persona("forget", keys=[key])
    assert api("PATCH", "entity", entity="きなこ", name="みどり").keys() == {"persona", "entity"}


def test_creating_an_entity_with_the_name_of_another_type_reports_the_other(persona, api):
    persona("remember", content="[[きなこ|Object]]が寝た")
    assert "きなこ (Object " in api("POST", "entities", name="きなこ", type="Person")["note"]
    assert "note" not in api("PATCH", "entity", entity=api("GET", "entities", query="きなこ")["entities"][0]["id"], description="猫")


@pytest.fixture
def entity(http, name):
    """entity(called): who is called so, as the route tells it."""
    return lambda called: http.get("/api/graph/entity", params={"entity": called}, headers={"X-Persona": name}).json()["entity"]


def test_entity_that_loses_its_first_name_is_displayed_by_another(persona, erase, entity, server, name):
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


def test_written_name_stays_the_displayed_name(persona, erase, entity, http, name):
    key = persona("remember", content="[[田中太郎|たなっち]]と歩いた")["key"]
    persona("remember", content="たなっちは元気")
    persona("relate", relations=["田中太郎 > likes > 苺"])
    erase(key)
    assert entity("たなっち")["name"] == "田中太郎"


def test_entity_without_another_name_keeps_its_own(persona, erase, entity):
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
