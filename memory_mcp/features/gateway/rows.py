"""What the gateway keeps of conversations: a row per turn, which knows the turn before it, and the keys of memories that were put in at it
or stored of it. No text: what was put in is written again from the memories as they are now.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import apsw

from memory_mcp.store.timestamps import from_text, optional_from_text, optional_to_text, to_text

# Why a turn has a key: its memory was put in at the beginning or before the user's message, or is the user's message or the answer itself.
Reason = Literal["context", "recall", "user", "answer"]

# More turns than any client sends again.
LOOKED_AT = 2000
_COLUMNS = "id, conversation, parent, said, answered, at, spoken_before, is_left"


@dataclass(frozen=True, slots=True)
class Put:
    """A memory that is put in: the part of its content from `start` to `end`, as of `revision`. Key and revision are those of the store."""

    key: str
    revision: int = 0
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn. `said` and `answered` are digests, empty where there is none; `spoken_before`: the last conversation before this one, at its
    first turn. `is_left`: the client went back, and on from an earlier turn; what was stored of it is in the trash. `has_returned`: it was
    left, and the client came back to it.
    """

    conversation: str
    parent: int | None
    said: str
    at: datetime
    answered: str = ""
    spoken_before: datetime | None = None
    is_left: bool = False
    has_returned: bool = False
    id: int = 0
    keys: Mapping[Reason, Sequence[Put]] = field(default_factory=dict)

    def stored(self, *reasons: Reason) -> list[str]:
        """The keys that it has for these reasons."""
        return [put.key for reason in reasons for put in self.keys.get(reason, ())]


def of_conversation(connection: apsw.Connection, name: str) -> list[Turn]:
    """The latest turns of a conversation, in order, without their keys."""
    return _latest(connection, "conversation = ?1", name)


def of_beginning(connection: apsw.Connection, name: str) -> dict[str, list[Turn]]:
    """The same of a conversation and of others that began in the same words, by their names."""
    runs: dict[str, list[Turn]] = {}
    for turn in _latest(connection, "conversation = ?1 OR (conversation > ?1 || '~' AND conversation < ?1 || '~~')", name):
        runs.setdefault(turn.conversation, []).append(turn)
    return runs


def last_number(connection: apsw.Connection, name: str) -> int:
    """The number of the latest of the conversations that began in the same words, 1 for the first."""
    numbers = "SELECT max(CAST(substr(conversation, length(?1) + 2) AS INTEGER)) FROM gateway_turns"
    within = "conversation > ?1 || '~' AND conversation < ?1 || '~~'"
    number = connection.execute(f"{numbers} WHERE {within}", (name,)).get
    return int(number or 1)


def conversation_with(connection: apsw.Connection, said: str, answered: str) -> str | None:
    """The conversation in which this was last said and answered so."""
    found: str | None = connection.execute(
        "SELECT conversation FROM gateway_turns WHERE said = ? AND answered = ? ORDER BY id DESC LIMIT 1", (said, answered)
    ).get
    return found


def keys_of(connection: apsw.Connection, turns: Iterable[int]) -> dict[int, dict[Reason, list[Put]]]:
    """The keys of turns, by turn and reason, in order."""
    rows = connection.execute(
        'SELECT turn, reason, key, revision, start, "end" FROM gateway_keys '
        "WHERE turn IN (SELECT value FROM json_each(?)) ORDER BY turn, reason, place",
        (json.dumps(list(turns)),),
    )
    keys: dict[int, dict[Reason, list[Put]]] = {}
    for turn, reason, *put in rows:
        keys.setdefault(turn, {}).setdefault(reason, []).append(Put(*put))
    return keys


def add(connection: apsw.Connection, turn: Turn) -> int:
    """Add a turn with its keys. Returns its id."""
    connection.execute(
        "INSERT INTO gateway_turns(conversation, parent, said, answered, at, spoken_before) VALUES (?, ?, ?, ?, ?, ?)",
        (turn.conversation, turn.parent, turn.said, turn.answered, to_text(turn.at), optional_to_text(turn.spoken_before)),
    )
    identity = connection.last_insert_rowid()
    for reason, put in turn.keys.items():
        set_keys(connection, identity, reason, put)
    return identity


def answer(connection: apsw.Connection, turn: int, answered: str) -> None:
    """Note the digest of the answer that counts."""
    connection.execute("UPDATE gateway_turns SET answered = ? WHERE id = ?", (answered, turn))


def leave(connection: apsw.Connection, turns: Iterable[int], *, is_left: bool) -> None:
    """Note that the client has left turns, or is back at them, as −1."""
    connection.executemany("UPDATE gateway_turns SET is_left = ? WHERE id = ?", [(1 if is_left else -1, turn) for turn in turns])


def set_keys(connection: apsw.Connection, turn: int, reason: Reason, put: Sequence[Put]) -> None:
    """Replace the keys that a turn has for a reason."""
    connection.execute("DELETE FROM gateway_keys WHERE turn = ? AND reason = ?", (turn, reason))
    connection.executemany(
        "INSERT INTO gateway_keys VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(turn, reason, place, each.key, each.revision, each.start, each.end) for place, each in enumerate(put)],
    )


def drop_keys(connection: apsw.Connection, turns: Iterable[int], keys: Sequence[str]) -> None:
    """Take keys away from turns."""
    wanted = json.dumps(list(turns)), json.dumps(keys)
    connection.execute(
        "DELETE FROM gateway_keys WHERE turn IN (SELECT value FROM json_each(?)) AND key IN (SELECT value FROM json_each(?))", wanted
    )


def _latest(connection: apsw.Connection, condition: str, name: str) -> list[Turn]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM gateway_turns WHERE id IN "
        f"(SELECT id FROM gateway_turns WHERE {condition} ORDER BY id DESC LIMIT {LOOKED_AT}) ORDER BY id",
        (name,),
    )
    return [
        Turn(conversation, parent, said, from_text(at), answered, optional_from_text(before), left > 0, left < 0, identity)
        for identity, conversation, parent, said, answered, at, before, left in rows
    ]
