"""Who sees which names: what only memories in the trash support is hidden at every door of the graph, and visible again when they are restored."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from graph_stories import create, forget, merge, restore, revise, say, told, woven

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "graph", "upkeep"])]  # a persona with a graph for each test

SOURCE, TAG = "密偵", "陰謀団"
PEBBLE = [say("健太は元気", "[[健太|Person]]が来た"), say("[[ダイズモ|Object]]を拾った", relations=["健太 > 飼っている > ダイズモ"])]
WALK = [say("[[田中太郎|Person]]が来た", "[[田中太郎|たなっち]]と散歩した")]


def filed(privacy_level):
    """A memory that alone has 密偵 as its source and 陰謀団 as a tag."""
    return [say("[[花子|Person]]が来た"), say("黒川さんは会員だ。", source=SOURCE, tags=[TAG], privacy_level=privacy_level), woven()]


@dataclass(frozen=True)
class Hidden:
    """After these steps, memory `forgotten` is forgotten: `name` is hidden, also from questions about `asked`; before and after, it leads to `entity`."""

    steps: list[Any]
    name: str
    asked: str
    entity: str
    other: str = "健太"
    forgotten: int = 1
    merges: tuple[str, ...] = ()
    # Whether refusals are those for a name that no memory ever contained.
    like_unknown: bool = False


HIDDEN = {
    "an entity": Hidden(PEBBLE, "ダイズモ", "ダイズモ", "ダイズモ", forgotten=2),
    "a further name": Hidden(WALK, "たなっち", "田中太郎", "田中太郎"),
    "a further name of an earlier version": Hidden([*WALK, revise(1, content="田中太郎と散歩した")], "たなっち", "田中太郎", "田中太郎"),
    "a merged entity": Hidden(
        [*PEBBLE, say("[[ダイズ|Object]]は丸い"), merge("ダイズモ", "ダイズ")], "ダイズモ", "ダイズ", "ダイズ", forgotten=2, merges=("ダイズモ",)),
    "a merged entity that only a relation mentions": Hidden(
        [say("[[健太|Person]]が来た"), say("楽しい日だった", relations=["ケンイチ > likes > 苺"]), merge("ケンイチ", "健太")],
        "ケンイチ", "健太", "健太", merges=("ケンイチ",)),
} | {
    f"{what}, {level}": case
    for level in ("internal", "secret")
    for what, case in {
        "a source": Hidden(filed(level), SOURCE, SOURCE, SOURCE, "花子", like_unknown=True),
        "a tag": Hidden(filed(level), TAG, TAG, TAG, "花子", like_unknown=True),
        "a merged source": Hidden([*filed(level), merge(SOURCE, "花子")], SOURCE, SOURCE, "花子", "花子", merges=(SOURCE,)),
        "a former tag": Hidden([*filed(level), revise(1, tags=[])], TAG, TAG, TAG, "花子", like_unknown=True),
    }.items()
}  # fmt: skip


@pytest.fixture
def get(http, name):
    """get(path, **params): the answer as text, whatever its status."""

    def get(path, **params):
        return http.get(path, params=params, headers={"X-Persona": name}).text

    return get


@pytest.fixture
def doors(get, persona):
    """doors(case): what every door answers about the case's names, by door."""

    def tool(name, **arguments):
        return persona.result(name, arguments).content[0].text

    def doors(case):
        answers = {
            "snapshot": get("/api/graph/snapshot", format="json"),
            "statistics": get("/api/graph/statistics"),
            "analytics": get("/api/graph/analytics"),
            "communities": get("/api/graph/communities"),
            "merges": get("/api/graph/merges"),
            "graph export": get("/api/graph/export", format="json"),
            "export of memories": get("/api/export"),
            "graph_snapshot": tool("graph_snapshot"),
            "merge_entities": tool("merge_entities"),
            "organize": tool("organize"),
        }
        for asked in {case.asked, case.name}:
            answers |= {
                f"entity of {asked}": get("/api/graph/entity", entity=asked),
                f"entity of {asked[0]}": get("/api/graph/entity", entity=asked[0]),
                f"suggestions for {asked}の": get("/api/graph/entity", entity=f"{asked}の"),
                f"entities with {asked[0]}": get("/api/graph/entities", query=asked[0]),
                f"entities with {asked[:2]}": get("/api/graph/entities", query=asked[:2]),
                f"neighbors of {asked}": get("/api/graph/neighbors", entity=asked),
                f"paths from {asked}": get("/api/graph/paths", source=asked, target=case.other),
                f"entity_neighbors of {asked}": tool("entity_neighbors", entity=asked),
                f"entity_neighbors of {asked[0]}": tool("entity_neighbors", entity=asked[0]),
                f"entity_neighbors of {asked}の": tool("entity_neighbors", entity=f"{asked}の"),
                f"find_path from {asked}": tool("find_path", source=asked, target=case.other),
                f"recall of {asked}": tool("recall", query=f"{asked}のことは？", mode="graph"),
            }
        return answers

    return doors


def revealing(case, answers):
    """The doors that reveal the name, apart from repeating what they were asked."""
    repeats = [f"{case.name} > knows > {case.other}"]
    for asked in (case.asked, case.name):
        repeats += [f"'{asked}'", f"'{asked}の'", f"{asked}のことは", f"unmatched: {asked}"]
    for repeat in repeats:
        answers = {door: text.replace(repeat, "") for door, text in answers.items()}
    escaped = json.dumps(case.name).strip('"')
    return sorted(door for door, text in answers.items() if case.name in text or escaped in text)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in HIDDEN.items()])
def test_what_only_the_trash_supports_is_hidden_at_every_door_until_it_is_restored(it, persona, get, doors, case):
    it.does(*case.steps)
    before = doors(case)
    assert f"entity of {case.asked}" in revealing(case, before)
    assert [merge["entity"] for merge in persona("merge_entities")["merges"]] == list(case.merges)
    it.does(forget(case.forgotten))
    while_forgotten = doors(case) | {
        "merge": persona.refusal("merge_entities", entity=case.name, into=case.other),
        "unrelate": persona.refusal("unrelate", relation=f"{case.name} > knows > {case.other}"),
    }
    assert revealing(case, while_forgotten) == []
    assert json.loads(get("/api/graph/entities", query=case.name))["in_all"] == 0
    if case.like_unknown:
        assert refusals(persona, case.name, case.other) == refusals(persona, "無名", case.other)
    it.does(restore(case.forgotten))
    after = doors(case)
    changing = {"export of memories"} | {door for door in before if door.startswith("recall")}
    assert set(revealing(case, after)) - changing == set(revealing(case, before)) - changing
    assert json.loads(after[f"entity of {case.name}"])["entity"] == json.loads(before[f"entity of {case.name}"])["entity"]
    assert persona("entity_neighbors", entity=case.name)["entity"]["name"] == case.entity
    assert [merge["entity"] for merge in persona("merge_entities")["merges"]] == list(case.merges)


def refusals(persona, name, other):
    """The words about a name that is not known, without it."""
    calls = {
        "entity_neighbors": {"entity": name},
        "find_path": {"source": name, "target": other},
        "merge_entities": {"entity": name, "into": other},
    }
    return [persona.refusal(tool, **arguments).replace(name, "") for tool, arguments in calls.items()]


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


def test_whoever_was_made_by_hand_stays_listed_when_it_is_one_with_somebody_of_the_trash(it, persona, api):
    it.does(*PEBBLE, create("マル", type="Object"), merge("マル", "ダイズモ"), forget(2))
    listed, drawn = api("GET", "entities", query="マル"), persona("graph_snapshot", format="json")
    assert (listed["in_all"], [one["aliases"] for one in listed["entities"]]) == (1, [["マル"]])
    assert [one["aliases"] for one in drawn["entities"] if one["name"] == "ダイズモ"] == [["マル"]]
    assert api("GET", "statistics")["entities"] == drawn["entities_in_all"]


def test_somebody_who_is_given_the_name_of_one_in_the_trash_is_his_namesake_when_he_comes_back_and_both_may_be_made_one(it, persona, api):
    it.does(say("[[健太|Person]]が来た", "[[健二|Person]]が歌った"), forget(0))
    api("PATCH", "entity", entity="健二", name="健太")
    it.does(told("健太", others=[]), restore(0))
    (other,) = persona("entity_neighbors", entity="健太")["namesakes"]
    (proposed,) = persona("merge_entities")["proposals"]
    assert other["id"] in (proposed["entity_id"], proposed["into_id"])
    it.does(merge(proposed["entity_id"], proposed["into_id"], name="健太", mentions=2))
