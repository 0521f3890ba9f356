"""Which model may judge which text."""

import numpy as np
import pytest
from fakes import HashingEmbedder, OverlapReranker

from memory_mcp.encoders.languages import covers, limited, script_of
from memory_mcp.encoders.models import Centers


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("今日は良い天気", "kana"),
        ("京都", "han"),
        ("ﾈｺ", "kana"),
        ("Whom did I meet?", "latin"),
        ("Ｐｙｔｈｏｎ", "latin"),
        ("Kubernetesの設定を直した", "kana"),
        ("The word 猫 means cat, and that is all there is to say", "latin"),
        ("안녕하세요", "hangul"),
        ("Привет", "cyrillic"),
        ("2025-10-30 🎂 !?", None),
        ("", None),
    ],
)
def test_a_text_is_in_the_script_that_says_most_of_it(text: str, script: str | None):
    assert script_of(text) == script


@pytest.mark.parametrize(
    ("languages", "text", "covered"),
    [
        (("ja",), "夕飯は何?", True),
        (("ja",), "京都", True),
        (("ja",), "What is for dinner?", False),
        (("en",), "What is for dinner?", True),
        (("en",), "夕飯は何?", False),
        (("zh",), "夕飯は何?", False),
        (("zh",), "北京", True),
        (("JA-jp",), "夕飯", True),
        (("ja", "en"), "What is for dinner?", True),
        (("fr",), "Qu'est-ce qu'on mange ?", True),
        (("ja",), "2025", True),
        (None, "夕飯", True),
        ((), "夕飯", False),
    ],
)
def test_a_model_covers_the_texts_in_its_languages(languages: tuple[str, ...] | None, text: str, covered: bool):
    assert covers(languages, text) is covered


def test_languages_that_somebody_set_go_before_the_models_own():
    embedder = limited(HashingEmbedder(languages=["ja"]), ["en"])
    assert embedder.covers("dinner")
    assert not embedder.covers("夕飯")
    assert (embedder.embed_query("dinner") == HashingEmbedder().embed_query("dinner")).all()
    assert (embedder.embed_documents(["dinner"]) == HashingEmbedder().embed_documents(["dinner"])).all()
    assert embedder.generation == HashingEmbedder().generation
    reranker = limited(OverlapReranker(languages=["ja"]), ["en"])
    assert reranker.covers("dinner")
    assert reranker.score("dinner", ["dinner"]) == [1]


@pytest.mark.parametrize(
    ("languages", "known"),
    [(["ja", "en"], (True, True)), (["ja-JP"], (True, True)), (["en"], (False, True)), (["en", "zh"], (True, True)), (["fr"], None)],
)
def test_vectors_of_a_language_that_somebody_set_count_whatever_was_measured(languages, known):
    embedder = HashingEmbedder()
    assert limited(embedder, languages).centers is None
    embedder.centers = Centers(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), (False, True), 0.1)
    centers = limited(embedder, languages).centers
    assert (centers and centers.known) == known
