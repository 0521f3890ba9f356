"""A LangChain retriever for the memories of a persona on a running server.

    from memory_mcp.client.langchain import PersonaRetriever
    documents = PersonaRetriever(persona="nilou").invoke("いつ会った？")

Only this module imports LangChain's core, and no other module imports it.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr

from memory_mcp.client import stores
from memory_mcp.client.connection import Connection
from memory_mcp.config.reading import default_token
from memory_mcp.domain import Mode, OtherMode
from memory_mcp.errors import PersonaUnknown
from memory_mcp.wording import sentence

DEFAULT_URL = "http://127.0.0.1:8000"
# The metadata that every document has, even if the memory doesn't: a prompt template may require it.
_DEFAULT_METADATA: Mapping[str, Any] = {"source": None, "session_id": None, "occurred_at": None}


class PersonaRetriever(BaseRetriever):
    """Recalls memories of one persona, the best first. Sync, async, in batches, and as a step of a chain.

    A document's `page_content` is the memory's content and its `id` the memory's key; `metadata` has `key`, `score`, `why`,
    `source`, `session_id`, `occurred_at`, `created_at` (ISO, in the server's time zone), `tags` and whatever else the memory has,
    and, from the answer as a whole, `persona`, `mode`, `reranked` and `degraded` (the steps of the search that were skipped).

    `tags` and `metadata` of the retriever itself are LangChain's, for tracing: memories are chosen by `memory_tags`.

    Raises (at construction and at each call):
        InvalidInput: the URL, the token or the persona's name is invalid.
        ServerUnreachable: there is no Memory MCP server at the URL, or none is named and the one of this machine serves another store.
        PersonaUnknown: the persona has no memories.
        MemoryMCPError: the server refuses; the message is the server's.
    """

    url: str = Field(default_factory=lambda: _default_url())  # which is below
    """The server. Default: MEMORY_MCP_URL, or that of the data directory which commands use here (MEMORY_MCP_DATA, for example)."""
    persona: str | None = None
    """The persona. None: the server's default persona."""
    token: SecretStr | None = Field(default_factory=lambda: SecretStr(token) if (token := default_token()) else None)
    """Default: MEMORY_MCP_TOKEN."""
    top_k: int | None = Field(None, ge=1, le=50)
    """The maximum number of memories. None: the server's configuration."""
    mode: Mode | OtherMode = "auto"
    date_range: str | None = None
    """Only memories of a period: `2025-10-01..2025-10-17`, a day, or words such as 先週."""
    memory_tags: list[str] = Field([])
    """Only memories with all of these tags."""
    category: str | None = None
    """Only memories of this category."""
    min_importance: float | None = Field(None, ge=0, le=1)
    """Only memories of at least this importance."""
    hypothetical: str | None = None
    """A hypothetical answer, which is searched for in addition to the query."""
    max_tokens: int | None = None
    """The approximate budget for the text of all documents. None: the server's 1,500. A shortened memory has `truncated`."""
    new_persona_is_empty: bool = False
    """Whether a persona without memories gives no documents instead of raising PersonaUnknown."""

    def model_post_init(self, context: Any, /) -> None:
        """Validates the fields at construction, where the traceback shows the caller."""
        super().model_post_init(context)
        self._connection()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return self._documents(self._connection().call_tool("recall", self._arguments(query)))

    async def _aget_relevant_documents(self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return self._documents(await self._connection().call_tool_async("recall", self._arguments(query)))

    def _connection(self) -> Connection:
        # Created for each call, which is cheap: a copy of a retriever with another persona must not keep the old connection.
        return Connection(self.url, self.token.get_secret_value() if self.token else None, self.persona)

    def _arguments(self, query: str) -> dict[str, Any]:
        return {
            "query": query,
            "detail": "why",
            "top_k": self.top_k,
            "mode": self.mode,
            "date_range": self.date_range,
            "tags": self.memory_tags or None,
            "category": self.category,
            "min_importance": self.min_importance,
            "hypothetical": self.hypothetical,
            "max_tokens": self.max_tokens,
        }

    def _documents(self, answer: Mapping[str, Any]) -> list[Document]:
        if answer.get("new_persona") and not self.new_persona_is_empty:
            suggestions = ", ".join(answer.get("did_you_mean", []))
            raise PersonaUnknown(
                "the persona {} has no memories",
                sentence("similar names: {}", suggestions) if suggestions else "",
                "Correct the name, store something first, or set new_persona_is_empty",
                repr(answer["persona"]),
            )
        answer_fields = {name: answer[name] for name in ("persona", "mode", "reranked", "degraded")}
        return [_document(hit, answer_fields) for hit in answer["hits"]]


def _default_url() -> str:
    store = stores.find(None, None, DEFAULT_URL, lambda address, secret: Connection(address, secret=secret))
    return store.served().url if store.server or store.is_taken else DEFAULT_URL


def _document(hit: Mapping[str, Any], answer_fields: Mapping[str, Any]) -> Document:
    fields = {name: value for name, value in hit.items() if name != "content"}
    return Document(
        hit["content"], id=hit["key"], metadata={**_DEFAULT_METADATA, "tags": [], "why": {}, "score": 0.0, **fields, **answer_fields}
    )
