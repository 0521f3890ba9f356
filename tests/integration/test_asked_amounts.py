"""A question for an amount is answered first by what has one (docs/decisions/0056-asked-amounts.md)."""

import pytest


@pytest.fixture
def hits_among(say, ask):
    def hits_among(memories, query):
        for memory in memories:
            say(memory)
        return [hit for hit in ask(query).hits if hit.memory.content in memories]

    return hits_among


@pytest.mark.parametrize(
    ("has", "lacks", "query"),
    [
        ("ジム入会した、月8千ちょい", "ジムで40kg上がった", "ジムいくら？"),
        ("送別会の店を予約した、12人", "送別会は恵比寿", "送別会は何人？"),
        ("Leo, Maya's brother, is 7 and in second grade", "Leo got a telescope", "How old is Leo?"),
        ("Four tires for the Outback, $812 with fitting", "The Outback needs tires before winter", "How much did the tires cost?"),
    ],
)
def test_what_has_the_asked_amount_comes_before_what_lacks_it(hits_among, has, lacks, query):
    hits = hits_among([has, lacks], query)
    assert [hit.memory.content for hit in hits] == [has, lacks]
    assert hits[0].score >= hits[1].score


@pytest.mark.parametrize(
    ("first", "second", "query"),
    [
        ("送別会は恵比寿のビストロで", "会は12人", "送別会の店はどこ？"),
        ("家賃の振込先は東中野銀行", "部屋は1階で家賃も安い", "家賃の振込先は？"),
        ("How Leo gets old coins: from Grandpa", "Eight kids are invited", "How old is Leo?"),
    ],
)
def test_nothing_else_changes_places(hits_among, first, second, query):
    assert hits_among([first, second], query)[0].memory.content == first
