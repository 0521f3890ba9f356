"""From which day the words of a text count: the nearest date that governs them, else the day on which it was told, else none."""

from datetime import date, timedelta

import pytest

from memory_mcp.dates.statements import days, days_of_statement

TOLD_ON = date(2026, 11, 27)  # a Friday

DIARIES = [
    ("2019年10月17日（木）の日記：明日は引っ越しの荷造り。", "2019-10-17 2019-10-18"),
    ("2019年10月17日の日記\n明日は引っ越しの荷造り。", "2019-10-17 2019-10-18"),
    ("2019年10月17日（木）\n\n昨日は母と電話した。\n明後日は遠足。", "2019-10-17 2019-10-16 2019-10-19"),
    ("２０１９年１０月１７日　晴れ。明日は遠足。", "2019-10-17 2019-10-18"),
    ("令和元年10月17日 晴れ\n明日は遠足。", "2019-10-17 2019-10-18"),
    ("# 2019-10-17\n明日は遠足。\n\n# 2019-10-20\n昨日は雨だった。", "2019-10-17 2019-10-18 2019-10-20 2019-10-19"),
    ("## 2019/10/17 (木)\n来週の金曜に面談。", "2019-10-17 2019-10-25"),
    ("■2019.10.17\n先週の土曜に買った靴が壊れた。", "2019-10-17 2019-10-12"),
    ("【2019年10月17日】\n明日から三日間、大阪。", "2019-10-17 2019-10-18 2019-10-20 2019-10-18..2019-10-20"),
    ("日記 2019-10-17\n明日は遠足", "2019-10-17 2019-10-18"),
    ("11月20日（金）の日記\n明日は遠足。", "2026-11-20 2026-11-21"),
    ("11月20日\n明日は遠足。\n\n11月24日\n昨日は休みだった。", "2026-11-20 2026-11-21 2026-11-24 2026-11-23"),
    ("2019年12月30日の日記\n1月3日に帰省する。", "2019-12-30 2020-01-03"),
    ("京都旅行 2019-10-17\n\n明日は金閣寺。", "2019-10-17 2019-10-18"),
    ("October 17, 2019\nTomorrow I move to Osaka.", "2019-10-17 2019-10-18"),
    ("October 17, 2019: tomorrow I move to Osaka.", "2019-10-17 2019-10-18"),
    ("Thursday, October 17, 2019\n\nYesterday was rainy.", "2019-10-17 2019-10-16"),
    ("# October 17, 2019\n\nWe met Ken last Friday.", "2019-10-17 2019-10-11"),
    ("Diary, 17 October 2019\nI will see the dentist tomorrow.", "2019-10-17 2019-10-18"),
    ("2019-10-17\n\nYesterday: curry.\n\n2019-10-19\n\nYesterday: soup.", "2019-10-17 2019-10-16 2019-10-19 2019-10-18"),
]
CHATS = [
    ("[2019-10-17 21:30] 健太: 明日、歯医者に行ってくる", "2019-10-17 2019-10-18"),
    ("2019/10/17 21:30 健太: 明日、歯医者に行ってくる", "2019-10-17 2019-10-18"),
    ("2019/10/17(木)\n21:30\t健太\t明日、歯医者に行ってくる\n21:31\t母\t昨日も行ったね", "2019-10-17 2019-10-18 2019-10-16"),
    ("健太 2019-10-17 21:30: 明日、歯医者", "2019-10-17 2019-10-18"),
    ("健太 [2019/10/17 21:30]\n明日は歯医者", "2019-10-17 2019-10-18"),
    ("[2019-10-17 21:30:15] Ken: see you tomorrow", "2019-10-17 2019-10-18"),
    ("2019-10-17T21:30:00+09:00 Ken: see you tomorrow", "2019-10-17 2019-10-18"),
    ("10/17/2019, 9:30 PM - Ken: see you tomorrow", "2019-10-17 2019-10-18"),
    ("[2019-10-17 21:30] A: 明日ね\n[2019-10-19 09:00] B: 昨日はありがとう", "2019-10-17 2019-10-18 2019-10-19"),
    ("- 2019-10-17 明日は休み", "2019-10-17 2019-10-18"),
]
MEETINGS = [
    ("議事録 2025-03-01\n明日までに資料を送る。", "2025-03-01 2025-03-02"),
    ("議事録 2025-03-01 明日までに資料を送る。", "2025-03-01 2025-03-02"),
    ("議事録（2025年3月1日）\n次回は来週の金曜。", "2025-03-01 2025-03-07"),
    ("日時：2025年3月3日（月）10:00〜11:00\n決定：来週の月曜に再開する。", "2025-03-03 2025-03-10"),
    ("定例会議\n日付: 2025/03/03\n・明日、見積もりを出す", "2025-03-03 2025-03-04"),
    ("# 定例 2025-03-03\n\n## 宿題\n明日までに見積もり。", "2025-03-03 2025-03-04"),
    ("打ち合わせメモ 2025年3月3日\n4月10日に納品する。", "2025-03-03 2025-04-10"),
    ("作成日：令和7年3月3日\n昨日、契約した。", "2025-03-03 2025-03-02"),
    ("Meeting notes, March 3, 2025\nKen sends the draft tomorrow.", "2025-03-03 2025-03-04"),
    ("Date: 2025-03-03\nAction: call the vendor next Friday.", "2025-03-03 2025-03-14"),
    ("Minutes 2025-03-03\n\nWe met the team yesterday.", "2025-03-03 2025-03-02"),
    ("## Standup 2025-03-03\ntoday: review\n\n## Ideas\nRelease tomorrow", "2025-03-03 2026-11-28"),
    ("## 2025-03-03 定例\n明日までに直す\n## そのほか\n明日は休み", "2025-03-03 2025-03-04 2026-11-28"),
]
LETTERS = [
    ("2024年5月3日\n\n田中様\n\n来週の金曜に伺います。", "2024-05-03 2024-05-10"),
    ("令和6年5月3日\n拝啓　昨日はありがとうございました。", "2024-05-03 2024-05-02"),
    ("May 3, 2024\n\nDear Ken,\n\nI arrive next Friday.", "2024-05-03 2024-05-10"),
    ("3 May 2024\n\nDear Ken,\nthank you for yesterday.", "2024-05-03 2024-05-02"),
    ("From: Ken\nSent: Fri, 3 May 2024 21:30:00 +0900\n\nSee you tomorrow.", "2024-05-03 2024-05-04"),
]
# A date of which something is said governs nothing, nor does one to come.
NO_ANCHORS = [
    ("2019年10月17日に犬を飼い始めた。明日は病院。", "2019-10-17 2026-11-28"),
    ("2019年10月17日は雨だった。昨日も雨だった。", "2019-10-17 2026-11-26"),
    ("10月17日から入院していた。明日は退院。", "2026-10-17 2026-11-28"),
    ("12月1日 歯医者\n明日は買い物", "2026-12-01 2026-11-28"),
    ("締切: 2026-11-20\n明日は休み", "2026-11-20 2026-11-28"),
    ("生年月日: 1980-05-03\n明日は誕生日会", "1980-05-03 2026-11-28"),
    ("入社日 2019-04-01\n明日は面談", "2019-04-01 2026-11-28"),
    ("On October 17, 2019 we moved. Tomorrow is a holiday.", "2019-10-17 2026-11-28"),
    ("October 17, 2019 was rainy. Tomorrow I rest.", "2019-10-17 2026-11-28"),
    ("The contract of 2019-10-17 ends tomorrow.", "2019-10-17 2026-11-28"),
    ("Deadline: 2026-11-20\nI rest tomorrow.", "2026-11-20 2026-11-28"),
    ("明日は歯医者", "2026-11-28"),
    ("I see the dentist tomorrow", "2026-11-28"),
]
UNDATED = [
    ("明日は歯医者", ""),
    ("来週の金曜に面談がある", ""),
    ("昨日は雨だった", ""),
    ("The dentist is tomorrow", ""),
    ("last week we moved", ""),
    ("12月1日に歯医者", ""),
    ("金曜に歯医者に行く", ""),
    ("クリスマスに会う", ""),
    ("2019年10月17日に引っ越した。明日は休み。", "2019-10-17"),
    ("We moved on October 17, 2019 and rest tomorrow.", "2019-10-17"),
    ("2019年10月17日の日記\n明日は引っ越し。", "2019-10-17 2019-10-18"),
    ("議事録 2025-03-01\n明日までに資料を送る。", "2025-03-01 2025-03-02"),
    ("# 2019-10-17\nTomorrow: dentist", "2019-10-17 2019-10-18"),
    ("2019年3月に引っ越した", "2019-03-01..2019-03-31"),
]
PARTS = [
    ("ひなた珈琲、来月いっぱいで辞める", "2026-12-31"),
    ("3月いっぱいで退職する", "2027-03-31"),
    ("今週いっぱい休む", "2026-11-29"),
    ("来月末に引っ越す", "2026-12-21..2026-12-31"),
    ("来月の初めに引っ越す", "2026-12-01..2026-12-10"),
    ("I quit at the end of next month", "2026-12-31"),
    ("We move early next month", "2026-12-01..2026-12-10"),
    ("来月引っ越す", "2026-12-01..2026-12-31"),
    ("月末までに家賃を払う", "2026-11-30"),
    ("年内に引っ越す", "2026-12-31"),
    ("今月中に提出する", "2026-11-30"),
    ("今月中に提出した", "2026-11-01..2026-11-30"),
    ("年内いっぱい休む", "2026-12-31"),
    ("The report is due by the end of the month", "2026-11-30"),
    ("来週前半に打ち合わせ", "2026-11-30..2026-12-02"),
    ("来週Fridayに会う", "2026-12-04"),
    ("next week月曜に会議", "2026-11-30"),
    ("3日後に返す", "2026-11-30"),
    ("We move three weeks from now", "2026-12-18"),
]
# A year in front of a date, in a word or in figures, is its year.
YEARS = [
    ("一昨年の12月に出会った", "2024-12-01..2024-12-31"),
    ("去年のクリスマスは雪だった", "2025-12-25"),
    ("2020年の正月に帰省した", "2020-01-01..2020-01-03"),
    ("昭和五十年五月三日に生まれた", "1975-05-03"),
    ("令和6/5/3に入社した", "2024-05-03"),
    ("December 1,2023 was rainy", "2023-12-01"),
    ("2024年3月3日に会い、同年5月5日に結婚した", "2024-03-03 2024-05-05"),
    ("天正10年6月2日の変", ""),
]


def named(text, told_on):
    spans = days_of_statement(text, told_on)
    return sorted(str(a) if b - a == timedelta(1) else f"{a}..{b - timedelta(1)}" for a, b in spans)


@pytest.mark.parametrize(("text", "expected"), [*DIARIES, *CHATS, *MEETINGS, *LETTERS, *NO_ANCHORS, *YEARS])
def test_words_count_from_the_date_that_governs_them_and_without_one_from_the_day_of_telling(text, expected):
    assert named(text, TOLD_ON) == sorted(expected.split())


@pytest.mark.parametrize(("text", "expected"), UNDATED)
def test_without_any_date_they_name_no_day(text, expected):
    assert named(text, None) == sorted(expected.split())


@pytest.mark.parametrize(("text", "expected"), PARTS)
def test_the_end_of_a_month_is_its_last_day(text, expected):
    assert named(text, TOLD_ON) == [expected]


@pytest.mark.parametrize("text", ["退院の3日後に会う", "3日後に届いた", "finished it in three days", "10月17日と20日後に会う"])
def test_so_many_days_after_something_else_are_not_counted_from_the_day_of_telling(text):
    assert not {"2026-11-30", "2026-12-17"} & set(named(text, TOLD_ON))


def test_the_days_of_the_graph_have_the_same_anchors():
    text = "2019年12月30日の日記\n1月3日に帰省する。"
    assert [day.name for day in days(text, TOLD_ON)] == ["2019-12-30", "2020-01-03"]
    assert [day.name for day in days(text, None)] == ["2019-12-30", "2020-01-03"]
