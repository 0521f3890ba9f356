"""Which entity a name means where several have the same name, or one name contains another."""

from contextlib import contextmanager
from zoneinfo import ZoneInfo

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.features.graph import entity_edits
from memory_mcp.features.graph.merge_proposals import merge_proposals
from memory_mcp.features.graph.query.neighbors import find_neighbors
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines

UTC = ZoneInfo("UTC")


@pytest.fixture
def named_by(nilou, say):
    """named_by(text): whom a new memory of this text names, as name and type."""

    def named(text, **further):
        key = say(text, **further).key
        with nilou.database.read() as connection:
            rows = connection.execute(
                "SELECT k.name, k.type FROM entity_mentions em JOIN memories m ON m.id = em.memory JOIN entities e ON e.id = em.entity "
                "JOIN entities k ON k.id = coalesce(e.merged_into, e.id) WHERE m.key = ? ORDER BY em.start",
                (key,),
            )
            return list(rows)

    return named


@pytest.fixture
def made(nilou, now):
    """made(name, type, …): somebody made by hand."""

    def make(name, type_, *aliases):
        return entity_edits.create(nilou, EntityChange(name, type_, aliases=aliases), now=now, privacy=Privacy())

    return make


@pytest.mark.parametrize(
    ("known", "text", "expected"),
    [
        ("田中さんが来た", "田中花子さんは田中太郎さんの妹だ", [("田中花子", "Person"), ("田中太郎", "Person")]),
        ("鈴木さんが来た", "鈴木一郎さんは山田太郎さんの友人だ", [("鈴木一郎", "Person"), ("山田太郎", "Person")]),
        ("田中さんが来た", "田中花子は元気だ", []),
        ("田中さんが来た", "田中マリアさんと食べた", [("田中マリア", "Person")]),
        ("[[東京|Location]]へ行った", "いとこは東京大学の学生", []),
        ("[[赤坂|Location]]へ行った", "赤坂駅で待った", [("赤坂駅", "Location")]),
        ("[[東京|Location]]へ行った", "東京タワーの夜景", []),
        ("[[北海道|Location]]へ行った", "北海道大学を受けた", []),
        ("小林さんが来た", "小林製薬の株を買った", [("小林製薬", "Organization")]),
        ("三井さんが来た", "三井住友銀行で待った", []),
        ("鈴木さんが来た", "鈴木建設の工事", [("鈴木建設", "Organization")]),
        ("[[田中]]が来た", "山田中学校の運動会", [("山田中学校", "Organization")]),
        ("[[田中]]が来た", "田中央病院へ行った", [("田中央病院", "Location")]),
        ("[[田中]]が来た", "豊田中部営業所の電話", []),
        ("[[Maria]] came", "Yesterday we saw Maria Lopez at the fair", [("Maria Lopez", None)]),
    ],
)
def test_known_name_inside_a_longer_name_is_not_matched(named_by, known, text, expected):
    named_by(known)
    found = named_by(text)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert all(type_ in (None, told) for (_, told), (_, type_) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "田中先生に聞いた",
        "田中部長が休んだ",
        "田中様からの手紙",
        "毎日田中と話す",
        "昨日田中が来た",
        "営業部田中さんの席",
        "社員田中さんの席",
        "田中来たよ",
        "田中、元気？",
        "田中家の庭",
        "田中夫妻と食べた",
        "親友の田中さん",
        "田中コーチに習う",
        "田中ママの店",
        "田中総務部長の席",
        "田中経由で聞いた",
    ],
)
def test_known_person_is_matched_next_to_titles_times_and_verbs(named_by, text):
    named_by("田中さんが来た")
    assert ("田中", "Person") in named_by(text)


@pytest.mark.parametrize("text", ["東京旅行の写真", "東京行きの切符", "来月東京へ行く", "東京在住の人", "東京都に住む", "東京出張の準備"])
def test_known_place_is_matched_next_to_activities(named_by, text):
    named_by("[[東京|Location]]は暑い")
    assert ("東京", "Location") in named_by(text)


def test_longer_name_is_a_separate_entity_until_merged(nilou, named_by):
    named_by("田中さんが来た")
    assert named_by("田中太郎さんが昇進した") == [("田中太郎", "Person")]
    with nilou.database.read() as connection:
        (one,), total = merge_proposals(connection, 10)
    assert {one.kept.name, one.merged.name} == {"田中", "田中太郎"}
    assert total == 1


@pytest.mark.parametrize("text", ["Happy Birthday Caroline!", "Thanks Caroline, see you", "We met. Congrats Caroline"])
def test_capitalized_words_before_a_known_name_are_not_part_of_it(named_by, text):
    named_by("[[Caroline|Person]] came")
    assert named_by(text) == [("Caroline", "Person")]


@pytest.mark.parametrize("politely", ["田中さん", "田中様", "田中部長"])
def test_untyped_entity_becomes_a_person_with_an_honorific(named_by, politely):
    named_by("田中が担当になった", relations=["田中 > works_on > 企画"])
    assert named_by("田中が休んだ") == [("田中", "Concept")]
    assert named_by(f"{politely}が来た") == [("田中", "Person")]
    assert named_by("田中が帰った") == [("田中", "Person")]


def test_untyped_relation_end_gets_the_type_that_its_name_implies(nilou, say):
    say("進学の話", relations=["健太 > studies_at > 早稲田大学"])
    with nilou.database.read() as connection:
        assert [entity.type for entity in records.by_name(connection, "早稲田大学")] == ["Organization"]


def test_person_and_place_with_one_name_are_two_entities(named_by):
    named_by("[[福島|Location]]は遠い")
    assert named_by("福島さんが来た") == [("福島", "Person")]
    assert named_by("[[福島]]さんは元気") == [("福島", "Person")]
    assert named_by("来月も福島に旅行する") == [("福島", "Location")]
    assert named_by("福島旅行の写真") == [("福島", "Location")]
    assert named_by("福島さんに会った") == [("福島", "Person")]


def test_company_with_an_honorific_stays_a_company(named_by):
    named_by("[[トヨタ|Organization]]に勤めた")
    assert named_by("トヨタさんの工場") == [("トヨタ", "Organization")]


def test_company_and_person_with_one_name_are_two_entities(named_by):
    named_by("ミドリさんが来た")
    assert named_by("株式会社ミドリの内定") == [("ミドリ", "Organization")]
    assert named_by("ミドリさんが笑った") == [("ミドリ", "Person")]


def test_company_and_pet_with_one_name_are_two_entities(named_by):
    named_by("[[ミドリ|ペット]]はうちの猫")
    assert named_by("株式会社ミドリの見積もり") == [("ミドリ", "Organization")]
    assert named_by("ミドリが走り回った。ミドリは猫") == [("ミドリ", "Object")] * 2


def test_ambiguous_name_means_the_most_mentioned_entity(named_by, made):
    for day in range(3):
        named_by(f"山田さんと{day}回会った")
    made("山田", "Organization")
    assert named_by("山田が来た") == [("山田", "Person")]


def test_shared_alias_matches_no_entity(named_by, nilou):
    named_by("[[健太|ケン]]と[[健二|ケン]]")
    assert named_by("ケンが来た") == []
    assert named_by("ケンさんが来た") == [("ケン", "Person")]
    with nilou.database.read() as connection:
        found, _ = merge_proposals(connection, 10)
    assert all(one.score < 0.5 for one in found)


def test_shared_alias_matches_no_entity_after_a_merge(named_by, nilou, now):
    named_by("[[健太|Person]]、[[タロ|Person]]、[[健二|Person]]が来た")
    named_by("[[タロ|ケン]]と[[健二|ケン]]")
    entity_edits.merge_entities(nilou, "タロ", "健太", reason=None, now=now, privacy=Privacy())
    named_by("[[ケン]]が来た")
    with nilou.database.read() as connection:
        assert "ケン" in [entity.name for entity in records.by_name(connection, "ケン")]


def test_own_name_wins_over_an_alias_that_came_with_a_merge(named_by, nilou, now):
    relate(nilou, [StatedRelation("ケン", "likes", "釣り", "Person")], now=now, privacy=Privacy())
    named_by("[[健太|Person]]と[[タロ|Person]]。[[タロ|ケン]]")
    entity_edits.merge_entities(nilou, "タロ", "健太", reason=None, now=now, privacy=Privacy())
    with nilou.database.read() as connection:
        found = find_neighbors(connection, "ケン", UTC)
    assert (found["entity"]["name"], [other["name"] for other in found["namesakes"]]) == ("ケン", ["健太"])


def test_own_name_wins_over_an_alias_in_a_lookup(named_by, nilou, now):
    relate(nilou, [StatedRelation("ケン", "likes", "釣り")], now=now, privacy=Privacy())
    for day in range(3):
        named_by(f"[[健太|ケン]]と{day}回会った")
    with nilou.database.read() as connection:
        found = find_neighbors(connection, "ケン", UTC)
    assert (found["entity"]["name"], [other["name"] for other in found["namesakes"]]) == ("ケン", ["健太"])
    assert [near["name"] for near in found["neighbors"]] == ["釣り"]


def test_memories_are_read_again_when_a_name_becomes_ambiguous(named_by, nilou, now, copied):
    named_by("[[健太|ケン]]が来た")
    assert named_by("ケンが走った") == [("健太", "Concept")]
    assert named_by("[[福島|Location]]に旅行した") == named_by("福島に会った") == [("福島", "Location")]
    named_by("[[健二|ケン]]が来た。福島さんも来た")
    woven(nilou, now)
    with nilou.database.read() as connection:
        counted = {
            (entity.name, entity.type): entity.extraction_count for name in ("健太", "福島") for entity in records.by_name(connection, name)
        }
    assert counted == {("健太", "Concept"): 1, ("福島", "Person"): 1, ("福島", "Location"): 2}
    copied()


def test_alias_wins_over_part_of_a_longer_name(named_by):
    named_by("[[田中太郎|田中]]が来た")
    assert named_by("田中が帰った") == [("田中太郎", "Concept")]


def graph_of(persona):
    with persona.database.read() as connection:
        related = connection.execute(
            "SELECT s.name, s.type, r.type, t.name, t.type, r.weight, r.evidence_count FROM relations r "
            "JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target"
        ).fetchall()
        named = connection.execute(
            "SELECT m.key, e.name, e.type, em.start FROM entity_mentions em JOIN memories m ON m.id = em.memory "
            "JOIN entities e ON e.id = em.entity ORDER BY 1, 4, 2, 3"
        ).fetchall()
        counted = connection.execute("SELECT name, type, extraction_count FROM entities ORDER BY 1, 2").fetchall()
    return sorted((*sorted([row[:2], row[3:5]]), row[2], *row[5:]) for row in related), named, counted


@pytest.fixture
def copied(nilou, now, zone, personas):
    """Moves all there is to another persona, by lines, and checks that it has the same graph there."""

    def copy():
        everything = ExportOptions(deleted=True, secret=True, versions=True)
        woven(nilou, now)
        lines = list(export_lines(nilou, everything))
        with personas.writing("さくら") as other:
            assert arrived(other, lines, now, zone).refused == 0
            woven(other, now)
            assert graph_of(other) == graph_of(nilou)
            assert list(export_lines(other, everything)) == lines

    return copy


def woven(persona, now):
    while update_graph(persona, now):
        pass


def test_import_rebuilds_the_same_graph_with_ambiguous_names(nilou, say, made, now, copied):
    say("健太さんと[[ダイズ|Object]]が散歩した", relations=["健太 > keeps > ダイズ"])
    say("健太とダイズが川へ行った")
    for number in range(3):
        say(f"福島さんと山田が{number}回来た")
    say("福島に旅行した")
    made("山田", "Organization")
    made("健太", "Object", "けん太")
    woven(nilou, now)
    relate(
        nilou,
        [StatedRelation("健太", "likes", "苺", "Object"), StatedRelation("福島", "near", "仙台", "Location")],
        now=now,
        privacy=Privacy(),
    )
    assert unrelate(nilou, StatedRelation("健太", "co_occurrence", "ダイズ", "Person"), reason=None, now=now, privacy=Privacy())
    say("山田が健太と来た。福島さんも来た")
    copied()


@pytest.mark.parametrize(
    "likes", [StatedRelation("健太", "likes", "苺", "Object"), StatedRelation("健太", "likes", "ダイズ", "Object", "Person")]
)
def test_import_keeps_mentioned_entities_apart_from_stated_namesakes(nilou, say, now, copied, likes):
    say("健太くんと[[ダイズ]]が散歩した")
    say("健太が走った")
    say("健太とダイズと[[森|Person]]が川へ行った", relations=["森 > knows > 健太"])
    woven(nilou, now)
    relate(nilou, [likes], now=now, privacy=Privacy())
    say("健太とダイズが帰った")
    copied()


def test_import_keeps_a_removed_relation_of_one_namesake_removed(nilou, say, now, copied):
    say("健太くんと[[ダイズ|Object]]が散歩した")
    woven(nilou, now)
    relate(nilou, [StatedRelation("健太", "likes", "苺", "Object")], now=now, privacy=Privacy())
    assert unrelate(nilou, StatedRelation("健太", "co_occurrence", "ダイズ"), reason=None, now=now, privacy=Privacy())
    say("健太がダイズと帰った")
    copied()


def arrived(persona, lines, now, zone):
    @contextmanager
    def opened():
        yield persona

    rows = [(number, line.encode()) for number, line in enumerate(lines, start=1)]
    return import_lines(opened, rows, ImportOptions(now, zone, privacy=Privacy()))


def test_recall_follows_a_name_to_a_longer_name_that_may_be_the_same(say, ask):
    say("激辛の担々麺を汁まで飲み干したのは田中さんだった")
    say("田中誠さんがひばりの担当になった")
    (hit,) = [hit for hit in ask("激辛の担々麺を飲み干した人は？").hits if hit.memory.content.startswith("田中誠")]
    assert hit.why["graph"] > 0


def test_recall_does_not_follow_a_name_to_an_entity_marked_distinct(nilou, say, ask, now):
    say("激辛の担々麺を汁まで飲み干したのは田中さんだった")
    say("田中誠さんがひばりの担当になった")
    entity_edits.mark_distinct(nilou, "田中誠", "田中", reason=None, now=now, privacy=Privacy())
    (hit,) = [hit for hit in ask("激辛の担々麺を飲み干した人は？").hits if hit.memory.content.startswith("田中誠")]
    assert "graph" not in hit.why


def test_a_known_name_that_a_long_english_text_writes_small_is_its_everyday_word(named_by, made):
    made("Focus", "Concept")
    made("Python", "Technology")
    text = "Try to focus on one thing at a time, and write it in python. " * 12
    assert {name for name, _ in named_by(text + "I told them.")} == {"Python"}
    assert ("Focus", "Concept") in named_by("try to focus on one thing at a time")
    assert ("Focus", "Concept") in named_by(text.replace("focus", "Focus"))
