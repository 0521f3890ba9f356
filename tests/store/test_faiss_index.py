"""The index itself: what it finds, what it forgets, and what comes back from its file."""

import hashlib
import io
import itertools
import threading

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.store.vectors.faiss_index import SAMPLE, VectorIndex
from memory_mcp.store.vectors.nearness import POINT_WEIGHT, apart, cosines_apart

GENERATION = "model:8"


def vectors(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture
def index():
    """Chunks 1 to 20."""
    made = VectorIndex(GENERATION)
    made.add(range(1, 21), vectors(20))
    return made


def test_the_nearest_come_first_with_their_cosines(index):
    own = vectors(20)
    found = index.search(own[4], 3)
    cosines = own @ own[4]
    assert [chunk for chunk, _ in found] == [int(place) + 1 for place in np.argsort(-cosines)[:3]]
    assert found[0] == (5, pytest.approx(1.0, abs=1e-6))
    assert [cosine for _, cosine in found] == pytest.approx(sorted(cosines, reverse=True)[:3], abs=1e-6)


def test_vectors_of_any_length_give_cosines():
    index = VectorIndex(GENERATION)
    index.add([1, 2], np.array([[3, 0], [0, 0.1]], np.float32))
    assert dict(index.search(np.array([5, 5], np.float32), 2)) == {1: pytest.approx(0.7071, abs=1e-4), 2: pytest.approx(0.7071, abs=1e-4)}


def test_more_than_there_are_can_be_asked_for(index):
    assert len(index.search(vectors(1)[0], 1_000)) == 20


def test_an_empty_index_finds_nothing():
    index = VectorIndex(GENERATION)
    assert index.search(vectors(1)[0], 5) == []
    assert index.scores(vectors(1)[0], [1, 2]) == {}
    assert index.remove([1]) == 0
    index.add([], np.empty((0, 0), np.float32))
    assert (index.count, index.dimension, index.ids().tolist()) == (0, 0, [])


def test_a_search_can_be_kept_to_some_chunks(index):
    assert {chunk for chunk, _ in index.search(vectors(1)[0], 5, among=[3, 7, 99])} == {3, 7}
    assert index.search(vectors(1)[0], 5, among=[]) == []


def test_what_was_removed_is_not_found_and_the_rest_keeps_its_vectors(index):
    own = vectors(20)
    assert index.remove([1, 5, 5, 20, 99]) == 3
    assert index.count == 17
    assert not {1, 5, 20} & {chunk for chunk, _ in index.search(own[4], 20)}
    for chunk in index.ids().tolist():
        assert index.search(own[chunk - 1], 1)[0] == (chunk, pytest.approx(1.0, abs=1e-6))


def test_a_chunk_that_is_there_already_stays_as_it_is(index):
    index.add([20, 21], vectors(2, seed=9))
    assert index.count == 21
    assert index.scores(vectors(20)[19], [20])[20] == pytest.approx(1.0, abs=1e-6)
    assert index.scores(vectors(2, seed=9)[1], [21])[21] == pytest.approx(1.0, abs=1e-6)


def test_scores_are_those_of_search_and_leave_out_what_is_unknown(index):
    query = vectors(1, seed=3)[0]
    found = dict(index.search(query, 20))
    scored = index.scores(query * 4, [2, 99, 11])
    assert scored == {2: pytest.approx(found[2], abs=1e-6), 11: pytest.approx(found[11], abs=1e-6)}


def test_vectors_come_back_by_chunk_in_the_order_asked_for(index):
    index.remove([1, 2])
    known, own = index.reconstruct([9, 1, 4, 9])
    assert known == [9, 4]
    assert own == pytest.approx(vectors(20)[[8, 3]], abs=1e-6)


def test_vectors_of_another_length_are_refused(index):
    with pytest.raises(ValueError, match="length 9"):
        index.add([30], vectors(1, 9))
    assert index.count == 20


def test_only_a_real_change_makes_it_dirty(index):
    index.saved_revision = index.revision
    index.add([1], vectors(1))
    index.remove([99])
    assert not index.dirty
    index.remove([1])
    assert index.dirty


def test_what_was_written_comes_back(index):
    index.remove([3])
    file = io.BytesIO()
    revision, digest, count = index.write_to(file)
    assert (revision, count, digest) == (index.revision, 19, hashlib.sha256(file.getvalue()).hexdigest())
    file.seek(0)
    again = VectorIndex.read_from(file, GENERATION, change=7)
    assert (again.ids().tolist(), again.change, again.dirty) == (index.ids().tolist(), 7, False)
    assert again.search(vectors(20)[6], 5) == index.search(vectors(20)[6], 5)
    again.add([50], vectors(1, seed=5))
    again.remove([1])
    assert again.search(vectors(1, seed=5)[0], 1)[0][0] == 50


def test_an_empty_index_can_be_written_and_read():
    file = io.BytesIO()
    VectorIndex(GENERATION).write_to(file)
    file.seek(0)
    again = VectorIndex.read_from(file, GENERATION, change=0)
    again.add([1], vectors(1))
    assert again.count == 1


def test_the_file_is_an_index_that_faiss_itself_can_read(index, tmp_path):
    path = tmp_path / "index.faiss"
    with path.open("wb") as file:
        index.write_to(file)
    assert faiss.read_index(str(path)).ntotal == 20


@pytest.mark.parametrize("other", [faiss.IndexFlatIP(8), faiss.IndexIDMap2(faiss.IndexFlatL2(8)), faiss.IndexIDMap(faiss.IndexFlatIP(8))])
def test_another_kind_of_index_is_refused(other):
    with pytest.raises(ValueError, match="another kind"):
        VectorIndex.read_from(io.BytesIO(faiss.serialize_index(other).tobytes()), GENERATION, 0)


@pytest.mark.parametrize("content", [b"", b"IxM2", b"nothing of the kind" * 100])
def test_what_is_no_index_is_refused(content):
    with pytest.raises(ValueError, match="can't read"):
        VectorIndex.read_from(io.BytesIO(content), GENERATION, 0)


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(1, 30), max_size=8)), max_size=20))
def test_it_holds_what_was_added_and_not_removed_whatever_the_order(steps):
    index, held, own = VectorIndex(GENERATION), set(), vectors(30)
    for adding, chunks in steps:
        if adding:
            index.add(sorted(chunks), own[[chunk - 1 for chunk in sorted(chunks)]])
            held |= chunks
        else:
            index.remove(chunks)
            held -= chunks
    assert set(index.ids().tolist()) == held
    for chunk in held:
        assert index.scores(own[chunk - 1], [chunk])[chunk] == pytest.approx(1.0, abs=1e-5)


def test_searches_beside_changes_see_whole_states():
    own = vectors(2_000, 16)
    index = VectorIndex(GENERATION)
    index.add(range(1_000), own[:1_000])
    failures, done = [], threading.Event()

    def search() -> None:
        while not done.is_set():
            found = index.search(own[7], 5)
            if found[0][0] != 7 or len(found) != 5:
                failures.append(found)

    readers = [threading.Thread(target=search) for _ in range(4)]
    for reader in readers:
        reader.start()
    for start, _ in itertools.product(range(1_000, 2_000, 100), range(3)):
        index.add(range(start, start + 100), own[start : start + 100])
        index.remove(range(start, start + 100))
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert index.ids().tolist() == list(range(1_000))


@pytest.fixture
def points():
    """Two points of opposite directions."""
    point = vectors(1, seed=3)[0]
    return np.stack([point, -point])


def means(own: np.ndarray, points: np.ndarray) -> np.ndarray:
    """For each point the mean of those nearer to it than to the other and of `POINT_WEIGHT` times itself."""
    near = own @ points[0] > 0
    sides = own[near], own[~near]
    return np.stack(
        [(side.sum(axis=0) + POINT_WEIGHT * point) / (len(side) + POINT_WEIGHT) for side, point in zip(sides, points, strict=True)]
    )


def test_the_means_near_points_are_those_of_what_is_nearest_to_each(index, points):
    assert index.means_near(points) == pytest.approx(means(vectors(20), points), abs=1e-6)


def test_means_are_computed_anew_once_the_index_has_grown(index, points):
    index.means_near(points)
    more = vectors(900, seed=1)
    index.add(range(101, 1001), more)
    index.remove(range(1, 21))
    assert index.means_near(points) == pytest.approx(means(more, points), abs=1e-6)


def test_the_means_of_many_come_from_a_sample(points):
    many = VectorIndex(GENERATION)
    many.add(range(SAMPLE * 4), vectors(SAMPLE * 4, seed=2))
    assert many.means_near(points) == pytest.approx(means(vectors(SAMPLE * 4, seed=2), points), abs=0.03)


def test_an_empty_index_has_the_points_themselves(points):
    assert VectorIndex(GENERATION).means_near(points) == pytest.approx(points, abs=1e-6)


def test_no_vectors_are_compared_with_centers_of_any_length(points):
    none = VectorIndex(GENERATION).reconstruct([1])[1]
    assert len(none) == len(apart(none, points)) == len(cosines_apart(0.4, none, points, (True, True))) == 0
