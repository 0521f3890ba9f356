"""Models come in, change, go and come back while calls go on."""

import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from panics import Panicked

from memory_mcp import app
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.fakes import HashingEmbedder, OverlapReranker
from memory_mcp.encoders.loading.model_registry import ModelRegistry
from memory_mcp.encoders.loading.model_slot import Loader
from memory_mcp.encoders.model_families import Traits, traits_of

Eventually = Callable[[Callable[[], bool]], None]
SOON = (0.001,)


@dataclass
class Workshop:
    """Makes fakes of every name, except those that are `missing` or `broken`; each waits for `gate` while it is closed."""

    missing: set[str] = field(default_factory=set)
    broken: dict[str, BaseException] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)
    traits: dict[str, Traits] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    changes: int = 0
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    def why_missing(self, settings: Settings) -> str | None:
        name = settings.embeddings_model or ""
        self.looked_for.append(name)
        return f"{name} is not here" if name in self.missing else None

    def embedder(self, settings: Settings) -> HashingEmbedder:
        name = settings.embeddings_model or ""
        self.gate.wait()
        if name in self.broken:
            raise self.broken[name]
        self.made.append(name)
        workshop = self

        class Closing(HashingEmbedder):
            def close(self) -> None:
                workshop.closed.append(self.name)

        made = Closing(self.dimensions.get(name, 64), name)
        made.traits = self.traits.get(name)
        return made

    def reranker(self, settings: Settings) -> OverlapReranker:
        return OverlapReranker(settings.reranker_model or "")

    def changed(self) -> None:
        self.changes += 1


def wish(embedder: str | None = None, reranker: str | None = None, **more: object) -> Settings:
    return Settings(embeddings_model=embedder, reranker_model=reranker, **more)


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
def registry(workshop: Workshop) -> Iterator[ModelRegistry]:
    made = make(workshop, SOON)
    yield made
    workshop.gate.set()
    made.close()


def make(workshop: Workshop, retry_seconds: tuple[float, ...]) -> ModelRegistry:
    return ModelRegistry(
        Loader(workshop.why_missing, workshop.embedder), Loader(lambda _: None, workshop.reranker), workshop.changed, retry_seconds
    )


def state(registry: ModelRegistry, settings: Settings) -> str:
    return registry.current(settings).embedder_state.state


def test_what_is_wanted_comes_in_behind_the_callers_back(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    settings = wish("ruri", "judge")
    workshop.gate.clear()
    registry.start(settings)
    models = registry.current(settings)
    assert (models.embedder, models.embedder_state.state, models.embedder_state.name) == (None, "loading", "ruri")
    workshop.gate.set()
    eventually(lambda: registry.current(settings).reranker is not None)
    models = registry.current(settings)
    assert models.embedder is not None
    assert (models.embedder_state.state, models.embedder_state.dimension, models.embedder_state.error) == ("loaded", 64, None)
    assert (models.reranker_state.state, models.reranker_state.name) == ("loaded", "judge")
    eventually(lambda: workshop.changes == 2)


def test_null_is_off_and_nothing_is_looked_for(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    settings = wish(None, "judge")
    registry.start(settings)
    eventually(lambda: registry.current(settings).reranker is not None)
    models = registry.current(settings)
    assert (models.embedder, models.embedder_state.state, models.embedder_state.error) == (None, "off", None)
    assert workshop.looked_for == []


def test_a_model_that_is_not_there_is_absent_with_a_sentence(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    registry.start(settings)
    eventually(lambda: state(registry, settings) == "absent")
    assert registry.current(settings).embedder_state.error == "ruri is not here"


def test_a_model_that_appears_later_is_picked_up(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    registry.start(settings)
    eventually(lambda: len(workshop.looked_for) > 3)
    workshop.missing.clear()
    eventually(lambda: state(registry, settings) == "loaded")
    assert registry.current(settings).embedder_state.error is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "not enough memory"),
        (OSError("config.json is no JSON\nTraceback"), "OSError: config.json is no JSON"),
        (KeyError(), "KeyError"),
        (ModuleNotFoundError("No module named 'fugashi'", name="fugashi"), "it needs the package fugashi, which is not installed"),
        (Panicked("cannot parse precompiled_charsmap"), "Panicked: cannot parse"),
    ],
)
def test_whatever_is_raised_becomes_a_sentence(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually, error: BaseException, said: str
):
    workshop.broken["ruri"] = error
    settings = wish("ruri", "judge")
    registry.start(settings)
    eventually(lambda: state(registry, settings) == "absent")
    told = registry.current(settings).embedder_state.error
    assert told
    assert said in told
    assert "Traceback" not in told
    eventually(lambda: registry.current(settings).reranker is not None)


def test_an_error_is_logged_once_and_not_at_every_try(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    registry.start(settings)
    eventually(lambda: len(workshop.looked_for) > 5)
    assert [record.getMessage() for record in caplog.records] == ["embedder: ruri is not here"]
    workshop.broken["broken"] = OSError("damaged")
    settings = wish("broken")
    eventually(lambda: state(registry, settings) == "absent" and workshop.looked_for.count("broken") > 5)
    assert ["damaged" in record.getMessage() for record in caplog.records] == [False, True]


def test_what_is_guessed_about_a_model_is_in_its_state_and_in_the_log(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    workshop.traits = {
        "/models/ruri-v3-mine": traits_of("/models/ruri-v3-mine"),
        "cl-nagoya/ruri-v3-30m": traits_of("cl-nagoya/ruri-v3-30m"),
    }
    settings = wish("/models/ruri-v3-mine")
    registry.start(settings)
    eventually(lambda: state(registry, settings) == "loaded")
    guess = 'the prefixes "検索クエリ: " and "検索文書: " and the languages ja, because its name is ruri-v3-mine'
    assert registry.current(settings).embedder_state.guessed == guess
    settings = wish("/models/ruri-v3-mine", embeddings_languages=["ja"])
    assert "languages" not in (registry.current(settings).embedder_state.guessed or "")
    settings = wish("cl-nagoya/ruri-v3-30m")
    eventually(lambda: state(registry, settings) == "loaded")
    assert registry.current(settings).embedder_state.guessed is None
    # Another test may have made the log tell more.
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == [f"embedder /models/ruri-v3-mine is used with {guess}"]


def test_after_a_change_the_earlier_model_goes_on_until_it_is_retired(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.dimensions["new"] = 128
    old, new = wish("old"), wish("new")
    registry.start(old)
    eventually(lambda: state(registry, old) == "loaded")
    before = registry.current(old).embedder
    workshop.gate.clear()
    models = registry.current(new)
    assert (models.embedder, models.embedder_state.state) == (None, "loading")
    assert models.earlier is before
    workshop.gate.set()
    eventually(lambda: state(registry, new) == "loaded")
    models = registry.current(new)
    assert before is not None
    assert models.embedder is not None
    assert models.embedder.dimension == 128
    assert models.of_generation(before.generation) is before
    assert models.of_generation(models.embedder.generation) is models.embedder
    registry.retire_earlier(models.embedder)
    assert registry.current(new).earlier is before
    assert not registry.gave_up()
    registry.retire_earlier(before)
    assert registry.current(new).earlier is None
    assert workshop.closed == ["old"]
    assert (registry.gave_up(), registry.gave_up()) == (True, False)


def test_a_change_that_cant_be_made_leaves_the_earlier_model_at_work(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("typo")
    registry.start(wish("old"))
    eventually(lambda: state(registry, wish("old")) == "loaded")
    eventually(lambda: state(registry, wish("typo")) == "absent")
    models = registry.current(wish("typo"))
    assert models.embedder is None
    assert models.earlier is not None


def test_going_back_needs_no_loading(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    registry.start(wish("old"))
    eventually(lambda: state(registry, wish("old")) == "loaded")
    eventually(lambda: state(registry, wish("new")) == "loaded")
    models = registry.current(wish("old"))
    assert models.embedder_state.state == "loaded"
    assert models.earlier is not None
    assert models.earlier.name == "new"
    assert workshop.made == ["old", "new"]


def test_of_three_the_first_goes_on_because_most_indexes_are_its_own(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    for name in ("first", "second", "third"):
        settings = wish(name)
        registry.start(settings) if name == "first" else registry.configure(settings)
        eventually(lambda wanted=settings: state(registry, wanted) == "loaded")
    earlier = registry.current(wish("third")).earlier
    assert earlier is not None
    assert earlier.name == "first"
    assert workshop.closed == ["second"]


def test_turning_it_off_leaves_nothing_at_work(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    registry.start(wish("old"))
    eventually(lambda: state(registry, wish("old")) == "loaded")
    models = registry.current(wish(None))
    assert (models.embedder, models.earlier, models.embedder_state.state) == (None, None, "off")
    assert workshop.closed == ["old"]


def test_another_device_is_no_other_generation(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    registry.start(wish("ruri"))
    eventually(lambda: state(registry, wish("ruri")) == "loaded")
    moved = wish("ruri", embeddings_device="auto")
    eventually(lambda: state(registry, moved) == "loaded")
    assert registry.current(moved).earlier is None
    assert workshop.made == ["ruri", "ruri"]
    assert registry.gave_up()


def test_other_languages_take_effect_without_loading(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    registry.start(wish("ruri", "judge"))
    eventually(lambda: registry.current(wish("ruri", "judge")).reranker is not None)
    models = registry.current(wish("ruri", "judge", embeddings_languages=["ja"], reranker_languages=["en"]))
    assert models.embedder
    assert models.reranker
    assert (models.embedder.covers("dinner"), models.embedder.covers("夕飯")) == (False, True)
    assert (models.reranker.covers("dinner"), models.reranker.covers("夕飯")) == (True, False)
    assert workshop.made == ["ruri"]


def test_what_nobody_wants_any_more_when_it_is_loaded_is_put_away(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.gate.clear()
    registry.start(wish("slow"))
    eventually(lambda: "slow" in workshop.looked_for)
    registry.configure(wish("wanted"))
    workshop.gate.set()
    eventually(lambda: state(registry, wish("wanted")) == "loaded")
    assert workshop.closed == ["slow"]
    assert registry.current(wish("wanted")).earlier is None


def test_closing_ends_the_thread_and_puts_everything_away(workshop: Workshop, eventually: Eventually):
    before = set(threading.enumerate())
    registry = make(workshop, SOON)
    registry.start(wish("ruri"))
    eventually(lambda: state(registry, wish("ruri")) == "loaded")
    registry.close()
    registry.close()
    assert set(threading.enumerate()) <= before
    assert workshop.closed == ["ruri"]


def test_a_failing_callback_does_not_end_the_loading(workshop: Workshop, eventually: Eventually):
    def fail() -> None:
        raise RuntimeError("on purpose")

    registry = ModelRegistry(Loader(workshop.why_missing, workshop.embedder), Loader(lambda _: None, workshop.reranker), fail, SOON)
    registry.start(wish("one"))
    eventually(lambda: state(registry, wish("one")) == "loaded")
    eventually(lambda: state(registry, wish("two")) == "loaded")
    registry.close()


@pytest.mark.slow
def test_without_the_models_torch_is_never_imported(tmp_path: Path):
    program = """
import sys, threading
from memory_mcp import app
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import build_registry
from memory_mcp.encoders.worker_pool import ModelPool

settings = Settings(embeddings_model=sys.argv[1], reranker_model="nobody/knows-this")
with ModelPool() as pool:
    registry = build_registry(pool, Caches())
    registry.start(settings)
    pause = threading.Event()
    while "loading" in (registry.current(settings).embedder_state.state, registry.current(settings).reranker_state.state):
        pause.wait(0.01)
    print(registry.current(settings).embedder_state.error)
    print(registry.current(settings).reranker_state.error)
    registry.close()
print([name for name in ("torch", "transformers", "sentence_transformers", "langchain_huggingface") if name in sys.modules])
"""
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "nowhere")], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    embedder, reranker, imported = done.stdout.splitlines()
    assert "there is no directory" in embedder
    assert "HF_HUB_OFFLINE" in reranker
    assert imported == "[]"


def test_what_is_given_up_is_freed_although_it_was_exempt_from_collection():
    class Loaded:
        """Refers to itself, as the libraries' models do."""

        def __init__(self) -> None:
            self.itself = self

    class Worker:
        def models_changed(self) -> None:
            pass

    model = Loaded()
    left = weakref.ref(model)
    app._models_changed(Worker(), gave_up=False)
    del model
    app._models_changed(Worker(), gave_up=False)
    assert left()
    app._models_changed(Worker(), gave_up=True)
    assert left() is None
