"""From settings to a model on another server, with its own workers and time limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from memory_mcp.config.reading import service_key
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.centers import measured
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.failures import CircuitBreaker, breaker_of_service
from memory_mcp.encoders.model_families import traits_of
from memory_mcp.encoders.remote.connection import Connection
from memory_mcp.encoders.remote.known_models import fingerprint
from memory_mcp.encoders.remote.models import RemoteCrossEncoder, RemoteEmbeddings
from memory_mcp.encoders.reranking import BatchLimits, PooledReranker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.language.budget import estimate_tokens

WORKERS = 8  # they wait for the network
BATCH_CHARACTERS = 100_000
MAX_TEXT_TOKENS, MAX_PAIR_TOKENS = 8_192, 512
MARGIN_TOKENS = 8  # special tokens, and what an estimate may miss


def load_embedder(settings: Settings, name: str, url: str, caches: Caches, directory: Path | None) -> PooledEmbedder:
    """Asks the server at `url` what it runs, and embeds a probe text. `directory` keeps what is known of models elsewhere.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
    """
    breaker = breaker_of_service()
    with _connected(name, url, "embeddings", breaker) as connection:
        model = RemoteEmbeddings(connection, name, settings.embeddings_api, lambda model: traits_of(model).prefixes)
        served, traits = model.served, traits_of(model.served.model)
        room = MARGIN_TOKENS + estimate_tokens(traits.prefixes.document)
        limit = max(min(served.max_tokens, MAX_TEXT_TOKENS) - room, room) if served.max_tokens else None
        weights = fingerprint(served.identity, model.probe, directory)
        generation = f"{name}@{weights}:{model.dimension}:{traits.prefixes.version}"
        identity = measured(Identity(name, model.dimension, generation, traits, limit), model)
        embedder = PooledEmbedder(
            model,
            identity,
            ModelPool(WORKERS, bulk_share=1),
            caches,
            breaker,
            model.embed_queries,
            batch=max(served.batch - 1, 1),  # one place is the probe's
            characters=BATCH_CHARACTERS,
            owns_pool=True,
        )
        embedder.backend = served.software
        return embedder


def load_reranker(settings: Settings, name: str, url: str, caches: Caches) -> PooledReranker:
    """The same for the cross-encoder, with a probe pair: one call for all pairs of a query.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
    """
    breaker = breaker_of_service()
    with _connected(name, url, "reranker", breaker) as connection:
        model = RemoteCrossEncoder(connection, name, settings.reranker_api)
        served, traits = model.served, traits_of(model.served.model)
        scores = " ".join(f"{score:.2f}" for score in model.probe)
        reranker = PooledReranker(
            model,
            name,
            ModelPool(WORKERS, bulk_share=1),
            caches,
            spread=model.measured_spread(traits.languages),
            fingerprint=f"{served.identity}:{scores}",
            traits=traits.with_known_prefixes(),
            max_tokens=min(served.max_tokens or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS),
            limits=BatchLimits(served.batch, served.batch, BATCH_CHARACTERS),
            breaker=breaker,
            owns_pool=True,
        )
        reranker.backend = served.software
        return reranker


@contextmanager
def _connected(name: str, url: str, service: Literal["embeddings", "reranker"], breaker: CircuitBreaker) -> Iterator[Connection]:
    """A connection for a model, closed again where the model can't be loaded."""
    connection = Connection(name, url, service_key(service), f"MEMORY_MCP_{service.upper()}_KEY", breaker)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
