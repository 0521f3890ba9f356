"""Calls of tools as they are read from answers of vendors, whole ones and streams."""

import json

import pytest

from memory_mcp.features.gateway import answers


def call(number, **fields):
    return {"id": str(number), "type": "function", "function": {"name": "recall", "arguments": f'{{"query": "{number}"}}'}, **fields}


def read(calls, of_stream):
    choice = {"delta" if of_stream else "message": {"tool_calls": calls}, "finish_reason": "tool_calls"}
    body = json.dumps({"choices": [choice]}).encode()
    if not of_stream:
        return answers.whole(body, are_calls_wanted=True).calls
    events = answers.Events(holds_calls=True)
    events.feed(b"data: " + body + b"\n\n")
    return events.answer.calls


@pytest.mark.parametrize("of_stream", [False, True])
@pytest.mark.parametrize("indexes", [(0, 1), (0, 0), (-1, -1), (7, 3), (True, True), ("0", None)])
def test_calls_of_one_answer_stay_apart_however_they_are_numbered(indexes, of_stream):
    calls = read([call(number, index=index) for number, index in enumerate(indexes, 1)], of_stream)
    assert calls == [call(1), call(2)]


def test_pieces_of_a_call_are_put_together():
    pieces = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "rec", "arguments": ""}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "forget"}},
        {"index": 0, "function": {"name": "all", "arguments": '{"query":'}},
        {"index": 0, "id": "a", "function": {"arguments": '"海"}'}},
    ]
    first, second = read(pieces, of_stream=True)
    assert (first["id"], first["function"]) == ("a", {"name": "recall", "arguments": '{"query":"海"}'})
    assert (second["id"], second["function"]) == ("b", {"name": "forget", "arguments": ""})


@pytest.mark.parametrize(
    ("choice", "is_given", "is_call"),
    [
        ({"message": {"content": "晴れです。"}, "finish_reason": "stop"}, True, False),
        ({"message": {"content": "晴れです。", "tool_calls": [None]}, "finish_reason": "stop"}, True, False),
        ({"message": {"content": "晴れ"}, "finish_reason": None, "error": {"message": "the provider failed"}}, False, False),
        ({"message": {"content": "見ます。", "function_call": {"name": "look", "arguments": "{}"}}, "finish_reason": "stop"}, False, True),
    ],
)
def test_only_what_was_said_to_its_end_is_given(choice, is_given, is_call):
    answer = answers.whole(json.dumps({"choices": [choice]}).encode())
    assert (answer.is_given, answer.is_call) == (is_given, is_call)


@pytest.mark.parametrize("count", [-1, 10**400, "7", None, 1.5])
def test_a_count_of_tokens_that_is_none_is_not_counted(count):
    assert answers.whole(json.dumps({"usage": {"prompt_tokens": count, "completion_tokens": 1}}).encode()).tokens is None
