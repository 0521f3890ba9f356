"""The keys of config.json: one frozen tree, each key with a default, a range and a description."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, create_model, model_validator

from memory_mcp.config.group import Group, Keys
from memory_mcp.config.values import HostAddress, ModelName, PublicPath, SecureAddress, ServiceAddress, Timezone, VendorName
from memory_mcp.feature import modules

Toolset = Literal["core", "upkeep", "compat", "graph", "experience"]
PrivacyMode = Literal["off", "flag", "redact"]
G = TypeVar("G", bound=Group)
_BROUGHT: tuple[Keys, ...] = tuple(module.SETTINGS for module in modules("settings"))


class VectorRebuild(Group):
    """When an index is rebuilt in the background. A write is always indexed at once, regardless of this."""

    mode: Literal["idle", "manual", "auto"] = Field(
        "idle", description="`idle`: while the server is idle; `auto`: as soon as needed; `manual`: only on request."
    )
    idle_seconds: float = Field(30, ge=0, description="How long the server must be idle before an idle rebuild, in seconds.")
    min_interval: float = Field(120, ge=0, description="The least time between two rebuilds of one persona, in seconds.")


class Fusion(Group):
    """How the candidates of all sources are ranked together."""

    dense_weight: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Weight of the embedding relative to the lexical score. `null`: what suits the model, 0.65 with prefixes for questions and texts and 0.5 without.",
    )
    date_boost: float = Field(
        1.0, ge=0, le=2, description="Added to the score of a memory from a date that the query names. 0 turns it off."
    )
    speaker_boost: float = Field(
        0.2, ge=0, le=2, description="Added to the fused score of a memory whose `source` the query names. 0 turns it off."
    )
    assistant_weight: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Weight of what an assistant, the system or a tool said (its `source`), unless the question asks for what the assistant said. 1 turns it off.",
    )
    session_weight: float = Field(
        0.3,
        ge=0,
        le=2,
        description="Weight of the lexical scores of other memories of the same session. 0 turns it off.",
    )
    graph_weight: float = Field(
        0.2,
        ge=0,
        le=2,
        description="Weight of the entities shared with the best hits, in searches without an embedding. 0 turns it off.",
    )
    graph_weight_dense: float = Field(
        0.05, ge=0, le=2, description="The same in searches with an embedding, which finds much of that itself. 0 turns it off."
    )
    judged_weight: float = Field(
        0.1,
        ge=0,
        le=1,
        description="How much judgements (`helped`, `hurt`, `stale`) add to the score of a memory or take from it, at most. 0 turns it off.",
    )
    rerank_weight: float = Field(
        0.25,
        ge=0,
        le=2,
        description="How much the cross-encoder adds to the score of a memory that it likes clearly more than the others, by one spread of its own scores, or takes from it. "
        "0 turns it off.",
    )
    candidates_per_source: int = Field(50, ge=1, le=1000, description="How many candidates each source contributes to the fusion.")


class Upkeep(Group):
    """When the background chores run, which maintain and back up a persona's memories."""

    idle_seconds: float = Field(
        20, ge=0, description="How long the server must be idle before chores run, in seconds. A chore overdue for an hour runs anyway."
    )


class OperationsLog(Group):
    """memory_operations.log, which records what was done to which memory, and never a memory's text."""

    rotation: Literal["drop", "archive", "off"] = Field(
        "drop",
        description="What becomes of the log when it has 10 MiB. `drop`: five older files are kept. `archive`: every older file is kept, compressed. "
        "`off`: it grows. Needs a restart.",
    )


Days = Annotated[float, Field(gt=0, le=36_500)]


class Retention(Group):
    """How long memories are kept. Expired ones are moved to the trash first, and later erased from there."""

    trash_days: Days | None = Field(
        30, description="Memories that have been in the trash for longer are erased for good. `null`: never automatically."
    )
    conversation_days: Days | None = Field(None, description="Conversations unchanged for so long are moved to the trash. `null`: never.")
    experience_days: Days | None = Field(None, description="The same for experiences.")
    fact_days: Days | None = Field(None, description="The same for facts.")
    summary_days: Days | None = Field(None, description="The same for summaries.")
    document_days: Days | None = Field(None, description="The same for documents.")
    keep_importance: float | None = Field(
        0.8, ge=0, le=1, description="Memories of at least this importance are never removed automatically. `null`: no exception."
    )
    keep_tags: list[str] = Field(["keep"], description="Memories with one of these tags are never removed automatically.")


class Context(Group):
    """How many memories of each kind `get_context` shows, 10 at most in all. The topic gets up to 2 of the places that nobody takes."""

    core: int = Field(
        3,
        ge=0,
        le=10,
        description="How many memories of what must never be forgotten are shown, however old: the most important first. 0 turns it off.",
    )
    core_importance: float = Field(
        0.8, gt=0.5, le=1, description="From which importance on a memory is one of these. A memory with the tag `keep` always is."
    )
    recent: int = Field(5, ge=0, le=10, description="How many of the latest memories are shown.")
    semantic: int = Field(3, ge=0, le=10, description="How many memories that match the topic are shown.")
    summaries: int = Field(1, ge=0, le=10, description="How many of the latest summaries are shown.")
    upcoming: int = Field(3, ge=0, le=10, description="How many memories of what is to come are shown, the nearest first. 0 turns it off.")
    upcoming_days: Days = Field(14, description="How far ahead these may be, in days.")
    mmr_lambda: float = Field(
        0.7, ge=0, le=1, description="Weight of relevance against diversity among the memories that match the topic. 1: relevance only."
    )


class Backup(Group):
    """Backups of each persona, once a day."""

    enabled: bool = Field(False, description="Makes a backup of each persona every day, unless nothing was written since the last one.")
    directory: str | None = Field(
        None,
        min_length=1,
        description="Where backups are kept, preferably on another disk. `null`: in `.backups` inside the data directory.",
    )
    hour: int = Field(4, ge=0, le=23, description="The hour of the day after which backups are made, in `timezone`.")
    interval_minutes: float | None = Field(
        None,
        ge=1,
        le=1440,
        description="The least time between two backups of a persona that is written to, instead of a day. Of days that are over, the last is kept.",
    )
    keep_days: int = Field(30, ge=1, le=36_500, description="How long a backup is kept, in days. A persona's newest backup is always kept.")


class Encryption(Group):
    """Encryption at rest. `memory-mcp encrypt` encrypts existing personas."""

    enabled: bool = Field(False, description="Encrypts new personas from their first byte. Needs a restart.")
    key_file: str | None = Field(
        None, min_length=1, description="The file with the master key, readable only by its owner. Needs a restart."
    )
    keyring: bool = Field(False, description="Reads the master key from the system's keyring. Needs a restart.")


class LongTexts(Group):
    """How a long memory is split into pieces with a vector each. A short memory is never split."""

    chunk_tokens: int = Field(
        256, ge=32, le=100_000, description="The maximum length of a piece, in tokens of the embedding model; less if the model reads less."
    )
    overlap_tokens: int = Field(32, ge=0, le=50_000, description="About how many tokens adjacent pieces share, in whole sentences.")


class RateLimit(Group):
    """How many calls one token, or one address without a token, may make."""

    per_minute: int = Field(0, ge=0, le=1_000_000, description="Calls per minute, on average. 0: no limit.")
    burst: int = Field(100, ge=1, le=1_000_000, description="Calls that may come at once before the limit per minute applies.")


class OAuth(Group):
    """OAuth 2.1: clients that sign in by themselves, beside tokens."""

    authorization_server: Literal["none", "built_in", "external"] = Field(
        "none", description="Who issues the tokens of OAuth: nobody, this server, or another one (`oauth.issuer`)."
    )
    public_url: HostAddress | None = Field(
        None, description="The address by which clients reach this server, such as `https://memory.example.org`. Required for OAuth."
    )
    dynamic_registration: bool = Field(
        True, description="`built_in`: whether clients that have no metadata document of their own may register themselves."
    )
    issuer: SecureAddress | None = Field(None, description="`external`: the issuer, exactly as its tokens and its metadata name it.")
    jwks_url: SecureAddress | None = Field(None, description="`external`: where the keys are that sign its tokens (JWT).")
    algorithm: Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"] = Field(
        "RS256", description="`external`: the only algorithm of a signature that is accepted."
    )
    introspection_url: SecureAddress | None = Field(
        None, description="`external`: where it is asked about a token, instead of `oauth.jwks_url`."
    )
    client_id: str | None = Field(None, min_length=1, description="`oauth.introspection_url`: as whom this server asks there.")
    client_secret_file: str | None = Field(None, min_length=1, description="`oauth.introspection_url`: a file with the secret for that.")
    audience: str | None = Field(
        None,
        min_length=1,
        description="`external`: the `aud` that its tokens must have. `null`: the address of MCP, `oauth.public_url` + `/mcp`.",
    )
    personas_claim: str = Field("personas", min_length=1, description="`external`: the claim that says which personas a token is for.")
    personas: dict[str, list[str] | Literal["all"]] = Field(
        {},
        description="`external`: the personas by a value of that claim, such as a user or a group. `{}`: the claim names personas itself.",
    )
    scopes_claim: str = Field("scope", min_length=1, description="`external`: the claim with the scopes.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.authorization_server != "none" and not self.public_url:
            raise ValueError("OAuth requires oauth.public_url")
        if self.authorization_server == "external":
            if not self.issuer or (self.jwks_url is None) == (self.introspection_url is None):
                raise ValueError("an external server requires oauth.issuer, and either oauth.jwks_url or oauth.introspection_url")
            if self.introspection_url and not (self.client_id and self.client_secret_file):
                raise ValueError("oauth.introspection_url requires oauth.client_id and oauth.client_secret_file")
        return self

    @property
    def is_on(self) -> bool:
        """Whether tokens of OAuth are accepted."""
        return self.authorization_server != "none"


class Cell(Group):
    """One of many servers that share the personas: each has those whose name's CRC-32, modulo `cell.of`, is `cell.index`."""

    index: int = Field(0, ge=0, le=65_535, description="Which cell this server is, from 0. Needs a restart.")
    of: int = Field(1, ge=1, le=65_536, description="How many cells there are. 1: this server has all personas. Needs a restart.")
    address: str | None = Field(
        None,
        pattern=r"^https?://[^\s{}]*\{cell\}[^\s{}]*$",
        description="The address of each cell, with `{cell}` for its number. Refusals name the owner's, and `memory-mcp` follows it. `null`: they don't.",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.index >= self.of:
            raise ValueError("cell.index counts from 0 and must be less than cell.of")
        return self


class Calls(Group):
    """How many calls run at the same time and how many may wait. Further calls are refused, with `Retry-After`."""

    at_once: int = Field(100, ge=1, le=100, description="Calls that run at the same time.")
    at_once_per_persona: int = Field(50, ge=1, le=100, description="The same for one persona, and for one token.")
    waiting: int = Field(400, ge=0, le=100_000, description="Calls that may wait; further calls are refused with 503.")
    waiting_per_persona: int = Field(
        200, ge=0, le=100_000, description="The same for one persona, and for one token; further calls are refused with 429."
    )


class Privacy(Group):
    """What happens to private data in a text before it is stored: `off` keeps it, `flag` keeps it and tags the memory, `redact` stores a placeholder."""

    api_key: PrivacyMode = Field("redact", description="API keys, tokens, private keys, and passwords that look random.")
    url_credentials: PrivacyMode = Field("redact", description="The user and password in `scheme://user:password@host`.")
    credit_card: PrivacyMode = Field("redact", description="Credit card numbers.")
    my_number: PrivacyMode = Field("redact", description="マイナンバー.")
    ssn: PrivacyMode = Field("redact", description="US social security numbers.")
    email: PrivacyMode = Field("flag", description="E-mail addresses.")
    phone: PrivacyMode = Field("flag", description="Telephone numbers.")
    ip_address: PrivacyMode = Field("off", description="IP addresses.")


class Summaries(Group):
    """Summaries of sessions and days, made in the background."""

    enabled: bool = Field(True, description="Whether summaries of sessions and days are made. Existing ones are kept.")
    min_memories: int = Field(5, ge=2, le=1000, description="The least number of memories in a session or a day that is summarized.")
    quiet_minutes: float = Field(30, ge=0, description="How long a session must be without new memories before it is summarized.")
    interval_minutes: float = Field(10, ge=0.01, description="The least time between two checks of one persona.")


class ModelVendor(Group):
    """A server of chat models."""

    url: ServiceAddress = Field(description="Its address, up to what comes before `/chat/completions`: `https://api.openai.com/v1`.")
    key: str | None = Field(
        None, pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]*|keyring(:[^\s:]+)?)$", description="Where its key is, never the key."
    )
    wire: Literal["openai"] = Field("openai", description="What it speaks.")


class Llm(Group):
    """An optional chat model for background work. Without one, summaries are made from sentences of the memories."""

    chat_class: ModelName | None = Field(
        None,
        description="A LangChain chat model that writes the summaries, as `package.module:Class`. It receives the text of memories. `null`: none.",
    )
    arguments: dict[str, Any] = Field({}, description="The arguments of `llm.chat_class`.")
    timeout_seconds: float = Field(60, gt=0, le=3600, description="The time limit of one answer of the chat model.")
    vendors: dict[VendorName, ModelVendor] = Field(
        {},
        description="Servers of chat models that speak OpenAI's API, by a name of yours: `url`, and `key` as `env:NAME`, `keyring` or `keyring:NAME`.",
    )


class Usage(Group):
    """Counting how often memories are used."""

    enabled: bool = Field(True, description="Whether to count how often `recall` shows a memory (`usage_count`, `last_used_at`).")


class Decay(Group):
    """How much newer, more important and more often used memories rank higher. Only the order changes, never what is kept."""

    weight: float = Field(0.0, ge=0, le=2, description="Weight of a memory's retention in the fused score. 0 turns it off.")
    half_life_days: float = Field(
        30, gt=0, le=36_500, description="After how many days the retention of an unused memory of ordinary importance has halved."
    )


class OwnSettings(Group):
    """The keys of config.json that are no feature's. Every key has a default; an empty file is valid."""

    embeddings_model: ModelName | None = Field(
        "cl-nagoya/ruri-v3-30m",
        description="Embedding model: a Hugging Face name, a directory, or `multilingual-e5-small` (from a package). `null`: none.",
    )
    embeddings_fallback: ModelName | None = Field(
        "multilingual-e5-small",
        description="The embedding model that is used while `embeddings_model` is absent; every answer says so. `null`: none, words alone.",
    )
    embeddings_device: Literal["cpu", "cuda", "auto"] = Field(
        "cpu", description="The device of both models; `auto` uses a GPU if there is one."
    )
    inference_backend: Literal["auto", "torch", "onnx"] = Field(
        "auto",
        description="The runtime of both models. `auto`: `onnx`, for which the server exports them once, or else `torch`. "
        "`onnx` requires exported models (`memory-mcp models export-onnx`).",
    )
    onnx_precision: Literal["auto", "fp32", "int8"] = Field(
        "auto",
        description="Which exported weights are used: `int8` is smaller and faster, and ranks slightly differently. "
        "`auto`: `int8` for the cross-encoder where the processor and its ranking speak for it, otherwise `fp32`.",
    )
    embeddings_class: ModelName | None = Field(
        None,
        description="A LangChain `Embeddings` class to use instead of a local model, as `package.module:Class`; "
        "`embeddings_model` is then only its name.",
    )
    embeddings_arguments: dict[str, Any] = Field({}, description="The arguments of `embeddings_class`.")
    embeddings_url: ServiceAddress | None = Field(
        None,
        description="The address of a server that runs the embedding model, such as `http://gpu:8080`; `embeddings_model` is its name there. "
        "`null`: the model runs here.",
    )
    embeddings_api: Literal["auto", "tei", "openai"] = Field(
        "auto",
        description="What `embeddings_url` speaks: `tei` (Text Embeddings Inference), `openai` (`/v1/embeddings`). `auto`: it is asked.",
    )
    embeddings_languages: list[str] | None = Field(
        None,
        min_length=1,
        description="Languages that the embedding model knows (`ja`, `en`). `null`: from the table of known models, or else all.",
    )
    reranker_model: ModelName | None = Field(
        "hotchpotch/japanese-reranker-xsmall-v2", description="Cross-encoder: a Hugging Face name or a directory. `null`: none."
    )
    reranker_url: ServiceAddress | None = Field(
        None, description="The address of a server that runs the cross-encoder; `reranker_model` is its name there. `null`: it runs here."
    )
    reranker_api: Literal["auto", "tei", "cohere"] = Field(
        "auto", description="What `reranker_url` speaks: `tei`, `cohere` (`/v1/rerank`, as vLLM, Infinity and Jina). `auto`: it is asked."
    )
    reranker_languages: list[str] | None = Field(None, min_length=1, description="The same for the cross-encoder.")
    rerank_deadline_ms: int = Field(
        600,
        ge=0,
        description="How long after its arrival a call may rerank, in milliseconds. After that, the fused order is kept. 0: no limit.",
    )
    reranker_top_n: int = Field(5, ge=1, le=50, description="How many memories `recall` returns if the call has no `top_k`.")
    server_host: str = Field("127.0.0.1", min_length=1, description="Address to listen on. Needs a restart.")
    server_port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one. Needs a restart.")
    vector_rebuild: VectorRebuild = Field(VectorRebuild(), description="Background rebuilding of vector indexes.")
    upkeep: Upkeep = Field(Upkeep(), description="When the background chores run.")
    retention: Retention = Field(Retention(), description="How long memories are kept. By default, only the trash is emptied.")
    timezone: Timezone = Field("Asia/Tokyo", description="IANA time zone in which times are shown and words such as 昨日 are interpreted.")
    language: Literal["auto", "ja", "en"] = Field(
        "auto",
        description="Language of `ago` and similar texts. `auto`: the client's `Accept-Language`, or else that of the query, or else of the memory.",
    )
    toolsets: list[Toolset] = Field(["core"], min_length=1, description="Which groups of MCP tools are offered. Needs a restart.")
    on_missing_persona: Literal["default", "error", "auto"] = Field(
        "default",
        description="What a request without a persona gets: `default`: the persona `default`; `error`: an error; "
        "`auto`: `default` as long as no other persona exists.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Allows listening on other than loopback addresses without tokens. Everyone who can reach the port can then read and "
        "write everything. No effect once there are tokens. Needs a restart.",
    )
    rate_limit: RateLimit = Field(RateLimit(), description="How many calls one token, or one address without a token, may make.")
    oauth: OAuth = Field(OAuth(), description="OAuth 2.1: clients that sign in by themselves, beside tokens.")
    allowed_hosts: list[str] = Field(
        [],
        description="Additional host names of the server (`Host` header), such as `memory` or `*.lan`. Needs a restart.",
    )
    public_path: PublicPath = Field(
        "",
        description="The path under which a proxy serves the dashboard, such as `/memory`, if the proxy can't send `X-Forwarded-Prefix`.",
    )
    fusion: Fusion = Field(Fusion(), description="How the candidates of all sources are ranked together.")
    context: Context = Field(Context(), description="What `get_context` shows.")
    long_texts: LongTexts = Field(LongTexts(), description="How a long memory is split into pieces with a vector each.")
    min_score: float = Field(
        0.0, ge=0, description="`recall` leaves out hits with a lower score; without hits, `best_score` gives the best. 0: none."
    )
    min_scores: dict[ModelName, Annotated[float, Field(ge=0, le=1)]] = Field(
        {},
        description="The same for one model, by name: a cross-encoder's score, or an embedding model's cosine. Overrides `min_score`.",
    )
    calls: Calls = Field(Calls(), description="How many calls run at the same time, and how many may wait.")
    backup: Backup = Field(Backup(), description="Backups of each persona, once a day.")
    operations_log: OperationsLog = Field(OperationsLog(), description="The log of all operations.")
    encryption: Encryption = Field(Encryption(), description="Encryption at rest.")
    privacy: Privacy = Field(Privacy(), description="What happens to private data in a text before it is stored.")
    summaries: Summaries = Field(Summaries(), description="Summaries of sessions and days, made in the background.")
    llm: Llm = Field(Llm(), description="An optional chat model for background work.")
    usage: Usage = Field(Usage(), description="Counting how often memories are used.")
    decay: Decay = Field(Decay(), description="How age, importance and use affect the order of `recall`.")
    cell: Cell = Field(Cell(), description="One of many servers that share the personas.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="The level of the server's log.")
    log_format: Literal["text", "json"] = Field("text", description="How the server's log is written: as text, or one JSON object a line.")

    @model_validator(mode="after")
    def _one_embedder(self) -> Self:
        if self.embeddings_url and self.embeddings_class:
            raise ValueError("embeddings_url and embeddings_class exclude each other")
        return self

    @model_validator(mode="after")
    def _fit_for_cells(self) -> Self:
        if self.cell.of > 1 and self.on_missing_persona == "auto":
            raise ValueError("a cell sees its own personas only: on_missing_persona must be default or error")
        if self.cell.of > 1 and self.oauth.authorization_server == "built_in":
            raise ValueError("a cell knows its own clients only: oauth.authorization_server must be none or external")
        return self

    @model_validator(mode="after")
    def _fit_for_features(self) -> Self:
        for brought in _BROUGHT:
            brought.check(self)
        return self

    @property
    def host_names(self) -> list[str]:
        """`allowed_hosts`, and the host of `oauth.public_url`."""
        return [*self.allowed_hosts, *([urlsplit(self.oauth.public_url).netloc] if self.oauth.public_url else [])]

    @property
    def zone(self) -> ZoneInfo:
        """`timezone` as an object."""
        return ZoneInfo(self.timezone)

    def of(self, group: type[G]) -> G:
        """The keys of a feature."""
        return next(value for value in vars(self).values() if isinstance(value, group))


if TYPE_CHECKING:
    Settings = OwnSettings  # what features bring is asked for by `of`
else:
    Settings = create_model("Settings", __base__=OwnSettings, **{name: spec for brought in _BROUGHT for name, spec in brought.keys.items()})

NEEDS_RESTART = frozenset(
    {"server_host", "server_port", "toolsets", "allow_anonymous", "allowed_hosts", "operations_log", "encryption", "cell"}
).union(*(brought.needs_restart for brought in _BROUGHT))


def extras_needed(settings: Settings) -> list[tuple[str, str, str]]:
    """The keys whose values need an optional part of the package: each with its value and the name of the extra."""
    named = [
        ("embeddings_class", settings.embeddings_class, "langchain"),
        ("embeddings_url", settings.embeddings_url, "vectors"),
        ("llm.chat_class", settings.llm.chat_class, "langchain"),
    ]
    brought = (need for keys in _BROUGHT for need in keys.extras(settings))
    return [*((key, value, extra) for key, value, extra in named if value), *brought]


# What can't be changed over HTTP, however much a token allows: keys that run code, that send memories to a service, that name files, or that
# decide who reaches the server. A program with a stolen token must not get from memories to the machine.
ONLY_IN_THE_FILE = frozenset(
    {
        *("embeddings_class", "embeddings_arguments", "embeddings_url", "reranker_url", "llm.chat_class", "llm.arguments", "llm.vendors"),
        *("backup.directory", "encryption.enabled", "encryption.key_file", "encryption.keyring"),
        *("server_host", "allow_anonymous", "allowed_hosts"),
        *(f"oauth.{name}" for name in OAuth.model_fields),
        *(f"cell.{name}" for name in Cell.model_fields),
    }
).union(*(brought.only_in_the_file for brought in _BROUGHT))
# Their values may hold the keys of services.
SECRET_KEYS = frozenset({"embeddings_arguments", "llm.arguments", "llm.vendors"}).union(*(brought.secret for brought in _BROUGHT))


def restart_needed(old: Settings, new: Settings) -> list[str]:
    """The changed keys that take effect only after a restart."""
    return sorted(key for key in NEEDS_RESTART if getattr(old, key) != getattr(new, key))


@cache
def setting_schemas() -> Mapping[str, Mapping[str, Any]]:
    """The JSON schema of every setting, by dotted key: its type, its limits or words, its default and its description."""
    schema = Settings.model_json_schema()

    def leaves(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, spec in properties.items():
            if "$ref" in spec:
                yield from leaves(schema["$defs"][spec["$ref"].rpartition("/")[2]]["properties"], f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", {word: value for word, value in spec.items() if word != "title"}

    return MappingProxyType(dict(leaves(schema["properties"])))


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key."""
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


# The keys that people change: the documentation and the form of settings show them first, and all others behind them.
FIRST_KEYS = (
    "embeddings_model",
    "reranker_model",
    "timezone",
    "toolsets",
    "min_score",
    "server_host",
    "server_port",
    "chat.model",
    "retention.trash_days",
    "backup.directory",
)


def documented_keys(group: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(dotted key, default, description) of every setting, as docs/configuration.md, keys-search.md and keys-server.md list them."""
    for name, spec in group.model_fields.items():
        if isinstance(spec.annotation, type) and issubclass(spec.annotation, Group):
            yield from documented_keys(spec.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", spec.default, spec.description or ""
