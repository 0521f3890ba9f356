"""From the to-do list to the index: every write arrives, nothing is embedded twice, and generations never mix."""

import itertools

import numpy as np
import pytest
from fakes import HashingEmbedder
from index_comparison import Differences, compare, lag

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import EncoderFailed
from memory_mcp.index import sync
from memory_mcp.remember.forget import forget
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store import memories
from memory_mcp.store.vectors import chunks, index_queue, stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache


class RecordingEmbedder(HashingEmbedder):
    """Keeps the texts, and does something else while the model is busy."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.texts = []
        self.meanwhile = lambda: None

    def embed_documents(self, texts):
        self.texts += texts
        self.meanwhile()
        return super().embed_documents(texts)


@pytest.fixture
def embedder():
    return RecordingEmbedder()


@pytest.fixture
def indexes():
    return IndexCache()


@pytest.fixture
def apply(nilou, embedder, indexes, zone):
    def apply(by=embedder, batch=32):
        return sync.apply_queue(nilou, by, indexes, zone=zone, batch=batch)

    return apply


@pytest.fixture
def drain(apply):
    def drain(by=None):
        while (apply(by) if by else apply()).waiting:
            pass

    return drain


@pytest.fixture
def found(nilou, embedder, indexes):
    """The keys of what the index finds for a text, nearest first, each with its cosine."""

    def found(text, by=embedder):
        index = indexes.get(nilou.database, by.generation)
        nearest = index.search(by.embed_query(text), 50)
        with nilou.database.read() as connection:
            owners = chunks.of_memories(connection, range(1, 1_000))
            stored = memories.by_ids(connection, owners.values())
        return {stored[owners[chunk]].key: round(cosine, 3) for chunk, cosine in reversed(nearest) if chunk in owners}

    return found


@pytest.fixture
def equal(nilou, embedder, indexes):
    def equal(by=embedder):
        return not compare(nilou, by.generation, indexes) and not compare(nilou, by.generation, IndexCache())

    return equal


def waiting(persona):
    with persona.database.read() as connection:
        return index_queue.length(connection)


def test_what_is_written_is_found_after_one_batch(say, apply, found, equal, indexes, nilou, embedder):
    key = say("夕飯はカレーだった", source="user", occurred_at="2025-10-01").key
    assert lag(nilou, embedder.generation) == 1
    assert apply() == sync.Applied(embedded=1, done=1, waiting=0)
    assert embedder.texts == ["[2025-10-01] user: 夕飯はカレーだった"]
    assert found("[2025-10-01] user: 夕飯はカレーだった") == {key: 1.0}
    assert equal()
    assert lag(nilou, embedder.generation) == 0
    assert apply() == sync.Applied(0, 0, 0)


def test_the_day_is_that_of_the_zone_and_a_speaker_is_named_only_if_known(say, apply, embedder):
    say("早起きした", occurred_at="2025-10-29T23:30:00+00:00")
    apply()
    assert embedder.texts == ["[2025-10-30] 早起きした"]


def test_only_what_is_new_is_embedded(say, drain, embedder, indexes, nilou):
    for number in range(40):
        say(f"記憶{number}")
    drain()
    assert embedder.documents_asked == 40
    indexes.get(nilou.database, embedder.generation)
    say("もう一つ")
    drain()
    assert embedder.documents_asked == 41


def test_the_first_model_answers_at_once_and_the_rest_is_lag(say, apply, found, nilou, embedder):
    for number in range(40):
        say(f"記憶{number}")
    assert sync.serving_generation(nilou) is None
    assert apply(batch=8).waiting == 32
    assert sync.serving_generation(nilou) == embedder.generation
    assert len(found("記憶")) == 8
    assert lag(nilou, embedder.generation) == 32
    with nilou.database.read() as connection:
        assert stored_vectors.waiting(connection, embedder.generation) == 32


def test_a_batch_takes_the_oldest_and_the_newest(say, apply, embedder):
    for number in range(40):
        say(f"記憶{number}")
    apply(batch=8)
    assert sorted(int(text.rpartition("憶")[2]) for text in embedder.texts) == [0, 1, 2, 3, 4, 5, 38, 39]


@pytest.mark.slow
@pytest.mark.parametrize(("texts_at_once", "embedded"), [(1, sync.BATCH), (100, 100), (9_999, sync.LARGEST_BATCH)])
def test_a_batch_is_as_large_as_suits_the_embedder_within_limits(say, apply, embedder, texts_at_once, embedded):
    for number in range(sync.LARGEST_BATCH + 1):
        say(f"記憶 {number}")
    embedder.texts_at_once = texts_at_once
    assert apply(batch=None).embedded == embedded


def test_a_long_memory_is_done_over_several_batches_and_keeps_none_waiting_behind_it(say, apply, nilou, embedder, equal):
    say("".join(f"{number}つめの長い話。" for number in range(2_000)))
    say("短い話")
    assert apply(batch=4) == sync.Applied(embedded=4, done=1, waiting=1)
    assert any("短い話" in text for text in embedder.texts)
    while apply(batch=4).waiting:
        pass
    with nilou.database.read() as connection:
        pieces = [chunks.in_generation(connection, memory_id, embedder.generation) for memory_id in (1, 2)]
        assert embedder.documents_asked == len(set(embedder.texts)) == sum(map(len, pieces)) > 8
    assert equal()


def test_a_forgotten_memory_leaves_the_index_and_comes_back_without_embedding(say, drain, found, nilou, now, embedder, equal):
    key, other = say("夕飯はカレーだった").key, say("京都に行きたい").key
    drain()
    found("京都")
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    drain()
    assert found("夕飯はカレーだった").keys() == {other}
    assert equal()
    revise(nilou, key, Revision(restore=True), now=now, privacy=Privacy())
    drain()
    assert found("夕飯はカレーだった").keys() == {key, other}
    assert embedder.documents_asked == 2
    assert equal()


def test_a_replaced_memory_leaves_the_index_and_returns_with_its_replacement_gone(say, drain, found, nilou, now, embedder, equal):
    first = say("猫の名前はミケ").key
    drain()
    found("猫")
    second = say("猫の名前はタマ", supersedes=first).key
    third = say("猫の名前はクロ", supersedes=second).key
    drain()
    assert found("猫").keys() == {third}
    forget(nilou, [second, third], reason=None, dry_run=False, now=now, privacy=Privacy())
    drain()
    assert found("猫").keys() == {first}
    assert equal()


def test_a_revised_memory_is_found_by_its_new_words_only(say, drain, found, nilou, now, equal, embedder):
    key = say("夕飯はカレーだった", source="user").key
    drain()
    old = found("[2025-10-30] user: 夕飯はカレーだった")
    revise(nilou, key, Revision(content="朝は紅茶を飲む"), now=now, privacy=Privacy())
    drain()
    assert old == {key: 1.0}
    assert found("[2025-10-30] user: 朝は紅茶を飲む") == {key: 1.0}
    assert found("[2025-10-30] user: 夕飯はカレーだった")[key] < 0.9
    assert equal()
    with nilou.database.read() as connection:
        assert stored_vectors.dropped_chunks(connection) == []
        assert stored_vectors.counts(connection) == {embedder.generation: 1}


def test_tags_cost_no_embedding(say, drain, nilou, now, embedder):
    key = say("京都").key
    drain()
    revise(nilou, key, Revision(tags=("旅",)), now=now, privacy=Privacy())
    drain()
    assert embedder.documents_asked == 1


def test_a_question_is_a_vector_of_its_own_and_survives_a_revision(say, drain, found, nilou, now, embedder, equal):
    key = say("ミケ", source="user", questions=["猫の名前は何？", "何を飼っている？"]).key
    drain()
    assert embedder.texts == ["[2025-10-30] user: ミケ", "猫の名前は何？", "何を飼っている？"]
    assert found("猫の名前は何？") == {key: 1.0}
    revise(nilou, key, Revision(content="タマ"), now=now, privacy=Privacy())
    drain()
    assert found("何を飼っている？") == {key: 1.0}
    assert equal()


def test_a_write_during_the_work_survives(say, apply, drain, nilou, now, embedder, found, equal):
    key = say("夕飯はカレーだった").key

    def meanwhile():
        embedder.meanwhile = lambda: None
        revise(nilou, key, Revision(content="夕飯は寿司だった"), now=now, privacy=Privacy())
        say("京都に行きたい")

    embedder.meanwhile = meanwhile
    assert apply() == sync.Applied(embedded=1, done=0, waiting=2)
    drain()
    assert found("[2025-10-30] 夕飯は寿司だった")[key] == 1.0
    assert equal()
    assert waiting(nilou) == 0


def test_a_memory_that_is_forgotten_during_the_work_is_not_in_the_index(say, drain, nilou, now, embedder, found, equal):
    key, other = say("夕飯はカレーだった").key, say("京都に行きたい").key
    embedder.meanwhile = lambda: forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    drain()
    assert found("夕飯").keys() == {other}
    assert equal()


def test_a_write_after_the_index_was_updated_is_not_struck_off_with_what_was_done(say, apply, nilou, now, equal, drain, monkeypatch):
    key = say("夕飯はカレーだった").key
    update = sync._update

    def update_and_forget(*arguments):
        update(*arguments)
        forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())

    monkeypatch.setattr(sync, "_update", update_and_forget)
    assert apply().waiting == 1
    monkeypatch.undo()
    drain()
    assert equal()


def test_a_model_that_fails_changes_nothing(say, apply, nilou, embedder):
    say("京都")
    embedder.failing = True
    with pytest.raises(EncoderFailed):
        apply()
    assert waiting(nilou) == 1
    assert sync.serving_generation(nilou) is None
    embedder.failing = False
    assert apply().done == 1


@pytest.mark.parametrize("answer", [np.zeros((1, 63), np.float32), np.full((1, 64), np.nan, np.float32), np.zeros((2, 64), np.float32)])
def test_vectors_that_can_not_be_right_are_refused(say, apply, nilou, embedder, answer, monkeypatch):
    say("京都")
    monkeypatch.setattr(embedder, "embed_documents", lambda texts: answer)
    with pytest.raises(EncoderFailed, match="unusable"):
        apply()
    assert waiting(nilou) == 1


@pytest.mark.parametrize("crashing", ["_store", "_update", "_dequeue"])
def test_a_crash_between_any_two_steps_only_repeats_work(say, apply, drain, nilou, indexes, embedder, equal, monkeypatch, crashing):
    for number in range(5):
        say(f"記憶{number}")
    monkeypatch.setattr(sync, crashing, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        apply()
    monkeypatch.undo()
    assert waiting(nilou) == 5
    drain()
    assert equal()
    assert embedder.documents_asked == (10 if crashing == "_store" else 5)


def test_a_reader_that_opens_the_index_during_the_work_sees_it_all(say, drain, nilou, indexes, embedder, found, equal):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    key = say("京都に行きたい").key
    embedder.meanwhile = lambda: found("記憶")
    drain()
    assert key in found("京都に行きたい")
    assert equal()


def test_another_model_is_embedded_beside_the_one_that_answers_and_swaps_in_one_moment(
    say, drain, nilou, indexes, embedder, found, equal, zone, now
):
    keys = [say(f"記憶{number}").key for number in range(20)]
    drain()
    other = RecordingEmbedder(96, "other")
    assert sync.prepare(nilou, other, [embedder.generation, other.generation]) == embedder.generation
    after, answers = 0, []
    for turn in itertools.count():
        if turn == 2:  # what is written meanwhile goes to the model that answers, and to the other one too
            keys.append(say("京都に行きたい").key)
            forget(nilou, keys[:1], reason=None, dry_run=False, now=now, privacy=Privacy())
            drain()
        done = sync.re_embed(nilou, other, indexes, zone=zone, after=after, batch=8)
        after = done.after
        serving = sync.serving_generation(nilou)
        answers.append(serving)
        by = embedder if serving == embedder.generation else other
        assert indexes.get(nilou.database, serving).dimension == by.dimension
        assert set(found("記憶", by)) == set(keys[1:] if turn >= 2 else keys)
        if done.swapped:
            break
    assert answers == [embedder.generation] * (len(answers) - 1) + [other.generation]
    assert len(answers) >= 4
    assert equal(other)


def test_after_a_swap_nothing_of_the_old_generation_is_left(say, drain, nilou, indexes, embedder, found, zone):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    sync.rebuild(nilou, embedder.generation, indexes)
    found("記憶")
    other = RecordingEmbedder(96, "other")
    sync.prepare(nilou, other, [other.generation, embedder.generation])
    after = 0
    while not (done := sync.re_embed(nilou, other, indexes, zone=zone, after=after)).swapped:
        after = done.after
    while sync.drop_unused(nilou, [other.generation], indexes):
        pass
    assert indexes.get(nilou.database, embedder.generation) is None
    with nilou.database.read() as connection:
        assert stored_vectors.counts(connection) == {other.generation: 5}
    assert sync.save(nilou, other.generation, indexes)
    assert '"generation": "other:96:plain"' in (nilou.database.path.parent / "vector_store" / "manifest.json").read_text()


def test_what_returns_from_the_trash_during_a_change_of_models_is_not_left_out(say, drain, nilou, indexes, embedder, zone, now, equal):
    keys = [say(f"記憶{number}").key for number in range(5)]
    drain()
    forget(nilou, keys[:1], reason=None, dry_run=False, now=now, privacy=Privacy())
    drain()
    other = RecordingEmbedder(96, "other")
    done = sync.re_embed(nilou, other, indexes, zone=zone)
    revise(nilou, keys[0], Revision(restore=True), now=now, privacy=Privacy())
    drain()
    while not (done := sync.re_embed(nilou, other, indexes, zone=zone, after=done.after)).swapped:
        pass
    assert lag(nilou, other.generation) == 0
    assert equal(other)


def test_a_generation_that_no_loaded_model_made_gives_way_at_once(say, drain, nilou, embedder, found):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    other = RecordingEmbedder(96, "other")
    assert sync.prepare(nilou, other, [other.generation]) == other.generation
    assert waiting(nilou) == 5
    drain(other)
    assert len(found("記憶", other)) == 5


def test_a_generation_without_a_vector_gives_way_at_once(say, nilou, embedder):
    other = RecordingEmbedder(96, "other")
    assert sync.prepare(nilou, embedder, [embedder.generation]) == embedder.generation
    say("京都")
    assert sync.prepare(nilou, other, [other.generation, embedder.generation]) == other.generation


def test_a_model_that_does_not_answer_is_not_given_the_queue(say, drain, apply, nilou):
    say("京都")
    drain()
    with pytest.raises(ValueError, match="prepare"):
        apply(RecordingEmbedder(96, "other"))


def test_looking_over_finds_what_the_list_lost(say, drain, nilou, embedder, equal):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    nilou.database.write(lambda connection: connection.execute("DELETE FROM vectors WHERE chunk IN (2, 4)"))
    sync.prepare(nilou, embedder, [embedder.generation])
    assert waiting(nilou) == 2
    drain()
    assert lag(nilou, embedder.generation) == 0


def test_looking_over_what_is_complete_writes_nothing(say, drain, nilou, embedder):
    say("京都")
    drain()
    before = nilou.database.size_bytes()
    sync.prepare(nilou, embedder, [embedder.generation])
    assert nilou.database.size_bytes() == before


def test_a_rebuild_is_saved_and_goes_to_the_readers_of_an_open_index(say, drain, nilou, embedder, indexes, equal):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    assert sync.needs_rebuild(nilou, embedder.generation, indexes)
    index = indexes.get(nilou.database, embedder.generation)
    index.remove([1])
    assert compare(nilou, embedder.generation, indexes) == Differences(missing=(1,))
    rebuilt = sync.rebuild(nilou, embedder.generation, indexes)
    assert indexes.get(nilou.database, embedder.generation) is rebuilt
    assert equal()
    assert not sync.needs_rebuild(nilou, embedder.generation, IndexCache())


def test_a_file_that_lacks_a_change_needs_a_rebuild(say, drain, nilou, embedder, indexes):
    say("京都")
    drain()
    sync.rebuild(nilou, embedder.generation, indexes)
    assert not sync.needs_rebuild(nilou, embedder.generation, indexes)
    say("苺")
    drain()
    assert sync.needs_rebuild(nilou, embedder.generation, indexes)


def test_an_open_index_that_followed_every_change_is_saved_as_current(say, drain, nilou, embedder, indexes):
    say("京都")
    drain()
    indexes.get(nilou.database, embedder.generation)
    say("苺")
    drain()
    assert sync.save(nilou, embedder.generation, indexes)
    assert not sync.save(nilou, embedder.generation, indexes)
    assert not sync.needs_rebuild(nilou, embedder.generation, IndexCache())


def test_an_index_is_compared_by_every_id_and_every_vector(say, drain, nilou, embedder, indexes):
    for number in range(5):
        say(f"記憶{number}")
    drain()
    index = indexes.get(nilou.database, embedder.generation)
    index.remove([2, 3])
    index.add([3, 99], np.eye(2, 64, dtype=np.float32))
    assert compare(nilou, embedder.generation, indexes) == Differences(missing=(2,), surplus=(99,), unequal=(3,))


def test_more_than_a_page_of_vectors_is_indexed_completely(nilou, embedder, indexes, monkeypatch, say, drain):
    monkeypatch.setattr(stored_vectors, "PAGE", 7)
    for number in range(30):
        say(f"記憶{number}")
    drain()
    assert indexes.get(nilou.database, embedder.generation).count == 30
