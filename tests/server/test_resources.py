"""The memory:// resources and the prompts."""

import json

import pytest
from mcp import MCPError

pytestmark = pytest.mark.both_eras


def read(caller, uri):
    (content,) = caller.wait(caller.client.read_resource, uri)
    assert content.mime_type == "application/json"
    return json.loads(content.text)


def prompt(caller, name, arguments=None):
    (message,) = caller.wait(caller.client.get_prompt, name, arguments).messages
    return message.content.text


def test_the_resources_are_listed_with_what_they_hold(persona):
    listed = persona.wait(persona.client.list_resources)
    assert {str(resource.uri) for resource in listed} == {"memory://info", "memory://stats", "memory://status"}
    assert all(resource.description for resource in listed)


def test_info_says_whose_memory_it_is(persona, name):
    told = read(persona, "memory://info")
    assert (told["persona"], told["new_persona"], told["timezone"]) == (name, True, "Asia/Tokyo")


def test_stats_count_what_is_remembered(persona, name):
    persona("remember", content="一つ目", occurred_at="2025-10-01")
    persona("remember", content="二つ目", kind="experience")
    told = read(persona, "memory://stats")
    assert (told["persona"], told["memories"], told["by_kind"]) == (name, 2, {"experience": 1, "fact": 1})
    assert (told["first"][:10], told["last"][:10]) == ("2025-10-01", "2025-10-30")


def test_status_says_what_works(persona):
    told = read(persona, "memory://status")
    assert told["ready"]
    assert told["models"] == {"embedder": {"state": "off"}, "reranker": {"state": "off"}}
    assert told["index_lag"] == 0


def test_a_resource_for_a_name_that_can_not_be_used_is_refused_in_our_words(server, connect):
    nobody = connect(server, headers={"X-Persona": ""})
    with pytest.raises(MCPError, match="the persona name is empty"):
        read(nobody, "memory://stats")


def test_a_resource_that_is_not_there_is_refused_without_a_traceback(persona):
    with pytest.raises(MCPError, match="memory://secrets") as refusal:
        read(persona, "memory://secrets")
    assert "Traceback" not in str(refusal.value)


def test_the_prompts_tell_a_model_when_to_use_its_memory(persona):
    assert {listed.name for listed in persona.wait(persona.client.list_prompts)} == {"session_start", "memory_protocol"}
    protocol = prompt(persona, "memory_protocol")
    for tool in persona.wait(persona.client.list_tools):
        assert tool.name in protocol
    assert "get_context now" in prompt(persona, "session_start")
    assert 'query="旅行"' in prompt(persona, "session_start", {"topic": "旅行"})
