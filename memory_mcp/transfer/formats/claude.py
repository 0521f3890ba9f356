"""Reads a Claude export (claude.ai): the messages of each conversation. langchain-community has no loader for it."""

from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import read_conversations
from memory_mcp.transfer.formats.sources import Source

FORM = "claude"
NAME = "Claude"


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each message. `me` is the name of the user; default `user`."""
    yield from read_conversations(source, lambda conversation, where: _conversation(conversation, where, me))


def _conversation(conversation: Any, where: str, me: str | None) -> Iterator[ImportItem]:
    if not isinstance(conversation, dict) or not isinstance(conversation.get("chat_messages"), list):
        yield ImportItem(where, refused="It has no list of messages (chat_messages).")
        return
    title = text_in(conversation.get("name"))
    session = text_in(conversation.get("uuid")) or import_rows.key_of(FORM, title, str(conversation.get("created_at")))
    for number, message in enumerate(objects(conversation["chat_messages"]), start=1):
        by_user = message.get("sender") in ("human", "user")
        message_id = text_in(message.get("uuid"))
        yield from import_rows.memory_rows(
            f"{where}, message {number}",
            FORM,
            (session, message_id or str(number)),
            _text(message),
            source=(me or "user") if by_user else NAME,
            session_id=session,
            occurred_at=moment(message.get("created_at")),
            kind="conversation",
            tags=[FORM],
            origin={"conversation": session, "title": title, "message": message_id, "files": _files(message)},
        )


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message without reasoning, tool calls and tool results."""
    parts = [text_in(part.get("text")) for part in objects(message.get("content")) if part.get("type") == "text"]
    return "\n\n".join(part for part in parts if part.strip()) or text_in(message.get("text"))


def _files(message: Mapping[str, Any]) -> list[str]:
    """The names of the attached files."""
    attached = [*objects(message.get("attachments")), *objects(message.get("files"))]
    return list(dict.fromkeys(text_in(file.get("file_name")) for file in attached if text_in(file.get("file_name"))))
