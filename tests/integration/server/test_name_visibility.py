"""Who sees which names: what only memories in the trash support is hidden at every door of the graph, and visible again when they are restored.

`HIDDEN` lists what a forgotten memory hides, `VISIBLE` what stays because something else supports it: each case runs through all doors.
"""

import json
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_mcp.graph.update.cooccurrence import weave

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
PEBBLE = ("健太は元気", "[[健太|Person]]が来た", {"content": "[[ダイズモ|Object]]を拾った", "relations": ["健太 > 飼っている > ダイズモ"]})
TANAKA = ("[[田中太郎|Person]]が来た", "[[田中太郎|たなっち]]と散歩した")
KEN = ("[[健太|Person]]が来た", "[[健太|ケン]]が歌った")
MERGED_KEN = ("[[健太|Person]]が来た", "[[ケン|Person]]と[[ケン|ボウ]]", "ボウが走った")
MERGE_KEN = ("merge_entities", {"entity": "ケン", "into": "健太"})
SOURCE, TAG = "密偵", "陰謀"


def filed(privacy_level):
    """A memory that alone has 密偵 as its source and 陰謀 as a tag."""
    memory = {"content": "黒川さんは会員だ。", "source": SOURCE, "tags": [TAG], "privacy_level": privacy_level}
    return ("[[花子|Person]]が来た", memory)


@dataclass(frozen=True)
class Case:
    """Memories, calls after them (`{n}` is the key of memory n; PATCH is the route), and which memory is then forgotten."""

    memories: tuple[Any, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    forgotten: int = 1


@dataclass(frozen=True)
class Hidden(Case):
    """`name` is hidden, also from questions about `asked`; before and after, it leads to the entity `entity`."""

    name: str = ""
    asked: str = ""
    entity: str = ""
    other: str = "健太"
    merges: tuple[str, ...] = ()
    # Doors that reveal it all the same: an export doesn't look at sources and tags.
    open_doors: tuple[str, ...] = ()
    # Whether refusals are those for a name that no memory ever contained.
    like_unknown: bool = False


@dataclass(frozen=True)
class Visible(Case):
    """What `entity_neighbors` answers about each name: fields of the entity, the names of its neighbors, or None for a refusal."""

    answers: dict[str, dict[str, Any] | list[str] | None] = field(default_factory=dict)


HIDDEN = {
    "an entity": Hidden(PEBBLE, forgotten=2, name="ダイズモ", asked="ダイズモ", entity="ダイズモ"),
    "a further name": Hidden(TANAKA, name="たなっち", asked="田中太郎", entity="田中太郎"),
    "a further name of an earlier version": Hidden(
        TANAKA, (("revise", {"key": "{1}", "content": "田中太郎と散歩した"}),), name="たなっち", asked="田中太郎", entity="田中太郎"
    ),
    "a merged entity": Hidden(
        (*PEBBLE, "[[ダイズ|Object]]は丸い"),
        (("merge_entities", {"entity": "ダイズモ", "into": "ダイズ"}),),
        forgotten=2,
        name="ダイズモ",
        asked="ダイズ",
        entity="ダイズ",
        merges=("ダイズモ",),
    ),
    "a merged entity that only a relation mentions": Hidden(
        ("[[健太|Person]]が来た", {"content": "楽しい日だった", "relations": ["ケンイチ > likes > 苺"]}),
        (("merge_entities", {"entity": "ケンイチ", "into": "健太"}),),
        name="ケンイチ",
        asked="健太",
        entity="健太",
        merges=("ケンイチ",),
    ),
} | {
    f"{what}, {level}": case
    for level in ("internal", "secret")
    for what, case in {
        "a source": Hidden(filed(level), name=SOURCE, asked=SOURCE, entity=SOURCE, other="花子", like_unknown=True),
        "a tag": Hidden(filed(level), name=TAG, asked=TAG, entity=TAG, other="花子", like_unknown=True),
        "a merged source": Hidden(
            filed(level),
            (("merge_entities", {"entity": SOURCE, "into": "花子"}),),
            name=SOURCE,
            asked=SOURCE,
            entity="花子",
            other="花子",
            merges=(SOURCE,),
            open_doors=("export of memories",),
        ),
        "a former tag": Hidden(
            filed(level), (("revise", {"key": "{1}", "tags": []}),), name=TAG, asked=TAG, entity=TAG, other="花子", like_unknown=True
        ),
    }.items()
}  # fmt: skip

VISIBLE = {
    "mentioned elsewhere": Visible((*PEBBLE, "ダイズモは石"), forgotten=2, answers={"ダイズモ": {"mentions": 1}}),
    "related by hand": Visible(PEBBLE, (("relate", {"relations": ["ダイズモ > is_a > 石"]}),), 2, {"ダイズモ": ["石"]}),
    "changed by hand": Visible(
        PEBBLE, (("PATCH", {"entity": "ダイズモ", "description": "丸い石"}),), 2, {"ダイズモ": {"description": "丸い石"}}
    ),
    "another case": Visible(
        ("[[田中太郎|Person]]は元気", "[[田中太郎|Kenny]]と散歩した", "[[田中太郎|kenny]]が来た"), answers={"kenny": {"name": "田中太郎"}}
    ),
    "another width": Visible(
        ("[[田中太郎|Person]]は元気", "[[田中太郎|Kenny]]と散歩した", "[[田中太郎|ＫＥＮＮＹ]]が来た"),
        answers={"ＫＥＮＮＹ": {"name": "田中太郎"}},
    ),
    "every form of a day": Visible(
        ("2025年10月17日に健太と会った", {"content": "10/17に健太と走った", "occurred_at": "2025-10-20"}),
        answers={form: {"name": "2025-10-17"} for form in ("10/17", "10月17日", "2025-10-17")},
    ),
    "in an earlier version of another memory": Visible(
        ("[[田中太郎|たなっち]]が来た", "たなっちと散歩した"),
        (("revise", {"key": "{0}", "content": "田中太郎が来た"}),),
        answers={"たなっち": {"name": "田中太郎"}},
    ),
    **{
        f"stated by another memory: {relation}": Visible(
            (*KEN, {"content": "楽しい日だった", "relations": [relation]}), answers={"ケン": {"aliases": ["ケン"]}}
        )
        for relation in ("ケン > likes > 苺", "苺 > belongs_to > ケン", "ケン > relates_to > 苺")
    },
    "a merged entity, stated by another memory": Visible(
        (*MERGED_KEN, {"content": "楽しい日だった", "relations": ["ケン > likes > 苺"]}),
        (MERGE_KEN,),
        answers={"健太": {"aliases": ["ケン", "ボウ"]}},
    ),
} | {
    f"{what}, {level}": case
    for level in ("internal", "secret")
    for what, case in {
        "filed under the same": Visible(
            (*filed(level), {"content": "元気だ", "source": SOURCE, "tags": [TAG]}),
            answers={SOURCE: {"name": SOURCE}, TAG: {"name": TAG}},
        ),
        "filed under the same with honorifics": Visible(
            (*filed(level), {"content": "元気だ", "source": f"{SOURCE}さん", "tags": [f"{TAG}様"]}),
            answers={SOURCE: {"name": SOURCE}, TAG: {"name": TAG}},
        ),
        "a source in the text of another memory": Visible(
            (*filed(level), f"[[{SOURCE}]]が来た"), answers={SOURCE: {"mentions": 1}, TAG: None}
        ),
        "a source related and a tag described by hand": Visible(
            filed(level),
            (("relate", {"relations": [f"{SOURCE} > knows > 花子"]}), ("PATCH", {"entity": TAG, "description": "謎"})),
            answers={SOURCE: ["花子"], TAG: {"description": "謎"}},
        ),
        "a merged source of another memory": Visible(
            (*filed(level), {"content": "元気だ", "source": SOURCE}),
            (("merge_entities", {"entity": SOURCE, "into": "花子"}),),
            answers={SOURCE: {"name": "花子", "aliases": [SOURCE]}},
        ),
    }.items()
}  # fmt: skip


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph", "upkeep"]) as served:
        yield served


@pytest.fixture
def era():
    """One protocol era: what is visible doesn't depend on it."""
    return "auto"


@pytest.fixture
def get(http, name):
    """get(path, **params): the answer as text, whatever its status."""

    def get(path, **params):
        return http.get(path, params=params, headers={"X-Persona": name}).text

    return get


@pytest.fixture
def tell(persona, api, server, name):
    """tell(case): stores the memories of a case and makes its calls. Returns the key of the memory to forget."""

    def tell(case):
        memories = [{"content": memory} if isinstance(memory, str) else memory for memory in case.memories]
        keys = [persona("remember", **memory)["key"] for memory in memories]
        with server.runtime.personas.writing(name) as opened:
            while weave(opened, NOON):
                pass
        for tool, arguments in case.calls:
            sent = {key: value.format(*keys) if isinstance(value, str) else value for key, value in arguments.items()}
            if tool == "PATCH":
                api("PATCH", "entity", **sent)
            else:
                persona(tool, **sent)
        return keys[case.forgotten]

    return tell


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
        repeats += [f"'{asked}'", f"'{asked}の'", f"{asked}のことは"]
    for repeat in repeats:
        answers = {door: text.replace(repeat, "") for door, text in answers.items()}
    escaped = json.dumps(case.name).strip('"')
    return sorted(door for door, text in answers.items() if case.name in text or escaped in text)


@pytest.mark.parametrize("case", HIDDEN.values(), ids=HIDDEN)
def test_what_only_the_trash_supports_is_hidden_at_every_door_until_it_is_restored(persona, get, tell, doors, case):
    key = tell(case)
    before = doors(case)
    assert f"entity of {case.asked}" in revealing(case, before)
    assert [merge["entity"] for merge in persona("merge_entities")["merges"]] == list(case.merges)
    persona("forget", keys=[key])
    while_forgotten = doors(case) | {
        "merge": persona.refusal("merge_entities", entity=case.name, into=case.other),
        "unrelate": persona.refusal("unrelate", relation=f"{case.name} > knows > {case.other}"),
    }
    assert revealing(case, while_forgotten) == list(case.open_doors)
    assert json.loads(get("/api/graph/entities", query=case.name))["in_all"] == 0
    persona("revise", key=key, restore=True)
    after = doors(case)
    changing = {"export of memories"} | {door for door in before if door.startswith("recall")}
    assert set(revealing(case, after)) - changing == set(revealing(case, before)) - changing
    assert json.loads(after[f"entity of {case.name}"])["entity"] == json.loads(before[f"entity of {case.name}"])["entity"]
    assert persona("entity_neighbors", entity=case.name)["entity"]["name"] == case.entity
    assert [merge["entity"] for merge in persona("merge_entities")["merges"]] == list(case.merges)


@pytest.mark.parametrize("case", [case for case in HIDDEN.values() if case.like_unknown])
def test_the_words_are_those_for_a_name_that_no_memory_ever_contained(persona, tell, case):
    def refusals(name):
        calls = {
            "entity_neighbors": {"entity": name},
            "find_path": {"source": name, "target": case.other},
            "merge_entities": {"entity": name, "into": case.other},
        }
        return [persona.refusal(tool, **arguments).replace(name, "") for tool, arguments in calls.items()]

    persona("forget", keys=[tell(case)])
    assert refusals(case.name) == refusals("無名")


@pytest.mark.parametrize("case", VISIBLE.values(), ids=VISIBLE)
def test_what_something_else_supports_stays_visible(persona, tell, case):
    persona("forget", keys=[tell(case)])
    for asked, expected in case.answers.items():
        if expected is None:
            assert "no name is similar" in persona.refusal("entity_neighbors", entity=asked)
            continue
        answer = persona("entity_neighbors", entity=asked)
        if isinstance(expected, list):
            assert [neighbor["name"] for neighbor in answer["neighbors"]] == expected
        else:
            assert {key: answer["entity"].get(key) for key in expected} == expected


@pytest.fixture
def secret(persona):
    persona("remember", content="健太は元気")
    persona("remember", content="[[健太|Person]]が来た")
    return persona("remember", content="[[ダイズモ|Object]]を拾った", relations=["健太 > 飼っている > ダイズモ"])["key"]


def test_a_merge_does_not_tell_a_further_name_that_only_the_trash_holds(persona):
    persona("remember", content="[[田中太郎|Person]]が来た。[[タロウ|Person]]も来た")
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    persona("forget", keys=[key])
    merged = json.dumps(persona("merge_entities", entity="タロウ", into="田中太郎"), ensure_ascii=False)
    assert "タロウ" in merged
    assert "たなっち" not in merged


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


def test_a_name_by_which_another_memory_relates_somebody_outlives_the_memory_that_is_erased(persona, erase):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("remember", content="楽しい日だった", relations=["ケン > likes > 苺"])
    erase(key)
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


@pytest.mark.parametrize("privacy_level", ["internal", "secret"])
def test_whoever_is_made_by_such_a_name_is_the_one_that_comes_back(persona, tell, http, name, privacy_level):
    key = tell(Case(filed(privacy_level)))
    persona("forget", keys=[key])
    http.post("/api/graph/entities", json={"name": SOURCE, "type": "Person"}, headers={"X-Persona": name}).raise_for_status()
    persona("revise", key=key, restore=True)
    assert "namesakes" not in persona("entity_neighbors", entity=SOURCE)


@pytest.mark.parametrize("privacy_level", ["internal", "secret"])
def test_a_merged_source_of_another_memory_stays_listed(persona, tell, api, privacy_level):
    persona("forget", keys=[tell(VISIBLE[f"a merged source of another memory, {privacy_level}"])])
    assert api("GET", "entities", query=SOURCE)["in_all"] == 1


@pytest.fixture
def aliases(api):
    """aliases(entity): its further names, as the route tells them."""
    return lambda entity: api("GET", "entity", entity=entity)["entity"].get("aliases", [])


@pytest.fixture
def walk(persona):
    """The memory that alone says たなっち of 田中太郎."""
    persona("remember", content="[[田中太郎|Person]]が来た")
    return persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]


def test_a_change_of_something_else_does_not_tell_what_only_the_trash_calls_somebody(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", importance=0.9)
    persona("forget", keys=[walk])
    assert aliases("田中太郎") == []
    changed = api("PATCH", "entity", entity="田中太郎", description="隣の人")
    assert "たなっち" not in json.dumps(changed, ensure_ascii=False)
    assert aliases("田中太郎") == []
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == ["たなっち"]


def test_a_further_name_that_was_written_by_hand_stays(persona, api, aliases):
    persona("remember", content="[[田中太郎|Person]]が来た")
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち"])
    key = persona("remember", content="[[田中太郎|たなっち]]と散歩した")["key"]
    persona("forget", keys=[key])
    assert aliases("田中太郎") == ["たなっち"]


def test_a_list_that_repeats_a_name_of_a_memory_does_not_make_it_one_of_the_hand(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち", "タロさん"])
    persona("forget", keys=[walk])
    assert aliases("田中太郎") == ["タロさん"]


def test_a_name_that_only_the_trash_holds_is_told_again_once_somebody_writes_it(persona, api, aliases, walk):
    persona("forget", keys=[walk])
    api("PATCH", "entity", entity="田中太郎", aliases=["たなっち"])
    assert aliases("田中太郎") == ["たなっち"]


def test_whoever_is_made_by_hand_keeps_every_name_that_was_given(persona, api, aliases):
    api("POST", "entities", name="田中太郎", type="Person", aliases=["たなっち"])
    key = persona("remember", content="たなっちは[[田中太郎|タロさん]]とも言う")["key"]
    assert aliases("田中太郎") == ["たなっち", "タロさん"]
    persona("forget", keys=[key])
    assert aliases("田中太郎") == ["たなっち"]


def test_to_send_back_the_names_that_are_told_loses_none_that_the_trash_holds(persona, api, aliases, walk):
    persona("forget", keys=[walk])
    api("PATCH", "entity", entity="田中太郎", aliases=[*aliases("田中太郎"), "タロさん"])
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == ["たなっち", "タロさん"]
    assert persona("entity_neighbors", entity="たなっち")["entity"]["name"] == "田中太郎"


def test_a_name_that_is_told_and_left_out_is_gone(persona, api, aliases, walk):
    api("PATCH", "entity", entity="田中太郎", aliases=["タロさん"])
    api("PATCH", "entity", entity="田中太郎", aliases=[])
    assert aliases("田中太郎") == []
    persona("forget", keys=[walk])
    persona("revise", key=walk, restore=True)
    assert aliases("田中太郎") == []


def test_nobody_is_listed_by_a_name_that_only_the_trash_holds(persona, api, walk):
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
def test_names_by_hand_are_told_where_they_are_imported_and_those_of_the_trash_are_not(persona, api, http, name, walk, include_deleted):
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


def test_an_older_export_tells_nothing_of_who_wrote_a_name_so_that_all_of_it_are_of_the_hand(persona, api, http, name):
    lines = [
        {"entity": "田中太郎", "type": "Person", "aliases": ["たなっち"], "made_by": "user"},
        {"content": "[[田中太郎|たなっち]]と散歩した", "key": "memory_20251001000000_aaaaaaaa", "deleted_at": "2025-10-20T00:00:00+00:00"},
    ]
    sent = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    assert http.post("/api/import", content=sent.encode(), headers={"X-Persona": name}).json()["refused"] == 0
    assert api("GET", "entity", entity="田中太郎")["entity"]["aliases"] == ["たなっち"]


def test_names_by_hand_are_told_where_a_persona_is_merged_into_another(persona, api, http, name, walk):
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


def test_nobody_is_suggested_for_a_name_that_only_the_trash_holds(persona, walk):
    persona("forget", keys=[walk])
    for asked in ("たなっち", "たなっちの", "なっち"):
        assert "田中太郎" not in persona.refusal("entity_neighbors", entity=asked)


def test_a_name_of_one_who_was_merged_is_hidden_unless_somebody_wrote_it(persona, api, aliases, walk):
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


def test_nobody_is_suggested_for_one_who_was_merged_and_is_in_the_trash(persona):
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


def test_whoever_was_given_a_name_of_the_trash_is_meant_by_it(persona, passed_on):
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


def test_whoever_was_related_by_a_name_is_told_by_it(persona):
    persona("remember", content="[[健太|Person]]が来た")
    key = persona("remember", content="[[健太|ケン]]が歌った")["key"]
    persona("forget", keys=[key])
    persona("relate", relations=["ケン > likes > 苺"])
    assert persona("entity_neighbors", entity="ケン")["entity"]["name"] == "健太"
    assert persona("unrelate", relation="ケン > likes > 苺")["unrelated"] is True


def test_whoever_was_related_before_a_merge_is_told_by_that_name(persona):
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


def test_whoever_has_a_name_with_another_honorific_is_found_behind_one_of_the_trash(persona, api):
    api("POST", "entities", name="モモちゃん", type="Object")
    persona("relate", relations=["モモちゃん > likes > 苺"])
    key = persona("remember", content="[[モモ|Person]]が来た")["key"]
    assert persona("entity_neighbors", entity="モモ")["entity"]["name"] == "モモ"
    persona("forget", keys=[key])
    assert persona("entity_neighbors", entity="モモ")["entity"]["name"] == "モモちゃん"
    assert "モモちゃん > likes > 苺" in json.dumps(persona("recall", query="モモは？"), ensure_ascii=False)


def test_one_who_is_made_anew_without_a_type_keeps_the_one_that_the_trash_knows(persona, api):
    key = persona("remember", content="[[田中誠|Person]]が来た")["key"]
    persona("forget", keys=[key])
    api("POST", "entities", name="田中誠")
    persona("revise", key=key, restore=True)
    assert api("GET", "entity", entity="田中誠")["entity"]["type"] == "Person"


def test_a_name_that_several_have_in_the_trash_tells_of_none_of_them(persona):
    for one in ("健太", "健二"):
        persona("remember", content=f"[[{one}|Person]]が来た")
        persona("forget", keys=[persona("remember", content=f"[[{one}|ケン]]が歌った")["key"]])
    refused = persona.refusal("unrelate", relation="ケン > likes > 苺")
    assert "健太" not in refused
    assert "健二" not in refused


def test_whoever_is_given_the_name_of_another_is_told_whose_it_is(persona, api, aliases):
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


def test_nobody_is_told_of_a_namesake_of_whom_only_the_trash_knows(persona, api):
    persona("remember", content="[[きなこ|Object]]が寝た")
    key = persona("remember", content="[[みどり|Organization]]が開いた")["key"]
    persona("forget", keys=[key])
    assert api("PATCH", "entity", entity="きなこ", name="みどり").keys() == {"persona", "entity"}


def test_whoever_is_made_with_the_name_of_another_type_is_told_of_the_other(persona, api):
    persona("remember", content="[[きなこ|Object]]が寝た")
    assert "きなこ (Object " in api("POST", "entities", name="きなこ", type="Person")["note"]
    assert "note" not in api("PATCH", "entity", entity=api("GET", "entities", query="きなこ")["entities"][0]["id"], description="猫")


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
