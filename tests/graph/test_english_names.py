"""Names in English as the light rules read them: where a run of capitals ends."""

from datetime import date

import pytest

from memory_mcp.graph.extract.extraction import extract_mentions


def named(text):
    return [(one.name, one.type) for one in extract_mentions(text, (), stated_on=date(2025, 11, 21))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Meeting October 17, 2025 with Bob", [("2025-10-17", "TimeUnit"), ("Bob", "Person")]),
        ("Meeting Oct. 17, 2025 with Bob", [("2025-10-17", "TimeUnit"), ("Bob", "Person")]),
        ("Trip October 17-19 was fun", [("2025-10-17", "TimeUnit"), ("2025-10-19", "TimeUnit")]),
        ("Vacation March 3", [("2026-03-03", "TimeUnit")]),
        ("Party Dec 24", [("2025-12-24", "TimeUnit")]),
        ("Trip October 2025", [("2025-10", "TimeUnit")]),
        ("Visited Kyoto October 17", [("Kyoto", None), ("2025-10-17", "TimeUnit")]),
        ("See Kyoto October 17", [("Kyoto", None), ("2025-10-17", "TimeUnit")]),
        ("We had dinner with Anna May 5", [("Anna", "Person"), ("2025-05-05", "TimeUnit")]),
        ("Dinner with Dr. Kim May 5, 2026", [("Kim", "Person"), ("2026-05-05", "TimeUnit")]),
        ("A trip to Kyoto 17 October", [("Kyoto", None), ("2025-10-17", "TimeUnit")]),
        ("A trip to Kyoto 17th of October", [("Kyoto", None), ("2025-10-17", "TimeUnit")]),
        ("The Sakura Festival April 5-6", [("Sakura Festival", "Event"), ("2026-04-05", "TimeUnit"), ("2026-04-06", "TimeUnit")]),
    ],
)
def test_a_name_ends_before_a_date(text, expected):
    assert named(text) == expected


@pytest.mark.parametrize("said", ["Trip October ", "Oct ", "A 1 of ", "May 17 ", "Kim 17 "])
def test_a_text_full_of_months_is_read_as_fast_as_any(said):
    """What is read again for each word takes minutes: the test's own timeout tells."""
    named((said * 20_000)[:20_000])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We use Python 3.11 now", "Python"),
        ("We use Node.js 20 now", "Node.js"),
        ("I like Windows 11", "Windows"),
        ("Vue.js is fun", "Vue.js"),
        ("Pythonの勉強を始めた", "Python"),
    ],
)
def test_the_version_of_a_tool_is_no_part_of_its_name(text, name):
    assert named(text) == [(name, None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thanks Caroline, see you", [("Caroline", None)]),
        ("Yuki said that she is late", [("Yuki", "Person")]),
        ("Everybody said that", []),
        ("Coffee gives me headaches", []),
        ("I learn Japanese on Monday", []),
        ("Dinner with Paul and Grace", [("Paul", "Person"), ("Grace", "Person")]),
    ],
)
def test_a_word_that_begins_a_sentence_is_a_name_only_if_it_is_no_other_word(text, expected):
    assert named(text) == expected


LONG_ANSWER = (
    "# How to Make it work\n\n1. **Make a list**: it will help you to make plans, and you may use it each day. I told Greta about it, and she will help.\n"
    "Rose said that the price rose again.\n"
) + "- You may also make a pause, use a timer, and ask for help when you need it.\n" * 6


def test_a_word_that_a_long_text_also_writes_small_is_no_name():
    assert [name for name, _ in named(LONG_ANSWER)] == ["Greta"]
    assert [name for name, _ in named("# How to Make it work")] == ["Make"]
