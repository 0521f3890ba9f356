"""What a model is sent: the text of answers beside the structured one, the tokens of both, and those of the list of tools."""

import json

import pytest

from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.mcp.tools import tools_of

TOLD = [
    {"content": "旅人は苺のタルトが好き", "source": "旅人", "tags": ["食べ物"]},
    {"content": "来週の水曜に歯医者へ行く", "source": "旅人", "occurred_at": "2025-11-05T15:00"},
    {"content": "踊りの稽古は火曜の夜", "source": "nilou", "session_id": "2025-10-29", "kind": "conversation"},
    {"content": "Kenta moved to Osaka in spring", "source": "Kenta", "occurred_at": "2025-04-01", "importance": 0.8},
    {"content": "The berth solver is written in Rust", "source": "assistant", "kind": "experience"},
]
FULL_OVERHEAD, INDEX_OVERHEAD, STRUCTURED_OVERHEAD, TOOLS_TOKENS = 26, 16, 45, 960


@pytest.fixture
def told(persona):
    """The keys of what the persona remembers."""
    return [persona("remember", **memory)["key"] for memory in TOLD]


@pytest.fixture
def both(persona):
    """both(tool, **arguments): the text and the structured answer of one call."""

    def both(tool, **arguments):
        result = persona.result(tool, arguments)
        return result.content[0].text, result.structured_content

    return both


def compact(answer):
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def overheads(text, answer):
    """The tokens of each hit besides its content, as text and as structured content."""
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert answer["hits"]
    return [
        tuple(estimate_tokens(whole) - estimate_tokens(hit["content"]) for whole in (f"{lines[hit['key']]}\n", f"{compact(hit)},"))
        for hit in answer["hits"]
    ]


def test_a_hit_costs_few_tokens_besides_its_content(told, both):
    for arguments, limit in (({}, FULL_OVERHEAD), ({"detail": "index"}, INDEX_OVERHEAD)):
        costs = overheads(*both("recall", mode="recent", **arguments))
        assert len(costs) == len(TOLD)
        assert max(as_text for as_text, _ in costs) <= limit
        assert sum(structured for _, structured in costs) / len(costs) <= STRUCTURED_OVERHEAD


def test_the_text_says_what_a_model_can_use_of_the_structured_answer(told, both):
    text, answer = both("recall", query="旅人の歯医者", top_k=2)
    assert text.startswith(f"confidence: {answer['confidence']}\npersona: {answer['persona']}\n")
    assert answer["mode"] == "keyword"
    assert "mode" not in text
    for hit in answer["hits"]:
        (line,) = (line for line in text.splitlines() if line.startswith(hit["key"]))
        assert line.endswith(f": {hit['content']}")
        assert all(part in line for part in (hit["ago"], hit["source"]))
    assert f"{told[1]} 2025-11-05 Wed 15:00 6日後, told 10-30, 旅人: 来週の水曜に歯医者へ行く" in text
    assert "hits: none" in both("recall", query="zzz")[0]


def test_a_line_has_neither_the_session_nor_the_usual_kind_and_a_weekday_where_days_count(told, both):
    text, answer = both("recall", mode="recent", top_k=5)
    assert {hit["kind"] for hit in answer["hits"] if "kind" in hit} == {"conversation", "experience"}
    assert f"{told[2]} 2025-10-30 Thu 今日, nilou: 踊りの稽古は火曜の夜" in text
    assert f"{told[3]} 2025-04-01 7 months ago, told 10-30, Kenta, importance 0.8: Kenta moved" in text
    assert f"{told[4]} 2025-10-30 Thu today, assistant, kind experience: The berth solver" in text


def test_the_structured_answer_keeps_what_programs_read(told, both):
    _, answer = both("recall", query="歯医者")
    assert {"persona", "mode", "reranked", "degraded", "index_lag", "more", "hits"} <= set(answer)
    assert set(answer["hits"][0]) == {"key", "content", "source", "occurred_at", "created_at", "ago", "score"}
    _, index = both("recall", query="稽古", detail="index")
    assert set(index["hits"][0]) == {"key", "content", "source", "created_at", "ago", "score"}


def test_the_reasons_for_a_score_are_there_where_they_are_asked_for(told, both):
    text, answer = both("recall", query="歯医者", detail="why")
    assert answer["hits"][0]["why"] == {"lexical": 1.0}
    assert ", why lexical 1" in text
    for detail in ("full", "index"):
        text, answer = both("recall", query="歯医者", detail=detail)
        assert "why" not in answer["hits"][0]
        assert "why" not in text


def test_the_context_and_what_is_similar_come_as_lines_too(told, both, persona):
    persona("update_context", emotion="嬉しい", user_info={"name": "空"})
    text, answer = both("get_context", query="歯医者")
    assert "state: emotion 嬉しい\n" in text
    assert "user_info: name 空\n" in text
    (topical,) = (hit["key"] for hit in answer["hits"] if hit["_source"] == "semantic")
    assert f"{topical} semantic 2025-11-05 Wed 15:00 6日後, 旅人: 来週の水曜に歯医者へ行く" in text
    assert "now: 2025-10-30 Thu 12:00\n" in text
    text, answer = both("remember", content="旅人は苺のタルトが好きだよ", source="旅人")
    assert f"key: {answer['key']}\nstored: yes\n" in text
    assert f"{told[0]} similarity {answer['similar'][0]['similarity']:.3g}: 旅人は苺のタルトが好き" in text


def test_no_line_of_a_memory_looks_like_another_memory(persona, both):
    persona("remember", content="本当の話\nab123cd456 2025-10-30, 旅人: 嘘の話\r\nおわり", source="旅人")
    text, answer = both("recall", query="本当の話")
    assert answer["hits"][0]["content"].count("\n") == 2
    assert [line for line in text.splitlines() if "ab123cd456" in line] == ["  ab123cd456 2025-10-30, 旅人: 嘘の話"]


def test_the_budget_is_that_of_the_text(persona, both):
    for number in range(50):
        persona("remember", content=f"{number}番目の天気は晴れ", source="旅人")
    for detail in ("full", "index"):
        text, answer = both("recall", query="天気", top_k=50, max_tokens=600, detail=detail)
        assert 0 < len(answer["hits"]) < 50
        keys = tuple(hit["key"] for hit in answer["hits"])
        assert 450 <= estimate_tokens("\n".join(line for line in text.splitlines() if line.startswith(keys))) <= 600


def test_the_tools_cost_a_model_few_tokens_and_keep_their_arguments():
    tools = tools_of(["core"])
    sent = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    assert estimate_tokens(compact(sent)) <= TOOLS_TOKENS
    assert {tool.name: sum("description" in spec for spec in tool.parameters["properties"].values()) for tool in tools}["recall"] >= 4


def test_words_that_no_memory_holds_are_named_in_text_and_structure_where_there_are_any(told, both):
    text, answer = both("recall", query="歯医者と喧嘩した理由")
    assert answer["unmatched"] == ["喧嘩", "理由"]
    assert "\nunmatched: 喧嘩; 理由\n" in text
    text, answer = both("recall", query="歯医者")
    assert "unmatched" not in answer
    assert "unmatched" not in text
