"""What goes to a model in one call."""

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.encoders.pooled import batches_by_length


def test_texts_of_like_length_go_together_the_longest_first():
    texts = {"a": "1", "b": "1" * 50, "c": "11", "d": "1" * 49}
    assert list(batches_by_length(texts, 2)) == [["b", "d"], ["c", "a"]]


def test_a_long_text_stands_alone():
    texts = {"long": "x" * 900, "longer": "x" * 1_000, "short": "x"}
    assert list(batches_by_length(texts, 8, characters=1_000)) == [["longer"], ["long"], ["short"]]


@given(st.lists(st.integers(0, 500), max_size=40), st.integers(1, 9))
def test_every_text_is_in_one_batch_and_none_costs_too_much(lengths: list[int], size: int):
    texts = {number: "x" * length for number, length in enumerate(lengths)}
    batches = list(batches_by_length(texts, size, characters=1_000))
    assert sorted(number for batch in batches for number in batch) == list(texts)
    for batch in batches:
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * max(len(texts[number]) for number in batch) <= 1_000
