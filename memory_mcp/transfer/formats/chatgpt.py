"""An export of ChatGPT: the messages of each conversation as they were shown last, the other branches left out.

ChatGPTLoader of langchain-community is not used: it makes one text of a conversation, of all its branches in the order of
the file, and gives up at the first message without a time or with a picture.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import read_conversations
from memory_mcp.transfer.formats.sources import Source

FORM = "chatgpt"
NAME = "ChatGPT"


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """What was said, by whom and when. `me` is what the user is called."""
    yield from read_conversations(source, lambda conversation, where: _conversation(conversation, where, me))


def _conversation(conversation: Any, where: str, me: str | None) -> Iterator[ImportItem]:
    if not isinstance(conversation, dict):
        yield ImportItem(where, refused="It is no object.")
        return
    messages = _shown(conversation)
    if messages is None:
        yield ImportItem(where, refused="It has neither a tree of messages (mapping) nor a list of them (messages).")
        return
    title = text_in(conversation.get("title"))
    known_as = next((text_in(conversation[name]) for name in ("conversation_id", "id") if text_in(conversation.get(name))), "")
    session = known_as or import_rows.key_of(FORM, title, str(conversation.get("create_time")))
    for place, (message_id, message) in enumerate(messages, start=1):
        role = _role(message)
        said = _text(message) if role in ("user", "assistant") and _is_shown(message) else ""
        model = message.get("metadata", {}).get("model_slug") if isinstance(message.get("metadata"), dict) else None
        yield from import_rows.memory_rows(
            f"{where}, message {place}",
            FORM,
            (session, message_id or str(place)),
            said,
            source=(me or "user") if role == "user" else NAME,
            session_id=session,
            occurred_at=moment(message.get("create_time")),
            kind="conversation",
            tags=[FORM],
            origin={"conversation": session, "title": title, "message": message_id, "model": model},
        )


def _shown(conversation: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The messages with their ids, from the first to the last."""
    mapping = conversation.get("mapping")
    if not isinstance(mapping, dict):
        listed = conversation.get("messages")  # the older form
        return [(text_in(entry.get("id")), entry) for entry in objects(listed)] if isinstance(listed, list) else None
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    place = conversation.get("current_node")
    if place not in nodes:
        place = max(nodes, key=lambda name: _time(nodes[name]), default=None)
    path: dict[str, Mapping[str, Any]] = {}
    while isinstance(place, str) and place in nodes and place not in path:  # a tree that runs in a circle ends, too
        path[place] = nodes[place]
        place = nodes[place].get("parent")
    return [(name, node["message"]) for name, node in reversed(path.items()) if isinstance(node.get("message"), dict)]


def _time(node: Mapping[str, Any]) -> str:
    message = node.get("message")
    return (moment(message.get("create_time")) or "") if isinstance(message, dict) else ""


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author", message.get("role", message.get("from")))
    return text_in(author.get("role") if isinstance(author, dict) else author).casefold()


def _is_shown(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return not hidden and message.get("weight") != 0 and message.get("recipient", "all") in ("all", None)


def _text(message: Mapping[str, Any]) -> str:
    """What a message says in words: without pictures and files, and what tools and thoughts are given."""
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        return content
    if not isinstance(content, dict):
        return ""
    if content.get("content_type", "text") not in ("text", "multimodal_text"):
        return text_in(content.get("text")) if content.get("content_type") == "code" else ""
    parts = content.get("parts")
    said = (
        [part if isinstance(part, str) else text_in(part.get("text")) for part in parts if isinstance(part, str | dict)]
        if isinstance(parts, list)
        else []
    )
    return "\n\n".join(part for part in said if part.strip())
