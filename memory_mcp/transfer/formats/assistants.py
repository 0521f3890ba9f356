"""Reads the conversations that other assistants export: DeepSeek, LibreChat, Open WebUI, LM Studio, Grok, Gemini, VS Code's chat, Character.AI.

Each is a list of messages or a tree of them, of which the branch that was shown last is read.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import NO_OBJECT, ImportItem, ReadOptions, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import walk
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import BRANCHES, Message, conversation_items, path_to_last

Fields = Mapping[str, Any]
_DETAILS, _DETAILS_END = '<details type="', "</details>"
_TAG = re.compile(r"<[^<>]{0,2000}+>")
_BLOCK_END = re.compile(r"(?i)</(?:p|li|h[1-6]|div|tr|pre|blockquote|ul|ol)>|<br ?/?>")
_PROMPTED = re.compile(
    r"(?:Prompted|Said|Asked|送信したメッセージ[:：]|プロンプト[:：]|Eingegebener Prompt[:：]?|Prompt saisi ?[:：]?|Mensaje enviado[:：]?) ?"
)
_MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as its export has it."""

    session: str
    title: str
    messages: list[Message]
    beside: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """An assistant's program: where its conversations are in a file, and how one is read, given the name of its file."""

    form: str
    name: str
    recognizes: Callable[[Fields], bool]
    read: Callable[[Fields, str], Conversation | None]
    opened: frozenset[str] = frozenset()
    entries: str = "[]"


def fields_of(value: object) -> Fields:
    """The value if it is an object, otherwise none of its fields."""
    return value if isinstance(value, dict) else {}


def _nodes(value: object) -> dict[str, Fields]:
    return {name: node for name, node in fields_of(value).items() if isinstance(node, dict)}


def _deepseek(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    nodes = _nodes(entry.get("mapping"))
    path = path_to_last(nodes, None, "parent", lambda node: moment(fields_of(node.get("message")).get("inserted_at")) or "")
    messages: list[Message] = []
    for node_id, node in path:
        message = fields_of(node.get("message"))
        if not message:
            continue
        fragments = objects(message.get("fragments"))
        types = [text_in(fragment.get("type")) for fragment in fragments]
        by_user = "REQUEST" in types if fragments else len(messages) % 2 == 0  # older exports name no role
        said = [text_in(one.get("content")) for one in fragments if one.get("type") in ("REQUEST", "RESPONSE")] or [
            text_in(message.get("content"))
        ]
        left_out = ["thoughts"] * (types.count("THINK") + bool(message.get("reasoning_content"))) + ["contents of files"] * len(
            objects(message.get("files"))
        )
        left_out += ["uses of tools"] * sum(kind not in ("REQUEST", "RESPONSE", "THINK") for kind in types)
        messages.append(Message(by_user, "\n\n".join(said), "", node_id, moment(message.get("inserted_at")), tuple(left_out)))
    shown = len(messages)
    total = sum(bool(fields_of(node.get("message"))) for node in nodes.values())
    return Conversation(text_in(entry.get("id")), text_in(entry.get("title")), messages, total - shown)


def _librechat(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    nodes: dict[str, Fields] = {}
    waiting = objects(entry.get("messages"))[::-1]
    while waiting and len(nodes) < _MANY:
        message = waiting.pop()
        nodes[text_in(message.get("messageId")) or str(len(nodes))] = message
        waiting += objects(message.get("children"))[::-1]
    path = path_to_last(nodes, None, "parentMessageId", lambda message: moment(message.get("createdAt")) or "")
    if not any(message.get("createdAt") for message in nodes.values()):
        path = list(nodes.items())
    messages = [_of_librechat(name, message) for name, message in path]
    return Conversation(text_in(entry.get("conversationId")), text_in(entry.get("title")), messages, len(nodes) - len(path))


def _of_librechat(name: str, message: Fields) -> Message:
    parts = objects(message.get("content"))
    texts = [_value(part.get("text")) for part in parts if part.get("type") == "text"]
    kinds = {"think": "thoughts", "tool_call": "uses of tools", "image_file": "pictures and files", "image_url": "pictures and files"}
    left_out = [kinds.get(text_in(part.get("type")), "parts of other kinds") for part in parts if part.get("type") != "text"]
    left_out += ["contents of files"] * len(objects(message.get("files")))
    by_user = message.get("isCreatedByUser") is True
    text = text_in(message.get("text")) or "\n\n".join(text for text in texts if text)
    return Message(
        by_user, text, "" if by_user else text_in(message.get("sender")), name, moment(message.get("createdAt")), tuple(left_out)
    )


def _value(text: object) -> str:
    return text_in(fields_of(text).get("value")) if isinstance(text, dict) else text_in(text)


def _open_webui(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    chat = fields_of(entry.get("chat")) or entry
    history = fields_of(chat.get("history"))
    nodes = _nodes(history.get("messages"))
    listed = [(text_in(one.get("id")), one) for one in objects(chat.get("messages"))]
    path = path_to_last(nodes, history.get("currentId"), "parentId", lambda node: moment(node.get("timestamp")) or "") or listed
    messages: list[Message] = []
    for name, node in path:
        text, thoughts = _without_details(text_in(node.get("content")))
        by_user = node.get("role") == "user"
        left_out = ("thoughts and tools",) * thoughts + ("contents of files",) * len(objects(node.get("files")))
        if node.get("role") in ("user", "assistant"):
            speaker = "" if by_user else text_in(node.get("modelName")) or text_in(node.get("model"))
            messages.append(Message(by_user, text, speaker, name, moment(node.get("timestamp")), left_out))
        else:
            messages.append(Message(by_user=True, text="", id=name, left_out=("system and hidden messages",)))
    session = text_in(entry.get("id")) or text_in(chat.get("id"))
    return Conversation(session, text_in(entry.get("title")) or text_in(chat.get("title")), messages, max(len(nodes) - len(path), 0))


def _without_details(text: str) -> tuple[str, int]:
    """A text without what the assistant thought and did, which its program folds away, and how many such parts it had."""
    parts, at = [], 0
    while (start := text.find(_DETAILS, at)) >= 0 and (end := text.find(_DETAILS_END, start)) >= 0:
        parts.append(text[at:start])
        at = end + len(_DETAILS_END)
    return "".join([*parts, text[at:]]).strip(), len(parts)


def _lm_studio(entry: Fields, file: str) -> Conversation | None:
    begun = moment(entry.get("createdAt"))
    messages: list[Message] = []
    for message in objects(entry.get("messages")):
        versions = objects(message.get("versions"))
        chosen = message.get("currentlySelected")
        version = versions[chosen] if isinstance(chosen, int) and 0 <= chosen < len(versions) else (versions or [{}])[-1]
        steps = objects(version.get("steps"))
        blocks_of = [step for step in steps if step.get("type") == "contentBlock"]
        thoughts = [step for step in blocks_of if fields_of(step.get("style")).get("type") == "thinking"]
        parts = [part for step in (blocks_of or [version]) if step not in thoughts for part in objects(step.get("content"))]
        text = "\n\n".join(text_in(part.get("text")) for part in parts if part.get("type") == "text")
        kinds = ["pictures and files" if part.get("type") == "file" else "uses of tools" for part in parts if part.get("type") != "text"]
        by_user = version.get("role") == "user"
        speaker = "" if by_user else text_in(fields_of(version.get("senderInfo")).get("senderName"))
        if version.get("role") == "system":
            text, kinds = "", ["system and hidden messages"]
        messages.append(Message(by_user, text, speaker, "", begun, (*kinds, *["thoughts"] * len(thoughts))))
    return Conversation(
        import_rows.key_of("lm-studio", str(entry.get("createdAt")), file if begun is None else ""), text_in(entry.get("name")), messages
    )


def _grok(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    about = fields_of(entry.get("conversation"))
    responses = [fields_of(one.get("response")) or one for one in objects(entry.get("responses"))]
    nodes = {text_in(one.get("_id")) or str(number): one for number, one in enumerate(responses)}
    if any(text_in(one.get("parent_response_id")) for one in responses):
        path = path_to_last(nodes, None, "parent_response_id", lambda one: _bson(one.get("create_time")) or "")
    else:
        path = list(nodes.items())
    messages: list[Message] = []
    for name, one in path:
        by_user = text_in(one.get("sender")).casefold() in ("human", "user")
        left_out = ["thoughts"] * bool(one.get("thinking_trace") or one.get("agent_thinking_traces"))
        left_out += ["uses of tools"] * bool(one.get("steps")) + ["pictures and files"] * len(one.get("generated_image_urls") or [])
        left_out += ["contents of files"] * len(one.get("file_attachments") or [])
        messages.append(Message(by_user, text_in(one.get("message")), "", name, _bson(one.get("create_time")), tuple(left_out)))
    return Conversation(text_in(about.get("id")), text_in(about.get("title")), messages, len(nodes) - len(path))


def _bson(value: object) -> str | None:
    """A time of MongoDB's JSON, or of any other."""
    inner = fields_of(value).get("$date", value)
    return moment(fields_of(inner).get("$numberLong", inner))


def _vs_code(entry: Fields, file: str) -> Conversation | None:
    messages: list[Message] = []
    requests = objects(entry.get("requests"))
    for request in requests:
        at, name = moment(request.get("timestamp")), text_in(request.get("requestId"))
        asked = fields_of(request.get("message"))
        text = text_in(asked.get("text")) or "".join(text_in(part.get("text")) for part in objects(asked.get("parts")))
        messages.append(Message(by_user=True, text=text, speaker=text_in(entry.get("requesterUsername")), id=f"{name} asked", said_at=at))
        parts = objects(request.get("response"))
        said = [_value(part.get("value")) or _value(part.get("content")) for part in parts if part.get("kind") in (None, "markdownContent")]
        kinds = [
            "thoughts" if part.get("kind") == "thinking" else "uses of tools"
            for part in parts
            if part.get("kind") not in (None, "markdownContent")
        ]
        answered = text_in(entry.get("responderUsername"))
        if parts:
            messages.append(Message(False, "".join(said), answered, f"{name} answered", at, tuple(kinds)))
    first = text_in(requests[0].get("requestId")) if requests else file
    return Conversation(text_in(entry.get("sessionId")) or first, text_in(entry.get("customTitle")), messages)


def _character_ai(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    messages = [_of_character_ai(one) for one in objects(entry.get("msgs")) or objects(entry.get("turns"))]
    first = next((message.text for message in messages), "")
    session = next((text_in(entry[name]) for name in ("external_id", "chat_id", "id") if text_in(entry.get(name))), "")
    return Conversation(session or import_rows.key_of("character-ai", text_in(entry.get("created")), first), "", messages)


def _of_character_ai(one: Fields) -> Message:
    author = fields_of(one.get("src")) or fields_of(one.get("author"))
    candidates = objects(one.get("candidates"))
    chosen = next((each for each in candidates if each.get("candidate_id") == one.get("primary_candidate_id")), (candidates or [{}])[0])
    text = text_in(one.get("text")) or text_in(chosen.get("raw_content"))
    said_at = moment(one.get("created")) or moment(one.get("create_time")) or moment(chosen.get("create_time"))
    by_user = author.get("is_human") is True
    name = text_in(author.get("name")) or text_in(fields_of(author.get("user")).get("username"))
    others = (BRANCHES,) * max(len(candidates) - 1, 0)
    return Message(by_user, text, name, text_in(one.get("uuid")) or text_in(fields_of(one.get("turn_key")).get("turn_id")), said_at, others)


def _gemini(entry: Fields, file: str) -> Conversation | None:  # noqa: ARG001
    """One prompt and its answer: an activity says of which conversation it is only by the address that it links to."""
    at, title = moment(entry.get("time")), text_in(entry.get("title"))
    linked = text_in(entry.get("titleUrl")).partition("/app/")[2].removeprefix("c/")
    session = linked or f"Gemini {(at or '')[:10]}"
    details = {text_in(one.get("name")): text_in(one.get("value")) for one in objects(entry.get("details"))}
    answers = [_text_of_html(text_in(one.get("html"))) for one in objects(entry.get("safeHtmlItem"))]
    prompt = details.get("Request") or _PROMPTED.sub("", title, count=1)
    answer = details.get("Response") or "\n\n".join(answers)
    is_prompt = bool(answer) or "Request" in details or _PROMPTED.match(title) is not None
    if not is_prompt:
        return Conversation(session, "", [Message(by_user=True, text="", id=f"{at}", left_out=("notices",))])
    files = ("contents of files",) * len([*objects(entry.get("imageFile")), *(entry.get("attachedFiles") or [])])
    asked = Message(by_user=True, text=prompt, id=f"{at} asked", said_at=at, left_out=files)
    return Conversation(session, "", [asked, *([Message(False, answer, "", f"{at} answered", at)] if answer else [])])


def _text_of_html(text: str) -> str:
    return html.unescape(_TAG.sub("", _BLOCK_END.sub("\n", text))).strip()


def _is_gemini(fields: Fields) -> bool:
    named = [text_in(fields.get("header")), *(part for part in fields.get("products") or [] if isinstance(part, str))]
    return "title" in fields and "time" in fields and any("gemini" in name.casefold() or name == "Bard" for name in named)


def _has(*names: str) -> Callable[[Fields], bool]:
    return lambda fields: all(name in fields for name in names)


def _is_deepseek(fields: Fields) -> bool:
    return "mapping" in fields and "inserted_at" in fields


def _is_librechat(fields: Fields) -> bool:
    return (
        "conversationId" in fields
        and isinstance(fields.get("messages"), list)
        and bool({"endpoint", "exportAt", "recursive", "branches"} & fields.keys())
    )


def _is_open_webui(fields: Fields) -> bool:
    chat = fields_of(fields.get("chat")) or fields
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
    first = next(iter(objects(fields.get("conversations"))), {})
    return "conversation" in first and "responses" in first


_HISTORIES = frozenset({"histories", "histories.histories", "chats"})
PROGRAMS = {
    program.form: program
    for program in (
        Program("deepseek", "DeepSeek", _is_deepseek, _deepseek),
        Program("librechat", "LibreChat", _is_librechat, _librechat),
        Program("open-webui", "Open WebUI", _is_open_webui, _open_webui),
        Program("lm-studio", "LM Studio", _is_lm_studio, _lm_studio),
        Program("grok", "Grok", _is_grok, _grok, frozenset({"conversations"}), "conversations[]"),
        Program("gemini", "Gemini", _is_gemini, _gemini),
        Program("vscode-chat", "GitHub Copilot", _has("requests", "responderUsername"), _vs_code),
        Program("character-ai", "Character.AI", _is_character_ai, _character_ai, _HISTORIES, "histories[] histories.histories[] chats[]"),
    )
}


def read_file(form: str, source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message of one program's export. Each conversation is a session."""
    program = PROGRAMS[form]
    for number, entry in enumerate(_entries(program, source, name), start=1):
        where = f"{name}, conversation {number}"
        conversation = program.read(entry, name) if isinstance(entry, dict) else None
        if conversation is None:
            yield ImportItem(where, refused=NO_OBJECT)
            continue
        for _ in range(conversation.beside):
            yield ImportItem(where, left_out=BRANCHES)
        yield from conversation_items(
            program.form, where, conversation.session, conversation.title, iter(conversation.messages), options, program.name
        )


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
