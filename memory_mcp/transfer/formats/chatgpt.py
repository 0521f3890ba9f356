"""Reads a ChatGPT export: the messages of the branch of each conversation that was shown last; other branches are left out.

langchain-community's ChatGPTLoader is not used: it joins all branches of a conversation into one text in file order, and
fails at the first message without a time or with an image.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import NO_OBJECT, ImportItem, ReadOptions, fields_of, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS, read_entries
from memory_mcp.transfer.formats.marks import without_marks
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.turns import BRANCHES, HIDDEN, PICTURES, Message, conversation_items, path_to_last

FORM = "chatgpt"
NAME = "ChatGPT"


def is_export(fields: Mapping[str, Any]) -> bool:
    """Whether a conversation has messages as ChatGPT writes them, each with its author."""
    mapping, listed = fields.get("mapping"), fields.get("messages")
    if isinstance(mapping, dict):
        nodes = objects(list(mapping.values()))
        return all("author" in message for node in nodes if isinstance(message := node.get("message"), dict))
    return (
        isinstance(listed, list) and "title" in fields and all({"author", "role", "from"} & message.keys() for message in objects(listed))
    )


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each message. `me` is the name of the user; default `user`."""
    yield from read_entries(source, lambda conversation, where: _conversation(conversation, where, me), CONVERSATIONS)


def _conversation(conversation: Any, where: str, me: str | None) -> Iterator[ImportItem]:
    if not isinstance(conversation, dict):
        yield ImportItem(where, refused=NO_OBJECT)
        return
    messages = _shown(conversation)
    if messages is None:
        yield ImportItem(where, refused="It has neither a tree of messages (mapping) nor a list of them (messages).")
        return
    yield from _left_out(conversation, where, len(messages))
    title = text_in(conversation.get("title"))
    conversation_id = next((text_in(conversation[name]) for name in ("conversation_id", "id") if text_in(conversation.get(name))), "")
    session = conversation_id or import_rows.key_of(FORM, title, str(conversation.get("create_time")))
    # The system begins each conversation with an empty message, and hides others.
    said = (_message(number, *one) for number, one in enumerate(messages, start=1) if _is_somebodys(one[1]) or not _is_empty(one[1]))
    yield from conversation_items(FORM, where, session, title, said, ReadOptions(me), ("", NAME), None)


def _message(number: int, message_id: str, message: Mapping[str, Any]) -> Message:
    text = without_marks(_text(message)) if _is_somebodys(message) else ""
    origin = {"message": message_id, "model": fields_of(message.get("metadata")).get("model_slug")}
    kinds = _kinds_left_out(message, text)
    return Message(_role(message) == "user", text, "", message_id or str(number), moment(message.get("create_time")), kinds, origin)


def _shown(conversation: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The ids and messages of the current branch, first to last; None if the conversation has neither form of messages."""
    mapping = conversation.get("mapping")
    if not isinstance(mapping, dict):
        listed = conversation.get("messages")  # the older form
        return [(text_in(entry.get("id")), entry) for entry in objects(listed)] if isinstance(listed, list) else None
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    path = path_to_last(nodes, conversation.get("current_node"), "parent", lambda name: _time(nodes[name]))
    return [(name, nodes[name]["message"]) for name in path if isinstance(nodes[name].get("message"), dict)]


def _left_out(conversation: Mapping[str, Any], where: str, shown: int) -> Iterator[ImportItem]:
    mapping = conversation.get("mapping")
    nodes = mapping.values() if isinstance(mapping, dict) else ()
    for _ in range(sum(isinstance(node, dict) and isinstance(node.get("message"), dict) for node in nodes) - shown):
        yield ImportItem(where, left_out=BRANCHES)


def _is_somebodys(message: Mapping[str, Any]) -> bool:
    return _role(message) in ("user", "assistant") and _is_shown(message)


def _is_empty(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return not (content or message.get("text")) or fields_of(content).get("parts") in ([], [""])


def _kinds_left_out(message: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The kind under which a message, or a part of it, is left out. Of an empty one nothing is."""
    parts = fields_of(message.get("content")).get("parts")
    if isinstance(parts, list) and any(isinstance(part, dict) and not text_in(part.get("text")) for part in parts):
        return (PICTURES,)
    if text.strip() or _is_empty(message):
        return ()
    return (HIDDEN,) if _role(message) in ("system", "user") else ("thoughts and tools",)


def _time(node: Mapping[str, Any]) -> str:
    message = node.get("message")
    return (moment(message.get("create_time")) or "") if isinstance(message, dict) else ""


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author", message.get("role", message.get("from")))
    return text_in(author.get("role") if isinstance(author, dict) else author).casefold()


def _is_shown(message: Mapping[str, Any]) -> bool:
    hidden = fields_of(message.get("metadata")).get("is_visually_hidden_from_conversation")
    return not hidden and message.get("weight") != 0 and message.get("recipient", "all") in ("all", None)


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message without images, files, tool calls and reasoning."""
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        return content
    if not isinstance(content, dict):
        return ""
    if content.get("content_type", "text") not in ("text", "multimodal_text"):
        return text_in(content.get("text")) if content.get("content_type") == "code" else ""
    parts = content.get("parts")
    texts = (
        [part if isinstance(part, str) else text_in(part.get("text")) for part in parts if isinstance(part, str | dict)]
        if isinstance(parts, list)
        else []
    )
    return "\n\n".join(part for part in texts if part.strip())
