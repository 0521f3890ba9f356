"""Which words a text must contain for a date expression to be tried on it."""

import re

import pytest

from memory_mcp.dates.needed_words import needed_words
from memory_mcp.dates.numerals import normalize
from memory_mcp.dates.recognize import AS_ARGUMENTS, IN_STATEMENTS


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(?<![a-z])(?:the )?week of (?:may|june)", {"week of "}),
        (r"昨日|きのう|(?<![a-z])yesterday", {"昨日", "きのう", "yesterday"}),
        (r"\d{1,2}[月日](?!前)", {"月", "日"}),
        (r"お?盆(?=休み)", {"休み"}),
        (r"(?:ago)+|a year ago", {"ago"}),
        (r"(?i:week)\d+", set()),
        (r"年|\d{4}", set()),
        (r"[^a-z]+", set()),
    ],
)
def test_every_match_has_one_of_these_words(pattern, words):
    assert needed_words(re.compile(pattern)) == words


def test_nothing_is_said_of_an_expression_that_does_not_care_about_case():
    assert needed_words(re.compile("week", re.IGNORECASE)) == set()


@pytest.mark.parametrize("table", [IN_STATEMENTS, AS_ARGUMENTS])
def test_an_expression_is_tried_on_every_text_that_it_matches(table):
    texts = [normalize(example) for expression in table.expressions for example in expression.examples]
    for text in texts:
        tried = table.for_text(text)
        matching = [entry for entry in tried if entry.pattern.search(text)]
        assert matching
        needing = [entry for entry in table.expressions if entry.pattern.search(text) and needed_words(entry.pattern)]
        assert all(any(word in text for word in needed_words(entry.pattern)) for entry in needing)
