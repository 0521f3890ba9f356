"""What clients send that is not quite what the schema says: forgiven where it is clear, refused in our words where it is not."""

import pytest

from memory_mcp.server.arguments import filled_in
from memory_mcp.server.http.routes import OPERATIONS
from memory_mcp.server.mcp.tools import TOOLSETS


def test_null_means_the_default_for_every_argument_that_has_one(persona):
    optional = ("source", "session_id", "kind", "tags", "importance", "occurred_at", "questions", "state", "supersedes")
    assert persona("remember", content="null でも", **dict.fromkeys(optional))["stored"]
    optional = ("top_k", "mode", "tags", "date_range", "min_importance", "hypothetical", "keys", "detail", "max_tokens")
    assert len(persona("recall", query="null", **dict.fromkeys(optional))["hits"]) == 1
    assert persona("get_context", query=None, max_tokens=None)["memories"] == 1


NOTHING = ("null", "None", "NULL", " undefined ")


@pytest.mark.parametrize("nothing", NOTHING)
def test_the_word_null_means_nothing_in_every_argument_but_a_text_to_keep_or_to_ask(persona, nothing):
    optional = ("source", "session_id", "kind", "importance", "occurred_at", "state", "supersedes", "category", "expires_at", "metadata")
    stored = persona("remember", content=nothing.strip(), tags=[nothing, "a"], questions=nothing, **dict.fromkeys(optional, nothing))
    filters = ("top_k", "mode", "date_range", "min_importance", "detail", "max_tokens", "category", "session_id", "kind", "source")
    (hit,) = persona("recall", query=nothing, tags=f'["a", "{nothing}"]', keys=[nothing], **dict.fromkeys(filters, nothing))["hits"]
    assert (hit["key"], hit["content"], hit["tags"]) == (stored["key"], nothing.strip(), ["a"])
    assert not {"source", "session_id", "occurred_at", "metadata", "category"} & set(hit)
    changed = persona("update_context", emotion="平静", environment=nothing, user_info={"name": nothing, "nickname": "空"})["changed"]
    assert set(changed) == {"emotion", "user_info"}
    assert changed["user_info"]["after"] == {"nickname": "空"}
    assert "the argument 'key' is missing" in persona.refusal("revise", key=nothing, content="x")


@pytest.mark.parametrize("nothing", NOTHING)
def test_so_it_does_over_http(http, nothing):
    sent = {"X-Persona": f"nothing {nothing.strip()}"}
    fields = {"source": nothing, "importance": nothing, "tags": [nothing], "occurred_at": nothing}
    assert http.post("/api/memories", headers=sent, json={"content": nothing.strip(), **fields}).status_code == 200
    query = {"query": nothing, "top_k": nothing, "source": nothing, "tags": nothing, "date_range": nothing, "kind": nothing}
    (hit,) = http.get("/api/recall", headers=sent, params=query).json()["hits"]
    assert hit["content"] == nothing.strip()
    assert not {"source", "tags", "occurred_at"} & set(hit)
    assert http.get("/api/memory", headers=sent, params={"key": nothing}).status_code == 400


def test_every_operation_takes_it_for_an_argument_that_was_not_sent():
    for operation in (*OPERATIONS, *(action for actions in TOOLSETS.values() for action in actions)):
        fields = operation.arguments.model_fields
        kept = filled_in(operation.arguments, dict.fromkeys(fields, "null"))
        assert set(kept) <= {"content", "text", "raw_text", "query", "keyword", "hypothetical", "task", "confirm"}, operation.name


def test_lists_objects_and_numbers_may_come_as_strings(persona):
    key = persona(
        "remember",
        content="文字列だらけ",
        tags='["a", "b"]',
        importance="0.75",
        questions="これは何？",
        state='{"emotion": "平静"}',
    )["key"]
    (hit,) = persona("recall", keys=f'["{key}"]')["hits"]
    assert (hit["tags"], hit["importance"], hit["state"]) == (["a", "b"], 0.75, {"emotion": "平静"})
    found = persona("recall", query="文字列", top_k="1", min_importance="0.5", max_tokens="500", tags="a")
    assert [hit["key"] for hit in found["hits"]] == [key]
    assert persona("forget", keys=key, dry_run="true")["outcomes"][0]["outcome"] == "would_forget"
    assert persona("get_context", max_tokens="100")["memories"] == 1
    assert persona("update_context", user_info='{"name": "空"}')["changed"]["user_info"]["after"] == {"name": "空"}


@pytest.mark.parametrize(
    ("date_range", "found"),
    [
        (["2025-10-01", "2025-10-02"], ["花"]), ('["2025-10-01", "2025-10-02"]', ["花"]), (["2025-10-01"], ["花"]), (["2025-10-03", None], []),
        (["", "2025-10-02"], ["花"]), ([None, "2025-09-30"], []), ([], ["花"]), ("[]", ["花"]), ([None, None], ["花"]),
    ],
)  # fmt: skip
def test_a_range_of_dates_may_come_as_a_list(persona, date_range, found):
    persona("remember", content="花", occurred_at="2025-10-01")
    assert [hit["content"] for hit in persona("recall", query="花", date_range=date_range)["hits"]] == found


def test_a_number_where_a_text_belongs_is_taken_as_its_digits(persona):
    key = persona("remember", content=42, session_id=7)["key"]
    (hit,) = persona("recall", keys=[key])["hits"]
    assert (hit["content"], hit["session_id"]) == ("42", "7")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("remember", {"contents": "x"}, "the argument 'content' is missing"),
        ("remember", {"contents": "x"}, "no argument 'contents' (did you mean content?)"),
        ("remember", {"content": "x", "persona": "nilou"}, "no argument 'persona' (it takes content, source,"),
        ("revise", {}, "the argument 'key' is missing"),
        ("remember", {"content": {"text": "x"}}, 'content should be a valid string, not {"text": "x"}'),
        ("remember", {"content": "x", "importance": "high"}, 'importance must be a number, not "high"'),
        ("remember", {"content": "x", "importance": True}, "importance must be a number, not true"),
        ("remember", {"content": "x", "importance": 10**400}, "importance should be a valid number, not 1000"),
        ("update_context", {"user_info": "Kenta"}, 'user_info must be an object of texts such as {"name": "Kenta"}'),
        ("remember", {"content": "x", "state": "happy"}, 'state must be an object of texts such as {"emotion": "happy"}'),
        ("remember", {"content": "x", "tags": [{"a": 1}]}, 'tags.0 should be a valid string, not {"a": 1}'),
        ("recall", {"query": "x", "top_k": 2.5}, "top_k must be a whole number, not 2.5"),
        ("recall", {"query": "x", "date_range": ["昨日", "今日", "明日"]}, "date_range must be one date, or two"),
        ("recall", {"query": "x", "date_range": {"from": "昨日"}}, 'date_range should be a valid string, not {"from"'),
        ("recall", {"query": "x", "top_k": "many"}, 'top_k must be a number, not "many"'),
        ("forget", {"keys": ["a"], "dry_run": "perhaps"}, 'dry_run must be true or false, not "perhaps"'),
        ("forget", {"keys": '["\\ud83d"]'}, "keys must not hold half of a surrogate pair"),
        ("remember", {"content": "x", "tags": '[["\\ud83d"]]'}, "tags must not hold half of a surrogate pair"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(persona, tool, arguments, words):
    said = persona.refusal(tool, **arguments)
    assert said.startswith(f"{tool} was not called: ")
    assert words in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("recall", {"query": "x", "top_k": 0}, "top_k is 0: it runs from 1 to 50. Send"),
        ("recall", {"query": "x", "top_k": 10**6}, "top_k is 1000000: it runs from 1 to 50. Send"),
        ("recall", {"query": "x", "max_tokens": 1}, "max_tokens is 1: it runs from 50 to 100,000"),
        ("recall", {"query": "x", "mode": "fuzzy"}, "mode is 'fuzzy': it is one of auto, keyword, semantic, graph, recent"),
        ("recall", {"query": "x", "detail": "all"}, "detail is 'all': it is one of full, index"),
        ("recall", {"query": "x", "min_importance": 2}, "min_importance is 2: it runs from 0 to 1"),
        ("recall", {"query": "x", "date_range": "きっといつか"}, "date_range 'きっといつか' is no date that can be understood"),
        ("recall", {"query": "  "}, "query is empty"),
        ("recall", {"query": "x" * 10_001}, "query has 10,001 characters: 10,000 are the limit"),
        ("recall", {"keys": ["a"] * 101}, "keys has 101 entries"),
        ("get_context", {"query": "あ" * 3_000_0}, "query has 30,000 characters: 10,000 are the limit"),
        ("get_context", {"max_tokens": 10**9}, "max_tokens is 1000000000"),
        ("remember", {"content": " 　\n"}, "content is empty"),
        ("remember", {"content": None}, "content is empty"),
        ("remember", {"content": "x" * 200_001}, "content has 200,001 characters: one memory holds at most 200,000. Split it"),
        ("remember", {"content": "a\x00b"}, "content holds a NUL character at character 2"),
        ("remember", {"content": "x", "source": "a\x00"}, "source holds a NUL character"),
        ("remember", {"content": "x", "occurred_at": "the day after never"}, "is no date that can be understood. Send 2025-10-17"),
        ("remember", {"content": "x", "kind": "summary"}, "kind is 'summary': it is one of fact, conversation, experience"),
        ("remember", {"content": "x", "importance": 1.5}, "importance is 1.5: it runs from 0 to 1"),
        ("remember", {"content": "x", "importance": "NaN"}, "importance is nan: it runs from 0 to 1"),
        ("remember", {"content": "x", "state": {"mood": "good"}}, "state has the unknown field 'mood'"),
        ("remember", {"content": "x", "tags": ["t"] * 101}, "tags has 101 entries: 100 are the limit"),
        ("remember", {"content": "x", "tags": "[" * 50_000}, "tags has 50,000 characters: 500 are the limit"),
        ("remember", {"content": "x", "supersedes": "memory_0"}, "supersedes names memory_0: this persona has no memory with that key"),
        ("revise", {"key": "memory_0", "content": "x"}, "no memory has the key memory_0. Take the key from a recall"),
        ("revise", {"key": "memory_0"}, "nothing to revise"),
        ("revise", {"key": "memory_0", "content": "  "}, "content is empty"),
        ("forget", {"keys": []}, "keys has 0 entries: forget takes 1 to 100"),
        ("forget", {"keys": None}, "keys has 0 entries"),
        ("update_context", {}, "nothing to update"),
        ("update_context", {"emotion": "x" * 2_001}, "emotion has 2,001 characters: 2,000 are the limit"),
        ("update_context", {"user_info": {"age": "17"}}, "user_info has the unknown field 'age'"),
        ("update_context", {"emotion": "a\x00"}, "emotion holds a NUL character"),
    ],
)
def test_a_value_that_can_not_be_used_is_refused_with_what_to_do(persona, server, name, tool, arguments, words):
    assert words in persona.refusal(tool, **arguments)
    assert not server.directory_of(name).exists()


def test_a_tool_that_is_not_there_is_answered_with_those_that_are(persona):
    assert persona.refusal("recal", query="x") == (
        "There is no tool 'recal'. This server has get_context, remember, recall, revise, forget, update_context."
    )


def test_a_memory_as_long_as_the_limit_is_stored_whole(persona):
    content = "x" * 199_999 + "終"
    key = persona("remember", content=content)["key"]
    (hit,) = persona("recall", keys=[key], max_tokens=100_000)["hits"]
    assert hit["content"] == content


def test_a_memory_that_has_been_forgotten_is_not_revised_behind_the_users_back(persona):
    key = persona("remember", content="忘れて")["key"]
    persona("forget", keys=[key])
    assert "is in the trash" in persona.refusal("revise", key=key, content="やっぱり")
