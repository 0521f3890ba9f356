"""A call finds its tool in one table, and everything that is not in it is found as before."""

import pytest
from fastmcp.server.providers import LocalProvider
from fastmcp.tools import FunctionTool
from fastmcp.utilities.versions import VersionSpec

pytestmark = pytest.mark.both_eras


class Asked(LocalProvider):
    """A provider that notes the tools that it is asked for."""

    def __init__(self):
        super().__init__()
        self.names = []

    async def get_tool(self, name, version=None):
        self.names.append(name)
        return await super().get_tool(name, version)


def another_tool(said: str) -> str:
    return said


def test_no_provider_is_asked_for_a_tool_of_the_server(own_server, connect):
    asked = Asked()
    own_server.mcp.add_provider(asked)
    caller = connect(own_server, "nilou")
    caller("remember", content="一度だけ")
    caller("recall", query="一度")
    assert asked.names == []


def test_a_tool_that_is_not_the_servers_is_found_with_its_provider(own_server, portal):
    asked = Asked()
    asked.add_tool(FunctionTool.from_function(another_tool))
    own_server.mcp.add_provider(asked)
    found = portal.call(own_server.mcp.get_tool, "another_tool")
    assert (found.name, asked.names) == ("another_tool", ["another_tool"])


def test_a_tool_in_a_version_is_looked_for_with_the_providers(own_server, portal):
    asked = Asked()
    own_server.mcp.add_provider(asked)
    assert portal.call(own_server.mcp.get_tool, "recall", VersionSpec(eq="2")).name == "recall"
    assert asked.names == ["recall"]
