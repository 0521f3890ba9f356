"""Loads models with torch, once they are known to be on this machine.

torch and the libraries that import it are imported inside functions, because they take 7 s and 487 MB, and a machine without models
must not pay that. The first import happens on the model registry's thread, while the server already answers.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_mcp.encoders.embedding import BATCH, EmbedMany, TextModel, TokenSpans
from memory_mcp.encoders.model_families import Prefixes
from memory_mcp.encoders.models import PROBE, Vectors
from memory_mcp.encoders.reranking import BATCH_PAIRS, Pair
from memory_mcp.encoders.torch.devices import GPU, GPU_BATCH, in_halves, runs_on, usable_device
from memory_mcp.encoders.torch.tracing import trace
from memory_mcp.errors import EncoderFailed
from memory_mcp.language.budget import estimated_spans

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

# At 8,192 tokens, the limit of ruri-v3, one text takes 17 s and 1 GB on a core. A chunk of a memory has about 1,300 at most.
MAX_TEXT_TOKENS = 2_048
# The cost of a pair grows faster than its length, and a running batch can't be stopped at a deadline. Rerankers are
# trained on 512 tokens or fewer, whatever their architecture allows.
MAX_PAIR_TOKENS = 512


@dataclass(frozen=True, slots=True)
class LoadedEmbeddings:
    """A loaded embedding model that has returned a valid vector.

    `queries` embeds several queries in one call. `input_tokens` is the model's input limit, `max_tokens` the part of it left for a text
    after the prefix and the special tokens; both are None if there is no limit (static embeddings). `runs_on` names the device, if the settings don't.
    """

    model: TextModel
    queries: EmbedMany
    dimension: int
    input_tokens: int | None
    max_tokens: int | None
    token_spans: TokenSpans = estimated_spans
    runs_on: str | None = None
    is_on_gpu: bool = False


def load_embeddings(directory: Path, device: str, prefixes: Prefixes, name: str) -> LoadedEmbeddings:
    """Loads an embedding model from a directory and embeds a probe text.

    Raises:
        EncoderFailed: the machine lacks the device, or the model does not return vectors.
        Exception: any error of the libraries for a model that they can't load.
    """
    prepare_torch()
    from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415  see the top

    used = usable_device(device, name)
    is_on_gpu = used == GPU
    both: dict[str, Any] = {"normalize_embeddings": True, "batch_size": GPU_BATCH if is_on_gpu else BATCH}
    model = HuggingFaceEmbeddings(
        model_name=str(directory),
        model_kwargs={"device": used, "local_files_only": True},
        # An empty prompt, not None: with None, the model's own default prompt would go before both kinds of text.
        encode_kwargs={**both, "prompt": prefixes.document},
        query_encode_kwargs={**both, "prompt": prefixes.query},
    )
    input_tokens, max_tokens = _limit_tokens(model, prefixes.document)
    _trace_transformer(getattr(model, "_client", None))  # the class has no public access to it
    # The class takes queries one by one. A copy, which shares the weights, embeds a list of texts with the query's prefix.
    query_model = model.model_copy(update={"encode_kwargs": model.query_encode_kwargs})
    dimension, spans = probed_dimension(model, name), _token_spans(model)
    if is_on_gpu:
        on_gpu = _GpuEmbeddings(model, query_model)
        return LoadedEmbeddings(on_gpu, on_gpu.embed_queries, dimension, input_tokens, max_tokens, spans, runs_on(device, used), is_on_gpu)
    return LoadedEmbeddings(model, query_model.embed_documents, dimension, input_tokens, max_tokens, spans, runs_on(device, used))


class _GpuEmbeddings:
    """A `TextModel` that halves batches if the GPU's memory is too small for them."""

    def __init__(self, model: "Embeddings", query_model: "Embeddings") -> None:
        self._model, self._query_model = model, query_model

    def embed_query(self, text: str) -> Sequence[float]:
        """With the query's prefix."""
        return self._model.embed_query(text)

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float] | Vectors]:
        """With the document's prefix."""
        return in_halves(self._model.embed_documents, texts)

    def embed_queries(self, texts: list[str]) -> Sequence[Sequence[float] | Vectors]:
        """As `embed_query`, in one call."""
        return in_halves(self._query_model.embed_documents, texts)


def probed_dimension(model: "Embeddings", name: str) -> int:
    """The length of the vectors, found by embedding a query and a text.

    Raises:
        EncoderFailed: the model does not return vectors.
    """
    query = np.asarray(model.embed_query(PROBE), np.float32)
    texts = np.asarray(model.embed_documents([PROBE, "。"]), np.float32)
    if query.ndim != 1 or not query.size or texts.shape != (2, query.size):
        raise EncoderFailed(
            "{} can't be used", "it returned arrays of shape {} and {} instead of vectors", "", name, query.shape, texts.shape
        )
    if not (np.isfinite(query).all() and np.isfinite(texts).all() and query.any()):
        raise EncoderFailed("{} can't be used", "it returned NaN, infinity or zeros: its weights are damaged", "", name)
    return int(query.size)


class TorchCrossEncoder:
    """A loaded cross-encoder that has returned a valid score. Calling it with pairs returns a score of 0 to 1 for each."""

    def __init__(self, directory: Path, device: str, name: str) -> None:
        """Loads the model from a directory and scores a probe pair.

        Raises:
            EncoderFailed: the machine lacks the device, or the model does not return one score for a pair.
            Exception: any error of the libraries for a model that they can't load.
        """
        prepare_torch()
        from sentence_transformers import CrossEncoder  # noqa: PLC0415  see the top
        from torch.nn import Sigmoid  # noqa: PLC0415

        used = usable_device(device, name)
        self.runs_on, self.is_on_gpu = runs_on(device, used), used == GPU
        self._model = CrossEncoder(str(directory), device=used, local_files_only=True)
        if self._model.num_labels != 1:
            raise EncoderFailed(
                "{} can't be used", "it returns {} scores for a pair, and a reranker returns one", "", name, self._model.num_labels
            )
        own_limit = self._model.max_seq_length
        self.max_tokens = min(own_limit or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS)
        self._model.max_seq_length = self.max_tokens
        _trace_transformer(self._model)
        # Passed to each call, so that it is applied exactly once: by default, `predict` applies a sigmoid or nothing,
        # depending on the activation in the model's config.json.
        self._sigmoid = Sigmoid()
        probe = self([(PROBE, PROBE)])
        if not (np.isfinite(probe).all() and 0 <= probe[0] <= 1):
            raise EncoderFailed("{} can't be used", "it returned NaN, infinity or zeros: its weights are damaged", "", name)

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of the pairs, in one batch for each `BATCH_PAIRS`, or `GPU_BATCH` on a GPU."""
        return in_halves(self._scores, pairs) if self.is_on_gpu else self._scores(pairs)

    def _scores(self, pairs: list[Pair]) -> Sequence[float]:
        size = GPU_BATCH if self.is_on_gpu else BATCH_PAIRS
        scores = self._model.predict(pairs, batch_size=size, show_progress_bar=False, activation_fn=self._sigmoid)
        return [float(score) for score in scores]


def prepare_torch() -> None:
    """Configures torch and its libraries before the first model is loaded, partly before torch is imported."""
    # These two can only be set in the environment; a value that is set already wins.
    # Threads that waited for each other by spinning turned 9 ms into 1,500 on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # The tokenizer's own threads would compete with the pool's.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn about each other at import
        import sentence_transformers  # noqa: F401, PLC0415
        import torch  # noqa: PLC0415
        from tqdm import tqdm  # type: ignore[import-untyped]  # noqa: PLC0415
        from transformers.utils import logging as transformers_logging  # noqa: PLC0415
    torch.set_num_threads(1)  # the pool has a worker for each core
    tqdm.monitor_interval = 0  # otherwise hidden progress bars start a monitor thread
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()


def _trace_transformer(model: Any) -> None:
    """Traces the transformer of a SentenceTransformer or CrossEncoder, if it has one."""
    first = model[0] if model is not None and len(model) else None
    if first is not None and hasattr(first, "auto_model") and hasattr(first, "tokenizer"):
        trace(
            first.auto_model,
            lambda texts: dict(first.tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(model.device)),
        )


class _TokenSpans:
    """The offsets of a fast tokenizer's tokens in a text, without special tokens. Thread-safe.

    It uses a copy of the model's tokenizer, because that one truncates and pads, and must not be reconfigured while it is in use.
    """

    def __init__(self, tokenizer_json: Callable[[], str]) -> None:
        """`tokenizer_json` is called at the first long text: most servers see none."""
        self._tokenizer_json = tokenizer_json

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token, in order."""
        # As a batch, because only that releases the interpreter lock.
        (encoded,) = self._tokenizer.encode_batch([text], add_special_tokens=False)
        return [(int(start), int(end)) for start, end in encoded.offsets]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # noqa: PLC0415  see the top

        tokenizer = Tokenizer.from_str(self._tokenizer_json())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def _token_spans(model: "Embeddings") -> TokenSpans:
    """Token offsets of the model's own tokenizer; an estimate if it gives none."""
    backend = getattr(getattr(getattr(model, "_client", None), "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        return estimated_spans
    spans = _TokenSpans(backend.to_str)
    return lambda text: spans(text.replace("\n", " "))  # LangChain's class replaces line breaks before it embeds


def _limit_tokens(model: "Embeddings", prefix: str) -> tuple[int, int] | tuple[None, None]:
    """Sets the model's input limit; returns it, and the part that is left for a text after the prefix."""
    client = getattr(model, "_client", None)  # the class has no public access to it
    own_limit = getattr(client, "max_seq_length", None)
    if client is None or not own_limit:
        return None, None
    client.max_seq_length = min(int(own_limit), MAX_TEXT_TOKENS)
    return int(client.max_seq_length), int(client.max_seq_length) - len(client.tokenizer(prefix)["input_ids"])
