"""What stands before a text, by the family of the model."""

import json
from pathlib import Path

import pytest

from memory_mcp.encoders.model_families import NONE, ST_CONFIG, prefixes_for


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
    assert prefixes_for(model) == NONE


def test_what_a_model_ships_with_is_used_where_the_family_is_unknown(tmp_path: Path):
    (tmp_path / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "search: ", "passage": "text: "}}))
    prefixes = prefixes_for(str(tmp_path), tmp_path)
    assert (prefixes.query, prefixes.document) == ("search: ", "text: ")
    (tmp_path / ST_CONFIG).write_text(json.dumps({"prompts": {"query": "find: ", "passage": "text: "}}))
    assert prefixes_for(str(tmp_path), tmp_path).version != prefixes.version


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"prompts": null}', '{"prompts": {"query": "", "document": ""}}'])
def test_a_model_that_ships_nothing_usable_has_none(tmp_path: Path, content: str):
    (tmp_path / ST_CONFIG).write_text(content)
    assert prefixes_for(str(tmp_path), tmp_path) == NONE


def test_families_differ_in_their_version():
    versions = {prefixes_for(model).version for model in ("ruri-v3-30m", "ruri-small", "e5-small", "other")}
    assert len(versions) == 4
