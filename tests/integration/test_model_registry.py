"""Models come in, change, go and come back while calls go on."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from panics import Panicked

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.fakes import HashingEmbedder, OverlapReranker
from memory_mcp.encoders.loading.model_registry import ModelShelf
from memory_mcp.encoders.loading.model_slot import Loader

Eventually = Callable[[Callable[[], bool]], None]
SOON = (0.001,)


@dataclass
class Workshop:
    """Makes fakes of every name, except those that are `missing` or `broken`; each waits for `gate` while it is closed."""

    missing: set[str] = field(default_factory=set)
    broken: dict[str, BaseException] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    changes: int = 0
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    def why_absent(self, settings: Settings) -> str | None:
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

        return Closing(self.dimensions.get(name, 64), name)

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
def shelf(workshop: Workshop) -> Iterator[ModelShelf]:
    made = make(workshop, SOON)
    yield made
    workshop.gate.set()
    made.close()


def make(workshop: Workshop, retry_seconds: tuple[float, ...]) -> ModelShelf:
    return ModelShelf(
        Loader(workshop.why_absent, workshop.embedder), Loader(lambda _: None, workshop.reranker), workshop.changed, retry_seconds
    )


def state(shelf: ModelShelf, settings: Settings) -> str:
    return shelf.current(settings).embedder_state.state


def test_what_is_wanted_comes_in_behind_the_callers_back(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    settings = wish("ruri", "judge")
    workshop.gate.clear()
    shelf.start(settings)
    models = shelf.current(settings)
    assert (models.embedder, models.embedder_state.state, models.embedder_state.name) == (None, "loading", "ruri")
    workshop.gate.set()
    eventually(lambda: shelf.current(settings).reranker is not None)
    models = shelf.current(settings)
    assert models.embedder is not None
    assert (models.embedder_state.state, models.embedder_state.dimension, models.embedder_state.error) == ("loaded", 64, None)
    assert (models.reranker_state.state, models.reranker_state.name) == ("loaded", "judge")
    eventually(lambda: workshop.changes == 2)


def test_null_is_off_and_nothing_is_looked_for(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    settings = wish(None, "judge")
    shelf.start(settings)
    eventually(lambda: shelf.current(settings).reranker is not None)
    models = shelf.current(settings)
    assert (models.embedder, models.embedder_state.state, models.embedder_state.error) == (None, "off", None)
    assert workshop.looked_for == []


def test_a_model_that_is_not_there_is_absent_with_a_sentence(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    shelf.start(settings)
    eventually(lambda: state(shelf, settings) == "absent")
    assert shelf.current(settings).embedder_state.error == "ruri is not here"


def test_a_model_that_appears_later_is_picked_up(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    shelf.start(settings)
    eventually(lambda: len(workshop.looked_for) > 3)
    workshop.missing.clear()
    eventually(lambda: state(shelf, settings) == "loaded")
    assert shelf.current(settings).embedder_state.error is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "not enough memory"),
        (OSError("config.json is no JSON\nTraceback"), "OSError: config.json is no JSON"),
        (KeyError(), "KeyError"),
        (Panicked("cannot parse precompiled_charsmap"), "Panicked: cannot parse"),
    ],
)
def test_whatever_is_raised_becomes_a_sentence(
    shelf: ModelShelf, workshop: Workshop, eventually: Eventually, error: BaseException, said: str
):
    workshop.broken["ruri"] = error
    settings = wish("ruri", "judge")
    shelf.start(settings)
    eventually(lambda: state(shelf, settings) == "absent")
    told = shelf.current(settings).embedder_state.error
    assert told
    assert said in told
    assert "Traceback" not in told
    eventually(lambda: shelf.current(settings).reranker is not None)


def test_an_error_is_logged_once_and_not_at_every_try(
    shelf: ModelShelf, workshop: Workshop, eventually: Eventually, caplog: pytest.LogCaptureFixture
):
    workshop.missing.add("ruri")
    settings = wish("ruri")
    shelf.start(settings)
    eventually(lambda: len(workshop.looked_for) > 5)
    assert [record.getMessage() for record in caplog.records] == ["embedder: ruri is not here"]
    workshop.broken["broken"] = OSError("damaged")
    settings = wish("broken")
    eventually(lambda: state(shelf, settings) == "absent" and workshop.looked_for.count("broken") > 5)
    assert ["damaged" in record.getMessage() for record in caplog.records] == [False, True]


def test_after_a_change_the_earlier_model_goes_on_until_it_is_retired(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    workshop.dimensions["new"] = 128
    old, new = wish("old"), wish("new")
    shelf.start(old)
    eventually(lambda: state(shelf, old) == "loaded")
    before = shelf.current(old).embedder
    workshop.gate.clear()
    models = shelf.current(new)
    assert (models.embedder, models.embedder_state.state) == (None, "loading")
    assert models.earlier is before
    workshop.gate.set()
    eventually(lambda: state(shelf, new) == "loaded")
    models = shelf.current(new)
    assert before is not None
    assert models.embedder is not None
    assert models.embedder.dimension == 128
    assert models.of_generation(before.generation) is before
    assert models.of_generation(models.embedder.generation) is models.embedder
    shelf.retire_earlier()
    assert shelf.current(new).earlier is None
    assert workshop.closed == ["old"]


def test_a_change_that_cant_be_made_leaves_the_earlier_model_at_work(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    workshop.missing.add("typo")
    shelf.start(wish("old"))
    eventually(lambda: state(shelf, wish("old")) == "loaded")
    eventually(lambda: state(shelf, wish("typo")) == "absent")
    models = shelf.current(wish("typo"))
    assert models.embedder is None
    assert models.earlier is not None


def test_going_back_needs_no_loading(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    shelf.start(wish("old"))
    eventually(lambda: state(shelf, wish("old")) == "loaded")
    eventually(lambda: state(shelf, wish("new")) == "loaded")
    models = shelf.current(wish("old"))
    assert models.embedder_state.state == "loaded"
    assert models.earlier is not None
    assert models.earlier.name == "new"
    assert workshop.made == ["old", "new"]


def test_of_three_the_first_goes_on_because_most_indexes_are_its_own(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    for name in ("first", "second", "third"):
        settings = wish(name)
        shelf.start(settings) if name == "first" else shelf.want(settings)
        eventually(lambda wanted=settings: state(shelf, wanted) == "loaded")
    earlier = shelf.current(wish("third")).earlier
    assert earlier is not None
    assert earlier.name == "first"
    assert workshop.closed == ["second"]


def test_turning_it_off_leaves_nothing_at_work(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    shelf.start(wish("old"))
    eventually(lambda: state(shelf, wish("old")) == "loaded")
    models = shelf.current(wish(None))
    assert (models.embedder, models.earlier, models.embedder_state.state) == (None, None, "off")
    assert workshop.closed == ["old"]


def test_another_device_is_no_other_generation(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    shelf.start(wish("ruri"))
    eventually(lambda: state(shelf, wish("ruri")) == "loaded")
    moved = wish("ruri", embeddings_device="auto")
    eventually(lambda: state(shelf, moved) == "loaded")
    assert shelf.current(moved).earlier is None
    assert workshop.made == ["ruri", "ruri"]


def test_other_languages_take_effect_without_loading(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    shelf.start(wish("ruri", "judge"))
    eventually(lambda: shelf.current(wish("ruri", "judge")).reranker is not None)
    models = shelf.current(wish("ruri", "judge", embeddings_languages=["ja"], reranker_languages=["en"]))
    assert models.embedder
    assert models.reranker
    assert (models.embedder.covers("dinner"), models.embedder.covers("夕飯")) == (False, True)
    assert (models.reranker.covers("dinner"), models.reranker.covers("夕飯")) == (True, False)
    assert workshop.made == ["ruri"]


def test_what_nobody_wants_any_more_when_it_is_loaded_is_put_away(shelf: ModelShelf, workshop: Workshop, eventually: Eventually):
    workshop.gate.clear()
    shelf.start(wish("slow"))
    eventually(lambda: "slow" in workshop.looked_for)
    shelf.want(wish("wanted"))
    workshop.gate.set()
    eventually(lambda: state(shelf, wish("wanted")) == "loaded")
    assert workshop.closed == ["slow"]
    assert shelf.current(wish("wanted")).earlier is None


def test_closing_ends_the_thread_and_puts_everything_away(workshop: Workshop, eventually: Eventually):
    before = threading.active_count()
    shelf = make(workshop, SOON)
    shelf.start(wish("ruri"))
    eventually(lambda: state(shelf, wish("ruri")) == "loaded")
    shelf.close()
    shelf.close()
    assert threading.active_count() == before
    assert workshop.closed == ["ruri"]


def test_a_failing_callback_does_not_end_the_loading(workshop: Workshop, eventually: Eventually):
    def fail() -> None:
        raise RuntimeError("on purpose")

    shelf = ModelShelf(Loader(workshop.why_absent, workshop.embedder), Loader(lambda _: None, workshop.reranker), fail, SOON)
    shelf.start(wish("one"))
    eventually(lambda: state(shelf, wish("one")) == "loaded")
    eventually(lambda: state(shelf, wish("two")) == "loaded")
    shelf.close()


@pytest.mark.slow
def test_without_the_models_torch_is_never_imported(tmp_path: Path):
    program = """
import sys, threading
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import model_shelf
from memory_mcp.encoders.pool import ModelPool

settings = Settings(embeddings_model=sys.argv[1], reranker_model="nobody/knows-this")
with ModelPool() as pool:
    shelf = model_shelf(pool, Caches())
    shelf.start(settings)
    pause = threading.Event()
    while "loading" in (shelf.current(settings).embedder_state.state, shelf.current(settings).reranker_state.state):
        pause.wait(0.01)
    print(shelf.current(settings).embedder_state.error)
    print(shelf.current(settings).reranker_state.error)
    shelf.close()
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
