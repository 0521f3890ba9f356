"""The data types that the layers pass to each other, as frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

Kind = Literal["fact", "conversation", "experience", "document", "summary"]
Mode = Literal["auto", "keyword", "semantic", "graph", "recent"]
OtherMode = Literal["hybrid", "semantic_only", "graph_only", "entity_focused", "temporal"]
Detail = Literal["full", "index", "why"]
Confidence = Literal["sure", "maybe", "nothing like it"]
# What an import does with a line whose key exists with other content: refuse it, keep the stored memory, or revise it.
Clash = Literal["refuse", "keep", "revise"]
TokenScope = Literal["read", "write", "delete", "export", "admin"]
PrivacyLevel = Literal["public", "internal", "private", "secret"]
# Feedback on a memory: how a task went (`worked`, `failed`, `partly`), that it was `used`, or a judgement (`helped`, `hurt`, `stale`).
# `contradicted`: what it warns of has worked since.
Verdict = Literal["worked", "failed", "partly", "used", "helped", "hurt", "stale", "contradicted"]
# The part of the list that a memory is in: current, replaced by another, or in the trash.
Shelf = Literal["current", "superseded", "trash", "all"]

KINDS: tuple[Kind, ...] = get_args(Kind)
MODES: tuple[Mode, ...] = get_args(Mode)
# Names of the modes in other programs.
MODE_ALIASES: Mapping[str, Mode] = {
    "hybrid": "auto",
    "semantic_only": "semantic",
    "graph_only": "graph",
    "entity_focused": "graph",
    "temporal": "recent",
}
DETAILS: tuple[Detail, ...] = get_args(Detail)
# From when on a memory is not found any more.
Expiry = datetime | Literal["never"]
NEVER: Literal["never"] = "never"
# What a memory is said to replace where it is to replace none any more.
NOTHING = "nothing"
CLASHES: tuple[Clash, ...] = get_args(Clash)
# How many memories a call may name.
KEYS_LIMIT = 100
TOKEN_SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
PRIVACY_LEVELS: tuple[PrivacyLevel, ...] = get_args(PrivacyLevel)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
OUTCOMES: tuple[Verdict, ...] = ("worked", "failed", "partly")
# Who spoke, beside the source, which is a name: kept in the metadata.
ROLE, ROLES = "role", ("user", "assistant")
JUDGEMENTS: tuple[Verdict, ...] = ("helped", "hurt", "stale")
SHELVES: tuple[Shelf, ...] = get_args(Shelf)

STATE_FIELDS = ("emotion", "physical_state", "mental_state", "environment", "relationship_status")


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored memory. Times are aware and in UTC; `importance` is from 0 to 1; `micro_summary` is empty until one is made."""

    id: int
    key: str
    content: str
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    importance: float = 0.5
    source: str | None = None
    session_id: str | None = None
    kind: Kind = "fact"
    state: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    revision: int = 1
    supersedes: str | None = None
    superseded_by: str | None = None
    deleted_at: datetime | None = None
    usage_count: int = 0
    last_used_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    category: str | None = None
    privacy_level: PrivacyLevel = "internal"
    micro_summary: str = ""
    expires_at: datetime | None = None

    @property
    def role(self) -> str | None:
        """`user` or `assistant`, where the importer that read it knew; None: only the source tells."""
        stated = self.metadata.get(ROLE)
        return stated if isinstance(stated, str) and stated in ROLES else None

    @property
    def event_time(self) -> datetime:
        """When it happened, if that is known; otherwise when it was stored."""
        return self.occurred_at or self.created_at

    @property
    def told_at(self) -> datetime:
        """When it was stored, or when it happened, if that was earlier: its time in the timeline."""
        return min(self.event_time, self.created_at)


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier state of a memory, and the `reason` of the revision that replaced it.

    `privacy_level` is None if the version has none of its own: that of the memory then applies.
    """

    key: str
    revision: int
    content: str
    updated_at: datetime
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    reason: str | None = None
    category: str | None = None
    privacy_level: PrivacyLevel | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """One verdict on a memory. `run`: the task, or the answer that showed it; the same verdict of a run counts once. `query`: what it
    was shown for.
    """

    verdict: Verdict
    at: datetime
    run: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Showing:
    """When a memory was last shown to a caller, and for which query, if that is known."""

    at: datetime
    query: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a memory: of its chunks, then of its questions.

    `vectors` are float32, little-endian, of shape (chunks + questions, `dimension`).
    """

    generation: str
    dimension: int
    chunks: "tuple[Chunk, ...]"
    questions: tuple[str, ...]
    vectors: bytes


@dataclass(frozen=True, slots=True)
class StatedRelation:
    """A relation stated by the writer of a memory, such as (健太, likes, 苺). The types are None if not given."""

    source: str
    relation: str
    target: str
    source_type: str | None = None
    target_type: str | None = None


@dataclass(frozen=True, slots=True)
class RelationValidity:
    """The first and the last day on which a relation holds, as YYYY-MM-DD (None: open), and notes about it."""

    valid_from: str | None = None
    valid_to: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """The fields of a memory that an import sets and a caller of `remember` can't. `is_undated`: nobody knows when its text was written;
    `created_at` is the time of the import. `former_keys`: the keys under which it may be stored instead.
    """

    key: str | None = None
    created_at: datetime | None = None
    is_undated: bool = False
    updated_at: datetime | None = None
    revision: int = 1
    deleted_at: datetime | None = None
    usage_count: int = 0
    last_used_at: datetime | None = None
    feedback: tuple[Feedback, ...] = ()
    former_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is not stored yet. `restored` and `embedded` are set by an import."""

    content: str
    source: str | None = None
    session_id: str | None = None
    kind: Kind = "fact"
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    occurred_at: datetime | None = None
    questions: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)
    supersedes: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    category: str | None = None
    privacy_level: PrivacyLevel = "internal"
    relations: tuple[StatedRelation, ...] = ()
    expires_at: datetime | None = None
    restored: Restored = Restored()
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The piece of a memory that has one vector: content[start:end], in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The times from `start` to `end`, without `end` itself and without the moment `besides`, if given. All are aware.

    A memory known only by its day is stored at the midnight at which the day starts: a night that extends into the next day
    excludes that midnight with `besides`.
    """

    start: datetime
    end: datetime
    besides: datetime | None = None

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end and moment != self.besides


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions for a memory to be a candidate. It must have all of the tags, ignoring case. `other_sources` are those that it must not
    have. `unexpired_at`: the moment at which it must not have expired, for a store whose expired memories can't be moved to the trash.
    """

    tags: tuple[str, ...] = ()
    date_range: TimeRange | None = None
    min_importance: float = 0.0
    kind: Kind | None = None
    category: str | None = None
    session_id: str | None = None
    source: str | None = None
    other_sources: tuple[str, ...] = ()
    unexpired_at: datetime | None = None

    def __bool__(self) -> bool:
        return self != NO_FILTERS


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Question:
    """The validated arguments of one call of recall."""

    query: str = ""
    top_k: int = 5
    mode: Mode = "auto"
    filters: Filters = Filters()
    keys: tuple[str, ...] = ()
    hypothetical: str = ""
    detail: Detail = "full"
    max_tokens: int = 1500


class Origin(NamedTuple):
    """Times, speaker and session of a memory. `happened` and `told_at` are UTC in the format of the store, in which text order is time
    order.

    `told_at` is when it was stored, or when it happened, if that was earlier. `is_dated`: its writer gave the time at which it happened.
    `asks`: 1 for a short turn that ends in a question, less for a longer one, 0 for others. `replaces`: it replaced another. `role`: that
    of its speaker, if it is stored.
    """

    happened: str
    source: str | None = None
    session_id: str | None = None
    told_at: str = ""
    is_dated: bool = False
    asks: float = 0.0
    replaces: bool = False
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`confirmed_at` is when a memory was last stored again in the same words; `replaced` is the text of the one before it. `judged`:
    `stale` or `hurt`, where that judgement stands.

    `replaced` is None where that one is in the trash or has expired.
    """

    confirmed_at: datetime | None = None
    replaced: str | None = None
    judged: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory in an answer. The token budget decides how much of its content is in `text`, and whether its metadata are shown.

    `best_part` is the (start, end) of the most relevant part of a long content, in characters; (0, 0) if unknown. `pool`: where it is from,
    if not from the persona's own store; the keys of its memory then name the pool. `confirmation` is None where it was not read with the
    memory. `why`: the values of the signals, and `parts`: what each of them adds to the score, as its weight and its value; without them
    unless the question wants to know why.
    """

    memory: Memory
    score: float
    why: Mapping[str, Any]
    text: str
    truncated: bool = False
    with_metadata: bool = False
    best_part: tuple[int, int] = (0, 0)
    pool: str = ""
    confirmation: Confirmation | None = None
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of recall. `mode` is the pipeline that ran; `degraded` lists what was missing from the configured one.

    `more` counts further matching memories that did not fit; `missing` lists requested keys that do not exist, `unmatched` the words of the
    query that no memory holds. If the query names no
    entity, `meant` lists those that it probably means, each with its cosine. `relations` are the graph's relations of the entities that
    the query names, each a line such as `健太 > likes > 苺`. `embedder` names the model that was used in place of the configured one. `confidence`: whether
    the hits hold what was asked for; None where keys, a time, `date_range` or `mode=graph` chose them.
    """

    hits: tuple[Hit, ...]
    mode: str
    reranked: bool
    degraded: tuple[str, ...]
    index_lag: int
    more: int = 0
    missing: tuple[str, ...] = ()
    best_score: float | None = None
    meant: tuple[tuple[str, float], ...] = ()
    relations: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    embedder: str | None = None
    confidence: Confidence | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """A stored memory with nearly the same content; `similarity` is from 0 to 1."""

    key: str
    similarity: float
    preview: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of remember. `stored` is False if the same write is already stored under `key`.

    `rivals` are other current memories that supersede the same one. `redacted` and `flagged` count private data in it, by kind.
    `added_relations` counts the relations that were added to the already stored memory. `expires_at` is of the memory, stored now or before.
    """

    key: str
    stored: bool
    similar: tuple[Similar, ...] = ()
    rivals: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)
    added_relations: int = 0
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one key: `outcome` is one word, `reason` an optional explanation; `redacted` and `flagged` count private data, by
    kind.
    """

    key: str
    outcome: str
    reason: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """A part of a conversation, from one message of the user to the end of the answer. `messages` are JSON objects with `role` and `text`,
    as `memory_mcp.chat` writes them; `recalled` and `stored` are the keys of the memories that were read and written."""

    number: int
    ended_at: datetime
    model: str
    messages: tuple[Mapping[str, Any], ...]
    recalled: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A stored conversation. `members`: all personas of a group, empty for a conversation with one. `turns` counts what is stored."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    members: tuple[str, ...] = ()
    turns: int = 0
