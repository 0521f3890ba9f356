"""What `inference_backend: "auto"` chooses, and why; and the process that exports a model beside the server."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading import automatic
from memory_mcp.encoders.loading.automatic import Choice, choose
from memory_mcp.encoders.loading.loaders import Exports, load_embedder
from memory_mcp.encoders.onnx import background, export_directory
from memory_mcp.encoders.onnx.background import BackgroundExport
from memory_mcp.encoders.onnx.export_directory import Export, Padding
from memory_mcp.encoders.onnx.exporter import same_order
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed


def an_export(role: str, fingerprint: str, int8_alike: float | None) -> Export:
    return Export(
        role, "m", fingerprint, 32 if role == "embedder" else None, 256, "", "", "plain", ("input_ids",), Padding(0, "", 0, "right"),
        "right", 0.0, {}, int8_alike=int8_alike,
    )  # fmt: skip


class Exporter(BackgroundExport):
    """Writes an export.json where a real one exports."""

    def __init__(self, failure: str = "", alike: float | None = 0.991) -> None:
        super().__init__()
        self.failure, self.alike, self.done = failure, alike, list[str]()

    def export(self, name: str, role: str, source: Path, target: Path) -> None:
        self.done.append("export")
        if self.failure:
            raise EncoderFailed(f"{name} can't be exported", self.failure)
        target.mkdir(parents=True, exist_ok=True)
        export_directory.write(an_export(role, automatic.availability.fingerprint(source), self.alike), target)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Files that look like a model's. Nothing loads them."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}", encoding="utf-8")
    (directory / "model.safetensors").write_bytes(b"weights")
    return directory


@pytest.fixture
def chosen(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Choice]:
    monkeypatch.setattr(automatic, "has_eight_bit_instructions", lambda: True)

    def chosen(exporter: BackgroundExport | None = None, role: str = "reranker", **settings: str) -> Choice:
        return choose(Settings(**settings), str(model), role, tmp_path / ".models", exporter)

    return chosen


def test_a_cross_encoder_is_exported_once_and_used_in_int8(chosen):
    exporter = Exporter()
    choice = chosen(exporter)
    assert choice.precision == "int8"
    assert choice.backend.startswith("onnx, int8: 99% of the pairs")
    assert exporter.done == ["export"]
    again = Exporter()
    assert chosen(again) == choice
    assert not again.done


def test_the_embedder_keeps_the_vectors_of_torch_unless_int8_is_asked_for(chosen):
    assert chosen(Exporter(), "embedder").backend == "onnx, fp32: its vectors are those of torch"
    assert chosen(Exporter(), "embedder", onnx_precision="int8").precision == "int8"


@pytest.mark.parametrize(
    ("exporter", "settings", "backend"),
    [
        (Exporter(alike=0.6), {}, "onnx, fp32: int8 ranks differently: 60%"),
        (Exporter(alike=0.6), {"onnx_precision": "int8"}, "onnx, fp32: int8 ranks differently: 60%"),
        (Exporter(alike=None), {}, "onnx, fp32: int8 is unproven: fp32 itself"),
        (Exporter(), {"onnx_precision": "fp32"}, "onnx, fp32: onnx_precision is fp32"),
        (Exporter(alike=None), {"onnx_precision": "int8"}, "onnx, int8: onnx_precision is int8"),
        (Exporter(), {"inference_backend": "torch"}, "torch: inference_backend is torch"),
        (Exporter(failure="the results of the export differ"), {}, "torch: the results of the export differ"),
        (Exporter(), {"embeddings_device": "cuda"}, "torch: embeddings_device is cuda"),
        (None, {}, "torch: it has not been exported to ONNX"),
    ],
)
def test_a_choice_says_its_reason(chosen, exporter: Exporter | None, settings: dict[str, str], backend: str):
    assert chosen(exporter, **settings).backend.startswith(backend)


def test_an_automatic_device_is_a_gpu_or_a_cpu_like_any_other(chosen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(automatic, "automatic_is_gpu", lambda: True)
    there = chosen(Exporter(), embeddings_device="auto")
    assert (there.backend, there.device) == ("torch: embeddings_device is auto", "auto")
    monkeypatch.setattr(automatic, "automatic_is_gpu", lambda: False)
    assert chosen(Exporter(), embeddings_device="auto") == chosen(Exporter())


def test_a_processor_without_instructions_for_8_bits_gets_fp32(chosen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(automatic, "has_eight_bit_instructions", lambda: False)
    exporter = Exporter()
    assert chosen(exporter).backend == "onnx, fp32: this processor has no instructions for 8 bits (VNNI, AMX)"
    assert exporter.done == ["export"]


def test_a_model_that_has_changed_is_exported_again(chosen, model: Path):
    chosen(Exporter())
    (model / "model.safetensors").write_bytes(b"other weights")
    exporter = Exporter()
    assert chosen(exporter).directory
    assert exporter.done[0] == "export"


def of_an_earlier_version(exports: Path, **proof: object) -> None:
    """Makes the only export one that says of int8 what versions said that compared it on memories of its user."""
    (manifest,) = exports.glob("*/export.json")
    told = json.loads(manifest.read_text(encoding="utf-8"))
    del told["int8_alike"], told["int8_compared"]
    manifest.write_text(json.dumps({**told, **proof}), encoding="utf-8")


FEW = {"texts": 48, "queries": 48, "spearman": 0.99, "own": False, "alike": 0.9, "telling": 48}
OWN = {**FEW, "own": True, "alike": 0.97}


@pytest.mark.parametrize(
    ("agreement", "settings", "role", "exported", "precision"),
    [
        (None, {}, "reranker", True, "int8"),
        (FEW, {}, "reranker", True, "int8"),
        (OWN, {}, "reranker", False, "int8"),
        (None, {"onnx_precision": "fp32"}, "reranker", False, "fp32"),
        (None, {}, "embedder", False, "fp32"),
        (None, {"onnx_precision": "int8"}, "embedder", True, "int8"),
    ],
)
def test_an_export_of_an_earlier_version_that_never_compared_int8_is_made_again_where_int8_may_serve(
    chosen, tmp_path: Path, agreement: object, settings: dict[str, str], role: str, exported: bool, precision: str
):
    chosen(Exporter(), role)
    of_an_earlier_version(tmp_path / ".models", agreement=agreement)
    exporter = Exporter()
    assert chosen(exporter, role, **settings).precision == precision
    assert exporter.done == ["export"] * exported
    again = Exporter()
    chosen(again, role, **settings)
    assert not again.done


@pytest.mark.parametrize("exporter", [None, Exporter(failure="the disk is full")])
def test_an_export_of_an_earlier_version_that_cant_be_made_again_serves_in_fp32(chosen, tmp_path: Path, exporter: Exporter | None):
    chosen(Exporter())
    of_an_earlier_version(tmp_path / ".models", agreement=None)
    choice = chosen(exporter)
    assert choice.directory
    assert choice.backend == "onnx, fp32: int8 is unproven: an earlier version made this export and did not compare it"


def test_an_export_serves_where_the_model_itself_is_gone(chosen, model: Path):
    chosen(Exporter())
    shutil.rmtree(model)
    assert chosen(None).directory


def test_a_full_disk_and_a_directory_that_cant_be_written_leave_torch_and_say_so(chosen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(background, "SPARE_BYTES", 2**60)
        assert "MB are needed" in chosen(BackgroundExport()).backend
    shutil.rmtree(tmp_path / ".models")
    (tmp_path / ".models").write_text("a file", encoding="utf-8")
    choice = chosen(BackgroundExport())
    assert choice.directory is None
    assert "can't be used" in choice.reason


def test_a_server_that_stops_loads_nothing_more(chosen):
    exporter = BackgroundExport()
    exporter.close()
    with pytest.raises(EncoderFailed, match="the server stops"):
        chosen(exporter)


def test_int8_orders_as_fp32_does_by_the_pairs_that_fp32_tells_apart():
    scores = [number / 20 for number in range(9)]
    assert same_order([scores], [[score / 2 for score in scores]]) == 1
    assert same_order([scores], [[-score for score in scores]]) == 0
    assert same_order([scores], [[*reversed(scores[:2]), *scores[2:]]]) == round(35 / 36, 4)
    assert same_order([[score / 1000 for score in scores]], [scores]) is None


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process beside the server gives way to nobody: it would come last on a machine that tests keep busy."""
    monkeypatch.setattr(
        background, "_PROGRAM", f"from memory_mcp.encoders.onnx import background; background.NICENESS = 0; {background._PROGRAM}"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("hurried")
def test_a_model_is_exported_beside_the_server_with_the_generation_of_torch(embedder_directory: Path, tmp_path: Path):
    settings = Settings(embeddings_model=str(embedder_directory))
    exporter = BackgroundExport()
    with ModelPool(1) as pool:
        automatically = load_embedder(settings, pool, Caches(), Exports(tmp_path, exporter))
        on_torch = load_embedder(settings.model_copy(update={"inference_backend": "torch"}), pool, Caches())
        assert automatically.backend == "onnx, fp32: its vectors are those of torch"
        assert automatically.generation == on_torch.generation
        assert automatically.embed_query("猫") == pytest.approx(on_torch.embed_query("猫"), abs=1e-5)
        (damaged,) = tmp_path.glob("embedder-*/model.onnx")
        damaged.write_bytes(b"damaged")
        fallen_back = load_embedder(settings, pool, Caches(), Exports(tmp_path, exporter))
        assert "damaged" in (fallen_back.backend or "")
        assert fallen_back.generation == on_torch.generation
        assert not damaged.exists()


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("hurried")
def test_an_export_that_is_killed_leaves_nothing_half_and_the_next_one_cleans_up(embedder_directory: Path, tmp_path: Path, eventually):
    target, exporter = tmp_path / "embedder", BackgroundExport()
    ended: list[EncoderFailed] = []

    def export() -> None:
        with pytest.raises(EncoderFailed) as failure:
            exporter.export("m", "embedder", embedder_directory, target)
        ended.append(failure.value)

    thread = threading.Thread(target=export)
    thread.start()
    eventually(lambda: any(tmp_path.glob(".embedder.*/new/model.onnx")))
    exporter.close()
    thread.join()
    assert "the server stops" in str(ended[0])
    assert not target.exists()
    assert any(tmp_path.glob(".embedder.*"))
    BackgroundExport().export("m", "embedder", embedder_directory, target)
    assert export_directory.read(target).dimension == 32
    assert not any(tmp_path.glob(".embedder.*"))


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("hurried")
def test_a_model_that_no_export_can_hold_is_tried_once(tmp_path: Path, embedder_directory: Path):
    source = Path(shutil.copytree(embedder_directory, tmp_path / "model"))
    (source / "tokenizer.json").unlink()
    for path in source.glob("1_*"):
        shutil.rmtree(path)
    first, again = BackgroundExport(), BackgroundExport()
    with pytest.raises(EncoderFailed) as refusal:
        first.export("m", "embedder", source, tmp_path / "embedder")
    again._run = lambda *_: pytest.fail("it was tried again")  # type: ignore[method-assign]
    with pytest.raises(EncoderFailed) as remembered:
        again.export("m", "embedder", source, tmp_path / "embedder")
    assert remembered.value.why == refusal.value.why
