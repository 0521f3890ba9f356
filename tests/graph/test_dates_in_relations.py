"""A date in a relation is the same entity as that date in a text, and is found, removed and stated again by the same words."""

from zoneinfo import ZoneInfo

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.errors import EntityNotFound
from memory_mcp.features.graph import relation_edits
from memory_mcp.features.graph.query.neighbors import find_neighbors

UTC = ZoneInfo("UTC")


@pytest.fixture
def relate(nilou, now):
    def relate(source, type_, target, when=None):
        relation_edits.relate(nilou, [StatedRelation(source, type_, target)], now=now, privacy=Privacy(), when=when)

    return relate


@pytest.fixture
def unrelate(nilou, now):
    def unrelate(source, type_, target):
        return relation_edits.unrelate(nilou, StatedRelation(source, type_, target), reason=None, now=now, privacy=Privacy())

    return unrelate


@pytest.fixture
def around(nilou):
    """around(name): what is stated of it, by the names of the other ends."""

    def around(name):
        with nilou.database.read() as connection:
            found = find_neighbors(connection, name, UTC)
        return {near["name"] for near in found["neighbors"] if "co_occurrence" not in near["via"]}

    return around


def test_relation_is_removed_by_its_stated_date_though_several_years_have_it(say, relate, unrelate, around):
    say("まとめ", occurred_at="2025-06-20", relations=["結婚式 > on > 10月17日"])
    say("2024年10月17日は晴れ")
    assert around("結婚式") == {"2025-10-17"}
    assert unrelate("結婚式", "on", "10月17日")
    assert around("結婚式") == set()
    relate("結婚式", "on", "10月17日")
    assert around("結婚式") == {"2025-10-17"}


def test_relation_of_an_earlier_year_is_removed_by_its_date(say, unrelate, around):
    say("まとめ", occurred_at="2024-02-20", relations=["結婚式 > on > 3月17日"])
    say("2025年3月17日は晴れ")
    assert around("結婚式") == {"2024-03-17"}
    assert unrelate("結婚式", "on", "3月17日")
    assert around("結婚式") == set()
    assert not unrelate("結婚式", "on", "3月17日")


@pytest.mark.parametrize("written", ["2024/10/17", "令和6年10月17日", "2024年十月十七日", "2024-10-17"])
def test_date_is_found_and_removed_in_any_notation(relate, unrelate, around, written):
    relate("旅行", "on", "2024年10月17日")
    assert around(written) == {"旅行"}
    assert unrelate("旅行", "on", written)
    assert around("旅行") == set()


def test_unmentioned_date_is_unknown(relate, unrelate, around):
    relate("旅行", "on", "2024年10月17日")
    with pytest.raises(EntityNotFound):
        around("2023/10/17")
    with pytest.raises(EntityNotFound):
        unrelate("旅行", "on", "2023/10/17")


@pytest.mark.parametrize(
    ("source", "type_"), [("ゆい", "誕生日"), ("ゆい", "birthday"), ("ゆい", "born_on"), ("ゆいの誕生日", "is"), ("父母", "結婚記念日")]
)
def test_a_birthday_in_a_relation_keeps_no_year_as_in_a_text(say, relate, unrelate, around, source, type_):
    say("ゆいの誕生日は12月5日")
    relate(source, type_, "12月5日")
    assert around(source) == {"12月5日"}
    assert unrelate(source, type_, "12月5日")
    assert around(source) == set()


def test_birthday_is_not_the_same_date_with_a_year(say, relate, around):
    say("2025年12月5日は晴れ")
    relate("ゆい", "誕生日", "12月5日")
    relate("雨", "on", "2025年12月5日")
    assert (around("ゆい"), around("2025-12-05")) == ({"12月5日"}, {"雨"})
    say("2025年3月14日は雪")
    say("母の誕生日は3月14日", relations=["花|Object > 誕生日 > 3月14日"])
    assert around("花") == {"3月14日"}


@pytest.mark.parametrize("marked", ["[[8月20日|TimeUnit]]", "[[8月20日]]", "[[８月２０日|日付]]"])
def test_a_marked_date_is_the_date_of_a_relation_and_found_by_the_words_that_were_written(say, relate, around, nilou, ask, marked):
    say(f"旅行は{marked}だった", occurred_at="2025-10-20")
    say("まとめ", occurred_at="2025-10-20", relations=["旅行 > on > 8月20日"])
    with nilou.database.read() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM entities WHERE type = 'TimeUnit'")]
    assert names == ["2025-08-20"]
    assert around("8月20日") == around("2025年8月20日") == {"旅行"}
    assert ask("8月20日は？", mode="graph").relations == ("旅行 > on > 2025-08-20",)


def test_a_marked_name_with_a_date_in_it_stays_a_name(say, nilou):
    say("[[8月20日の会]]に入った。[[十月|Person]]は友達だ")
    with nilou.database.read() as connection:
        marked = connection.execute("SELECT e.name FROM entity_mentions m JOIN entities e ON e.id = m.entity WHERE m.method = 'marked'")
        assert {name for (name,) in marked} == {"8月20日の会", "十月"}


def test_recall_shows_the_validity_of_a_relation(relate, ask):
    relate("健太", "works_at", "X社", RelationValidity("2019-04-01", "2024-05-31"))
    relate("健太", "lives_in", "京都", RelationValidity("2024-06-01"))
    assert set(ask("健太は？").relations) == {
        "健太 > works_at > X社 (2019-04-01..2024-05-31)",
        "健太 > lives_in > 京都 (2024-06-01..)",
    }
