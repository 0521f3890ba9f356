"""Real model directories through the code that loads a user's models: what is set, and what a wrong directory becomes."""

import gc
import json
import random
import shutil
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_directories import break_tokenizer, make_embedder, make_reranker

from memory_mcp.config.settings import LongTexts, Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import build_registry, load_embedder, load_reranker
from memory_mcp.encoders.pooled import model_input
from memory_mcp.encoders.reranking import PooledReranker
from memory_mcp.encoders.torch import devices
from memory_mcp.encoders.torch import models as torch_models
from memory_mcp.encoders.torch.devices import in_halves
from memory_mcp.encoders.torch.tracing import _what_failed
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.index import splitting

# torch takes seconds to import.
pytestmark = pytest.mark.slow


@pytest.fixture
def pool() -> Iterator[ModelPool]:
    with ModelPool(2) as pool:
        yield pool


def reranker_at(directory: Path, pool: ModelPool) -> PooledReranker:
    return load_reranker(Settings(reranker_model=str(directory)), pool, Caches())


def raw_vector(directory: Path, text: str) -> np.ndarray:
    """As sentence-transformers has it, without our code."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  as above

    return SentenceTransformer(str(directory), device="cpu").encode([text], normalize_embeddings=True)[0]


def test_langchains_class_holds_the_only_weights(tmp_path: Path, pool: ModelPool, monkeypatch: pytest.MonkeyPatch):
    import langchain_huggingface  # noqa: PLC0415  as above

    made: list[langchain_huggingface.HuggingFaceEmbeddings] = []

    class Noted(langchain_huggingface.HuggingFaceEmbeddings):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(langchain_huggingface, "HuggingFaceEmbeddings", Noted)
    directory = make_embedder(tmp_path / "ruri-v3-small")
    embedder = load_embedder(Settings(embeddings_model=str(directory)), pool, Caches())
    (model,) = made
    assert embedder.embed_documents(["猫が\nいる"])[0] == pytest.approx(model.embed_documents(["猫が いる"])[0], abs=1e-6)
    assert embedder.embed_query("猫") == pytest.approx(raw_vector(directory, "検索クエリ: 猫"), abs=1e-5)


def test_the_dimension_and_the_limit_are_the_models_own(tmp_path: Path, pool: ModelPool):
    directory = make_embedder(tmp_path / "wide", dimension=48, max_tokens=64)
    embedder = load_embedder(Settings(embeddings_model=str(directory)), pool, Caches())
    assert (embedder.dimension, embedder.max_tokens) == (48, 64 - 2)  # two special tokens, and no prefix
    assert ":48:" in embedder.generation


@pytest.mark.parametrize("most", [64, 256])
def test_a_model_reads_each_piece_of_a_long_text_to_its_end(tmp_path: Path, pool: ModelPool, most: int):
    directory = make_embedder(tmp_path / "ruri-v3-narrow", max_tokens=most)
    embedder = load_embedder(Settings(embeddings_model=str(directory)), pool, Caches())
    chance = random.Random(3)
    words = [
        "今日は京都で",
        "猫と散歩した。",
        "Tokyo ",
        "🎂",
        "①",
        "ｶﾞ",
        "漢字𠮷",
        "。",
        "\n",
        " ",
        "I like coffee. ",
        "\ud83d",
        "<s>",
        "x" * 30,
    ]
    text = "".join(chance.choices(words, k=800))
    label = "[2025-10-30] ニィロウ: "
    pieces = splitting.pieces(text, label, embedder, LongTexts(chunk_tokens=most))
    assert (pieces[0].start, pieces[-1].end) == (0, len(text))
    sent = ["検索文書: " + model_input(label + text[piece.start : piece.end], None).replace("\n", " ") for piece in pieces]
    lengths = [len(ids) for ids in raw_tokenizer(directory)(sent)["input_ids"]]
    assert max(lengths) <= most
    assert max(lengths) > most * 0.8


def raw_tokenizer(directory: Path) -> Any:
    """The model's own, which cuts nothing off."""
    from transformers import AutoTokenizer  # noqa: PLC0415  as above

    return AutoTokenizer.from_pretrained(str(directory), model_max_length=1_000_000)


def test_ruri_gets_its_prefixes(embedder_directory: Path, pool: ModelPool):
    embedder = load_embedder(Settings(embeddings_model=str(embedder_directory)), pool, Caches())
    assert embedder.embed_query("猫") == pytest.approx(raw_vector(embedder_directory, "検索クエリ: 猫"), abs=1e-5)
    assert embedder.embed_documents(["猫"])[0] == pytest.approx(raw_vector(embedder_directory, "検索文書: 猫"), abs=1e-5)
    assert embedder.traits.languages == ("ja",)


def test_another_model_gets_the_text_as_it_is(embedder_directory: Path, tmp_path: Path, pool: ModelPool):
    directory = Path(shutil.copytree(embedder_directory, tmp_path / "other"))
    embedder = load_embedder(Settings(embeddings_model=str(directory)), pool, Caches())
    assert embedder.embed_query("猫") == pytest.approx(raw_vector(directory, "猫"), abs=1e-5)
    assert embedder.embed_documents(["猫"])[0] == pytest.approx(embedder.embed_query("猫"), abs=1e-5)


def test_two_models_of_one_name_are_two_generations(tmp_path: Path, pool: ModelPool):
    settings = Settings(embeddings_model=str(tmp_path / "model"))
    make_embedder(tmp_path / "model", seed=1)
    one = load_embedder(settings, pool, Caches()).generation
    shutil.rmtree(tmp_path / "model")
    make_embedder(tmp_path / "model", seed=2)
    assert load_embedder(settings, pool, Caches()).generation != one


@pytest.mark.parametrize("activation", [None, "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"])
def test_a_sigmoid_is_applied_once_whatever_the_model_says(
    reranker_directory: Path, tmp_path: Path, pool: ModelPool, activation: str | None
):
    directory = Path(shutil.copytree(reranker_directory, tmp_path / "reranker"))
    config = json.loads((directory / "config.json").read_text())
    if activation:
        config["sentence_transformers"] = {"activation_fn": activation}
    (directory / "config.json").write_text(json.dumps(config))
    plain = reranker_at(reranker_directory, pool).score("猫の名前は?", ["猫の名前はミケ。", "犬"])
    assert reranker_at(directory, pool).score("猫の名前は?", ["猫の名前はミケ。", "犬"]) == pytest.approx(plain)
    logits = raw_logits(reranker_directory, "猫の名前は?", ["猫の名前はミケ。", "犬"])
    assert plain == pytest.approx([1 / (1 + np.exp(-logit)) for logit in logits], abs=1e-5)


def raw_logits(directory: Path, query: str, texts: list[str]) -> list[float]:
    """As transformers has them."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: PLC0415  as above

    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    return [float(model(**tokenizer(query, text, return_tensors="pt")).logits[0, 0].detach()) for text in texts]


def test_a_device_that_is_not_there_is_an_error_and_never_replaced(embedder_directory: Path, pool: ModelPool):
    import torch  # noqa: PLC0415  as above

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(EncoderFailed, match="no GPU"):
        load_embedder(Settings(embeddings_model=str(embedder_directory), embeddings_device="cuda"), pool, Caches())
    automatic = Settings(embeddings_model=str(embedder_directory), embeddings_device="auto")
    assert load_embedder(automatic, pool, Caches()).dimension == 32


@pytest.mark.parametrize(("largest", "calls"), [(8, [8]), (4, [8, 4, 4]), (3, [8, 4, 2, 2, 4, 2, 2])])
def test_what_the_memory_of_a_gpu_is_too_small_for_is_done_in_halves(largest: int, calls: list[int]):
    import torch  # noqa: PLC0415  as above

    asked: list[int] = []

    def work(items: list[int]) -> list[int]:
        asked.append(len(items))
        if len(items) > largest:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [item * 2 for item in items]

    assert in_halves(work, list(range(8))) == list(range(0, 16, 2))
    assert asked == calls
    with pytest.raises(torch.OutOfMemoryError):
        in_halves(lambda items: work([*items, *range(8)]), [1])


def test_an_automatic_device_without_a_driver_asks_nobody_further(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "has_driver", lambda: False)
    monkeypatch.setattr(devices, "_has_gpu", lambda: pytest.fail("torch was asked"))
    assert devices.usable_device("auto", "ruri") == "cpu"
    monkeypatch.setattr(devices, "has_driver", lambda: True)
    monkeypatch.setattr(devices, "_has_gpu", lambda: False)
    assert devices.usable_device("auto", "ruri") == "cpu"
    monkeypatch.setattr(devices, "_has_gpu", lambda: True)
    assert devices.usable_device("auto", "ruri") == "cuda"


@pytest.fixture
def as_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU is used as a GPU is."""
    monkeypatch.setattr(torch_models, "GPU", "cpu")


def only(most: int, forward: Callable[..., Any]) -> Callable[..., Any]:
    """A pass for which the memory is too small if it gets more texts than that."""
    import torch  # noqa: PLC0415  as above

    def pass_of(**features: Any) -> Any:
        if len(features["input_ids"]) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(**features)

    return pass_of


@pytest.mark.usefixtures("as_gpu")
def test_a_gpu_gets_large_batches_from_few_workers(embedder_directory: Path, reranker_directory: Path, pool: ModelPool):
    settings = Settings(embeddings_model=str(embedder_directory), reranker_model=str(reranker_directory), inference_backend="torch")
    embedder, judge = load_embedder(settings, pool, Caches()), load_reranker(settings, pool, Caches())
    texts = [f"{number}匹の猫" for number in range(130)]
    sizes: list[int] = []

    def counted(forward: Callable[..., Any]) -> Callable[..., Any]:
        def pass_of(**features: Any) -> Any:
            sizes.append(len(features["input_ids"]))
            return forward(**features)

        return pass_of

    for part in (embedder._model.model[0].auto_model, judge._model.model[0].auto_model):
        part.forward = counted(part.forward)
    embedder.embed_documents(texts)
    judge.score("猫", texts[:15])
    assert sorted(sizes) == [2, 15, 64, 64]
    assert embedder._pool is judge._pool is pool.for_gpu()
    assert embedder.texts_at_once == 64 * pool.for_gpu().workers


@pytest.mark.usefixtures("as_gpu")
def test_a_gpu_whose_memory_is_small_gets_small_batches_and_an_error_only_where_nothing_fits(
    embedder_directory: Path, reranker_directory: Path, pool: ModelPool
):
    settings = Settings(embeddings_model=str(embedder_directory), reranker_model=str(reranker_directory), inference_backend="torch")
    texts = [f"{number}匹の猫" for number in range(30)]
    vectors, scores = (
        load_embedder(settings, pool, Caches()).embed_documents(texts),
        load_reranker(settings, pool, Caches()).score("猫", texts),
    )
    embedder, judge = load_embedder(settings, pool, Caches()), load_reranker(settings, pool, Caches())
    parts = embedder._model.model[0].auto_model, judge._model.model[0].auto_model
    forwards = [part.forward for part in parts]
    for part, forward in zip(parts, forwards, strict=True):
        part.forward = only(0, forward)
    for failing in (lambda: embedder.embed_documents(texts), lambda: embedder.embed_query("犬"), lambda: judge.score("猫", texts)):
        with pytest.raises(EncoderFailed, match="CUDA out of memory"):
            failing()
    for part, forward in zip(parts, forwards, strict=True):
        part.forward = only(3, forward)
    assert embedder.embed_documents(texts) == pytest.approx(vectors, abs=1e-5)
    assert judge.score("猫", texts) == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_model_that_is_no_longer_wanted_leaves_the_memory(
    request: pytest.FixtureRequest,
    embedder_directory: Path,
    reranker_directory: Path,
    pool: ModelPool,
    eventually: Callable[[Callable[[], bool]], None],
    device: str,
):
    if device == "gpu":
        request.getfixturevalue("as_gpu")
    one = Settings(embeddings_model=str(embedder_directory), reranker_model=str(reranker_directory), inference_backend="torch")
    other = one.model_copy(update={"embeddings_device": "auto"})
    registry = build_registry(pool, Caches())
    registry.start(one)
    eventually(lambda: bool(registry.current(one).embedder and registry.current(one).reranker))
    models = registry.current(one)
    models.embedder.embed_documents(["猫", "犬"])
    models.reranker.score("猫", ["猫", "犬"])
    model = models.embedder._model
    weights = [model.model[0].auto_model, models.reranker._model.model[0].auto_model]
    left = [weakref.ref(part) for part in (models.embedder, models.reranker, *weights)]
    del models, model, weights
    eventually(lambda: bool(registry.current(other).embedder and registry.current(other).reranker))
    gc.collect()
    assert [reference() for reference in left] == [None] * 4
    registry.close()


def test_an_error_inside_a_trace_is_told_by_its_name():
    import torch  # noqa: PLC0415  as above

    listing = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript:\n    forward\n    ~~~ <--- HERE\n"
    full = _what_failed(RuntimeError(f"{listing}RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB.\n"))
    assert isinstance(full, torch.OutOfMemoryError)
    assert str(full) == "CUDA out of memory. Tried to allocate 2.00 MiB."
    assert str(_what_failed(RuntimeError(f"{listing}RuntimeError: CUDA error: unknown"))) == "CUDA error: unknown"


def test_a_traced_model_that_fails_says_why(embedder_directory: Path, pool: ModelPool):
    embedder = load_embedder(Settings(embeddings_model=str(embedder_directory), inference_backend="torch"), pool, Caches())
    tokenizer = embedder._model.model[0].tokenizer
    tokenizer.add_tokens(["猫" * 5])  # the model has no row for it
    with pytest.raises(EncoderFailed, match="index out of range"):
        embedder.embed_query("猫" * 5)


def test_a_classifier_is_no_reranker(tmp_path: Path, pool: ModelPool):
    with pytest.raises(EncoderFailed, match="3 scores"):
        reranker_at(make_reranker(tmp_path / "classifier", labels=3), pool)


def truncate(directory: Path) -> None:
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1_000])


def spoil(directory: Path) -> None:
    from safetensors.numpy import load_file, save_file  # noqa: PLC0415  as above

    weights = load_file(directory / "model.safetensors")
    save_file({name: tensor * np.float32("nan") for name, tensor in weights.items()}, directory / "model.safetensors")


def garble(directory: Path) -> None:
    (directory / "config.json").write_text("{ not json")


def rename(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "model_type": "from_the_future"}))


def shrink(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "vocab_size": 7}))


@pytest.mark.parametrize("damage", [truncate, spoil, garble, rename, shrink, break_tokenizer])
@pytest.mark.parametrize("role", ["embedder", "reranker"])
def test_a_damaged_model_is_absent_with_a_sentence_and_nothing_crashes(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    pool: ModelPool,
    eventually: Callable[[Callable[[], bool]], None],
    damage: Callable[[Path], None],
    role: str,
):
    directory = Path(shutil.copytree(request.getfixturevalue(f"{role}_directory"), tmp_path / "model"))
    damage(directory)
    names = {"embeddings_model": None, "reranker_model": None}
    names["embeddings_model" if role == "embedder" else "reranker_model"] = str(directory)
    settings = Settings(**names)
    registry = build_registry(pool, Caches())
    registry.start(settings)

    def state():
        models = registry.current(settings)
        return models.embedder_state if role == "embedder" else models.reranker_state

    eventually(lambda: state().state != "loading")
    assert state().state == "absent"
    error = state().error
    assert error
    assert str(directory) in error
    assert "\n" not in error
    registry.close()


def test_both_models_come_in_from_their_directories(
    embedder_directory: Path, reranker_directory: Path, pool: ModelPool, eventually: Callable[[Callable[[], bool]], None]
):
    settings = Settings(embeddings_model=str(embedder_directory), reranker_model=str(reranker_directory))
    registry = build_registry(pool, Caches())
    registry.start(settings)
    eventually(lambda: registry.current(settings).reranker is not None)
    models = registry.current(settings)
    assert models.embedder
    assert models.reranker
    assert models.embedder.embed_query("猫").shape == (32,)
    assert models.reranker.score("猫", ["猫", "犬"])
    registry.close()
