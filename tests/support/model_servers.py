"""Servers of models on this machine, in the forms that real ones speak: Text Embeddings Inference, vLLM, Infinity, Ollama, OpenAI, Cohere.

What they answer means as little as the fakes' vectors, but it comes over HTTP, and each can be told to fail as such servers do.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from fakes import HashingEmbedder, OverlapReranker

Kind = Literal["tei", "vllm", "infinity", "ollama", "openai", "cohere"]
# Takes a path and the JSON of a right answer. Returns a status and what is answered instead: JSON, or bytes as they are.
Fault = Callable[[str, Any], tuple[int, Any]]


class ModelServer(ThreadingHTTPServer):
    """`model` and `revision` are what it says it runs, `salt` makes the weights other ones, `limit` is the most texts it takes at once and
    `characters` the longest. A `key` is demanded; a `fault` changes the answers of all but GET. `bodies` are the requests, by path."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, kind: Kind, model: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kind = kind
        self.model = model
        self.revision = "a1"
        self.dimension = 48
        self.salt = ""
        self.limit = 32
        self.characters = 100_000
        self.key: str | None = None
        self.fault: Fault | None = None
        self.headers: dict[str, str] = {}
        self.roles = {"embedding", "reranker"} if kind != "tei" else {"embedding"}
        self.logits = False
        self.hangs = threading.Event()
        self.bodies: list[tuple[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def texts(self) -> list[str]:
        """All texts that it was asked about."""
        return [
            text for _, body in self.bodies for text in body.get("inputs") or body.get("input") or body.get("texts") or body["documents"]
        ]

    def described(self, path: str) -> Any:
        """What it says of itself; None where it has no such path."""
        root = "" if self.kind == "infinity" else "/v1"
        match self.kind, path:
            case "tei", "/info":
                return {
                    "model_id": self.model, "model_sha": self.revision, "model_dtype": "float16", "max_input_length": 512, "version": "1.9.0",
                    "model_type": {next(iter(self.roles)): {"pooling": "mean"}}, "max_client_batch_size": self.limit, "max_batch_tokens": 16384,
                }  # fmt: skip
            case "vllm", "/v1/models":
                return {
                    "object": "list",
                    "data": [{"id": self.model, "object": "model", "owned_by": "vllm", "root": self.model, "max_model_len": 512}],
                }
            case (("infinity" | "ollama"), _) if path == f"{root}/models":
                owner = "infinity" if self.kind == "infinity" else "library"
                return {
                    "object": "list",
                    "data": [{"id": "another", "owned_by": owner}, {"id": self._listed, "object": "model", "owned_by": owner}],
                }
            case "ollama", "/api/tags":
                return {"models": [{"name": self._listed, "digest": self.revision}]}
        return None

    @property
    def _listed(self) -> str:
        return f"{self.model}:latest" if self.kind == "ollama" else self.model

    def answered(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The answer to a request for vectors or scores."""
        root = {"tei": "", "infinity": "", "cohere": "/v2"}.get(self.kind, "/v1")
        texts = next((body[key] for key in ("inputs", "input", "texts", "documents") if key in body), None)
        if texts is None or (self.kind != "tei" and body.get("model") != self._listed):
            return 404, {"error": "no such model"}
        if len(texts) > self.limit:
            return 413, {"error": f"batch size {len(texts)} > maximum allowed batch size", "error_type": "validation"}
        if any(len(text) > self.characters for text in texts) and not (body.get("truncate") or "truncate_prompt_tokens" in body):
            return 400, {"error": {"message": f"too long: {texts}"}}
        if path == "/embed" and self.kind == "tei":
            return 200, self._vectors(texts)
        if path == f"{root}/embeddings" and self.kind != "tei":
            rows = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(self._vectors(texts))]
            return 200, {"object": "list", "data": rows[::-1], "model": self.model, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        if path == f"{root}/rerank":
            key = "score" if self.kind == "tei" else "relevance_score"
            ranked = sorted(
                ({"index": index, key: score} for index, score in enumerate(self._scores(body["query"], texts))),
                key=lambda entry: -entry[key],
            )
            return 200, ranked if self.kind == "tei" else {"id": "r", "model": self.model, "results": ranked}
        return 404, {"error": "not found"}

    def _vectors(self, texts: list[str]) -> list[list[float]]:
        fake = HashingEmbedder(self.dimension)
        return [[float(value) * 3 for value in fake.embed_query(f"{self.salt} {text}" if self.salt else text)] for text in texts]

    def _scores(self, query: str, texts: list[str]) -> list[float]:
        scores = OverlapReranker().score(query, texts) or []
        shifted = [abs(score - 0.5) if self.salt else score for score in scores]
        return [score * 12 - 6 for score in shifted] if self.logits else shifted


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms
    server: ModelServer

    def do_GET(self) -> None:
        described = self.server.described(self.path)
        self._send(*((200, described) if described is not None else (404, {"error": "not found"})))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append((self.path, body))
        self._send(*self.server.answered(self.path, body), fault=self.server.fault)

    def _send(self, status: int, content: Any, fault: Fault | None = None) -> None:
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            status, content, fault = 401, {"error": f"{self.headers.get('Authorization')} is wrong"}, None
        if fault:
            status, content = fault(self.path, content)
        if status == 0:  # the connection ends without an answer
            self.close_connection = True
            return
        if status == -1:  # the answer begins, and does not go on
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"[[0.1, ")
            self.close_connection = True
            return
        if status == -2:
            self.server.hangs.wait(60)
            self.close_connection = True
            return
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the name of the base class
        pass


@contextmanager
def model_server(kind: Kind, model: str = "cl-nagoya/ruri-v3-30m") -> Iterator[ModelServer]:
    """A running server."""
    server = ModelServer(kind, model)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.hangs.set()
        server.shutdown()
        thread.join()
        server.server_close()
