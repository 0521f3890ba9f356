"""Reads the transcripts that coding agents keep: Claude Code, Codex, Gemini CLI, Copilot. Only messages are imported.

None of these forms is promised by its vendor: a line of an unknown form is left out, and reported.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import each_file, json_object
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.turns import Message, Turn, turn_items

FORM = "transcript"
FILES = re.compile(r"\A.*\.jsonl?")
LINE_LIMIT_BYTES = 64 * 1024**2
# What a client writes into a message: elements at its beginning, with a - or _ in their names as no HTML has, and notes of its own.
_OPENING = re.compile(r"\s{0,200}+<([a-z]++(?:[-_][a-z]++)++)[^<>]*+>")
_NOTE = re.compile(r"(?:# AGENTS\.md instructions|Caveat: The messages below|\[Request interrupted)")


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each turn. `me` is the name of the user; default `user`."""
    yield from each_file(source, lambda name: _file(source, name, me), FILES.fullmatch)


def is_transcript(head: bytes) -> bool:
    """Whether a file that begins like this is a transcript; its last line may be cut off."""
    for line in head.splitlines()[:20]:
        entry = json_object(line)
        if entry is not None and (_turn(entry) or (_session(entry) and entry.keys() & {"type", "projectHash"})):
            return True
    return False


def _file(source: Source, name: str, me: str | None) -> Iterator[ImportItem]:
    session = name.rpartition("/")[2].rpartition(".")[0]
    turns: dict[str, tuple[str, str, Message]] = {}
    for number, entry in _entries(source, name):
        where = f"{name}, line {number}"
        if entry is None:
            yield ImportItem(where, left_out="lines that are not JSON")
            continue
        session = _session(entry) or session
        for turn in _turns(entry):
            # A client writes a message again when it grows: the last one counts. One that goes on with a session copies it before its own.
            identity = turn.id or str(len(turns) + 1)
            turns[identity] = (where, turns[identity][1] if identity in turns else session, turn)
    sessions = sorted({session for _, session, _ in turns.values()} | {session})
    for identity, (where, begun_in, turn) in turns.items():
        said = Turn(
            (me or "user") if turn.by_user else turn.speaker,
            turn.text,
            turn.said_at,
            begun_in,
            (begun_in, identity),
            import_rows.role_of(me, turn.by_user is True),
            origin={"conversation": begun_in, "message": turn.id},
            tags=(turn.speaker,),
            former=tuple((other, identity) for other in sessions if other != begun_in),
        )
        yield from turn_items(FORM, where, said)


def _entries(source: Source, name: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    with source.open(name) as file:
        if name.endswith(".json"):
            yield 1, json_object(file.read(LINE_LIMIT_BYTES))
            return
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT_BYTES), b""), start=1):
            if line.strip():
                yield number, json_object(line)


def _session(entry: Mapping[str, Any]) -> str:
    """The session that a line names: with Claude Code each line, with the others the first."""
    match entry:
        case {"type": "session_meta", "payload": {"id": str(named)}} | {"type": "session.start", "data": {"sessionId": str(named)}}:
            return named
        case {"sessionId": str(named)}:
            return named
    return ""


def _turns(entry: Mapping[str, Any]) -> Iterator[Message]:
    """The messages of a line, or those of an older file of Gemini CLI."""
    for message in (entry, *objects(entry.get("messages"))):
        if (turn := _turn(message)) and turn.text:
            yield turn


def _turn(entry: Mapping[str, Any]) -> Message | None:
    kind, said_at = entry.get("type"), moment(entry.get("timestamp"))
    message, payload, data = entry.get("message"), entry.get("payload"), entry.get("data")
    if kind in ("user", "assistant") and isinstance(message, dict):
        text = "" if entry.get("isSidechain") or entry.get("isMeta") or entry.get("isCompactSummary") else _text(message.get("content"))
        return Message(kind == "user", text, "Claude Code", text_in(entry.get("uuid")), said_at)
    if kind == "response_item" and isinstance(payload, dict) and payload.get("type") == "message":
        role = payload.get("role")
        text = _text(payload.get("content")) if role in ("user", "assistant") else ""
        return Message(role == "user", text, "Codex", text_in(payload.get("id")), said_at)
    if kind in ("user", "gemini") and "content" in entry:
        return Message(kind == "user", _text(entry.get("content")), "Gemini CLI", text_in(entry.get("id")), said_at)
    if kind in ("user.message", "assistant.message") and isinstance(data, dict):
        return Message(kind == "user.message", _text(data.get("content")), "Copilot", text_in(entry.get("id")), said_at)
    return None


def _text(content: object) -> str:
    """The text of a message without tools, their results, thoughts and pictures."""
    if isinstance(content, str):
        return _spoken_text(content)
    parts = [part for part in objects(content) if part.get("type", "text") in ("text", "input_text", "output_text")]
    return "\n\n".join(filter(None, (_spoken_text(text_in(part.get("text"))) for part in parts)))


def _spoken_text(text: str) -> str:
    """A text without what the client wrote into it."""
    start = 0
    while opening := _OPENING.match(text, start):
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        start = end + len(closing)
    spoken = text[start:].strip()
    return "" if _NOTE.match(spoken) else spoken
