"""A LangChain `Embeddings` class that a server under test is configured with: vectors at once, without a model."""

from langchain_core.embeddings import Embeddings

from memory_mcp.encoders.fakes import HashingEmbedder


class HashingEmbeddings(Embeddings):
    """Texts that share tokens are alike. `dimension` is part of the generation, so that another one means another model."""

    def __init__(self, dimension: int = 32) -> None:
        self._embedder = HashingEmbedder(dimension)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.embed_query(text).tolist()
