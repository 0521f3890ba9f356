"""The product's words as frozen dataclasses: what the layers hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

Kind = Literal["fact", "conversation", "experience", "summary"]
Mode = Literal["auto", "keyword", "semantic", "graph", "recent"]
OtherMode = Literal["hybrid", "semantic_only", "graph_only", "entity_focused", "temporal"]
Detail = Literal["full", "index"]
# What an import does with a line whose key is there with other content: refuse it, keep what is there, or take it for an edit.
Clash = Literal["refuse", "keep", "revise"]
TokenScope = Literal["read", "write", "delete", "export", "admin"]
PrivacyLevel = Literal["public", "internal", "private", "secret"]

KINDS: tuple[Kind, ...] = get_args(Kind)
MODES: tuple[Mode, ...] = get_args(Mode)
# What other programs call the modes.
OTHER_MODES: Mapping[str, Mode] = {
    "hybrid": "auto",
    "semantic_only": "semantic",
    "graph_only": "graph",
    "entity_focused": "graph",
    "temporal": "recent",
}
DETAILS: tuple[Detail, ...] = get_args(Detail)
CLASHES: tuple[Clash, ...] = get_args(Clash)
TOKEN_SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
PRIVACY_LEVELS: tuple[PrivacyLevel, ...] = get_args(PrivacyLevel)

STATE_FIELDS = ("emotion", "physical_state", "mental_state", "environment", "relationship_status")


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored memory. Times are aware and in UTC; `importance` runs from 0 to 1; `micro_summary` is empty where none was made yet."""

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

    @property
    def event_time(self) -> datetime:
        """When it happened, as far as anyone said so; otherwise when it was stored."""
        return self.occurred_at or self.created_at


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier state of a memory: what it said until it was revised at its next revision, and why it was.

    `privacy_level` None: nobody said, and it is that of the memory.
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
class Embedded:
    """Pieces of a memory with a vector each: its chunks, then its questions as text.

    `vectors` are float32, little-endian, of shape (number of pieces, `dimension`).
    """

    generation: str
    dimension: int
    chunks: "tuple[Chunk, ...]"
    questions: tuple[str, ...]
    vectors: bytes


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation in its writer's words: `source` stands in `relation` to `target`. The types are None where nobody said them."""

    source: str
    relation: str
    target: str
    source_type: str | None = None
    target_type: str | None = None


@dataclass(frozen=True, slots=True)
class Lasting:
    """When a relation holds: its first and its last day as YYYY-MM-DD, None where that is open; and what else is to be said of it."""

    valid_from: str | None = None
    valid_to: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """What an export knows of a memory beyond what a caller of `remember` may say."""

    key: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    revision: int = 1
    deleted_at: datetime | None = None
    usage_count: int = 0
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is not stored yet. `restored` and `embedded` are set when an export is read back."""

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
    relations: tuple[Stated, ...] = ()
    restored: Restored = Restored()
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The piece of a memory that gets one vector: content[start:end], in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` up to, and not including, `end`, without the moment `besides`, if there is one. All aware.

    What is only known by its day is kept at the midnight where that begins: a night that goes on until the next morning has none of it.
    """

    start: datetime
    end: datetime
    besides: datetime | None = None

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end and moment != self.besides


@dataclass(frozen=True, slots=True)
class Filters:
    """What a memory must satisfy to be a candidate at all. Tags: it carries every one of them. Upper and lower case are alike."""

    tags: tuple[str, ...] = ()
    date_range: TimeRange | None = None
    min_importance: float = 0.0
    kind: Kind | None = None
    category: str | None = None

    def __bool__(self) -> bool:
        return bool(self.tags or self.date_range or self.min_importance > 0 or self.kind or self.category)


@dataclass(frozen=True, slots=True)
class Question:
    """One call of recall, checked."""

    query: str = ""
    top_k: int = 5
    mode: Mode = "auto"
    filters: Filters = Filters()
    keys: tuple[str, ...] = ()
    hypothetical: str = ""
    detail: Detail = "full"
    max_tokens: int = 1500


@dataclass(frozen=True, slots=True)
class Origin:
    """When a memory happened, who said it, and in which conversation. `happened` is UTC as the store writes it: text order is time order."""

    happened: str
    source: str | None = None
    session_id: str | None = None


@dataclass(slots=True)
class Candidate:
    """A memory that may become a hit, with what each source thinks of it (None: it has no opinion). Each step of a search fills in its part.

    `lexical` is a BM25 score, larger is better, and means nothing by itself: `lexical_share` is its part of the best one, 0 to 1.
    `dense` is a cosine, that of `best_chunk` or, where the memory's own questions are nearer, between the two; `rerank` is the cross-encoder's score. `session_share` is what the best of the others
    from its conversation have of the best lexical score, 0 to 1. The query names its day where `in_named_date`, and who said it
    where `by_named_speaker`. `graph_share` is how much of what the graph leads to it is, 0 to 1; `freshness` what age, importance and
    use add to its score.
    """

    memory_id: int
    lexical: float | None = None
    lexical_share: float | None = None
    dense: float | None = None
    best_chunk: int | None = None
    rerank: float | None = None
    session_share: float = 0.0
    graph_share: float = 0.0
    in_named_date: bool = False
    by_named_speaker: bool = False
    freshness: float = 0.0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory in an answer: `text` is its content or the part of it that the budget allows, as is whether its metadata are shown.

    `best_part` is where in a long content the answer is, in characters; (0, 0) where nobody knows.
    """

    memory: Memory
    score: float
    why: Mapping[str, Any]
    text: str
    truncated: bool = False
    with_metadata: bool = False
    best_part: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Recalled:
    """What recall answers. `mode` is the pipeline that ran; `degraded` says what was missing from the configured one.

    `more` counts further memories that matched and did not fit; `missing` the keys that were asked for and do not exist. `meant` are the
    names of entities that the query was taken to mean, each with its cosine, where it names nobody. `relations` are what the graph states
    of whom it names, each a line such as `健太 > likes > 苺`.
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


@dataclass(frozen=True, slots=True)
class Similar:
    """A stored memory that says nearly the same; `similarity` runs from 0 to 1."""

    key: str
    similarity: float
    preview: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """What remember answers. `stored` is False when the very same write is already there under `key`.

    `rivals` are other current memories that replace the same one as this. `redacted` and `flagged` count what was private in it, by kind.
    `related` counts the relations that were added to the one that is already there.
    """

    key: str
    stored: bool
    similar: tuple[Similar, ...] = ()
    rivals: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)
    related: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one key: `outcome` is one word, `reason` says more where there is more to say; and what was private in it, by kind."""

    key: str
    outcome: str
    reason: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)
    flagged: Mapping[str, int] = field(default_factory=dict)
