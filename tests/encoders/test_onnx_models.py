"""Exported models: they answer as torch does, need none of it, and are refused when they are not what was exported."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from model_directories import export_of, make_embedder, make_reranker

from memory_mcp.config.settings import Settings
from memory_mcp.encoders import spread
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import Exports, build_registry, load_embedder, load_reranker
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import MANIFEST_NAME
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

# Exporting needs torch, which takes seconds to import.
pytestmark = pytest.mark.slow

TEXTS = ["猫の名前はミケ。", "I like coffee.", "  blanks and\nlines ", "", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 40]

LOADS_BOTH = """
import sys
from memory_mcp.config.settings import Settings
from memory_mcp.encoders import spread
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder, load_reranker
from memory_mcp.encoders.worker_pool import ModelPool
settings = Settings(embeddings_model=sys.argv[1], reranker_model=sys.argv[2], inference_backend="onnx")
with ModelPool(1) as pool:
    load_embedder(settings, pool, Caches()).embed_query("猫")
    load_reranker(settings, pool, Caches()).score("猫", ["犬"])
heavy = {"torch", "transformers", "sentence_transformers", "langchain_huggingface", "langchain_core", "huggingface_hub", "onnx"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture
def pool() -> Iterator[ModelPool]:
    with ModelPool(2) as pool:
        yield pool


def on_onnx(model: Path, precision: str = "fp32", **more: object) -> Settings:
    return Settings(embeddings_model=str(model), reranker_model=str(model), inference_backend="onnx", onnx_precision=precision, **more)


def with_manifest(export: Path, target: Path, **changed: object) -> Path:
    """A copy of an export whose export.json says something else."""
    copy = Path(shutil.copytree(export, target))
    told = json.loads((copy / MANIFEST_NAME).read_text(encoding="utf-8"))
    (copy / MANIFEST_NAME).write_text(json.dumps({**told, **changed}), encoding="utf-8")
    return copy


def test_fp32_gives_the_vectors_that_torch_gives(embedder_directory: Path, exported_embedder: Path, pool: ModelPool):
    torch = load_embedder(Settings(embeddings_model=str(embedder_directory)), pool, Caches())
    onnx = load_embedder(on_onnx(exported_embedder), pool, Caches())
    assert onnx.embed_documents(TEXTS) == pytest.approx(torch.embed_documents(TEXTS), abs=1e-5)
    assert onnx.embed_query("猫はどこ?") == pytest.approx(torch.embed_query("猫はどこ?"), abs=1e-5)
    assert onnx.max_tokens == torch.max_tokens
    assert onnx.traits.languages == torch.traits.languages == ("ja",)


def test_fp32_gives_the_scores_that_torch_gives(reranker_directory: Path, exported_reranker: Path, pool: ModelPool):
    torch = load_reranker(Settings(reranker_model=str(reranker_directory)), pool, Caches())
    onnx = load_reranker(on_onnx(exported_reranker), pool, Caches())
    for query in ("猫の名前は?", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 30):
        assert onnx.score(query, TEXTS) == pytest.approx(torch.score(query, TEXTS), abs=1e-5)


def test_the_spread_of_a_cross_encoder_is_kept_with_its_export_and_measured_where_that_has_none(
    reranker_directory: Path, tmp_path: Path, pool: ModelPool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spread, "LEAST_SPREAD", 0.0)  # of random weights it is smaller
    exported = export_of(reranker_directory, "reranker", tmp_path / "exports")
    kept = export_directory.read(exported)
    assert kept.spread
    assert load_reranker(on_onnx(exported), pool, Caches()).spread == kept.spread
    torch = load_reranker(Settings(reranker_model=str(reranker_directory), inference_backend="torch"), pool, Caches())
    assert torch.spread == pytest.approx(kept.spread, rel=0.1)
    manifest = exported / export_directory.MANIFEST_NAME
    earlier = {name: value for name, value in json.loads(manifest.read_text()).items() if name != "spread"}
    manifest.write_text(json.dumps(earlier))
    assert load_reranker(on_onnx(exported), pool, Caches()).spread == pytest.approx(kept.spread, rel=0.1)


@pytest.mark.parametrize("pooling", ["cls", "lasttoken"])
def test_a_model_that_reads_one_token_behind_a_branch_gives_the_vectors_that_torch_gives(pooling: str, tmp_path: Path, pool: ModelPool):
    source = make_embedder(tmp_path / "ruri-v3-branch", pooling=pooling)
    exported = export_of(source, "embedder", tmp_path / "exports")
    torch = load_embedder(Settings(embeddings_model=str(source)), pool, Caches())
    assert load_embedder(on_onnx(exported), pool, Caches()).embed_documents(TEXTS) == pytest.approx(torch.embed_documents(TEXTS), abs=1e-5)


def test_vectors_of_torch_and_fp32_may_meet_and_those_of_int8_may_not(embedder_directory: Path, exported_embedder: Path, pool: ModelPool):
    exports = Exports(exported_embedder.parent)
    settings = Settings(embeddings_model=str(embedder_directory))
    of_torch = load_embedder(settings, pool, Caches())
    fp32, int8 = (load_embedder(on_onnx(embedder_directory, precision), pool, Caches(), exports) for precision in ("fp32", "int8"))
    assert of_torch.generation == fp32.generation != int8.generation
    assert np.abs(fp32.embed_documents(TEXTS) - int8.embed_documents(TEXTS)).max() > 1e-4


def test_torch_and_what_stands_on_it_are_not_imported(exported_embedder: Path, exported_reranker: Path):
    program = [sys.executable, "-c", LOADS_BOTH, str(exported_embedder), str(exported_reranker)]
    assert subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout.strip() == "[]"


def test_a_model_that_was_not_exported_is_absent_and_says_what_to_run(embedder_directory: Path, tmp_path: Path, pool: ModelPool):
    with pytest.raises(EncoderFailed, match=r"has not been exported.*memory-mcp models export-onnx"):
        load_embedder(on_onnx(embedder_directory), pool, Caches(), Exports(tmp_path))


def test_a_model_that_changed_after_its_export_is_refused(tmp_path: Path, pool: ModelPool):
    source = make_reranker(tmp_path / "model", seed=1)
    exports = Exports(tmp_path / "exports")
    export_of(source, "reranker", exports.directory)
    assert load_reranker(on_onnx(source), pool, Caches(), exports).score("猫", ["犬"])
    shutil.rmtree(source)
    make_reranker(source, seed=2)
    with pytest.raises(EncoderFailed, match="has changed since it was exported"):
        load_reranker(on_onnx(source), pool, Caches(), exports)


def test_an_export_takes_the_place_of_the_one_before(tmp_path: Path):
    source = make_reranker(tmp_path / "model", seed=1)
    first = export_of(source, "reranker", tmp_path / "exports")
    (first / "scrap").touch()
    assert export_of(source, "reranker", tmp_path / "exports") == first
    told = json.loads((first / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert {path.name for path in first.iterdir()} == {MANIFEST_NAME, *told["sha256"]}
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_an_export_of_an_earlier_version_has_its_table_inside_and_answers_alike(exported_embedder: Path, tmp_path: Path, pool: ModelPool):
    told = json.loads((exported_embedder / MANIFEST_NAME).read_text(encoding="utf-8"))
    earlier = Path(shutil.copytree(exported_embedder, tmp_path / "ruri-v3-earlier"))
    model = onnx.load(exported_embedder / "model.onnx")
    for table in earlier.glob("*.data"):
        table.unlink()
    onnx.save_model(model, earlier / "model.onnx")
    checksums = {name: export_directory.sha256(earlier / name) for name in ("model.onnx", "model_int8.onnx", "tokenizer.json")}
    (earlier / MANIFEST_NAME).write_text(json.dumps({**told, "sha256": checksums}), encoding="utf-8")
    expected, found = (load_embedder(on_onnx(place), pool, Caches()).embed_documents(TEXTS) for place in (exported_embedder, earlier))
    assert np.array_equal(expected, found)


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_damaged_file_is_found_before_it_is_used(exported_embedder: Path, tmp_path: Path, pool: ModelPool, name: str):
    copy = Path(shutil.copytree(exported_embedder, tmp_path / "copy"))
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(EncoderFailed, match=f"{name} is damaged"):
        load_embedder(on_onnx(copy), pool, Caches())
    (copy / name).unlink()
    with pytest.raises(EncoderFailed, match=f"{name} is missing"):
        load_embedder(on_onnx(copy), pool, Caches())


@pytest.mark.parametrize(
    ("stored", "precision"),
    [
        ({"int8_alike": 0.42}, "fp32: int8 ranks differently: 42% of the pairs"),
        ({"int8_alike": None}, "int8: onnx_precision is int8"),
        ({"int8_alike": 0.99}, "int8: onnx_precision is int8"),
    ],
)
def test_int8_that_is_asked_for_is_used_unless_it_ranks_differently(
    exported_embedder: Path, tmp_path: Path, pool: ModelPool, stored: dict[str, object], precision: str
):
    copy = with_manifest(exported_embedder, tmp_path / "ruri-v3-copy", **stored)
    backend = load_embedder(on_onnx(copy, "int8"), pool, Caches()).backend or ""
    assert backend.startswith(f"onnx, {precision}")


@pytest.mark.parametrize(
    ("agreement", "accepted", "alike"),
    [
        ({"texts": 400, "queries": 100, "spearman": 0.99, "own": True, "alike": 0.9, "telling": 100}, False, 0.9),
        ({"texts": 48, "queries": 48, "spearman": 0.99, "own": False, "alike": 0.9, "telling": 48}, False, None),
        ({"texts": 48, "queries": 48, "spearman": 0.99, "own": False, "alike": 0.9, "telling": 48}, True, 1.0),
        (None, False, None),
    ],
)
def test_what_an_earlier_version_found_of_int8_still_holds(
    exported_embedder: Path, tmp_path: Path, agreement: object, accepted: bool, alike: float | None
):
    fields = {"pooling": "mean", "normalised": True, "activation": None, "opset": 17, "agreement": agreement, "int8_accepted": accepted}
    copy = with_manifest(exported_embedder, tmp_path / "copy", **fields)
    told = json.loads((copy / MANIFEST_NAME).read_text(encoding="utf-8"))
    del told["int8_alike"], told["int8_compared"]
    (copy / MANIFEST_NAME).write_text(json.dumps(told), encoding="utf-8")
    assert export_directory.read(copy).int8_alike == alike


def test_an_export_of_another_version_says_what_to_run(exported_embedder: Path, tmp_path: Path, pool: ModelPool):
    copy = with_manifest(exported_embedder, tmp_path / "copy", format=99)
    with pytest.raises(EncoderFailed, match="another version"):
        load_embedder(on_onnx(copy), pool, Caches())


def test_a_gpu_is_not_silently_replaced(exported_embedder: Path, pool: ModelPool):
    with pytest.raises(EncoderFailed, match="onnx runs on the CPU"):
        load_embedder(on_onnx(exported_embedder, embeddings_device="cuda"), pool, Caches())


def test_a_cross_encoder_with_several_scores_is_not_exported(tmp_path: Path):
    with pytest.raises(EncoderFailed, match="3 scores for a pair"):
        export_of(make_reranker(tmp_path / "model", labels=3), "reranker", tmp_path / "exports")
    assert not list((tmp_path / "exports").iterdir())


def test_what_answers_otherwise_than_torch_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = make_embedder(tmp_path / "model")
    monkeypatch.setattr("memory_mcp.encoders.onnx.exporter.TOLERANCE", -1.0)
    with pytest.raises(EncoderFailed, match="results of the export differ from those of torch"):
        export_of(source, "embedder", tmp_path / "exports")
    assert not list((tmp_path / "exports").iterdir())


def test_the_backend_may_change_while_the_server_runs(
    embedder_directory: Path, exported_embedder: Path, pool: ModelPool, eventually: Callable[[Callable[[], bool]], None]
):
    registry = build_registry(pool, Caches(), exports=Exports(exported_embedder.parent))

    def settled(settings: Settings) -> bool:
        models = registry.current(settings)
        return models.embedder_state.state == "loaded" and models.embedder is not None

    on_torch = Settings(embeddings_model=str(embedder_directory), reranker_model=None)
    fp32, int8 = (on_onnx(embedder_directory, precision).model_copy(update={"reranker_model": None}) for precision in ("fp32", "int8"))
    registry.start(on_torch)
    try:
        eventually(lambda: settled(on_torch))
        first = registry.current(on_torch).embedder
        assert registry.current(fp32).earlier is first  # it goes on answering
        eventually(lambda: settled(fp32))
        assert registry.current(fp32).earlier is None  # the same vectors: nothing is embedded again
        eventually(lambda: settled(int8))
        models = registry.current(int8)
        assert models.earlier is not None
        assert models.embedder is not None
        assert models.embedder.generation != models.earlier.generation
    finally:
        registry.close()
