"""Reads `result.json` of Telegram Desktop: of one chat, or of a whole account.

langchain-community's TelegramChatFileLoader joins all messages into one text without their times.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from memory_mcp.remember.deduplication import EDITED_AT
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, fields_of, moment, objects, role_of, text_in
from memory_mcp.transfer.formats.json_stream import walk
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import Turn, media_kind, message_items, quoted, zoned

FORM = "telegram"
PROGRAM = "Telegram"
_LISTS = ("chats.list", "left_chats.list")
_OPENED = frozenset({"messages", *(f"{part}{ending}" for part in _LISTS for ending in ("", "[]", "[].messages")), "chats", "left_chats"})
_CHAT_FIELDS = ("name", "type", "id")
_MEDIA = {
    "sticker": "stickers",
    "voice_message": "voice messages",
    "audio_file": "voice messages",
    "video_file": "videos",
    "video_message": "videos",
    "animation": "videos",
}
_BESIDE = {"photo": "photos", "contact_information": "contacts", "location_information": "locations", "poll": "polls"}


def recognizes(head: Head) -> bool:
    """By the kind of chat beside its messages, or the list of the account's chats."""
    messages = head.fields.get("messages") or []
    first = next(iter(messages), None) if isinstance(messages, list) else messages
    is_chat = head.has("type", "id", "messages") and (first is None or (isinstance(first, dict) and "date" in first))
    chats = head.fields.get("chats")
    return is_chat or (isinstance(chats, dict) and "list" in chats)


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message. A day of a chat is a session."""
    chat: dict[str, str] = {}
    number = 0
    for path, value in walk(blocks(source, name), name, _OPENED):
        _, _, last = path.rpartition(".")
        if last == "messages[]":
            number += 1
            turn_of = partial(_turn, chat=chat, options=options)
            yield from message_items(FORM, f"{name}, message {number}", value, turn_of)
        elif last in _CHAT_FIELDS and path.removesuffix(last).rstrip(".").removesuffix("[]") in ("", *_LISTS):
            # They come in this order, some of them missing: another chat begins where one comes that isn't after the last.
            if any(_CHAT_FIELDS.index(known) >= _CHAT_FIELDS.index(last) for known in chat):
                chat = {}
            chat[last] = "" if value is None else str(value)


def _turn(message: Mapping[str, Any], chat: Mapping[str, str], options: ReadOptions) -> Turn:
    speaker = text_in(message.get("from")) or text_in(message.get("from_id")) or None
    local = text_in(message.get("date"))
    is_said = message.get("type", "message") == "message"
    title = chat.get("name") or ("Saved Messages" if chat.get("type") == "saved_messages" else chat.get("id", ""))
    notice = "calls" if message.get("action") in ("phone_call", "group_call") else "notices"
    said = _text(message.get("text")) or _text(message.get("text_entities"))
    forwarded_from = message.get("forwarded_from")
    identity = (chat.get("id", ""), str(message.get("id") or local))
    said_on = zoned(moment(local), options.zone)
    said_at = moment(message.get("date_unixtime")) or said_on
    return Turn(
        speaker,
        (quoted(said) if forwarded_from not in (None, speaker) else said) if is_said else "",
        said_at,
        " ".join(filter(None, (PROGRAM, title, (said_on or said_at or "")[:10]))),
        identity,
        role_of(speaker, by_user=True),
        tuple(_beside(message)) if is_said else (notice,),
        {
            "chat": title,
            "message": identity[1],
            EDITED_AT: moment(message.get("edited_unixtime")) or zoned(moment(message.get("edited")), options.zone),
            "forwarded_from": forwarded_from,
            "reply_to": message.get("reply_to_message_id"),
        },
    )


def _text(text: object) -> str:
    """The text of a message, whose marked parts are objects: a link becomes here (https://…)."""
    parts = text if isinstance(text, list) else [text]
    marked = [{"text": part} if isinstance(part, str) else fields_of(part) for part in parts]
    links = (text_in(part.get("href")) for part in marked)
    return "".join(
        text_in(part.get("text")) + (f" ({link})" if link not in text_in(part.get("text")) else "")
        for part, link in zip(marked, links, strict=True)
    )


def _beside(message: Mapping[str, Any]) -> Iterator[str]:
    """The kinds of what a message has beside its text."""
    if media := text_in(message.get("media_type")):
        yield _MEDIA.get(media, "files")
    elif "file" in message:
        yield media_kind(text_in(message.get("file_name")) or text_in(message.get("file"))) or "files"
    yield from (kind for part, kind in _BESIDE.items() if part in message)
    yield from ("reactions" for _ in objects(message.get("reactions")))
