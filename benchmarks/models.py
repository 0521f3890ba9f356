"""What the benchmarks of a server with models share: their arguments, the settings made of these, and waiting for the models."""

import argparse
import asyncio
import time
from pathlib import Path

import httpx2

SETTLE_SECONDS = 1_200
LANGUAGES = ["ja", "en"]


def arguments_of(explanation: str | None, *, required: bool = True) -> argparse.ArgumentParser:
    """A parser that knows the two models, the backend, the deadline, and where results go."""
    parser = argparse.ArgumentParser(description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", metavar="DIR", required=required)
    parser.add_argument("--reranker", metavar="DIR", required=required)
    parser.add_argument("--backend", metavar="NAME", help="inference_backend; left out: the default")
    parser.add_argument("--deadline-ms", type=int, default=600)
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    return parser


def with_models(arguments: argparse.Namespace) -> dict[str, object]:
    """Settings for models that know Japanese and English, whatever their names say."""
    return {
        "embeddings_model": arguments.embedder,
        "reranker_model": arguments.reranker,
        "embeddings_languages": LANGUAGES,
        "reranker_languages": LANGUAGES,
        "rerank_deadline_ms": arguments.deadline_ms,
        **({"inference_backend": arguments.backend} if arguments.backend else {}),
    }


async def settled(http: httpx2.AsyncClient) -> float:
    """Waits until the models that are wanted are loaded and nothing waits for a vector. Returns the seconds it took.

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
