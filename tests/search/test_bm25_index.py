"""The lexical index on real FTS5: what Japanese and other queries find, and the neighbours beside each memory."""

from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Filters
from memory_mcp.language.tokens import query_tokens, tokens
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index, stored_words
from memory_mcp.store.lexical.stored_words import TokenCounts


@pytest.fixture
def row(nilou):
    """The row of a memory as (body, previous, next), or None."""

    def read(key):
        with nilou.database.read() as connection:
            memory_id = memories.by_keys(connection, [key])[key].id
            return connection.execute("SELECT body, previous, next FROM lexical WHERE rowid = ?", (memory_id,)).get

    return read


@pytest.fixture
def found(nilou):
    """The contents that a query finds by words, best first."""

    def search(query, filters=Filters(), limit=10):  # noqa: B008  frozen
        with nilou.database.read() as connection:
            ids = [memory_id for memory_id, _ in bm25_index.search(connection, bm25_index.Terms(query_tokens(query)), filters, limit)]
            stored = memories.by_ids(connection, ids)
            return [stored[memory_id].content for memory_id in ids]

    return search


@pytest.fixture
def turns(say, now):
    """Three turns of one session, an hour apart; their keys."""
    contents = ["好きな果物は何？", "うん、苺が好き", "私も大好き"]
    return [say(content, at=now + timedelta(hours=hour), session_id="s1").key for hour, content in enumerate(contents)]


def body(text):
    return " ".join(tokens(text))


@pytest.mark.parametrize(
    "query",
    [
        "苺",
        "夕飯",
        "京都",
        "ｶﾚｰ",
        "カレー",
        "ＰＹＴＨＯＮ",
        "Pythonの本",
        "python 本",
        "walk",
        "Walked",
        "2025",
        "２０２５",
        "🎉",
        "café",
        "夕飯は何だった？",
    ],
)
def test_a_query_finds_the_memory_that_has_its_words(say, found, query):
    content = "2025年、京都でＰｙｔｈｏｎの本を買い、夕飯にカレーと苺を食べた。walking to the café 🎉"
    say(content)
    say("別の事")
    assert found(query) == [content]


@pytest.mark.parametrize("query", ["大阪", "ラーメン", "golang", "犬"])
def test_a_query_without_a_shared_word_finds_nothing(say, found, query):
    say("京都でカレーを食べた。Python is fun")
    assert found(query) == []


def test_a_memory_that_shares_more_words_is_the_better_one(say, found):
    say("京都へ行った")
    say("京都でカレーを食べた")
    assert found("京都のカレー") == ["京都でカレーを食べた", "京都へ行った"]


def test_who_said_it_and_the_questions_that_it_answers_are_found_too(say, found):
    say("月曜日", source="コレイ", questions=["休みの日はいつ？"])
    assert found("コレイ") == found("休み") == ["月曜日"]


def test_the_questions_that_a_memory_answers_find_only_that_memory_and_not_its_neighbours(say, found):
    say("京都", session_id="s")
    say("月曜日", session_id="s", questions=["休みの日はいつ？"])
    say("奈良", session_id="s")
    assert found("休み") == ["月曜日"]
    assert set(found("月曜日")) == {"京都", "月曜日", "奈良"}


def test_what_a_memory_says_counts_more_than_the_questions_that_another_one_answers(say, found):
    say("健太の好きな果物は苺だと、きのう駅前で聞いた")
    say("月曜日", questions=["健太の好きな果物は？"])
    assert found("健太の好きな果物") == ["健太の好きな果物は苺だと、きのう駅前で聞いた", "月曜日"]


@pytest.mark.parametrize("query", ['"', "a OR b", "NEAR(", "body:京都", "京都*", "-京都", "^京都 AND", "'"])
def test_a_query_is_never_a_query_language(say, found, query):
    say("京都 near the body")
    found(query)
    assert found("京都 " + query) == ["京都 near the body"]


def test_filters_hold_in_the_index_search(say, found):
    say("京都の寺", tags=["旅"], importance=0.9)
    say("京都の店", tags=["食"], importance=0.1)
    assert found("京都", Filters(tags=("旅",))) == ["京都の寺"]
    assert found("京都", Filters(min_importance=0.5)) == ["京都の寺"]
    assert found("京都", limit=1) == ["京都の店"] or found("京都", limit=1) == ["京都の寺"]


def test_what_is_asked_for_beside_the_best_is_scored_on_their_scale_if_it_matches(say, nilou):
    keys = [say(content).key for content in ("京都の寺", "京都", "東京", "京都と奈良の店")]
    with nilou.database.read() as connection:
        ids = [memory.id for memory in memories.by_keys(connection, keys).values()]
        everything = bm25_index.search(connection, bm25_index.Terms(["京都"]), Filters(), 10)
        assert len(everything) == 3
        best, *others = bm25_index.search(connection, bm25_index.Terms(["京都"]), Filters(), 1, ids)
        assert best == everything[0]
        assert sorted(others) == sorted(everything[1:])
        assert bm25_index.search(connection, bm25_index.Terms(["京都"]), Filters(tags=("旅",)), 1, ()) == []
        assert bm25_index.search(connection, bm25_index.Terms([]), Filters(), 10, ids) == []


def test_a_turn_is_found_by_the_one_before_it_with_less_weight(turns, found):
    assert found("果物") == ["好きな果物は何？", "うん、苺が好き"]


def test_a_single_write_fills_its_neighbours_sides(turns, row):
    first, second, third = turns
    assert row(first) == (body("好きな果物は何？"), "", body("うん、苺が好き"))
    assert row(second) == (body("うん、苺が好き"), body("好きな果物は何？"), body("私も大好き"))
    assert row(third) == (body("私も大好き"), body("うん、苺が好き"), "")


def test_a_turn_that_is_told_later_goes_where_it_happened(turns, say, row):
    between = say("えっとね", session_id="s1", occurred_at="2025-10-30T12:30").key
    assert row(between) == (body("えっとね"), body("好きな果物は何？"), body("うん、苺が好き"))
    assert row(turns[0])[2] == row(turns[1])[1] == body("えっとね")


def test_memories_of_other_sessions_or_of_none_are_no_neighbours(turns, say, row, now):
    other = say("別の話", at=now + timedelta(minutes=30), session_id="s2").key
    alone = say("独り言", at=now + timedelta(minutes=31)).key
    assert row(other)[1:] == row(alone)[1:] == ("", "")
    assert row(turns[0])[2] == body("うん、苺が好き")


def test_forgetting_closes_the_gap_and_restoring_opens_it_again(turns, nilou, row, now):
    first, second, third = turns
    before = [row(key) for key in turns]
    forget(nilou, [second], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert row(second) is None
    assert row(first)[2] == body("私も大好き")
    assert row(third)[1] == body("好きな果物は何？")
    revise(nilou, second, Revision(restore=True), now=now, privacy=Privacy())
    assert [row(key) for key in turns] == before


def test_forgetting_neighbours_together_leaves_no_trace_of_them(turns, nilou, row, now):
    forget(nilou, turns[:2], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert row(turns[2]) == (body("私も大好き"), "", "")


def test_a_changed_content_changes_what_its_neighbours_know(turns, nilou, row, now):
    revise(nilou, turns[1], Revision(content="いや、林檎が好き"), now=now, privacy=Privacy())
    assert row(turns[0])[2] == row(turns[2])[1] == row(turns[1])[0] == body("いや、林檎が好き")


def test_a_bulk_write_makes_the_rows_that_single_writes_make(turns, personas, row, now, zone):
    drafts = [
        draft(content, now=now, zone=zone, session_id="s1", occurred_at=f"2025-10-30T{12 + hour}:00")
        for hour, content in reversed(list(enumerate(["好きな果物は何？", "うん、苺が好き", "私も大好き"])))
    ]
    with personas.writing("collei") as collei:
        outcomes = remember_many(collei, drafts, now=now, zone=zone, privacy=Privacy())
        with collei.database.read() as connection:
            rows = connection.execute("SELECT body, previous, next FROM lexical ORDER BY rowid DESC").fetchall()
    assert [outcome.outcome for outcome in outcomes] == ["stored"] * 3
    assert rows == [row(key) for key in turns]


def test_an_index_of_another_version_is_built_anew_when_the_persona_is_opened(data_directory, now, zone, monkeypatch):
    first = Personas(data_directory)
    with first.writing("nilou") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        persona.database.write(lambda connection: connection.execute("UPDATE lexical SET body = 'stale'"))
        persona.database.write(lambda connection: connection.execute("UPDATE properties SET value = 'old' WHERE name = 'lexical_version'"))
    first.close()
    monkeypatch.setattr(bm25_index, "REBUILD_PAGE", 1)
    second = Personas(data_directory)
    with second.writing("nilou") as persona, persona.database.read() as connection:
        assert connection.execute("SELECT body FROM lexical").fetchall() == [(body("京都"),)]
        assert connection.execute("SELECT value FROM properties WHERE name = 'lexical_version'").get == bm25_index.ROWS_VERSION
    second.close()


@pytest.fixture
def large(monkeypatch):
    """From five rows on a store is large; so many rows are enough to lead; what stands in more than half of them is common."""

    def make(leading_rows, share=0.5, sampled_part=1):
        monkeypatch.setattr(bm25_index, "MANY_ROWS", 5)
        monkeypatch.setattr(bm25_index, "LEADING_ROWS", leading_rows)
        monkeypatch.setattr(stored_words, "COUNTED_ROWS", leading_rows)
        monkeypatch.setattr(stored_words, "SAMPLED_PART", sampled_part)
        monkeypatch.setattr(stored_words, "COMMON_SHARE", share)
        monkeypatch.setattr(stored_words, "COMMON_KANJI_SHARE", share)

    return make


def test_in_a_large_store_a_common_kanji_is_left_out_beside_its_pairs(say, found, large):
    for number in range(8):
        say(f"日記 その{number}")
    say("日本の夕日")
    assert len(found("日本")) == 9
    large(leading_rows=2)
    assert found("日本", limit=1) == ["日本の夕日"]
    assert len(found("日")) == 9  # a query of nothing else keeps it


def test_in_a_large_store_a_common_word_is_left_out_beside_a_rare_one(say, found, large):
    for number in range(8):
        say(f"diary entry {number}")
    say("a dragon")
    large(leading_rows=2)
    assert found("dragon diary", limit=1) == ["a dragon"]
    assert len(found("diary")) == 8  # a query of nothing else keeps it


def test_in_a_large_store_what_is_common_is_looked_for_where_the_rest_finds_too_little(say, found, large):
    for number in range(8):
        say(f"diary entry {number}", tags=["private"] if number % 2 else [])
    say("a dragon")
    large(leading_rows=2)
    assert len(found("dragon diary")) == 9
    assert len(found("dragon diary", Filters(tags=("private",)), limit=4)) == 4


@pytest.fixture
def scored(nilou):
    """What a search answers."""

    def search(words, limit, also=()):
        with nilou.database.read() as connection:
            return bm25_index.search(connection, bm25_index.Terms(words), Filters(), limit, also)

    return search


@pytest.fixture
def patterned(say):
    """Sixty memories; a token of theirs stands in each second, third, fifth, … of them. Their ids."""
    for number in range(60):
        say(" ".join(f"every{step}" for step in (2, 3, 5, 7, 11, 13) if number % step == 0) + f" number{number}")
    return list(range(1, 61))


PATTERN = ["every2", "every3", "every5", "every7", "every11", "every13"]


def test_in_a_large_store_the_rarest_words_find_and_all_words_order(scored, patterned, large):
    whole = dict(scored(PATTERN, 60))
    large(leading_rows=10, share=1.0)
    found = scored(PATTERN, 6)  # what has neither every11 nor every13 is not looked at
    expected = [memory_id for memory_id in patterned if (memory_id - 1) % 11 == 0 or (memory_id - 1) % 13 == 0]
    best = sorted(expected, key=lambda memory_id: -whole[memory_id])[:6]
    assert [memory_id for memory_id, _ in found] == best
    assert dict(found) == {memory_id: pytest.approx(whole[memory_id]) for memory_id in best}


def test_where_the_rarest_words_find_too_little_all_find(scored, patterned, large):
    whole = scored(PATTERN, 20)
    large(leading_rows=10, share=1.0)
    assert scored(PATTERN, 20) == whole


def test_in_a_large_store_a_word_that_stands_twice_in_a_query_counts_twice(scored, patterned, large):
    whole = dict(scored(["every13", "every13", "every11", "every2"], 60))
    large(leading_rows=10, share=1.0)
    found = scored(["every13", "every13", "every11", "every2"], 5)
    assert len(found) == 5
    assert dict(found) == {memory_id: pytest.approx(whole[memory_id]) for memory_id, _ in found}


def test_in_a_large_store_those_that_are_asked_for_follow_the_best(scored, patterned, large):
    whole = dict(scored(PATTERN, 60))
    large(leading_rows=10, share=1.0)
    best = [memory_id for memory_id, _ in scored(PATTERN, 3)]
    others = [memory_id for memory_id in (12, 23, 34, 45) if memory_id not in best]  # of every11
    found = scored(PATTERN, 3, also=[*others, best[0]])
    assert [memory_id for memory_id, _ in found[:3]] == best
    assert dict(found[3:]) == {memory_id: pytest.approx(whole[memory_id]) for memory_id in others}
    # Without a limit the score of those alone is wanted, by all the words.
    assert dict(scored(PATTERN, 0, also=[3])) == {3: pytest.approx(whole[3])}


def test_in_a_large_store_a_word_is_common_that_was_so_first_and_lately(say, found, large):
    for topic in ("spring", "autumn"):
        for number in range(20):
            say(f"{topic} diary {number}")
    say("a dragon")
    large(leading_rows=3, share=0.3, sampled_part=2)
    assert found("dragon diary", limit=1) == ["a dragon"]
    for season in ("spring", "autumn"):  # each has half of the rows, one of the first of them, the other of the latest
        assert len(found(f"dragon {season}", limit=21)) == 21


@pytest.fixture
def counted(nilou):
    """In how many rows a token stands, as far as is known. What was counted is kept, as in an open persona."""
    counts = TokenCounts()

    def count(token):
        with nilou.database.read() as connection:
            rows = connection.execute("SELECT max(rowid) FROM lexical").get
            return counts.uncommon(connection, [token], range(1, rows + 1)).get(token)

    return count


def test_what_was_counted_is_kept_until_the_store_has_grown(say, counted):
    for number in range(40):
        say(f"{'dragon' if number % 10 == 0 else 'entry'} {number}")
    assert counted("dragon") == 4
    say("a dragon again")
    assert (counted("dragon"), counted("again"), counted("never")) == (4, 1, 0)
    say("the dragon")
    say("dragon")
    assert counted("dragon") == 7


def test_what_was_counted_is_counted_anew_after_a_while(say, counted, monkeypatch):
    for number in range(40):
        say(f"{'dragon' if number % 10 == 0 else 'entry'} {number}")
    monkeypatch.setattr(stored_words, "KEPT_SECONDS", -1)
    assert counted("dragon") == 4
    say("a dragon again")
    assert counted("dragon") == 5


def test_what_a_recall_counted_the_next_finds_counted(say, ask, nilou, large):
    for number in range(40):
        say(f"{'dragon' if number % 10 == 0 else 'entry'} {number}")
    large(leading_rows=10)
    ask("a dragon")
    say("a dragon again")
    with nilou.database.read() as connection:
        assert nilou.words.uncommon(connection, ["dragon"], range(1, 42)) == {"dragon": 4}


def test_a_scan_finds_what_has_no_token(say, nilou):
    say("彼は黙った「……」")
    with nilou.database.read() as connection:
        assert len(bm25_index.scan(connection, "……", Filters(), 10)) == 1
        assert bm25_index.scan(connection, "！！", Filters(), 10) == []
