"""`memory-mcp chat`: a conversation as a persona, with any vendor's model, in the terminal or for one answer."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_mcp.cli.feature import Commands
from memory_mcp.cli.japanese import tell
from memory_mcp.cli.options import (
    AsJson,
    ConfigFile,
    DataDirectory,
    PersonaName,
    Url,
    connection,
    print_json,
    settings_of,
)
from memory_mcp.cli.stdio import Here
from memory_mcp.config.reading import language_of_machine, personal_data_directory
from memory_mcp.errors import InvalidInput, ServerUnreachable

if TYPE_CHECKING:
    from memory_mcp.features.chat.library import Connection, Conversation, Event

STDIN = "-"
NOT_WHOLE: Mapping[str, str] = {
    "limit": "memory-mcp: the answer was cut off: {} reached its limit of tokens",
    "withheld": "memory-mcp: the answer is not whole: the vendor of {} withholds the rest",
    "unknown": "memory-mcp: the answer may not be whole: {} broke off without saying why",
}


def chat(
    persona: PersonaName = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="As vendor:model. Default: chat.model of config.json.", metavar="MODEL")
    ] = None,
    once: Annotated[
        str | None, typer.Option(help="Print the answer to this text and end; `-` reads the text from stdin.", metavar="TEXT")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Let tools change something without a question.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Off the record: nothing is stored.")] = False,
    transcript: Annotated[bool, typer.Option("--transcript", help="Store each turn as a memory of the conversation.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="At the end store a summary, which the model writes.")] = False,
    instructions: Annotated[Path | None, typer.Option(help="A text file that says who the persona is.", metavar="FILE")] = None,
    mcp: Annotated[Path | None, typer.Option(help="Further MCP servers: an mcp.json as VS Code or Claude has it.", metavar="FILE")] = None,
    arguments: Annotated[
        list[str] | None, typer.Option("--set", help="An argument of the model, such as temperature=0.2.", metavar="NAME=VALUE")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with a conversation that /save has written.", metavar="FILE")] = None,
    data: DataDirectory = None,
    config: ConfigFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Talk with a persona, which uses its memory: with Claude, GPT, Gemini, Ollama, or any server that speaks as OpenAI's.

    The vendors' usual variables hold the keys: ANTHROPIC_API_KEY, OPENAI_API_KEY (and OPENAI_BASE_URL), GOOGLE_API_KEY, OLLAMA_HOST.
    """
    from memory_mcp.features.chat.opening import Opening  # noqa: PLC0415  `--help` needs none of it

    here = Here(data or personal_data_directory(), config)
    opening = Opening(
        lambda name: _connection(here, url, name or persona, data),
        settings_of(config),
        allowed=("*",) if yes else (),
        keep_transcript=transcript and not off,
        instructions=instructions,
        servers=mcp,
        resume=resume,
        arguments=_arguments(arguments or ()),
    )
    try:
        if once is None and sys.stdin.isatty():
            from memory_mcp.features.chat.terminal import run  # noqa: PLC0415  as above

            run(opening, model, language=language_of_machine(), off_record=off, summary=summary)
            return
        text = (sys.stdin.read() if once in (None, STDIN) else once or "").strip()
        if not text:
            raise InvalidInput("there is nothing to say", "", "Give the text with --once, or on stdin")
        asyncio.run(_answer(opening.conversation(model), text, off_record=off, summary=summary, as_json=as_json))
    finally:
        here.stop()


def _arguments(given: Sequence[str]) -> dict[str, Any]:
    """Arguments as the command line has them: values are JSON, or else texts."""
    arguments: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not name or not sign:
            raise InvalidInput("{} is no argument of a model", "", "Write it as NAME=VALUE", repr(each))
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    return arguments


def _connection(here: Here, url: str | None, persona: str | None, data: Path | None) -> "Connection":
    """The server that is named or runs, or else one that this process starts, as `memory-mcp stdio` does."""
    from memory_mcp.client import discovery, stores  # noqa: PLC0415  as above
    from memory_mcp.client.connection import Connection  # noqa: PLC0415  as above

    try:
        server = connection(url, persona, data)
        server.check()
    except ServerUnreachable:
        if isinstance(stores.place(url, data), str):
            raise
        discovery.running_or_started(here.directory, lambda address, secret: Connection(address, secret=secret), here.start)
        return connection(url, persona, here.directory)
    return server


async def _answer(conversation: "Conversation", text: str, *, off_record: bool, summary: bool, as_json: bool) -> None:
    """Prints the answer alone on stdout, everything else on stderr.

    Raises:
        ChatFailed: there is no answer.
    """
    from memory_mcp.features.chat import library  # noqa: PLC0415  as above

    events: list[Event] = []
    async with conversation:
        for server, why in conversation.toolbox.missing.items():
            tell("memory-mcp: {} is left out: {}", server, why, err=True)
        async for event in conversation.say(text, off_record=off_record):
            events.append(event)
            match event:
                case library.TextPiece() if not as_json:
                    typer.echo(event.text, nl=False)
                    sys.stdout.flush()
                case library.ApprovalNeeded():  # nobody is there to be asked
                    conversation.answer(event.call.id, allowed=False)
                    tell("memory-mcp: {} was not allowed: --yes allows it", event.call.name, err=True)
                case library.CutOff():
                    tell(NOT_WHOLE[event.why], event.model, err=True)
                case library.Failed():
                    raise event.error()
        if summary and not off_record:
            await conversation.summarize()
    if not as_json:
        typer.echo()
        return
    print_json(
        {
            "answer": "".join(event.text for event in events if isinstance(event, library.TextPiece)),
            **{name: getattr(conversation, name) for name in ("model", "persona", "session_id")},
            "tools": [library.event_json(event) for event in events if isinstance(event, library.ToolResult)],
            "reason": next(event.reason for event in events if isinstance(event, library.TurnEnded)),
            **({"cut_off": True} if any(isinstance(event, library.CutOff) for event in events) else {}),
            "usage": asdict(conversation.usage),
        }
    )


COMMANDS = Commands(everyday=(chat,))
