"""From settings to loaded models: picks the backend (torch, ONNX, the package, a LangChain class, another server) and gives the model its identity."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.centers import measured
from memory_mcp.encoders.embedding import Identity, PooledEmbedder, probed_dimension
from memory_mcp.encoders.loading import automatic, availability, langchain_class
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.loading.model_registry import ModelRegistry
from memory_mcp.encoders.loading.model_slot import Loader
from memory_mcp.encoders.model_families import traits_of
from memory_mcp.encoders.models import Embedder, Reranker
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.background import BackgroundExport
from memory_mcp.encoders.onnx.export_directory import Export, Precision
from memory_mcp.encoders.onnx.models import OnnxCrossEncoder, OnnxEmbeddings
from memory_mcp.encoders.onnx.tokenization import Tokenizers
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.models import PackagedEmbeddings
from memory_mcp.encoders.remote import loading as remote
from memory_mcp.encoders.reranking import BatchLimits, PooledReranker
from memory_mcp.encoders.spread import spread_of
from memory_mcp.encoders.torch.devices import GPU_BATCH, GPU_BATCH_CHARACTERS
from memory_mcp.encoders.torch.models import TorchCrossEncoder, TorchEmbeddings
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.extras import is_installed

Pooled = TypeVar("Pooled", PooledEmbedder, PooledReranker)

# All pairs of a query in one call.
_GPU_LIMITS = BatchLimits(GPU_BATCH, GPU_BATCH, GPU_BATCH_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Exports:
    """The directory of the exported models, what exports further ones, and the tokenizers that all share."""

    directory: Path | None = None
    background: BackgroundExport | None = None
    tokenizers: Tokenizers = field(default_factory=Tokenizers)


def build_registry(
    pool: ModelPool, caches: Caches, on_change: Callable[[], None] | None = None, exports: Exports = Exports()
) -> ModelRegistry:
    """The model registry of a server. `start` it, and `close` it before the pool."""
    parts: dict[str, Any] = {"pool": pool, "caches": caches, "exports": exports}
    embedder: Loader[Embedder] = Loader(
        partial(why_missing, role="embedder", exports=exports), partial(load_embedder, **parts), partial(_is_far, exports=exports)
    )
    reranker: Loader[Reranker] = Loader(partial(why_missing, role="reranker", exports=exports), partial(load_reranker, **parts))
    return ModelRegistry(embedder, reranker, on_change)


def why_missing(settings: Settings, role: Role, exports: Exports = Exports()) -> str | None:
    """Why the configured model can't be loaded on this machine; None if it seems loadable without trying."""
    name = availability.configured(settings, role)
    if role == "embedder" and name and settings.embeddings_url and not is_installed("vectors"):
        # The vectors are kept in an index here, wherever they are made.
        return availability.not_installed(name, "embedder", "vectors").reason
    if name is None or availability.elsewhere(settings, role):
        return None
    location = export_directory.find_configured(settings, name, role, exports.directory)
    return location.reason if isinstance(location, availability.Missing) else None


def _is_far(settings: Settings, exports: Exports) -> bool:
    """Whether the configured embedder has to be downloaded from the hub."""
    name = settings.embeddings_model
    if name is None or availability.elsewhere(settings, "embedder"):
        return False
    return export_directory.find_configured(settings, name, "embedder", exports.directory) == availability.Found(None)


def load_embedder(settings: Settings, pool: ModelPool, caches: Caches, exports: Exports = Exports()) -> PooledEmbedder:
    """Loads the configured embedder, after a download if necessary, and embeds a probe text.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
        Exception: any error of a library for a model that it can't load.
    """
    name = settings.embeddings_model
    if name is None:
        raise EncoderFailed("there is no embedder to load", "embeddings_model is null")
    if settings.embeddings_class:
        return _service_embedder(settings, settings.embeddings_class, name, caches)
    if settings.embeddings_url:
        return remote.load_embedder(settings, name, settings.embeddings_url, caches, exports.directory)
    if package.is_named(name):
        return _packaged_embedder(settings, name, pool, caches)
    return _chosen(settings, name, "embedder", exports, lambda choice: _embedder(choice, name, pool, caches, exports))


def load_reranker(settings: Settings, pool: ModelPool, caches: Caches, exports: Exports = Exports()) -> PooledReranker:
    """Loads the configured reranker, after a download if necessary, and scores a probe pair.

    Raises:
        EncoderFailed: it can't be used, for the reason given.
        Exception: any error of a library for a model that it can't load.
    """
    name = settings.reranker_model
    if name is None:
        raise EncoderFailed("there is no reranker to load", "reranker_model is null")
    if settings.reranker_url:
        return remote.load_reranker(settings, name, settings.reranker_url, caches)
    return _chosen(settings, name, "reranker", exports, lambda choice: _reranker(choice, name, pool, caches, exports))


def _chosen(settings: Settings, name: str, role: Role, exports: Exports, load: Callable[[automatic.Choice], Pooled]) -> Pooled:
    """The model on the runtime that is chosen for it; its `backend` gives the reason."""
    choice = automatic.choose(settings, name, role, exports.directory, exports.background)
    try:
        model = load(choice)
    except EncoderFailed as error:
        if choice.directory is None or exports.directory is None or settings.inference_backend == "onnx":
            raise
        choice = automatic.without_export(name, role, exports.directory, error)
        model = load(choice)
    model.backend = f"{model.backend}: {choice.reason}" if model.backend else choice.backend
    return model


def _embedder(choice: automatic.Choice, name: str, pool: ModelPool, caches: Caches, exports: Exports) -> PooledEmbedder:
    model: OnnxEmbeddings | TorchEmbeddings
    limits: dict[str, Any] = {}
    if choice.directory:
        model = OnnxEmbeddings(choice.directory, choice.precision, exports.tokenizers)
        fingerprint, version = _fingerprint(model.export, choice.precision), model.export.prefix_version
        traits = traits_of(model.export.model).with_known_prefixes()  # by export.json
    else:
        directory = _directory(name, "embedder")
        traits = traits_of(name, directory)
        model = TorchEmbeddings(directory, choice.device, traits.prefixes, name)
        fingerprint, version = availability.fingerprint(directory), traits.prefixes.version
        if model.is_on_gpu:
            pool, limits = pool.for_gpu(), {"batch": GPU_BATCH, "characters": GPU_BATCH_CHARACTERS}
    generation = _generation(name, fingerprint, model.dimension, version)
    identity = measured(Identity(name, model.dimension, generation, traits, model.max_tokens), model)
    embedder = PooledEmbedder(model, identity, pool, caches, embed_queries=model.embed_queries, token_spans=model.token_spans, **limits)
    embedder.backend = model.runs_on if isinstance(model, TorchEmbeddings) else None
    return embedder


def _reranker(choice: automatic.Choice, name: str, pool: ModelPool, caches: Caches, exports: Exports) -> PooledReranker:
    predict: OnnxCrossEncoder | TorchCrossEncoder
    limits: dict[str, Any] = {}
    if choice.directory:
        predict = OnnxCrossEncoder(choice.directory, choice.precision, exports.tokenizers)
        fingerprint, traits = _fingerprint(predict.export, choice.precision), traits_of(predict.export.model)
        spread = predict.export.spread or spread_of(predict, traits.languages)
    else:
        directory = _directory(name, "reranker")
        predict = TorchCrossEncoder(directory, choice.device, name)
        fingerprint, traits = availability.fingerprint(directory), traits_of(name, directory)
        spread = spread_of(predict, traits.languages)
        if predict.is_on_gpu:
            pool, limits = pool.for_gpu(), {"limits": _GPU_LIMITS}
    facts: dict[str, Any] = {"fingerprint": fingerprint, "traits": traits.with_known_prefixes(), "max_tokens": predict.max_tokens}
    reranker = PooledReranker(predict, name, pool, caches, spread=spread, **facts, **limits)
    reranker.backend = predict.runs_on if isinstance(predict, TorchCrossEncoder) else None
    return reranker


def _service_embedder(settings: Settings, path: str, name: str, caches: Caches) -> PooledEmbedder:
    model = langchain_class.construct(path, settings.embeddings_arguments)
    dimension = probed_dimension(model, name)
    generation = langchain_class.generation_of(name, path, settings.embeddings_arguments, dimension)
    traits = traits_of(name).with_known_prefixes()  # by the class, which adds its own
    return langchain_class.embedder_of(model, measured(Identity(name, dimension, generation, traits), model), caches)


def _packaged_embedder(settings: Settings, name: str, pool: ModelPool, caches: Caches) -> PooledEmbedder:
    automatic.refuse_gpu(settings, name, f"{name} runs on the CPU")
    traits = traits_of(name)
    model = PackagedEmbeddings(_directory(name, "embedder"), traits.prefixes)
    generation = _generation(name, package.MODEL_SHA256[:8], model.dimension, traits.prefixes.version)
    identity = measured(Identity(name, model.dimension, generation, traits, model.max_tokens), model)
    return PooledEmbedder(model, identity, pool, caches, token_spans=model.token_spans)


def _generation(name: str, fingerprint: str, dimension: int, prefix_version: str) -> str:
    return f"{name}@{fingerprint}:{dimension}:{prefix_version}"


def _fingerprint(export: Export, precision: Precision) -> str:
    """The fingerprint of an export. fp32 has that of its source: the export was checked to give the same vectors as torch."""
    if precision == "fp32":
        return export.fingerprint
    return f"{export.fingerprint}-int8-{export.sha256[export_directory.FILE_NAMES['int8']][:8]}"


def _directory(name: str, role: Role) -> Path:
    location = availability.find(name, role)
    if isinstance(location, availability.Missing):
        raise EncoderFailed("{}", "", "", location.reason.rstrip("."))
    return location.directory or availability.download(name, role, show_progress=False)
