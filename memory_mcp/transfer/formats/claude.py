"""Reads a Claude export (claude.ai): conversations, what Claude keeps in mind, and projects. langchain-community has no loader for it.

Each paragraph of a memory or of a project is a fact, recognized by its text: a later export has it again, changed or with others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import WITHOUT_TEXT, ImportItem, ReadOptions, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import CONVERSATIONS, items, read_entries
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.text_files import paragraphs
from memory_mcp.transfer.formats.turns import Message, conversation_items, is_said, said_in

FORM = "claude"
NAME = "Claude"
MEMORY_FIELDS = frozenset({"conversations_memory", "project_memories", "memory_files"})
_PROJECTS = re.compile(r"\A(?:.*/)?projects(?:/[^/]+)?\.json")
FILES = re.compile(rf"{CONVERSATIONS.pattern}|\A(?:.*/)?memories(?:/[^/]+)?\.json|{_PROJECTS.pattern}")
_HEADING = re.compile(r"(\*{1,2})[^*\n]+\1:?")
_THOUGHT = re.compile(r"<antThinking>(?:(?!</?antThinking>).){0,20000}+</antThinking>", re.DOTALL)
_ARTIFACT = re.compile(r"</?antArtifact\b[^<>]{0,500}>")
_NOT_SAID = {"thinking": "thoughts", "tool_use": "uses of tools", "tool_result": "results of tools"}


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each message and each paragraph. `me` is the name of the user; default `user`."""
    projects = _project_names(source)

    def entry(value: Any, where: str) -> Iterator[ImportItem]:
        if isinstance(value, dict) and MEMORY_FIELDS & value.keys():
            yield from _memory(value, where, projects)
        elif is_project(value):
            yield from _project(value, where)
        else:
            yield from _conversation(value, where, me)

    yield from read_entries(source, entry, FILES, noun="entry")


def is_project(value: object) -> bool:
    """Whether an entry is a project."""
    return isinstance(value, dict) and isinstance(value.get("docs"), list) and "name" in value


def _conversation(conversation: Any, where: str, me: str | None) -> Iterator[ImportItem]:
    if not isinstance(conversation, dict) or not isinstance(conversation.get("chat_messages"), list):
        yield ImportItem(where, refused="It is neither a conversation with messages (chat_messages), a memory nor a project.")
        return
    title = text_in(conversation.get("name"))
    session = text_in(conversation.get("uuid")) or import_rows.key_of(FORM, title, str(conversation.get("created_at")))
    messages = (_message(number, message) for number, message in enumerate(objects(conversation["chat_messages"]), start=1))
    yield from conversation_items(FORM, where, session, title, messages, ReadOptions(me), ("", NAME), None)


def _message(number: int, message: Mapping[str, Any]) -> Message:
    message_id, by_user = text_in(message.get("uuid")), message.get("sender") in ("human", "user")
    origin = {"message": message_id, "files": _files(message)}
    said_at = moment(message.get("created_at"))
    return Message(by_user, _text(message), "", message_id or str(number), said_at, tuple(_left_out(message)), origin)


def _memory(memory: Mapping[str, Any], where: str, projects: Mapping[str, str]) -> Iterator[ImportItem]:
    by_project = memory.get("project_memories")
    texts = [("", text_in(memory.get("conversations_memory")))]
    texts += [(str(uuid), text_in(text)) for uuid, text in by_project.items()] if isinstance(by_project, dict) else []
    texts += [
        (text_in(file.get("path")) or text_in(file.get("name")), text_in(file.get("content")))
        for file in objects(memory.get("memory_files"))
    ]
    for about, text in texts:
        if about and not text:
            yield ImportItem(where, left_out=WITHOUT_TEXT)
        name = projects.get(about, about)
        yield from _facts(
            where, ("memory", about), text, source=NAME, role="user", tags=[FORM, name], origin={"memory": name or "conversations"}
        )


def _project(project: Mapping[str, Any], where: str) -> Iterator[ImportItem]:
    if project.get("is_starter_project"):
        yield ImportItem(where, left_out="projects that every account has")
        return
    name, uuid = text_in(project.get("name")), text_in(project.get("uuid"))
    common = {"session_id": uuid, "tags": [FORM, name]}
    made = moment(project.get("created_at"))
    for part in ("description", "prompt_template"):
        origin = {"project": name, "part": part}
        yield from _facts(where, ("project", uuid, part), text_in(project.get(part)), **common, created_at=made, origin=origin)
    for document in objects(project["docs"]):
        file, text = text_in(document.get("filename")), text_in(document.get("content"))
        if not text:
            yield ImportItem(f"{where}, {file}", left_out="project files without a text")
        origin = {"project": name, "file": file}
        since = moment(document.get("created_at")) or made
        yield from _facts(where, ("project", uuid, text_in(document.get("uuid"))), text, **common, created_at=since, origin=origin)


def _facts(where: str, identity: tuple[str, ...], text: str, **fields: Any) -> Iterator[ImportItem]:
    heading = ""
    for paragraph in paragraphs(text):
        if _HEADING.fullmatch(paragraph.strip()):
            heading += f"{paragraph.strip()}\n"
            continue
        yield from import_rows.memory_rows(where, FORM, (*identity, paragraph), heading + paragraph, kind="fact", **fields)
        heading = ""
    yield from import_rows.memory_rows(where, FORM, (*identity, heading), heading, kind="fact", **fields)


def _project_names(source: Source) -> dict[str, str]:
    """The names of the projects by their ids. Files that can't be read are named when they are read for their facts."""
    names: dict[str, str] = {}
    for file in filter(_PROJECTS.fullmatch, source.names()):
        try:
            names |= {
                text_in(project.get("uuid")): text_in(project.get("name")) for project in objects(list(items(blocks(source, file), file)))
            }
        except InvalidInput:
            continue
    return names


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message with what was pasted, without reasoning, tool calls and tool results."""
    content = message.get("content")
    said = _without_tags(said_in(content)[0] if content else text_in(message.get("text")))
    return "\n\n".join(filter(str.strip, [said, *(text_in(pasted.get("extracted_content")) for pasted in _pasted(message))]))


def _without_tags(text: str) -> str:
    """A text of a time when artifacts and thoughts stood in it: the former belong to it, the latter don't."""
    return _ARTIFACT.sub("", _THOUGHT.sub("", text)) if "<ant" in text else text


def _pasted(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Texts that were pasted into a message: Claude keeps a long one as an attachment without a name."""
    return [file for file in objects(message.get("attachments")) if not text_in(file.get("file_name")).strip()]


def _left_out(message: Mapping[str, Any]) -> Iterator[str]:
    for part in objects(message.get("content")):
        if not is_said(part):
            yield _NOT_SAID.get(text_in(part.get("type")), "parts of other kinds")
    nameless = [file for file in objects(message.get("files")) if not text_in(file.get("file_name"))]
    yield from ("contents of attachments" for _ in (*_files(message), *nameless))


def _files(message: Mapping[str, Any]) -> list[str]:
    """The names of the attached files."""
    attached = [*objects(message.get("attachments")), *objects(message.get("files"))]
    return list(dict.fromkeys(text_in(file.get("file_name")) for file in attached if text_in(file.get("file_name"))))
