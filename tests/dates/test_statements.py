"""The days that a statement is about, as meant on the day on which it was made."""

from datetime import date, timedelta

import pytest

from memory_mcp.dates.statements import SPANS_LIMIT, days_of_statement

SAID_ON = date(2025, 11, 5)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("昨日の夕飯はカレー", ["11-04..11-05"]),
        ("返却期限は12月1日", ["12-01..12-02"]),
        ("来週の火曜に健太と会う", ["11-11..11-12"]),
        ("18日に予防接種を受ける予定", ["11-18..11-19"]),
        ("3日に歯医者へ行った", ["11-03..11-04"]),
        ("dinner was curry last night", ["11-04..11-05"]),
        ("The book is due on December 1.", ["12-01..12-02"]),
        ("来月から禁煙する", ["12-01..01-01"]),
        ("昨日は寿司、明日は鍋", ["11-04..11-05", "11-06..11-07"]),
        ("10月分の請求は3万円", ["10-01..11-01"]),
        ("12月分の家賃を払った", ["12-01..01-01"]),
        ("The bill for October was 300 dollars", ["10-01..11-01"]),
        ("A gift for June", []),
        ("2日分の着替え", []),
        ("12/3 14:00 面談", ["12-03..12-04"]),
        ("12/3 歯医者", ["12-03..12-04"]),
        ("1/5 14時に面談", ["01-05..01-06"]),
        ("1/2 カップの砂糖", []),
        ("2/3 程度", []),
        ("金曜の19時から忘年会", ["11-07..11-08"]),
        ("金曜の3本立て", []),
        ("in two weeks we have the exam", ["11-17..11-24"]),
        ("今年は忙しい", []),  # too long to say anything
        ("I may go there", []),
        ("土曜は雨", []),  # the last or the next one
        ("苺が好き", []),
    ],
)
def test_a_statement_names_days(text, days):
    assert sorted(f"{first:%m-%d}..{after:%m-%d}" for first, after in days_of_statement(text, SAID_ON)) == sorted(days)


@pytest.mark.parametrize(
    "text",
    [
        "誕生日は10月3日",
        "結婚記念日は10月3日です",
        "毎年10月3日に健康診断がある",
        "祖父の命日は10月3日",
        "締切は毎年10月3日",
        "10月3日は母の誕生日なので帰省する",
        "誕生日は10月3日だった",
        "My birthday is October 3.",
    ],
)
def test_a_day_of_every_year_is_the_last_and_the_next_ones(text):
    days = [first for first, _ in days_of_statement(text, SAID_ON)]
    assert days == [date(year, 10, 3) for year in range(2025, 2031)]


def test_what_happened_on_a_day_of_every_year_was_on_the_last_one():
    assert [first for first, _ in days_of_statement("誕生日の10月3日に時計をなくした", SAID_ON)] == [date(2025, 10, 3)]


def test_what_is_planned_for_a_day_of_every_year_is_on_the_next_one():
    assert [first for first, _ in days_of_statement("10月3日の誕生日に寿司を食べに行く", SAID_ON)] == [date(2026, 10, 3)]


def test_a_day_of_every_year_is_one_of_the_calendar():
    assert [first.year for first, _ in days_of_statement("誕生日は2月29日", SAID_ON)] == [2024, 2028]
    assert [first.year for first, _ in days_of_statement("誕生日は11月5日", SAID_ON)][:2] == [2025, 2026]
    assert [first.year for first, _ in days_of_statement("誕生日は10月3日", date(9998, 11, 5))] == [9998]


COUNTED_DAYS = (
    "火・水・木の三日は在宅で働いた 火水木の三日に出社した 月、水、金の3日に走った 火木の二日で終わらせた 月水金の週3日働いた "
    "丸三日寝ていた まる3日かかった その三日で治った 最初の三日は雨だった 残り三日で仕上げた あと三日で終わる予定 たった三日で辞めた わずか3日で売り切れた "
    "三日に一度走った 3日に1回電話した 二日に一遍は行った 三日おきに水をやった 三日ごとに替えた 3日毎に替えた 三日連続で負けた 三日続けて休んだ "
    "三日ぶりに会った 三日がかりで直した 三日かけて直した 三日もかかった 三日ほど休んだ 三日ぐらい休んだ 三日ばかり休んだ 三日余り寝た 三日分の薬をもらった "
    "三日に渡る会議だった 三日三晩寝なかった 三日以上待った 週に三日通った 月に二日休んだ 年に十日休んだ 三日坊主で終わった 三日天下だった "
    "一日中雨だった 一日三食食べた 1日2回飲んだ 1日8時間働いた 一日じゅう寝た 二日酔いだった 三日とも晴れた 三日経った 三日が経った "
    "仕込みに2日かかる 配送は3日で届く 許可まで7日かかります ギプスは5日で外れる 3日もすれば治る 3日もあれば終わる 3日はもつ予定 この薬は7日飲みきること 1日2リットル水を飲むつもり "
    "2日〜3日で届く 2日か3日かかる 1日に2リットル飲むこと 3日に10時間寝た 3日寝かせること 3日入院する予定 3日出張した 7日を要する予定 3日のんびりした 3日よく寝た 3日やすんだ"
).split()
COUNTED_IN_ENGLISH = [
    "I lived on the 2nd floor",
    "it was my 3rd time there",
    "she was in 4th grade",
    "it took three days of work",
    "he won 2nd place",
]


@pytest.mark.parametrize("text", [*COUNTED_DAYS, *COUNTED_IN_ENGLISH])
def test_a_count_is_no_day_of_the_month(text):
    assert days_of_statement(text, SAID_ON) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("木曜の6日に会った", ["10-06"]),
        ("3日は休みだった", ["11-03"]),
        ("3日も会った", ["11-03"]),
        ("3日まで休んだ", ["11-03"]),
        ("食べたあと3日に会った", ["11-03"]),
        ("3日中に届いた", ["11-03"]),
        ("2日、3日と会った", ["11-02", "11-03"]),
        ("3日と4日とも会った", ["11-03", "11-04"]),
        ("ここ三日は雨だった", ["11-03", "11-04", "11-05"]),
        ("12日は歯医者", ["11-12"]),
        ("8日の夜に会う", ["11-08"]),
        ("8日夜に会う", ["11-08"]),
        ("13日14時に集合する", ["11-13"]),
        ("14日(金)に会う", ["11-14"]),
        ("14日金曜に会う", ["11-14"]),
        ("25日、会議がある", ["11-25"]),
        ("締切は17日", ["11-17"]),
        ("締切は17日です", ["11-17"]),
        ("新作は17日発売", ["11-17"]),
        ("17日会議の予定", ["11-17"]),
        ("17日からか18日から休む", ["11-17", "11-18"]),
        ("17日か18日に会う", ["11-17", "11-18"]),
        ("17日に2回目の接種を受ける", ["11-17"]),
        ("17日に本を返す", ["11-17"]),
        ("17日前後に会う", ["11-17"]),
        ("we met on the 3rd at noon", ["11-03"]),
        ("the 3rd was rainy", ["11-03"]),
    ],
)
def test_the_days_beside_counts_stay_days(text, days):
    named = (first + timedelta(passed) for first, after in days_of_statement(text, SAID_ON) for passed in range((after - first).days))
    assert sorted(f"{day:%m-%d}" for day in named) == days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("11月2日のライブは中止になった", ["11-02"]),
        ("11月12日の面談は15時に変更になった", ["11-12"]),
        ("11月12日の面談で、納期は11月20日に変更になった", ["11-12", "11-20"]),
        ("11月12日の会議の資料は11月10日に変更", ["11-12", "11-10"]),
        ("11月20日の準備は11月4日にした", ["11-20", "11-04"]),
        ("11月16日のライブは中止にならない", ["11-16"]),
        ("11月16日の宿はキャンセルできる", ["11-16"]),
        ("11月16日の宿のキャンセル料は5千円", ["11-16"]),
        ("11月16日の会議の資料を作った", ["11-16"]),
        ("昨日の残りのカレーがなくなった", ["11-04"]),
        ("11月16日のバーベキューは雨天中止", ["11-16"]),
        ("11月9日ではないか", ["11-09"]),
        ("We moved to Osaka on November 1 and go to Kyoto on November 9.", ["11-01", "11-09"]),
        ("The concert on November 16 was not cancelled.", ["11-16"]),
        ("It can be cancelled until November 16.", ["11-16"]),
        ("Moved the dentist to November 20.", ["11-20"]),
        ("The party was postponed to November 24.", ["11-24"]),
    ],
)
def test_the_days_beside_a_change_stay(text, days):
    assert [f"{first:%m-%d}" for first, _ in days_of_statement(text, SAID_ON)] == days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("11月6日から8日まで出張。", "11-06..11-08"),
        ("旅行は11月26日から28日まで京都。", "11-26..11-28"),
        ("11月6日〜8日は実家に帰省する。", "11-06..11-08"),
        ("11月28日(金)から12月1日(月)まで旅行", "11-28..12-01"),
        ("12月28日から1月3日まで帰省する", "12-28..01-03"),
        ("11/6-11/8 京都旅行", "11-06..11-08"),
        ("11/28〜12/1 京都旅行", "11-28..12-01"),
        ("11/5-7", "11-05..11-07"),
        ("11/6〜11/12開催", "11-06..11-12"),
        ("旅行(11/6〜11/12)", "11-06..11-12"),
        ("（11/6-11/12）京都旅行", "11-06..11-12"),
        ("11/6~11/12限定", "11-06..11-12"),
        ("trip 11/6-11/12.", "11-06..11-12"),
        ("11/6-11/12 in Kyoto", "11-06..11-12"),
        ("11/5-7 京都", "11-05..11-07"),
        ("11/5-7 in Kyoto", "11-05..11-07"),
        ("Nov 9-13 in Kyoto", "11-09..11-13"),
        ("Kyoto, Nov 9–13", "11-09..11-13"),
        ("Nov 24-26: Osaka", "11-24..11-26"),
        ("24-26 Nov Osaka", "11-24..11-26"),
        ("Osaka Nov 28 - Dec 1", "11-28..12-01"),
        ("12/20-1/5は休み", "12-20..01-05"),
        ("11月6日の夜から8日の朝まで出張", "11-06..11-08"),
        ("11月6日10時から11月8日15時まで合宿をする", "11-06..11-08"),
        ("17日から19日まで出張する", "11-17..11-19"),
        ("来月の5日から7日まで出張", "12-05..12-07"),
        ("来週の月曜から水曜まで休む", "11-10..11-12"),
        ("明日から明後日まで留守にする", "11-06..11-07"),
        ("明日から3日間、大阪に出張。", "11-06..11-08"),
        ("11月20日から二泊三日で温泉に行く", "11-20..11-22"),
        ("11月20日から2週間休む", "11-20..12-03"),
        ("昨日から二日間寝込んだ", "11-04..11-05"),
        ("The conference runs from November 18 to November 20.", "11-18..11-20"),
        ("We are in Kyoto November 26-28.", "11-26..11-28"),
        ("I will be away between November 18 and November 20.", "11-18..11-20"),
    ],
)
def test_a_range_is_all_of_its_days(text, days):
    begin, end = days.split("..")
    named = [f"{first:%m-%d}..{after - timedelta(1):%m-%d}" for first, after in days_of_statement(text, SAID_ON)]
    assert named == [f"{begin}..{begin}", f"{end}..{end}", days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("11月6日と8日に会う", ["11-06", "11-08"]),
        ("11月20日から来年の2月10日まで休職する", ["11-20", "02-10"]),  # too long to say anything, except of its ends
        ("11月6日から3日以内に返す", ["11-06"]),
        ("カップは1/2-3/4", []),
        ("I ate 1/2-3 cups", []),
        ("Score 11/24-26 points", []),
        ("march 5-7 miles", []),
        ("jan 3-5%", []),
        ("I am busy on November 18 and November 20.", ["11-18", "11-20"]),
    ],
)
def test_what_is_no_range_is_each_of_its_days(text, days):
    assert [f"{first:%m-%d}" for first, after in days_of_statement(text, SAID_ON) if after - first == timedelta(1)] == days


def test_a_list_of_dates_has_an_end():
    assert len(days_of_statement("、".join(f"11月{day}日" for day in range(1, 28)), SAID_ON)) == SPANS_LIMIT


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("来週から出張", ["11-10..11-17"]),
        ("来月から禁煙する", ["12-01..01-01"]),
        ("来週は在宅になる", ["11-10..11-17"]),
        ("今週は休み", ["11-03..11-10"]),
        ("今週は休み、25日に出社する", ["11-03..11-10", "11-25..11-26"]),
    ],
)
def test_what_begins_is_on_its_first_day_and_a_week_that_is_skipped_is_none_of_a_plan(text, days):
    assert [f"{first:%m-%d}..{after:%m-%d}" for first, after in days_of_statement(text, SAID_ON)] == days
