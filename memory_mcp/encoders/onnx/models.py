"""Loads exported models with onnxruntime and tokenizers only: no torch, no transformers, and a fraction of their memory.

onnxruntime is imported inside a function, because a server that uses torch, or no model, doesn't need it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mcp.encoders.embedding import probed_dimension
from memory_mcp.encoders.models import PROBE, Vectors
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Export, Precision
from memory_mcp.encoders.onnx.tokenization import Inputs, Tokenizers
from memory_mcp.encoders.reranking import Pair
from memory_mcp.errors import EncoderFailed

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions

# A call with more tokens releases its memory afterwards: otherwise one text of 1,500 tokens would occupy 180 MB forever.
KEEP_MEMORY_TOKENS = 1_024
# It joins a sum and a normalization into an operation of twice their time.
SLOWER_OPTIMIZERS = ["SkipLayerNormFusion"]


class OnnxEmbeddings:
    """A loaded embedding model that has returned valid vectors. Thread-safe; a call runs on the calling thread only."""

    def __init__(self, directory: Path, precision: Precision, tokenizers: Tokenizers, export: Export | None = None) -> None:
        """Loads the model; models of one family can share one of the `tokenizers`. `export` replaces export.json while that is not written yet.

        Raises:
            EncoderFailed: the directory is incomplete, or the model does not return vectors.
            Exception: any error of the libraries for a file that they can't load.
        """
        self.export = export or export_directory.read(directory)
        self._run = _Run(directory, precision, self.export, tokenizers)
        self.dimension = probed_dimension(self, self.export.model)
        self.max_tokens = self._run.max_tokens_after(self.export.document_prefix)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """(start, end) of each token of a stored text, without special tokens."""
        return self._run.spans(text.replace("\n", " "))

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,)."""
        return self.embed_queries([text])[0]

    def embed_queries(self, texts: list[str]) -> list[Vectors]:
        """A vector for each text, in one call."""
        return self._embed(self.export.query_prefix, texts)

    def embed_documents(self, texts: list[str]) -> list[Vectors]:
        """The same for stored texts."""
        return self._embed(self.export.document_prefix, texts)

    def _embed(self, prefix: str, texts: list[str]) -> list[Vectors]:
        # LangChain's class, used with torch, replaces line breaks by spaces; the vectors must be the same.
        return list(self._run([prefix + text.replace("\n", " ") for text in texts]))


class OnnxCrossEncoder:
    """A loaded cross-encoder that has returned a valid score. Calling it with pairs returns a score of 0 to 1 for each."""

    def __init__(self, directory: Path, precision: Precision, tokenizers: Tokenizers, export: Export | None = None) -> None:
        """Loads the model, with the same arguments as `OnnxEmbeddings`.

        Raises:
            EncoderFailed: the directory is incomplete, or the model does not return one score for a pair.
            Exception: any error of the libraries for a file that they can't load.
        """
        self.export = export or export_directory.read(directory)
        self.max_tokens = self.export.max_tokens
        self._run = _Run(directory, precision, self.export, tokenizers)
        probe = self._run([(PROBE, PROBE)])
        if probe.shape != (1,) or not 0 <= probe[0] <= 1:
            raise EncoderFailed("{} can't be used", "it did not return a score", "", self.export.model)

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of the pairs, in one call of the model."""
        return [float(score) for score in self._run(pairs)]


class _Run:
    """A tokenizer and a session: maps texts or pairs to the model's output."""

    def __init__(self, directory: Path, precision: Precision, export: Export, tokenizers: Tokenizers) -> None:
        file = export_directory.checked(directory, export, precision)
        shared = tokenizers.get(directory / export_directory.TOKENIZER_NAME, export.sha256[export_directory.TOKENIZER_NAME])
        self._inputs = Inputs(shared, export)
        self._session, self._release_memory = open_session(str(file))

    def max_tokens_after(self, prefix: str) -> int:
        """How many tokens of a text are read after this prefix."""
        return self._inputs.max_text_tokens - len(self.spans(prefix))

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        return self._inputs.spans(text)

    def __call__(self, texts: Sequence[str] | Sequence[Pair]) -> Vectors:
        inputs = self._inputs(texts)
        options = self._release_memory if inputs["input_ids"].size > KEEP_MEMORY_TOKENS else None
        output: Vectors = self._session.run(None, inputs, options)[0]
        return output


def open_session(model: str | bytes) -> "tuple[InferenceSession, RunOptions]":
    """A session of a model's file or bytes, and the options of a run that returns the arena's memory to the system."""
    import onnxruntime  # noqa: PLC0415  see the top

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the pool has a worker for each core
    options.enable_mem_pattern = False  # it keeps a plan for each shape, and every call has another shape
    # Two models take turns on the same cores: one arena for both saves 30 MB.
    memory = onnxruntime.OrtMemoryInfo("Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT)
    onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({}))
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 3  # its warnings are about graphs, and users can't act on them
    release_memory = onnxruntime.RunOptions()
    release_memory.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOWER_OPTIMIZERS
    ), release_memory
