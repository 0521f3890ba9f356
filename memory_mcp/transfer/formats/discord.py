"""Reads the JSON that DiscordChatExporter writes of a channel: who said what, by the name that people see there.

langchain-community's DiscordChatLoader reads only the package that Discord itself sends, which has nobody else's messages.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, fields_of, moment, objects, role_of, text_in
from memory_mcp.transfer.formats.json_stream import walk
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import Turn, media_kind, message_items

FORM = "discord"
PROGRAM = "Discord"
# Types of messages with a text of somebody; the others, such as GuildMemberJoin, are notices. Newer types have numbers.
_SAID = frozenset({"Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23"})


def recognizes(head: Head) -> bool:
    """By the guild and the channel above the messages."""
    return head.has("guild", "channel", "messages")


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:  # noqa: ARG001  it names every author and every zone
    """Yields a row for each message. A day of a channel is a session."""
    guild: Mapping[str, Any] = {}
    channel: Mapping[str, Any] = {}
    number = 0
    for path, value in walk(blocks(source, name), name, frozenset({"messages"})):
        if path == "guild" and isinstance(value, dict):
            guild = value
        elif path == "channel" and isinstance(value, dict):
            channel = value
        elif path == "messages[]":
            number += 1
            turn_of = partial(_turn, guild=guild, channel=channel)
            yield from message_items(FORM, f"{name}, message {number}", value, turn_of)


def _turn(message: Mapping[str, Any], guild: Mapping[str, Any], channel: Mapping[str, Any]) -> Turn:
    author = fields_of(message.get("author"))
    speaker = text_in(author.get("nickname")) or text_in(author.get("name"))
    said_at, place = moment(message.get("timestamp")), text_in(channel.get("name"))
    kind = text_in(message.get("type")) or "Default"
    is_said = kind in _SAID
    text = text_in(message.get("content")) or text_in(fields_of(message.get("forwardedMessage")).get("content"))
    posted = "" if text or not author.get("isBot") else "\n\n".join(map(_text_of_embed, objects(message.get("embeds")))).strip()
    server = text_in(guild.get("name"))
    return Turn(
        speaker or None,
        (text or posted) if is_said else "",
        said_at,
        " ".join(filter(None, (PROGRAM, server, f"#{place}" if place else "", (said_at or "")[:10]))),
        (text_in(channel.get("id")) or place, text_in(message.get("id")) or f"{said_at} {speaker} {text}"),
        role_of(speaker, not author.get("isBot")),
        tuple(_beside(message, has_read_embeds=bool(posted))) if is_said else ("calls" if kind == "Call" else "notices",),
        {
            "guild": server,
            "channel": place,
            "message": text_in(message.get("id")),
            "author": text_in(author.get("name")),
            "reply_to": text_in(fields_of(message.get("reference")).get("messageId")),
        },
    )


def _text_of_embed(embed: Mapping[str, Any]) -> str:
    """What a bot says in a frame: its title, its text, and its fields."""
    fields = [f"{text_in(field.get('name'))}: {text_in(field.get('value'))}" for field in objects(embed.get("fields"))]
    return "\n".join(filter(None, (text_in(embed.get("title")), text_in(embed.get("description")), *fields)))


def _beside(message: Mapping[str, Any], *, has_read_embeds: bool) -> Iterator[str]:
    """The kinds of what a message has beside its text."""
    for file in objects(message.get("attachments")):
        yield media_kind(text_in(file.get("fileName"))) or "files"
    yield from ("stickers" for _ in objects(message.get("stickers")))
    yield from ("link previews" for _ in objects(message.get("embeds")) if not has_read_embeds)
    yield from ("polls" for _ in [message.get("poll")] if _)
    yield from ("reactions" for _ in objects(message.get("reactions")))
