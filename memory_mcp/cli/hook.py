"""`memory-mcp hook`: what an agent runs by itself when a conversation begins, is compacted, or ends.

At the beginning the model gets the answer of `get_context`, once; at the end the transcript is imported. No model is called. Whatever goes
wrong, the agent works on: it is printed to stderr, and the exit status is 0.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import DataDirectory, PersonaName, Url, connection
from memory_mcp.errors import MemoryMCPError

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection

# By the names of Claude Code, Codex, VS Code, Gemini CLI and Copilot CLI.
BEGINNINGS = frozenset({"SessionStart", "sessionStart"})
ENDINGS = frozenset({"SessionEnd", "sessionEnd", "PreCompact", "preCompact", "PreCompress", "Stop", "agentStop"})
# The model still has the earlier answer.
CONTINUED = "resume"
INPUT_LIMIT = 1024 * 1024
MAX_TOKENS = 1_000


def hook(
    persona: PersonaName = None,
    max_tokens: Annotated[int, typer.Option(min=100, help="How many tokens the context may have.")] = MAX_TOKENS,
    transcripts: Annotated[bool, typer.Option("--transcripts/--no-transcripts", help="Import what was said.")] = True,
    data: DataDirectory = None,
    url: Url = None,
) -> None:
    """Run by an agent's hooks, with the event on stdin: give it the context, or import its transcript."""
    answer: dict[str, Any] = {}
    try:
        event = _event(sys.stdin.buffer.read(INPUT_LIMIT))
        name = event.get("hook_event_name") or event.get("hookEventName")
        if name in BEGINNINGS and event.get("source") != CONTINUED:
            text = connection(url, persona, data).tool_text("get_context", {"max_tokens": max_tokens})
            answer = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": f"What you remember:\n{text}"}}
        elif name in ENDINGS and transcripts and isinstance(path := event.get("transcript_path"), str) and path:
            _import(Path(path), lambda: connection(url, persona, data))
    except (MemoryMCPError, OSError) as error:
        typer.echo(f"memory-mcp: {worded(str(error))}", err=True)
    typer.echo(json.dumps(answer, ensure_ascii=False))


def _event(text: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(text)
    except ValueError as error:
        raise MemoryMCPError("the hook's input is not JSON", "{}", "It is run by an agent, not by hand", error) from error
    return event if isinstance(event, dict) else {}


def _import(path: Path, connected: Callable[[], "Connection"]) -> None:
    from memory_mcp.transfer.formats import transcripts  # noqa: PLC0415  the beginning of a conversation doesn't need the readers
    from memory_mcp.transfer.formats.sources import source_of  # noqa: PLC0415

    lines = [json.dumps(item.row, ensure_ascii=False).encode() for item in transcripts.read(source_of(path), None) if item.row]
    if lines:
        counts = connected().import_rows(lines, on_known="keep")
        tell("memory-mcp: {} stored, {} known already", counts["stored"], counts["already_known"], err=True)
