"""Keeping a turn whose answer is complete, once: what was put in at it, and what was said in it as memories of the conversation.

All of it is one commit. A client that asks again, with the same message or another one at its place, replaces what was stored there.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import apsw

from memory_mcp.domain import ROLE, Draft, Outcome
from memory_mcp.errors import StoreError
from memory_mcp.features.gateway import rows
from memory_mcp.features.gateway.place import Place, locate
from memory_mcp.features.gateway.putting_in import Asked
from memory_mcp.features.gateway.rows import Put, Reason, Turn
from memory_mcp.features.gateway.transcript import digest
from memory_mcp.language.labels import LABEL_LIMIT, UNSTORABLE
from memory_mcp.language.names import normalized_length
from memory_mcp.llm.endings import CUT_MARK
from memory_mcp.llm.thoughts import without_thoughts
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.forget import forget_stored
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.revise import Revision, private, revise_stored
from memory_mcp.remember.validation import CONTENT_LIMIT
from memory_mcp.server.actions.context import note_conversation
from memory_mcp.server.call import Call
from memory_mcp.store import memories
from memory_mcp.store.operations import Operation, called_by

# Turns that a client goes back from are replaced so long. What was said on an earlier day stays.
REPLACED_WITHIN = timedelta(days=1)
# One character may stand for so many.
WIDEST = 18
USER, ASSISTANT = "user", "assistant"
LEFT, ANSWERED_AGAIN = "the conversation went on from an earlier turn", "answered again"


def keep(call: Call, asked: Asked, answer: str | None, *, with_turn: bool, is_cut: bool = False) -> None:
    """Keep what was put in at a turn; with its `answer` the turn is over. `with_turn`: what was said in it, too. `is_cut`: the answer ended at
    a limit of tokens."""
    if not (answer and with_turn) and not any(asked.turn.keys.values()):
        return
    with called_by(call.caller), call.writing() as persona:
        _Keeping(call, asked, persona, answer, with_turn=with_turn, is_cut=is_cut).keep()
        if answer is not None:
            note_conversation(persona, call, {})


@dataclass(slots=True)
class _Keeping:
    call: Call
    asked: Asked
    persona: Persona
    answer: str | None
    with_turn: bool
    is_cut: bool

    def keep(self) -> None:
        drafts = self._drafts() if self.with_turn and self.answer else []
        done: list[Operation] = []
        remember_many(
            self.persona,
            drafts,
            now=self.asked.turn.at,
            zone=self.call.settings.zone,
            privacy=self.call.settings.privacy,
            then=lambda connection, outcomes: done.extend(self._place(connection, outcomes)),
        )
        if done:
            self.persona.words.clear()
            self.persona.log.append(self.persona.name, *done)

    def _place(self, connection: apsw.Connection, outcomes: Sequence[Outcome]) -> list[Operation]:
        """Note the turn in the commit that stores what was said in it. Returns what else was changed."""
        place = locate(connection, self.asked.transcript, self.asked.session, self.call.now)
        answered = digest(without_thoughts(self.asked.transcript.opened + self.answer)) if self.answer else ""
        turn = place.turn or replace(self.asked.turn, parent=place.parent, answered=answered)
        identity = turn.id or rows.add(connection, turn)
        if not self.answer:
            return []
        rows.answer(connection, identity, answered)
        if not self.with_turn:
            return []
        keys = [outcome.key for outcome in outcomes]
        stored: dict[Reason, list[Put]] = {"user": [Put(key) for key in keys[:-1] if key], "answer": [Put(key) for key in keys[-1:] if key]}
        for reason, puts in stored.items():
            rows.set_keys(connection, identity, reason, puts)
        replaced = [key for key in turn.stored("user", "answer") if key not in keys]
        return [
            *forget_stored(connection, replaced, ANSWERED_AGAIN, self.call.now)[1],
            *self._as_shown(connection, place),
            *self._gone_on(connection, place, identity, keys),
        ]

    def _as_shown(self, connection: apsw.Connection, place: Place) -> list[Operation]:
        """The answer before, as the client has it: its user may have chosen an earlier one, or have edited it."""
        before = place.turns[-1] if place.turns else None
        if before is None or not before.answered or not self._is_recent(before):
            return []
        exchange = place.transcript.exchanges[-2]
        shown = exchange.answer
        if not shown or before.answered == exchange.answered:
            return []
        content = UNSTORABLE.sub("", shown)[:CONTENT_LIMIT]
        revision, _ = private(Revision(content=content, reason=ANSWERED_AGAIN), self.call.settings.privacy)
        rows.answer(connection, before.id, exchange.answered)
        found = memories.by_keys(connection, before.stored("answer")).items()
        revised = (self._revised(connection, key, revision) for key, memory in found if memory.deleted_at is None)
        return [operation for operations in revised for operation in operations]

    def _gone_on(self, connection: apsw.Connection, place: Place, identity: int, keys: Sequence[str]) -> list[Operation]:
        """What followed a turn of this conversation otherwise than now has been left; what is before this turn counts again. Where the client
        comes back to both by turns, they are two conversations that began alike, and neither is left."""
        turns = {turn.id: turn for turn in rows.of_conversation(connection, place.conversation)}
        path = set(_upwards(turns, identity))
        back = [turn.id for turn in turns.values() if turn.id in path and turn.is_left]
        returned = {*back, *(turn.id for turn in turns.values() if turn.has_returned)}
        left = []
        for turn in turns.values():
            if place.is_certain and not turn.is_left and self._is_recent(turn) and turn.id not in path:
                others = list(_upwards(turns, turn.id, until=path))
                fork = turns[others[-1]].parent
                if fork in path and (returned.isdisjoint(others) or returned.isdisjoint(_upwards(turns, identity, until={fork}))):
                    left.append(turn.id)
        rows.leave(connection, back, is_left=False)
        rows.leave(connection, left, is_left=True)
        done = [operation for key in self._stored(connection, back) for operation in self._restored(connection, key)]
        kept = {*keys, *self._stored(connection, path)}
        gone = [key for key in self._stored(connection, left) if key not in kept]
        found, forgotten = forget_stored(connection, gone, LEFT, self.call.now)
        # What was in the trash before stays there when the client comes back: somebody forgot it.
        rows.drop_keys(connection, left, [key for key, memory in found.items() if memory.deleted_at])
        return [*done, *forgotten]

    def _restored(self, connection: apsw.Connection, key: str) -> Sequence[Operation]:
        memory = memories.by_keys(connection, [key]).get(key)
        if memory is None or memory.deleted_at is None or (memory.expires_at and memory.expires_at <= self.call.now):
            return ()
        return self._revised(connection, key, Revision(restore=True, reason=LEFT))

    def _revised(self, connection: apsw.Connection, key: str, revision: Revision) -> Sequence[Operation]:
        call = self.call
        return revise_stored(connection, self.persona.names, key, revision, call.local_now, call.settings.privacy)[1]

    def _stored(self, connection: apsw.Connection, turns: Iterable[int]) -> list[str]:
        keys = rows.keys_of(connection, turns)
        return [put.key for of_turn in keys.values() for reason in ("user", "answer") for put in of_turn.get(reason, ())]

    def _is_recent(self, turn: Turn) -> bool:
        return self.call.now - turn.at < REPLACED_WITHIN

    def _drafts(self) -> list[Draft]:
        """What was said, in order: the user's messages, then the answer."""
        said = self.asked.transcript.newest.said
        answer = without_thoughts(self.asked.transcript.opened + (self.answer or "")).strip() + (CUT_MARK if self.is_cut else "")
        names = [speaker.speaker or self._user() for speaker in said]
        spoken = [*((name, USER, each.text) for name, each in zip(names, said, strict=True)), (self._assistant(), ASSISTANT, answer)]
        return [draft for name, role, text in spoken if (draft := self._draft(name, role, text))]

    def _draft(self, source: str, role: str, text: str) -> Draft | None:
        content = UNSTORABLE.sub("", text).strip()[:CONTENT_LIMIT]
        if normalized_length(content) > CONTENT_LIMIT:
            content = content[: CONTENT_LIMIT // WIDEST]
        if not content:
            return None
        return Draft(
            content,
            source=UNSTORABLE.sub("", source)[:LABEL_LIMIT],
            session_id=self.asked.turn.conversation,
            kind="conversation",
            occurred_at=self.asked.turn.at,
            metadata={ROLE: role},
        )

    def _user(self) -> str:
        try:
            name = self.persona.context.read()["user_info"].get("name")
        except StoreError:
            return USER
        return name if isinstance(name, str) and name.strip() else USER

    def _assistant(self) -> str:
        return self.persona.name if self.persona.name != "default" else ASSISTANT


def _upwards(turns: Mapping[int, Turn], identity: int | None, until: Container[int | None] = ()) -> Iterator[int]:
    """A turn and those before it, as far as the last one before `until`."""
    while identity is not None and identity in turns and identity not in until:
        yield identity
        identity = turns[identity].parent
