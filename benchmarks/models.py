"""Shared by the benchmarks with models: their arguments, the settings made from these, and waiting for the models."""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import httpx2

from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import MANIFEST_NAME, directory_for
from memory_mcp.encoders.packaged import package

SETTLE_SECONDS = 1_200
LANGUAGES = ["ja", "en"]
BACKENDS = ("auto", "torch", "onnx-fp32", "onnx-int8")
DEVICES = ("cpu", "cuda")


def arguments_of(explanation: str | None, *, required: bool = True) -> argparse.ArgumentParser:
    """A parser that knows the two models, the backend, the device, the deadline, and where results go."""
    parser = argparse.ArgumentParser(description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", metavar="DIR", required=required)
    parser.add_argument("--reranker", metavar="DIR", required=required)
    parser.add_argument("--backend", choices=BACKENDS, default="torch")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="of the models; on cuda with the backend torch or auto")
    parser.add_argument(
        "--exports", type=Path, default=Path(tempfile.gettempdir(), "memory-mcp-exports"), help="the directory of exported models"
    )
    parser.add_argument("--deadline-ms", type=int, default=600)
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    return parser


def with_models(arguments: argparse.Namespace) -> dict[str, object]:
    """Settings for models that know Japanese and English, whatever their names say."""
    onnx = arguments.backend.startswith("onnx")
    return {
        "embeddings_model": _exported(arguments.embedder, "embedder", arguments.exports) if onnx else arguments.embedder,
        "reranker_model": _exported(arguments.reranker, "reranker", arguments.exports) if onnx else arguments.reranker,
        "embeddings_languages": LANGUAGES,
        "reranker_languages": LANGUAGES,
        "embeddings_device": arguments.device,
        "rerank_deadline_ms": arguments.deadline_ms,
        "inference_backend": "auto" if arguments.backend == "auto" else "torch",
        **({"inference_backend": "onnx", "onnx_precision": arguments.backend.removeprefix("onnx-")} if onnx else {}),
    }


def _exported(name: str, role: Role, exports: Path) -> str:
    """The directory of a model's export, made if it is missing or older than what writes exports. The packaged model needs none."""
    if package.is_named(name):
        return name
    directory = directory_for(name, role, exports)
    written_by = max(file.stat().st_mtime for file in Path(export_directory.__file__).parent.glob("*.py"))
    manifest = directory / MANIFEST_NAME
    if not manifest.exists() or manifest.stat().st_mtime < written_by:
        from memory_mcp.encoders.onnx import exporter  # noqa: PLC0415  takes seconds, and torch

        (exporter.export_embedder if role == "embedder" else exporter.export_reranker)(name, Path(name), directory)
    return str(directory)


async def settled(http: httpx2.AsyncClient) -> float:
    """Waits until the configured models are loaded and every memory has its vector. Returns the seconds it took.

    Raises:
        SystemExit: a model is not there, or it takes too long.
    """
    begun = time.perf_counter()
    while time.perf_counter() - begun < SETTLE_SECONDS:
        ready = (await http.get("/ready")).json()
        states = {model["state"] for model in ready["models"].values()}
        if states <= {"loaded", "off"} and not ready["index_lag"]:
            return time.perf_counter() - begun
        if "absent" in states:
            break
        await asyncio.sleep(0.2)
    raise SystemExit(f"not settled: {ready}")
