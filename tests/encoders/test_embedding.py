"""How an embedding model is asked: how often, with what, and what its failures become."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.embeddings import Embeddings
from panics import Panicked

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import BATCH, Identity, PooledEmbedder
from memory_mcp.encoders.failures import CircuitBreaker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

AN_HOUR = 3_600


class Service(Embeddings):
    """Answers with what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: list[float] = [3, 4]
        self.error: BaseException | None = None
        self.gate: threading.Event | None = None

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        if self.gate:
            self.gate.wait()
        if self.error:
            raise self.error
        return [self.answer for _ in texts]


@pytest.fixture
def pool() -> Iterator[ModelPool]:
    with ModelPool(2) as pool:
        yield pool


@pytest.fixture
def service() -> Service:
    return Service()


def embedder(service: Service, pool: ModelPool, breaker: CircuitBreaker | None = None, generation: str = "g", caches: Caches | None = None):
    return PooledEmbedder(service, Identity("service", 2, generation), pool, caches or Caches(), breaker)


def test_vectors_are_brought_to_length_one(service: Service, pool: ModelPool):
    assert embedder(service, pool).embed_query("a") == pytest.approx([0.6, 0.8])
    assert embedder(service, pool).embed_documents(["a"])[0] == pytest.approx([0.6, 0.8])


def test_one_text_is_asked_once(service: Service, pool: ModelPool):
    asking = embedder(service, pool)
    for _ in range(2):
        asking.embed_query("query")
        asking.embed_documents(["text", "text"])
    assert service.asked == [["query"], ["text"]]


def test_a_query_and_a_stored_text_of_the_same_words_are_two_things(service: Service, pool: ModelPool):
    asking = embedder(service, pool)
    asking.embed_query("words")
    asking.embed_documents(["words"])
    assert len(service.asked) == 2


def test_another_generation_is_asked_anew(service: Service, pool: ModelPool):
    caches = Caches()
    for generation in ("one", "other"):
        embedder(service, pool, generation=generation, caches=caches).embed_query("words")
    assert len(service.asked) == 2


def test_what_is_remembered_cant_be_changed_by_who_asks(service: Service, pool: ModelPool):
    vector = embedder(service, pool).embed_query("words")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5


def test_many_texts_go_in_small_batches(service: Service, pool: ModelPool):
    embedder(service, pool).embed_documents([f"text {number}" for number in range(BATCH * 2 + 1)])
    assert sorted(len(asked) for asked in service.asked) == [1, BATCH, BATCH]


def test_a_failure_says_which_model_and_why(service: Service, pool: ModelPool):
    service.error = ConnectionError("no route to host.\nand more")
    with pytest.raises(EncoderFailed, match="service failed: ConnectionError: no route to host"):
        embedder(service, pool).embed_query("words")
    with pytest.raises(EncoderFailed):
        embedder(service, pool).embed_documents(["words"])


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError, Panicked])
def test_a_failure_does_not_say_what_was_asked(service: Service, pool: ModelPool, kind: type[BaseException], caplog):
    service.error = kind("can't embed '桜餅のひみつ'")
    for ask in (
        lambda: embedder(service, pool).embed_query("桜餅のひみつ"),
        lambda: embedder(service, pool).embed_documents(["桜餅のひみつ"]),
    ):
        with caplog.at_level(logging.INFO), pytest.raises(EncoderFailed, match=f"failed: {kind.__name__}\\.") as failure:
            ask()
        assert "桜餅" not in str(failure.value) + caplog.text


def test_why_queries_fail_is_in_the_log_once_and_again_when_the_reason_is_another(service: Service, pool: ModelPool, caplog):
    asking = embedder(service, pool)
    for reason, times in (("no route to host", 3), ("connection refused", 2)):
        service.error = ConnectionError(reason)
        for _ in range(times):
            with pytest.raises(EncoderFailed):
                asking.embed_query("words")
    assert [record.getMessage() for record in caplog.records] == [
        "service failed: ConnectionError: no route to host",
        "service failed: ConnectionError: connection refused",
    ]


def test_a_failure_is_not_remembered(service: Service, pool: ModelPool):
    asking = embedder(service, pool)
    service.error = ConnectionError("down")
    with pytest.raises(EncoderFailed):
        asking.embed_query("words")
    service.error = None
    assert asking.embed_query("words").shape == (2,)


@pytest.mark.parametrize(("answer", "why"), [([1.0], "changed"), ([float("nan"), 1.0], "NaN or infinity")])
def test_answers_that_are_no_vectors_are_failures(service: Service, pool: ModelPool, answer: list[float], why: str):
    service.answer = answer
    with pytest.raises(EncoderFailed, match=why):
        embedder(service, pool).embed_query("words")
    with pytest.raises(EncoderFailed, match=why):
        embedder(service, pool).embed_documents(["words"])


def test_a_text_of_which_the_model_says_nothing_still_gets_a_direction(service: Service, pool: ModelPool):
    service.answer = [0, 0]
    assert embedder(service, pool).embed_query("") == pytest.approx([1, 0])


def test_after_a_failure_a_service_is_left_alone(service: Service, pool: ModelPool):
    asking = embedder(service, pool, CircuitBreaker(pause_seconds=AN_HOUR))
    service.error = ConnectionError("down")
    for _ in range(3):
        with pytest.raises(EncoderFailed, match="down"):
            asking.embed_query("words")
    with pytest.raises(EncoderFailed, match="down"):
        asking.embed_documents(["words"])
    assert len(service.asked) == 1


def test_after_its_rest_a_service_is_asked_again(service: Service, pool: ModelPool):
    asking = embedder(service, pool, CircuitBreaker(pause_seconds=0))
    service.error = ConnectionError("down")
    with pytest.raises(EncoderFailed):
        asking.embed_query("words")
    service.error = None
    assert asking.embed_query("words").shape == (2,)


def test_what_is_remembered_is_answered_while_the_service_rests(service: Service, pool: ModelPool):
    asking = embedder(service, pool, CircuitBreaker(pause_seconds=AN_HOUR))
    asking.embed_query("known")
    service.error = ConnectionError("down")
    with pytest.raises(EncoderFailed):
        asking.embed_query("new")
    assert asking.embed_query("known").shape == (2,)
    assert asking.embed_documents([]).shape == (0, 2)


def test_a_service_that_hangs_is_not_waited_for(service: Service, pool: ModelPool):
    service.gate = threading.Event()
    asking = embedder(service, pool, CircuitBreaker(query_seconds=0.01, pause_seconds=AN_HOUR))
    with pytest.raises(EncoderFailed, match=r"within 0\.01 seconds"):
        asking.embed_query("words")
    service.gate.set()


def test_a_closed_pool_is_a_failure_too(service: Service):
    pool = ModelPool(1)
    pool.close()
    with pytest.raises(EncoderFailed, match="shutting down"):
        embedder(service, pool).embed_query("words")


def test_a_text_that_two_calls_embed_at_once_is_embedded_once(service: Service, pool: ModelPool, eventually):
    service.gate = threading.Event()
    asking = embedder(service, pool)
    with ThreadPoolExecutor(2) as threads:
        alone = threads.submit(asking.embed_documents, ["shared"], is_awaited=True)
        eventually(lambda: service.asked == [["shared"]])
        further = threads.submit(asking.embed_documents, ["shared", "own"])
        eventually(lambda: len(service.asked) == 2)
        service.gate.set()
        assert alone.result(60) == pytest.approx(further.result(60)[:1])
    assert service.asked == [["shared"], ["own"]]
    assert not asking._documents_under_way


class FirstFails(Service):
    """Answers the first call with an error, when the gate is opened."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        is_first = not self.asked
        vectors = super().embed_documents(texts)
        if is_first:
            raise OSError("gone")
        return vectors


def test_a_text_is_embedded_again_where_the_other_call_failed(pool: ModelPool, eventually):
    service = FirstFails()
    service.gate = threading.Event()
    asking = embedder(service, pool)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(asking.embed_documents, ["shared"])
        eventually(lambda: service.asked == [["shared"]])
        second = threads.submit(asking.embed_documents, ["own", "shared"])
        eventually(lambda: len(service.asked) == 2)
        service.gate.set()
        assert isinstance(first.exception(60), EncoderFailed)
        assert second.result(60).shape == (2, 2)
    assert service.asked == [["shared"], ["own"], ["shared"]]
    assert not asking._documents_under_way


def test_a_question_that_several_ask_at_once_is_embedded_once(service: Service, pool: ModelPool, eventually):
    service.gate = threading.Event()
    asking = embedder(service, pool)
    threads = [threading.Thread(target=asking.embed_query, args=("猫",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(service.asked) == 1)
    service.gate.set()
    for thread in threads:
        thread.join()
    assert service.asked == [["猫"]]
    assert not asking._under_way


def test_a_stored_text_that_a_call_waits_for_has_the_urgency_of_a_query(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("memory_mcp.encoders.worker_pool.RECENT_CALL_SECONDS", AN_HOUR)
    with ModelPool(1, bulk_share=1e-9) as pool:  # after a job of bulk work the next one rests for long
        asking = embedder(service, pool)
        asking.embed_query("鳥")
        asking.embed_documents(["犬"])
        assert asking.embed_documents(["猫"], is_awaited=True).shape == (1, 2)
        assert service.asked == [["鳥"], ["犬"], ["猫"]]
