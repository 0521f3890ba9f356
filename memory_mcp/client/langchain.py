"""A persona's memories as a LangChain retriever, from a running server.

    from memory_mcp.client.langchain import PersonaRetriever
    documents = PersonaRetriever(persona="nilou").invoke("いつ会った？")

This module alone imports LangChain's core, and nothing of the product imports this module.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr

from memory_mcp.client.connection import Connection
from memory_mcp.config.reading import default_server_url, default_token
from memory_mcp.domain import Mode, OtherMode
from memory_mcp.errors import PersonaUnknown

DEFAULT_URL = "http://127.0.0.1:8000"
# What each document has, whether or not the memory says anything of it: a prompt may count on them.
_ALWAYS: Mapping[str, Any] = {"source": None, "session_id": None, "occurred_at": None}


class PersonaRetriever(BaseRetriever):
    """Recalls memories of one persona, the best first. Sync, async, in batches, and as a step of a chain.

    A document's `page_content` is the memory's content and its `id` the memory's key; `metadata` has `key`, `score`, `why`,
    `source`, `session_id`, `occurred_at`, `created_at` (ISO, in the server's time zone), `tags` and whatever else the memory has,
    and of the answer as a whole `persona`, `mode`, `reranked` and `degraded` (what was missing from the configured search).

    `tags` and `metadata` of the retriever itself are LangChain's, for tracing: memories are chosen by `memory_tags`.

    Raises (at construction and at each call):
        InvalidInput: the URL, the token or the persona's name can't be used.
        ServerUnreachable: nobody answers at the URL, or something that is no Memory MCP server.
        PersonaUnknown: nothing was ever stored as this persona.
        MemoryMCPError: the server refuses; in its words.
    """

    url: str = Field(default_factory=lambda: default_server_url() or DEFAULT_URL)
    """The server. Default: MEMORY_MCP_URL, else this machine."""
    persona: str | None = None
    """Whose memories. None: whom the server serves when nobody is named."""
    token: SecretStr | None = Field(default_factory=lambda: SecretStr(found) if (found := default_token()) else None)
    """Default: MEMORY_MCP_TOKEN."""
    top_k: int | None = Field(None, ge=1, le=50)
    """How many memories at most. None: as the server is configured."""
    mode: Mode | OtherMode = "auto"
    date_range: str | None = None
    """Only memories of these days: `2025-10-01..2025-10-17`, a day, or words such as 先週."""
    memory_tags: list[str] = Field([])
    """Only memories that carry all of these."""
    category: str | None = None
    """Only memories of this category."""
    min_importance: float | None = Field(None, ge=0, le=1)
    """Only memories that are as important."""
    hypothetical: str | None = None
    """A guessed answer, to search by beside the query."""
    max_tokens: int | None = None
    """How much text all documents may hold together, about. None: the server's 1,500; a memory that is cut says `truncated`."""
    new_persona_is_empty: bool = False
    """Whether a persona that nobody has stored anything as yet is answered with no documents instead of PersonaUnknown."""

    def model_post_init(self, context: Any, /) -> None:
        """Refuses what can't be used while the caller can still see where it comes from."""
        super().model_post_init(context)
        self._connection()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return self._documents(self._connection().call_tool("recall", self._asked(query)))

    async def _aget_relevant_documents(self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return self._documents(await self._connection().call_tool_async("recall", self._asked(query)))

    def _connection(self) -> Connection:
        # Made anew each time, which costs nothing: a copy of a retriever with another persona must not keep the old one's.
        return Connection(self.url, self.token.get_secret_value() if self.token else None, self.persona)

    def _asked(self, query: str) -> dict[str, Any]:
        return {
            "query": query,
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
            near = ", ".join(answer.get("did_you_mean", []))
            raise PersonaUnknown(
                f"nothing was ever stored as the persona {answer['persona']!r}",
                f"there is {near}" if near else "",
                "Correct the name, store something first, or set new_persona_is_empty",
            )
        of_the_answer = {name: answer[name] for name in ("persona", "mode", "reranked", "degraded")}
        return [_document(hit, of_the_answer) for hit in answer["hits"]]


def _document(hit: Mapping[str, Any], of_the_answer: Mapping[str, Any]) -> Document:
    told = {name: value for name, value in hit.items() if name != "content"}
    return Document(hit["content"], id=hit["key"], metadata={**_ALWAYS, "tags": [], "why": {}, "score": 0.0, **told, **of_the_answer})
