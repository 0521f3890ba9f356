"""Which days a text names: each that it lists, both ends of a range, in figures, in Japanese and in English; and what only looks like one."""

from datetime import date

import pytest

from memory_mcp.graph.extract.extraction import TEXT_LIMIT, extract_mentions

SAID_ON = date(2025, 10, 30)


def days_in(text, stated_on=SAID_ON):
    return [one.name for one in extract_mentions(text, (), stated_on=stated_on) if one.subtype == "day"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("10月17日〜19日に旅行した", ["2025-10-17", "2025-10-19"]),
        ("10月17日から19日まで京都にいた", ["2025-10-17", "2025-10-19"]),
        ("10月17日と18日に会った", ["2025-10-17", "2025-10-18"]),
        ("10月17日(金)〜19日(日)は出張", ["2025-10-17", "2025-10-19"]),
        ("10月17日、18日、19日は休み", ["2025-10-17", "2025-10-18", "2025-10-19"]),
        ("十月十七日から十九日まで", ["2025-10-17", "2025-10-19"]),
        ("2024年10月17日～19日の旅", ["2024-10-17", "2024-10-19"]),
        ("10月17日〜11月3日に会った", ["2025-10-17", "2025-11-03"]),
        ("12月28日から1月3日まで帰省した", ["2024-12-28", "2025-01-03"]),
        ("2024年12月28日〜1月3日は帰省", ["2024-12-28", "2025-01-03"]),
        ("10/17〜10/19は旅行", ["2025-10-17", "2025-10-19"]),
        ("10/17〜19は旅行", ["2025-10-17", "2025-10-19"]),
        ("2025/10/17-19に行った", ["2025-10-17", "2025-10-19"]),
        ("2025-10-17..2025-10-19", ["2025-10-17", "2025-10-19"]),
        ("October 17-19 in Kyoto", ["2025-10-17", "2025-10-19"]),
        ("from Oct 17th to Oct 19th", ["2025-10-17", "2025-10-19"]),
        ("October 17, 18 and 19, 2024", ["2024-10-17", "2024-10-18", "2024-10-19"]),
        ("17-19 October 2024", ["2024-10-17", "2024-10-19"]),
    ],
)  # fmt: skip
def test_a_text_names_each_day_that_it_lists_and_both_ends_of_a_range(text, days):
    assert days_in(text) == days


@pytest.mark.parametrize(
    "text",
    [
        "10月17日から3日間の旅", "10月17日から20日かかった", "10月17日から20日も寝込んだ", "10月17日から20日で作った", "10月17日と20日後", "10月17日、20日ぶりに会った",
        "10月17日、20日入院した", "10月17日から5日", "10月17日と32日に会った", "October 17 and 18 people came", "October 17, 20 people came", "10月17日から20日以内",
    ],
)  # fmt: skip
def test_so_many_days_are_no_further_day(text):
    assert days_in(text) == ["2025-10-17"]


def test_a_day_that_shares_the_month_of_another_is_called_by_its_whole_date():
    _, last = (one for one in extract_mentions("10月17日〜19日に旅行した", (), stated_on=SAID_ON) if one.subtype == "day")
    assert last.aliases == ("2025年10月19日", "10月19日")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("１２/１７に会った", "2024-12-17"), ("１２／１７に会った", "2024-12-17"), ("２０２６／１０／１７", "2026-10-17"), ("2026.10.17に会う", "2026-10-17"), ("会うのは2026.10.7。", "2026-10-07"),
        ("We met on October 17.", "2025-10-17"), ("We met on Oct. 17", "2025-10-17"), ("Oct 17th, 2026", "2026-10-17"), ("the 17th of October 2026", "2026-10-17"),
        ("The wedding was on 17 October", "2025-10-17"), ("Dad had surgery on december 3rd", "2024-12-03"), ("the report is due 2026-10-17", "2026-10-17"),
        ("On March 3 we met", "2025-03-03"), ("May 5 is Children's Day", "2025-05-05"), ("May 5th I saw Ken", "2025-05-05"), ("I met him on 5 May.", "2025-05-05"),
        ("10月17日に会った", "2025-10-17"), ("Oct 17に会った", "2025-10-17"), ("We moved in October 2024", "2024-10"), ("my birthday is October 17", "10月17日"),
        ("She was born on October 17", "10月17日"), ("every year on October 17 we meet", "10月17日"),
    ],
)  # fmt: skip
def test_a_day_may_be_written_as_one_likes(text, day):
    assert days_in(text) == [day]


def test_an_english_sentence_tells_the_year_of_its_day():
    stated_on = date(2026, 2, 10)
    assert days_in("The wedding is on October 17", stated_on) == ["2026-10-17"]
    assert days_in("We went to Kyoto on October 17", stated_on) == ["2025-10-17"]


@pytest.mark.parametrize(
    "text",
    [
        "Python 3.10.17 を入れた", "1.2.3", "v2026.10.17", "yt-dlp 2026.10.17 を入れた", "バージョン2026.10.17", "version 2026.10.17", "pip==2026.10.1", "2026.10.17.1 を入れた", "2026.13.17",
        "2026.10.17-beta", "1/2の量", "１／２の量", "1/2〜3/4カップ", "3/4〜1/2", "192.168.10.17",
        "I may 5 times", "May 5 people come?", "March 3 miles a day", "they march 3 miles", "may 17 be it", "in October", "October was warm", "October 45", "at October 10:30",
        "October 17% off", "Mayor 5", "Decade 5", "Section 17.10 October fest", "Octopus 8", "10-17 people", "Mark 3, 2026", "Oct 1.5",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_day_is_none(text):
    assert days_in(text) == []


@pytest.mark.parametrize(
    "said", ["10月17日〜", "10月17日、18日、19日", "October 17, 18 and ", "17-19-", "10/17〜", "2026.", "May 5 ", "17 and 18 "]
)
def test_a_text_full_of_days_is_read_as_fast_as_any(said):
    """What is read again for each day in it takes minutes: the test's own timeout tells."""
    days_in((said * TEXT_LIMIT)[:TEXT_LIMIT])
