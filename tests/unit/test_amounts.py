"""Which amount a question asks for, and which texts have one."""

import pytest

from memory_mcp.language.amounts import asked_amount
from memory_mcp.language.tokens import normalise


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("家賃いくら？", "家賃は月6万8千円", "40kg上がった"),
        ("ジムの料金は？", "月8千ちょい", "月2回しか行けてない"),
        ("歯医者は何時から？", "水曜19時に予約した", "3時間待った"),
        ("送別会って何人？", "店は12人で予約", "11月20日に恵比寿"),
        ("りくは何歳？", "りくは17才", "りくは3月生まれ"),
        ("双子いくつになった？", "3歳になった", "双子かわいい"),
        ("How much did the desk cost?", "Ordered a desk, $720", "The desk arrived on day 10"),
        ("What is the rent?", "It's 950 dollars a month", "Two rooms and a yard"),
        ("What time is standup?", "Standup moved to 10:00", "Standup is every weekday, all 5 of them"),
        ("How old is Leo?", "Leo, who is 7", "Leo got into the chess club"),
        ("How many kids are coming?", "Eight kids are invited", "The kids are invited"),
    ],
)
def test_a_text_has_the_amount_that_is_asked_for_or_lacks_it(question, has, lacks):
    amount = asked_amount(normalise(question))
    assert amount is not None
    assert amount.search(normalise(has))
    assert not amount.search(normalise(lacks))


@pytest.mark.parametrize(
    "question",
    [
        "家賃もう払った？",
        "何人か来る？",
        "何時間寝た？",
        "いくらでも食べられる？",
        "歯医者はどこ？",
        "Where do I rent?",
        "How is Leo?",
        "What does Leo like?",
    ],
)
def test_a_question_for_something_else_asks_for_no_amount(question):
    assert asked_amount(normalise(question)) is None
