"""What only memories in the trash name is told at no door of the graph, and is there again when they are restored."""

import json

import pytest


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph"]) as served:
        yield served


@pytest.fixture
def get(http, name):
    """get(path, **params): the answer as text, whatever its status."""

    def get(path, **params):
        return http.get(path, params=params, headers={"X-Persona": name}).text

    return get


@pytest.fixture
def doors(get, persona):
    """doors(name): what every door of the graph says when it is asked about a name, by the door."""

    def doors(asked):
        said = {
            path: get(f"/api/graph/{path}", **params)
            for path, params in {
                "entity": {"entity": asked},
                "entities": {"query": asked[:2]},
                "neighbors": {"entity": asked},
                "paths": {"source": asked, "target": "健太"},
                "snapshot": {"format": "json"},
                "statistics": {},
                "analytics": {},
                "communities": {},
                "merges": {},
                "export": {"format": "json"},
            }.items()
        }
        said["export of memories"] = get("/api/export")
        said["entity suggestions"] = get("/api/graph/entity", entity=f"{asked}の")
        said["entity_neighbors"] = persona.result("entity_neighbors", {"entity": f"{asked}の"}).content[0].text
        said["recall"] = persona.result("recall", {"query": f"{asked}のことは？", "mode": "graph"}).content[0].text
        said["graph_snapshot"] = persona.result("graph_snapshot", {}).content[0].text
        return said

    return doors


def telling(said, secret, asked):
    """The doors that tell `secret`, beside repeating the name that they were asked by."""
    repeats = (f"'{asked}'", f"'{asked}の'", f"{asked}のことは")
    for repeat in repeats:
        said = {door: text.replace(repeat, "") for door, text in said.items()}
    return sorted(door for door, text in said.items() if secret in text or secret in json.dumps(text, ensure_ascii=False))


@pytest.fixture
def secret(persona):
    persona("remember", content="健太は元気")
    persona("remember", content="[[健太|Person]]が来た")
    return persona("remember", content="[[ダイズモ|Object]]を拾った", relations=["健太 > 飼っている > ダイズモ"])["key"]


def test_whom_only_the_trash_names_is_told_at_no_door(persona, secret, doors):
    assert "entity" in telling(doors("ダイズモ"), "ダイズモ", "ダイズモ")
    persona("forget", keys=[secret])
    assert telling(doors("ダイズモ"), "ダイズモ", "ダイズモ") == []
    assert "ダイズモ" not in persona.refusal("entity_neighbors", entity="ダイズモ").replace("'ダイズモ'", "")


def test_it_is_all_there_again_when_the_memory_is_restored(persona, secret, doors, get):
    before = {door: text for door, text in doors("ダイズモ").items() if door not in ("export of memories", "recall")}
    persona("forget", keys=[secret])
    persona("revise", key=secret, restore=True)
    after = doors("ダイズモ")
    assert telling(after, "ダイズモ", "ダイズモ") == telling(
        before | {"export of memories": after["export of memories"]} | {"recall": after["recall"]}, "ダイズモ", "ダイズモ"
    )
    assert json.loads(after["entity"])["entity"] == json.loads(before["entity"])["entity"]


def test_who_is_named_elsewhere_too_stays(persona, secret):
    persona("remember", content="ダイズモは石")
    persona("forget", keys=[secret])
    assert persona("entity_neighbors", entity="ダイズモ")["entity"]["mentions"] == 1


def test_whom_somebody_related_by_hand_stays(persona, secret):
    persona("relate", relations=["ダイズモ > is_a > 石"])
    persona("forget", keys=[secret])
    assert [one["name"] for one in persona("entity_neighbors", entity="ダイズモ")["neighbors"]] == ["石"]


def test_whom_somebody_changed_by_hand_stays(persona, secret, http, name):
    answer = http.patch("/api/graph/entity", json={"entity": "ダイズモ", "description": "丸い石"}, headers={"X-Persona": name})
    assert answer.status_code == 200
    persona("forget", keys=[secret])
    assert persona("entity_neighbors", entity="ダイズモ")["entity"]["description"] == "丸い石"


def test_a_further_name_that_only_the_trash_holds_is_told_no_more(persona, doors):
    persona("remember", content="[[田中太郎|Person]]が来た")
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    assert persona("entity_neighbors", entity="たなっち")["entity"]["aliases"] == ["たなっち"]
    persona("forget", keys=[key])
    assert telling(doors("田中太郎"), "たなっち", "田中太郎") == []
    assert "たなっち" not in persona.refusal("entity_neighbors", entity="たなっち").replace("'たなっち'", "")
    persona("revise", key=key, restore=True)
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"


@pytest.mark.parametrize("form", ["kenny", "ＫＥＮＮＹ"])
def test_a_further_name_that_another_memory_writes_otherwise_stays(persona, form):
    key = persona("remember", content="[[田中太郎|Kenny]]と散歩した")["key"]
    persona("remember", content=f"[[田中太郎|{form}]]が来た")
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity=form)["entity"]["name"] == "田中太郎"


def test_a_day_is_found_by_every_form_of_it_whatever_was_forgotten(persona):
    persona("remember", content="2025年10月17日に健太と会った")
    key = persona("remember", content="10/17に健太と走った", occurred_at="2025-10-20")["key"]
    persona("forget", keys=[key])
    for form in ("10/17", "10月17日", "2025-10-17"):
        assert persona("entity_neighbors", entity=form)["entity"]["name"] == "2025-10-17"


def test_a_merge_does_not_tell_a_further_name_that_only_the_trash_holds(persona):
    persona("remember", content="[[田中太郎|Person]]が来た。[[タロウ|Person]]も来た")
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    persona("forget", keys=[key])
    merged = json.dumps(persona("merge_entities", entity="タロウ", into="田中太郎"), ensure_ascii=False)
    assert "タロウ" in merged
    assert "たなっち" not in merged


def test_merges_of_whom_only_the_trash_names_are_not_listed(persona, secret, doors):
    persona("remember", content="[[ダイズ|Object]]は丸い")
    persona("merge_entities", entity="ダイズモ", into="ダイズ")
    persona("forget", keys=[secret])
    assert telling(doors("ダイズ"), "ダイズモ", "ダイズ") == []
    persona("revise", key=secret, restore=True)
    assert [one["entity"] for one in persona("merge_entities")["merges"]] == ["ダイズモ"]


def test_somebody_of_another_type_may_be_made_by_a_name_that_only_the_trash_holds(persona, secret, http, name):
    persona("forget", keys=[secret])
    made = http.post("/api/graph/entities", json={"name": "ダイズモ", "type": "Person"}, headers={"X-Persona": name})
    assert made.status_code == 200, made.text
    persona("revise", key=secret, restore=True)
    called = [one["type"] for one in persona("graph_snapshot", format="json")["entities"] if one["name"] == "ダイズモ"]
    assert sorted(called) == ["Object", "Person"]


def test_whoever_is_made_anew_is_the_one_that_comes_back(persona, secret, http, name):
    persona("forget", keys=[secret])
    made = http.post("/api/graph/entities", json={"name": "ダイズモ", "type": "Object"}, headers={"X-Persona": name})
    assert made.status_code == 200, made.text
    assert persona("entity_neighbors", entity="ダイズモ")["neighbors"] == []
    persona("revise", key=secret, restore=True)
    told = persona("entity_neighbors", entity="ダイズモ")
    assert ([one["name"] for one in told["neighbors"]], told.get("namesakes")) == (["健太"], None)


def test_types_count_what_is_told_and_one_that_the_trash_needs_stays(persona, http, name):
    def types():
        told = http.get("/api/graph/types", headers={"X-Persona": name}).json()
        return {one["name"]: one["used"] for one in (*told["entity_types"], *told["relation_types"]) if one["name"] in ("Pet", "rivals")}

    for body in ({"kind": "entity", "name": "Pet"}, {"kind": "relation", "name": "rivals", "directed": False}):
        assert http.post("/api/graph/types", json=body, headers={"X-Persona": name}).status_code == 200
    key = persona("remember", content="[[ダイズ|Pet]]と[[アズキ|Pet]]が来た", relations=["ダイズ > rivals > アズキ"])["key"]
    assert types() == {"Pet": 2, "rivals": 1}
    persona("forget", keys=[key])
    assert types() == {"Pet": 0, "rivals": 0}
    for kind, type_ in (("entity", "Pet"), ("relation", "rivals")):
        gone = http.delete("/api/graph/types", params={"kind": kind, "name": type_}, headers={"X-Persona": name})
        assert (gone.status_code, "trash" in gone.text) == (400, True)
    persona("revise", key=key, restore=True)
    assert types() == {"Pet": 2, "rivals": 1}


def test_a_merge_that_is_undone_does_not_tell_whom_only_the_trash_names(persona, secret):
    persona("remember", content="[[ダイズ|Object]]は丸い")
    number = persona("merge_entities", entity="ダイズモ", into="ダイズ")["merge"]
    persona("forget", keys=[secret])
    undone = persona("merge_entities", undo=number)
    assert (undone["undone"], undone["into"]["name"], "entity" in undone) == (number, "ダイズ", False)
    persona("revise", key=secret, restore=True)
    assert persona("entity_neighbors", entity="ダイズモ")["entity"]["name"] == "ダイズモ"


def test_a_name_that_a_memory_said_before_it_was_changed_is_hidden_with_it(persona, doors):
    persona("remember", content="[[田中太郎|Person]]が来た")
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    persona("revise", key=key, content="田中太郎と散歩した")
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"
    persona("forget", keys=[key])
    assert telling(doors("田中太郎"), "たなっち", "田中太郎") == []
    persona("revise", key=key, restore=True)
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"


def test_a_name_that_another_memory_said_before_it_was_changed_stays(persona):
    other = persona("remember", content="[[田中太郎|たなっち]]が来た")["key"]
    key = persona("remember", content="たなっちと散歩した")["key"]
    persona("revise", key=other, content="田中太郎が来た")
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"


@pytest.fixture
def two_are_one(persona):
    """健太, with whom ケン, who is called ボウ too, was made one; and the memory that alone says ケン."""
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[ケン|Person]]と[[ケン|ボウ]]")["key"]
    persona("remember", content="ボウが走った")
    persona("merge_entities", entity="ケン", into="健太")
    return key


def test_a_merge_is_listed_by_a_name_that_is_told(persona, get, two_are_one):
    def names():
        told = json.loads(get("/api/graph/merges"))["merges"], persona("merge_entities")["merges"]
        return [[(one["entity"], one["into"]) for one in merges] for merges in told]

    assert names() == [[("ケン", "健太")]] * 2
    persona("forget", keys=[two_are_one])
    assert names() == [[("ボウ", "健太")]] * 2
    assert "ケン" not in get("/api/graph/entity", entity="健太")
    persona("revise", key=two_are_one, restore=True)
    assert names() == [[("ケン", "健太")]] * 2


@pytest.mark.parametrize("stated", ["ケン > likes > 苺", "苺 > belongs_to > ケン", "ケン > relates_to > 苺"])
def test_a_name_by_which_another_memory_relates_somebody_stays(persona, stated):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("remember", content="楽しい日だった", relations=[stated])
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity="ケン")["entity"]["aliases"] == ["ケン"]


def test_a_name_by_which_another_memory_relates_one_who_was_merged_stays(persona, two_are_one):
    persona("remember", content="楽しい日だった", relations=["ケン > likes > 苺"])
    persona("forget", keys=[two_are_one])
    assert "ケン" in persona("entity_neighbors", entity="健太")["entity"]["aliases"]


def test_a_name_of_one_who_was_merged_is_hidden_where_only_relations_of_the_trash_say_it(persona, doors):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="楽しい日だった", relations=["ケンイチ > likes > 苺"])["key"]
    persona("merge_entities", entity="ケンイチ", into="健太")
    persona("forget", keys=[key])
    assert telling(doors("健太"), "ケンイチ", "健太") == []
    persona("revise", key=key, restore=True)
    assert persona("entity_neighbors", entity="ケンイチ")["entity"]["name"] == "健太"


def test_whoever_was_made_by_hand_stays_listed_when_it_is_one_with_somebody_of_the_trash(persona, secret, http, name):
    made = http.post("/api/graph/entities", json={"name": "マル", "type": "Object"}, headers={"X-Persona": name})
    assert made.status_code == 200
    persona("merge_entities", entity="マル", into="ダイズモ")
    persona("forget", keys=[secret])
    listed = http.get("/api/graph/entities", params={"query": "マル"}, headers={"X-Persona": name}).json()
    drawn = persona("graph_snapshot", format="json")
    assert (listed["in_all"], [one["aliases"] for one in listed["entities"]]) == (1, [["マル"]])
    assert [one["aliases"] for one in drawn["entities"] if one["name"] == "ダイズモ"] == [["マル"]]
    assert http.get("/api/graph/statistics", headers={"X-Persona": name}).json()["entities"] == drawn["entities_in_all"]


def test_a_name_by_which_another_memory_relates_somebody_outlives_the_memory_that_is_erased(persona, http, name):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("remember", content="楽しい日だった", relations=["ケン > likes > 苺"])
    persona("forget", keys=[key])
    asked = http.post("/api/purge", json={"keys": [key]}, headers={"X-Persona": name}).json()
    http.post("/api/purge", json={"keys": [key], "confirm": asked["confirm"]}, headers={"X-Persona": name}).raise_for_status()
    assert persona("entity_neighbors", entity="ケン")["entity"]["name"] == "健太"


def test_somebody_who_is_given_the_name_of_one_in_the_trash_is_his_namesake_when_he_comes_back_and_both_may_be_made_one(
    persona, http, name
):
    key = persona("remember", content="[[健太|Person]]が来た")["key"]
    persona("remember", content="[[健二|Person]]が歌った")
    persona("forget", keys=[key])
    http.patch("/api/graph/entity", json={"entity": "健二", "name": "健太"}, headers={"X-Persona": name}).raise_for_status()
    assert "namesakes" not in persona("entity_neighbors", entity="健太")
    persona("revise", key=key, restore=True)
    (other,) = persona("entity_neighbors", entity="健太")["namesakes"]
    (proposed,) = persona("merge_entities")["proposals"]
    assert other["id"] in (proposed["entity_id"], proposed["into_id"])
    merged = persona("merge_entities", entity=proposed["entity_id"], into=proposed["into_id"])["into"]
    assert (merged["name"], merged["mentions"]) == ("健太", 2)
