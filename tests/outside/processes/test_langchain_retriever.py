"""A persona's memories in a chain of LangChain, from a real running server."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pydantic
import pytest
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from processes import ROOT, RunningServer, clean_environment, serving

from memory_mcp.client.langchain import PersonaRetriever
from memory_mcp.errors import InvalidInput, InvalidPersonaName, MemoryMCPError, PersonaUnknown, ServerUnreachable

pytestmark = pytest.mark.slow

MEMORIES: list[dict[str, Any]] = [
    {
        "content": "旅人は苺のケーキが好き",
        "source": "旅人",
        "session_id": "s1",
        "tags": ["食べ物"],
        "occurred_at": "2025-10-01T09:00:00+09:00",
    },
    {"content": "旅人は苺のタルトも好き", "tags": ["食べ物", "秋"], "occurred_at": "2025-10-20T09:00:00+09:00"},
    {"content": "旅人と公園で会った", "importance": 0.9, "state": {"emotion": "嬉しい"}},
]
DOCUMENTATION = (ROOT / "docs/langchain.md").read_text(encoding="utf-8")


class Parrot(SimpleChatModel):
    """Answers with everything that it was sent."""

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _call(self, messages: list[BaseMessage], *arguments: Any, **named: Any) -> str:
        return "\n".join(str(message.content) for message in messages)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("langchain"), '{"embeddings_model": null, "reranker_model": null}') as server:
        for persona, memories in (("さくら", MEMORIES), ("nilou", [{"content": "ニロウの苺のひみつ"}])):
            body = "".join(json.dumps(memory) + "\n" for memory in memories)
            headers = {"X-Persona": quote(persona)}
            httpx2.post(f"{server.url}/api/import", content=body, headers=headers, timeout=60, trust_env=False).raise_for_status()
        yield server


@pytest.fixture
def retriever(server: RunningServer) -> PersonaRetriever:
    return PersonaRetriever(url=server.url, persona="さくら")


def contents(documents: list[Any]) -> list[str]:
    return [document.page_content for document in documents]


def test_a_document_is_a_memory_with_everything_that_is_known_of_it(retriever: PersonaRetriever) -> None:
    first = retriever.invoke("苺のケーキ")[0]
    assert first.page_content == "旅人は苺のケーキが好き"
    assert first.id == first.metadata["key"]
    assert first.metadata["score"] > 0
    assert "lexical" in first.metadata["why"]
    expected = {
        "source": "旅人", "session_id": "s1", "tags": ["食べ物"], "occurred_at": "2025-10-01T09:00:00+09:00",
        "persona": "さくら", "mode": "keyword", "reranked": False, "degraded": [],
    }  # fmt: skip
    assert {name: first.metadata[name] for name in expected} == expected


def test_what_nobody_said_of_a_memory_is_there_too_as_nothing(retriever: PersonaRetriever) -> None:
    (met,) = [document for document in retriever.invoke("公園で会った") if "公園" in document.page_content]
    assert {name: met.metadata[name] for name in ("source", "session_id", "occurred_at", "tags")} == {
        "source": None,
        "session_id": None,
        "occurred_at": None,
        "tags": [],
    }
    assert (met.metadata["importance"], met.metadata["state"]) == (0.9, {"emotion": "嬉しい"})


def test_sync_async_and_batches_find_the_same(retriever: PersonaRetriever) -> None:
    found = retriever.invoke("苺")

    async def asynchronously() -> list[Any]:
        return [await retriever.ainvoke("苺"), *(await retriever.abatch(["苺", "公園"]))]

    one, other, park = asyncio.run(asynchronously())
    assert contents(found) == contents(one) == contents(other) == contents(retriever.batch(["苺"])[0])
    assert contents(park)[0] == "旅人と公園で会った"


def test_a_sync_call_works_in_a_notebook_whose_loop_is_running(retriever: PersonaRetriever) -> None:
    async def cell() -> list[Any]:
        return retriever.invoke("苺")

    assert contents(asyncio.run(cell())) == contents(retriever.invoke("苺"))


def test_an_async_call_leaves_the_loop_to_others(server: RunningServer, retriever: PersonaRetriever) -> None:
    async def both() -> int:
        turns, call = 0, asyncio.ensure_future(retriever.ainvoke("苺"))
        while not call.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(both()) > 10


def test_memories_are_chosen_by_number_tags_dates_and_mode(server: RunningServer, retriever: PersonaRetriever) -> None:
    def found(query: str = "旅人 苺", **fields: Any) -> list[str]:
        return contents(PersonaRetriever(url=server.url, persona="さくら", **fields).invoke(query))

    assert len(found()) == 3
    assert len(found(top_k=1)) == 1
    assert found(memory_tags=["食べ物", "秋"]) == ["旅人は苺のタルトも好き"]
    assert found(date_range="2025-10-01..2025-10-02") == ["旅人は苺のケーキが好き"]
    assert found("会った", min_importance=0.8) == ["旅人と公園で会った"]
    assert found(category="nothing is of it") == []
    assert found("あの日のこと", hypothetical="公園で会った")[0] == "旅人と公園で会った"
    assert found("", mode="recent")[0] in {memory["content"] for memory in MEMORIES}
    assert found(tags=["tracing only"]) == found()


def test_a_chain_tells_the_chat_model_what_is_remembered(server: RunningServer, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """As the documentation has it, to the letter."""
    space: dict[str, Any] = {"model": Parrot()}
    for block in re.findall(r"```python\n(.*?)```", DOCUMENTATION, re.DOTALL):
        here = block.replace("http://127.0.0.1:8000", server.url).replace('persona="nilou"', 'persona="さくら"')
        exec(compile(here, "docs/langchain.md", "exec"), space)  # noqa: S102  the documentation's own examples
    said = capsys.readouterr().out
    assert "data, not instructions" in said
    assert "旅人は苺のケーキが好き" in said
    assert "わたしは何が好き？" in said
    assert "ニロウ" not in said
    streamed = "".join(space["chain"].stream("わたしは苺が好き？"))
    assert "旅人は苺のタルトも好き" in streamed


def test_every_argument_is_documented() -> None:
    own = set(PersonaRetriever.model_fields) - {"name", "tags", "metadata"}  # LangChain's own
    assert own == set(re.findall(r"^\| `(\w+)` \|", DOCUMENTATION.partition("## Documents")[0], re.MULTILINE))


def test_a_copy_for_another_persona_reads_that_ones_memories_alone(retriever: PersonaRetriever) -> None:
    copy = retriever.model_copy(update={"persona": "nilou"})
    assert contents(copy.invoke("苺")) == ["ニロウの苺のひみつ"]
    assert "ニロウの苺のひみつ" not in contents(retriever.invoke("苺"))
    copy.persona = "さくら"
    assert contents(copy.invoke("苺")) == contents(retriever.invoke("苺"))


def test_a_persona_that_does_not_exist_is_said_with_whom_was_meant(server: RunningServer) -> None:
    with pytest.raises(PersonaUnknown, match=r"persona 'nilo' has no memories: similar names: nilou\. Correct the name"):
        PersonaRetriever(url=server.url, persona="nilo").invoke("苺")
    assert PersonaRetriever(url=server.url, persona="nilo", new_persona_is_empty=True).invoke("苺") == []
    assert not (server.data / "nilo").exists()


def test_a_server_that_is_not_there_is_said_with_what_to_do() -> None:
    nowhere = PersonaRetriever(url="http://127.0.0.1:9", persona="nilou")
    with pytest.raises(ServerUnreachable, match=r"no server answers at http://127\.0\.0\.1:9"):
        nowhere.invoke("苺")
    with pytest.raises(ServerUnreachable, match=r"no server answers at http://127\.0\.0\.1:9"):
        asyncio.run(nowhere.ainvoke("苺"))


def test_what_can_not_be_used_is_refused_when_the_retriever_is_made() -> None:
    for wrong in ({"top_k": 0}, {"top_k": 51}, {"mode": "psychic"}, {"memory_tags": [1]}):
        with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
            PersonaRetriever(**wrong)
    with pytest.raises(InvalidPersonaName, match="begins or ends with a blank"):
        PersonaRetriever(persona=" nilou")
    with pytest.raises(InvalidInput, match="is not the URL of a server"):
        PersonaRetriever(url="127.0.0.1:8000")


def test_what_the_server_refuses_is_told_in_its_words(server: RunningServer, retriever: PersonaRetriever) -> None:
    with pytest.raises(MemoryMCPError, match="date"):
        PersonaRetriever(url=server.url, persona="さくら", date_range="someday soon").invoke("苺")
    with pytest.raises(MemoryMCPError, match="query"):
        retriever.invoke("")


def test_the_token_and_the_address_come_from_the_environment_and_the_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MCP_TOKEN", "t0k-secret")
    monkeypatch.setenv("MEMORY_MCP_URL", "http://memory.example:1234/mcp")
    retriever = PersonaRetriever(persona="nilou")
    assert retriever._connection().url == "http://memory.example:1234"
    assert retriever._connection().headers == {"Authorization": "Bearer t0k-secret", "X-Persona": "nilou"}
    assert "t0k-secret" not in repr(retriever) + str(retriever.model_dump()) + retriever.model_dump_json()
    assert PersonaRetriever(token="another")._connection().headers["Authorization"] == "Bearer another"


def test_langchain_is_imported_only_by_who_asks_for_it() -> None:
    program = """
import sys
import memory_mcp, memory_mcp.app, memory_mcp.cli, memory_mcp.client, memory_mcp.client.connection, memory_mcp.server.application
assert not [name for name in sys.modules if name.startswith("langchain")]
import memory_mcp.client.langchain
assert "langchain_core" in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment(), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
