"""Reads the chats of SillyTavern: a file of JSON lines for each, with the names of who speaks. Of a message the chosen swipe is read.

A line is identified by its speaker, its time and its text: a branch repeats the lines of the chat that it left, and a renamed file all of them.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.llm.thoughts import without_thoughts
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, fields_of, text_in
from memory_mcp.transfer.formats.json_stream import each_file, ends_in, json_object, lines
from memory_mcp.transfer.formats.macros import with_names
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import PICTURES, THOUGHTS, Turn, turn_items
from memory_mcp.transfer.formats.written_times import written_time

FORM = "sillytavern"
SUFFIX = ".jsonl"
# So many lines of a file are looked at to recognize it: one of them names who takes part, or is a message. The metadata in the first may be longer than a
# beginning.
LINES_LOOKED_AT = 10
_METADATA = re.compile(rb'\{\s{0,9}"chat_metadata"\s{0,9}:\s{0,9}\{')
_NAMES, _MESSAGE = {"user_name", "character_name"}, {"mes", "is_user", "name"}
_OF_USER = re.compile(r'"is_user"\s{0,9}:\s{0,9}true')
_OF_GROUP = re.compile(r"\{\{\s{0,9}(?:group|charIfNotGroup)\s{0,9}\}\}", re.IGNORECASE)
# Names that stand for nobody.
_UNUSED = frozenset({"", "unused"})


def is_chat(head: bytes) -> bool:
    """Whether a file that begins like this is a chat of SillyTavern."""
    beginning = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not beginning.startswith(b"{"):
        return False
    messages = map(json_object, beginning.split(b"\n", LINES_LOOKED_AT)[:LINES_LOOKED_AT])
    return bool(_METADATA.match(beginning)) or any(
        message and any(names <= message.keys() for names in (_NAMES, _MESSAGE)) for message in messages
    )


def read(source: Source, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message. Without a name of the user in the options it is the name in the chat."""
    yield from each_file(source, lambda name: _chat(source, name, options), ends_in(SUFFIX))


def _chat(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    me, session = options.me, PurePosixPath(name).stem
    user, character, group = _user_who_speaks(source, name), "", _group(source, name)
    seen = Counter[tuple[str, ...]]()
    for number, line in lines(blocks(source, name), name):
        where = f"{name}, line {number}"
        message = json_object(line)
        if message is None:
            yield ImportItem(where, refused="It is no JSON object.")
        elif "mes" not in message:
            user, character = _name(message, "user_name") or user, _name(message, "character_name") or character
        else:
            by_user = message.get("is_user") is True
            speaker = (
                (me if by_user else "") or _name(message, "name") or (user if by_user else character) or ("user" if by_user else session)
            )
            text = _text(message)
            identity = ("user" if by_user else speaker, str(message.get("send_date") or session), text)
            seen[identity] += 1
            said = without_thoughts(text)
            named = with_names(said, character or ("" if by_user else speaker), me or user or (speaker if by_user else ""), group)
            repetition = [str(seen[identity])] if seen[identity] > 1 else []
            time = written_time(message.get("send_date"), options.zone)
            is_hidden = message.get("is_system") is True
            turn = Turn(
                speaker,
                "" if is_hidden else named,
                time,
                session,
                (*identity, *repetition),
                import_rows.role_of(speaker, by_user=True) if by_user else None,  # a character is a persona: no assistant
                ("hidden lines",) if is_hidden else tuple(_beside(message, time, thoughts=said is not text)),
                {"conversation": session},
            )
            yield from turn_items(FORM, where, turn)


def _user_who_speaks(source: Source, name: str) -> str:
    """The name of the first of the user's messages: a group chat names nobody at its beginning."""
    for _, line in lines(blocks(source, name), name):
        message = json_object(line) if _OF_USER.search(line) else None
        if message and message.get("is_user") is True and (user := _name(message, "name")):
            return user
    return ""


def _group(source: Source, name: str) -> str:
    """The names of all characters who speak, if a message has a placeholder for them."""
    if not any(_OF_GROUP.search(line) for _, line in lines(blocks(source, name), name)):
        return ""
    messages = filter(None, (json_object(line) for _, line in lines(blocks(source, name), name)))
    said = (message for message in messages if "mes" in message and not (message.get("is_user") or message.get("is_system")))
    return ", ".join(dict.fromkeys(filter(None, (_name(message, "name") for message in said))))


def _beside(message: Mapping[str, Any], time: str | None, *, thoughts: bool) -> Iterator[str]:
    """The kinds of what a message has beside its text."""
    swipes, extra = message.get("swipes"), fields_of(message.get("extra"))
    yield from ["swipes that were not chosen"] * (len(swipes) - 1 if isinstance(swipes, list) else 0)
    if thoughts or extra.get("reasoning"):
        yield THOUGHTS
    yield from (PICTURES for field in ("image", "media", "file") if extra.get(field))
    if time is None and str(message.get("send_date") or "0") != "0":
        yield "times that can't be read"


def _text(message: Mapping[str, Any]) -> str:
    """What is shown: the message, or where that is empty the swipe that was chosen."""
    shown, swipes, chosen = text_in(message.get("mes")), message.get("swipes"), message.get("swipe_id")
    if shown.strip() or not (isinstance(swipes, list) and isinstance(chosen, int) and 0 <= chosen < len(swipes)):
        return shown
    return text_in(swipes[chosen])


def _name(message: Mapping[str, Any], part: str) -> str:
    name = text_in(message.get(part)).strip()
    return "" if name.casefold() in _UNUSED else name
