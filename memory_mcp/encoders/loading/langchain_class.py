"""Loads a LangChain `Embeddings` class named by `embeddings_class`, such as that of an API, instead of a local model."""

import hashlib
import importlib
import json
import re
from typing import TYPE_CHECKING, Any

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.failures import breaker_of_service, first_line
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.extras import require
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

# A service mostly waits for the network, and a stuck call must not occupy the local models' workers.
WORKERS = 4

# Arguments that say how to reach a model and not which model it is: changing them must not embed everything again.
_CONNECTION_ARGUMENT = re.compile(
    r"key|token|secret|password|credential|timeout|retr|url|endpoint|base$|host|port|proxy|proxies|headers|batch|chunk_size|progress|device"
)


def construct(path: str, arguments: dict[str, Any]) -> "Embeddings":
    """An instance of the class at `package.module:Class`.

    Raises:
        NotInstalled: LangChain is not installed.
        EncoderFailed: the class does not exist, is not a subclass of `Embeddings`, or rejects the arguments.
    """
    what = sentence("embeddings_class {} can't be used", path)
    require("langchain", what)
    # LangChain's core takes half a second to import, and is needed only to load a model.
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415

    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise EncoderFailed(what, "it has the wrong form", "Write it as package.module:Class, such as langchain_openai:OpenAIEmbeddings")
    try:
        embeddings_class = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise EncoderFailed(
            what, "{}: {}", "Install its package here, or correct the name", type(error).__name__, first_line(error)
        ) from error
    if not (isinstance(embeddings_class, type) and issubclass(embeddings_class, Embeddings)):
        raise EncoderFailed(what, "it is not a subclass of langchain_core.embeddings.Embeddings")
    try:
        return embeddings_class(**arguments)
    except Exception as error:  # each class raises its own errors
        raise EncoderFailed(what, "it rejects embeddings_arguments: {}: {}", "", type(error).__name__, first_line(error)) from error


def generation_of(name: str, path: str, arguments: dict[str, Any], dimension: int) -> str:
    """Class, model and the arguments that shape the vectors, without keys, addresses and time limits."""
    shaping = {key: value for key, value in arguments.items() if not _CONNECTION_ARGUMENT.search(key.lower())}
    shape = hashlib.sha256(json.dumps([path, shaping], sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{name}@{shape}:{dimension}:class"


def embedder_of(model: "Embeddings", identity: Identity, caches: Caches) -> PooledEmbedder:
    """An embedder with its own workers and time limits."""
    return PooledEmbedder(model, identity, ModelPool(WORKERS, bulk_share=1), caches, breaker_of_service(), owns_pool=True)
