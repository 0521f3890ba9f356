"""From settings to a model on another server, with its own workers and time limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_mcp.config.reading import service_key
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.centers import centers_of
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.failures import CircuitBreaker
from memory_mcp.encoders.model_families import ranking_of, traits_of
from memory_mcp.encoders.remote.connection import Connection
from memory_mcp.encoders.remote.known_models import fingerprint
from memory_mcp.encoders.remote.models import BULK_SECONDS, QUERY_SECONDS, RemoteCrossEncoder, RemoteEmbeddings
from memory_mcp.encoders.reranking import BatchLimits, PooledReranker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.language.budget import estimate_tokens

PAUSE_SECONDS = 5.0
WORKERS = 8  # they wait for the network
BATCH_CHARACTERS = 100_000
MAX_TEXT_TOKENS, MAX_PAIR_TOKENS = 8_192, 512
MARGIN_TOKENS = 8  # special tokens, and what an estimate may miss


class _Elsewhere:
    """What a model on another server has beyond one here: workers of its own, and a connection."""

    _workers: ModelPool
    _remote: RemoteEmbeddings | RemoteCrossEncoder

    @property
    def changed(self) -> bool:
        """Whether another model answers now, so that this one must be loaded again."""
        return self._remote.changed

    def close(self) -> None:
        """Stops taking calls."""
        self._workers.close(wait=False)
        self._remote.close()


class RemoteEmbedder(_Elsewhere, PooledEmbedder):
    """An embedder whose model runs on another server."""

    def __init__(self, model: RemoteEmbeddings, identity: Identity, caches: Caches, breaker: CircuitBreaker) -> None:
        self._workers = ModelPool(WORKERS, bulk_share=1)
        self._remote = model
        # One place in each batch is the probe's.
        size = max(model.served.batch - 1, 1)
        super().__init__(model, identity, self._workers, caches, breaker, model.embed_queries, batch=size, characters=BATCH_CHARACTERS)
        self.backend = model.served.software


class RemoteReranker(_Elsewhere, PooledReranker):
    """A reranker whose model runs on another server: one call for all pairs of a query."""

    def __init__(self, model: RemoteCrossEncoder, name: str, caches: Caches, breaker: CircuitBreaker) -> None:
        self._workers = ModelPool(WORKERS, bulk_share=1)
        self._remote = model
        served = model.served
        traits = traits_of(served.model)
        scores = " ".join(f"{score:.2f}" for score in model.probe)
        super().__init__(
            model,
            name,
            self._workers,
            caches,
            spread=model.measured_spread(traits.languages),
            fingerprint=f"{served.identity}:{scores}",
            traits=traits.with_known_prefixes(),
            max_tokens=min(served.max_tokens or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS),
            limits=BatchLimits(served.batch, served.batch, BATCH_CHARACTERS),
            breaker=breaker,
        )
        self.backend = served.software


def load_embedder(settings: Settings, name: str, url: str, caches: Caches, directory: Path | None) -> RemoteEmbedder:
    """Asks the server at `url` what it runs, and embeds a probe text. `directory` keeps what is known of models elsewhere.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
    """
    breaker = CircuitBreaker(QUERY_SECONDS, BULK_SECONDS, PAUSE_SECONDS)
    connection = Connection(name, url, service_key("embeddings"), "MEMORY_MCP_EMBEDDINGS_KEY", breaker)
    with _closed_on_failure(connection):
        model = RemoteEmbeddings(connection, name, settings.embeddings_api, lambda model: traits_of(model).prefixes)
        served, traits = model.served, traits_of(model.served.model)
        room = MARGIN_TOKENS + estimate_tokens(traits.prefixes.document)
        limit = max(min(served.max_tokens, MAX_TEXT_TOKENS) - room, room) if served.max_tokens else None
        weights = fingerprint(served.identity, model.probe, directory)
        generation = f"{name}@{weights}:{model.dimension}:{traits.prefixes.version}"
        centers = centers_of(model.embed_query, model.embed_documents) if ranking_of(name).apart else None
        return RemoteEmbedder(model, Identity(name, model.dimension, generation, traits, limit, centers), caches, breaker)


def load_reranker(settings: Settings, name: str, url: str, caches: Caches) -> RemoteReranker:
    """The same for the cross-encoder, with a probe pair.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
    """
    breaker = CircuitBreaker(QUERY_SECONDS, BULK_SECONDS, PAUSE_SECONDS)
    connection = Connection(name, url, service_key("reranker"), "MEMORY_MCP_RERANKER_KEY", breaker)
    with _closed_on_failure(connection):
        return RemoteReranker(RemoteCrossEncoder(connection, name, settings.reranker_api), name, caches, breaker)


@contextmanager
def _closed_on_failure(connection: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
