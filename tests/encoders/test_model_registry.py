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
from fakes import HashingEmbedder, OverlapReranker
from panics import Panicked
from places import ROOT

from memory_mcp import app
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading.model_registry import ModelRegistry
from memory_mcp.encoders.loading.model_slot import Loader
from memory_mcp.encoders.model_families import Traits, traits_of
from memory_mcp.encoders.models import Replacement

Eventually = Callable[[Callable[[], bool]], None]
SOON = (0.001,)


@dataclass
class Workshop:
    """Makes fakes of every name, except those that are `missing` or `broken`; each waits for `gate` while it is closed."""

    missing: set[str] = field(default_factory=set)
    missing_rerankers: set[str] = field(default_factory=set)
    missing_services: set[str] = field(default_factory=set)
    devices: list[str] = field(default_factory=list)
    far: dict[str, threading.Event] = field(default_factory=dict)
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
        return f"{name} is not here" if name in self.missing or settings.embeddings_url in self.missing_services else None

    def embedder(self, settings: Settings) -> HashingEmbedder:
        name = settings.embeddings_model or ""
        self.gate.wait()
        if name in self.far:
            self.far[name].wait()
        if name in self.broken:
            raise self.broken[name]
        self.made.append(name)
        self.devices.append(settings.embeddings_device)
        workshop = self

        class Closing(HashingEmbedder):
            def close(self) -> None:
                workshop.closed.append(self.name)

        made = Closing(self.dimensions.get(name, 64), name)
        made.traits = self.traits.get(name)
        return made

    def why_no_reranker(self, settings: Settings) -> str | None:
        return "it is not here" if settings.reranker_model in self.missing_rerankers else None

    def reranker(self, settings: Settings) -> OverlapReranker:
        return OverlapReranker(settings.reranker_model or "")

    def changed(self) -> None:
        self.changes += 1


def wish(embedder: str | None = None, reranker: str | None = None, **more: object) -> Settings:
    """Settings under which nothing takes the place of an absent embedder, unless `more` names what does."""
    return Settings(embeddings_model=embedder, reranker_model=reranker, **{"embeddings_fallback": None, **more})


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
        Loader(workshop.why_missing, workshop.embedder, lambda settings: settings.embeddings_model in workshop.far),
        Loader(workshop.why_no_reranker, workshop.reranker),
        workshop.changed,
        retry_seconds,
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


def test_a_model_that_could_not_be_measured_is_used_and_measured_as_soon_as_it_answers(workshop: Workshop, eventually: Eventually):
    class Unmeasured(HashingEmbedder):
        attempts = 0

        @property
        def is_measured(self) -> bool:
            return self.attempts == 3

        def measure(self) -> bool:
            self.attempts += 1
            return self.is_measured

    settings, model = wish("far"), Unmeasured(64, "far")
    loader = Loader(workshop.why_missing, lambda _: model)
    registry = ModelRegistry(loader, Loader(workshop.why_no_reranker, workshop.reranker), workshop.changed, SOON)
    registry.start(settings)
    eventually(lambda: workshop.changes == 2)
    assert registry.current(settings).embedder is model
    assert model.attempts == 3
    registry.close()
    assert model.attempts == 3


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


def test_a_model_that_is_known_to_be_absent_is_not_replaced_by_the_earlier_one(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually
):
    workshop.missing.add("typo")
    registry.start(wish("old"))
    eventually(lambda: state(registry, wish("old")) == "loaded")
    eventually(lambda: state(registry, wish("typo")) == "absent")
    models = registry.current(wish("typo"))
    assert (models.loaded, models.degraded()) == ((), ["embedder_absent"])
    assert workshop.closed == ["old"]
    assert registry.gave_up()


def test_the_earlier_model_says_that_it_answers_while_another_is_loaded(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually
):
    registry.start(wish("old"))
    eventually(lambda: state(registry, wish("old")) == "loaded")
    workshop.gate.clear()
    models = registry.current(wish("new"))
    assert models.degraded() == ["embedder_previous"]
    assert models.replaced(models.earlier) == Replacement("embedder_previous", "old")
    workshop.gate.set()
    eventually(lambda: state(registry, wish("new")) == "loaded")
    models = registry.current(wish("new"))
    assert (models.degraded(), models.replaced(models.embedder)) == (["embedder_previous"], None)  # for indexes that are still its own
    registry.retire_earlier(models.loaded[1])
    assert registry.current(wish("new")).degraded() == []


def test_a_changed_reranker_that_is_absent_is_not_replaced_by_the_earlier_one(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually
):
    workshop.missing_rerankers.add("typo")
    registry.start(wish(None, "judge"))
    eventually(lambda: registry.current(wish(None, "judge")).reranker is not None)
    assert registry.current(wish(None, "typo")).reranker is None
    eventually(lambda: registry.current(wish(None, "typo")).degraded() == ["reranker_absent"])


def with_fallback(embedder: str | None, fallback: str | None = "stand-in", **more: object) -> Settings:
    return wish(embedder, embeddings_fallback=fallback, **more)


def test_the_fallback_is_used_until_the_absent_model_is_there(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("ruri")
    settings = with_fallback("ruri", embeddings_languages=["ja"])
    registry.start(settings)
    eventually(lambda: registry.current(settings).fallback is not None)
    models = registry.current(settings)
    assert (models.embedder, models.embedder_state.state, models.fallback_state.state) == (None, "absent", "loaded")
    assert models.replaced(models.target) == Replacement("embedder_fallback", "stand-in")
    assert models.target is not None
    assert models.target.covers("dinner")  # the languages are those of the configured model
    workshop.missing.clear()
    eventually(lambda: state(registry, settings) == "loaded")
    models = registry.current(settings)
    assert models.degraded() == ["embedder_fallback"]
    assert models.replaced(models.target) is None
    assert [model.name for model in models.loaded] == ["ruri", "stand-in"]
    stand_in = models.fallback
    assert models.of_generation(stand_in.generation if stand_in else None) is stand_in  # indexes that are still its own
    registry.retire_earlier(models.loaded[1])
    assert [model.name for model in registry.current(settings).loaded] == ["ruri"]
    assert registry.current(settings).degraded() == []
    assert (workshop.made, workshop.closed) == (["stand-in", "ruri"], ["stand-in"])
    assert registry.current(settings).fallback_state.state == "off"


def test_the_fallback_is_not_loaded_while_the_configured_model_is(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.gate.clear()
    registry.start(with_fallback("ruri"))
    eventually(lambda: "ruri" in workshop.looked_for)
    assert registry.current(with_fallback("ruri")).degraded() == ["embedder_loading"]
    workshop.gate.set()
    eventually(lambda: state(registry, with_fallback("ruri")) == "loaded")
    assert workshop.made == ["ruri"]
    assert "stand-in" not in workshop.looked_for


def test_the_fallback_is_used_while_the_configured_model_is_downloaded(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.far["ruri"] = threading.Event()
    settings = with_fallback("ruri")
    registry.start(settings)
    eventually(lambda: registry.current(settings).degraded() == ["embedder_fallback"])
    assert state(registry, settings) == "loading"
    workshop.far["ruri"].set()
    eventually(lambda: state(registry, settings) == "loaded")
    registry.retire_earlier(registry.current(settings).loaded[1])
    workshop.far["next"] = threading.Event()  # the earlier model goes on meanwhile
    assert registry.current(with_fallback("next")).degraded() == ["embedder_previous"]
    eventually(lambda: "next" in workshop.looked_for)
    workshop.far["next"].set()
    eventually(lambda: state(registry, with_fallback("next")) == "loaded")
    assert workshop.made == ["stand-in", "ruri", "next"]


def test_a_model_that_is_loaded_already_becomes_the_fallback_and_back_without_loading(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually
):
    workshop.missing.add("typo")
    registry.start(with_fallback("stand-in"))
    eventually(lambda: state(registry, with_fallback("stand-in")) == "loaded")
    eventually(lambda: registry.current(with_fallback("typo")).degraded() == ["embedder_fallback"])
    assert registry.current(with_fallback("stand-in")).degraded() == []
    assert (workshop.made, workshop.closed) == (["stand-in"], [])


def test_the_earlier_model_goes_on_until_the_fallback_has_its_indexes(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("typo")
    registry.start(with_fallback("old"))
    eventually(lambda: state(registry, with_fallback("old")) == "loaded")
    eventually(lambda: registry.current(with_fallback("typo")).fallback is not None)
    assert [model.name for model in registry.current(with_fallback("typo")).loaded] == ["stand-in", "old"]
    registry.retire_earlier(registry.current(with_fallback("typo")).loaded[0])  # what indexes are made for is never retired
    registry.retire_earlier(registry.current(with_fallback("typo")).loaded[1])
    assert [model.name for model in registry.current(with_fallback("typo")).loaded] == ["stand-in"]


@pytest.mark.parametrize("unwanted", [with_fallback("ruri", None), with_fallback(None)], ids=["no fallback", "words alone"])
def test_a_fallback_that_nobody_wants_any_more_is_put_away(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually, unwanted: Settings
):
    workshop.missing.add("ruri")
    registry.start(with_fallback("ruri"))
    eventually(lambda: registry.current(with_fallback("ruri")).fallback is not None)
    eventually(lambda: registry.current(unwanted).embedder_state.state in ("absent", "off"))
    assert registry.current(unwanted).loaded == ()
    assert workshop.closed == ["stand-in"]


def test_a_fallback_that_is_absent_too_is_tried_again(registry: ModelRegistry, workshop: Workshop, eventually: Eventually):
    workshop.missing |= {"typo", "stand-in"}
    registry.start(with_fallback("old"))
    eventually(lambda: state(registry, with_fallback("old")) == "loaded")
    eventually(lambda: registry.current(with_fallback("typo")).fallback_state.state == "absent")
    assert registry.current(with_fallback("typo")).degraded() == ["embedder_absent"]
    workshop.missing.remove("stand-in")
    eventually(lambda: registry.current(with_fallback("typo")).degraded() == ["embedder_fallback"])


def test_a_service_that_is_unreachable_is_replaced_by_a_fallback_that_runs_here(
    registry: ModelRegistry, workshop: Workshop, eventually: Eventually
):
    workshop.missing_services.add("http://gpu:8080")
    settings = with_fallback("same-name", "same-name", embeddings_url="http://gpu:8080", embeddings_device="cuda")
    registry.start(settings)
    eventually(lambda: registry.current(settings).degraded() == ["embedder_fallback"])
    assert (workshop.made, workshop.devices) == (["same-name"], ["auto"])


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
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": ""}
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
