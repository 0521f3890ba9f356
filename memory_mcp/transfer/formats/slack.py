"""Reads the export of a Slack workspace: the messages of each channel with the display names of their authors.

langchain-community's SlackDirectoryLoader is not used: it reads only zips, names authors by their ids, and drops threads.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.deduplication import EDITED_AT
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import NO_OBJECT, ImportItem, fields_of, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import OTHER_FILES, items
from memory_mcp.transfer.formats.sources import TEXT_LIMIT_BYTES, Source, blocks, whole
from memory_mcp.transfer.formats.turns import FILES, Turn, turn_items

FORM = "slack"
DAY_FILE = re.compile(r"\A(?:.*/)?[^/]+/\d{4}-\d{2}-\d{2}\.json")
LISTS = frozenset({"users.json", "org_users.json", "channels.json", "groups.json", "dms.json", "mpims.json"})
# Subtypes of messages with text from a person or a bot; the others, such as channel_join, are notices.
TEXT_SUBTYPES = frozenset({None, "", "bot_message", "me_message", "thread_broadcast", "file_share", "file_comment"})
_MARKED = re.compile(r"<([^<>]+)>")
# The user that Slack speaks as.
SLACKBOT = "USLACKBOT"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  the export names every author
    """Yields a row for each message. A thread is a session of its own; messages outside threads belong to the session of the channel."""
    names = source.names()
    users = _users(source, names)
    people = {user_id: _name(user) for user_id, user in users.items()}
    bots = frozenset({SLACKBOT, *(user_id for user_id, user in users.items() if user.get("is_bot"))})
    channels = _channels(source, names, people)
    for name in names:
        if not DAY_FILE.fullmatch(name):
            if PurePosixPath(name).name not in LISTS:
                yield ImportItem(name, left_out=OTHER_FILES)
            continue
        channel = PurePosixPath(name).parent.name
        try:
            for number, message in enumerate(items(blocks(source, name), name), start=1):
                if isinstance(message, dict):
                    yield from _message(message, f"{name}, message {number}", channels.get(channel, channel), people, bots)
                else:
                    yield ImportItem(f"{name}, message {number}", refused=NO_OBJECT)
        except InvalidInput as error:
            yield ImportItem(name, refused=str(error))


def _message(message: Mapping[str, Any], where: str, channel: str, people: Mapping[str, str], bots: frozenset[str]) -> Iterator[ImportItem]:
    if message.get("type", "message") != "message" or message.get("subtype") not in TEXT_SUBTYPES:
        yield ImportItem(where, left_out="notices")
        return
    stamp, thread, files = text_in(message.get("ts")), text_in(message.get("thread_ts")), objects(message.get("files"))
    if not stamp:
        yield ImportItem(where, refused="It has no time (ts).")
        return
    author = _author(message, people)
    turn = Turn(
        author,
        _plain(text_in(message.get("text")), people),
        moment(stamp),
        f"slack #{channel}{f' {thread}' if thread else ''}",
        (channel, stamp),
        import_rows.role_of(author, not _is_bots(message, bots)),
        (*("reactions" for _ in objects(message.get("reactions"))), *(FILES for _ in files)),
        {
            "channel": channel,
            "ts": stamp,
            EDITED_AT: moment(fields_of(message.get("edited")).get("ts")),
            "thread": thread,
            "user": message.get("user"),
            "files": [text_in(file.get("name")) for file in files if text_in(file.get("name"))],
        },
        (FORM, channel),
    )
    yield from turn_items(FORM, where, turn)


def _author(message: Mapping[str, Any], people: Mapping[str, str]) -> str | None:
    user = text_in(message.get("user")) or text_in(message.get("bot_id"))
    profile = message.get("user_profile")
    own = _name({"profile": profile}) if isinstance(profile, dict) else ""
    return people.get(user) or own or text_in(message.get("username")) or user or None


def _is_bots(message: Mapping[str, Any], bots: frozenset[str]) -> bool:
    """Whether a bot wrote a message. One that a person sent by an app has a bot, too."""
    user = text_in(message.get("user"))
    return message.get("subtype") == "bot_message" or (user in bots if user else bool(message.get("bot_id")))


def _name(user: Mapping[str, Any]) -> str:
    """The display name of a user, otherwise the real name, otherwise the account name."""
    value = user.get("profile")
    profile: Mapping[str, Any] = value if isinstance(value, dict) else {}
    names = [profile.get("display_name"), user.get("real_name"), profile.get("real_name"), user.get("name"), profile.get("name")]
    return next((text_in(name).strip() for name in names if text_in(name).strip()), "")


def _users(source: Source, names: list[str]) -> dict[str, Mapping[str, Any]]:
    listed = [user for name in names if PurePosixPath(name).name in ("users.json", "org_users.json") for user in _listed(source, name)]
    return {user_id: user for user in listed if (user_id := text_in(user.get("id")))}


def _channels(source: Source, names: list[str], people: Mapping[str, str]) -> dict[str, str]:
    """Channel names by directory name. A direct conversation is named after its members."""
    channels: dict[str, str] = {}
    for name in names:
        if PurePosixPath(name).name in ("dms.json", "mpims.json"):
            for channel in _listed(source, name):
                members = [people.get(text_in(member), text_in(member)) for member in channel.get("members") or []]
                if members:
                    channels[text_in(channel.get("name")) or text_in(channel.get("id"))] = ", ".join(sorted(members))
    return channels


def _listed(source: Source, name: str) -> list[dict[str, Any]]:
    """The entries of a file of users or channels; empty if it can't be read, so that ids are shown instead of names."""
    try:
        return objects(json.loads(whole(source, name, TEXT_LIMIT_BYTES)))
    except (InvalidInput, ValueError, RecursionError):
        return []


def _plain(text: str, people: Mapping[str, str]) -> str:
    """Slack markup as plain text: <@U1> becomes @健太, <https://…|ここ> becomes ここ (https://…)."""

    def replacement(marked: re.Match[str]) -> str:
        target, _, label = marked[1].partition("|")
        if target.startswith("@"):
            return f"@{people.get(target[1:], label or target[1:])}"
        if target.startswith("#"):
            return f"#{label or target[1:]}"
        if target.startswith("!"):
            return label or f"@{target[1:].partition('^')[0]}"
        return f"{label} ({target})" if label and label != target else target

    plain = _MARKED.sub(replacement, text)
    return re.sub("|".join(_ENTITIES), lambda entity: _ENTITIES[entity[0]], plain)
