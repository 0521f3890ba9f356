"""Long memories in pieces of the model's own tokens: one memory, many vectors, in each generation its own."""

import itertools
import json
from collections import Counter

import pytest
from fakes import HashingEmbedder
from index_comparison import compare, lag

from memory_mcp.config.settings import LongTexts, Privacy
from memory_mcp.domain import Chunk
from memory_mcp.encoders.languages import limited
from memory_mcp.errors import EncoderFailed
from memory_mcp.index import splitting, sync
from memory_mcp.language.budget import estimate_tokens, estimated_spans
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.store.vectors import chunks, index_queue, stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.transfer.jsonlines import ExportOptions, export_lines

RULES = LongTexts(chunk_tokens=100, overlap_tokens=20)
LABEL = "[2025-10-30] "
DIARY = "".join(f"{number}日目、今日は京都の{number}番目の寺を訪ねて、夕飯に蕎麦を食べた。" for number in range(40))


class CountingEmbedder(HashingEmbedder):
    """Keeps the texts that it embeds and the ones whose tokens it is asked for."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.texts, self.tokenized = [], []

    def embed_documents(self, texts):
        vectors = super().embed_documents(texts)
        self.texts += texts
        return vectors

    def token_spans(self, text):
        self.tokenized.append(text)
        return super().token_spans(text)


@pytest.fixture
def embedder():
    return CountingEmbedder()


@pytest.fixture
def indexes():
    return IndexCache()


@pytest.fixture
def drain(nilou, indexes, zone):
    def drain(by, rules=RULES):
        while sync.apply_queue(nilou, by, indexes, zone=zone, rules=rules).waiting:
            pass

    return drain


@pytest.fixture
def pieces(nilou):
    """The pieces of the first memory in the embedder's generation, and whether each has a vector and nothing else has."""

    def pieces(embedder):
        with nilou.database.read() as connection:
            found = chunks.in_generation(connection, 1, embedder.generation)
            vectors, _ = stored_vectors.of_memories(connection, embedder.generation, [1])
        assert len(vectors) == len(found)
        return found

    return pieces


@pytest.fixture
def equal(nilou, indexes):
    def equal(embedder):
        return not compare(nilou, embedder.generation, indexes) and not compare(nilou, embedder.generation, IndexCache())

    return equal


def test_a_long_memory_is_split_by_the_models_tokens_at_the_ends_of_sentences(say, drain, pieces, embedder, equal):
    say(DIARY)
    drain(embedder)
    found = pieces(embedder)
    texts = [DIARY[piece.start : piece.end] for piece in found]
    assert embedder.texts == [LABEL + text for text in texts]
    assert all(text.endswith("。") and len(text) <= 100 for text in texts)
    assert (found[0].start, found[-1].end) == (0, len(DIARY))
    assert all(0 < first.end - second.start <= 20 for first, second in itertools.pairwise(found)) or len(texts[0]) > 80
    assert equal(embedder)


@pytest.mark.slow
def test_however_many_long_memories_wait_each_is_split_a_few_times(say, drain, embedder):
    texts = [f"{number}冊目。{DIARY}" for number in range(30)]
    for text in texts:
        say(text)
    drain(embedder)
    counted = Counter(embedder.tokenized)
    assert sum(counted[text] for text in texts) <= 3 * len(texts)


def test_a_short_memory_is_neither_split_nor_looked_at(say, drain, embedder, nilou):
    for number in range(20):
        say(f"{number}番目の短い記憶。京都で蕎麦を食べた。")
    drain(embedder)
    assert embedder.tokenized == []
    with nilou.database.read() as connection:
        assert len(chunks.of_memories(connection, range(1, 21))) == 20


@pytest.mark.parametrize("most", [40, 64, 90])
def test_no_piece_is_longer_than_the_model_reads(say, drain, nilou, most, embedder):
    embedder.max_tokens = most
    say(DIARY, source="ニィロウ")
    say("あ" * 500, source="ニィロウ")
    say("x", source="s" * 400)
    drain(embedder, LongTexts())
    assert max(len(text) for text in embedder.texts if "sss" not in text) <= most
    assert len(embedder.texts) > 2 * len(DIARY) // most


def test_a_piece_that_has_more_tokens_by_itself_is_made_smaller(embedder):
    class Merging(HashingEmbedder):
        """Where a text begins with a letter its first ten letters are ten tokens; elsewhere letters are one for two."""

        def token_spans(self, text):
            pairs = [(place, min(place + 2, len(text))) for place in range(10, len(text), 2)]
            return [*((place, place + 1) for place in range(min(10, len(text)))), *pairs]

    model = Merging(max_tokens=50)
    found = splitting.pieces("あ" * 1000, "", model, LongTexts(chunk_tokens=50, overlap_tokens=0))
    assert all(len(model.token_spans("あ" * (piece.end - piece.start))) <= 50 for piece in found)
    assert found[-1].end == 1000


def test_a_model_that_does_not_tell_its_tokens_is_served_by_an_estimate():
    assert [estimated_spans("東京tower。")[place] for place in (0, 1, 2, -1)] == [(0, 1), (1, 2), (2, 6), (7, 8)]
    text = "東京 tower は高い。 Really.\n" * 9
    assert len(estimated_spans(text)) >= estimate_tokens(text)
    assert estimated_spans(text)[-1][1] == len(text)


def test_an_embedder_whose_languages_were_set_counts_as_its_model_does(embedder):
    embedder.max_tokens = 77
    told = limited(embedder, ["ja"])
    assert (told.max_tokens, told.token_spans("猫だ")) == (77, [(0, 1), (1, 2)])


def test_another_rule_splits_again_and_keeps_the_vectors_of_pieces_that_stay(say, drain, pieces, nilou, embedder, indexes, equal):
    say(DIARY)
    for number in range(5):
        say(f"短い{number}")
    splitting.apply_rule(nilou, embedder, RULES)
    drain(embedder)
    indexes.get(nilou.database, embedder.generation)
    before, done = pieces(embedder), len(embedder.texts)
    wider = LongTexts(chunk_tokens=200, overlap_tokens=20)
    splitting.apply_rule(nilou, embedder, wider)
    drain(embedder, wider)
    after = pieces(embedder)
    assert len(after) < len(before)
    assert len(embedder.texts) == done + len(set(after) - set(before))
    assert equal(embedder)
    splitting.apply_rule(nilou, embedder, wider)
    with nilou.database.read() as connection:
        assert index_queue.length(connection) == 0


def test_pieces_that_stay_keep_their_vectors(say, nilou, embedder, drain, pieces, equal):
    say(DIARY)
    drain(embedder)
    first = pieces(embedder)
    with nilou.database.read() as connection:
        before, _ = stored_vectors.of_memories(connection, embedder.generation, [1])
    without_last = [*first[:-1], Chunk(first[-1].start, first[-1].end - 1)]
    lost = nilou.database.write(lambda connection: chunks.resplit(connection, 1, embedder.generation, without_last))
    assert lost == [int(before[-1])]
    with nilou.database.read() as connection:
        after, _ = stored_vectors.of_memories(connection, embedder.generation, [1])
    assert after.tolist() == before.tolist()[:-1]
    nilou.database.write(lambda connection: index_queue.enqueue(connection, [1]))
    drain(embedder)
    assert pieces(embedder) == first
    assert equal(embedder)


def test_what_was_written_before_there_was_such_a_rule_is_split_when_the_server_looks_over_it(say, drain, pieces, nilou, embedder, equal):
    say(DIARY)
    drain(embedder, LongTexts(chunk_tokens=100_000))
    assert pieces(embedder) == [Chunk(0, len(DIARY))]
    splitting.apply_rule(nilou, embedder, RULES)
    with nilou.database.read() as connection:
        assert list(index_queue.oldest(connection, 9)) == [1]
    drain(embedder)
    assert len(pieces(embedder)) > 9
    assert equal(embedder)


def test_a_text_that_fits_a_wider_piece_goes_back_to_one(say, drain, pieces, nilou, embedder, equal):
    say(DIARY)
    splitting.apply_rule(nilou, embedder, RULES)
    drain(embedder)
    assert len(pieces(embedder)) > 9
    wide = LongTexts(chunk_tokens=5_000)
    splitting.apply_rule(nilou, embedder, wide)
    drain(embedder, wide)
    assert pieces(embedder) == [Chunk(0, len(DIARY))]
    assert equal(embedder)


def test_a_revised_memory_is_split_anew_and_a_shortened_one_no_more(say, drain, pieces, nilou, embedder, equal, now):
    key = say(DIARY).key
    drain(embedder)
    revise(nilou, key, Revision(content=DIARY.replace("蕎麦", "うどん")), now=now, privacy=Privacy())
    drain(embedder)
    assert len(pieces(embedder)) > 9
    assert "うどん" in embedder.texts[-1]
    revise(nilou, key, Revision(content="短くなった。"), now=now, privacy=Privacy())
    drain(embedder)
    assert pieces(embedder) == [Chunk(0, 6)]
    assert equal(embedder)


def test_a_revision_that_comes_while_the_model_counts_is_not_overwritten(say, drain, pieces, nilou, embedder, equal, now, monkeypatch):
    key = say(DIARY).key
    count = embedder.token_spans

    def revised_meanwhile(text):
        monkeypatch.setattr(embedder, "token_spans", count)
        revise(nilou, key, Revision(content="短くなった。"), now=now, privacy=Privacy())
        return count(text)

    monkeypatch.setattr(embedder, "token_spans", revised_meanwhile)
    drain(embedder)
    assert pieces(embedder) == [Chunk(0, 6)]
    assert equal(embedder)


def test_a_model_that_fails_between_splitting_and_embedding_only_delays(say, drain, pieces, embedder, equal, nilou, indexes):
    say(DIARY)
    drain(embedder)
    indexes.get(nilou.database, embedder.generation)
    wider = LongTexts(chunk_tokens=200, overlap_tokens=0)
    splitting.apply_rule(nilou, embedder, wider)
    embedder.failing = True
    with pytest.raises(EncoderFailed):
        drain(embedder, wider)
    assert lag(nilou, embedder.generation) == 1
    embedder.failing = False
    drain(embedder, wider)
    assert lag(nilou, embedder.generation) == 0
    assert len(pieces(embedder)) < 12
    assert equal(embedder)


def test_another_model_has_its_own_pieces_while_the_earlier_one_answers_with_its(say, drain, pieces, nilou, embedder, indexes, zone, equal):
    for number in range(20):
        say(DIARY.replace("京都", f"京都{number}") if number % 2 == 0 else f"短い{number}")
    drain(embedder)
    old = pieces(embedder)
    other = CountingEmbedder(96, "other", max_tokens=60)
    assert sync.prepare(nilou, other, [other.generation, embedder.generation]) == embedder.generation
    splitting.apply_rule(nilou, other, RULES)
    after, new_seen = 0, 0
    while not (done := sync.re_embed(nilou, other, indexes, zone=zone, rules=RULES, after=after, batch=8)).swapped:
        after = done.after
        assert pieces(embedder) == old
        new_seen += done.embedded
    assert max(map(len, other.texts)) <= 60
    assert len(pieces(other)) > len(old)
    assert len(other.texts) == new_seen == len(set(other.texts))
    assert equal(other)
    while sync.drop_unused(nilou, [other.generation], indexes):
        pass
    with nilou.database.read() as connection:
        assert stored_vectors.generations(connection) == {other.generation}
        properties = dict(connection.execute("SELECT name, value FROM properties WHERE name LIKE 'split:%'"))
    assert list(properties) == [f"split:{other.generation}"]


def test_a_rule_that_changes_on_the_way_to_another_model_undoes_what_was_done_by_the_earlier_one(
    say, drain, pieces, nilou, embedder, indexes, zone, equal
):
    for number in range(6):
        say(DIARY + f"これで{number}冊目。")
    drain(embedder)
    other = CountingEmbedder(96, "other")
    sync.prepare(nilou, other, [other.generation, embedder.generation])
    splitting.apply_rule(nilou, other, RULES)
    done = sync.re_embed(nilou, other, indexes, zone=zone, rules=RULES)
    assert done.embedded
    narrow = LongTexts(chunk_tokens=50, overlap_tokens=5)
    splitting.apply_rule(nilou, other, narrow)
    after = 0
    while not (done := sync.re_embed(nilou, other, indexes, zone=zone, rules=narrow, after=after)).swapped:
        after = done.after
    assert max(piece.end - piece.start for piece in pieces(other)) <= 50
    assert equal(other)


def test_questions_keep_their_vectors_when_the_content_is_split_again(say, drain, nilou, embedder, equal):
    say(DIARY, questions=["どこを旅した？"])
    drain(embedder)
    done = embedder.texts.count("どこを旅した？")
    wider = LongTexts(chunk_tokens=200)
    splitting.apply_rule(nilou, embedder, wider)
    drain(embedder, wider)
    assert embedder.texts.count("どこを旅した？") == done == 1
    assert equal(embedder)


def test_an_export_says_nothing_of_pieces(say, drain, nilou, embedder):
    say(DIARY)
    before = list(export_lines(nilou, ExportOptions(deleted=True)))
    drain(embedder)
    after = list(export_lines(nilou, ExportOptions(deleted=True)))
    assert after == before
    assert json.loads(after[0])["content"] == DIARY
