"""What most tests start from: a data directory, its personas, one of them open, and a chosen now."""

import gc
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis
import pytest
from httpx2._config import DEFAULT_TIMEOUT_CONFIG
from made_once import share_command_tree, share_tls_context
from model_directories import export_of, make_embedder, make_reranker
from processes import RunningServer, fork_server, serving
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Recalled, Remembered
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question

# Commands speak the language of the machine; their words are tested in English, and in Japanese where a test says so.
os.environ["LC_ALL"] = "C.UTF-8"

pytest_plugins = ["absent_features", "browser", "figures", "graph_stories", "keyrings_in_memory", "node_packages", "served"]

# A deadline would be a timed assertion. The same cases in every run, so that a red gate says something about the change before it;
# cases that nobody has seen yet are what --thorough looks for.
hypothesis.settings.register_profile("gate", deadline=None, max_examples=100, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=100)
hypothesis.settings.load_profile("gate")

# How long httpx waits where a test says nothing: its five seconds are what a busy machine sometimes takes.
vars(DEFAULT_TIMEOUT_CONFIG).update(dict.fromkeys(("connect", "read", "write", "pool"), 60.0))
share_tls_context()
share_command_tree()

# Where Linux has files in memory; what the tests of one run may leave there, in bytes.
IN_MEMORY, ROOM = Path("/dev/shm"), 8 * 1024**3  # noqa: S108  only pytest's directories, which are their user's alone
SLOW_MODULE = re.compile(r"^pytestmark = [^\]]*\bpytest\.mark\.slow\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """New cases with `--thorough`. Temporary directories in memory, if it has room: many tests wait for the disk for half of their time."""
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    if config.getoption("--thorough"):
        hypothesis.settings.load_profile("thorough")
    # A third of the time of collecting thousands of tests, none of which is garbage.
    gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the slow tests, don't import the modules that have no others: a fifth of all, with the most expensive imports."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_finish() -> None:
    """Spare each garbage collection the thousands of tests and all that they have imported."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def earlier_modules_frozen() -> None:
    """Spare it what earlier modules have imported and cached, too: each server that starts here collects once."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def fork_server_closed() -> Iterator[None]:
    """Ends the process that makes servers and commands of ours, if a test has wanted one."""
    yield
    if fork_server.cache_info().currsize:
        fork_server().close()


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of the test's own."""
    with serving(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests of a module that neither stop nor configure it, nor look at who else is there: each is a persona of its own."""
    with serving(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def now() -> datetime:
    """Noon of Thursday, 30 October 2025, in Tokyo."""
    return datetime(2025, 10, 30, 3, tzinfo=UTC)


@pytest.fixture
def zone() -> ZoneInfo:
    return ZoneInfo("Asia/Tokyo")


@pytest.fixture
def settings() -> Settings:
    """As configured by someone who wants no models, so that nothing is degraded."""
    return Settings(embeddings_model=None, reranker_model=None)


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "memory"
    directory.mkdir()
    return directory


@pytest.fixture
def personas(data_directory: Path) -> Iterator[Personas]:
    registry = Personas(data_directory)
    yield registry
    registry.close()


@pytest.fixture
def nilou(personas: Personas) -> Iterator[Persona]:
    with personas.writing("nilou") as persona:
        yield persona


Say = Callable[..., Remembered]
Ask = Callable[..., Recalled]


@pytest.fixture
def say(nilou: Persona, now: datetime, zone: ZoneInfo) -> Say:
    """Remembers a content as nilou; `at` is when the call is made, the rest goes into the draft."""

    def say(content: str, at: datetime = now, **fields: Any) -> Remembered:
        return remember(nilou, draft(content, now=at, zone=zone, **fields), now=at, zone=zone, privacy=Privacy())

    return say


@pytest.fixture
def ask(nilou: Persona, now: datetime, settings: Settings) -> Ask:
    """Recalls as nilou, and why; `under` are other settings, the rest goes into the question."""

    def ask(query: str = "", under: Settings = settings, **fields: Any) -> Recalled:
        asked = question(settings=under, now=now, query=query, **{"detail": "why", **fields})
        return recall(nilou, asked, models=unloaded_models(under), settings=under, now=now)

    return ask


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds that another thread brings about."""

    def eventually(condition: Callable[[], bool]) -> None:
        pause = threading.Event()
        for _ in range(12_000):
            if condition():
                return
            pause.wait(0.005)
        pytest.fail("it did not come about within a minute")

    return eventually


@pytest.fixture(scope="session")
def gpu() -> None:
    """Skips a test where there is none. Only for tests marked slow."""
    import torch  # noqa: PLC0415  takes seconds

    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU here")


@pytest.fixture(scope="session")
def embedder_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real embedding model with ruri's prefixes. Only for tests marked slow: torch takes seconds to import."""
    return make_embedder(tmp_path_factory.mktemp("models") / "ruri-v3-tiny")


@pytest.fixture(scope="session")
def reranker_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real cross-encoder, for the same kind of tests."""
    return make_reranker(tmp_path_factory.mktemp("models") / "japanese-reranker-tiny")


@pytest.fixture(scope="session")
def exported_embedder(embedder_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same embedding model as ONNX."""
    return export_of(embedder_directory, "embedder", tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="session")
def exported_reranker(reranker_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same cross-encoder as ONNX."""
    return export_of(reranker_directory, "reranker", tmp_path_factory.mktemp("exports"))


@pytest.fixture
def found(say, ask):
    """found(query, *memories): what a search finds of these beside thirty others, in order."""

    def found(query, *memories):
        for number in range(30):
            say(f"庭の木に{number}回水をやった")
        for memory in memories:
            say(memory)
        return [hit.memory.content for hit in ask(query).hits]

    return found
