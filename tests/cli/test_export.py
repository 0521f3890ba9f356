"""`memory-mcp models export-onnx`: what it writes, and what it leaves alone."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_mcp import cli
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.personas.registry import Personas

# Exporting needs torch, which takes seconds to import.
pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, data_directory: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of the group under a config. Returns its status, stdout and stderr."""

    def run(*words: str, **settings: object) -> tuple[int, str, str]:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"embeddings_model": None, "reranker_model": None, **settings}))
        status = cli.run(["models", *words, "--config", str(config), "--data", str(data_directory)])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def test_both_models_are_written_and_work_without_a_further_word(
    run: Run, embedder_directory: Path, reranker_directory: Path, data_directory: Path
):
    models = {"embeddings_model": str(embedder_directory), "reranker_model": str(reranker_directory)}
    status, out, _ = run("check", **models, inference_backend="onnx")
    assert status == 1
    status, out, _ = run("export-onnx", **models)
    assert status == 0
    assert out.count("answers as torch does") == 2
    assert out.count("  int8: ") == 2
    assert "inference_backend" in out
    status, out, _ = run("check", **models, inference_backend="onnx")
    assert (status, out.count("works")) == (0, 2)
    _, out, _ = run("list", **models, inference_backend="onnx")
    assert out.count(f"where: {data_directory / '.models'}") == 2


def test_int8_is_used_where_it_is_asked_for_and_options_of_earlier_versions_are_accepted(run: Run, embedder_directory: Path):
    on_int8 = {"embeddings_model": str(embedder_directory), "inference_backend": "onnx", "onnx_precision": "int8"}
    assert run("export-onnx", "--accept-int8", "--persona", "nilou", **on_int8)[0] == 0
    status, out, _ = run("check", **on_int8)
    assert (status, "onnx, int8: onnx_precision is int8" in out) == (0, True)


def test_exports_are_no_persona(say, exported_embedder: Path, personas: Personas, data_directory: Path):
    say("海辺の散歩")
    shutil.copytree(exported_embedder, data_directory / export_directory.DIRECTORY_NAME / exported_embedder.name)
    assert personas.names() == ["nilou"]
    personas.close()
    assert cli.run(["adopt", "--data", str(data_directory), "--dry-run"]) == 0


def test_a_model_that_is_not_there_is_not_exported_and_the_other_one_is(run: Run, embedder_directory: Path):
    status, out, err = run("export-onnx", embeddings_model=str(embedder_directory), reranker_model="/nowhere/reranker")
    assert status == 1
    assert "answers as torch does" in out
    assert "there is no directory /nowhere/reranker" in err
