"""What is found by time: dates in texts, plans, the latest, and dates that are no words."""

import sys
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Fusion, Privacy
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.question import time_of


@pytest.fixture
def diary(say, now):
    """Told on 28 to 30 October 2025."""
    say("夕飯は寿司だった", at=now - timedelta(days=2))
    say("昨日の夕飯はカレー", at=now - timedelta(days=1))
    say("図書館の本の返却期限は12月1日", at=now - timedelta(days=1))
    say("来週の火曜に歯医者へ行く", at=now - timedelta(hours=2))
    say("苺が好き", at=now - timedelta(hours=1))


def contents(recalled):
    return [hit.memory.content for hit in recalled.hits]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("28日の夕飯は？", "昨日の夕飯はカレー"),
        ("おとといの夕飯は？", "昨日の夕飯はカレー"),
        ("12月1日は何の日？", "図書館の本の返却期限は12月1日"),
        ("12月の予定は？", "図書館の本の返却期限は12月1日"),
        ("これからの予定は？", "来週の火曜に歯医者へ行く"),
        ("What is coming up next week?", "来週の火曜に歯医者へ行く"),
    ],
)
def test_a_date_in_the_text_is_a_date_of_the_memory(diary, ask, query, first):
    assert contents(ask(query))[0] == first


@pytest.mark.parametrize("query", ["11月8日の予定は？", "来月の予定は？", "11月8日は何の日？", "What is on November 8?"])
@pytest.mark.parametrize("text", ["田中さんの誕生日は11月8日", "毎年11月8日に健診がある"])
def test_a_day_of_every_year_is_found_by_its_date(diary, say, ask, query, text):
    say(text)
    assert text in contents(ask(query))[:2]


@pytest.mark.parametrize(
    ("text", "occurred_at", "day", "another_day"),
    [
        ("昨日の夜、ラーメンを食べた", "昨日", "2025-10-29", "2025-10-28"),
        ("3日前から風邪気味", "3日前", "2025-10-27", "2025-10-24"),
        ("金曜に歯医者に行った", "金曜", "2025-10-24", "2025-10-31"),
        ("金曜に歯医者に行く", "金曜", "2025-10-31", "2025-10-24"),
        ("来月の5日に京都へ行く", "来月の5日", "2025-11-05", "2025-12-05"),
        ("We have dinner next Friday", "next Friday", "2025-11-07", "2025-11-14"),
    ],
)
def test_a_text_counts_from_the_day_of_telling_where_that_gives_the_day_it_happened(say, ask, text, occurred_at, day, another_day):
    say(text, occurred_at=occurred_at)
    assert contents(ask(date_range=day)) == [text]
    assert contents(ask(date_range=another_day)) == []


@pytest.mark.parametrize("query", ["12月10日の予定は？", "12月10日", "12月10日は何の日？", "What is on December 10?"])
@pytest.mark.parametrize("text", ["当店の創業は12月10日", "The day of our founder: December 10"])
def test_a_day_of_no_certain_year_is_found_as_it_is_written(say, ask, text, query):
    say("苺が好き")
    say("12月11日に歯医者へ行く")
    say(text)
    found = ask(query)
    assert contents(found)[0] == text
    assert "12月10日" not in found.unmatched


@pytest.mark.parametrize(
    ("query", "around"),
    [
        ("12月10日頃に何かある？", True),
        ("12月10日の頃に何かある？", True),
        ("What is there around December 10?", True),
        ("12月10日に何かある？", False),
        ("What about December 10?", False),
    ],
)
def test_around_a_day_are_the_days_beside_it(say, ask, query, around):
    say("12月8日に歯医者へ行く")
    say("12月5日に京都へ行く")
    dates = {hit.memory.content: "date" in hit.why for hit in ask(query, detail="why").hits}
    assert dates.get("12月8日に歯医者へ行く", False) is around
    assert not dates.get("12月5日に京都へ行く", False)


def test_a_day_of_another_year_is_not_found_by_how_it_is_written(say, ask):
    say("去年の12月10日に京都へ行った")
    say("12月10日の件は2019年のこと")
    nothing = ask("2026年12月10日の予定は？")
    assert (contents(nothing), nothing.unmatched) == ([], ("2026年12月10日",))


def test_the_same_words_of_another_day_are_another_statement(say, ask, now):
    for days in (3, 2, 1):
        say("今日は10キロ走った", at=now - timedelta(days=days))
    say("いつも10キロ走る", at=now - timedelta(days=2))
    say("いつも10キロ走る。", at=now - timedelta(days=1))
    assert sorted(contents(ask("10キロ走ったのは？"))) == ["いつも10キロ走る。", *["今日は10キロ走った"] * 3]


def test_an_imported_diary_counts_from_its_own_days(say, ask):
    say("昨日の夕飯はカレー", occurred_at="2025-10-17")
    say("10月20日。昨日はお好み焼き", occurred_at="2025-10-20")
    assert contents(ask("10月16日の出来事は？")) == ["昨日の夕飯はカレー"]
    assert contents(ask("10月19日の出来事は？")) == ["10月20日。昨日はお好み焼き"]


def test_a_revised_text_counts_from_the_day_of_telling_too(say, ask, nilou, now, zone):
    key = say("昨日の夜、ラーメンを食べた", occurred_at="昨日").key
    revise(nilou, key, Revision(content="昨日の夜、味噌ラーメンを食べた"), now=now.astimezone(zone), privacy=Privacy())
    assert contents(ask(date_range="2025-10-28")) == []


@pytest.mark.parametrize(
    "query",
    [
        "最近どう？",
        "What's new?",
        "最近何があった？",
        "前回はどこまで話した？",
        "さっきまで何の話をしてたんだっけ？",
        "前回のおしゃべりの最後は？",
    ],
)
def test_a_question_for_nothing_but_lately_is_answered_by_the_latest(diary, ask, query):
    recalled = ask(query, top_k=2)
    assert (recalled.mode, contents(recalled)) == ("recent", ["苺が好き", "来週の火曜に歯医者へ行く"])


def test_a_year_and_nothing_else_is_answered_by_time(diary, say, ask):
    say("奈良で鹿を見た。来年も行きたい", occurred_at="2024-05-03")
    found = ask("去年は何があった？")
    assert (found.mode, contents(found)) == ("recent", ["奈良で鹿を見た。来年も行きたい"])
    nothing = ask("2027年の予定は？")
    assert (contents(nothing), nothing.unmatched) == ([], ("2027年",))


def test_a_question_for_plans_shows_nothing_of_the_past(diary, ask):
    assert contents(ask("予定は？")) == ["来週の火曜に歯医者へ行く", "図書館の本の返却期限は12月1日"]


@pytest.mark.parametrize(
    "query", ["次の予定は？", "次回の予定は？", "直近の予定を教えて", "今度の予定", "次の予約は？", "直近の予約は？", "次回の面談は？"]
)
def test_a_question_for_the_next_plan_shows_what_is_to_come_first(say, ask, now, query):
    say("11月6日の15時に面談の予約がある", at=now - timedelta(days=20))
    say("10月17日の15時に面談の予約がある", at=now - timedelta(days=19))
    say("苺が好き", at=now - timedelta(days=8))
    assert contents(ask(query))[0] == "11月6日の15時に面談の予約がある"


@pytest.mark.parametrize("query", ["直近の会議で何を決めた？", "二次の面接は？", "次の日は何をした？", "今度の件は？"])
def test_what_is_next_to_something_else_or_over_asks_for_no_plan(query, now, zone):
    assert not time_of(query, now, zone).looks_ahead


def test_a_named_day_is_no_word_to_look_for(say, ask, now):
    say("今日は昨日の続き", at=now - timedelta(days=9))
    say("映画を見た", at=now - timedelta(days=1))
    assert contents(ask("昨日は何をした？")) == ["映画を見た"]


def test_what_is_of_the_named_day_stands_before_what_only_has_the_words(say, ask, now):
    say("焼き魚だった", at=now - timedelta(days=1))
    say("妹は最後に食べる", at=now - timedelta(hours=1))
    assert contents(ask("昨日は何を食べた？")) == ["焼き魚だった", "妹は最後に食べる"]


def test_a_particle_alone_does_not_make_a_question_vague(say, ask):
    say("ももが好き")
    say("昨日は雨")
    assert (ask("もも").mode, contents(ask("もも"))) == ("keyword", ["ももが好き"])


def test_a_date_range_is_filled_up_with_what_passes_it(diary, ask):
    assert contents(ask("予算", date_range="2025-12")) == ["図書館の本の返却期限は12月1日"]
    assert set(contents(ask("寿司", date_range="10月28日"))) == {"夕飯は寿司だった", "昨日の夕飯はカレー"}


def test_recent_stands_where_it_was_told_or_happened_before(say, ask, now):
    say("一年後に東京へ引っ越す", at=now - timedelta(days=3), occurred_at=(now + timedelta(days=365)).isoformat())
    say("むかしの日記", at=now, occurred_at=(now - timedelta(days=900)).isoformat())
    say("今日のこと", at=now - timedelta(days=1))
    assert contents(ask(mode="recent")) == ["今日のこと", "一年後に東京へ引っ越す", "むかしの日記"]


def test_a_revised_memory_has_the_times_of_its_new_text(say, ask, nilou, now):
    key = say("返却期限は12月1日").key
    revise(nilou, key, Revision(content="返却期限は12月8日"), now=now, privacy=Privacy())
    assert contents(ask("12月8日は？")) == ["返却期限は12月8日"]
    assert contents(ask("何かある？", date_range="2025-12-01")) == []


def test_an_older_store_gets_its_times_in_the_background(diary, nilou, ask, now, zone):
    nilou.database.write(lambda connection: connection.execute("DELETE FROM memory_dates"))
    nilou.database.write(
        lambda connection: connection.execute("INSERT OR REPLACE INTO graph_queue(memory, named) SELECT id, 0 FROM memories")
    )
    while update_graph(nilou, now.astimezone(zone)):
        pass
    assert contents(ask("予定は？")) == ["来週の火曜に歯医者へ行く", "図書館の本の返却期限は12月1日"]


@pytest.mark.parametrize("query", ["カレーはどこの先住民の料理？", "カレーはどこの前菜？", "今後20年でカレーはどうなる？"])
def test_what_only_looks_like_a_word_for_time_asks_for_no_time(diary, ask, query):
    hit = ask(query).hits[0]
    assert (hit.memory.content, hit.why.get("date")) == ("昨日の夕飯はカレー", None)


def test_what_asks_for_news_is_no_word_to_look_for(say, ask, now):
    say("むぎの餌の量は変わりない", at=now - timedelta(days=3))
    say("むぎが夕方二回吐いた", at=now - timedelta(days=2))
    assert contents(ask("むぎ、ここのところ変わりない？"))[0] == "むぎが夕方二回吐いた"


@pytest.mark.parametrize(
    "query",
    [
        "むぎは最近どう？",
        "このごろむぎは元気？",
        "むぎの調子はどう？",
        "むぎの体調はいかが？",
        "むぎの近況は？",
        "むぎのことで何か新しいことは？",
        "What's new with Mugi?",
        "Anything new about Mugi?",
        "How is Mugi doing?",
        "How's it going with Mugi?",
        "How has Mugi been?",
        "What's the latest on Mugi?",
    ],
)
def test_the_latest_of_what_is_asked_for_comes_first(say, ask, now, query):
    say("むぎ (Mugi) は最近調子がいい。何か新しい餌を食べている", at=now - timedelta(days=60))
    say("むぎ (Mugi) は毛づやがいい", at=now - timedelta(days=9))
    say("むぎ (Mugi) が夕方二回吐いた", at=now - timedelta(days=1))
    for number in range(10):
        say(f"{number}杯目の珈琲", at=now - timedelta(hours=number))
    assert contents(ask(query))[0] == "むぎ (Mugi) が夕方二回吐いた"


def test_the_latest_is_found_among_much_that_is_older(say, ask, now, settings):
    few = settings.model_copy(update={"fusion": Fusion(candidates_per_source=5)})
    for number in range(8):
        say(f"むぎ、{number}回目の通院", at=now - timedelta(days=100, hours=number))
    say("むぎが夕方二回吐いた。毛玉だと思うけれど、念のため病院に電話して相談した", at=now - timedelta(days=1))
    for number in range(20):
        say(f"{number}杯目の珈琲", at=now - timedelta(hours=number))
    assert contents(ask("最近むぎはどう？", under=few))[0].startswith("むぎが夕方二回吐いた")


@pytest.mark.parametrize(
    "query",
    [
        "会議の様子はどうだった？",
        "新しい電話番号は？",
        "調子のいい日は何をしてる？",
        "体調をどうやって記録してる？",
        "What's New York like?",
        "What is the latest version?",
        "How is Anna going to get there?",
        "How has the report been written?",
    ],
)
def test_what_is_only_like_a_question_for_the_latest_is_none(query, now, zone):
    assert not time_of(query, now, zone).wants_lately


@pytest.mark.parametrize("query", ["金曜の予定は？", "金曜は何かある？", "31日の予定は？", "What's on Friday?", "Am I free on Friday?"])
@pytest.mark.parametrize("text", ["金曜に歯医者", "金曜日の夜は飲み会", "遠足は31日", "Dentist on Friday"])
def test_a_plan_for_a_day_of_the_week_is_found_by_that_day(say, ask, query, text):
    say("苺が好き")
    say("金曜は燃えるゴミの日")
    say(text)
    assert contents(ask(query))[0] == text


@pytest.mark.parametrize("query", ["月曜に何があった？", "月曜は何してた？", "27日に何があった？", "What happened on Monday?"])
def test_what_is_reported_of_a_day_of_the_week_is_found_by_that_day(say, ask, now, query):
    say("月曜に歯医者に行った", at=now - timedelta(days=1))
    say("月曜は飲み会", at=now - timedelta(days=20))
    say("苺が好き")
    assert contents(ask(query))[0] == "月曜に歯医者に行った"


@pytest.mark.parametrize(
    "query", ["金曜は何ゴミ？", "金曜に出すゴミは？", "金曜", "金曜日は何の日？", "金曜の予定は？", "What do I do on Friday?"]
)
def test_what_is_so_every_week_is_found_by_its_day(say, ask, now, query):
    say("苺が好き")
    say("10月は繁忙期", at=now - timedelta(days=20))
    say("土曜は燃えないゴミの日")
    say("金曜は燃えるゴミの日" if not query.isascii() else "On Fridays I go swimming")
    assert "金" in contents(ask(query))[0] or "Fridays" in contents(ask(query))[0]


@pytest.mark.parametrize("query", ["今日の予定は？", "What is planned for today?"])
def test_of_plans_under_way_the_shorter_comes_first(say, ask, now, query):
    say("10月は繁忙期", at=now - timedelta(days=25))
    say("10月27日から11月2日まで出張", at=now - timedelta(days=30))
    say("10月30日に歯医者に行く", at=now - timedelta(days=20))
    say("11月6日に面談がある", at=now - timedelta(days=20))
    assert contents(ask(query)) == ["10月30日に歯医者に行く", "10月27日から11月2日まで出張", "10月は繁忙期"]


def test_what_is_planned_for_today_comes_before_what_is_later(say, ask, now):
    say("来週の火曜に歯医者へ行く", at=now - timedelta(days=2))
    say("10月30日に面談がある", at=now - timedelta(days=20))
    say("今日は雨だった", at=now - timedelta(hours=2))
    assert contents(ask("予定は？"))[:2] == ["10月30日に面談がある", "来週の火曜に歯医者へ行く"]


def test_a_weekend_alone_is_a_time(say, ask, now):
    say("週末に京都に行った", at=now - timedelta(days=2))
    say("週末に実家へ帰る", at=now - timedelta(days=1))
    say("週末はよく走る")
    assert contents(ask("週末は何してた？"))[0] == "週末に京都に行った"
    assert contents(ask("週末の予定は？"))[0] == "週末に実家へ帰る"
    assert contents(ask("週末によく走る？"))[0] == "週末はよく走る"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("2023年に何があった？", "2023年に犬を飼い始めた"),
        ("1998年", "1998年生まれの弟がいる"),
        ("1998年生まれなのは誰？", "1998年生まれの弟がいる"),
        ("平成10年", "1998年生まれの弟がいる"),
        ("令和7年に何をした？", "令和7年に転職した"),
        ("2025年", "令和7年に転職した"),
        ("2015年", "２０１５年に家を建てた"),
        ("二〇一九年に何があった？", "令和元年に結婚した"),
        ("What happened in 2021?", "In 2021 I adopted a dog named Rex"),
    ],
)
def test_a_year_is_found_in_whichever_way_a_text_writes_it(say, ask, query, found):
    for text in [
        "2023年に犬を飼い始めた",
        "1998年生まれの弟がいる",
        "令和7年に転職した",
        "２０１５年に家を建てた",
        "令和元年に結婚した",
        "In 2021 I adopted a dog named Rex",
        "苺が好き",
    ]:
        say(text)
    answer = ask(query)
    assert found in contents(answer)
    assert answer.unmatched == ()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("昭和50年に何があった？", "昭和五十年に店を開いた"),
        ("1975年", "昭和五十年に店を開いた"),
        ("令和6年度に何をした？", "令和6年度に異動した"),
        ("2024年に何をした？", "令和6年度に異動した"),
        ("2018年の春は？", "2018年の春に引っ越した"),
        ("2012年頃は？", "I lived in Paris back in 2012"),
        ("Where was I from 2010 to 2013?", "I lived in Paris back in 2012"),
    ],
)
def test_a_year_in_kanji_a_fiscal_year_a_season_and_a_range_of_years_are_found_by_what_a_text_writes(say, ask, query, found):
    for text in ["昭和五十年に店を開いた", "令和6年度に異動した", "2018年の春に引っ越した", "I lived in Paris back in 2012", "苺が好き"]:
        say(text)
    answer = ask(query)
    assert found in contents(answer)
    assert answer.unmatched == ()


@pytest.mark.parametrize(
    "query",
    [
        "昨日言ってた結婚式",
        "昨日話してた結婚式のことを教えて",
        "昨日相談した結婚式",
        "the wedding that you mentioned yesterday: 結婚式",
        "Yesterday I told you about 結婚式",
    ],
)
def test_what_was_said_on_a_day_is_asked_for_by_that_day(say, ask, now, query):
    say("昨日の結婚式は雨だった", at=now - timedelta(days=9))
    say("亮介の結婚式は来年の6月20日", at=now - timedelta(days=1))
    say("結婚式の引き出物を選んだ", at=now - timedelta(days=5))
    assert contents(ask(query))[0] == "亮介の結婚式は来年の6月20日"


def test_a_text_is_read_for_its_dates_once_when_it_is_stored(say, nilou, now, zone, monkeypatch):
    """The day of telling, the days of the memory and those of the graph need the same dates."""
    text, read = "10月17日の日記：明日、健太と京都へ行く", []
    for step in ("normalized_further", "calendar_dates", "recognized_in"):
        for module in [module for name, module in sys.modules.items() if name.startswith("memory_mcp.") and hasattr(module, step)]:
            function = getattr(module, step)
            monkeypatch.setattr(module, step, lambda *of, step=step, function=function: read.append((step, of[0])) or function(*of))
    memory = say(text, occurred_at="昨日")
    assert sorted(step for step, of in read if "京都" in of) == ["normalized_further", "recognized_in"]
    read.clear()
    revise(nilou, memory.key, Revision(content=text.replace("京都", "大阪")), now=now.astimezone(zone), privacy=Privacy())
    assert sorted(step for step, of in read if "大阪" in of) == ["normalized_further", "recognized_in"]


@pytest.mark.parametrize("query", ["来年の春はどうする？", "来年の春", "来年の予定は？"])
def test_a_time_too_long_to_be_that_of_a_memory_is_found_as_it_is_written(diary, say, ask, query):
    say("来年の春に留学する")
    found = ask(query)
    assert contents(found) == ["来年の春に留学する"]
    assert found.unmatched == ()
    assert "来年の春に留学する" not in contents(ask("来年の夏はどうする？"))
