"""Loading models with torch: the only module that does. It is asked once it is known that the model is there.

torch and what stands on it are imported inside functions, because they take 7 s and 487 MB, and a machine without models
must not pay that. The first import happens on the shelf's thread, while the server already answers.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_mcp.encoders.embedding import BATCH, EmbedMany
from memory_mcp.encoders.model_families import Prefixes
from memory_mcp.encoders.reranking import CHUNK, Pair
from memory_mcp.encoders.token_spans import Spans, TokenSpans
from memory_mcp.encoders.torch.tracing import trace
from memory_mcp.errors import EncoderFailed
from memory_mcp.text.budget import estimated_spans

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

# At 8,192 tokens, which ruri-v3 could read, one text takes 17 s and 1 GB on a core. A piece of a memory has about 1,300 at most.
MAX_TEXT_TOKENS = 2_048
# A pair's cost grows with more than its length, and a chunk that has begun can't be stopped at a deadline. Rerankers are
# trained on 512 tokens or less, whatever their architecture could take.
MAX_PAIR_TOKENS = 512
PROBE = "今日は誰と話しましたか。 Whom did I talk to today?"


@dataclass(frozen=True, slots=True)
class LoadedEmbeddings:
    """A model that has answered once. `queries` embeds several in one call. `token_spans` tells where its tokens are in a text.

    `reads_tokens` is how many it reads at once, `max_tokens` how many of those are a text's, after the prefix and beside the special
    ones; None where it has no such limit (static embeddings).
    """

    model: "Embeddings"
    queries: EmbedMany
    dimension: int
    reads_tokens: int | None
    max_tokens: int | None
    token_spans: Spans = estimated_spans


def load_embeddings(directory: Path, device: str, prefixes: Prefixes, name: str) -> LoadedEmbeddings:
    """An embedding model from a directory, with its prefixes, after it has embedded something.

    Raises:
        EncoderFailed: it has no such device, or it answers with something that is no vector.
        Exception: whatever the libraries raise at a model that they can't load.
    """
    prepare_torch()
    from langchain_huggingface import HuggingFaceEmbeddings  # noqa: PLC0415  see the top

    both: dict[str, Any] = {"normalize_embeddings": True, "batch_size": BATCH}
    model = HuggingFaceEmbeddings(
        model_name=str(directory),
        model_kwargs={"device": usable_device(device, name), "local_files_only": True},
        # An empty prompt, not none: with none the model's own default prompt would stand before both kinds of text.
        encode_kwargs={**both, "prompt": prefixes.document},
        query_encode_kwargs={**both, "prompt": prefixes.query},
    )
    reads_tokens, max_tokens = _limit_tokens(model, prefixes.document)
    _quicken(getattr(model, "_client", None))  # the class has no door to it
    # The class takes queries one by one. A copy, which shares the weights, puts the query's prefix before a list of them.
    asking = model.model_copy(update={"encode_kwargs": model.query_encode_kwargs})
    return LoadedEmbeddings(model, asking.embed_documents, probed_dimension(model, name), reads_tokens, max_tokens, _token_spans(model))


def probed_dimension(model: "Embeddings", name: str) -> int:
    """The length of the vectors, after embedding a query and a text for real.

    Raises:
        EncoderFailed: it answered with something that is no vector.
    """
    query = np.asarray(model.embed_query(PROBE), np.float32)
    texts = np.asarray(model.embed_documents([PROBE, "。"]), np.float32)
    if query.ndim != 1 or not query.size or texts.shape != (2, query.size):
        raise EncoderFailed(f"{name} can't be used", f"it answered with shapes {query.shape} and {texts.shape} instead of vectors")
    if not (np.isfinite(query).all() and np.isfinite(texts).all() and query.any()):
        raise EncoderFailed(f"{name} can't be used", "it answered with numbers that are none: its weights are damaged")
    return int(query.size)


class LoadedCrossEncoder:
    """A cross-encoder that has answered once. Called with pairs, it gives a score of 0 to 1 for each."""

    def __init__(self, directory: Path, device: str, name: str) -> None:
        """Loads it.

        Raises:
            EncoderFailed: it has no such device, or it gives no single score for a pair.
            Exception: whatever the libraries raise at a model that they can't load.
        """
        prepare_torch()
        from sentence_transformers import CrossEncoder  # noqa: PLC0415  see the top
        from torch.nn import Sigmoid  # noqa: PLC0415

        self._model = CrossEncoder(str(directory), device=usable_device(device, name), local_files_only=True)
        if self._model.num_labels != 1:
            raise EncoderFailed(f"{name} can't be used", f"it gives {self._model.num_labels} scores for a pair, and a reranker gives one")
        own_limit = self._model.max_seq_length
        self.max_tokens = min(own_limit or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS)
        self._model.max_seq_length = self.max_tokens
        _quicken(self._model)
        # Said for each call, so that it is applied exactly once: left unsaid, `predict` applies a sigmoid or nothing,
        # by what the model's config.json says of its activation.
        self._sigmoid = Sigmoid()
        probe = self([(PROBE, PROBE)])
        if not (np.isfinite(probe).all() and 0 <= probe[0] <= 1):
            raise EncoderFailed(f"{name} can't be used", "it answered with numbers that are none: its weights are damaged")

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of so many pairs as are handed in at once."""
        scores = self._model.predict(pairs, batch_size=CHUNK, show_progress_bar=False, activation_fn=self._sigmoid)
        return [float(score) for score in scores]


def usable_device(wanted: str, name: str) -> str:
    """`auto` resolved; what is not there is an error, and never replaced by something else.

    Raises:
        EncoderFailed: `cuda` on a machine without it.
    """
    import torch  # noqa: PLC0415  see the top

    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise EncoderFailed(
            f"{name} can't be loaded",
            "embeddings_device is cuda, and torch finds no GPU here",
            "Set it to cpu or auto, or install a CUDA build of torch",
        )
    return ("cuda" if there else "cpu") if wanted == "auto" else wanted


def prepare_torch() -> None:
    """What has to be said before the first model, and some of it before torch is imported."""
    # Writing the environment is the only way to tell these two. Who has set them already knows better.
    # Threads that wait for each other by spinning made 9 ms into 1,500 on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # The tokenizer's own threads would compete with the pool's.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other, at import
        import sentence_transformers  # noqa: F401, PLC0415
        import torch  # noqa: PLC0415
        from tqdm import tqdm  # type: ignore[import-untyped]  # noqa: PLC0415
        from transformers.utils import logging as transformers_logging  # noqa: PLC0415
    torch.set_num_threads(1)  # the pool has a worker for each core
    tqdm.monitor_interval = 0  # else the bars that are never shown start a thread that watches them
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def _quicken(model: Any) -> None:
    """Traces the transformer of a SentenceTransformer or CrossEncoder, where it has one and runs on the CPU."""
    first = model[0] if model is not None and len(model) else None
    if first is not None and hasattr(first, "auto_model") and hasattr(first, "tokenizer") and model.device.type == "cpu":
        trace(first.auto_model, lambda texts: dict(first.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")))


def _token_spans(model: "Embeddings") -> Spans:
    """Where the model's own tokens are; an estimate for a tokenizer that doesn't tell."""
    backend = getattr(getattr(getattr(model, "_client", None), "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        return estimated_spans
    spans = TokenSpans(backend.to_str)
    return lambda text: spans(text.replace("\n", " "))  # as the class does before it embeds


def _limit_tokens(model: "Embeddings", prefix: str) -> tuple[int, int] | tuple[None, None]:
    """Sets how many tokens are read, and tells that, and how many of them are a text's."""
    client = getattr(model, "_client", None)  # the class has no door to it
    own_limit = getattr(client, "max_seq_length", None)
    if client is None or not own_limit:
        return None, None
    client.max_seq_length = min(int(own_limit), MAX_TEXT_TOKENS)
    return int(client.max_seq_length), int(client.max_seq_length) - len(client.tokenizer(prefix)["input_ids"])
