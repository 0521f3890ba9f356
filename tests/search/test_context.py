"""What a conversation starts with: layers, each memory once, within a budget."""

from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Context, Privacy, Settings
from memory_mcp.domain import Draft, Hit, Memory
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.remember.pipeline import remember
from memory_mcp.search.context import AT_MOST, context, diverse
from memory_mcp.search.page import HIT_OVERHEAD_TOKENS, LEAST_TEXT_TOKENS
from memory_mcp.store import memories

LAYERS = Context()


@pytest.fixture
def begin(nilou, now, settings):
    def begin(query="", max_tokens=5000, under=settings, session_id=None):
        return context(nilou, query, session_id=session_id, max_tokens=max_tokens, models=unloaded_models(under), settings=under, now=now)

    return begin


@pytest.fixture
def life(say, nilou, now, zone):
    """Twelve days of which two touch on Kyoto, and three summaries."""
    for day in range(12):
        say("京都の寺" if day in (0, 1) else f"日常 その{day}", at=now - timedelta(days=20 - day))
    for number in range(3):
        remember(nilou, Draft(f"まとめ {number}", kind="summary"), now=now - timedelta(days=30 - number), zone=zone, privacy=Privacy())


def layer(found, name) -> list[str]:
    return [hit.memory.content for source, hit in found.hits if source == name]


def test_a_new_persona_begins_with_nothing(begin):
    found = begin()
    assert (found.hits, found.recalled) == ((), None)


def test_without_a_query_there_are_the_latest_and_the_summaries(life, begin):
    found = begin()
    assert layer(found, "recent") == [*(f"日常 その{day}" for day in (11, 10, 9, 8)), "京都の寺"]
    assert layer(found, "summary") == ["まとめ 2"]
    assert layer(found, "semantic") == []
    assert found.recalled is None


def test_the_latest_say_nothing_twice(life, say, begin, now):
    for content in ("方針は Rust です", "方針は、Rustです。", "方針はＲｕｓｔです！"):
        say(content, at=now)
    assert layer(begin(), "recent") == ["方針はＲｕｓｔです！", *(f"日常 その{day}" for day in (11, 10, 9)), "京都の寺"]
    assert "方針" not in "".join(layer(begin("方針"), "recent"))


@pytest.fixture
def matters(nilou, now, zone):
    """Stores a memory of long ago."""

    def matters(content, **fields):
        return remember(nilou, Draft(content, **fields), now=now - timedelta(days=900), zone=zone, privacy=Privacy())

    return matters


def test_what_matters_most_comes_first_however_old_and_whatever_was_said_since(life, matters, begin):
    matters("卵アレルギー。食べると命に関わる。", importance=1.0)
    matters("敬語は使わない", tags=("keep",))
    matters("元カノの話はしない", importance=0.8)
    matters("猫が好き", importance=0.79)
    for query in ("", "京都"):
        found = begin(query)
        assert [name for name, _ in found.hits[:3]] == ["core"] * 3
        assert set(layer(found, "core")) == {"敬語は使わない", "卵アレルギー。食べると命に関わる。", "元カノの話はしない"}
        assert len(found.hits) <= AT_MOST
        assert layer(found, "recent")


def test_of_much_that_matters_the_most_important_is_shown_in_half_of_the_budget(life, matters, begin, settings):
    for number in range(8):
        matters(f"大事なこと その{number}。" + "長い話。" * 100, importance=0.8 + number / 100)
    assert [text[:9] for text in layer(begin(max_tokens=800), "core")] == ["大事なこと その7"[:9], "大事なこと その6"[:9]]
    assert layer(begin(max_tokens=800), "recent")
    assert layer(begin(under=settings.model_copy(update={"context": Context(core=0)})), "core") == []
    assert len(layer(begin(under=settings.model_copy(update={"context": Context(core=1)})), "core")) == 1


def test_what_mattered_once_and_was_replaced_or_forgotten_is_not_shown(matters, begin, nilou, now, zone):
    old = matters("コーヒーは飲まない", importance=1.0)
    remember(nilou, Draft("コーヒーはまた飲む", supersedes=old.key), now=now, zone=zone, privacy=Privacy())
    assert layer(begin(), "core") == []


def test_with_a_session_the_latest_are_those_of_that_conversation(life, nilou, begin, now, zone):
    remember(nilou, Draft("卒業制作の話", session_id="s1"), now=now - timedelta(days=30), zone=zone, privacy=Privacy())
    assert layer(begin(session_id="s1"), "recent") == ["卒業制作の話"]
    assert layer(begin(session_id="another"), "recent") == []


def test_the_latest_that_are_nearly_alike_leave_room_for_what_else_was_said(say, begin, now):
    for number in range(8):
        say(f"今日の昼は定食その{number}", at=now - timedelta(days=8 - number))
    say("院長に呼ばれた", at=now - timedelta(days=20))
    say("亀が餌を食べない", at=now - timedelta(days=21))
    found = layer(begin(), "recent")
    assert {"院長に呼ばれた", "亀が餌を食べない", "今日の昼は定食その7"} <= set(found)
    assert len(found) == LAYERS.recent


def test_a_summary_of_sentences_that_are_shown_anyway_has_no_place(say, begin, nilou, now, zone, settings):
    say("院長に呼ばれた", at=now)
    say("亀が餌を食べない", at=now)
    extracted = Draft("2025-10-30 · 2件\n- 院長に呼ばれた\n- 亀が餌を食べない", kind="summary", metadata={"made_by": "extractive"})
    written = Draft("2025-10-30 · 2件\n院長に呼ばれた。亀は食欲がない。", kind="summary", metadata={"made_by": "model"})
    older = Draft("2025-10-01 · 1件\n- 登山の道具を買った", kind="summary", metadata={"made_by": "extractive"})
    for draft in (extracted, written, older):
        remember(nilou, draft, now=now, zone=zone, privacy=Privacy())
    two = settings.model_copy(update={"context": Context(summaries=2)})
    assert set(layer(begin(under=two), "summary")) == {written.content, older.content}


def test_what_is_to_come_has_a_layer_of_its_own_the_nearest_first(life, say, begin, now):
    say("11月3日に歯医者", at=now - timedelta(days=25))
    say("明日は健太と会う", at=now - timedelta(days=40), occurred_at=(now + timedelta(days=2)).isoformat())
    say("来年の11月1日に引っ越す", at=now - timedelta(days=25))
    found = begin()
    assert layer(found, "upcoming") == ["明日は健太と会う", "11月3日に歯医者"]
    assert len(layer(found, "recent")) == LAYERS.recent
    assert layer(begin(under=Settings(embeddings_model=None, reranker_model=None, context=Context(upcoming=0))), "upcoming") == []


@pytest.fixture
def full(say, matters, nilou, now, zone):
    """More than ten memories for each layer, of which the plans and what matters most touch on Kyoto, too."""
    for number in range(12):
        said = now - timedelta(days=90 - number)
        say(f"京都の{'庭宿茶寺川橋駅菓子坂町店'[number]}を歩いた", at=said)
        say(f"11月{number + 1}日に京都で{'会打撮取集祭面稽発出披読'[number]}がある", at=said)
        say("".join(chr(0x4E00 + 40 * number + index) for index in range(12)), at=now - timedelta(days=12 - number))
        matters(f"京都で大事なこと {chr(0x5B50 + number)}", importance=0.9)
        remember(nilou, Draft(f"まとめ {chr(0x6C34 + number)}", kind="summary"), now=now, zone=zone, privacy=Privacy())


@pytest.mark.parametrize(
    ("query", "configured", "places"),
    [  # core, semantic, summary, upcoming, recent
        ("", {}, (3, 0, 1, 3, 3)),
        ("京都", {}, (3, 3, 0, 2, 2)),
        ("京都", {"core": 0}, (0, 3, 1, 3, 3)),
        ("京都", {"core": 0, "upcoming": 0}, (0, 4, 1, 0, 5)),
        ("京都", {"core": 0, "upcoming": 0, "summaries": 0}, (0, 5, 0, 0, 5)),
        ("京都", {"recent": 0}, (3, 3, 1, 3, 0)),
        ("", {"core": 10}, (8, 0, 0, 0, 2)),
        ("", {"recent": 10, "upcoming": 0}, (3, 0, 1, 0, 6)),
        ("京都", {"core": 1, "semantic": 1, "summaries": 1, "upcoming": 1, "recent": 1}, (1, 3, 1, 1, 1)),
    ],
)
def test_ten_places_are_ten_memories_and_each_layer_has_its_own(full, begin, settings, query, configured, places):
    found = begin(query, under=settings.model_copy(update={"context": Context(**configured)}))
    layers = ("core", "semantic", "summary", "upcoming", "recent")
    assert tuple(len(layer(found, name)) for name in layers) == places
    assert [name for name, _ in found.hits] == sorted((name for name, _ in found.hits), key=layers.index)
    assert len({hit.memory.key for _, hit in found.hits}) == len(found.hits) == sum(places)


def test_a_plan_that_fits_the_topic_has_one_place_and_the_next_plan_the_other(say, begin, now):
    for day, thing in enumerate(("京都で会食", "歯医者", "散髪", "面談"), start=1):
        say(f"11月{day}日に{thing}", at=now - timedelta(days=25))
    found = begin("京都")
    assert layer(found, "semantic") == ["11月1日に京都で会食"]
    assert layer(found, "upcoming") == ["11月2日に歯医者", "11月3日に散髪", "11月4日に面談"]


def test_a_week_or_a_month_that_is_named_comes_after_the_days_in_it(say, begin, now):
    for content in ("来月は忙しい", "来週は母が来る", "11月2日に歯医者", "11月9日に面談"):
        say(content, at=now)
    assert layer(begin(), "upcoming") == ["11月2日に歯医者", "11月9日に面談", "来週は母が来る"]


def test_a_plan_that_a_linked_newer_memory_replaces_is_none(say, begin, nilou, now):
    plan, newer = (say(content, at=now - timedelta(days=9)).key for content in ("11月3日に歯医者", "虫歯は別の所で治した"))

    def link(method):
        def insert(connection):
            ends = memories.by_keys(connection, [plan, newer])
            return connection.execute(
                "INSERT OR REPLACE INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,'newer',1,1,?,?)",
                (ends[newer].id, ends[plan].id, method, now.isoformat()),
            )

        nilou.database.write(insert)

    link("undone")
    assert layer(begin(), "upcoming") == ["11月3日に歯医者"]
    link("rule")
    assert layer(begin(), "upcoming") == []


def test_what_has_not_ended_today_is_to_come_if_it_was_told_before(say, begin, now):
    say("今日は疲れた", at=now - timedelta(hours=1))
    say("10月に健康診断を受ける", at=now - timedelta(days=35))
    say("10月30日は保護者会", at=now - timedelta(days=3))
    say("車検がある", at=now - timedelta(days=2), occurred_at="2025-10-30")
    say("朝の打ち合わせがある", at=now - timedelta(days=2), occurred_at="2025-10-30T09:00")
    say("会食がある", at=now - timedelta(days=2), occurred_at="2025-10-31")
    say("2025年に引っ越す", at=now - timedelta(days=400))
    under = Settings(embeddings_model=None, reranker_model=None, context=Context(upcoming=9))
    assert layer(begin(under=under), "upcoming") == ["10月30日は保護者会", "車検がある", "会食がある", "10月に健康診断を受ける"]


@pytest.mark.parametrize(
    ("occurred_at", "named", "days"),
    [
        ("2025-10-30", [], 0),
        ("2025-10-30T15:00", [], 0),
        (None, [(-1, 2)], 0),  # yesterday to tomorrow
        (None, [(-1, 0), (3, 4)], 3),
        (None, [(-40, 1), (3, 4)], 3),  # too long
        (None, [(-1, 0)], None),
    ],
)
def test_what_has_begun_is_next_today(say, nilou, now, zone, occurred_at, named, days):
    key = say("旅行", at=now - timedelta(days=50), occurred_at=occurred_at).key
    with nilou.database.read() as connection:
        memory = memories.by_keys(connection, [key])[key]
    midnight = now.astimezone(zone).replace(hour=0)
    spans = [tuple(midnight + timedelta(days=day) for day in span) for span in named]
    time = memories.next_time(memory, spans, now, zone)
    assert time and (time.astimezone(zone).date() - midnight.date()).days == days if days is not None else time is None


def test_of_every_year_is_what_comes_again_and_so_many_days_are_no_day(say, begin, now):
    say("仕込みに2日かかる", at=now - timedelta(days=3))
    say("結婚記念日は11月4日", at=now - timedelta(days=2))
    say("11月3日に打ち合わせが入った", at=now - timedelta(days=1))
    assert layer(begin(), "upcoming") == ["11月3日に打ち合わせが入った", "結婚記念日は11月4日"]


def test_with_a_query_what_fits_the_topic_comes_first(life, begin):
    found = begin("京都")
    assert layer(found, "semantic") == ["京都の寺"]  # told twice
    assert found.hits[0][0] == "semantic"
    assert (len(layer(found, "recent")), len(layer(found, "summary"))) == (LAYERS.recent, LAYERS.summaries)
    assert found.recalled.mode == "keyword"


def test_no_memory_is_shown_twice(life, begin):
    keys = [hit.memory.key for _, hit in begin("日常").hits]
    assert len(keys) == len(set(keys)) == AT_MOST


def test_a_memory_that_fits_the_topic_makes_room_for_an_older_one(life, begin):
    found = begin("その11")
    assert "日常 その11" in layer(found, "semantic")
    assert len(layer(found, "recent")) == LAYERS.recent


def test_a_small_budget_shows_one_of_the_topic_and_the_latest(life, begin):
    found = begin("京都", max_tokens=45)
    assert [(name, hit.text) for name, hit in found.hits] == [("semantic", "京都の寺"), ("recent", "日常 その11")]
    assert [name for name, _ in begin("京都", max_tokens=35).hits] == ["semantic"]


@pytest.mark.parametrize("max_tokens", [80, 110, 150, 170, 200, 250, 300, 399])
def test_among_long_memories_a_small_budget_shows_the_beginning_of_the_latest(say, begin, now, max_tokens):
    for number in range(3):
        say(f"京都 その{number}。" + LONG_DIARY, at=now - timedelta(days=40 + number))
    say("海で泳いだ日の長い日記。" * 100, at=now)
    found = begin("京都の寺", max_tokens=max_tokens).hits
    assert found[0][0] == "semantic"
    (latest,) = [hit for shown_in, hit in found if shown_in == "recent"]
    assert latest.text.startswith("海で泳いだ日")
    assert sum(HIT_OVERHEAD_TOKENS + estimate_tokens(hit.text) for _, hit in found) <= max_tokens


def test_the_answer_says_what_was_missing(life, begin):
    assert begin("京都", under=Settings()).recalled.degraded == ("embedder_absent", "reranker_absent")


def test_near_duplicates_do_not_crowd_out_what_else_there_is(say, begin, settings):
    for number in range(4):
        say(f"京都の金閣寺の庭を{number + 1}周歩いた")
    say("京都でカレーを食べた")
    topical = layer(begin("京都", under=settings.model_copy(update={"context": Context(summaries=0)})), "semantic")
    assert "京都でカレーを食べた" in topical[: LAYERS.semantic]


def test_the_diverse_choice_weighs_relevance_against_sameness(now):
    def hit(number, content, score):
        return Hit(Memory(number, f"k{number}", content, now, now), score, {}, content)

    alike, same, other = hit(1, "京都の金閣寺", 1.0), hit(2, "京都の金閣寺", 0.9), hit(3, "奈良の鹿", 0.6)
    assert diverse([alike, same, other], 2, 0.7) == [alike, other]
    assert diverse([alike, same, other], 3, 0.7) == [alike, other, same]
    assert diverse([alike, same, hit(3, "奈良の鹿", 0.01)], 2, 0.7) == [alike, same]
    assert diverse([alike, same, other], 2, 1.0) == [alike, same]
    assert diverse([], 3, 0.7) == []


def test_of_many_different_summaries_no_more_are_compared_than_are_shown(nilou, begin, now, zone, monkeypatch):
    for number in range(12):
        summary = " ".join(f"{number}番の{thing}" for thing in ("海", "山", "川"))
        remember(nilou, Draft(summary, kind="summary"), now=now - timedelta(days=30 - number), zone=zone, privacy=Privacy())
    compared = []
    monkeypatch.setattr("memory_mcp.search.context.tokens", lambda text: compared.append(text) or [text])
    shown = layer(begin(), "summary")
    assert len(shown) == LAYERS.summaries
    assert compared == shown


def test_without_places_nothing_is_searched_for(life, begin, settings):
    none = begin("京都", under=settings.model_copy(update={"context": Context(recent=0, semantic=0, summaries=0)}))
    assert (none.hits, none.recalled) == ((), None)


def test_a_summary_has_eighty_tokens_at_most(say, begin, nilou, now, zone):
    long = Draft("2025-10-29 · 9件\n" + "\n".join(f"- 山{number}に登った日の話" for number in range(60)), kind="summary")
    remember(nilou, long, now=now, zone=zone, privacy=Privacy())
    ((_, hit),) = begin().hits
    assert 40 < estimate_tokens(hit.text) <= 80


@pytest.mark.parametrize("max_tokens", [50, 80, 140, 300, 800, 2000])
def test_what_is_shown_stays_within_the_budget(life, say, begin, now, max_tokens):
    say("京都の話。" + "とても長い。" * 400, at=now - timedelta(days=40))
    for query in ("", "京都", "日常"):
        found = begin(query, max_tokens=max_tokens).hits
        assert found
        assert len({hit.memory.id for _, hit in found}) == len(found)
        spent = sum(HIT_OVERHEAD_TOKENS + estimate_tokens(hit.text) for _, hit in found)
        assert spent <= max(max_tokens, HIT_OVERHEAD_TOKENS + LEAST_TEXT_TOKENS)


LONG_DIARY = "京都の寺を歩いた日の長い日記。" * 100
HIDDEN = "祖母の指輪は時計の裏に隠した。"


@pytest.mark.parametrize("max_tokens", [400, 800, 1500])
def test_one_long_memory_leaves_room_for_the_latest(say, begin, now, max_tokens):
    say(LONG_DIARY, at=now - timedelta(days=40))
    for day in range(8):
        say(f"日常 その{day}", at=now - timedelta(days=10 - day))
    found = begin("京都の寺", max_tokens=max_tokens)
    assert layer(found, "semantic") == [LONG_DIARY]
    assert len(layer(found, "recent")) == LAYERS.recent


@pytest.mark.parametrize("max_tokens", [800, 2000])
def test_long_memories_of_every_layer_leave_room_for_each_other(say, begin, nilou, now, zone, max_tokens):
    for number in range(5):
        say(f"京都 その{number}。" + LONG_DIARY, at=now - timedelta(days=40 + number))
        say(f"日常 その{number}。" + "海で泳いだ日の長い日記。" * 100, at=now - timedelta(days=number))
        summary = Draft(f"まとめ {number}。" + f"山{number}に登った日の話。" * 60, kind="summary")
        remember(nilou, summary, now=now - timedelta(days=number), zone=zone, privacy=Privacy())
    assert {name for name, _ in begin("京都の寺", max_tokens=max_tokens).hits} == {"semantic", "summary", "recent"}


@pytest.mark.parametrize("max_tokens", [200, 400, 800, 2000])
def test_of_a_long_memory_the_passage_that_answers_is_shown(say, begin, now, max_tokens):
    days = "朝は雨だった。昼に市場で魚を買った。夜は星を見た。" * 120
    say(days + HIDDEN + days, at=now - timedelta(days=40))
    for day in range(8):
        say(f"日常 その{day}", at=now - timedelta(days=10 - day))
    found = begin("祖母の指輪はどこに隠した？", max_tokens=max_tokens)
    assert HIDDEN in found.hits[0][1].text


def test_room_that_nobody_needs_goes_to_the_long_memory(say, begin, now):
    say(LONG_DIARY, at=now - timedelta(days=40))
    say("日常", at=now)
    (_, long), (_, short) = begin("京都の寺", max_tokens=1000).hits
    assert estimate_tokens(long.text) > 700
    assert short.text == "日常"


def test_a_long_memory_that_fits_is_shown_whole_among_others(life, say, begin, now):
    say(LONG_DIARY, at=now - timedelta(days=40))
    assert LONG_DIARY in [hit.text for _, hit in begin("京都の寺を歩いた", max_tokens=5000).hits]


def test_the_smallest_context_shows_the_beginning_of_a_memory(say, begin):
    say("京都の寺を歩いた日のこと。" * 20)
    ((_, hit),) = begin("京都の寺", max_tokens=50).hits
    assert hit.text.startswith("京都の寺を")
