"""vector_store/ on the disk: saved, verified, caught up, and mended from SQLite without one embedding."""

import json
import shutil

import numpy as np
import pytest
from fakes import HashingEmbedder
from index_comparison import compare

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import StoreReadOnly
from memory_mcp.index import sync
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

CONTENTS = ("夕飯はカレーだった", "京都に行きたい", "猫の名前はミケ", "好きな果物は苺", "朝は紅茶を飲む")


@pytest.fixture
def embedder():
    return HashingEmbedder()


@pytest.fixture
def drained(embedder, zone):
    """Applies a persona's whole queue."""

    def drain(persona, indexes):
        while sync.apply_queue(persona, embedder, indexes, zone=zone).waiting:
            pass

    return drain


@pytest.fixture
def saved(nilou, say, embedder, drained):
    """nilou's index on the disk; the embedder counts from nought afterwards."""
    for content in CONTENTS:
        say(content)
    indexes = IndexCache()
    drained(nilou, indexes)
    indexes.get(nilou.database, embedder.generation)
    assert sync.save(nilou, embedder.generation, indexes)
    embedder.documents_asked = 0
    return nilou.database.path.parent / "vector_store"


@pytest.fixture
def intact(nilou, embedder):
    """Opens the index as after a restart: it must be what SQLite has, and nothing may have been embedded."""

    def check(expected: int = len(CONTENTS)):
        indexes = IndexCache()
        index = indexes.get(nilou.database, embedder.generation)
        assert index.count == expected
        assert not compare(nilou, embedder.generation, indexes)
        assert embedder.documents_asked == 0
        return index

    return check


def damaged(directory):
    return sorted(path.name for path in directory.glob("index.faiss.damaged-*"))


def test_a_saved_index_is_taken_as_it_is(saved, intact):
    index = intact()
    assert not index.dirty
    assert damaged(saved) == []
    assert sorted(path.name for path in saved.iterdir()) == ["index.faiss", "manifest.json"]


def test_the_manifest_says_what_the_file_is(saved, embedder):
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest.pop("sha256")
    assert manifest == {
        "format": 1,
        "persona": "nilou",
        "generation": embedder.generation,
        "dimension": 64,
        "count": 5,
        "change": manifest["change"],
    }


def test_a_deleted_vector_store_comes_back(saved, intact):
    shutil.rmtree(saved)
    assert intact().dirty


@pytest.mark.parametrize("name", ["index.faiss", "manifest.json"])
def test_a_missing_file_costs_nothing(saved, intact, name):
    (saved / name).unlink()
    assert intact().dirty


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_index_is_set_aside(saved, intact, caplog, keep):
    path = saved / "index.faiss"
    path.write_bytes(path.read_bytes()[:keep])
    intact()
    assert len(damaged(saved)) == 1
    assert "set aside" in caplog.text


@pytest.mark.parametrize("place", [0, 10, 40, 500, -1])
def test_one_flipped_bit_in_the_index_is_noticed(saved, intact, place):
    path = saved / "index.faiss"
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    intact()
    assert len(damaged(saved)) == 1


def test_whatever_bit_flips_in_the_manifest_the_index_is_right(saved, intact):
    path = saved / "manifest.json"
    content = path.read_bytes()
    index_bytes = (saved / "index.faiss").read_bytes()
    for place in range(0, len(content), 3):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 7
        path.write_bytes(flipped)
        (saved / "index.faiss").write_bytes(index_bytes)
        intact()


@pytest.mark.parametrize("manifest", ["", "{}", "[]", "null", '{"format": 1}', "\x00", "[" * 100_000])
def test_a_manifest_of_nonsense_is_no_manifest(saved, intact, manifest):
    (saved / "manifest.json").write_text(manifest)
    intact()
    assert len(damaged(saved)) == 1


def test_the_index_of_another_persona_never_answers(saved, intact, personas, drained, embedder, now, zone):
    with personas.writing("other") as other:
        for content in reversed(CONTENTS):
            remember(other, draft(content, now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        indexes = IndexCache()
        drained(other, indexes)
        sync.rebuild(other, embedder.generation, indexes)
        theirs = other.database.path.parent / "vector_store"
    embedder.documents_asked = 0
    shutil.rmtree(saved)
    shutil.copytree(theirs, saved)
    intact()
    assert len(damaged(saved)) == 1


def test_an_index_of_another_persona_is_not_taken_even_if_they_say_the_same(saved, intact):
    manifest = json.loads((saved / "manifest.json").read_text())
    (saved / "manifest.json").write_text(json.dumps({**manifest, "persona": "other"}))
    intact()
    assert len(damaged(saved)) == 1


def test_an_index_of_another_timeline_is_noticed_by_its_vectors(saved, intact, nilou, embedder):
    """As after a restored backup: the same ids, and other texts under them."""

    def write_history_anew(connection):
        last = stored_vectors.ids(connection, embedder.generation)[-1:].tolist()
        stored_vectors.write(connection, embedder.generation, last, np.eye(1, 64, 3, dtype=np.float32))

    nilou.database.write(write_history_anew)
    intact()
    assert len(damaged(saved)) == 1


def test_a_sound_file_that_is_behind_is_caught_up(saved, intact, nilou, say, drained, embedder, now):
    keys = [say(f"新しい{number}").key for number in range(3)]
    first = say(CONTENTS[0]).key  # a retry of the same write: it answers with the key of the first
    forget(nilou, [keys[0], first], reason=None, dry_run=False, now=now, privacy=Privacy())
    drained(nilou, IndexCache())
    embedder.documents_asked = 0
    index = intact(expected=6)
    assert index.dirty
    assert damaged(saved) == []


def test_few_damaged_files_are_kept(saved, intact, nilou, embedder):
    for _ in range(5):
        (saved / "index.faiss").write_bytes(b"broken")
        intact()
    assert len(damaged(saved)) == 2


def test_a_file_that_an_older_server_left_is_set_aside_and_not_overwritten(saved, intact):
    (saved / "manifest.json").unlink()
    (saved / "index.faiss").write_bytes(b"from langchain")
    (saved / "index.pkl").write_bytes(b"never read")
    intact()
    assert [(saved / name).read_bytes() for name in damaged(saved)] == [b"from langchain"]
    assert (saved / "index.pkl").read_bytes() == b"never read"


def test_a_save_that_fails_leaves_the_old_file_and_no_scraps(saved, nilou, say, drained, embedder, monkeypatch):
    say("新しい")
    indexes = IndexCache()
    drained(nilou, indexes)
    index = indexes.get(nilou.database, embedder.generation)
    before = (saved / "index.faiss").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreReadOnly, match="No space left"):
        indexes.save(nilou.database, index)
    assert index.dirty
    assert (saved / "index.faiss").read_bytes() == before
    assert sorted(path.name for path in saved.iterdir()) == ["index.faiss", "manifest.json"]


def test_the_shelf_hands_everybody_the_same_index(nilou, saved, embedder):
    indexes = IndexCache()
    assert indexes.opened(nilou.database, embedder.generation) is None
    index = indexes.get(nilou.database, embedder.generation)
    assert indexes.get(nilou.database, embedder.generation) is index
    assert indexes.opened(nilou.database, embedder.generation) is index
    assert indexes.size_bytes == index.size_bytes


def test_a_generation_that_does_not_answer_is_not_on_the_shelf(nilou, saved):
    indexes = IndexCache()
    assert indexes.get(nilou.database, "another") is None
    assert indexes.opened(nilou.database, "another") is None


def test_a_full_shelf_puts_the_least_recently_used_away_and_the_unsaved_last(personas, drained, embedder, now, zone):
    indexes = IndexCache(limit_bytes=1)

    def opened(*names):
        return [name for name in names if indexes.opened(databases[name], embedder.generation)]

    databases = {}
    for name in ("a", "b", "c"):
        with personas.writing(name) as persona:
            databases[name] = persona.database
            remember(persona, draft("猫", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
            drained(persona, indexes)
            sync.rebuild(persona, embedder.generation, indexes)
    size = indexes.get(databases["a"], embedder.generation).size_bytes
    indexes = IndexCache(limit_bytes=2 * size)
    for name in ("a", "b", "a", "c"):
        indexes.get(databases[name], embedder.generation)
    assert opened("a", "b", "c") == ["a", "c"]
    indexes.opened(databases["a"], embedder.generation).revision += 1
    indexes.get(databases["b"], embedder.generation)
    assert opened("a", "b", "c") == ["a", "b"]
    assert indexes.dirty() == {databases["a"].path.parent}
