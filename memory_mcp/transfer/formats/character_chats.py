"""Reads the chats of Agnai, RisuAI and KoboldAI (also koboldcpp): a JSON file each. Their files don't always name who speaks."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memory_mcp.transfer.formats import import_rows, lorebooks
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import read_entries
from memory_mcp.transfer.formats.macros import with_names
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.turns import BRANCHES, Message, Turn, named_by_newest, path_to_last, turn_items

FORM = "character-chat"
FILES = re.compile(r"\A.*\.json")
USER, CHARACTER = "user", "character"
# The marks of a turn of the user and of the model, in the saves of KoboldAI.
_BY_USER = re.compile(r"\s{0,9}(?:\{\{\[INPUT\]\}\}|### ?Instruction:|> )\s{0,9}", re.IGNORECASE)
_BY_MODEL = re.compile(r"\s{0,9}(?:\{\{\[OUTPUT\]\}\}|### ?Response:)\s{0,9}", re.IGNORECASE)


def is_chat(first: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a chat of one of these programs."""
    return any(recognizes(first) for _, recognizes, _ in PROGRAMS)


def read(source: Source, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message, and for each entry of the lorebook of a chat."""
    yield from read_entries(source, lambda chat, where: _chat(chat, where, options), FILES, "chat")


def _chat(chat: Any, where: str, options: ReadOptions) -> Iterator[ImportItem]:
    program, turns_of = next(
        ((name, turns) for name, recognizes, turns in PROGRAMS if isinstance(chat, dict) and recognizes(chat)), ("", None)
    )
    if turns_of is None:
        yield ImportItem(where, refused="It is no chat of Agnai, RisuAI or KoboldAI.")
        return
    turns = turns_of(chat)
    session = next((turn.id for turn in turns[:1]), "") or _name(chat) or import_rows.key_of(FORM, *(turn.text for turn in turns[:1]))
    named = {by_user: next((turn.speaker for turn in turns if turn.speaker and turn.by_user is by_user), "") for by_user in (True, False)}
    user, character = options.me or named[True] or USER, named[False] or CHARACTER
    yield from [ImportItem(where, left_out=BRANCHES)] * (len(objects(chat.get("messages"))) - len(turns))
    former = sorted({*named_by_newest([turn.id for turn in turns]), _name(chat)} - {session, ""})
    for number, turn in enumerate(turns, start=1):
        speaker = (options.me if turn.by_user else "") or turn.speaker or (user if turn.by_user else character)
        said = Turn(
            speaker,
            with_names(turn.text, named[False], options.me or named[True]),
            turn.said_at,
            session,
            (program, session, turn.id or str(number), turn.text),
            import_rows.role_of(speaker, by_user=True) if turn.by_user else None,
            origin={"program": program, "conversation": session},
            tags=(program,),
            former=tuple((program, name, turn.id, turn.text) for name in former if turn.id),
        )
        yield from turn_items(FORM, f"{where}, message {number}", said)
    yield from lorebooks.items({"entries": _world(chat)}, where, character, user)


def _name(chat: Mapping[str, Any]) -> str:
    data = chat.get("data")
    return text_in(data.get("name") if isinstance(data, dict) else "") or text_in(chat.get("name"))


def _world(chat: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a chat keeps of its world: entries of a lorebook, and KoboldAI's text that is always there."""
    data, memory = chat.get("data"), text_in(chat.get("memory"))
    entries = objects(chat.get("worldinfo")) + objects(data.get("localLore") if isinstance(data, dict) else None)
    return [*([{"content": memory}] if memory.strip() else []), *entries]


def _of_agnai(chat: Mapping[str, Any]) -> list[Message]:
    """The messages of the branch that was shown last, or all where they form no tree."""
    messages = objects(chat.get("messages"))
    by_id = {str(message.get("_id")): message for message in messages}
    shown = list[Mapping[str, Any]](messages)
    if any(message.get("parent") for message in messages):
        path = path_to_last(by_id, chat.get("treeLeafId"), "parent", lambda name: moment(by_id[name].get("createdAt")) or "")
        shown = [by_id[name] for name in path]
    return [
        Message(
            bool(message.get("userId")) and not message.get("characterId"),
            text_in(message.get("msg")),
            text_in(message.get("handle")) or text_in(message.get("name")),
            str(message.get("_id") or ""),
            moment(message.get("createdAt")),
        )
        for message in shown
    ]


def _of_risu(chat: Mapping[str, Any]) -> list[Message]:
    messages = objects(chat["data"].get("message"))
    return [
        Message(
            message.get("role") == "user", text_in(message.get("data")), text_in(message.get("name")), said_at=moment(message.get("time"))
        )
        for message in messages
    ]


def _of_kobold(chat: Mapping[str, Any]) -> list[Message]:
    actions = chat.get("actions")
    texts = [chat.get("prompt"), *(actions if isinstance(actions, list) else [])]
    return [
        Message(_BY_USER.match(text) is not None, _BY_MODEL.sub("", _BY_USER.sub("", text, 1), 1).strip())
        for text in map(text_in, texts)
        if text.strip()
    ]


def _has_messages(chat: Mapping[str, Any]) -> bool:
    messages = objects(chat.get("messages"))
    return bool(messages) and all("msg" in message and "_id" in message for message in messages[:3])


# A program, whether a chat is of it, and its messages.
PROGRAMS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], list[Message]]], ...] = (
    ("agnai", _has_messages, _of_agnai),
    ("risuai", lambda chat: chat.get("type") == "risuChat" and isinstance(chat.get("data"), dict), _of_risu),
    ("koboldai", lambda chat: "gamestarted" in chat and "actions" in chat, _of_kobold),
)
