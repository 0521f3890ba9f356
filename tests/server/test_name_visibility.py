"""Who sees which names: what only memories in the trash support is hidden at every door of the graph, and visible again when they are restored.

`HIDDEN` lists what a forgotten memory hides, `VISIBLE` what stays because something else supports it: each case runs through all doors.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_mcp.graph.update.cooccurrence import update_graph

pytestmark = pytest.mark.slow  # a persona with a graph for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
PEBBLE = ("健太は元気", "[[健太|Person]]が来た", {"content": "[[ダイズモ|Object]]を拾った", "relations": ["健太 > 飼っている > ダイズモ"]})
TANAKA = ("[[田中太郎|Person]]が来た", "[[田中太郎|たなっち]]と散歩した")
KEN = ("[[健太|Person]]が来た", "[[健太|ケン]]が歌った")
MERGED_KEN = ("[[健太|Person]]が来た", "[[ケン|Person]]と[[ケン|ボウ]]", "ボウが走った")
MERGE_KEN = ("merge_entities", {"entity": "ケン", "into": "健太"})
SOURCE, TAG = "密偵", "陰謀団"


def filed(privacy_level):
    """A memory that alone has 密偵 as its source and 陰謀団 as a tag."""
    memory = {"content": "黒川さんは会員だ。", "source": SOURCE, "tags": [TAG], "privacy_level": privacy_level}
    return ("[[花子|Person]]が来た", memory)


def parameters(cases):
    """The cases by their names; of those that differ only by the level of a memory, `make check` tries one."""
    return [pytest.param(case, id=name, marks=[pytest.mark.slow] if name.endswith(", secret") else []) for name, case in cases.items()]


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
    **{
        f"written as {form}": Visible(
            ("[[田中太郎|Kenny]]と散歩した", f"[[田中太郎|{form}]]が来た"), forgotten=0, answers={form: {"name": "田中太郎"}}
        )
        for form in ("kenny", "ＫＥＮＮＹ")
    },
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
        if any("source" in memory for memory in memories):
            with server.runtime.personas.writing(name) as opened:
                while update_graph(opened, NOON):  # the background creates entities of sources and tags
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
        repeats += [f"'{asked}'", f"'{asked}の'", f"{asked}のことは", f"unmatched: {asked}"]
    for repeat in repeats:
        answers = {door: text.replace(repeat, "") for door, text in answers.items()}
    escaped = json.dumps(case.name).strip('"')
    return sorted(door for door, text in answers.items() if case.name in text or escaped in text)


@pytest.mark.parametrize("case", parameters(HIDDEN))
@pytest.mark.slow
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
    assert revealing(case, while_forgotten) == []
    assert json.loads(get("/api/graph/entities", query=case.name))["in_all"] == 0
    persona("revise", key=key, restore=True)
    after = doors(case)
    changing = {"export of memories"} | {door for door in before if door.startswith("recall")}
    assert set(revealing(case, after)) - changing == set(revealing(case, before)) - changing
    assert json.loads(after[f"entity of {case.name}"])["entity"] == json.loads(before[f"entity of {case.name}"])["entity"]
    assert persona("entity_neighbors", entity=case.name)["entity"]["name"] == case.entity
    assert [merge["entity"] for merge in persona("merge_entities")["merges"]] == list(case.merges)


@pytest.mark.parametrize("case", parameters({name: case for name, case in HIDDEN.items() if case.like_unknown}))
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


@pytest.mark.parametrize("case", parameters(VISIBLE))
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
def secret(tell):
    """The key of the memory that alone mentions ダイズモ."""
    return tell(HIDDEN["an entity"])


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
def two_are_one(tell):
    """ケン, also named ボウ, is merged into 健太; the key of the memory that alone contains ケン."""
    return tell(Case(MERGED_KEN, (MERGE_KEN,)))


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
