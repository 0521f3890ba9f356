"""Whom a name means and what type it has: after memories are forgotten, restored and erased, after merges, and where a persona is moved.

A story of `STORIES` is a row of steps, each a call or what is told then. What somebody wrote by hand stays, whatever is forgotten or erased; what only
memories say is hidden with them.
"""

import json
import sqlite3

import pytest
from graph_stories import (
    WHOLE,
    change,
    copied,
    create,
    erased,
    forget,
    known,
    listed,
    merge,
    merged,
    neighbors,
    proposed,
    recalled,
    refused,
    relate,
    restore,
    revise,
    say,
    step,
    told,
    undo,
    unrelate,
    woven,
)

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "graph"])]  # a persona with a graph for each test


T, N, A, W = "田中太郎", "たなっち", "[[田中太郎|Person]]が来た", "[[田中太郎|たなっち]]と散歩した"
KEN, PET = "ケン > likes > 苺", "きなこ > 通院 > みどり"
SOURCE, TAG = "密偵", "陰謀団"
PEBBLE = [say("健太は元気", "[[健太|Person]]が来た"), say("[[ダイズモ|Object]]を拾った", relations=["健太 > 飼っている > ダイズモ"])]
NICKNAMED, MERGED = (
    [say("[[健太|Person]]が来た", "[[健太|ケン]]が歌った")],
    [say("[[健太|Person]]が来た", "[[ケン|Person]]と[[ケン|ボウ]]", "ボウが走った")],
)
OBJECT = "子猫の名前は[[きなこ|Object]]に決めた。"


@step
def kinako(it, type_="Pet", marked="Object"):
    """きなこ is marked with a type, and somebody says since that it is of another."""
    it.api("POST", "types", kind="entity", name="Pet", display_name="ペット")
    it.does(say(OBJECT.replace("Object", marked)), relate(PET), change("きなこ", type=type_))


WRITTEN = {
    "an unrelated change reveals no name in the trash": [
        say(A, W), change(T, importance=0.9), forget(1), told(T, aliases=[]), change(T, unsaid=N, description="隣の人"), told(T, aliases=[]),
        restore(1), told(T, aliases=[N])],
    "a written name stays": [say(A), change(T, aliases=[N]), say(W), forget(1), told(T, aliases=[N])],
    "repeating a name of a memory does not make it written": [say(A, W), change(T, aliases=[N, "タロさん"]), forget(1), told(T, aliases=["タロさん"])],
    "a name only in the trash is visible once written": [say(A, W), forget(1), change(T, aliases=[N]), told(T, aliases=[N])],
    "whoever is created keeps all given names": [
        create(T, type="Person", aliases=[N]), say("たなっちは[[田中太郎|タロさん]]とも言う"), told(T, aliases=[N, "タロさん"]), forget(0), told(T, aliases=[N])],
    "sending back the visible names keeps those in the trash": [
        say(A, W), forget(1), told(T, aliases=[]), change(T, aliases=["タロさん"]), restore(1), told(T, aliases=[N, "タロさん"]), told(N, name=T)],
    "a visible name that is left out is removed": [
        say(A, W), change(T, aliases=["タロさん"]), change(T, aliases=[]), told(T, aliases=[]), forget(1), restore(1), told(T, aliases=[])],
    "a list shows no name that is only in the trash": [
        say(A, W, "[[たなべ|Person]]も来た"), listed(N, T), forget(1), listed(N), listed("ﾀﾅｯﾁ"), listed("なっ"), listed("た", "たなべ"), listed("田中", T),
        restore(1), listed(N, T)],
    "a search along the graph finds nobody by a name that only the trash holds": [
        say(A, W), recalled("たなっちのことは？", W, A, mode="graph"), relate("田中太郎 > likes > 苺"), forget(1), recalled("たなっちのことは？", mode="graph"),
        restore(1), recalled("たなっちのことは？", W, A, mode="graph")],
    "a merge is not proposed for a name that only the trash holds": [
        say("[[健太|ケン]]が来た", "[[健二|ケン]]が来た", "[[健二]]と走った"), proposed({"健太", "健二"}), forget(1), proposed(), restore(1), proposed({"健太", "健二"})],
    "a relation is not taken back by a name that only the trash holds": [
        say(A, W), relate("田中太郎 > likes > 苺"), forget(1), refused("unrelate", "not known", relation="たなっち > likes > 苺"), unrelate("田中太郎 > likes > 苺")],
    "a name only in the trash gets no suggestions": [
        say(A, W), forget(1), *(refused("entity_neighbors", unsaid=[T], entity=asked) for asked in (N, "たなっちの", "なっち"))],
    "names of a merged entity are hidden unless written": [
        say(A, W), create("タロウ", type="Person", aliases=["タロさん"]), merge("タロウ", T), say("[[タロウ|たーくん]]、つまり[[タロさん]]と泳いだ"),
        told(T, aliases=[N, "たーくん", "タロさん", "タロウ"]), forget(1, 2), told(T, aliases=["タロさん", "タロウ"]), change(T, aliases=["タロさん", "タロウ"]),
        undo(), told(T, aliases=[]), told("タロウ", aliases=["タロさん"]), restore(2, 1), told(T, aliases=[N]), told("タロウ", aliases=["たーくん", "タロさん"])],
    "a merged entity in the trash gets no suggestions": [
        say("[[丙野|Person]]が来た"), say("[[乙野|Person]]が寝た", relations=["乙野 > likes > 梨"]), merge("乙野", "丙野"), forget(1),
        refused("entity_neighbors", unsaid=["丙野"], entity="乙野")],
    "a name that only the trash holds may be given to somebody else": [
        say(A, W), forget(1), create("他人", type="Person", aliases=[N]), told(N, name="他人"), restore(1), told(N, name=T, others=["他人"])],
    "a name from the trash means the entity it was given to": [
        say("[[健太|Person]]が来た", "[[健二|Person]]が来た", "[[健太|ケン]]が歌った"), forget(2), change("健二", aliases=["ケン"]), say("ケンが走った"),
        told("健二", mentions=2), relate(KEN), known("健二 > likes > 苺", "ケンは？"), unrelate(KEN)],
    "a name that somebody wrote stays beside the same one of a memory": [
        say("[[健太|Person]]が来た"), change("健太", aliases=["ボウ"]), say("[[ケン|Person]]が来た", "[[ケン|ボウ]]が歌った"), merge("ケン", "健太"), forget(2),
        told("健太", aliases=["ボウ", "ケン"]), told("ボウ", name="健太")],
    "a related entity is found by the stated name": [
        *NICKNAMED, forget(1), relate(KEN), told("ケン", name="健太"), unrelate(KEN)],
    "an entity related before a merge is found by that name": [
        say("[[健太|Person]]が来た"), relate(KEN), say("[[ケン|Person]]が歌った"), merge("ケン", "健太"), forget(1), told("ケン", name="健太"), unrelate(KEN)],
    "a name with another honorific is found despite one in the trash": [
        create("モモちゃん", type="Object"), relate("モモちゃん > likes > 苺"), say("[[モモ|Person]]が来た"), told("モモ", name="モモ"), forget(0),
        told("モモ", name="モモちゃん"), known("モモちゃん > likes > 苺", "モモは？")],
    "a name shared in the trash reveals no entity": [
        say("[[健太|Person]]が来た", "[[健太|ケン]]が歌った", "[[健二|Person]]が来た", "[[健二|ケン]]が歌った"), forget(1, 3),
        refused("unrelate", unsaid=["健太", "健二"], relation=KEN)],
}  # fmt: skip
ERASED = {
    "what somebody wrote": [say("[[健太|Person]]が来た"), change("健太", aliases=["ケン"]), say("健太、つまりケンが来た"), erased(1), told("健太", aliases=["ケン"])],
    "a name by which another memory relates somebody": [*NICKNAMED, say("楽しい日だった", relations=[KEN]), erased(1), told("ケン", name="健太")],
    **{f"a name that another memory has as {further}": [say(W), say("たなっちは元気", **further), erased(0), told(N, name=T)]
       for further in ({"source": T}, {"tags": [T]}, {"relations": ["田中太郎 > likes > 苺"]})},
    "a name that was related by hand": [say(W, "たなっちは元気"), relate("田中太郎 > likes > 苺"), erased(0), told(N, name=T)],
    "the only name": [say("[[健太|ケン]]が来た", "けんたが走った。[[健太]]"), erased(0), told("健太", name="健太", aliases=[])],
    "a relative and a day": [
        say("母と2025-10-17に会った", "お母さんが2025年10月17日に来た。ママだ"), erased(0), told("お母さん", name="母"), told("2025年10月17日", name="2025-10-17")],
    "a name that another memory writes in another case": [say("[[田中太郎|Kenny]]と歩いた", "[[田中太郎|ＫＥＮＮＹ]]が来た"), erased(0), told("kenny", name=T)],
}  # fmt: skip
TYPES = {
    "a type that nobody told yields to that of whom is merged, and comes back when that is undone": [
        say("[[健太]]が来た。[[ケン|Person]]も来た"), merge("ケン", "健太", name="健太", type="Person"), told("ケン", type="Person"), say("渋谷駅で会った"),
        refused("merge_entities", "can't be one", entity="渋谷駅", into="健太"), undo(), told("健太", type="Concept"), told("ケン", type="Person")],
    "of two merges that tell a type, either may be undone": [
        say("[[健太]]が来た。[[ケン|Person]]も[[タロ|Person]]も来た"), merge("ケン", "健太"), merge("タロ", "健太"), undo(), told("健太", type="Person"),
        undo(1), told("健太", type="Concept")],
    "what a text tells after a merge stays when that is undone": [
        say("[[健太]]が来た。[[ケン|Person]]も来た"), merge("ケン", "健太"), say("[[健太|Person]]が歌った"), undo(), told("健太", type="Person")],
    "a type that somebody told stays, whatever is merged or read": [
        say("[[愛]]とは何か。[[アイ|Person]]が来た"), change("愛", type="Concept"), merge("アイ", "愛", type="Concept"), say("[[愛]]さんが来た"), told("愛", type="Concept")],
    "whoever is made by hand without a type gets the one that is read later": [
        create("健太"), create("愛", type="Concept"), told("健太", type="Concept"), told("愛", type="Concept"), say("[[健太]]さんと[[愛]]さんが来た"),
        told("健太", type="Person"), told("愛", type="Concept")],
    "a type of one who was merged and is erased goes with him": [
        say("[[健太]]が来た", "[[ケン|Person]]が来た"), merge("ケン", "健太"), erased(1), told("健太", type="Concept")],
    "whoever is made again keeps the type from the trash": [say("[[田中誠|Person]]が来た"), forget(0), create("田中誠"), restore(0), told("田中誠", type="Person")],
    "a mark of the type that it had means the one whose type was changed": [kinako(), say("[[きなこ|Object]]が寝た。"), listed("きなこ", ("きなこ", "Pet", 2))],
    **{f"a copy after a type was changed from {marked} to {type_}": [
        kinako(type_, marked), copied("きなこ"), listed("きなこ", ("きなこ", type_, 1)), unrelate(PET)]
       for marked, type_ in (("Object", "Pet"), ("Person", "Object"), ("Concept", "Person"))},
    "a copy where a rule told the type that was changed": [
        say("福島さんが来た。"), change("福島", type="Location"), copied("福島"), listed("福島", ("福島", "Location", 1))],
    "a copy where a mark told another type than an earlier one": [
        say("[[愛|Concept]]とは何か。", "[[愛|Person]]が来た。"), relate("愛 > likes > 苺"), copied("愛"), listed("愛", ("愛", "Person", 2))],
    "a copy of two namesakes, the type of one of whom was changed": [
        kinako(), create("きなこ", type="Object"), say("[[きなこ|Object]]を買った。", "[[きなこ|Pet]]が寝た。"),
        listed("きなこ", ("きなこ", "Object", 1), ("きなこ", "Pet", 2)), copied("きなこ", counted=False)],
    "a copy of what was marked before a type was put back": [
        kinako(), say("[[きなこ|Pet]]が寝た。"), change("きなこ", type="Object"), copied("きなこ"), listed("きなこ", ("きなこ", "Object", 2))],
    "a mark of the type that one had means him when he is merged with another": [
        kinako(), create("黄粉", type="Pet"), merge("きなこ", "黄粉"), say("[[きなこ|Object]]が寝た。"), listed("きなこ", ("黄粉", "Pet", 2))],
}  # fmt: skip
VISIBLE = {
    "an entity is mentioned elsewhere": [*PEBBLE, say("ダイズモは石"), forget(2), told("ダイズモ", mentions=1)],
    "an entity is related by hand": [*PEBBLE, relate("ダイズモ > is_a > 石"), forget(2), neighbors("ダイズモ", "石")],
    "an entity is changed by hand": [*PEBBLE, change("ダイズモ", description="丸い石"), forget(2), told("ダイズモ", description="丸い石")],
    **{f"another memory writes {form}": [say("[[田中太郎|Kenny]]と散歩した", f"[[田中太郎|{form}]]が来た"), forget(0), told(form, name=T)]
       for form in ("kenny", "ＫＥＮＮＹ")},
    "a day is told in every form": [
        say("2025年10月17日に健太と会った"), say("10/17に健太と走った", occurred_at="2025-10-20"), forget(1),
        *(told(form, name="2025-10-17") for form in ("10/17", "10月17日", "2025-10-17"))],
    "an earlier version of another memory has the name": [
        say("[[田中太郎|たなっち]]が来た", "たなっちと散歩した"), revise(0, content="田中太郎が来た"), forget(1), told(N, name=T)],
    **{f"another memory states {relation}": [*NICKNAMED, say("楽しい日だった", relations=[relation]), forget(1), told("ケン", aliases=["ケン"])]
       for relation in (KEN, "苺 > belongs_to > ケン", "ケン > relates_to > 苺")},
    "another memory states something of a merged entity": [
        *MERGED, say("楽しい日だった", relations=[KEN]), merge("ケン", "健太"), forget(1), told("健太", aliases=["ケン", "ボウ"])],
    "a merge is listed by a name that is told": [
        *MERGED, merge("ケン", "健太"), merged(("ケン", "健太")), forget(1), merged(("ボウ", "健太")), told("健太", unsaid="ケン"), restore(1), merged(("ケン", "健太"))],
    "a merge does not tell a further name that only the trash holds": [say(A + "。[[タロウ|Person]]も来た", W), forget(1), merge("タロウ", T, unsaid=N)],
    "a merge that is undone does not tell whom only the trash names": [
        *PEBBLE, say("[[ダイズ|Object]]は丸い"), merge("ダイズモ", "ダイズ"), forget(2), undo(unsaid="ダイズモ"), restore(2), told("ダイズモ", name="ダイズモ")],
    "somebody of another type may be made by a name that only the trash holds": [
        *PEBBLE, forget(2), create("ダイズモ", type="Person"), restore(2), listed("ダイズモ", ("ダイズモ", "Object", 1), ("ダイズモ", "Person", 0))],
    "whoever is made anew is the one that comes back": [
        *PEBBLE, forget(2), create("ダイズモ", type="Object"), neighbors("ダイズモ"), restore(2), neighbors("ダイズモ", "健太"), told("ダイズモ", others=[])],
} | {
    f"{what}, {level}": [say("[[花子|Person]]が来た"), say("黒川さんは会員だ。", source=SOURCE, tags=[TAG], privacy_level=level), *story]
    for level in ("internal", "secret")
    for what, story in {
        "another memory is filed under the same": [
            say("元気だ", source=SOURCE, tags=[TAG]), woven(), forget(1), told(SOURCE, name=SOURCE), told(TAG, name=TAG)],
        "another memory is filed under the same with honorifics": [
            say("元気だ", source=f"{SOURCE}さん", tags=[f"{TAG}様"]), woven(), forget(1), told(SOURCE, name=SOURCE), told(TAG, name=TAG)],
        "another memory has the source in its text": [
            say(f"[[{SOURCE}]]が来た"), woven(), forget(1), told(SOURCE, mentions=1), refused("entity_neighbors", "no name is similar", entity=TAG)],
        "the source is related and the tag described by hand": [
            woven(), relate(f"{SOURCE} > knows > 花子"), change(TAG, description="謎"), forget(1), neighbors(SOURCE, "花子"), told(TAG, description="謎")],
        "another memory has the merged source": [
            say("元気だ", source=SOURCE), woven(), merge(SOURCE, "花子"), forget(1), told(SOURCE, name="花子", aliases=[SOURCE]), listed(SOURCE, "花子")],
        "whoever is made by the name of a source is the one that comes back": [
            woven(), forget(1), create(SOURCE, type="Person"), restore(1), told(SOURCE, others=[])],
    }.items()
}  # fmt: skip
STORIES = VISIBLE | WRITTEN | {f"erased, and there is still {what}": story for what, story in ERASED.items()} | TYPES


@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in STORIES.items()])
def test_a_name_means_whom_its_story_tells(it, story):
    it.does(*story)


@pytest.mark.parametrize("include_deleted", ["true", "false"])
def test_import_shows_written_names_and_not_those_in_the_trash(it, api, include_deleted):
    it.does(
        say(A, W), change(T, aliases=[N, "タロさん"]), say("[[田中太郎|タロさん]]が来た", "[[田中太郎|タロさん]]と[[苺|Object]]"),
        create("健太", type="Person", aliases=["ケン"]), say("健太、つまりケンが来た"), forget(1, 3, 4))  # fmt: skip
    exported, elsewhere = it.exported(include_deleted=include_deleted), f"{it.name}-elsewhere"
    for _ in range(2):
        imported = it.imported(exported, elsewhere)
        assert it.entity(T, elsewhere)["aliases"] == ["タロさん"]
    assert "graph" not in imported
    assert it.entity("健太", elsewhere)["aliases"] == ["ケン"]


def test_names_of_an_older_export_count_as_written(it):
    lines = [
        {"entity": T, "type": "Person", "aliases": [N], "made_by": "user"},
        {"content": W, "key": "memory_20251001000000_aaaaaaaa", "deleted_at": "2025-10-20T00:00:00+00:00"},
    ]
    it.imported("\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode())
    assert it.entity(T)["aliases"] == [N]


@pytest.fixture
def merged_into(it, api):
    """merged_into(): the persona, merged into another that has a graph."""

    def merged_into():
        target = f"{it.name}-into"
        api("POST", "entities", target, name="苺")
        it.http.post("/api/persona/merge", json={"into": target}, headers={"X-Persona": it.name}).raise_for_status()
        return target

    return merged_into


def test_merging_personas_keeps_written_names_visible(it, merged_into):
    it.does(say(A, W), change(T, aliases=[N, "タロさん"]), say("[[田中太郎|タロさん]]が来た"), forget(1, 2))
    assert it.entity(T, merged_into())["aliases"] == ["タロさん"]


def test_giving_an_entity_the_name_of_another_reports_the_other(it, persona, api):
    it.does(say("[[きなこ|Object]]が寝た。[[みどり|Organization]]が開いた"))
    clinic = it.entity("みどり")["id"]
    told = api("PATCH", "entity", entity="きなこ", name="みどり")
    assert [one["id"] for one in told["namesakes"]] == [clinic]
    assert f"みどり (Organization {clinic})" in told["note"]
    assert "merge_entities makes them one, once they are of one type" in told["note"]
    cat = told["entity"]["id"]
    renamed = api("PATCH", "entity", entity=cat, name="きなこ")
    assert renamed["entity"]["aliases"] == ["みどり"]
    assert "aliases without a further name take that away" in renamed["note"]
    undone = api("PATCH", "entity", entity=cat, aliases=[])
    assert not {"note", "namesakes"} & undone.keys()
    assert "aliases" not in it.entity(cat)
    assert persona("entity_neighbors", entity="みどり")["entity"]["id"] == clinic


def test_namesake_only_in_the_trash_is_not_reported(it, api):
    it.does(say("[[きなこ|Object]]が寝た", "[[みどり|Organization]]が開いた"), forget(1))
    assert api("PATCH", "entity", entity="きなこ", name="みどり").keys() == {"persona", "entity"}


def test_creating_an_entity_with_the_name_of_another_type_reports_the_other(it, api):
    it.does(say("[[きなこ|Object]]が寝た"))
    assert "きなこ (Object " in api("POST", "entities", name="きなこ", type="Person")["note"]
    assert "note" not in api("PATCH", "entity", entity=api("GET", "entities", query="きなこ")["entities"][0]["id"], description="猫")


def test_entity_that_loses_its_first_name_is_displayed_by_another(it, persona, server, name):
    it.does(say(W), say("たなっちは元気", relations=["たなっち > likes > 苺"]), erased(0), told(N, name=N, aliases=[]))
    assert "similar names are" not in persona.refusal("entity_neighbors", entity=T)
    assert [hit["content"] for hit in persona("recall", query=T, mode="keyword")["hits"]] == []
    assert persona("recall", query="たなっち likes", mode="keyword")["hits"][0]["content"] == "たなっちは元気"
    with sqlite3.connect(next(server.directory_of(name).glob("memory.sqlite"))) as stored:
        assert T not in "\n".join(stored.iterdump())


def test_types_are_the_same_elsewhere_and_a_merge_undone_there_too(it, api):
    it.does(
        say("[[健太]]が来た。[[ケン|Person]]も来た", relations=["健太 > likes > 苺"]), merge("ケン", "健太"), create("愛", type="Concept"), say("[[愛]]さんが来た"))  # fmt: skip
    exported, elsewhere = it.exported(), f"{it.name}-elsewhere"
    assert [line["type_by_hand"] for line in map(json.loads, exported.splitlines()) if "type_by_hand" in line] == [True]
    for _ in range(2):
        it.imported(exported, elsewhere)
        assert [it.entity(one, elsewhere)["type"] for one in ("健太", "ケン", "愛")] == ["Person", "Person", "Concept"]
    api("POST", "merges", elsewhere, undo=api("GET", "merges", elsewhere)["merges"][0]["merge"])
    assert [it.entity(one, elsewhere)["type"] for one in ("健太", "ケン")] == ["Concept", "Person"]


def test_types_are_the_same_where_a_persona_is_merged_into_another(it, api, merged_into):
    it.does(say("[[健太]]が来た。[[ケン|Person]]も来た"), merge("ケン", "健太"), create("愛", type="Concept"))
    target = merged_into()
    it.imported(json.dumps({"content": "[[愛]]さんが来た"}).encode(), target)
    assert [it.entity(one, target)["type"] for one in ("健太", "愛")] == ["Person", "Concept"]
    api("POST", "merges", target, undo=api("GET", "merges", target)["merges"][0]["merge"])
    assert it.entity("健太", target)["type"] == "Concept"


@pytest.mark.parametrize("known_there", [False, True], ids=["unknown there", "marked there, too"])
def test_a_changed_type_is_the_same_where_a_persona_is_merged_into_another(it, merged_into, known_there):
    it.does(kinako())
    if known_there:
        it.imported(json.dumps({"content": "隣の[[きなこ|Object]]が来た。"}).encode(), f"{it.name}-into")
    target = merged_into()
    assert it.entity("きなこ", target)["type"] == "Pet"
    it.imported(json.dumps({"content": "[[きなこ|Object]]が寝た。"}).encode(), target)
    assert [one[:2] for one in it.listed("きなこ", target)] == [("きなこ", "Pet")]


def test_an_export_after_the_change_changes_the_copy_that_was_made_before_it(it):
    there = f"{it.name}-copy"
    it.does(say(OBJECT))
    it.imported(it.exported(**WHOLE), there)
    it.does(change("きなこ", type="Person"))
    for _ in range(2):
        it.imported(it.exported(**WHOLE), there)
        assert it.listed("きなこ", there) == [("きなこ", "Person", 1)]


def test_an_export_before_the_change_makes_no_second_one(it):
    it.does(say(OBJECT), relate(PET))
    before = it.exported(**WHOLE)
    it.does(change("きなこ", type="Person"))
    it.imported(before)
    assert it.listed("きなこ") == [("きなこ", "Person", 1)]
