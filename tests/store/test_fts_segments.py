"""The lexical index's segments: each write leaves one. What the background makes of them changes no answer."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Filters
from memory_mcp.errors import StoreError
from memory_mcp.language.tokens import query_tokens
from memory_mcp.remember.forget import forget
from memory_mcp.store import erasure
from memory_mcp.store.lexical import bm25_index
from memory_mcp.upkeep import fts_segments

QUERIES = ("本", "7冊目", "海の話", "31冊目の本")


@pytest.fixture
def pages(nilou):
    """pages(): how many pages each segment of the index has, by its number."""

    def count():
        with nilou.database.read() as connection:
            return dict(connection.execute("SELECT segid, count(*) FROM lexical_idx GROUP BY segid"))

    return count


@pytest.fixture
def scatter(say, pages):
    """scatter(): writes until there are more segments than few. How many a write leaves is FTS5's to say."""

    def scatter():
        for number in range(100):
            if len(pages()) > bm25_index.FEW_SEGMENTS:
                return
            say(f"{number}杯目のお茶")
        pytest.fail("FTS5 keeps few by itself")

    return scatter


@pytest.fixture
def scored(nilou):
    """scored(): what some queries find, with the scores."""

    def search():
        with nilou.database.read() as connection:
            return [bm25_index.search(connection, bm25_index.Terms(query_tokens(query)), Filters(), 100) for query in QUERIES]

    return search


@pytest.fixture
def put_together(nilou):
    """put_together(): does to the end what the background does."""

    def put_together():
        for _ in range(100):
            if not fts_segments.step(nilou):
                return
        pytest.fail("there was no end to it")

    return put_together


def test_what_single_writes_left_is_put_together_and_finds_the_same(say, nilou, now, scatter, pages, scored, put_together):
    keys = [say(f"{number}冊目の本には海の話が書いてあった").key for number in range(60)]
    forget(nilou, keys[::7], reason=None, dry_run=False, now=now, privacy=Privacy())
    scatter()
    found = scored()
    put_together()
    assert len(pages()) <= bm25_index.FEW_SEGMENTS
    assert scored() == found
    nilou.database.write(lambda connection: connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')"))


def test_where_there_are_few_nothing_is_written(say, nilou, monkeypatch):
    say("苺が好き")
    say("桃も好き")
    monkeypatch.setattr(nilou.database, "write", lambda _: pytest.fail("it was written to"))
    assert not fts_segments.step(nilou)


def test_what_a_small_import_left_is_put_into_one_and_finds_the_same(nilou, pages, scored, put_together):
    for batch in range(2):
        rows = [(f"本 {batch}{number} 冊目 海 話 " + " ".join(f"語{number}{other}" for other in range(20)),) for number in range(400)]
        nilou.database.write(lambda connection, rows=rows: connection.executemany("INSERT INTO lexical(body) VALUES (?)", rows))
    assert 1 < len(pages()) <= bm25_index.FEW_SEGMENTS
    found = scored()
    put_together()
    assert len(pages()) == 1
    assert scored() == found


def test_what_can_not_be_written_to_is_left_as_it_is(scatter, nilou, monkeypatch):
    scatter()
    monkeypatch.setattr(nilou.database, "unwritable", StoreError("it is read-only"))
    assert not fts_segments.step(nilou)


def test_what_is_large_is_rarely_written_anew(say, nilou, pages, put_together):
    for start in range(0, 4_000, 500):
        say(" ".join(f"{number}番の本" for number in range(start, start + 500)))
    put_together()
    written = 0
    for conversation in range(24):
        for number in range(4):
            say(f"{conversation}日目の{number}匹目の猫")
        before = pages()
        put_together()
        written += sum(count for number, count in pages().items() if before.get(number) != count)
        assert len(pages()) <= bm25_index.FEW_SEGMENTS
    assert written < 24 * max(pages().values()) / 4


def test_what_is_swept_comes_to_an_end_although_others_write(say, nilou, monkeypatch):
    for number in range(20):
        say(f"{number}冊目の本")
    write, pieces = nilou.database.write, []

    def written_between(work):
        pieces.append(work)
        assert len(pieces) < 50
        for number in range(2):
            write(lambda connection, n=number: connection.execute("INSERT INTO lexical(body) VALUES (?)", (f"{len(pieces)} {n}",)))
        return write(work)

    monkeypatch.setattr(nilou.database, "write", written_between)
    assert erasure.sweep_file(nilou.database)
