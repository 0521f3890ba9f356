"""Conversations with a persona: a row each, and one row per turn, written when the turn has ended."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw

from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import InvalidInput
from memory_mcp.language.low_value import low_value
from memory_mcp.store import tombstones
from memory_mcp.store.legacy.quotations import spellings
from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.timestamps import from_text, to_text

_COLUMNS = "c.id, c.title, c.created_at, c.updated_at, c.members, (SELECT count(*) FROM conversation_turns t WHERE t.conversation = c.id)"
_TURN_COLUMNS = "number, ended_at, model, messages, recalled, stored"
# A turn has up to 1 MiB.
PAGE_CHARACTERS, TURNS_READ = 1_000_000, 50
# Turns in which one of these memories was read or written, or that quote one of these texts.
_ABOUT = (
    "EXISTS (SELECT 1 FROM json_each(?1) t WHERE instr(messages, t.value)) "
    "OR EXISTS (SELECT 1 FROM json_each(recalled) k WHERE k.value IN (SELECT value FROM json_each(?2))) "
    "OR EXISTS (SELECT 1 FROM json_each(stored) k WHERE k.value IN (SELECT value FROM json_each(?2)))"
)


def page(connection: apsw.Connection, limit: int, after: tuple[str, str] | None = None) -> list[Conversation]:
    """Conversations, the latest first; `after`: the time of the last change of the one before, and its id."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM conversations c {'WHERE (c.updated_at, c.id) < (?, ?) ' if after else ''}"
        "ORDER BY c.updated_at DESC, c.id DESC LIMIT ?",
        (*(after or ()), limit),
    )
    return [_conversation(*row) for row in rows]


def by_id(connection: apsw.Connection, conversation: str) -> Conversation | None:
    """A conversation; None if there is none with this id."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM conversations c WHERE c.id = ?", (conversation,)).fetchone()
    return _conversation(*row) if row else None


def turns(connection: apsw.Connection, conversation: str, after: int = 0) -> list[Turn]:
    """The turns of a conversation after a number, in order."""
    return [_turn(*row) for row in _turns_after(connection, conversation, after, -1)]


def turns_page(connection: apsw.Connection, conversation: str, after: int, limit: int) -> tuple[list[Turn], bool]:
    """The next turns of a conversation after a number, in order, fewer than `limit` where they are long; and whether there are more."""
    return _page(_turns_after(connection, conversation, after, limit + 1), limit)


def last_page(connection: apsw.Connection, conversation: str, before: int, limit: int) -> tuple[list[Turn], bool]:
    """The last turns of a conversation before a number, in order, fewer than `limit` where they are long; and whether there are earlier
    ones.
    """
    rows = connection.execute(
        f"SELECT {_TURN_COLUMNS} FROM conversation_turns WHERE conversation = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (conversation, before, limit + 1),
    )
    page, has_more = _page(rows, limit)
    return page[::-1], has_more


def all_turns(database: Database, conversation: str) -> Iterator[Turn]:
    """The turns of a conversation in order, however many: a page is in memory at a time, and no snapshot stays open between two."""
    after, has_more = 0, True
    while has_more:
        with database.read() as connection:
            page, has_more = turns_page(connection, conversation, after, TURNS_READ)
        yield from page
        after = page[-1].number if page else after


def _turns_after(connection: apsw.Connection, conversation: str, after: int, limit: int) -> apsw.Cursor:
    return connection.execute(
        f"SELECT {_TURN_COLUMNS} FROM conversation_turns WHERE conversation = ? AND number > ? ORDER BY number LIMIT ?",
        (conversation, after, limit),
    )


def _page(rows: Iterable[Any], limit: int) -> tuple[list[Turn], bool]:
    page, characters = list[Turn](), 0
    for row in rows:
        if len(page) == limit or characters >= PAGE_CHARACTERS:
            return page, True
        page.append(_turn(*row))
        characters += len(row[3])
    return page, False


def add_turn(connection: apsw.Connection, conversation: Conversation, turn: Turn, *, replacing: bool = False) -> Conversation:
    """Store an ended turn in one step, and the conversation with its first one. With `replacing` it takes the place of the turns from its
    number on.

    A deleted conversation begins again where a page still has it open.

    Raises:
        InvalidInput: the conversation has gone on meanwhile.
    """
    last = int(connection.execute("SELECT coalesce(max(number), 0) FROM conversation_turns WHERE conversation = ?", (conversation.id,)).get)
    if turn.number <= last and not replacing:
        raise InvalidInput("the conversation has gone on meanwhile", "turn {} is stored already", "Open it again, and go on", turn.number)
    connection.execute("DELETE FROM conversation_turns WHERE conversation = ? AND number >= ?", (conversation.id, turn.number))
    if turn.number == 1:  # the title is of its text
        connection.execute("DELETE FROM conversations WHERE id = ?", (conversation.id,))
    insert(connection, conversation)
    connection.execute("UPDATE conversations SET updated_at = ? WHERE id = ?", (to_text(turn.ended_at), conversation.id))
    insert_turn(connection, conversation.id, turn)
    return by_id(connection, conversation.id) or conversation


def insert(connection: apsw.Connection, conversation: Conversation) -> bool:
    """Store a conversation without its turns, unless it is stored. Returns whether it was not."""
    connection.execute(
        "INSERT OR IGNORE INTO conversations(id, title, created_at, updated_at, members) VALUES (?, ?, ?, ?, ?)",
        (
            conversation.id,
            conversation.title,
            to_text(conversation.created_at),
            to_text(conversation.updated_at),
            _json(conversation.members),
        ),
    )
    return connection.changes() > 0


def insert_turn(connection: apsw.Connection, conversation: str, turn: Turn) -> bool:
    """Store a turn, unless one with its number is stored. Returns whether none was."""
    connection.execute(
        "INSERT OR IGNORE INTO conversation_turns(conversation, number, ended_at, model, messages, recalled, stored) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (conversation, turn.number, to_text(turn.ended_at), turn.model, _json(turn.messages), _json(turn.recalled), _json(turn.stored)),
    )
    return connection.changes() > 0


def rename(connection: apsw.Connection, conversation: str, title: str) -> bool:
    """Give a conversation another title. Returns whether there is one."""
    connection.execute("UPDATE conversations SET title = ? WHERE id = ?", (title, conversation))
    return connection.changes() > 0


def delete(connection: apsw.Connection, conversation: str) -> bool:
    """Delete a conversation with its turns. Returns whether there was one."""
    connection.execute("DELETE FROM conversation_turns WHERE conversation = ?", (conversation,))
    connection.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
    return connection.changes() > 0


def tombstone(conversation: str) -> str:
    """The entry for a deleted conversation among the keys of erased memories."""
    return f"conversation {conversation}"


def count_turns_about(connection: apsw.Connection, keys: Iterable[str], texts: Iterable[str]) -> int:
    """The number of turns that `erase_turns` would delete."""
    return int(connection.execute(f"SELECT count(*) FROM conversation_turns WHERE {_ABOUT}", _about(keys, texts)).get)


def erase_turns(connection: apsw.Connection, keys: Sequence[str], texts: Iterable[str]) -> None:
    """Delete the turns in which these memories were read or written, or that quote one of the texts; conversations without a turn go
    with them.
    """
    connection.execute(f"DELETE FROM conversation_turns WHERE {_ABOUT}", _about(keys, texts))
    # The title is the beginning of the first turn.
    connection.execute(
        "UPDATE conversations SET title = '' WHERE NOT EXISTS (SELECT 1 FROM conversation_turns t WHERE t.conversation = id AND t.number = 1);"
        "DELETE FROM conversations WHERE NOT EXISTS (SELECT 1 FROM conversation_turns t WHERE t.conversation = id)"
    )


def _about(keys: Iterable[str], texts: Iterable[str]) -> tuple[str, str]:
    """The values of `_ABOUT`. Greetings and nods occur in any conversation, and quote no memory."""
    quoted = [text for text in texts if low_value(text) not in ("greeting", "nod")]
    # What a tool answers may be JSON, in the JSON of a message.
    quotations = [inner for text in quoted for spelling in spellings(text) for inner in spellings(spelling)]
    return json.dumps(quotations), json.dumps(list(keys))


def merge_into(here: apsw.Connection, there: apsw.Connection, keys: Mapping[str, str]) -> None:
    """Copy the conversations of another persona. `keys`: its memories that exist here, by their keys there; turns with others are left
    out.
    """
    for conversation in page(there, -1):
        copied = [
            replace(turn, recalled=tuple(map(keys.__getitem__, turn.recalled)), stored=tuple(map(keys.__getitem__, turn.stored)))
            for turn in turns(there, conversation.id)
            if keys.keys() >= {*turn.recalled, *turn.stored}
        ]
        if copied and not tombstones.erased_at(here, tombstone(conversation.id)) and insert(here, conversation):
            for turn in copied:
                insert_turn(here, conversation.id, turn)


def _conversation(identity: str, title: str, created_at: str, updated_at: str, members: str, count: int) -> Conversation:
    return Conversation(identity, title, from_text(created_at), from_text(updated_at), tuple(json.loads(members)), count)


def _turn(number: int, ended_at: str, model: str, messages: str, recalled: str, stored: str) -> Turn:
    return Turn(number, from_text(ended_at), model, tuple(json.loads(messages)), tuple(json.loads(recalled)), tuple(json.loads(stored)))


def _json(value: Sequence[Any]) -> str:
    return json.dumps(list(value), ensure_ascii=False)
