"""Types of entities: set by hand, stated by texts, taken over from merged entities; and former types, here and after an export or a merge."""

import json

import pytest

pytestmark = pytest.mark.slow  # a persona with a graph for each test


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), toolsets=["core", "graph"]) as served:
        yield served


@pytest.fixture
def era():
    """One protocol era: types don't depend on it."""
    return "auto"


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


def test_a_type_of_one_who_was_merged_and_is_erased_goes_with_him(persona, type_of, erase):
    persona("remember", content="[[健太]]が来た")
    key = persona("remember", content="[[ケン|Person]]が来た")["key"]
    persona("merge_entities", entity="ケン", into="健太")
    erase(key)
    assert type_of("健太") == "Concept"


@pytest.fixture
def called(api, name):
    """called(query): the entities whose names hold it, each with its type and how many memories name it."""

    def called(query, persona=name):
        found = api("GET", "entities", persona, query=query)["entities"]
        return sorted((one["name"], one["type"], one["mentions"]) for one in found)

    return called


@pytest.fixture
def kinako(persona, api):
    """きなこ was marked as an Object, and somebody said since that it is a Pet."""
    persona("remember", content="子猫の名前は[[きなこ|Object]]に決めた。")
    persona("relate", relations=["きなこ > 通院 > みどり"])
    api("POST", "types", kind="entity", name="Pet", display_name="ペット")
    api("PATCH", "entity", entity="きなこ", type="Pet")


@pytest.fixture
def moved(http, name):
    """moved(to): the whole of the persona, exported and imported there. Returns what was exported."""

    def moved(to, source=name):
        exported = exported_lines(source)
        answer = http.post("/api/import", content=exported, headers={"X-Persona": to})
        assert answer.status_code == 200, answer.text
        assert answer.json()["refused"] == 0
        return exported

    def exported_lines(source):
        asked = {"include_deleted": "true", "include_secret": "true", "include_versions": "true"}
        answer = http.get("/api/export", params=asked, headers={"X-Persona": source})
        assert answer.status_code == 200, answer.text
        return answer.content

    moved.exported = exported_lines
    return moved


def said(exported):
    """The lines that are no memories."""
    return [line for line in map(json.loads, exported.splitlines()) if "content" not in line]


def test_a_mark_of_the_type_that_it_had_means_the_one_whose_type_was_changed(persona, called, kinako):
    persona("remember", content="[[きなこ|Object]]が寝た。")
    assert called("きなこ") == [("きなこ", "Pet", 2)]


@pytest.mark.parametrize(("marked", "told"), [("Object", "Pet"), ("Person", "Object"), ("Concept", "Person")])
def test_a_graph_is_the_same_elsewhere_after_a_type_was_changed(persona, api, called, moved, name, marked, told):
    persona("remember", content=f"子猫の名前は[[きなこ|{marked}]]に決めた。")
    persona("relate", relations=["きなこ > 通院 > みどり"])
    api("POST", "types", kind="entity", name="Pet", display_name="ペット")
    api("PATCH", "entity", entity="きなこ", type=told)
    exported = moved(f"{name}-copy")
    assert called("きなこ", f"{name}-copy") == called("きなこ") == [("きなこ", told, 1)]
    assert persona("entity_neighbors", entity="きなこ")["neighbors"][0]["name"] == "みどり"
    assert said(moved.exported(f"{name}-copy")) == said(exported)


def test_a_graph_is_the_same_elsewhere_where_a_rule_told_the_type_that_was_changed(persona, api, called, moved, name):
    persona("remember", content="福島さんが来た。")
    api("PATCH", "entity", entity="福島", type="Location")
    exported = moved(f"{name}-copy")
    assert called("福島", f"{name}-copy") == called("福島") == [("福島", "Location", 1)]
    assert said(moved.exported(f"{name}-copy")) == said(exported)


def test_a_graph_is_the_same_elsewhere_where_a_mark_told_another_type_than_an_earlier_one(persona, called, moved, name):
    persona("remember", content="[[愛|Concept]]とは何か。")
    persona("remember", content="[[愛|Person]]が来た。")
    persona("relate", relations=["愛 > likes > 苺"])
    exported = moved(f"{name}-copy")
    assert called("愛", f"{name}-copy") == called("愛") == [("愛", "Person", 2)]
    assert said(moved.exported(f"{name}-copy")) == said(exported)


def test_an_export_after_the_change_changes_the_copy_that_was_made_before_it(persona, api, called, moved, name):
    persona("remember", content="子猫の名前は[[きなこ|Object]]に決めた。")
    moved(f"{name}-copy")
    api("PATCH", "entity", entity="きなこ", type="Person")
    for _ in range(2):
        moved(f"{name}-copy")
        assert called("きなこ", f"{name}-copy") == [("きなこ", "Person", 1)]


def test_an_export_before_the_change_makes_no_second_one(persona, api, called, moved, http, name):
    persona("remember", content="子猫の名前は[[きなこ|Object]]に決めた。")
    persona("relate", relations=["きなこ > 通院 > みどり"])
    before = moved.exported(name)
    api("PATCH", "entity", entity="きなこ", type="Person")
    http.post("/api/import", content=before, headers={"X-Persona": name}).raise_for_status()
    assert called("きなこ") == [("きなこ", "Person", 1)]


@pytest.mark.parametrize("known", [False, True], ids=["unknown there", "marked there, too"])
def test_a_changed_type_is_the_same_where_a_persona_is_merged_into_another(persona, api, called, http, name, known, kinako):
    target = f"{name}-into"
    api("POST", "entities", target, name="苺")
    if known:
        line = json.dumps({"content": "隣の[[きなこ|Object]]が来た。"}).encode()
        http.post("/api/import", content=line, headers={"X-Persona": target}).raise_for_status()
    http.post("/api/persona/merge", json={"into": target}, headers={"X-Persona": name}).raise_for_status()
    assert api("GET", "entity", target, entity="きなこ")["entity"]["type"] == "Pet"
    line = json.dumps({"content": "[[きなこ|Object]]が寝た。"}).encode()
    http.post("/api/import", content=line, headers={"X-Persona": target}).raise_for_status()
    assert [one[:2] for one in called("きなこ", target)] == [("きなこ", "Pet")]


def test_two_namesakes_stay_two_when_the_type_of_one_was_changed(persona, api, called, moved, name, kinako):
    api("POST", "entities", name="きなこ", type="Object")
    persona("remember", content="[[きなこ|Object]]を買った。")
    persona("remember", content="[[きなこ|Pet]]が寝た。")
    assert called("きなこ") == [("きなこ", "Object", 1), ("きなこ", "Pet", 2)]
    exported = moved(f"{name}-copy")
    assert [one[:2] for one in called("きなこ", f"{name}-copy")] == [("きなこ", "Object"), ("きなこ", "Pet")]
    assert said(moved.exported(f"{name}-copy")) == said(exported)


def test_what_was_marked_before_a_type_was_put_back_means_the_same_one_elsewhere(persona, api, called, moved, name, kinako):
    persona("remember", content="[[きなこ|Pet]]が寝た。")
    api("PATCH", "entity", entity="きなこ", type="Object")
    moved(f"{name}-copy")
    assert called("きなこ", f"{name}-copy") == called("きなこ") == [("きなこ", "Object", 2)]


def test_a_mark_of_the_type_that_one_had_means_him_when_he_is_merged_with_another(persona, api, called, kinako):
    api("POST", "entities", name="黄粉", type="Pet")
    persona("merge_entities", entity="きなこ", into="黄粉")
    persona("remember", content="[[きなこ|Object]]が寝た。")
    assert called("きなこ") == [("黄粉", "Pet", 2)]
