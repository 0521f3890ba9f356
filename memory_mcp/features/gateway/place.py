"""Where a call is in its conversation: which turns its messages repeat, and after which one the new turn comes.

Clients name no turns. They send what was said, perhaps without the beginning or with a message edited, so turns are recognized by
digests of their words, each after the one before it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

import apsw

from memory_mcp.features.gateway import rows
from memory_mcp.features.gateway.rows import Turn
from memory_mcp.features.gateway.transcript import Exchange, Transcript, digest

# A conversation that begins again in the same words after so long is another one.
SAME_BEGINNING = timedelta(hours=1)
# So many messages in a row are looked at for one that was answered alone.
ROW = 50
# Some clients tell the time among their instructions, which then differ at each call.
_CLOCK = re.compile(r"(?<!\d)\d{1,2}(?::\d\d(?::\d\d(?:\.\d{1,9})?)?|時\d{1,2}分(?:\d{1,2}秒)?)(?!\d)")


@dataclass(frozen=True, slots=True)
class Place:
    """`transcript`: the messages, those that were answered before apart from others in the same row, as where a client has taken out the answer.
    `turns`: for each exchange before the new one the turn that it repeats, None where it is unknown. `turn`: the new one, if it was asked
    before. `first`: the turn at which the conversation began. `is_certain`: what is directly before the new turn is known, so that
    other turns after it were left.
    """

    conversation: str
    transcript: Transcript
    turns: tuple[Turn | None, ...]
    turn: Turn | None
    parent: int | None
    first: Turn | None
    is_certain: bool

    @property
    def known(self) -> list[Turn]:
        """The turns that the messages repeat."""
        return [turn for turn in (*self.turns, self.turn) if turn]


def locate(connection: apsw.Connection, transcript: Transcript, session: str | None, now: datetime) -> Place:
    """The place of a call, in the conversation that `session` names, or else in the one that fits its messages best."""
    if session:
        return _with_keys(connection, _within(rows.of_conversation(connection, session), session, transcript, now))
    begun = next(transcript.exchanges[0].beginnings())
    name = f"gateway-{digest(_CLOCK.sub('', transcript.instructions), begun)[:16]}"
    runs = rows.of_beginning(connection, name)
    new = f"{name}~{rows.last_number(connection, name) + 1}" if runs else name
    before = transcript.exchanges[-2:-1]
    other = rows.conversation_with(connection, before[0].digest, before[0].answered) if before else None
    if other and other not in runs:  # its beginning is missing or was changed, or it is an old one
        runs = {other: rows.of_conversation(connection, other), **runs}  # of two that fit as well, the latest counts
    places = [_within(turns, run, transcript, now) for run, turns in runs.items()]
    fitting = [place for place in places if (any(place.turns) if place.turns else place.turn)]
    if fitting:
        return _with_keys(connection, max(reversed(fitting), key=_repeated))
    return Place(new, transcript, (None,) * (len(transcript.exchanges) - 1), None, None, None, is_certain=False)


def _repeated(place: Place) -> int:
    """How many turns of the messages are of this conversation, answers included."""
    repeated = zip(place.turns, place.transcript.exchanges, strict=False)
    return sum(turn is not None and turn.answered == exchange.answered for turn, exchange in repeated)


def _within(turns: Sequence[Turn], name: str, transcript: Transcript, now: datetime) -> Place:
    after = {(turn.parent, turn.said): turn for turn in turns}
    # Some clients write the time, or what they looked up, into the newest message alone, which they then send otherwise.
    answers = {(turn.parent, turn.answered): turn for turn in turns if turn.answered}
    latest = {turn.said: turn for turn in turns}
    is_running = bool(turns) and now - turns[-1].at <= SAME_BEGINNING
    exchanges: list[Exchange] = []
    found: list[Turn | None] = []
    parent: int | None = None
    for exchange in transcript.exchanges:
        rest = exchange
        while told := _told(rest, parent, after, latest, is_certain=bool(parent) or is_running):
            exchanges.append(Exchange(rest.said[: told[0]]))
            found.append(told[1])
            rest, parent = Exchange(rest.said[told[0] :], rest.answer), told[1].id
        exchanges.append(rest)
        if exchange is not transcript.newest:
            turn = after.get((parent, rest.digest)) or latest.get(rest.digest) or answers.get((parent, rest.answered))
            found.append(turn)
            parent = turn.id if turn else parent
    said = exchanges[-1].digest
    alike = _alike(found[-1], exchanges[-2], turns) if found and found[-1] else []
    is_certain = len(alike) == 1
    if alike:
        found[-1], parent = alike[-1], alike[-1].id
    if parent is None and found and turns:
        parent = turns[-1].id  # what it repeats is unknown, so it only goes on
    turn = after.get((parent, said))
    # Without a history the same words may be said anew: a greeting, every day.
    if turn and not found and (now - turn.at > SAME_BEGINNING or any(other.parent == turn.id for other in turns)):
        turn = None
    by_id = {each.id: each for each in turns}
    first = by_id.get(parent or 0, turn)
    while first and first.parent in by_id:
        first = by_id[first.parent]
    return Place(name, replace(transcript, exchanges=tuple(exchanges)), tuple(found), turn, parent, first, is_certain)


def _alike(turn: Turn, exchange: Exchange, turns: Sequence[Turn]) -> list[Turn]:
    """The turns that may be an exchange which this one is, in order: words and answers recur, and a history may lack its beginning. None where
    the answer is another one."""
    if turn.answered != exchange.answered:
        return []
    is_in_words = turn.said == exchange.digest
    counting = [other for other in turns if other.id == turn.id or not other.is_left]
    return [other for other in counting if other.answered == turn.answered and (other.said == turn.said or not is_in_words)]


def _told(
    exchange: Exchange, parent: int | None, after: Mapping[tuple[int | None, str], Turn], latest: Mapping[str, Turn], *, is_certain: bool
) -> tuple[int, Turn] | None:
    """How many messages at the beginning of an exchange were answered before, without those after them, and their turn. Where it is not
    `is_certain`, the words may be said anew, unless what follows them repeats what followed that turn."""
    for size, said in reversed([*enumerate(islice(exchange.beginnings(), ROW), start=1)]):
        turn = after.get((parent, said))
        if turn and size == len(exchange.said):
            return None
        if turn and is_certain:
            return size, turn
        turn = turn or (latest.get(said) if parent is None else None)
        if turn and any((turn.id, further) in after for further in islice(Exchange(exchange.said[size:]).beginnings(), ROW)):
            return size, turn
    return None


def _with_keys(connection: apsw.Connection, place: Place) -> Place:
    known = {turn.id: turn for turn in (place.first, *place.known) if turn}
    keys = rows.keys_of(connection, known)
    filled = {identity: replace(turn, keys=keys.get(identity, {})) for identity, turn in known.items()}
    turns = tuple(filled[turn.id] if turn else None for turn in place.turns)
    turn, first = (filled[each.id] if each else None for each in (place.turn, place.first))
    return replace(place, turns=turns, turn=turn, first=first)
