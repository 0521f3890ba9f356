"""Loading exported models with onnxruntime and tokenizers alone: no torch, no transformers, and a fraction of their memory.

onnxruntime is imported inside a function, because a server that uses torch, or no model, does without them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Export, Precision
from memory_mcp.encoders.onnx.tokenization import Inputs, Tokenizers
from memory_mcp.encoders.protocols import Vectors
from memory_mcp.encoders.reranking import Pair
from memory_mcp.errors import EncoderFailed

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions

PROBE = "今日は誰と話しましたか。 Whom did I talk to today?"
# Beyond so many tokens in a call, what it needed is given back after it: kept, one text of 1,500 tokens would hold 180 MB for ever.
KEPT_TOKENS = 1_024


class OnnxEmbeddings:
    """An exported embedding model that has answered once. Safe to use from several threads; a call runs on the caller's alone."""

    def __init__(self, directory: Path, precision: Precision, tokenizers: Tokenizers, export: Export | None = None) -> None:
        """Loads it; a model of the same family may share one of `tokenizers`. `export` stands for what export.json says while that is not written yet.

        Raises:
            EncoderFailed: the directory is not whole, or the model answers with something that is no vector.
            Exception: whatever the libraries raise at a file that they can't load.
        """
        self.export = export or export_directory.read(directory)
        self._run = _Run(directory, precision, self.export, tokenizers)
        probe = self._run([PROBE, "。"])
        if probe.ndim != 2 or probe.shape[1] != self.export.dimension or not np.isfinite(probe).all():
            raise EncoderFailed(f"{self.export.model} can't be used", f"it answered with shape {probe.shape} instead of vectors")
        self.dimension = int(probe.shape[1])
        self.max_tokens = self._run.room_after(self.export.document_prefix)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Where the tokens of a stored text are, without those that the model puts around it."""
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
        # LangChain's class, which loads the model with torch, turns line breaks into blanks; the vectors shall be the same.
        return list(self._run([prefix + text.replace("\n", " ") for text in texts]))


class OnnxCrossEncoder:
    """An exported cross-encoder that has answered once. Called with pairs, it gives a score of 0 to 1 for each."""

    def __init__(self, directory: Path, precision: Precision, tokenizers: Tokenizers, export: Export | None = None) -> None:
        """Loads it, as `OnnxEmbeddings` does.

        Raises:
            EncoderFailed: the directory is not whole, or the model gives no single score for a pair.
            Exception: whatever the libraries raise at a file that they can't load.
        """
        self.export = export or export_directory.read(directory)
        self.max_tokens = self.export.max_tokens
        self._run = _Run(directory, precision, self.export, tokenizers)
        probe = self._run([(PROBE, PROBE)])
        if probe.shape != (1,) or not 0 <= probe[0] <= 1:
            raise EncoderFailed(f"{self.export.model} can't be used", "it answered with something that is no score")

    def __call__(self, pairs: list[Pair]) -> Sequence[float]:
        """The scores of so many pairs as are handed in at once."""
        return [float(score) for score in self._run(pairs)]


class _Run:
    """A tokenizer and a session, from texts or pairs to what the model answers."""

    def __init__(self, directory: Path, precision: Precision, export: Export, tokenizers: Tokenizers) -> None:
        file = export_directory.checked(directory, export, precision)
        shared = tokenizers.get(directory / export_directory.TOKENIZER_NAME, export.sha256[export_directory.TOKENIZER_NAME])
        self._inputs = Inputs(shared, export)
        self._session, self._giving_back = _session(file)

    def room_after(self, prefix: str) -> int:
        """How many tokens of a text are read after this prefix."""
        return self._inputs.room - len(self.spans(prefix))

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        return self._inputs.spans(text)

    def __call__(self, texts: Sequence[str] | Sequence[Pair]) -> Vectors:
        inputs = self._inputs(texts)
        options = self._giving_back if inputs["input_ids"].size > KEPT_TOKENS else None
        answered: Vectors = self._session.run(None, inputs, options)[0]
        return answered


def _session(file: Path) -> "tuple[InferenceSession, RunOptions]":
    """The session, and the options of a run that gives back to the system what the arena holds."""
    import onnxruntime  # noqa: PLC0415  see the top

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the pool has a worker for each core
    options.enable_mem_pattern = False  # a plan for each shape would be kept, and every call has another shape
    # Two models take turns on the same cores: with one arena for both 30 MB less stay behind.
    memory = onnxruntime.OrtMemoryInfo("Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT)
    onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({}))
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 3  # its warnings are about graphs, and nobody here can act on them
    giving_back = onnxruntime.RunOptions()
    giving_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"]), giving_back
