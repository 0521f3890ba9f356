"""Real models on a GPU: what they return, what they say, and what happens when its memory runs out. Skipped where torch finds none."""

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import build_registry, load_embedder, load_reranker
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("gpu")]

TEXTS = [f"{number}年前の春、京都で蕎麦を食べて、猫と散歩した。" * (1 + number % 7) for number in range(100)]
QUERY = "京都で何を食べた？"


@pytest.fixture
def pool() -> Iterator[ModelPool]:
    with ModelPool(4) as pool:
        yield pool


@contextmanager
def memory_left(megabytes: float) -> Iterator[None]:
    """Inside the block, this process can have no more of the GPU's memory than it uses now and so much."""
    import torch  # noqa: PLC0415  takes seconds

    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + megabytes * 2**20) / torch.cuda.mem_get_info()[1])
    taken = []
    try:
        for size in () if megabytes else (2**20, 2**14, 2**9):
            with suppress(torch.OutOfMemoryError):
                while True:
                    taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def settings(embedder: Path | None, reranker: Path | None = None, **more: object) -> Settings:
    names = {"embeddings_model": str(embedder) if embedder else None, "reranker_model": str(reranker) if reranker else None}
    return Settings(**{**names, "embeddings_device": "cuda", **more})


@pytest.mark.parametrize("device", ["cuda", "auto"])
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_vectors_and_scores_are_those_of_the_cpu(
    embedder_directory: Path, reranker_directory: Path, pool: ModelPool, device: str, backend: str
):
    there = settings(embedder_directory, reranker_directory, embeddings_device=device, inference_backend=backend)
    here = there.model_copy(update={"embeddings_device": "cpu", "inference_backend": "torch"})
    on_gpu, on_cpu = load_embedder(there, pool, Caches()), load_embedder(here, pool, Caches())
    assert on_gpu.generation == on_cpu.generation
    assert (on_gpu.embed_documents(TEXTS) * on_cpu.embed_documents(TEXTS)).sum(axis=1).min() > 0.99999
    assert on_gpu.embed_query(QUERY) @ on_cpu.embed_query(QUERY) > 0.99999
    judge = load_reranker(there, pool, Caches())
    assert judge.score(QUERY, TEXTS) == pytest.approx(load_reranker(here, pool, Caches()).score(QUERY, TEXTS), abs=1e-4)


def test_a_model_on_a_gpu_says_so(embedder_directory: Path, reranker_directory: Path, pool: ModelPool):
    import torch  # noqa: PLC0415  as above

    for device in ("cuda", "auto"):
        there = settings(embedder_directory, reranker_directory, embeddings_device=device)
        for model in (load_embedder(there, pool, Caches()), load_reranker(there, pool, Caches())):
            assert model.backend
            assert torch.cuda.get_device_name() in model.backend


def test_fifty_at_once_get_what_one_after_the_other_gets(embedder_directory: Path, reranker_directory: Path, pool: ModelPool):
    there = settings(embedder_directory, reranker_directory)

    def answers(callers: int) -> tuple[np.ndarray, np.ndarray]:
        embedder, judge = load_embedder(there, pool, Caches()), load_reranker(there, pool, Caches())
        with ThreadPoolExecutor(callers) as threads:
            vectors = list(threads.map(embedder.embed_query, TEXTS))
            return np.stack(vectors), np.array(list(threads.map(lambda text: judge.score(text, TEXTS[:15]), TEXTS)))

    (one, one_scores), (many, many_scores) = answers(1), answers(50)
    assert (one * many).sum(axis=1).min() > 0.99999
    assert many_scores == pytest.approx(one_scores, abs=1e-4)


def test_a_full_gpu_fails_the_call_and_not_the_next(embedder_directory: Path, reranker_directory: Path, pool: ModelPool):
    embedder = load_embedder(settings(embedder_directory), pool, Caches())
    judge = load_reranker(settings(None, reranker_directory), pool, Caches())
    before = embedder.embed_query("猫")
    with memory_left(0):
        with pytest.raises(EncoderFailed, match="out of memory") as failed:
            embedder.embed_documents(TEXTS)
        assert "京都" not in str(failed.value)
        with pytest.raises(EncoderFailed, match="out of memory"):
            judge.score(QUERY, TEXTS)
        with pytest.raises(EncoderFailed, match="out of memory"):
            embedder.embed_query("犬")
    assert np.isfinite(embedder.embed_documents(TEXTS)).all()
    assert len(judge.score(QUERY, TEXTS) or []) == len(TEXTS)
    assert embedder.embed_query("猫") == pytest.approx(before)
    assert np.isfinite(embedder.embed_query("犬")).all()


def test_a_batch_that_the_memory_is_too_small_for_is_done_in_parts(embedder_directory: Path, pool: ModelPool):
    long = [text * 9 for text in TEXTS]
    expected = load_embedder(settings(embedder_directory), pool, Caches()).embed_documents(long)
    embedder = load_embedder(settings(embedder_directory), pool, Caches())
    with memory_left(4):
        assert (embedder.embed_documents(long) * expected).sum(axis=1).min() > 0.99999


def test_a_model_that_a_full_gpu_has_no_room_for_is_absent_and_comes_in_later(
    embedder_directory: Path, pool: ModelPool, eventually: Callable[[Callable[[], bool]], None]
):
    registry, wanted = build_registry(pool, Caches()), settings(embedder_directory)
    registry._embedder._retry_seconds = (0.05,)
    with memory_left(0):
        registry.start(wanted)
        eventually(lambda: registry.current(wanted).embedder_state.state == "absent")
        assert "not enough memory" in (registry.current(wanted).embedder_state.error or "")
    eventually(lambda: registry.current(wanted).embedder is not None)
    registry.close()


def test_a_model_that_is_no_longer_wanted_leaves_the_gpu(
    embedder_directory: Path, reranker_directory: Path, pool: ModelPool, eventually: Callable[[Callable[[], bool]], None]
):
    there = settings(embedder_directory, reranker_directory)
    here = there.model_copy(update={"embeddings_device": "cpu"})
    registry = build_registry(pool, Caches())
    registry.start(there)
    eventually(lambda: bool(registry.current(there).embedder and registry.current(there).reranker))
    models = registry.current(there)
    assert models.embedder
    assert models.reranker
    models.embedder.embed_documents(TEXTS)
    models.reranker.score(QUERY, TEXTS)
    left = [weakref.ref(models.embedder), weakref.ref(models.reranker)]
    del models
    eventually(lambda: bool(registry.current(here).embedder and registry.current(here).reranker))
    gc.collect()
    assert [reference() for reference in left] == [None, None]
    registry.close()
