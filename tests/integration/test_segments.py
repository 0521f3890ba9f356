"""The lexical index's segments: each write leaves one. What the background makes of them changes no answer."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Filters
from memory_mcp.remember.forget import forget
from memory_mcp.store import lexical
from memory_mcp.text.tokens import query_tokens

QUERIES = ("本", "7冊目", "海の話", "31冊目の本")


@pytest.fixture
def segments(nilou):
    """segments(): how many pages each segment of the index has, by its number."""

    def count():
        with nilou.database.read() as connection:
            return dict(connection.execute("SELECT segid, count(*) FROM lexical_idx GROUP BY segid"))

    return count


@pytest.fixture
def scored(nilou):
    """scored(): what some queries find, with the scores."""

    def search():
        with nilou.database.read() as connection:
            return [lexical.search(connection, query_tokens(query), Filters(), 100) for query in QUERIES]

    return search


@pytest.fixture
def merge(nilou):
    """merge(): merges to the end, as the background does. How many pieces it took."""

    def merge():
        for pieces in range(1, 100):
            if not nilou.database.write(lexical.merge_alike):
                return pieces
        pytest.fail("there was no end to it")

    return merge


def test_what_single_writes_left_is_put_together_and_finds_the_same(say, nilou, now, segments, scored, merge):
    keys = [say(f"{number}冊目の本には海の話が書いてあった").key for number in range(60)]
    forget(nilou, keys[::7], reason=None, dry_run=False, now=now, privacy=Privacy())
    found, pieces = scored(), len(segments())
    merge()
    assert len(segments()) < pieces / 2
    assert scored() == found
    nilou.database.write(lambda connection: connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')"))


def test_where_nothing_is_to_be_put_together_nothing_is_written(say, nilou, merge):
    def structure():
        with nilou.database.read() as connection:
            return connection.execute("SELECT block FROM lexical_data WHERE id = 10").get

    say("苺が好き")
    merge()
    before = structure()
    assert merge() == 1
    assert structure() == before


def test_what_is_large_is_rarely_written_anew(say, segments, merge):
    say(" ".join(f"{number}番の本" for number in range(4_000)))
    merge()
    largest = []
    for conversation in range(24):
        for number in range(4):
            say(f"{conversation}日目の{number}匹目の猫")
        merge()
        assert len(segments()) <= 6
        largest.append(max(segments(), key=segments().__getitem__))
    assert len(set(largest)) <= 4
