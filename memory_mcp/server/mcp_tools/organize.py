"""`organize`, of the `upkeep` toolset: what could be tidied, merging on request, and undoing that.

A plain function: fastmcp runs it on a worker thread, and comparing ten thousand memories takes a second or two.
"""

from typing import Annotated, Any

from fastmcp.dependencies import Depends
from pydantic import Field

from memory_mcp.server import organize_views
from memory_mcp.server.mcp_tools.arguments import ScopedTool, Text, TextList, WholeNumber, tool_of
from memory_mcp.server.refusals import answering
from memory_mcp.server.request_persona import Call, current_call


@answering
def organize(
    merge: Annotated[TextList, Field(description="keys to merge into one, when the user agrees")] = [],
    into: Annotated[Text, Field(description="the key that stays")] = "",
    undo: Annotated[Text, Field(description="operation_id of a merge to take back")] = "",
    reason: Text = "",
    top_k: Annotated[WholeNumber, Field(description="1..50 of each kind to list")] = None,
    call: Call = Depends(current_call),
) -> dict[str, Any]:
    """List duplicates, empty talk, faded memories, contradictions (no arguments); merge some into one; undo a merge. Nothing is merged by itself."""
    return organize_views.organized(call, into, merge, undo, reason, top_k)


def tools() -> list[ScopedTool]:
    """What this module adds to the toolset."""
    return [tool_of(organize, title="Organize", needs=["read", "write", "delete"], destructive=True)]
