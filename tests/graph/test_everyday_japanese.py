"""What the rules find in what people say every day, and what they leave alone: words that only look like names, dates of a year."""

from datetime import date

import pytest
from places import DATA

from memory_mcp.graph.extract.extraction import extract_mentions
from memory_mcp.graph.update.cooccurrence import may_be_a_name
from memory_mcp.language.relation_notation import type_of_word
from memory_mcp.store.graph.schema import ENTITY_TYPES

SAID_ON = date(2025, 11, 21)
TYPES = {name: shown for name, shown, *_ in ENTITY_TYPES}
LINES = (DATA / "labelled" / "everyday_ja.tsv").read_text(encoding="utf-8").splitlines()
SENTENCES = [line.partition("\t")[::2] for line in LINES if not line.startswith("#")]


@pytest.mark.parametrize(("text", "names"), SENTENCES, ids=[text for text, _ in SENTENCES])
def test_everyday_japanese_names_whom_a_reader_would_and_nothing_else(text, names):
    assert ", ".join(dict.fromkeys(f"{one.name}:{one.type}" for one in extract_mentions(text, ()))) == names


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("締切は2025年10月17日", "2025-10-17"),
        ("締切は令和7年10月17日", "2025-10-17"),
        ("締切は10月17日", "2025-10-17"),
        ("締切は１０月１７日", "2025-10-17"),
        ("締切は十月十七日", "2025-10-17"),
        ("締切は10/17", "2025-10-17"),
        ("締切は10/17(金)です", "2025-10-17"),
        ("締切は10月17日(土)です", "2026-10-17"),
        ("10月17日(木曜)の会議", "2024-10-17"),
        ("結婚式は10月17日の土曜", "2026-10-17"),
        ("締切は10月17日(水)です", "2025-10-17"),
        ("締切は9月1日", "2026-09-01"),
        ("締切は2025/10/17", "2025-10-17"),
        ("1月5日に出社する", "2026-01-05"),
        ("来年4月に引っ越す", "2026-04"),
        ("来年の4月8日は入学式", "2026-04-08"),
        ("去年の12月に転職した", "2024-12"),
        ("2025年12月に結婚する", "2025-12"),
        ("健太の誕生日は10月3日", "10月3日"),
        ("2月29日に会う", "2028-02-29"),
    ],
)
def test_a_day_is_named_with_its_year_where_it_has_one(text, day):
    assert [one.name for one in extract_mentions(text, (), stated_on=SAID_ON)] == [day]


@pytest.mark.parametrize(
    "text", ["明後日は休み", "明日会う", "1/2の確率", "2/3に減らす", "3/4カップ", "2月30日に", "10月17日間", "13/40に", "24/7で"]
)
def test_a_word_for_a_day_and_a_share_name_no_day(text):
    assert extract_mentions(text, (), stated_on=SAID_ON) == []


def test_a_day_is_known_by_what_it_is_written_as_and_never_by_a_word_for_it():
    (day,) = extract_mentions("来年4月8日に始まる", (), stated_on=SAID_ON)
    assert day.aliases == ("2026年4月8日", "4月8日")
    (day,) = extract_mentions("令和7年10月17日に始まる", (), stated_on=SAID_ON)
    assert set(day.aliases) == {"2025年10月17日", "10月17日", "令和7年10月17日"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[田中|人物]]が来た", [("田中", "Person", ())]),
        ("[[京都|場所]]に行く", [("京都", "Location", ())]),
        ("[[花火|イベント]]を見た", [("花火", "Event", ())]),
        ("[[ダイズ|Pet]]と散歩", [("ダイズ", "Object", ())]),
        ("[[ |Person]]", []),
    ],
)
def test_behind_the_bar_of_a_mark_any_word_for_a_type_is_one(text, expected):
    assert [(one.name, one.type, one.aliases) for one in extract_mentions(text, TYPES)] == expected


def test_the_type_that_somebody_added_goes_before_another_word_for_one():
    assert type_of_word("Pet", {**TYPES, "Pet": "ペット"}) == type_of_word("ペット", {**TYPES, "Pet": "ペット"}) == "Pet"
    assert type_of_word("", TYPES) is None


def test_every_type_is_called_as_it_is_shown():
    assert {type_of_word(shown, TYPES) for shown in TYPES.values()} == set(TYPES)


@pytest.mark.parametrize(
    ("tag", "may"),
    [("重要", False), ("会議", False), ("lab", False), ("仕事/会議", False), ("沙耶", True), ("ダイズ", True), ("Kestrel", True)],
)
def test_a_tag_that_is_a_common_word_is_no_name(tag, may):
    assert may_be_a_name(tag) is may
