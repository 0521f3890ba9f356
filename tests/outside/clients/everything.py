"""Our server with the tools, resources and prompts that the conformance suite asks for by name.

    python tests/outside/clients/everything.py serve --port 0 …

It takes the arguments of `memory-mcp` and runs the product's own composition root and edge; only the list of what the server
offers is longer. The suite sends no headers, so it speaks as the default persona.
"""

import asyncio
import json
from collections.abc import Callable

import mcp.types as wire
import questions
from fastmcp import Context, FastMCP
from fastmcp.exceptions import McpError, ToolError
from fastmcp.prompts import Message
from fastmcp.tools import FunctionTool
from mcp.types import AudioContent, EmbeddedResource, ImageContent, TextContent, TextResourceContents
from media import PNG, WAV, base64_of

from memory_mcp import cli
from memory_mcp.config.settings import Settings
from memory_mcp.server import application as composed

PICTURE = ImageContent(type="image", data=base64_of(PNG), mime_type="image/png")
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def resource_of(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def register_contents(mcp: FastMCP) -> None:
    @mcp.tool
    def test_simple_text() -> str:
        """Answers with a text."""
        return "This is a simple text response for testing."

    @mcp.tool
    def test_image_content() -> list[ImageContent]:
        """Answers with a picture."""
        return [PICTURE]

    @mcp.tool
    def test_audio_content() -> list[AudioContent]:
        """Answers with a sound."""
        return [AudioContent(type="audio", data=base64_of(WAV), mime_type="audio/wav")]

    @mcp.tool
    def test_embedded_resource() -> list[EmbeddedResource]:
        """Answers with a resource."""
        return [resource_of("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @mcp.tool
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Answers with three kinds of content."""
        data = resource_of("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123}))
        return [TextContent(type="text", text="Multiple content types test:"), PICTURE, data]

    @mcp.tool
    def test_error_handling() -> str:
        """Fails on purpose."""
        raise ToolError("This tool intentionally returns an error for testing")


def register_talkative_tools(mcp: FastMCP) -> None:
    """Those that say something before they answer."""

    @mcp.tool
    async def test_tool_with_progress(context: Context) -> str:
        """Tells how far it is."""
        for percent in (0, 50, 100):
            await context.report_progress(percent, 100)
            await asyncio.sleep(0.05)
        return "done"

    @mcp.tool
    async def test_tool_with_logging(context: Context) -> str:
        """Logs to the client."""
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.info(words)
        return "done"

    @mcp.tool
    async def test_logging_tool(context: Context) -> str:
        """Logs to the client, which may not want to hear it."""
        await context.info("something happened")
        return "done"


def register_odd_tools(mcp: FastMCP) -> None:
    """Those with a schema or an answer that no decorator makes."""

    @mcp.tool
    def test_missing_capability() -> str:
        """Can't do without a client that samples."""
        raise McpError(
            code=-32021,
            message="Missing required client capability",
            data={"requiredCapabilities": {"sampling": {}}},
        )

    def schema_tool(name: str = "", address: dict[str, str] | None = None, **_rest: str) -> str:
        return name or str(address)

    def header_tool(region: str) -> str:
        return region

    mcp.add_tool(schema_of(schema_tool, "json_schema_2020_12_tool", SCHEMA_2020_12))
    in_header = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]}
    mcp.add_tool(schema_of(header_tool, "test_custom_headers", in_header))


def schema_of(function: Callable[..., str], name: str, schema: dict) -> FunctionTool:
    return FunctionTool(fn=function, name=name, description="A tool whose schema says more than its function.", parameters=schema)


def register_resources(mcp: FastMCP) -> None:
    @mcp.resource("test://static-text", description="A text.", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @mcp.resource("test://static-binary", description="A picture.", mime_type="image/png")
    def static_binary() -> bytes:
        return PNG

    @mcp.resource("test://template/{id}/data", description="Data by number.", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002  the suite's name for it
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def register_prompts(mcp: FastMCP) -> None:
    @mcp.prompt(description="A prompt without arguments.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @mcp.prompt(description="A prompt with arguments.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @mcp.prompt(description="A prompt with a resource in it.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803  the suite's name for it
        resource = resource_of(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [Message(resource), Message("Please process the embedded resource above.")]

    @mcp.prompt(description="A prompt with a picture in it.")
    def test_prompt_with_image() -> list[Message]:
        return [Message(PICTURE), Message("Please analyze the image above.")]

    @mcp.completion
    def complete(
        _reference: wire.PromptReference | wire.ResourceTemplateReference,
        argument: wire.CompletionArgument,
        _context: wire.CompletionContext | None,
    ) -> list[str]:
        return [word for word in ("paris", "park", "party") if word.startswith(argument.value)]


def extended(settings: Settings, on_started: Callable[[], None] | None = None) -> FastMCP:
    """The product's server, and what the suite asks for on it."""
    mcp = product(settings, on_started)
    for register in (
        register_contents,
        register_talkative_tools,
        register_odd_tools,
        register_resources,
        register_prompts,
        questions.register,
    ):
        register(mcp)
    return mcp


product = composed.mcp_server

if __name__ == "__main__":
    composed.mcp_server = extended  # where the composition root takes it from
    cli.main()
