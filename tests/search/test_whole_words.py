"""A search by words prefers what has more of the words of a Japanese question to what has parts of them."""

import pytest

from memory_mcp.store.lexical import bm25_index


@pytest.fixture
def first(found):
    """first(query, *memories): what a search finds first of these beside thirty others."""
    return lambda query, *memories: found(query, *memories)[0]


@pytest.mark.parametrize(
    ("query", "whole", "parts"),
    [
        (
            "コーヒーをやめることになったのはどうして？",
            "コーヒーは当分やめるように言われた",
            "家を出ることになったのは海のそばに住みたかったから",
        ),
        ("図書館の本の返却期限は？", "返却は来週の火曜だと、図書館の人が教えてくれた", "図鑑の本の期限つきの広告"),
        ("引っ越しの業者の見積もりはいくら？", "業者の人が来て、見積もりを置いていった", "引っ越しの次の引っ越し"),
    ],
)
def test_what_has_the_words_stands_before_what_has_parts_of_them(first, query, whole, parts):
    assert first(query, whole, parts) == whole


def test_what_is_not_read_is_not_raised(first, monkeypatch):
    monkeypatch.setattr(bm25_index, "WHOLE_WORDS_ROWS", 1)
    query, whole, parts = "図書館の本の返却期限は？", "返却は来週の火曜だと、図書館の人が教えてくれた", "図鑑の本の期限つきの広告"
    assert first(query, whole, parts) == parts


def test_words_between_spaces_count_as_before(first):
    rambling = "The library's loan desk " + "closed early in the rain and nobody told anyone why, " * 2 + "not even us"
    assert first("When is the library loan deadline?", "Deadline of the deadline", rambling) == "Deadline of the deadline"
