"""Which year a date is of that leaves it out: the next where its sentence plans, the last where it tells, else the nearest."""

from datetime import date

import pytest

from memory_mcp.dates.statements import day_called
from memory_mcp.graph.extract.extraction import extract_mentions

# In February the last 10月17日 is the nearest one, and in the middle of June the next one.
SAID_ON = date(2026, 2, 10)
NEXT, LAST, NEAREST = "2026-10-17", "2025-10-17", "2025-10-17"
IN_JUNE = date(2026, 6, 10)

PLANS = [
    "10月17日の夜は空いてる？",
    "10月17日まで有効",
    "10月17日まであと少し",
    "入籍日は10月17日",
    "10月17日に Left 4 Dead を遊ぶ",
    "10月17日に会いたいけど忙しい",
    "10月17日の席を予約したが、まだ払っていない",
    "10月17日に行くのを楽しみにしている",
    "結婚式は10月17日",
    "結婚式は10月17日です。",
    "田中さんの結婚式は10月17日(土)だよ",
    "締切は10月17日",
    "プロジェクトAの締め切りは10/17です",
    "〆切: 10月17日",
    "10月17日が締切",
    "納期は10月17日になった",
    "10月17日までに提出すること",
    "10月17日までにレポートを出す",
    "期限は10月17日まで",
    "10月17日に会う",
    "10月17日に会う予定",
    "10月17日に会う約束をした",
    "10月17日に田中さんと会う約束をしました。",
    "10月17日に会おうと約束した",
    "10月17日に京都に行く",
    "10月17日に京都へ行きます",
    "10月17日に京都に行って抹茶を買う",
    "10月17日に母が来る",
    "10月17日に母が来るので掃除した",
    "10月17日に引っ越しする予定だ",
    "10月17日に歯医者の予約を入れた",
    "10月17日の歯医者を予約した",
    "10月17日のライブのチケットを取った",
    "10月17日開催",
    "新作は10月17日発売",
    "新しいゲームが10月17日に発売される",
    "本番は10月17日",
    "10月17日に会議がある",
    "10月17日は健太の結婚式",
    "10月17日は休みを取りたい",
    "10月17日に行かなければならない",
    "10月17日に田中さんが結婚すると聞いた",
    "結婚式は10月17日だと聞いた",
    "会議は10月17日に決まった",
    "昨日買った服で10月17日に出かける",
    "先日会った田中さんが10月17日に来る",
    "10月17日に着る服を買った",
    "10月17日から旅行に行く",
    "10月17日と10月18日に大阪へ行く",
    "昨日は楽しかった。結婚式は10月17日",
    "10月17日は出社しない",
    "10月17日の14時に歯医者",
    "10月17日14時から会議です",
    "10月17日にまた会いましょう",
    "健太は10月17日に来られないと言っていた",
    "支払いは10月17日",
    "10月17日に新しい店ができる",
    "10月17日に手術を受けることになった",
    "10月17日に本を返してくる",
    "10月17日にプレゼントをあげる",
    "次の通院は10月17日",
    "10月17日が楽しみ",
    "10月17日に雑誌の取材が入った",
    "10月17日に打ち合わせが入りました",
    "10月17日に出張が入ってしまった",
    "10月17日に面接が決まった",
    "10月17日のライブのチケットが当たった",
    "10月17日の東京マラソンに当選した",
    "10月17日の出張を命じられた",
    "上司から10月17日に出張を命じられた",
    "10月17日に有給が取れた",
    "引き渡しは10月17日になった",
    "打ち上げは10月17日に決まった",
    "保護者会は10月17日19時に決まったので行く",
    "飲み会は10月17日に延期になった",
    "テレビの配送は10月17日にしてもらった",
    "花火は10月17日(土)の夜に変更",
    "配達は10月17日の午後にずらした",
]
TOLD = [
    "10月17日に泥棒が入った",
    "10月17日に会議が入っていて行けなかった",
    "10月17日に給料が入った",
    "10月17日に研修に入った",
    "10月17日に優勝が決まった",
    "10月17日に宝くじが当たった",
    "10月17日以来会っていない",
    "10月17日に泊まった宿をまた予約した",
    "10月17日に Must Buy の店へ行った",
    "10月17日(日)に会った",
    "10月17日日曜大工をした",
    "10月17日に行った",
    "10月17日に田中さんに会った。",
    "10月17日に会いました",
    "10月17日は雨だった",
    "10月17日は雨でした。",
    "10月17日に行った店にまた行く予定",
    "10月17日に行った店に、また行きたい",
    "締切は10月17日だった",
    "結婚式は10月17日でした",
    "10月17日の結婚式は楽しかった",
    "10月17日の試合に勝った",
    "10月17日に京都に行って抹茶を買った",
    "10月17日に京都へ行って、とても楽しかった",
    "先日、10月17日に田中さんと食事",
    "この前の10月17日は雨",
    "前回の検診は10月17日",
    "最後に会ったのは10月17日",
    "初めて行った日は10月17日",
    "10月17日に結婚式があった",
    "10月17日に行けなかった",
    "10月17日から入院している",
    "10月17日に早く起きた",
    "10月17日にある店に行った",
    "10月17日に会ったと聞いた",
    "10月17日に田中さんが来た、また来る予定",
    "10月17日までに出した",
    "10月17日に本を読んだ",
    "来月は忙しい。10月17日に会った。また会う予定",
    "10月17日と10月18日に大阪へ行った",
    "10月17日に発売されたゲーム",
    "健太が10月17日に引っ越したらしい",
    "10月17日は一日中寝ていた",
    "10月17日に設定を変更した",
    "パスワードを10月17日に変更した",
    "本社は10月17日に移った",
    "10月17日になって雪が降った",
    "10月17日に新人に決めさせた話を聞いた",
]
# Something was to be and was not: the sentence alone does not tell when.
NEITHER = [
    "10月17日は休み",
    "10月17日のメモ",
    "10月17日",
    "10月17日は金曜",
    "10月17日の会議の資料を作った",
    "10月17日の会議は中止になった",
    "10月17日に飲みに誘われた",
    "10月17日に招待状をもらった",
    "10月17日の飲み会に誘われたが行かなかった",
    "10月17日に同窓会の案内が来た",
    "締切は10月17日だったが、10月24日に延びた",
    "10月17日のことは忘れない",
    "10月17日は働いている",
    "10月17日にリリース予定だったが延期",
    "10月17日は京都に行く予定だった",
    "10月17日の打ち合わせで、納期は11月20日に決まった",
]
ENGLISH = [
    ("Ken is getting married on 10月17日", NEXT),
    ("See you on 10月17日", NEXT),
    ("Can we meet on 10月17日?", NEXT),
    ("Are you free on 10月17日?", NEXT),
    ("Dad has surgery on 10月17日", NEXT),
    ("The contract renews on 10月17日", NEXT),
    ("I was going to call him on 10月17日", LAST),
    ("I should have gone on 10月17日", LAST),
    ("I had planned to go on 10月17日", LAST),
    ("The report is due 10月17日", NEXT),
    ("The deadline is 10月17日.", NEXT),
    ("I will meet Ken on 10月17日", NEXT),
    ("We are going to Kyoto on 10月17日", NEXT),
    ("Finish the draft by 10月17日", NEXT),
    ("The launch is planned for 10月17日", NEXT),
    ("The exam is scheduled for 10月17日", NEXT),
    ("Dentist appointment on 10月17日", NEXT),
    ("I made an appointment for 10月17日", NEXT),
    ("I was told the report is due 10月17日", NEXT),
    ("On 10月17日 I will go to Kyoto", NEXT),
    ("It was great. The wedding is on 10月17日", NEXT),
    ("I booked a table for 10月17日", NEXT),
    ("The interview on 10月17日 was confirmed.", NEXT),
    ("Got tickets for 10月17日!", NEXT),
    ("We were invited to a wedding on 10月17日", NEXT),
    ("Moved the dentist to 10月17日", NEXT),
    ("The party got pushed to 10月17日", NEXT),
    ("They pushed the big launch back to 10月17日", NEXT),
    ("We put it off until 10月17日", NEXT),
    ("We settled on 10月17日 for the launch", NEXT),
    ("We moved to a new house on 10月17日", LAST),
    ("The death was confirmed on 10月17日", LAST),
    ("I got my tickets on 10月17日", LAST),
    ("I got a letter on 10月17日", LAST),
    ("I went to Kyoto on 10月17日", LAST),
    ("I met Ken on 10月17日, who will move to Berlin", LAST),
    ("It was rainy on 10月17日", LAST),
    ("The deadline was 10月17日", LAST),
    ("The report was due 10月17日", LAST),
    ("She said she would come on 10月17日", NEXT),
    ("My flight leaves on 10月17日 at 9", NEXT),
    ("I have been working here since 10月17日", LAST),
    ("We did the move on 10月17日.", LAST),
    ("On 10月17日 I visited Nara", LAST),
]


def day_in(text, stated_on):
    return next(one.name for one in extract_mentions(text, (), stated_on=stated_on) if one.subtype == "day")


@pytest.mark.parametrize("text", PLANS)
def test_what_is_planned_is_on_the_next_such_day(text):
    assert day_in(text, SAID_ON) == NEXT


@pytest.mark.parametrize("text", TOLD)
def test_what_is_told_as_past_was_on_the_last_such_day(text):
    assert day_in(text, IN_JUNE) == LAST


@pytest.mark.parametrize("text", NEITHER)
def test_what_says_neither_is_on_the_nearest_such_day(text):
    assert (day_in(text, SAID_ON), day_in(text, IN_JUNE)) == ("2025-10-17", "2026-10-17")


@pytest.mark.parametrize(("text", "day"), ENGLISH)
def test_an_english_sentence_tells_it_by_its_verb(text, day):
    assert day_in(text, SAID_ON if day == NEXT else IN_JUNE) == day


def test_each_sentence_speaks_for_its_own_day():
    text = "10月17日に会った。次の締切は10月18日。10月19日は金曜"
    assert [one.name for one in extract_mentions(text, (), stated_on=IN_JUNE)] == ["2025-10-17", "2026-10-18", "2026-10-19"]


def test_the_day_itself_is_both_the_next_and_the_last():
    stated_on = date(2026, 10, 17)
    assert (day_in("10月17日に会う", stated_on), day_in("10月17日に会った", stated_on)) == ("2026-10-17", "2026-10-17")


def test_the_29th_of_february_waits_for_its_year():
    assert (day_in("2月29日に会う", SAID_ON), day_in("2月29日に会った", SAID_ON)) == ("2028-02-29", "2024-02-29")


@pytest.mark.parametrize(
    ("relation", "beside", "day"),
    [
        ("deadline", "プロジェクトA", NEXT),
        ("due_on", "プロジェクトA", NEXT),
        ("締切", "プロジェクトA", NEXT),
        ("期限", "プロジェクトA", NEXT),
        ("is", "プロジェクトAの締切", NEXT),
        ("on", "散歩", NEAREST),
    ],
)
def test_a_deadline_in_a_relation_is_on_the_next_such_day(relation, beside, day):
    assert day_called("10月17日", SAID_ON, relation, beside).name == day


def test_what_a_relation_tells_as_past_was_on_the_last_such_day():
    assert day_called("10月17日", IN_JUNE, "met_on", "健太").name == LAST
    assert day_called("10月17日", IN_JUNE, "会った", "健太").name == LAST
    assert day_called("10月17日", IN_JUNE, "on", "健太").name == "2026-10-17"
