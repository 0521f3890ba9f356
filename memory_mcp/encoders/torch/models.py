"""Loads models with torch, once they are known to be on this machine.

torch and the libraries that import it are imported inside functions, because they take 7 s and 487 MB, and a machine without models
must not pay that. The first import happens on the model registry's thread, while the server already answers.
"""

import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_mcp.encoders.embedding import BATCH, probed_dimension
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


class TorchEmbeddings:
    """A loaded embedding model that has returned valid vectors. Thread-safe.

    `max_tokens` is how many tokens of a text are read, without prefix and special tokens; None if there is no limit (static embeddings). `runs_on` names
    the device, if the settings don't.
    """

    def __init__(self, directory: Path, device: str, prefixes: Prefixes, name: str, *, traced: bool = True) -> None:
        """Loads the model from a directory and embeds a probe text.

        Raises:
            EncoderFailed: the machine lacks the device, or the model does not return vectors.
            Exception: any error of the libraries for a model that they can't load.
        """
        prepare_torch()
        from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415  see the top

        used = usable_device(device, name)
        self.runs_on, self.is_on_gpu = runs_on(device, used), used == GPU
        both: dict[str, Any] = {"normalize_embeddings": True, "batch_size": GPU_BATCH if self.is_on_gpu else BATCH}
        # An empty prompt, not None: with None, the model's own default prompt would go before both kinds of text.
        documents, queries = ({**both, "prompt": prompt} for prompt in (prefixes.document, prefixes.query))
        kept: dict[str, Any] = {"device": used, "local_files_only": True}
        self._documents = HuggingFaceEmbeddings(model_name=str(directory), model_kwargs=kept, encode_kwargs=documents)
        # The class takes queries one by one. A copy, which shares the weights, embeds many.
        self._queries = self._documents.model_copy(update={"encode_kwargs": queries})
        self.model: Any = getattr(self._documents, "_client")  # noqa: B009  the class has no public access to it
        self.input_tokens: int | None = None
        self.max_tokens: int | None = None
        if limit := self.model.max_seq_length:
            self.input_tokens = self.model.max_seq_length = min(int(limit), MAX_TEXT_TOKENS)
            self.max_tokens = self.input_tokens - len(self.model.tokenizer(prefixes.document)["input_ids"])
        if traced:
            _trace_transformer(self.model)
        self.dimension = probed_dimension(self, name)

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,)."""
        return self.embed_queries([text])[0]

    def embed_queries(self, texts: list[str]) -> Sequence[Vectors]:
        """A vector for each text, in one call."""
        return _vectors(self._queries, texts)

    def embed_documents(self, texts: list[str]) -> Sequence[Vectors]:
        """The same for stored texts."""
        return _vectors(self._documents, texts)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """(start, end) of each token of a stored text, without special tokens; an estimate if the model's tokenizer gives no offsets."""
        if self._tokenizer is None:
            return estimated_spans(text)
        # As a batch, because only that releases the interpreter lock.
        (encoded,) = self._tokenizer.encode_batch([_one_line(text)], add_special_tokens=False)
        return [(int(start), int(end)) for start, end in encoded.offsets]

    @cached_property
    def _tokenizer(self) -> Any:
        """A copy, made at the first long text: the model's own truncates and pads, and must not be reconfigured while it is in use."""
        from tokenizers import Tokenizer  # noqa: PLC0415  see the top

        backend = getattr(getattr(self.model, "tokenizer", None), "backend_tokenizer", None)
        if backend is None:
            return None
        tokenizer = Tokenizer.from_str(backend.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


class TorchCrossEncoder:
    """A loaded cross-encoder that has returned a valid score. Calling it with pairs returns a score of 0 to 1 for each."""

    def __init__(self, directory: Path, device: str, name: str, *, traced: bool = True) -> None:
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
        self.model = CrossEncoder(str(directory), device=used, local_files_only=True)
        if self.model.num_labels != 1:
            raise EncoderFailed(
                "{} can't be used", "it returns {} scores for a pair, and a reranker returns one", "", name, self.model.num_labels
            )
        own_limit = self.model.max_seq_length
        self.max_tokens = min(own_limit or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS)
        self.model.max_seq_length = self.max_tokens
        if traced:
            _trace_transformer(self.model)
        # Passed to each call, so that it is applied exactly once: by default, `predict` applies a sigmoid or nothing,
        # depending on the activation in the model's config.json.
        self._sigmoid = Sigmoid()
        probe = self([(PROBE, PROBE)])
        if not (np.isfinite(probe).all() and 0 <= probe[0] <= 1):
            raise EncoderFailed("{} can't be used", "it returned NaN, infinity or zeros: its weights are damaged", "", name)

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of the pairs, in one batch for each `BATCH_PAIRS`, or `GPU_BATCH` on a GPU."""
        return in_halves(self._scores, pairs)

    def _scores(self, pairs: list[Pair]) -> Sequence[float]:
        size = GPU_BATCH if self.is_on_gpu else BATCH_PAIRS
        scores = self.model.predict(pairs, batch_size=size, show_progress_bar=False, activation_fn=self._sigmoid)
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
    first = model[0] if len(model) else None
    if first is not None and hasattr(first, "auto_model") and hasattr(first, "tokenizer"):
        trace(
            first.auto_model,
            lambda texts: dict(first.tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(model.device)),
        )


def _vectors(model: "Embeddings", texts: list[str]) -> Sequence[Vectors]:
    return in_halves(lambda batch: list(np.asarray(model.embed_documents(batch), np.float32)), texts)


def _one_line(text: str) -> str:
    """As LangChain's class for these models passes a text on."""
    return text.replace("\n", " ")
