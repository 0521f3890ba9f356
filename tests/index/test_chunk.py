"""Splitting long memories for embedding."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.domain import Chunk
from memory_mcp.language.sentences import CHUNK_CHARACTERS, split

PROSE = st.text(alphabet=st.sampled_from("あい漢 a.。！\n」"), max_size=400)


def test_a_short_memory_is_one_piece():
    assert split("ニィロウは踊りが好き。") == [Chunk(0, 11)]
    assert split("x" * CHUNK_CHARACTERS) == [Chunk(0, CHUNK_CHARACTERS)]


@given(PROSE, st.integers(min_value=8, max_value=100))
def test_no_character_is_in_no_piece_and_no_piece_is_longer_than_the_limit(text, limit):
    chunks = split(text, limit, limit // 4)
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    assert all(following.start <= chunk.end for chunk, following in itertools.pairwise(chunks))
    assert all(chunk.end - chunk.start <= limit for chunk in chunks)


@given(PROSE, st.integers(min_value=8, max_value=100))
def test_every_piece_goes_further_than_the_one_before(text, limit):
    chunks = split(text, limit, limit // 4)
    for chunk, following in itertools.pairwise(chunks):
        assert following.start > chunk.start
        assert following.end > chunk.end
        assert chunk.end - following.start <= limit // 4


def test_a_piece_ends_where_a_sentence_ends():
    sentence = "今日は京都でとても長い散歩をした。"
    text = sentence * 10
    chunks = split(text, 100, 0)
    assert len(chunks) > 1
    assert all(text[chunk.start : chunk.end].endswith("。") for chunk in chunks)


def test_pieces_overlap_by_whole_sentences():
    text = "".join(f"Sentence number {number}. " for number in range(30))
    chunks = split(text, 200, 50)
    for chunk, following in itertools.pairwise(chunks):
        shared = text[following.start : chunk.end]
        assert shared.startswith("Sentence number")
        assert shared.rstrip().endswith(".")


def test_text_without_any_sentence_end_is_cut_at_the_limit():
    assert split("あ" * 250, 100, 20) == [Chunk(0, 100), Chunk(100, 200), Chunk(200, 250)]


def test_a_closing_bracket_stays_with_its_sentence():
    text = "「" + "あ" * 60 + "。」" + "い" * 60
    assert split(text, 100, 0)[0] == Chunk(0, 63)
