"""The memories that may become hits, as a table: a row for each, and a column for everything that the signals of an answer read.

Nothing is scored here. The database is read in one snapshot.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from memory_mcp.domain import Filters, Memory, Origin, Question, TimeRange
from memory_mcp.errors import StoreDamaged
from memory_mcp.graph.query.entities_by_meaning import EntitiesByMeaning
from memory_mcp.graph.query.retrieval import GraphEvidence, QueryEntities, memories_near_entities
from memory_mcp.language.names import is_assistant
from memory_mcp.language.synonyms import Spelling
from memory_mcp.language.tokens import normalise, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.search.meaning import NOT_NEAR, Meaning, from_meaning, similarities
from memory_mcp.search.question import ParsedQuestion
from memory_mcp.search.words import as_synonyms, in_other_scripts
from memory_mcp.store import feedback, memories, memory_dates, usage_and_forgetting
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.bm25_index import Terms
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.timestamps import from_text
from memory_mcp.store.usage_and_forgetting import forgetting_curve
from memory_mcp.tracing import spanned

# A question such as 「昨日の夕飯は？」 may share no word with its answer: the latest memories of the named days are candidates too.
CANDIDATES_PER_NAMED_DATE = 10

# Too much happens in a named time of more than a month, such as a year, for it to decide: it counts this share.
DECISIVE, LONG_TIME_SHARE = timedelta(days=35), 0.5
_LONGEST_DAY = timedelta(hours=25)  # on which clocks go back

# A store of the answer by its number, 0 the persona's own, and the id of a memory in it.
Key = tuple[int, int]
Column = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
# Starts and ends, in the format of the store.
Times = Sequence[tuple[str, str]]
NOTHING: Mapping[int, float] = {}
NO_TIMES: Mapping[int, Times] = {}
_NO_OPINION = (0.0, "")


@dataclass(frozen=True)
class Candidates:
    """A row for each memory. NaN stands for a value that is not known."""

    keys: Sequence[Key]
    origins: Sequence[Origin]
    # The BM25 score, comparable only within one search.
    lexical: Column
    # The cosine of the nearest of the `chunks`, or, if the memory's own questions are more similar, between the two; and `nearness`, the
    # same without what all memories share, and with a part of the previous turn.
    dense: Column
    nearness: Column
    chunks: Sequence[int | None]
    # It is nearer to texts of another language than the question's.
    is_foreign: Flags
    # The times that its text names.
    times: Sequence[Times]
    # 1 if it is of a date in the question, .5 if its text names another date, and only its day in the timeline is that.
    dates: Column
    # The question names its speaker; an assistant said it, and it counts less.
    is_named: Flags
    is_assistants: Flags
    # What the graph associates with the best candidates: its share of the strongest association, and whether that alone makes it a hit.
    graph: Column
    is_certain: Flags
    # What use and judgements say of it, and the judgement that is against it.
    retention: Column
    judged: Column
    verdicts: Sequence[str]
    # Turn → the turn before it, where that is a question.
    answers: Mapping[Key, Key]
    # The score of a cross-encoder, and how far above all that it read that is.
    cross_score: Column
    cross_value: Column

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def has_vectors(self) -> bool:
        return not np.isnan(self.nearness).all()

    @property
    def session_ids(self) -> Sequence[tuple[int, str] | None]:
        """The session of each row, with its store: those of different stores have nothing to do with each other, whatever their names."""
        return [
            (store, origin.session_id) if origin.session_id else None for (store, _), origin in zip(self.keys, self.origins, strict=True)
        ]


@dataclass(frozen=True)
class Search:
    """A question to one store, by its `number` in the answer, a snapshot of that store, and what is known before it is searched.

    What several steps need of the store is read once.
    """

    number: int
    persona: Persona
    connection: apsw.Connection
    question: Question
    parsed: ParsedQuestion
    meaning: Meaning
    _origins: dict[int, Origin] = field(default_factory=dict)
    _in_other_scripts: dict[str, Sequence[Spelling]] = field(default_factory=dict)

    @cached_property
    def assistants(self) -> "Assistants":
        return Assistants(self.persona)

    def origins(self, memory_ids: Collection[int]) -> dict[int, Origin]:
        """Memory → its times, source and session."""
        if new := [memory_id for memory_id in memory_ids if memory_id not in self._origins]:
            self._origins.update(memories.origins(self.connection, new))
        return {memory_id: self._origins[memory_id] for memory_id in memory_ids if memory_id in self._origins}

    def in_other_scripts(self, text: str) -> Sequence[Spelling]:
        """The words of a text that the store has in another script, at their places in its normalized width."""
        if text not in self._in_other_scripts:
            self._in_other_scripts[text] = in_other_scripts(self.connection, self.persona.words.stored, unicodedata.normalize("NFKC", text))
        return self._in_other_scripts[text]

    @property
    def limit(self) -> int:
        """How many candidates each source gives."""
        return self.parsed.settings.fusion.candidates_per_source


def from_sources(search: Search) -> Candidates:
    """The candidates by meaning, words and named dates, each with all that is known of it."""
    question, time = search.question, search.parsed.time
    near = from_meaning(search.connection, search.meaning, question.filters, search.limit)
    dated = from_named_dates(
        search.connection, time.dates, question.filters, search.limit if time.is_only_time else CANDIDATES_PER_NAMED_DATE
    )
    limit = 0 if question.mode == "semantic" and near else search.limit
    words = {} if time.is_only_time else from_words(search, limit, [*near, *dated])
    found = rows_of(search, dict.fromkeys([*near, *dated, *words]), words=words)
    days = time.days if time.is_only_time and not (found.dates == 1.0).any() else ()
    written = dict.fromkeys(from_written_dates(search, days), search.parsed.spans)
    known = (memory_id for _, memory_id in found.keys)
    return rows_of(search, dict.fromkeys([*known, *written]), words=words, times=written) if written else found


def near_in_graph(
    search: Search, named: QueryEntities, by_meaning: EntitiesByMeaning, otherwise: Callable[[], Sequence[tuple[int, float]]]
) -> Candidates:
    """The memories near the entities that the query names or means, or that the best of those lead to which it finds `otherwise`;
    with the words of the rest of the query."""
    near = memories_near_entities(search.connection, search.question, named.shares or by_meaning.shares, otherwise)
    terms = search.parsed.terms(named.rest, beside_vectors=False)
    words = lexical_matches(search, named.rest, terms, search.question.filters, 0, list(near))
    return rows_of(search, dict.fromkeys([*near, *words]), words=words, graph=near)


def with_associated(search: Search, candidates: Candidates, evidence: GraphEvidence) -> Candidates:
    """The candidates and the further memories that the graph associates with the best of them."""
    known = {memory_id for _, memory_id in candidates.keys}
    further = [memory_id for memory_id in evidence.memories if memory_id not in known]
    together = joined([candidates, rows_of(search, further)]) if further else candidates
    return replace(
        together,
        graph=np.array([evidence.memories.get(memory_id, 0.0) for _, memory_id in together.keys]),
        is_certain=np.array([memory_id in evidence.certain for _, memory_id in together.keys], bool),
    )


def rows_of(
    search: Search,
    memory_ids: Iterable[int],
    *,
    words: Mapping[int, float] = NOTHING,
    graph: Mapping[int, float] = NOTHING,
    times: Mapping[int, Times] = NO_TIMES,
) -> Candidates:
    """These memories with all that is known of them. `words` has the lexical score of all that match, `graph` the association of
    those that have one; `times` are those of memories whose text names them without a year. A memory that has no vector yet has no
    cosine."""
    connection, parsed, ids = search.connection, search.parsed, list(memory_ids)
    by_id = search.origins(ids)
    ids, origins = list(by_id), list(by_id.values())
    near = similarities(connection, search.meaning, ids)
    nearest = [near.get(memory_id, NOT_NEAR) for memory_id in ids] if near else [NOT_NEAR] * len(ids)
    cosines, nearness, nearest_chunks, is_foreign = zip(*nearest, strict=True) if ids else ((), (), (), ())
    named = {**memory_dates.of_memories(connection, ids), **times} if parsed.time.dates else {}
    named_times = [named.get(memory_id, ()) for memory_id in ids] if named else [()] * len(ids)
    speakers = parsed.named({origin.source for origin in origins})
    assistants = search.assistants.among(origins) - speakers if parsed.people_first else frozenset()
    opinions = feedback.judgements(connection, ids) if parsed.settings.fusion.judged_weight else {}
    opinion_of = [opinions.get(memory_id, _NO_OPINION) for memory_id in ids] if opinions else [_NO_OPINION] * len(ids)
    return Candidates(
        keys=[(search.number, memory_id) for memory_id in ids],
        origins=origins,
        lexical=_column(ids, words),
        dense=np.array(cosines, np.float64),
        nearness=np.array(nearness, np.float64),
        chunks=nearest_chunks,
        is_foreign=np.array(is_foreign, bool),
        times=named_times,
        dates=date_shares(parsed, list(zip(origins, named_times, strict=True))),
        is_named=_flags(origins, lambda origin: origin.source in speakers, any_is=bool(speakers)),
        # A person may have an assistant's name.
        is_assistants=_flags(origins, lambda origin: origin.source in assistants and origin.role != "user", any_is=bool(assistants)),
        graph=_column(ids, graph),
        is_certain=np.zeros(len(ids), bool),
        retention=_column(ids, _retention(search, ids)),
        judged=np.array([share for share, _ in opinion_of], np.float64),
        verdicts=[verdict for _, verdict in opinion_of],
        answers=_answers(search, by_id),
        cross_score=np.full(len(ids), np.nan),
        cross_value=np.zeros(len(ids)),
    )


def joined(parts: Sequence[Candidates]) -> Candidates:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {}
    for each in fields(Candidates):
        values = [getattr(part, each.name) for part in parts]
        if isinstance(values[0], Mapping):
            columns[each.name] = {key: value for some in values for key, value in some.items()}
        else:
            columns[each.name] = np.concatenate(values) if isinstance(values[0], np.ndarray) else list(chain.from_iterable(values))
    return Candidates(**columns)


def from_words(search: Search, limit: int, others: Sequence[int]) -> dict[int, float]:
    """The best lexical matches, and those of `others` that match: by id, with their BM25 score. Where an assistant said some of the
    best, as many of what people said are added."""
    parsed, filters = search.parsed, search.question.filters
    sounds = as_synonyms(parsed.time.words, search.in_other_scripts(parsed.time.words)) if limit else ()
    terms = parsed.terms(beside_vectors=search.meaning.index is not None, same_sound=sounds)
    matches = partial(lexical_matches, search, parsed.time.words, terms)
    if not (limit and parsed.people_first):
        return matches(filters, limit, others)
    # People's are nearly always among twice as many, and another search costs as much as this one.
    twice = matches(filters, 2 * limit, others)
    best, rest = list(twice)[:limit], list(twice)[limit:]
    assistants = search.assistants.among(search.origins(best).values())
    by_people = [memory_id for memory_id, origin in search.origins(twice if assistants else ()).items() if origin.source not in assistants]
    chosen = {*best, *by_people[:limit], *others}
    words = {memory_id: bm25 for memory_id, bm25 in twice.items() if memory_id in chosen}
    if assistants and len(rest) >= limit and len(by_people) < limit:
        words |= matches(replace(filters, other_sources=tuple(assistants)), limit)
    if parsed.time.wants_lately and not filters.date_range:
        # Of much that has its words, the best matches may all be old.
        words |= matches(replace(filters, date_range=parsed.time.dates[0]), limit)
    return words


@spanned("lexical")
def lexical_matches(search: Search, query: str, terms: Terms, filters: Filters, limit: int, others: Sequence[int] = ()) -> dict[int, float]:
    """The best matches of these terms, and those of `others` that match. Of a query without tokens those that have it as it is."""
    if not terms.tokens:
        return dict.fromkeys(bm25_index.scan(search.connection, query, filters, limit), 1.0)
    return dict(bm25_index.search(search.connection, terms, filters, limit, others, search.persona.words))


@spanned("dates")
def from_named_dates(connection: apsw.Connection, spans: Sequence[TimeRange], filters: Filters, limit: int) -> list[int]:
    """The latest memories of the days that the query names, within the caller's date range; if it names none, those of that range."""
    chosen = filters.date_range
    if chosen and not spans:
        return memories.ids_in_range(connection, filters, limit)
    wanted = [replace(chosen, start=max(span.start, chosen.start), end=min(span.end, chosen.end)) for span in spans] if chosen else spans
    memory_ids = [
        memory_id
        for span in wanted
        if span.start < span.end
        for memory_id in memories.ids_in_range(connection, replace(filters, date_range=span), limit)
    ]
    return list(dict.fromkeys(memory_ids))


def from_written_dates(search: Search, days: Sequence[str]) -> list[int]:
    """Memories that have a year of the query as it is written, which is too long to be a time of theirs, and those without a time that have one
    of these days of no certain year or week: 「金曜は燃えるゴミの日」."""
    by_days = _with_phrases(search, days)
    timed = memory_dates.of_memories(search.connection, by_days) if by_days else {}
    return [*_with_phrases(search, search.parsed.time.years), *(memory_id for memory_id in by_days if memory_id not in timed)]


def _with_phrases(search: Search, spellings: Sequence[str]) -> list[int]:
    phrases = list(dict.fromkeys(" ".join(tokens(spelling)) for spelling in spellings))
    found = bm25_index.search(search.connection, Terms(phrases), search.question.filters, search.limit) if phrases else ()
    return [memory_id for memory_id, _ in found]


def _flags(origins: Sequence[Origin], is_one: Callable[[Origin], bool], *, any_is: bool) -> Flags:
    return np.array([is_one(origin) for origin in origins], bool) if any_is else np.zeros(len(origins), bool)


def _column(ids: Sequence[int], values: Mapping[int, float]) -> Column:
    return np.array([values.get(memory_id, 0.0) for memory_id in ids]) if values else np.zeros(len(ids))


def _retention(search: Search, ids: Sequence[int]) -> Mapping[int, float]:
    """What is left of each memory by its age, importance and uses, from 0 to 1; nothing, and no query, while that has no weight."""
    decay, now = search.parsed.settings.decay, search.parsed.now
    if not decay.weight:
        return {}
    found = usage_and_forgetting.usage(search.connection, ids)
    return {
        memory_id: forgetting_curve(touched, importance, uses, now, decay.half_life_days)
        for memory_id, (touched, importance, uses) in found.items()
    }


def _answers(search: Search, origins: Mapping[int, Origin]) -> dict[Key, Key]:
    """Turn → the turn before it, where that asks something."""
    asking = [memory_id for memory_id, origin in origins.items() if origin.asks and origin.session_id]
    after = adjacent_turns(search.connection, asking, "after") if asking else {}
    return {(search.number, answer): (search.number, question) for question, answer in after.items()}


def date_shares(parsed: ParsedQuestion, rows: Sequence[tuple[Origin, Times]]) -> Column:
    """How far each memory is of a date that the query names, from 0 to 1."""
    named = [
        (since, until, 1.0 if date.end - date.start <= DECISIVE else LONG_TIME_SHARE)
        for (since, until), date in zip(parsed.spans, parsed.time.dates, strict=True)
    ]
    if not named:
        return np.zeros(len(rows))
    return np.array(
        [
            max(counts * _date_share(since, until, origin, times, of_telling=parsed.time.of_telling) for since, until, counts in named)
            for origin, times in rows
        ],
        np.float64,
    )


def _date_share(since: str, until: str, origin: Origin, times: Times, *, of_telling: bool) -> float:
    """1 for a memory of this named date, also of a day that it begins within, as today from now on, if that was told before. Half
    for one whose text names a longer time, such as its month, or that was told on it, without a date of its own, while its text
    names another date. 1 for what was told on it where the query asks for that: 「昨日言ってた結婚式」."""
    if of_telling and since <= origin.told_at < until:
        return 1.0
    if any(end <= until and (since <= start or _is_day_under_way(since, start, end, origin)) for start, end in times):
        return 1.0
    if since <= origin.happened < until:
        return 0.5 if times and not origin.is_dated else 1.0
    return 0.5 * any(start < until and end > since for start, end in times)


def _is_day_under_way(moment: str, start: str, end: str, origin: Origin) -> bool:
    return origin.told_at < start < moment < end and from_text(end) - from_text(start) <= _LONGEST_DAY


class Assistants:
    """Which lines of a persona's memories are an assistant's: by the role that is stored, or by the name of their source. A persona's own
    lines are its own, whatever it is called."""

    def __init__(self, persona: Persona) -> None:
        self._persona = persona
        self._known: dict[tuple[str | None, str | None], bool] = {}

    def wrote(self, line: Origin | Memory) -> bool:
        """This line is an assistant's."""
        key = line.source, line.role
        if key not in self._known:
            self._known[key] = line.role == "assistant" or (line.role is None and self._has_name_of_one(line.source))
        return self._known[key]

    def among(self, origins: Iterable[Origin]) -> frozenset[str]:
        """The sources of these lines that are assistants."""
        by_speaker = {(origin.source, origin.role): origin for origin in origins}
        return frozenset(source for (source, _), line in by_speaker.items() if source and self.wrote(line))

    def _has_name_of_one(self, source: str | None) -> bool:
        return source is not None and is_assistant(source) and normalise(source).strip() not in self._own_names

    @cached_property
    def _own_names(self) -> frozenset[str]:
        try:
            about = self._persona.context.read().get("persona_info") or {}
        except StoreDamaged:
            about = {}
        return frozenset(normalise(name).strip() for name in (self._persona.name, about.get("name")) if isinstance(name, str))
