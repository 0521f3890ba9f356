"""A plan that was moved or called off later, in a memory of its own."""

from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Context, Settings
from memory_mcp.search.context import context

UNDER = Settings(embeddings_model=None, reranker_model=None, context=Context(upcoming=9, upcoming_days=60))

# Today is Thursday, 30 October 2025. What was planned, what changed, and whether the change has a day of its own.
MOVED = [
    ("金曜に歯医者", "歯医者は火曜に変更になった", True),
    ("14日にライブに行く", "ライブ、出演者の体調不良で中止", False),
    ("Lunch with Emi on Sunday", "Emi can't make it on Sunday", False),
    ("金曜に美容院を予約した", "美容院キャンセルした", False),
    ("遠足は20日。陸のやつ。", "遠足、インフルの学級閉鎖で27日に延期だって", True),
    ("来週の木曜に佐々木さんの送別会", "送別会は来週の金曜に変更、場所はそのまま", True),
    ("22日にネット開通予定", "ネットは工事が延期で29日になった", True),
    ("週末は義母が泊まりに来る予定", "週末の義母の泊まりは中止", False),
    ("金曜に飲み会", "飲み会なくなった", False),
    ("土曜に花見", "雨で花見が流れた", False),
    ("来週の水曜に面接", "面接は再来週の水曜に延期になりました。", True),
    ("11月8日に引っ越し", "引っ越しは11月15日にずれた", True),
    ("11月12日に打ち合わせ", "打ち合わせ、前倒しで11月7日になった", True),
    ("日曜に健太と映画を見る", "健太との映画、リスケになった", False),
    ("14日にコンサートに行く", "熱が出てコンサートに行けなくなった", False),
    ("明日は歯医者", "明日の歯医者はキャンセルした", False),
    ("土曜に飲み会", "飲み会は人数が集まらず中止", False),
    ("11月2日にジムの体験", "ジムの体験は台風で流れちゃった", False),
    ("金曜に歯医者", "歯医者さんから電話があって、金曜の予約が来週の火曜に変更になった", True),
    ("日曜にエミとランチ", "エミが日曜来られなくなった", False),
    ("日曜に運動会", "運動会は雨天順延で来週の日曜になった", True),
    ("金曜に美容院", "美容院は予約を取り直して来週の火曜になった", True),
    ("土曜にごはんの約束", "ごはんの約束なくなった", False),
    ("金曜に面接", "面接の日程が変わった", False),
    ("土曜にバーベキュー", "バーベキュー中止！", False),
    ("土曜にお花見", "お花見は来週の土曜にリスケ", True),
    ("Meeting with Ken on Friday", "The meeting with Ken is off", False),
    ("Dinner with Ken on Friday", "Ken cancelled dinner", False),
    ("Dentist on Friday", "The dentist moved to Tuesday", True),
    ("Concert on November 14", "The concert got cancelled because the singer is sick", False),
    ("The field trip is on November 20", "Field trip has been postponed to November 27", True),
    ("Hair appointment on Friday", "I cancelled my hair appointment", False),
    ("The picnic with the neighbors is on Saturday", "They called off the picnic", False),
    ("11月10日に大阪出張", "大阪出張は来月に延期になりました", True),
    ("11月5日に宅配が届く", "宅配は7日にずらしてもらった", True),
    ("11月6日が締め切り", "締め切りは11月13日に延びた", True),
    ("来週の水曜に授業参観", "授業参観はインフルで中止になったみたい", False),
    ("土曜に陸のサッカーの試合", "陸の試合、グラウンド不良で中止", False),
    ("来週の月曜に面談", "面談は水曜日に変わりました", True),
    ("日曜に実家に帰る", "実家に帰れなくなった", False),
    ("The coffee with Sam is on Friday", "Sam had to cancel our coffee", False),
    ("Vet appointment on November 4", "The vet had to reschedule, now it's November 11", True),
    ("My sister is visiting on November 8", "My sister can't come on November 8", False),
    ("20日に遠足", "遠足は中止となった", False),
    ("金曜に美容院", "美容院はキャンセルすることにした", False),
    ("11月6日が締め切り", "締め切りは11月13日に延長になった", True),
]

KEPT = [
    ("金曜に歯医者", "弟の歯医者は中止"),
    ("金曜に歯医者", "健太の歯医者は火曜に変更になった"),
    ("金曜に会議Aがある", "会議Bは中止になった"),
    ("金曜にA社と打ち合わせ", "B社との打ち合わせは火曜に変更"),
    ("14日にライブに行く", "21日のライブは中止になった"),
    ("金曜に歯医者", "歯医者は金曜に変更になった"),
    ("金曜に会議", "会議の会場が変更になった"),
    ("金曜に送別会", "送別会は場所が変更、駅前の居酒屋になった"),
    ("金曜に飲み会", "飲み会は19時に変更"),
    ("金曜に歯医者", "歯医者の料金が変わった"),
    ("20日に遠足", "遠足は雨なら中止"),
    ("20日に遠足", "遠足は雨天時は中止になります"),
    ("20日に遠足", "遠足は雨が降ると中止になります"),
    ("金曜に歯医者", "歯医者は遅れる時はキャンセルします"),
    ("20日に遠足", "遠足は27日に変わったら連絡する"),
    ("20日に遠足", "遠足は27日に変わりません"),
    ("20日に遠足", "遠足は中止かもしれない"),
    ("20日に遠足", "遠足は中止にならなかった"),
    ("20日に遠足", "遠足は延期になるかな？"),
    ("20日に遠足", "インフルで運動会が延期になった"),
    ("19日に遠足の買い物をする", "遠足は27日に延期だって"),
    ("10日にライブのチケットを取る", "ライブは中止になった"),
    ("金曜に歯医者、土曜に美容院", "美容院はキャンセルした"),
    ("金曜に歯医者", "予約を変更した"),
    ("金曜に歯医者", "金曜の飲み会は中止になった"),
    ("金曜に歯医者", "歯医者が怖くなくなった"),
    ("金曜に美容院", "ホテルをキャンセルした"),
    ("金曜に飲み会", "飲み会の店が変わった"),
    ("金曜に送別会", "歓迎会は中止になった"),
    ("日曜に健太の誕生日会をする", "健太が日曜来られなくなった"),
    ("日曜に健太と美咲と映画を見る", "健太が来られなくなった"),
    ("14日にライブに行く", "キャンセル待ちだったライブの席が取れた"),
    ("14日にライブに行く", "ライブのホテルをキャンセルした"),
    ("20日に遠足", "遠足のおやつを変えた"),
    ("20日に会議室を予約する", "会議は中止になった"),
    ("20日に面接", "面接は20日になった"),
    ("Dentist on Friday", "My brother cancelled his dentist appointment"),
    ("Dentist on Friday", "My brother's dentist appointment was cancelled"),
    ("Lunch with Emi on Sunday", "Bob can't make it on Sunday"),
    ("Lunch with Emi on Sunday", "Emi can't make it on Saturday"),
    ("Concert on November 14", "The concert might be cancelled"),
    ("Concert on November 14", "The concert was not cancelled"),
    ("Buy a dress for the concert on November 10", "The concert was cancelled"),
    ("Dinner on Friday", "The venue of the dinner changed to Osaka"),
    ("土曜に陸のサッカーの試合", "海の試合、グラウンド不良で中止"),
    ("11月15日は友達の結婚式", "姉の結婚式が延期になった"),
    ("11月15日は友達の結婚式", "二次会が延期になった"),
    ("レポートの締め切りは11月6日", "論文の締め切りが延びた"),
    ("日曜に実家に帰る", "実家の電話がなくなった"),
    ("金曜に歯医者", "歯医者が移転して火曜が休みになった"),
    ("金曜に歯医者", "歯医者は火曜にしようかな"),
    ("金曜に歯医者", "歯医者、火曜に変更できるか聞いてみる"),
    ("金曜に歯医者", "もし熱が出たら歯医者はキャンセルする"),
    ("金曜に歯医者", "昨日の歯医者はキャンセルした"),
    ("14日にライブに行く", "ライブのグッズ販売は中止になった"),
    ("11月10日に大阪へ出張する", "大阪の友達が来れなくなった"),
    ("11月10日に大阪へ出張する", "部長が出張に行けなくなった"),
    ("11月10日に会議", "会議はオンラインに変更になった"),
    ("土曜に花見", "花見の買い出しは金曜になった"),
    ("土曜に花見", "去年の花見は雨で流れた"),
    ("The coffee with Sam is on Friday", "Sam moved to Berlin"),
    ("The coffee with Sam is on Friday", "I can't make coffee"),
    ("Vet appointment on November 4", "Last week's vet appointment was cancelled"),
    ("The barbecue is on Saturday", "If it rains the barbecue is cancelled"),
]


@pytest.fixture
def upcoming(nilou, now):
    def upcoming():
        found = context(nilou, "", max_tokens=5000, models=unloaded_models(UNDER), settings=UNDER, now=now)
        return [hit.memory.content for layer, hit in found.hits if layer == "upcoming"]

    return upcoming


@pytest.mark.parametrize(("plan", "change", "has_day"), MOVED)
def test_a_plan_that_moved_or_is_off_is_not_upcoming(say, upcoming, now, plan, change, has_day):
    say(plan, at=now - timedelta(hours=2))
    assert upcoming() == [plan]
    say("今日はカレーを食べた", at=now - timedelta(hours=1, minutes=30))
    say(change, at=now - timedelta(hours=1))
    assert upcoming() == [change] * has_day


@pytest.mark.parametrize(("plan", "change"), KEPT)
def test_a_change_of_something_else_or_a_possible_one_leaves_a_plan_upcoming(say, upcoming, now, plan, change):
    say(plan, at=now - timedelta(hours=2))
    assert upcoming() == [plan]
    say(change, at=now - timedelta(hours=1))
    assert plan in upcoming()


@pytest.mark.parametrize(("plan", "change", "has_day"), MOVED[:12])
def test_a_plan_that_is_told_after_the_change_is_upcoming(say, upcoming, now, plan, change, has_day):
    say(change, at=now - timedelta(hours=2))
    say(plan, at=now - timedelta(hours=1))
    assert plan in upcoming()


def test_a_change_that_may_be_of_either_of_two_plans_leaves_both(say, upcoming, now):
    say("来週の水曜に営業会議", at=now - timedelta(hours=4))
    say("金曜に健太と会議", at=now - timedelta(hours=3))
    say("来週の月曜に美咲と会議", at=now - timedelta(hours=2))
    say("会議は火曜に変更になった", at=now - timedelta(hours=1))
    assert {"金曜に健太と会議", "来週の月曜に美咲と会議"} <= set(upcoming())


def test_a_change_with_the_old_day_is_of_the_plan_of_that_day(say, upcoming, now):
    say("金曜に健太と会議", at=now - timedelta(hours=3))
    say("来週の月曜に美咲と会議", at=now - timedelta(hours=2))
    say("金曜の会議は中止になった", at=now - timedelta(hours=1))
    assert upcoming() == ["来週の月曜に美咲と会議"]


def test_the_last_of_several_changes_counts(say, upcoming, now):
    say("金曜に歯医者", at=now - timedelta(hours=4))
    say("歯医者は来週の火曜に変更になった", at=now - timedelta(hours=3))
    say("歯医者は来週の水曜に変更になった", at=now - timedelta(hours=2))
    assert upcoming() == ["歯医者は来週の水曜に変更になった"]


@pytest.mark.parametrize("again", ["やっぱりライブに行く", "ライブ、行けることになった"])
def test_a_plan_that_takes_place_after_all_is_upcoming_again(say, upcoming, now, again):
    say("14日にライブに行く", at=now - timedelta(hours=4))
    say("ライブは中止になった", at=now - timedelta(hours=3))
    assert upcoming() == []
    say(again, at=now - timedelta(hours=2))
    assert upcoming() == ["14日にライブに行く"]


def test_what_another_person_called_off_of_their_own_leaves_a_plan(say, upcoming, now):
    say("金曜に歯医者", at=now - timedelta(hours=3), source="美咲")
    say("歯医者は中止になった", at=now - timedelta(hours=2), source="健太")
    assert upcoming() == ["金曜に歯医者"]


def test_a_change_is_found_behind_many_newer_memories_with_a_name_of_the_plan(say, upcoming, now):
    say("日曜に健太と映画を見る", at=now - timedelta(hours=3))
    say("映画はリスケになった", at=now - timedelta(hours=2))
    for number in range(30):
        say(f"健太は{number}号室の鍵を探した", at=now - timedelta(hours=1))
    assert upcoming() == []


def test_a_plan_stays_as_it_was_stored(say, ask, nilou, now):
    key = say("金曜に歯医者", at=now - timedelta(hours=3)).key
    say("歯医者は火曜に変更になった", at=now - timedelta(hours=2))
    (hit,) = ask(keys=[key]).hits
    assert hit.memory.superseded_by is None
