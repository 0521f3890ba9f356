"""Reads the JSON that DiscordChatExporter writes of a channel, who said what by the name that people see there, and the package that Discord itself
sends of an account: what its owner said in each channel, as JSON or CSV.

langchain-community's DiscordChatLoader reads only the CSV, without the names of channels and accounts.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping
from datetime import UTC
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from weakref import WeakKeyDictionary

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.deduplication import EDITED_AT
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, fields_of, moment, objects, role_of, text_in
from memory_mcp.transfer.formats.json_stream import walk
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import TEXT_LIMIT_BYTES, Source, blocks, whole
from memory_mcp.transfer.formats.turns import FORWARDS, Turn, media_kind, message_items, quoted, zoned

FORM = "discord"
PROGRAM = "Discord"
# Types of messages with a text of somebody; the others, such as GuildMemberJoin, are notices. Newer types have numbers.
_SAID = frozenset({"Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23"})
# The sentences that it writes for those notices in a table, which says nothing else of them. One with a name in it may be somebody's own.
CALL = re.compile(r"Started a call that lasted [\d,]+ minutes\.")
NOTICES = frozenset(
    f"{words}."
    for words in (
        "Joined the server",
        "Pinned a message",
        "Started a thread",
        "Left the group",
        "Added a recipient",
        "Removed a recipient",
        "Changed the channel name",
        "Changed the channel icon",
    )
)

# The text that DiscordChatExporter writes unless it is asked for JSON.
_PLAIN_TEXT = re.compile(r"\ufeff?={20,80}\r?\nGuild: .{0,200}\nChannel: ")

# A message of the package, the folder of its channel, and what stands beside: the names of all channels, and the account.
PACKAGE_FIELDS = ("Timestamp", "ID", "Contents")
PACKAGE_FILE = re.compile(r"(?<![^/])c\d+/messages\.(?:json|csv)\Z")
_CHANNEL = re.compile(r"c?(\d+)")
_CHANNELS, _ACCOUNT = "index.json", "user.json"
_NO_DISCRIMINATOR = re.compile("#0+$")


def recognizes(head: Head) -> bool:
    """By the guild and the channel above the messages, or by the fields of a message of the package."""
    return _PLAIN_TEXT.match(head.text) is not None or head.has("guild", "channel", "messages") or head.has(*PACKAGE_FIELDS)


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message. A day of a channel is a session."""
    if _PLAIN_TEXT.match(Head(source, name).text):
        raise InvalidInput("{} is not read", "it is the page of a chat, by {}", "Export the chat as JSON", name, "DiscordChatExporter")
    guild: Mapping[str, Any] = {}
    channel: Mapping[str, Any] = {}
    place: Mapping[str, str] | None = None
    number = 0
    for path, value in walk(blocks(source, name), name, frozenset({"messages"})):
        if path == "[]":
            number += 1
            place = beside(source, name) if place is None else place
            turn_of = partial(package_turn, above=place, options=options)
            yield from message_items(FORM, f"{name}, message {number}", value, turn_of)
        elif path == "guild" and isinstance(value, dict):
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
    forwarded, own = fields_of(message.get("forwardedMessage")), text_in(message.get("content"))
    text = own or quoted(text_in(forwarded.get("content")))
    posted = "" if text or not author.get("isBot") else "\n\n".join(map(_text_of_embed, objects(message.get("embeds")))).strip()
    server = text_in(guild.get("name"))
    return Turn(
        speaker or None,
        (text or posted) if is_said else "",
        said_at,
        " ".join(filter(None, (PROGRAM, server, f"#{place}" if place else "", (said_at or "")[:10]))),
        (text_in(channel.get("id")) or place, text_in(message.get("id")) or f"{said_at} {speaker} {text}"),
        role_of(speaker, not author.get("isBot")),
        (*_beside(message, has_read_embeds=bool(posted)), *[FORWARDS] * bool(own and forwarded), *_beside(forwarded))
        if is_said
        else ("calls" if kind == "Call" else "notices",),
        {
            "guild": server,
            "channel": place,
            "message": text_in(message.get("id")),
            EDITED_AT: moment(message.get("timestampEdited")),
            "author": text_in(author.get("name")),
            "reply_to": text_in(fields_of(message.get("reference")).get("messageId")),
        },
    )


def beside(source: Source, name: str) -> dict[str, str]:
    """What the files of a package say of the channel of one: its id, its name, the server's, and who the account's owner is."""
    package = _PACKAGES.get(source) or _PACKAGES.setdefault(source, _Package(source))
    folder = PurePosixPath(name).parent
    number = found[1] if (found := _CHANNEL.fullmatch(folder.name)) else folder.name
    channel = _object(source, str(folder / "channel.json"), package.names)
    title = text_in(package.titles.get(str(folder.parent / _CHANNELS), {}).get(number))
    return {
        "id": text_in(channel.get("id")) or number,
        "channel": text_in(channel.get("name")),
        "guild": text_in(fields_of(channel.get("guild")).get("name")),
        "title": _NO_DISCRIMINATOR.sub("", title),
        "owner": package.owner,
    }


class _Package:
    """What stands beside all channels of a package: the names of its files, the channels' titles by the file that holds them, and the account's owner."""

    def __init__(self, source: Source) -> None:
        names = source.names()
        self.names = frozenset(names)
        self.titles = {name: _object(source, name, self.names) for name in names if PurePosixPath(name).name == _CHANNELS}
        account = _object(source, next((name for name in names if PurePosixPath(name).name == _ACCOUNT), ""), self.names)
        self.owner = text_in(account.get("global_name")) or text_in(account.get("username"))


# A package may have thousands of channels. What is kept goes with the source, which is open for one import.
_PACKAGES: WeakKeyDictionary[Source, _Package] = WeakKeyDictionary()


def _object(source: Source, name: str, names: Container[str]) -> Mapping[str, Any]:
    """A small file of the package; one that is missing or can't be read says nothing."""
    try:
        return fields_of(json.loads(whole(source, name, TEXT_LIMIT_BYTES))) if name in names else {}
    except (InvalidInput, ValueError, RecursionError):
        return {}


def package_turn(message: Mapping[str, Any], above: Mapping[str, str], options: ReadOptions) -> Turn:
    """A message of a package, whose times are in UTC."""
    said_at, speaker, text = (
        zoned(moment(message.get("Timestamp")), UTC),
        options.me or above["owner"] or "user",
        text_in(message.get("Contents")),
    )
    where = f"#{above['channel']}" if above["channel"] else above["title"]
    return Turn(
        speaker,
        text,
        said_at,
        " ".join(filter(None, (PROGRAM, above["guild"], where or above["id"], (said_at or "")[:10]))),
        (above["id"], str(message.get("ID") or f"{said_at} {text}")),
        role_of(speaker, by_user=True),
        tuple(media_kind(address.partition("?")[0]) or "files" for address in text_in(message.get("Attachments")).split()),
        {"guild": above["guild"], "channel": above["channel"] or above["title"], "message": str(message.get("ID") or "")},
    )


def _text_of_embed(embed: Mapping[str, Any]) -> str:
    """What a bot says in a frame: its title, its text, and its fields."""
    fields = [f"{text_in(field.get('name'))}: {text_in(field.get('value'))}" for field in objects(embed.get("fields"))]
    return "\n".join(filter(None, (text_in(embed.get("title")), text_in(embed.get("description")), *fields)))


def _beside(message: Mapping[str, Any], *, has_read_embeds: bool = False) -> Iterator[str]:
    """The kinds of what a message has beside its text."""
    for file in objects(message.get("attachments")):
        yield media_kind(text_in(file.get("fileName"))) or "files"
    yield from ("stickers" for _ in objects(message.get("stickers")))
    yield from ("link previews" for _ in objects(message.get("embeds")) if not has_read_embeds)
    yield from ("polls" for _ in [message.get("poll")] if _)
    yield from ("reactions" for _ in objects(message.get("reactions")))
