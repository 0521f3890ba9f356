"""MCP Apps: which tools have a page, what a host is told of it, and that it holds nothing of any persona."""

import json

import pytest

from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.feature("dashboard", "graph")

APPS = {
    "graph_snapshot": "ui://memory-mcp/graph.html",
    "history": "ui://memory-mcp/history.html",
    "explain_recall": "ui://memory-mcp/why.html",
}


@pytest.fixture(scope="module")
def all_tools(tmp_path_factory, serving):
    """A server with the tools that have pages."""
    with serving(tmp_path_factory.mktemp("apps"), toolsets=["core", "upkeep", "graph"]) as served:
        yield served


def test_three_tools_name_their_page_and_it_is_listed_as_an_app(all_tools, connect, name):
    caller = connect(all_tools, name)
    tools = {tool.name: (tool.meta or {}).get("ui") for tool in caller.wait(caller.client.list_tools)}
    assert {tool: ui["resourceUri"] for tool, ui in tools.items() if ui} == APPS
    listed = {str(resource.uri): resource for resource in caller.wait(caller.client.list_resources)}
    assert set(APPS.values()) <= set(listed)
    assert all(listed[address].mime_type == "text/html;profile=mcp-app" for address in APPS.values())


@pytest.mark.parametrize("address", APPS.values())
def test_a_page_loads_nothing_and_is_the_same_for_everybody(all_tools, connect, name, address):
    caller = connect(all_tools, name)
    caller("remember", content="睡蓮の合言葉")
    (content,) = caller.wait(caller.client.read_resource, address)
    assert content.mime_type == "text/html;profile=mcp-app"
    assert content.meta["ui"]["csp"] == {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []}
    assert not [loaded for loaded in (" src=", "@import", "url(", "睡蓮", name) if loaded in content.text.partition("/**")[0]]
    assert content.text.count("<script>") == content.text.count("</script") > 3
    other = connect(all_tools, f"{name}-other")
    assert other.wait(other.client.read_resource, address)[0].text == content.text


def test_a_server_with_the_core_tools_alone_has_no_pages_and_its_list_is_no_longer(persona):
    tools = persona.wait(persona.client.list_tools)
    assert not [tool.name for tool in tools if "ui" in (tool.meta or {})]
    assert not [resource for resource in persona.wait(persona.client.list_resources) if str(resource.uri).startswith("ui:")]


def test_any_token_may_read_a_page(tmp_path, serving, connect, name):
    with serving(tmp_path, toolsets=["core", "upkeep"]) as guarded:
        for scope in ("read", "write"):
            secret = create_token(guarded.data, name="", personas=[name], scopes=[scope], now=guarded.clock())[1]
            caller = connect(guarded, headers={"X-Persona": name, "Authorization": f"Bearer {secret}"})
            assert caller.wait(caller.client.read_resource, "ui://memory-mcp/why.html")[0].text


def test_why_memories_are_recalled_is_answered_in_full_to_hosts_without_pages(all_tools, connect, name):
    caller = connect(all_tools, name)
    caller("remember", content="健太は苺が好き。", source="健太")
    result = caller.result("explain_recall", {"query": "健太の苺"})
    (hit,) = result.structured_content["hits"]
    assert hit["why"]["lexical"] == 1
    assert "健太は苺が好き。" in result.content[0].text
    assert "lexical" in result.content[0].text
    assert "query" in caller.refusal("explain_recall")
    assert json.dumps(caller("recall", query="健太の苺", detail="why")["hits"]) == json.dumps([hit])
