"""From settings to loaded models: which of the ways to load one is meant, and what goes with it."""

from collections.abc import Callable
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.encoders import hub, langchain_class, presence
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.languages import known_languages
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.encoders.prefixes import prefixes_for
from memory_mcp.encoders.presence import Role
from memory_mcp.encoders.protocols import Embedder, Reranker
from memory_mcp.encoders.reranking import PooledReranker
from memory_mcp.encoders.shelf import ModelShelf
from memory_mcp.encoders.slots import Loader
from memory_mcp.encoders.torch_models import LoadedCrossEncoder, load_embeddings, probed_dimension
from memory_mcp.errors import EncoderFailed


def model_shelf(pool: ModelPool, caches: Caches, on_change: Callable[[], None] | None = None) -> ModelShelf:
    """The shelf of a server. `start` it, and `close` it before the pool."""
    embedder: Loader[Embedder] = Loader(why_no_embedder, lambda settings: load_embedder(settings, pool, caches))
    reranker: Loader[Reranker] = Loader(why_no_reranker, lambda settings: load_reranker(settings, pool, caches))
    return ModelShelf(embedder, reranker, on_change)


def why_no_embedder(settings: Settings) -> str | None:
    """Why the configured embedder can't be loaded here; None when it can, as far as can be told without loading it."""
    if settings.embeddings_class or settings.embeddings_model is None:
        return None
    return presence.why_absent(settings.embeddings_model, "embedder")


def why_no_reranker(settings: Settings) -> str | None:
    """The same for the reranker."""
    return presence.why_absent(settings.reranker_model, "reranker") if settings.reranker_model else None


def load_embedder(settings: Settings, pool: ModelPool, caches: Caches) -> PooledEmbedder:
    """The configured embedder, after it has embedded something. Downloads it first if it has to.

    Raises:
        EncoderFailed: it can't be used, and says why.
        Exception: whatever a library raises at a model that it can't load.
    """
    name = settings.embeddings_model
    if name is None:
        raise EncoderFailed("there is no embedder to load", "embeddings_model is null")
    languages = known_languages(name)
    if settings.embeddings_class:
        model = langchain_class.construct(settings.embeddings_class, settings.embeddings_arguments)
        dimension = probed_dimension(model, name)
        generation = langchain_class.generation_of(name, settings.embeddings_class, settings.embeddings_arguments, dimension)
        return langchain_class.ServiceEmbedder(model, Identity(name, dimension, generation, languages), caches)
    directory = _directory(name, "embedder")
    prefixes = prefixes_for(name, directory)
    loaded = load_embeddings(directory, settings.embeddings_device, prefixes, name)
    generation = f"{name}@{presence.fingerprint(directory)}:{loaded.dimension}:{prefixes.version}"
    identity = Identity(name, loaded.dimension, generation, languages, loaded.max_tokens)
    return PooledEmbedder(loaded.model, identity, pool, caches, embed_queries=loaded.queries, token_spans=loaded.token_spans)


def load_reranker(settings: Settings, pool: ModelPool, caches: Caches) -> PooledReranker:
    """The configured reranker, after it has scored something. Downloads it first if it has to.

    Raises:
        EncoderFailed: it can't be used, and says why.
        Exception: whatever a library raises at a model that it can't load.
    """
    name = settings.reranker_model
    if name is None:
        raise EncoderFailed("there is no reranker to load", "reranker_model is null")
    directory = _directory(name, "reranker")
    predict = LoadedCrossEncoder(directory, settings.embeddings_device, name)
    return PooledReranker(
        predict,
        name,
        pool,
        caches,
        fingerprint=presence.fingerprint(directory),
        languages=known_languages(name),
        max_tokens=predict.max_tokens,
    )


def _directory(name: str, role: Role) -> Path:
    found = presence.find(name, role)
    if isinstance(found, presence.Missing):
        raise EncoderFailed(found.why.rstrip("."))
    return found.directory or hub.download(name, role, show_progress=False)
