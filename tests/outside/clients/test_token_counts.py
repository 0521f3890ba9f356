"""What a model pays for the tools and for the lines of an answer, as o200k counts tokens."""

import pytest

from benchmarks.o200k import counted
from benchmarks.tokens import tools
from memory_mcp.server.answer_text import memory_line

TOOLS_TOKENS, LINE_TOKENS, CONTENT = 900, 32, "健太は苺が好き。"
HIT = {
    "key": "jt135gn482",
    "content": CONTENT,
    "source": "健太",
    "session_id": "chat-0123456789ab",
    "kind": "conversation",
    "score": 1.6213,
}
HITS = [
    {**HIT, "created_at": "2025-10-29T21:38:00+09:00", "ago": "昨日", "tags": ["食べ物"]},
    {**HIT, "created_at": "2025-03-02T21:38:00+09:00", "ago": "7か月前", "importance": 0.8},
    {**HIT, "created_at": "2025-10-29T21:38:00+09:00", "occurred_at": "2025-11-05T15:00:00+09:00", "ago": "6日後"},
    {**HIT, "created_at": "2025-10-20T21:38:00+09:00", "ago": "10日前", "_source": "upcoming", "upcoming_on": "2025-11-05"},
]


@pytest.fixture
def tokens(node):  # the packages are there
    assert node
    return lambda *texts: counted(texts)


def test_the_core_tools_cost_at_most_nine_hundred_tokens(tokens):
    counts = tools()
    assert counts["tokenizer"] == "o200k"
    assert counts["json"] <= TOOLS_TOKENS


def test_a_memory_costs_at_most_thirty_two_tokens_besides_what_it_says(tokens):
    content, *lines = tokens(CONTENT, *(f"{memory_line(hit)}\n" for hit in HITS))
    assert max(lines) - content <= LINE_TOKENS
    assert sum(lines) / len(lines) - content <= LINE_TOKENS - 3


def test_a_new_key_costs_half_of_an_earlier_one(tokens):
    (new, earlier) = tokens("jt135gn482", "memory_20251029213800_jtlgnd35")
    assert 2 * new <= earlier
