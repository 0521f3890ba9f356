"""The `upkeep` toolset: what a memory said before, and erasing for good."""

from typing import Annotated, Any

from fastmcp.dependencies import Depends
from pydantic import Field

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.revise import Revision
from memory_mcp.remember.revise import revise as revise_memory
from memory_mcp.search.questions import token_budget
from memory_mcp.server.mcp_tools.arguments import ScopedTool, Text, TextList, WholeNumber, tool_of
from memory_mcp.server.refusals import answering
from memory_mcp.server.request_persona import Call, current_call
from memory_mcp.server.upkeep_views import history_view, purge_view
from memory_mcp.server.views import heading, memory_view
from memory_mcp.text.labels import label

HISTORY_TOKENS = 1_500


@answering
def history(key: Text, max_tokens: WholeNumber = None, call: Call = Depends(current_call)) -> dict[str, Any]:
    """What a memory said before, and what was done to it when and why."""
    with call.reading() as persona:
        return history_view(call, persona, key, token_budget(max_tokens, HISTORY_TOKENS))


@answering
def restore_version(
    key: Text,
    revision: Annotated[WholeNumber, Field(description="a revision that history shows")] = None,
    reason: Text = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Let a memory say again what it said in an earlier revision; what it says now is kept as one, too."""
    if revision is None:
        raise InvalidInput("revision is missing", "", "Take one that history shows")
    with call.changing() as persona:
        asked = Revision(revision=revision, reason=label(reason, "reason"))
        memory = revise_memory(persona, key, asked, now=call.now.astimezone(call.settings.zone), privacy=call.settings.privacy)
        return {**heading(call, persona), **memory_view(memory, memory.content, call.settings.zone, call.now), "revision": memory.revision}


@answering
def purge(
    keys: Annotated[TextList, Field(description="memories in the trash; none: what retention has come to")] = [],
    confirm: Annotated[Text, Field(description="the code that came with the list")] = "",
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """Erase for good, only when the user asks for exactly that. Without confirm it lists what would go; forget comes first."""
    with call.changing() as persona:
        return purge_view(call, persona, keys, confirm)


def tools() -> list[ScopedTool]:
    """The toolset, in the order in which clients list it."""
    return [
        tool_of(history, title="History of a memory", needs=["read"], read_only=True, idempotent=True),
        tool_of(restore_version, title="Restore an earlier version", needs=["read", "write"]),
        tool_of(purge, title="Erase for good", needs=["delete", "admin"], destructive=True),
    ]
