"""Loads multilingual-e5-small from its package and runs it with onnxruntime: without torch, transformers or the package's own engine."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memory_mcp.encoders.model_families import Prefixes
from memory_mcp.encoders.models import PROBE, Vectors
from memory_mcp.encoders.onnx.export_directory import sha256
from memory_mcp.encoders.onnx.models import open_session
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.model_file import EMBEDDINGS, read
from memory_mcp.encoders.packaged.tokenization import PieceTokenizer
from memory_mcp.errors import EncoderFailed

_SPECIAL_TOKENS = 2  # before and after a text


class PackagedEmbeddings:
    """A loaded embedding model that has returned valid vectors. Thread-safe; a call runs on the calling thread only."""

    def __init__(self, directory: Path, prefixes: Prefixes) -> None:
        """Loads the model from the package's directory.

        Raises:
            EncoderFailed: the model file is damaged or of another version, or the model does not return vectors.
        """
        path = directory / package.MODEL_FILE
        # onnx takes 20 MB, and most servers use another model.
        from memory_mcp.encoders.packaged.graph import build  # noqa: PLC0415

        if sha256(path) != package.MODEL_SHA256:
            raise EncoderFailed(
                "{} can't be loaded",
                "{} is damaged or of another version: its checksum differs",
                "Run {}",
                package.NAME,
                path,
                package.INSTALL,
            )
        vocabulary, self._weights = read(path)
        self._tokenizer = PieceTokenizer(vocabulary)
        self._session, _ = open_session(build(self._weights))
        self._prefixes = prefixes
        self.dimension = self._weights.dimension
        self._positions = self._weights.floats("emb.pos").reshape(-1, self.dimension) + self._weights.floats("emb.type")[: self.dimension]
        self.max_tokens = self._weights.max_tokens - _SPECIAL_TOKENS - len(self._tokenizer.ids(prefixes.document))
        if not np.isfinite(self.embed_documents([PROBE, "。"])).all():
            raise EncoderFailed("{} can't be used", "it returned NaN or infinity", "", package.NAME)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """(start, end) of each token of a text, without special tokens."""
        return self._tokenizer.spans(text)

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,)."""
        return self._embed(self._prefixes.query + text)

    def embed_documents(self, texts: list[str]) -> list[Vectors]:
        """The same for stored texts. One by one, because a batch is slower: it pads, and fits the cache less well."""
        return [self._embed(self._prefixes.document + text) for text in texts]

    def _embed(self, text: str) -> Vectors:
        """The mean of the vectors of the text's tokens."""
        weights = self._weights
        # Composed, because the pieces are: か and a voicing mark would be two unknown characters.
        tokens = self._tokenizer.ids(unicodedata.normalize("NFC", text))[: weights.max_tokens - _SPECIAL_TOKENS]
        ids = np.array([weights.begin, *tokens, weights.end], np.int64)
        embeddings = weights.quantized("emb.word", ids).floats() + self._positions[: len(ids)]
        hidden: Vectors = self._session.run(None, {EMBEDDINGS: embeddings[None]}, None)[0]
        vector: Vectors = hidden[0].mean(axis=0)
        return vector
