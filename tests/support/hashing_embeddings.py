"""A LangChain `Embeddings` class that a server under test is configured with: vectors at once, without a model."""

from pathlib import Path

from fakes import HashingEmbedder
from langchain_core.embeddings import Embeddings

from memory_mcp.encoders.centers import LANGUAGES

BUILT_IN = frozenset(text for language in LANGUAGES for text in (*language.statements, *language.answers))


class HashingEmbeddings(Embeddings):
    """Texts that share tokens are alike. `dimension` is part of the generation, so that another one means another model.

    Into `progress_file`, if one is given, goes a line for each memory that is embedded.
    """

    def __init__(self, dimension: int = 32, progress_file: str | None = None) -> None:
        self._embedder = HashingEmbedder(dimension)
        self._progress_file = progress_file

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self._progress_file:
            with Path(self._progress_file).open("a", encoding="utf-8") as file:
                file.writelines(f"{text}\n" for text in texts if text not in BUILT_IN)
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.embed_query(text).tolist()
