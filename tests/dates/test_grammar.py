"""docs/date-expressions.md lists every date expression, with an example that it reads."""

import dates_grammar
import pytest

from memory_mcp.dates.recognize import AS_ARGUMENTS, IN_TEXTS, recognize
from memory_mcp.dates.spans import normalize

TODAY = dates_grammar.NOW.date()
EXAMPLES = [(table, expression, example) for table in (AS_ARGUMENTS, IN_TEXTS) for expression in table for example in expression.examples]


def test_the_table_of_the_page_is_generated_from_the_expressions():
    assert dates_grammar.PAGE.read_text(encoding="utf-8") == dates_grammar.with_table(), "run python tests/support/dates_grammar.py"


def test_every_expression_has_an_example():
    assert [one.kind for one in (*AS_ARGUMENTS, *IN_TEXTS) if not one.examples] == []


@pytest.mark.parametrize(("table", "expression", "example"), EXAMPLES, ids=[example for _, _, example in EXAMPLES])
def test_an_example_is_read_by_its_own_expression_and_by_no_earlier_one(table, expression, example):
    plain = normalize(example)
    recognized = {(one.start, one.end) for one in recognize(example, table).resolved(TODAY)}
    assert recognized & {match.span() for match in expression.find(plain)}
    earlier = table[: table.index(expression)]
    spans = {match.span() for match in expression.find(plain)}
    assert not any(match.span() in spans for other in earlier for match in other.find(plain))
