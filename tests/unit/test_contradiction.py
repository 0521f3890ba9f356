"""Which pairs of memories may contradict each other, and that those which merely look so are left alone."""

import pytest

from memory_mcp.language.contradiction import contradicting


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("田中さんは苺が好き", "田中さんは苺が嫌い", "opposite"),
        ("苺が好き", "苺が嫌い", "opposite"),
        ("苺が好き。", "苺は嫌い。", "opposite"),
        ("苺も好き", "私は苺が嫌い", "opposite"),
        ("チームの移転に賛成です。", "チームの移転には反対です。", "opposite"),
        ("海老を食べる。", "海老は食べない。", "opposite"),
        ("健太は来る", "健太が来ない", "opposite"),
        ("誕生日は10月3日", "誕生日は9月3日", "another value"),
        ("I can eat nuts", "I can't eat nuts", "opposite"),
        ("田中さんは明日京都へ行く", "田中さんは明日京都へ行かない", "opposite"),
        ("鈴木さんは海老を食べられる", "鈴木さんは海老を食べられない", "opposite"),
        ("佐藤さんは移転に賛成です", "佐藤さんは移転に反対です", "opposite"),
        ("花火大会は開催される", "花火大会は中止される", "opposite"),
        ("Kim likes green tea", "Kim hates green tea", "opposite"),
        ("Kim eats meat at home", "Kim doesn't eat meat at home", "opposite"),
        ("田中さんの誕生日は10月3日です", "田中さんの誕生日は9月3日です", "another value"),
        ("プロジェクトAの締切は10月17日。", "プロジェクトAの締切は10月20日になった", "another value"),
        ("鈴木さんの職業は医者です", "鈴木さんの職業は教師です", "another value"),
        ("Kim's birthday is May 3", "Kim's birthday is June 3", "another value"),
    ],
)
def test_what_is_said_and_denied_or_has_two_values_may_contradict(one, other, why):
    assert contradicting(one, other) == contradicting(other, one) == why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("田中さんは苺が好き", "田中さんは桃が嫌い"),
        ("苺が好き", "桃が嫌い"),
        ("苺が好き。", "苺の種は嫌い。"),
        ("犬が猫を追う", "犬を猫が追わない"),
        ("締切は金曜", "締切は月曜"),
        ("田中さんは苺が好き", "鈴木さんは苺が嫌い"),
        ("田中さんは苺が好き", "田中さんは苺が大好き"),
        ("毎日りんごを食べる", "毎日みかんを食べない"),
        ("昨日は東京で会議だった", "今日は大阪で会議ではない"),
        ("田中さんの誕生日は10月3日です", "鈴木さんの誕生日は9月3日です"),
        ("鈴木さんの出身は京都です", "鈴木さんの出身は京都の宇治です"),
        ("田中さんの好きな果物は苺", "田中さんの好きな果物は桃"),
        ("7月3日に京都へ行った", "7月4日に京都へ行った"),
        ("田中さんは来ないわけではない", "田中さんは来る"),
        ("Kim likes green tea", "Kim hates black coffee"),
        ("Kim likes tea. It rained.", "Kim hates tea. It rained."),
        ("はい", "いいえ"),
        ("", "ない"),
    ],
)
def test_what_merely_looks_alike_does_not(one, other):
    assert contradicting(one, other) is contradicting(other, one) is None
