"""The lines of conversations in an export and an import: one of each conversation, followed by one per turn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.domain import Conversation, Turn
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import label, labels, storable
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.store import conversations, tombstones
from memory_mcp.store.timestamps import to_text
from memory_mcp.transfer.line_fields import COUNT, OBJECTS, TEXT, TEXTS, Check, check_fields, count, parse_time

CONVERSATION, TURN = "conversation", "turn_of"
_FIELDS: Mapping[str, Mapping[str, Check]] = {
    CONVERSATION: {CONVERSATION: TEXT, "title": TEXT, "created_at": TEXT, "updated_at": TEXT, "members": TEXTS},
    TURN: {TURN: TEXT, "number": COUNT, "ended_at": TEXT, "model": TEXT, "messages": OBJECTS, "recalled": TEXTS, "stored": TEXTS},
}


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn and the id of its conversation."""

    conversation: str
    turn: Turn


ConversationLine = Conversation | TurnLine


def checked(row: Mapping[str, Any], zone: ZoneInfo) -> ConversationLine | None:
    """The conversation or the turn of a line; None for another line.

    Raises:
        InvalidInput: a field can't be stored; the message names it.
    """
    kind = next((name for name in _FIELDS if name in row), None)
    if kind is None:
        return None
    fields = _FIELDS[kind]
    check_fields(row, fields)
    if missing := [name for name in fields if name not in row and name not in ("title", "members", "recalled", "stored")]:
        raise InvalidInput("{} is missing", "", "Use the line as the export wrote it", missing[0])
    identity = label(row[kind], kind) or ""
    if kind == CONVERSATION:
        title, members = label(row.get("title"), "title") or "", labels(row.get("members", []), "members")
        created_at, updated_at = (parse_time(name, row[name], zone) for name in ("created_at", "updated_at"))
        return Conversation(identity, title, created_at, updated_at, members)
    storable(json.dumps(row["messages"], ensure_ascii=False), "messages")
    keys = [tuple(row.get(name, ())) for name in ("recalled", "stored")]
    ended_at = parse_time("ended_at", row["ended_at"], zone)
    return TurnLine(
        identity, Turn(count("number", row["number"], 1), ended_at, label(row["model"], "model") or "", tuple(row["messages"]), *keys)
    )


def import_line(persona: Persona, line: ConversationLine, redaction: Redaction, *, dry_run: bool) -> bool:
    """Stores a line, redacted, or with `dry_run` only checks it. Returns whether it was not stored before.

    Raises:
        InvalidInput: the conversation, or a memory of the turn, was erased here.
    """
    conversation = line.id if isinstance(line, Conversation) else line.conversation
    keys = () if isinstance(line, Conversation) else (*line.turn.recalled, *line.turn.stored)
    if isinstance(line, Conversation):
        line = replace(line, title=redaction.text(line.title), members=redaction.texts(line.members))
    else:
        line = replace(line, turn=replace(line.turn, messages=tuple(redaction.tree(list(line.turn.messages)))))

    def add(connection: apsw.Connection) -> bool:
        if any(tombstones.erased_at(connection, key) for key in (conversations.tombstone(conversation), *keys)):
            raise InvalidInput("it was erased here", "what was erased isn't brought back by an import", "Leave the line out")
        if isinstance(line, Conversation):
            is_new = conversations.by_id(connection, conversation) is None
            return is_new and (dry_run or conversations.insert(connection, line))
        number = line.turn.number
        if any(known.number == number for known in conversations.turns_page(connection, conversation, number - 1, 1)[0]):
            return False
        if not dry_run and conversations.by_id(connection, conversation) is None:
            raise InvalidInput("the conversation of this turn isn't stored", "", "Import the line of the conversation before its turns")
        return dry_run or conversations.insert_turn(connection, conversation, line.turn)

    if dry_run:
        with persona.database.read() as connection:
            return add(connection)
    return persona.database.write(add)


def lines(persona: Persona) -> Iterator[str]:
    """Yields the lines of all conversations of a persona."""
    with persona.database.read() as connection:
        known = conversations.page(connection, -1)
    for conversation in known:
        yield _json({CONVERSATION: conversation.id, "title": conversation.title, **_times(conversation), "members": conversation.members})
        for turn in conversations.all_turns(persona.database, conversation.id):
            times = {"ended_at": to_text(turn.ended_at), "model": turn.model}
            keys = {"recalled": turn.recalled, "stored": turn.stored}
            yield _json({TURN: conversation.id, "number": turn.number, **times, "messages": turn.messages, **keys})


def _times(conversation: Conversation) -> dict[str, str]:
    return {"created_at": to_text(conversation.created_at), "updated_at": to_text(conversation.updated_at)}


def _json(row: Mapping[str, str | int | Sequence[Any]]) -> str:
    return json.dumps({name: value for name, value in row.items() if value != ()}, ensure_ascii=False)
