"""What config.json may say: one frozen tree, every key with a default, a range and a sentence."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _known_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("an IANA time zone such as Asia/Tokyo or UTC") from error
    return name


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("a model name or a directory; null for none")
    return name


ModelName = Annotated[str, AfterValidator(_not_blank)]
Toolset = Literal["core", "upkeep", "compat", "graph"]
PrivacyMode = Literal["off", "flag", "redact"]


class Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class VectorRebuild(Group):
    """When an index is rebuilt in the background. A write is always indexed at once, whatever this says."""

    mode: Literal["idle", "manual", "auto"] = Field(
        "idle", description="`idle`: when nobody has called for a while; `auto`: as soon as needed; `manual`: only on request."
    )
    idle_seconds: float = Field(30, ge=0, description="How long nobody must have called before an idle rebuild, in seconds.")
    min_interval: float = Field(120, ge=0, description="The least time between two rebuilds of one persona, in seconds.")


class Fusion(Group):
    """How the sources of candidates become one order."""

    dense_weight: float = Field(
        0.5, ge=0, le=1, description="Weight of the embedding against the lexical score. Taken as 0 while no model is there."
    )
    date_boost: float = Field(
        0.7, ge=0, le=2, description="Added to the score of a memory from a date that the query names. 0 turns it off."
    )
    speaker_boost: float = Field(
        0.2, ge=0, le=2, description="Added to the fused score of a memory whose `source` the query names. 0 turns it off."
    )
    session_weight: float = Field(
        0.3,
        ge=0,
        le=2,
        description="Weight of what else of the same session the words of the query find, beside the lexical score. 0 turns it off.",
    )
    graph_weight: float = Field(
        0.2,
        ge=0,
        le=2,
        description="Weight of what names the same people, places and things as the best answers, where the words alone speak. 0 turns it off.",
    )
    graph_weight_dense: float = Field(
        0.05, ge=0, le=2, description="The same beside an embedding, which finds much of that by itself. 0 turns it off."
    )
    candidates_per_source: int = Field(50, ge=1, le=1000, description="How many candidates each source hands to the fusion.")


class Upkeep(Group):
    """When the chores of the background are done: what keeps, tidies and saves a persona's memories."""

    idle_seconds: float = Field(
        20, ge=0, description="How long nobody must have called before upkeep begins, in seconds. What is due for an hour is done anyway."
    )


Days = Annotated[float, Field(gt=0, le=36_500)]


class Retention(Group):
    """How long memories are kept. What is over goes into the trash first, and from there for good."""

    trash_days: Days | None = Field(30, description="What lies longer in the trash is erased for good. `null`: nothing is, by itself.")
    conversation_days: Days | None = Field(
        None, description="Conversations that nobody changed for so long go into the trash. `null`: they stay."
    )
    experience_days: Days | None = Field(None, description="The same for experiences.")
    fact_days: Days | None = Field(None, description="The same for facts.")
    summary_days: Days | None = Field(None, description="The same for summaries.")
    keep_importance: float | None = Field(
        0.8, ge=0, le=1, description="What is at least so important never goes by itself. `null`: it may."
    )
    keep_tags: list[str] = Field(["keep"], description="What carries one of these tags never goes by itself.")


class Context(Group):
    """What `get_context` shows of each layer; 10 memories at most. The places that no summary takes are the topic's."""

    recent: int = Field(5, ge=0, le=10, description="How many of the latest memories.")
    semantic: int = Field(3, ge=0, le=10, description="How many that fit the topic.")
    summaries: int = Field(2, ge=0, le=10, description="How many of the latest summaries.")
    mmr_lambda: float = Field(
        0.7, ge=0, le=1, description="Among those that fit the topic: how much fitting counts against being unlike the others. 1: alone."
    )


class Backup(Group):
    """Backups of each persona, once a day."""

    enabled: bool = Field(False, description="Makes a backup of each persona every day, unless nothing was written since the last one.")
    directory: str | None = Field(
        None, min_length=1, description="Where backups are kept; `null`: in `.backups` inside the data directory. Better: another disk."
    )
    hour: int = Field(4, ge=0, le=23, description="From which hour of the day on, in `timezone`.")
    keep_days: int = Field(30, ge=1, le=36_500, description="How long a backup is kept, in days. A persona's newest one always stays.")


class Encryption(Group):
    """Encryption at rest. Personas that exist already are encrypted by `memory-mcp encrypt`."""

    enabled: bool = Field(False, description="New personas are encrypted from their first byte on. Needs a restart.")
    key_file: str | None = Field(
        None, min_length=1, description="The file with the master key, which nobody else may read. Needs a restart."
    )
    keyring: bool = Field(False, description="Asks the system's keyring for the master key. Needs a restart.")


class LongTexts(Group):
    """How a long memory is split into pieces that get a vector each. A short one never is."""

    chunk_tokens: int = Field(
        256, ge=32, le=100_000, description="The most tokens of a piece, by the embedding model; fewer where it reads fewer."
    )
    overlap_tokens: int = Field(32, ge=0, le=50_000, description="About how many tokens two pieces share, in whole sentences.")


class RateLimit(Group):
    """How many calls one token, or one address without a token, may make."""

    per_minute: int = Field(0, ge=0, le=1_000_000, description="Calls a minute in the long run. 0: no limit.")
    burst: int = Field(100, ge=1, le=1_000_000, description="Calls that may come at once, before the limit of the minute counts.")


class Calls(Group):
    """How many calls are answered at once and how many may wait. More are refused, with `Retry-After`."""

    at_once: int = Field(100, ge=1, le=100, description="Calls that are answered at the same time.")
    at_once_per_persona: int = Field(50, ge=1, le=100, description="The same, of one persona.")
    waiting: int = Field(400, ge=0, le=100_000, description="Calls that may wait for their turn; more are refused with 503.")
    waiting_per_persona: int = Field(200, ge=0, le=100_000, description="The same, of one persona; more are refused with 429.")


class Privacy(Group):
    """What becomes of what is private in a text before it is stored: it stays, it stays and the memory is marked, or a placeholder is stored."""

    api_key: PrivacyMode = Field("redact", description="API keys, tokens, private keys, and passwords that look random.")
    url_credentials: PrivacyMode = Field("redact", description="The user and password in `scheme://user:password@host`.")
    credit_card: PrivacyMode = Field("redact", description="Credit card numbers.")
    my_number: PrivacyMode = Field("redact", description="マイナンバー.")
    email: PrivacyMode = Field("flag", description="E-mail addresses.")
    phone: PrivacyMode = Field("flag", description="Telephone numbers.")
    ip_address: PrivacyMode = Field("off", description="IP addresses.")


class Summaries(Group):
    """Summaries of each session and each day, made in the background."""

    enabled: bool = Field(True, description="Whether summaries of sessions and days are made. Those that there are stay.")
    min_memories: int = Field(5, ge=2, le=1000, description="How many memories a session or a day must have to be summarised.")
    quiet_minutes: float = Field(30, ge=0, description="How long nothing must have been added to a session before it is summarised.")
    interval_minutes: float = Field(10, ge=0.01, description="The least time between two looks at one persona.")


class Llm(Group):
    """A chat model for the background. Without one nothing lacks: summaries are then made of the memories' own sentences."""

    chat_class: ModelName | None = Field(
        None,
        description="A LangChain chat model that words the summaries, as `package.module:Class`. It is sent what memories say. `null`: none.",
    )
    arguments: dict[str, Any] = Field({}, description="Arguments that `llm.chat_class` is called with.")
    timeout_seconds: float = Field(60, gt=0, le=3600, description="How long one answer of the chat model is waited for.")


class Graph(Group):
    """What the knowledge graph makes of the memories in the background."""

    link_alike: bool = Field(True, description="Whether memories are linked to those whose vectors are nearest.")
    names_by: Literal["rules", "sudachi"] = Field(
        "rules", description="What finds names that nobody marked or knows: light rules alone, or SudachiPy's dictionary beside them."
    )
    ask_model: bool = Field(
        False,
        description="Whether the chat model of `llm` names people and relations in memories that are neither private nor secret.",
    )
    alike_from: float = Field(0.86, ge=0, le=1, description="From which cosine on two memories are linked as alike.")


class Usage(Group):
    """Which memories are used."""

    enabled: bool = Field(True, description="Whether it is counted how often `recall` shows a memory (`usage_count`, `last_used_at`).")


class Decay(Group):
    """How much fresher, more important and more used memories go before others. Only the order changes, never what is kept."""

    weight: float = Field(0.0, ge=0, le=2, description="Weight of a memory's retention in the fused score. 0 turns it off.")
    half_life_days: float = Field(
        30, gt=0, le=36_500, description="After how many days an unused memory of ordinary importance counts half."
    )


class Settings(Group):
    """Everything that config.json may say. Every key has a default; an empty file is a good one."""

    embeddings_model: ModelName | None = Field(
        "cl-nagoya/ruri-v3-30m", description="Embedding model: a Hugging Face name or a directory. `null`: none, on purpose."
    )
    embeddings_device: Literal["cpu", "cuda", "auto"] = Field(
        "cpu", description="Where the models run; `auto` takes a GPU if there is one."
    )
    inference_backend: Literal["torch", "onnx"] = Field(
        "torch", description="What runs the models. `onnx` wants them exported once, by `memory-mcp models export-onnx`."
    )
    onnx_precision: Literal["fp32", "int8"] = Field(
        "fp32", description="Which of the exported weights `onnx` takes: `int8` is smaller and quicker, and ranks a little otherwise."
    )
    embeddings_class: ModelName | None = Field(
        None,
        description="A LangChain `Embeddings` class to use instead of a local model, as `package.module:Class`; "
        "`embeddings_model` then only names it.",
    )
    embeddings_arguments: dict[str, Any] = Field({}, description="Arguments that `embeddings_class` is called with.")
    embeddings_languages: list[str] | None = Field(
        None,
        min_length=1,
        description="Languages that the embedding model knows (`ja`, `en`); `null`: by the table of known models, else all.",
    )
    reranker_model: ModelName | None = Field(
        "hotchpotch/japanese-reranker-xsmall-v2", description="Cross-encoder: a name or a directory. `null`: none, on purpose."
    )
    reranker_languages: list[str] | None = Field(None, min_length=1, description="The same for the cross-encoder.")
    rerank_deadline_ms: int = Field(
        600,
        ge=0,
        description="Until when after its arrival a call may rerank, in milliseconds; past it the fused order stands. 0: no limit.",
    )
    reranker_top_n: int = Field(5, ge=1, le=50, description="How many memories `recall` answers with when the call doesn't say.")
    server_host: str = Field("127.0.0.1", min_length=1, description="Address to listen on. Needs a restart.")
    server_port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one. Needs a restart.")
    vector_rebuild: VectorRebuild = Field(VectorRebuild(), description="Background rebuilding of vector indexes.")
    upkeep: Upkeep = Field(Upkeep(), description="When the chores of the background are done.")
    retention: Retention = Field(Retention(), description="How long memories are kept. Only the trash is emptied unless more is asked for.")
    timezone: Annotated[str, AfterValidator(_known_timezone)] = Field(
        "Asia/Tokyo", description="IANA time zone in which times are shown and words such as 昨日 are understood."
    )
    language: Literal["auto", "ja", "en"] = Field(
        "auto",
        description="Language of `ago` and the like; `auto`: the client's `Accept-Language`, else that of its query, else of the memory.",
    )
    toolsets: list[Toolset] = Field(["core"], min_length=1, description="Which groups of MCP tools are offered. Needs a restart.")
    on_missing_persona: Literal["default", "error", "auto"] = Field(
        "default",
        description="A request that names no persona: `default` serves the persona `default`, `error` refuses, "
        "`auto` serves `default` as long as no other persona exists.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Allows listening beyond this machine without tokens. Everyone who reaches the port reads and writes all. "
        "Means nothing once there are tokens. Needs a restart.",
    )
    rate_limit: RateLimit = Field(RateLimit(), description="How many calls one token, or one address without a token, may make.")
    allowed_hosts: list[str] = Field(
        [],
        description="Further names by which clients may address the server (`Host` header), such as `memory` or `*.lan`. Needs a restart.",
    )
    fusion: Fusion = Field(Fusion(), description="How lexical and dense scores become one order.")
    context: Context = Field(Context(), description="What `get_context` shows.")
    long_texts: LongTexts = Field(LongTexts(), description="How a long memory is split into pieces that get a vector each.")
    min_score: float = Field(
        0.0, ge=0, description="Hits that score less are left out of `recall`; `best_score` then tells the best. 0: none."
    )
    min_scores: dict[ModelName, Annotated[float, Field(ge=0, le=1)]] = Field(
        {},
        description="The same for one model, by its name: a cross-encoder's score, or an embedding model's cosine. Goes before `min_score`.",
    )
    calls: Calls = Field(Calls(), description="How many calls are answered at once, and how many may wait.")
    backup: Backup = Field(Backup(), description="Backups of each persona, once a day.")
    encryption: Encryption = Field(Encryption(), description="Encryption at rest.")
    privacy: Privacy = Field(Privacy(), description="What becomes of what is private in a text before it is stored.")
    summaries: Summaries = Field(Summaries(), description="Summaries of sessions and days, made in the background.")
    llm: Llm = Field(Llm(), description="A chat model for the background.")
    graph: Graph = Field(Graph(), description="What the knowledge graph makes of the memories in the background.")
    usage: Usage = Field(Usage(), description="Which memories are used.")
    decay: Decay = Field(Decay(), description="How age, importance and use count in the order of a recall.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much the server's log says.")

    @property
    def zone(self) -> ZoneInfo:
        """`timezone` as an object."""
        return ZoneInfo(self.timezone)


NEEDS_RESTART = frozenset({"server_host", "server_port", "toolsets", "allow_anonymous", "allowed_hosts", "encryption"})


def restart_needed(old: Settings, new: Settings) -> list[str]:
    """The keys that changed and take effect only after a restart."""
    return sorted(key for key in NEEDS_RESTART if getattr(old, key) != getattr(new, key))


def documented_keys(group: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(dotted key, default, description) of every setting: what docs/configuration.md must say."""
    for name, spec in group.model_fields.items():
        if isinstance(spec.annotation, type) and issubclass(spec.annotation, Group):
            yield from documented_keys(spec.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", spec.default, spec.description or ""
