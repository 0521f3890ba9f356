"""Reads the conversations that other assistants export: DeepSeek, LibreChat, Open WebUI, LM Studio, Grok, Gemini, VS Code's chat, Character.AI.

Each is a list of messages or a tree of them, of which the branch that was shown last is read. A program is a row of `PROGRAMS`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import gemini, import_rows
from memory_mcp.transfer.formats.import_rows import NO_OBJECT, ImportItem, ReadOptions, fields_of, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import lines, walk
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import (
    BRANCHES,
    FILES,
    HIDDEN,
    PICTURES,
    THOUGHTS,
    TOOLS,
    Message,
    conversation_items,
    named_by_newest,
    path_to_last,
    said_in,
)

Fields = Mapping[str, Any]
Nodes = Mapping[str, Fields]
_DETAILS, _DETAILS_END = '<details type="', "</details>"
# Where LibreChat puts thoughts into the text.
_FENCED_THOUGHTS = re.compile(r"\A\s{0,9}:::thinking\s.*?^:::[ \t]*$", re.DOTALL | re.MULTILINE)
_MANY = 1_000_000
# The files in which VS Code keeps a chat, and the kinds of their lines.
_CHANGES, _FIRST_CHANGE = ".jsonl", re.compile(rb'\{\s{0,3}"kind"\s{0,3}:\s{0,3}0,\s{0,3}"v"\s{0,3}:\s{0,3}\{')
_WHOLE, _SET, _ADDED, _REMOVED = range(4)


@dataclass(frozen=True, slots=True)
class Program:
    """An assistant's program: what its conversations are recognized by, and where in one its messages are.

    `nodes` are what messages are read of, by their ids. They are a tree if some have a `parent`; its branch ends with the id at `last`, or with
    the latest. `former_sessions` are those in which what it holds may be stored instead. `opened` and `entries` are paths within a file, where its conversations are not the entries of a list. `is_page` and `pages`:
    for files with one of the `page_suffixes`, which are no JSON, whether one is its own, and what it holds as JSON would.
    """

    form: str
    name: str
    recognizes: Callable[[Fields], bool]
    nodes: Callable[[Fields], Nodes]
    messages: Callable[[str, Fields], list[Message]]
    session: Callable[[Fields, str, list[Message]], str]
    title: Callable[[Fields], str] = lambda entry: text_in(entry.get("title"))
    parent: str = ""
    last: Callable[[Fields], Any] = lambda _entry: None
    opened: frozenset[str] = frozenset()
    entries: str = "[]"
    is_page: Callable[[Head], bool] = lambda _head: False
    pages: Callable[[Source, str, ZoneInfo | None], Iterator[Any]] | None = None
    former_sessions: Callable[[Fields, list[Message]], Collection[str]] = lambda _entry, _messages: ()
    page_suffixes: tuple[str, ...] = ()


def _by_id(listed: object, name: str) -> Nodes:
    return {text_in(one.get(name)) or str(number): one for number, one in enumerate(objects(listed))}


def _named(fields: object) -> Nodes:
    return {name: node for name, node in fields_of(fields).items() if isinstance(node, dict)}


def _session_at(*names: str) -> Callable[[Fields, str, list[Message]], str]:
    return lambda entry, _file, _messages: next((text for name in names if (text := text_in(entry.get(name)))), "")


def _deepseek(name: str, node: Fields) -> list[Message]:
    message = fields_of(node.get("message"))
    fragments = objects(message.get("fragments"))
    text, left_out = said_in(fragments, text_at="content") if fragments else (text_in(message.get("content")), [])
    left_out += [THOUGHTS] * bool(message.get("reasoning_content")) + [FILES] * len(objects(message.get("files")))
    by_user = any(part.get("type") == "REQUEST" for part in fragments) if fragments else None  # older exports name no role
    return [Message(by_user, text, "", name, moment(message.get("inserted_at")), tuple(left_out))]


def _librechat_nodes(entry: Fields) -> Nodes:
    nodes: dict[str, Fields] = {}
    waiting = objects(entry.get("messages"))[::-1]
    while waiting and len(nodes) < _MANY:
        message = waiting.pop()
        nodes[text_in(message.get("messageId")) or str(len(nodes))] = message
        waiting += objects(message.get("children"))[::-1]
    return nodes


def _librechat(name: str, message: Fields) -> list[Message]:
    text, left_out = said_in(message.get("content"))
    left_out += [FILES] * len(objects(message.get("files")))
    by_user = message.get("isCreatedByUser") is True
    speaker = "" if by_user else text_in(message.get("sender"))
    text = text_in(message.get("text")) or text
    if not by_user and (thoughts := _FENCED_THOUGHTS.match(text)):
        text, left_out = text[thoughts.end() :].lstrip(), [*left_out, THOUGHTS]
    return [Message(by_user, text, speaker, name, moment(message.get("createdAt")), tuple(left_out))]


def _chat_of(entry: Fields) -> Fields:
    return fields_of(entry.get("chat")) or entry


def _open_webui_nodes(entry: Fields) -> Nodes:
    chat = _chat_of(entry)
    return _named(fields_of(chat.get("history")).get("messages")) or _by_id(chat.get("messages"), "id")


def _open_webui(name: str, node: Fields) -> list[Message]:
    if node.get("role") not in ("user", "assistant"):
        return [Message(by_user=True, text="", id=name, left_out=(HIDDEN,))]
    by_user = node.get("role") == "user"
    whole, left_out = said_in(node.get("content"))
    text, folded = _without_details(whole)
    left_out += ["thoughts and tools"] * folded + [FILES] * len(objects(node.get("files")))
    speaker = "" if by_user else text_in(node.get("modelName")) or text_in(node.get("model"))
    return [Message(by_user, text, speaker, name, moment(node.get("timestamp")), tuple(left_out))]


def _without_details(text: str) -> tuple[str, int]:
    """A text without what the assistant thought and did, which its program folds away, and how many such parts it had."""
    parts, at = [], 0
    while (start := text.find(_DETAILS, at)) >= 0 and (end := text.find(_DETAILS_END, start)) >= 0:
        parts.append(text[at:start])
        at = end + len(_DETAILS_END)
    return "".join([*parts, text[at:]]).strip(), len(parts)


def _lm_studio(_name: str, message: Fields) -> list[Message]:
    versions = objects(message.get("versions"))
    chosen = message.get("currentlySelected")
    version = versions[chosen] if isinstance(chosen, int) and 0 <= chosen < len(versions) else (versions or [{}])[-1]
    steps = [step for step in objects(version.get("steps")) if step.get("type") == "contentBlock"]
    thoughts = [step for step in steps if fields_of(step.get("style")).get("type") == "thinking"]
    text, left_out = said_in([part for step in (steps or [version]) if step not in thoughts for part in objects(step.get("content"))])
    left_out += [THOUGHTS] * len(thoughts) + [BRANCHES] * (len(versions) - 1)
    if version.get("role") == "system":
        text, left_out = "", [HIDDEN]
    speaker = text_in(fields_of(version.get("senderInfo")).get("senderName"))
    return [Message(version.get("role") == "user", text, speaker, left_out=tuple(left_out))]


def _lm_studio_session(entry: Fields, file: str, _messages: list[Message]) -> str:
    begun = moment(entry.get("createdAt"))
    return import_rows.key_of("lm-studio", str(entry.get("createdAt")), file if begun is None else "")


def _grok_nodes(entry: Fields) -> Nodes:
    return _by_id([fields_of(one.get("response")) or one for one in objects(entry.get("responses"))], "_id")


def _grok(name: str, one: Fields) -> list[Message]:
    by_user = text_in(one.get("sender")).casefold() in ("human", "user")
    left_out = [THOUGHTS] * bool(one.get("thinking_trace") or one.get("agent_thinking_traces")) + [TOOLS] * bool(one.get("steps"))
    left_out += [PICTURES] * len(one.get("generated_image_urls") or []) + [FILES] * len(one.get("file_attachments") or [])
    return [Message(by_user, text_in(one.get("message")), "", name, _bson(one.get("create_time")), tuple(left_out))]


def _bson(value: object) -> str | None:
    """A time of MongoDB's JSON, or of any other."""
    inner = fields_of(value).get("$date", value)
    return moment(fields_of(inner).get("$numberLong", inner))


def _vs_code(_name: str, request: Fields) -> list[Message]:
    at, name, asked = moment(request.get("timestamp")), text_in(request.get("requestId")), fields_of(request.get("message"))
    text = text_in(asked.get("text")) or "".join(text_in(part.get("text")) for part in objects(asked.get("parts")))
    parts = objects(request.get("response"))
    said = "".join(map(_of_vs_code, parts))
    kinds = [THOUGHTS if part.get("kind") == "thinking" else TOOLS for part in parts if not _of_vs_code(part) and part.get("kind")]
    question = Message(by_user=True, text=text, id=f"{name} asked", said_at=at)
    return [question, *([Message(False, said, "", f"{name} answered", at, tuple(kinds))] if parts else [])]


def _of_changes(source: Source, name: str, _zone: ZoneInfo | None) -> Iterator[Any]:
    """The conversation of a file of VS Code's own: a line with it as it began, and one for each change of what is at a path in it."""
    whole: Any = None
    for number, line in lines(blocks(source, name), name):
        try:
            change = fields_of(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                "{} can't be read", "line {} is no JSON", "Export the chat with `Chat: Export Chat`", name, number
            ) from error
        path, value = change.get("k"), change.get("v")
        if change.get("kind") == _WHOLE:
            whole = value
        elif isinstance(path, list) and path:
            _change(whole, path, change.get("kind"), value, change.get("i"))
    yield whole


def _change(whole: Any, path: list[Any], kind: object, value: Any, kept: object) -> None:
    """Sets what is at a path, adds to a list there behind the first entries that are `kept`, or removes it. A path that leads nowhere changes nothing."""
    with suppress(LookupError, TypeError):
        for step in path[:-1]:
            whole = whole[step]
        if kind == _SET:
            whole[path[-1]] = value
        elif kind == _ADDED:
            whole[path[-1]][slice(kept, None) if isinstance(kept, int) else slice(len(whole[path[-1]]), None)] = value or []
        elif kind == _REMOVED:
            del whole[path[-1]]


def _of_vs_code(part: Fields) -> str:
    """What a part of an answer shows: its text, or the name of a file or a symbol."""
    if part.get("kind") == "inlineReference":
        named = fields_of(part.get("inlineReference"))
        path = text_in(named.get("path")) or text_in(fields_of(named.get("uri")).get("path"))
        return text_in(named.get("name")) or path.rpartition("/")[2]
    return _value(part.get("value")) or _value(part.get("content")) if part.get("kind") in (None, "markdownContent") else ""


def _value(text: object) -> str:
    return text_in(fields_of(text).get("value")) if isinstance(text, dict) else text_in(text)


def _vs_code_session(entry: Fields, file: str, _messages: list[Message]) -> str:
    requests = objects(entry.get("requests"))
    return text_in(entry.get("sessionId")) or (text_in(requests[0].get("requestId")) if requests else file)


def _character_ai(_name: str, one: Fields) -> list[Message]:
    author = fields_of(one.get("src")) or fields_of(one.get("author"))
    candidates = objects(one.get("candidates"))
    chosen = next((each for each in candidates if each.get("candidate_id") == one.get("primary_candidate_id")), (candidates or [{}])[0])
    text = text_in(one.get("text")) or text_in(chosen.get("raw_content"))
    said_at = moment(one.get("created")) or moment(one.get("create_time")) or moment(chosen.get("create_time"))
    speaker = text_in(author.get("name")) or text_in(fields_of(author.get("user")).get("username"))
    is_shown = one.get("is_alternative") is not True
    others = (BRANCHES,) * (max(len(candidates) - 1, 0) + (not is_shown))
    turn = text_in(one.get("uuid")) or text_in(fields_of(one.get("turn_key")).get("turn_id"))
    return [Message(author.get("is_human") is True, text if is_shown else "", speaker, turn, said_at, others)]


def _character_ai_session(entry: Fields, _file: str, messages: list[Message]) -> str:
    turns = (fields_of(turn.get("turn_key")) for turn in objects(entry.get("turns")))
    return next(filter(None, map(_character_ai_id, (entry, *turns))), "") or next(iter(_by_texts(entry, messages)), "")


def _character_ai_id(fields: Fields) -> str:
    return _session_at("external_id", "chat_id", "id")(fields, "", [])


def _by_texts(entry: Fields, messages: list[Message]) -> list[str]:
    return [import_rows.key_of("character-ai", text_in(entry.get("created")), message.text) for message in messages]


def _character_ai_former(entry: Fields, messages: list[Message]) -> Collection[str]:
    """What stood first in the file named a chat whose turns alone have its id, mostly the newest."""
    names = _by_texts(entry, messages)
    return () if _character_ai_id(entry) else sorted({*names[:1], *named_by_newest(names)})


def _is_librechat(fields: Fields) -> bool:
    is_list = "conversationId" in fields and isinstance(fields.get("messages"), list)
    return is_list and bool({"endpoint", "exportAt", "recursive", "branches"} & fields.keys())


def _is_open_webui(fields: Fields) -> bool:
    chat = _chat_of(fields)
    return "messages" in fields_of(chat.get("history")) or ("chat" in fields and "messages" in chat)


def _is_lm_studio(fields: Fields) -> bool:
    first = next(iter(objects(fields.get("messages"))), {})
    return "createdAt" in fields and "messages" in fields and ("versions" in first or {"pinned", "tokenCount"} & fields.keys() != set())


def _is_character_ai(fields: Fields) -> bool:
    inner = fields_of(fields.get("histories")).get("histories", fields.get("histories")) or fields.get("chats")
    return any("msgs" in one or "turns" in one for one in objects(inner)) or bool(
        objects(fields.get("turns")) and "author" in objects(fields["turns"])[0]
    )


def _is_grok(fields: Fields) -> bool:
    first = next(iter(objects(fields.get("conversations"))), fields)
    return "conversation" in first and "responses" in first


def _has(*names: str) -> Callable[[Fields], bool]:
    return lambda fields: all(name in fields for name in names)


PROGRAMS = {
    program.form: program
    for program in (
        Program(
            "deepseek",
            "DeepSeek",
            _has("mapping", "inserted_at"),
            lambda entry: {name: node for name, node in _named(entry.get("mapping")).items() if fields_of(node.get("message"))},
            _deepseek,
            _session_at("id"),
            parent="parent",
        ),
        Program(
            "librechat", "LibreChat", _is_librechat, _librechat_nodes, _librechat, _session_at("conversationId"), parent="parentMessageId"
        ),
        Program(
            "open-webui",
            "Open WebUI",
            _is_open_webui,
            _open_webui_nodes,
            _open_webui,
            lambda entry, *_: text_in(entry.get("id")) or text_in(_chat_of(entry).get("id")),
            lambda entry: text_in(entry.get("title")) or text_in(_chat_of(entry).get("title")),
            "parentId",
            lambda entry: fields_of(_chat_of(entry).get("history")).get("currentId"),
        ),
        Program(
            "lm-studio",
            "LM Studio",
            _is_lm_studio,
            lambda entry: _by_id(entry.get("messages"), ""),
            _lm_studio,
            _lm_studio_session,
            lambda entry: text_in(entry.get("name")),
        ),
        Program(
            "grok",
            "Grok",
            _is_grok,
            _grok_nodes,
            _grok,
            lambda entry, *_: text_in(fields_of(entry.get("conversation")).get("id")),
            lambda entry: text_in(fields_of(entry.get("conversation")).get("title")),
            "parent_response_id",
            opened=frozenset({"conversations"}),
            entries="conversations[] []",
        ),
        Program(
            "gemini",
            "Gemini",
            gemini.is_activity,
            lambda entry: {"": entry},
            lambda _name, entry: gemini.messages(entry),
            lambda entry, *_: gemini.session(entry),
            lambda _entry: "",
            is_page=gemini.is_page,
            pages=gemini.activities,
            page_suffixes=gemini.PAGES,
        ),
        Program(
            "vscode-chat",
            "GitHub Copilot",
            lambda fields: "requests" in fields and bool({"responderUsername", "creationDate"} & fields.keys()),
            lambda entry: _by_id(entry.get("requests"), ""),
            _vs_code,
            _vs_code_session,
            lambda entry: text_in(entry.get("customTitle")),
            is_page=lambda head: head.suffix == _CHANGES and _FIRST_CHANGE.match(head.data) is not None,
            pages=_of_changes,
            page_suffixes=(_CHANGES,),
        ),
        Program(
            "character-ai",
            "Character.AI",
            _is_character_ai,
            lambda entry: _by_id(objects(entry.get("msgs")) or entry.get("turns"), ""),
            _character_ai,
            _character_ai_session,
            lambda _entry: "",
            opened=frozenset({"histories", "histories.histories", "chats"}),
            entries="histories[] histories.histories[] chats[] []",
            former_sessions=_character_ai_former,
        ),
    )
}
# What a conversation as a whole says of its messages: who takes part, and when it began, where they don't say it themselves.
_USERS, _ASSISTANTS, _BEGUN = "requesterUsername", "responderUsername", ("createdAt", "created")


def recognizes(form: str, head: Head) -> bool:
    """Whether a file is an export of the program."""
    return PROGRAMS[form].recognizes(head.fields) or PROGRAMS[form].is_page(head)


def read_file(form: str, source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message of one program's export. Each conversation is a session."""
    program = PROGRAMS[form]
    entries = (
        program.pages(source, name, options.zone)
        if program.pages and name.lower().endswith(program.page_suffixes)
        else _entries(program, source, name)
    )
    for number, entry in enumerate(entries, start=1):
        where = f"{name}, conversation {number}"
        if isinstance(entry, dict):
            yield from _conversation(program, entry, name, where, options)
        else:
            yield ImportItem(where, refused=NO_OBJECT)


def _conversation(program: Program, entry: Fields, file: str, where: str, options: ReadOptions) -> Iterator[ImportItem]:
    nodes = program.nodes(entry)
    read = {name: program.messages(name, node) for name, node in nodes.items()}
    path, is_newest_first = list(nodes), False
    times = {name: next((message.said_at or "" for message in messages), "") for name, messages in read.items()}
    if any(node.get(program.parent) for node in nodes.values()):
        last = program.last(entry)
        is_dated = (isinstance(last, str) and last in nodes) or any(times.values())
        path = path_to_last(nodes, last, program.parent, times.__getitem__) if is_dated else path
    elif is_newest_first := (dated := [time for time in times.values() if time])[:1] > dated[-1:]:
        path.reverse()
    yield from [ImportItem(where, left_out=BRANCHES)] * (len(nodes) - len(path))
    messages = [message for name in path for message in read[name]]
    begun = next((at for name in _BEGUN if (at := moment(entry.get(name)))), None)
    names = (text_in(entry.get(_USERS)), text_in(entry.get(_ASSISTANTS)) or program.name)
    session, title = program.session(entry, file, messages), program.title(entry)
    known = _known_as(program, entry, session, messages, is_newest_first=is_newest_first)
    yield from conversation_items(program.form, where, session, title, known, options, names, begun)


def _known_as(program: Program, entry: Fields, session: str, messages: list[Message], *, is_newest_first: bool) -> Iterator[Message]:
    """Messages, first to last, with what else they may be stored as: in former sessions, and those without an id with their places in the file."""
    sessions = program.former_sessions(entry, messages)
    in_file = messages[::-1] if is_newest_first else messages
    named = next(iter(program.former_sessions(entry, in_file[:1])), session)
    for number, message in enumerate(messages, start=1):
        if message.id:
            yield replace(message, former=tuple((former, message.id) for former in sessions if former != session))
            continue
        place = str(len(messages) + 1 - number if is_newest_first else number)
        # Of a session that keeps its name the place in the file may have been the number of another message.
        own = f"{number} from the oldest" if is_newest_first and named == session else str(number)
        yield replace(message, number=own, former=((named, place),) if (named, place) != (session, own) else ())


def _entries(program: Program, source: Source, name: str) -> Iterator[Any]:
    """The conversations of a file, one at a time; a file may be a single one."""
    single: dict[str, Any] = {}
    for path, value in walk(blocks(source, name), name, program.opened):
        if path in program.entries.split():
            yield value
        elif "[" not in path and "." not in path:
            single[path] = value
    if single and (program.recognizes(single) or "turns" in single):
        yield single
