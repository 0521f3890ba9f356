"""Who may be one under two names: what is proposed, why, and what never is."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.features.graph import entity_edits
from memory_mcp.features.graph.merge_proposals import merge_proposals
from memory_mcp.features.graph.relation_edits import relate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.store.graph.entities import records


@pytest.fixture
def there_are(nilou, now):
    """there_are("Person", "田中", …): entities of these names."""

    def make(type_, *names):
        nilou.database.write(lambda connection: [records.create(connection, name, type_, 1.0, now, made_by="user") for name in names])

    return make


@pytest.fixture
def proposed(nilou):
    def propose():
        with nilou.database.read() as connection:
            found, total = merge_proposals(connection, 50)
        assert total == len(found)
        return {frozenset((one.kept.name, one.merged.name)): one for one in found}

    return propose


@pytest.fixture
def related(nilou, now):
    return lambda *texts: relate(nilou, [parse_relation(text, ["Person"]) for text in texts], now=now, privacy=Privacy())


def pair(*names):
    return frozenset(names)


@pytest.mark.parametrize(
    ("type_", "one", "other", "why"),
    [
        ("Person", "たなか", "タナカさん", "hiragana and katakana"),
        ("Person", "ﾀﾅｶ", "たなか", "hiragana and katakana"),
        ("Person", "渡辺", "渡邊", "another form of a kanji"),
        ("Person", "高橋", "髙橋さん", "another form of a kanji"),
        ("Person", "Minji Kim", "minji-kim", "spaces and signs"),
        ("Technology", "サーバ", "サーバー", "long vowel"),
        ("Organization", "株式会社みどり", "みどり", "form of the company"),
        ("Organization", "Acme, Inc.", "ACME", "form of the company"),
        ("Person", "田中", "田中太郎", "a part of the other"),
        ("Person", "太郎", "田中太郎", "a part of the other"),
        ("Person", "Minji", "Minji Kim", "a part of the other"),
        ("Person", "Catherine", "Katherine", "one letter apart"),
        ("Person", "さくらこ", "さくらえ", "one letter apart"),
        ("Person", "Alexandre", "Alexander", "one letter apart"),
    ],
)
def test_names_that_are_alike_are_proposed_and_it_is_said_why(there_are, proposed, type_, one, other, why):
    there_are(type_, one, other, "ぜんぜん別の")
    found = proposed()
    assert set(found) == {pair(one, other)}
    assert why in found[pair(one, other)].why[0]
    assert 0.4 <= found[pair(one, other)].score < 1


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        ("Task", ["プロジェクトA", "プロジェクトB", "Project A", "Project B"]),
        ("TimeUnit", ["10月17日", "10月18日", "十月"]),
        ("Location", ["渋谷", "渋谷駅", "渋谷区"]),
        ("Person", ["佐藤", "加藤", "伊藤"]),
        ("Person", ["まりこ", "まりえ"]),
        ("Technology", ["Python2", "Python3"]),
        ("Person", ["Kate Stone", "Mike Olson"]),
    ],
)
def test_what_differs_by_what_tells_it_apart_is_not_proposed(there_are, proposed, type_, names):
    there_are(type_, *names)
    assert proposed() == {}


def test_only_what_is_of_one_type_may_be_one(there_are, proposed):
    there_are("Person", "みどり")
    there_are("Organization", "ミドリ")
    assert proposed() == {}


def test_a_short_name_that_may_be_either_of_two_is_less_sure_of_both(there_are, proposed):
    there_are("Person", "田中", "田中太郎", "田中花子")
    found = proposed()
    assert {one: found[one].score for one in found} == {pair("田中", "田中太郎"): 0.45, pair("田中", "田中花子"): 0.45}


def test_knowing_the_same_people_makes_it_likelier_and_being_named_together_less_likely(there_are, proposed, related):
    there_are("Person", "田中", "田中太郎", "山本", "山本次郎")
    related("田中 > knows > 佐藤|Person", "田中太郎 > knows > 佐藤|Person")
    related("山本 > knows > 山本次郎")
    found = proposed()
    assert found[pair("田中", "田中太郎")].score == 0.75
    assert "佐藤" in found[pair("田中", "田中太郎")].why[1]
    assert pair("山本", "山本次郎") not in found


def test_people_who_know_the_same_and_are_never_named_together_may_be_one(proposed, related):
    for friend in ("佐藤", "鈴木", "高橋"):
        related(f"健太|Person > knows > {friend}|Person", f"ケンちゃん|Person > knows > {friend}|Person")
    assert pair("健太", "ケンちゃん") in proposed()
    related("健太 > knows > ケンちゃん")
    assert pair("健太", "ケンちゃん") not in proposed()


def test_a_name_that_everybody_has_a_part_of_is_proposed_for_nobody(there_are, proposed):
    there_are("Person", "田中", *(f"田中{number}" for number in "一二三四五六七八九十百千万東西南北上下左右前後"))
    assert proposed() == {}


def test_nothing_is_merged_by_itself_and_what_was_said_to_be_two_is_not_proposed_again(nilou, now, say, there_are, proposed):
    there_are("Person", "たなか", "タナカ")
    say("たなかさんとタナカさん")
    while update_graph(nilou, now):
        pass
    with nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM entity_merges").get == 0
    assert proposed()
    entity_edits.mark_distinct(nilou, "たなか", "タナカ", reason="兄弟", now=now, privacy=Privacy())
    assert proposed() == {}
    made = entity_edits.merge_entities(nilou, "タナカ", "たなか", reason=None, now=now, privacy=Privacy())
    assert proposed() == {}
    entity_edits.undo_merge(nilou, made.number, now=now)
    assert proposed() == {}


def test_two_are_said_to_be_two_also_under_the_names_that_are_merged_into_them(nilou, now, there_are, proposed):
    there_are("Person", "渡辺", "渡邊", "ワタナベ")
    entity_edits.mark_distinct(nilou, "渡辺", "渡邊", reason=None, now=now, privacy=Privacy())
    entity_edits.merge_entities(nilou, "渡辺", "ワタナベ", reason=None, now=now, privacy=Privacy())
    assert proposed() == {}
