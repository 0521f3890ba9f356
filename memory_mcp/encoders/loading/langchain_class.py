"""Any LangChain `Embeddings` class instead of a local model: one that configuration names, such as an API's."""

import hashlib
import importlib
import json
import re
from typing import TYPE_CHECKING, Any

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import Identity, PooledEmbedder, first_line
from memory_mcp.encoders.failures import Patience
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.errors import EncoderFailed

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

QUERY_SECONDS = 5.0
BULK_SECONDS = 60.0
REST_SECONDS = 5.0
# It waits for a network more than it computes, and a call that hangs must not keep the local models' workers.
WORKERS = 4

# How a model is reached, as against which model it is: changing these must not embed everything again.
_NOT_IDENTITY = re.compile(
    r"key|token|secret|password|credential|timeout|retr|url|endpoint|base$|host|port|proxy|proxies|headers|batch|chunk_size|progress|device"
)


def construct(path: str, arguments: dict[str, Any]) -> "Embeddings":
    """An instance of the class at `package.module:Class`.

    Raises:
        EncoderFailed: there is no such class, it is no `Embeddings`, or it refuses the arguments.
    """
    # LangChain's core takes half a second to import, and only who loads a model needs it.
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415

    what = f"embeddings_class {path} can't be used"
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise EncoderFailed(what, "it has another form", "Write it as package.module:Class, such as langchain_openai:OpenAIEmbeddings")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise EncoderFailed(
            what, f"{type(error).__name__}: {first_line(error)}", "Install its package here, or correct the name"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Embeddings)):
        raise EncoderFailed(what, "it is no subclass of langchain_core.embeddings.Embeddings")
    try:
        return found(**arguments)
    except Exception as error:  # each class refuses in its own way
        raise EncoderFailed(what, f"it refuses embeddings_arguments: {type(error).__name__}: {first_line(error)}") from error


def generation_of(name: str, path: str, arguments: dict[str, Any], dimension: int) -> str:
    """Class, model and what shapes the vectors; not keys, addresses and time limits."""
    shaping = {key: value for key, value in arguments.items() if not _NOT_IDENTITY.search(key.lower())}
    shape = hashlib.sha256(json.dumps([path, shaping], sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{name}@{shape}:{dimension}:class"


class ServiceEmbedder(PooledEmbedder):
    """An embedder with workers and patience of its own."""

    def __init__(self, model: "Embeddings", identity: Identity, caches: Caches, patience: Patience | None = None) -> None:
        """Takes the usual patience unless told otherwise."""
        self._workers = ModelPool(WORKERS, bulk_share=1)
        super().__init__(model, identity, self._workers, caches, patience or Patience(QUERY_SECONDS, BULK_SECONDS, REST_SECONDS))

    def close(self) -> None:
        """Takes no more calls."""
        self._workers.close(wait=False)
