"""How dates, words for types, and tags are handled when memories are stored."""

from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.features.graph.merge_proposals import merge_proposals
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.store.graph.entities import records


@pytest.fixture
def called(nilou):
    """Whoever is called so: name and type."""

    def called(name):
        with nilou.database.read() as connection:
            return sorted((one.name, one.type) for one in records.by_name(connection, name))

    return called


def test_date_entity_depends_on_the_year_and_not_on_the_notation(say, nilou, called, now):
    say("田中さんの結婚式は10月17日", occurred_at="2024-09-01")
    say("プロジェクトAの締切は10月17日")
    say("プロジェクトAの会議は令和7年10月17日")
    assert called("10月17日") == [("2024-10-17", "TimeUnit"), ("2025-10-17", "TimeUnit")]
    with nilou.database.read() as connection:
        (day,) = records.by_name(connection, "2025-10-17")
        assert day.extraction_count == 2
        assert merge_proposals(connection, 10) == ([], 0)


def test_stated_date_is_the_entity_that_texts_name(say, nilou, called, now):
    relate(nilou, [StatedRelation("プロジェクトA", "ends_on", "10月17日")], now=now, privacy=Privacy())
    say("プロジェクトAの締切は10/17です")
    assert called("10月17日") == [("2025-10-17", "TimeUnit")]


def test_date_of_several_years_is_removed_and_restated_by_the_same_words(say, nilou, ask, now):
    say("田中さんの結婚式は10月17日", occurred_at="2024-09-01")
    told = StatedRelation("プロジェクトA", "ends_on", "10月17日")
    relate(nilou, [told], now=now, privacy=Privacy())
    assert unrelate(nilou, told, reason=None, now=now, privacy=Privacy())
    assert ask("プロジェクトAはいつまで？").relations == ()
    relate(nilou, [told], now=now, privacy=Privacy())
    assert ask("プロジェクトAはいつまで？").relations == ("プロジェクトA > ends_on > 2025-10-17",)


def test_ends_of_a_range_are_the_same_dates_in_any_notation(say, called, now):
    say("10月17日〜19日は京都に旅行した")
    say("The meeting was on Oct 19th, 2025.")
    assert called("2025-10-19") == called("October 19, 2025") == called("2025.10.19") == [("2025-10-19", "TimeUnit")]
    assert called("10月17日") == [("2025-10-17", "TimeUnit")]


def test_memory_read_again_resolves_dates_from_its_own_time(say, nilou, called, now):
    say("桃香と10月17日に会う", occurred_at="2023-10-01")
    say("[[桃香]]は元気")
    while update_graph(nilou, now + timedelta(days=700)):
        pass
    assert called("10月17日") == [("2023-10-17", "TimeUnit")]


def test_relation_accepts_only_known_words_for_types(say, called):
    say("春子の話", relations=["春子|人物 > likes > 猫|ペット"])
    assert (called("春子"), called("猫")) == ([("春子", "Person")], [("猫", "Object")])
    with pytest.raises(InvalidInput, match="there is no type '宇宙'"):
        say("夏子の話", relations=["夏子|宇宙 > likes > 犬"])
    assert called("夏子|宇宙") == []


def test_type_in_an_annotation_is_not_a_name(say, called):
    say("[[佐藤花子|人物]]と[[伊藤次郎|人物]]が来た")
    assert called("人物") == []
    assert called("佐藤花子") == [("佐藤花子", "Person")]


def test_common_word_as_a_tag_is_not_a_name(say, nilou, called, now):
    say("資料を作る", tags=["重要", "会議", "沙耶"])
    while update_graph(nilou, now):
        pass
    assert (called("重要"), called("会議"), called("沙耶")) == ([], [], [("沙耶", "Concept")])
