"""A plan that a later memory moved or called off: 「金曜に歯医者」 once 「歯医者は火曜に変更になった」 was told (docs/decisions/0048-changed-facts.md)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.dates.recognize import recognize
from memory_mcp.dates.spans import SATURDAY, WEEKDAY_NAMES, WEEKDAYS, normalize
from memory_mcp.domain import Candidate, Filters, Memory
from memory_mcp.language.changes import LONGEST
from memory_mcp.language.moved_plans import (
    DAY,
    MovedPlan,
    is_planned,
    is_regular,
    is_with,
    may_tell_move,
    moved_plan,
    names,
    nouns_of,
    revives,
)
from memory_mcp.language.speakers import is_assistant
from memory_mcp.language.synonyms import phrase_of
from memory_mcp.language.tokens import normalise
from memory_mcp.patterns import bounded
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.token_frequencies import TokenCounts
from memory_mcp.store.timestamps import from_text

# So many of the newest memories that name something of a plan are read.
NEWEST = 10
# A plan of more days, such as of a month, has none from which it moves.
LONGEST_DAYS = 14
# So many plans more than are wanted are read where some moved.
SPARE = 10

_HAPPENED = re.compile(r"(?:た|ました|だった|でした)[。!！]?$")


class _Day(NamedTuple):
    """A day that a text names, as spans of local days, or as days of the week (0 is Monday)."""

    spans: Sequence[tuple[date, date]]
    weekdays: Sequence[int] = ()

    @property
    def is_long(self) -> bool:
        """Whether it is a week or more, in which a plan may move from one day to another."""
        return any(end - start >= timedelta(weeks=1) for start, end in self.spans)

    def is_of(self, days: Sequence[date]) -> bool:
        return any(day.weekday() in self.weekdays or any(start <= day < end for start, end in self.spans) for day in days)


_WEEKDAY = bounded(rf"([{WEEKDAY_NAMES}])曜日?|週末|土日|\b(?:(mon|tues|wednes|thurs|fri|satur|sun)day|weekend)\b")


class _Sentence(NamedTuple):
    plain: str
    days: list[_Day]


def still_upcoming(
    connection: apsw.Connection,
    counts: TokenCounts,
    now: datetime,
    end: datetime,
    zone: ZoneInfo,
    limit: int,
    characters: int | None = None,
) -> list[Memory]:
    """What is upcoming (`memories.upcoming`) without plans that a later memory moved or called off, and without what tells that.

    `characters`, with which no more of each content is read, is above `LONGEST`.
    """

    def plans() -> Iterator[Memory]:
        yield from (nearest := memories.upcoming(connection, now, end, zone, limit, characters))
        if len(nearest) == limit:
            yield from memories.upcoming(connection, now, end, zone, limit + SPARE, characters)[limit:]

    def still_stands(plan: Memory) -> bool:
        return not tells_only_off(plan, zone) and change_of_plan(connection, counts, plan, Filters(), zone) is None

    return list(islice(filter(still_stands, plans()), limit))


def tells_only_off(memory: Memory, zone: ZoneInfo) -> bool:
    """Whether a short text says of the days that it names only that something does not take place then."""
    if len(memory.content) > LONGEST or memory.occurred_at is not None or not may_tell_move(memory.content):
        return False
    sentences = _sentences(memory.content, memory.told_at, zone)
    moved = [moved_plan(sentence.plain) for sentence in sentences]
    return any(moved) and all(
        not sentence.days or (plan is not None and plan.is_off and len(plan.old) == len(sentence.days))
        for sentence, plan in zip(sentences, moved, strict=True)
    )


def changes_of_plans(
    connection: apsw.Connection, counts: TokenCounts, plans: Iterable[Memory], filters: Filters, zone: ZoneInfo
) -> dict[int, int]:
    """Plan → the memory that says that it moved or is off."""
    changes = {plan.id: change_of_plan(connection, counts, plan, filters, zone) for plan in plans}
    return {plan: change for plan, change in changes.items() if change is not None}


def with_changes_first(shown: Sequence[Candidate], pool: Sequence[Candidate], changes: Mapping[int, int]) -> list[Candidate]:
    """The candidates with what moved or called off a plan (`changes`), out of the pool, just before the plan."""
    by_id = {candidate.memory_id: candidate for candidate in pool}
    ordered: dict[int, Candidate] = {}
    for candidate in shown:
        change = by_id.get(changes.get(candidate.memory_id, -1))
        if change and not change.verdict and candidate.memory_id not in ordered and change.memory_id not in ordered:
            change.score = max(change.score, candidate.score)
            ordered[change.memory_id] = change
        ordered.setdefault(candidate.memory_id, candidate)
    return list(ordered.values())


def change_of_plan(connection: apsw.Connection, counts: TokenCounts, plan: Memory, filters: Filters, zone: ZoneInfo) -> int | None:
    """The memory that says that this plan moved or is off, if it was told later and before the day of the plan."""
    days = _planned_days(connection, plan, zone) if len(plan.content) <= LONGEST else []
    if not days:
        return None
    plain = _marked(plan.content, plan.told_at, zone).plain
    if is_regular(plain):
        return None
    phrases = list(filter(None, map(phrase_of, nouns_of(plain))))
    newest = bm25_index.newest_naming(connection, phrases, filters, NEWEST, counts)
    later = [told for told in newest if plan.told_at < from_text(told.told_at) and told.memory_id != plan.id]
    last = datetime.combine(days[-1] + timedelta(days=1), datetime.min.time(), zone)
    for told in sorted(later, key=lambda told: (told.told_at, told.memory_id), reverse=True):
        if from_text(told.told_at) >= last or not _may_tell_of(plan, told):
            continue
        for sentence in _sentences(told.content, from_text(told.told_at), zone):
            moved = moved_plan(sentence.plain)
            if moved is None and revives(sentence.plain) and any(names(noun, sentence.plain) for noun in nouns_of(plain)):
                return None
            if (
                moved
                and _is_moved(plain, days, sentence, moved, from_text(told.told_at), zone)
                and (moved.old or not _is_of_another(connection, newest, plan, days, moved, told, zone))
            ):
                return told.memory_id
    return None


def _is_moved(plan: str, days: Sequence[date], sentence: _Sentence, moved: MovedPlan, told_at: datetime, zone: ZoneInfo) -> bool:
    """Whether what moved is named by this plan, and the days that it has no longer are the plan's."""
    told_on = told_at.astimezone(zone).date()
    behind = sentence.plain.split(DAY)[1:]
    # 昨日 may only be when it was heard; 昨日の is a day of the plan.
    old = [
        day
        for index, day in enumerate(sentence.days)
        if index in moved.old and (behind[index].startswith(("の", "'s ")) or not _has_passed(day, told_on))
    ]
    new = [day for index, day in enumerate(sentence.days) if index not in moved.old]
    if any(not day.is_of(days) for day in old) or any(day.is_of(days) for day in new if not day.is_long):
        return False
    if not all(names(noun, plan) for noun in moved.nouns):
        return False
    if moved.person:
        return is_with(moved.nouns[-1], plan)
    return is_planned(moved.nouns[-1], _planned_part(plan))


def _has_passed(day: _Day, told_on: date) -> bool:
    return not day.weekdays and all(end <= told_on + timedelta(days=1) for _, end in day.spans)


def _planned_part(plan: str) -> str:
    """The clauses of a plan up to the one with its day."""
    if DAY not in plan:
        return plan
    clauses = re.split(r"(?<=[、。])", plan)
    ending = next(index for index, clause in enumerate(clauses) if DAY in clause)
    bare = re.fullmatch(rf"{DAY}(?:に|は|の)?、?", clauses[ending]) is not None
    return "".join(clauses[: ending + 1 + bare])


def _is_of_another(
    connection: apsw.Connection,
    newest: Sequence[bm25_index.Named],
    plan: Memory,
    days: Sequence[date],
    moved: MovedPlan,
    change: bm25_index.Named,
    zone: ZoneInfo,
) -> bool:
    """Whether another plan, told before the change and for another day, names the same as well: 会議 may be either of two."""
    if _tells_move(plan.content, plan.told_at, zone):
        return False  # it moved before: the others are what it was
    others = [
        told.memory_id
        for told in newest
        if told.memory_id not in (plan.id, change.memory_id)
        and told.told_at < change.told_at
        and all(names(noun, normalise(told.content)) for noun in moved.nouns)
    ]
    dated = memory_dates.of_memories(connection, others) if others else {}
    read = memories.by_ids(connection, others) if others else {}
    told_on = from_text(change.told_at).astimezone(zone).date()
    for other in read.values():
        if other.occurred_at is None and all(end <= change.told_at for _, end in dated.get(other.id, ())):
            continue
        planned = _planned_days(connection, other, zone)
        if planned and planned[-1] >= told_on and not set(planned) & set(days) and not _tells_move(other.content, other.told_at, zone):
            return True
    return False


def _tells_move(content: str, told_at: datetime, zone: ZoneInfo) -> bool:
    return may_tell_move(content) and any(moved_plan(sentence.plain) for sentence in _sentences(content, told_at, zone))


def _planned_days(connection: apsw.Connection, plan: Memory, zone: ZoneInfo) -> list[date]:
    """The local days of one plan, in order; none where it has several, or has been when it was told."""
    spans = [(from_text(start), from_text(end)) for start, end in memory_dates.of_memories(connection, [plan.id]).get(plan.id, ())]
    if plan.occurred_at is not None:
        spans = [(plan.occurred_at, plan.occurred_at)]
    happened = _HAPPENED.search(plan.content.strip()) is not None
    days: set[date] = set()
    for start, end in spans:
        if end < plan.told_at or (happened and start <= plan.told_at):
            return []
        first, last = start.astimezone(zone).date(), max(start, end - timedelta(microseconds=1)).astimezone(zone).date()
        if (last - first).days > LONGEST_DAYS:
            return []
        days.update(first + timedelta(days=number) for number in range((last - first).days + 1))
    ordered = sorted(days)
    is_one = bool(ordered) and (ordered[-1] - ordered[0]).days == len(ordered) - 1
    return ordered if is_one else []


def _may_tell_of(plan: Memory, told: bm25_index.Named) -> bool:
    """Whether a memory may tell a change, and of a plan of the same person."""
    sources = {source for source in (plan.source, told.source) if source}
    return len(told.content) <= LONGEST and may_tell_move(told.content) and (len(sources) < 2 or any(map(is_assistant, sources)))


def _sentences(text: str, told_at: datetime, zone: ZoneInfo) -> list[_Sentence]:
    plain, days = _marked(text, told_at, zone)
    sentences, first = [], 0
    for part in re.split(r"(?<=[。！？!?\n;])|(?<=\.)\s", plain):
        count = part.count(DAY)
        sentences.append(_Sentence(part.strip().rstrip("。.!！"), days[first : first + count]))
        first += count
    return sentences


def _marked(text: str, told_at: datetime, zone: ZoneInfo) -> _Sentence:
    """The normalized text with a mark for each day that it names, and these days."""
    plain = normalize(text).replace("\u2019", "'")
    named = [
        (each.start, each.end, _Day(each.spans))
        for each in recognize(plain).resolved(told_at.astimezone(zone).date(), upcoming=True)
        if not each.is_alone
    ]
    for found in _WEEKDAY.finditer(plain):
        (start, end), name = found.span(), found[1] or found[2]
        weekdays = [WEEKDAYS[name[:3]]] if name else [SATURDAY, SATURDAY + 1]
        if all(end <= first or start >= after for first, after, _ in named):
            named.append((start, end, _Day((), weekdays)))
    named.sort(key=lambda each: each[0])
    for start, end, _ in reversed(named):
        plain = plain[:start] + DAY + plain[end:]
    return _Sentence(plain, [day for _, _, day in named])
