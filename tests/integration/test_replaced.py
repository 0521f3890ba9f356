"""What a memory replaced: its words find the new one, and what says it again is left out."""

from datetime import timedelta

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy
from memory_mcp.language.restatement import restates
from memory_mcp.remember.forget import forget
from memory_mcp.search.context import context

HATES = "健太はメロンも苺も嫌いになった。"


@pytest.fixture
def contents(ask):
    def contents(query="", **arguments):
        return [hit.memory.content for hit in ask(query, **arguments).hits]

    return contents


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("健太は苺が好き。", "健太は苺が好きなんだ"),
        ("健太は苺が好き。", "健太は、苺が好きです！"),
        ("会議は10時から", "会議は１０時からです。"),
        ("Kenta likes tea.", "Kenta really likes tea"),
    ],
)
def test_the_same_in_nearly_the_same_words_is_said_again(text, other):
    assert restates(text, other)
    assert restates(other, text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("健太は苺が好き。", "美咲は苺が好き。"),
        ("健太は苺が好き。", "健太は苺が好きではない。"),
        ("健太は苺が好き。", "健太は苺が嫌い。"),
        ("会議は10時から", "会議は11時から"),
        ("Kenta likes tea.", "Misaki likes tea."),
        ("コーヒーが好き", "ケーキが好き"),
        ("健太は苺が好き。", "健太は苺が好きで、毎朝畑を見に行くのを楽しみにしている。"),
    ],
)
def test_another_name_another_number_a_negation_or_more_is_something_else(text, other):
    assert not restates(text, other)


@pytest.mark.parametrize("query", ["健太は苺が好き？", "苺"])
@pytest.mark.parametrize("mode", ["auto", "keyword", "recent"])
def test_an_answer_leaves_out_what_says_again_what_was_replaced(say, contents, now, query, mode):
    old = say("健太は苺が好き。", session_id="1").key
    say("健太は苺が好きなんだ！", session_id="2")
    say("美咲は苺が好き。")
    say(HATES, at=now + timedelta(hours=1), supersedes=old)
    found = contents(query, mode=mode)
    assert set(found) == {HATES, "美咲は苺が好き。"}


def test_neither_recent_memories_nor_a_context_say_again_what_was_replaced(say, contents, nilou, now, settings):
    old = say("健太は苺が好き。", session_id="1").key
    say("健太は苺が好きなんだ！", session_id="2")
    say(HATES, at=now + timedelta(hours=1), supersedes=old)
    assert contents(mode="recent") == [HATES]
    found = context(nilou, "", max_tokens=1000, models=unloaded_models(settings), settings=settings, now=now)
    assert [hit.memory.content for _, hit in found.hits] == [HATES]


def test_what_is_said_again_after_the_change_is_shown(say, contents, now):
    old = say("健太は苺が好き。", session_id="1").key
    say(HATES, supersedes=old)
    say("健太はやっぱり苺が好き。", session_id="2", at=now + timedelta(days=1))
    assert len(contents("健太は苺が好き？")) == 2


def test_what_another_person_said_of_themselves_is_shown(say, contents):
    old = say("苺が好き。", source="健太").key
    say("苺が好きです。", source="美咲")
    say("苺は嫌いになった。", source="健太", supersedes=old)
    assert set(contents("苺は好き？")) == {"苺が好きです。", "苺は嫌いになった。"}


def test_the_words_of_what_was_replaced_find_what_replaced_it_until_it_is_forgotten(say, contents, nilou, now):
    for other in range(25):
        say(f"庭の木を{other}本植えた")
    old = say("写真の整理はPicasaを使う").key
    say("デジカムに乗り換えた", supersedes=old)
    assert contents("Picasa") == ["デジカムに乗り換えた"]
    forget(nilou, [old], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert contents("Picasa") == []


def test_who_replaces_a_memory_is_told_which_others_say_the_same(say):
    old = say("健太は苺が好き。", session_id="1").key
    again = say("健太は苺が好きなんだ！", session_id="2").key
    say("美咲は苺が好き。")
    assert [similar.key for similar in say(HATES, supersedes=old).repeating] == [again]
    assert say("健太は苺が好きだった", session_id="3").repeating == ()


@pytest.mark.parametrize(
    ("before", "after", "query"),
    [
        ("会議は木曜の十時から。", "会議は火曜の十時からに変わった。", "会議は何曜日の何時から？"),
        ("Standup is at nine in room four.", "Standup is at ten in room four now.", "When is standup in room four?"),
        ("健太は大阪に住んでいる", "先月、健太は横浜に引っ越した", "健太はどこに住んでる？"),
        ("Alex lives in Berlin", "Alex moved from Berlin to Osaka", "Where does Alex live now?"),
        ("美咲は銀行で働いている", "美咲は銀行を辞めて本屋に転職した", "美咲はどこで働いてる？"),
        ("車は赤いフィット", "車を青いスイフトに買い替えた", "車は何に乗ってる？"),
        ("歯医者は駅前のさくら歯科に通っている", "歯医者は先月から緑町のあおば歯科に変えた", "歯医者はどこに通ってる？"),
        ("陶芸教室は毎週水曜の夜七時から。先生は白洲さん。", "陶芸教室は今月から土曜の午後二時になった。", "陶芸教室は何曜日の何時から？"),
        ("推しは青木さん", "最近は推しが変わって白石さん", "推しは誰？"),
        ("デプロイはJenkinsでやっている", "デプロイはGitHub Actionsに移行した", "デプロイは何でやってる？"),
        ("スマホはPixel 6", "新しいスマホはiPhone 15", "使ってるスマホの機種は？"),
        ("My phone is a Pixel 7", "I got a new phone, an iPhone 16", "What phone do I have?"),
        ("The deadline is Friday", "The deadline got extended to next Wednesday", "When is the deadline?"),
        # What changed has no word of the question: it is found by what the earlier one names, or by the state that it ends.
        ("車はプリウスに乗っている", "プリウスを手放してヤリスを買った", "車は何に乗ってる？"),
        ("大阪に住んでいる", "福岡に引っ越した", "どこに住んでる？"),
        ("彼女の名前は美咲", "美咲とは別れて、今の彼女は由香", "彼女の名前は？"),
        ("習い事はピアノ", "ピアノはやめて、そろばんを始めた", "習い事は何してる？"),
        ("I drive an old Honda Civic.", "Sold the Civic, got myself a Mazda 3.", "What car do I drive?"),
        ("Kenji works at Sony", "Kenji joined Nintendo", "Where does Kenji work?"),
        # Whether it is still so, and what became of it: the later one tells, whatever its verb.
        ("お昼の弁当作りはじめた", "弁当三日でやめた笑", "弁当まだ作ってる？"),
        ("電車で財布落としたかも", "財布あった！駅に届いてた", "財布みつかった？"),
        ("眠れない日が続いてる。枕を変えてみたけどだめ。", "ヨガのおかげか、夜ぐっすり眠れるようになった。", "まだ眠れないの？"),
        ("茶色のコート買った", "コート返品してきた", "コートどうなった？"),
        ("Running plan: the Seaside half marathon", "The half marathon is off.", "Am I still running the half marathon?"),
        ("Sent the laptop in for repair", "Laptop came back with a new fan", "What happened with the laptop?"),
    ],
)
def test_what_tells_a_change_comes_before_what_it_changed(say, contents, now, before, after, query):
    say(before)
    say(after, at=now + timedelta(days=1))
    assert contents(query) == [after, before]


@pytest.mark.parametrize(
    ("earlier", "later", "query"),
    [
        ("健太は苺が好き。", "美咲は苺が好きになった。", "健太は苺が好き？"),
        ("会議は木曜の十時から。", "会議は火曜の十時からに変わった。", "会議は以前、何曜日だった？木曜？"),
        ("健太は苺が好き", "健太は横浜に引っ越した", "健太は何が好き？"),
        ("健太の妹は大阪に住んでいる", "健太は横浜に引っ越した", "健太の妹はどこに住んでる？"),
        ("家賃は月6万円", "家賃の支払いはカードに変えた", "家賃はいくら？"),
        ("陶芸教室の先生は白洲さん", "陶芸教室は今月から土曜になった", "陶芸教室の先生は誰？"),
        ("会議は第一会議室", "会議は火曜になった", "会議はどの部屋？"),
        ("祖母は金沢に住んでいます。", "叔母が金沢から富山へ引っ越しました。", "祖母はどこに住んでいますか？"),
        ("彼氏は熊本出身なんだ", "彼氏が部署異動になったんだって", "彼氏の出身地は？"),
        ("大阪に住んでいる", "由美が福岡に引っ越した", "どこに住んでる？"),
        ("大阪に住んでいる。家賃は月6万円。", "十月の異動で営業部に移った", "どこに住んでる？"),
        ("Dad takes metformin.", "Dad stopped driving at night.", "What medication does Dad take?"),
        ("The standup is at nine", "The retro moved to ten thirty", "When is the standup?"),
        ("Alex likes strawberries", "Alex moved to Osaka", "What does Alex like?"),
        # Neither a count nor a time is a thing that ends, nor what another sentence of the memory names.
        ("母の誕生日は11月18日", "ジム、月2回しか行けてないし解約した", "母の誕生日はいつ？"),
        ("送別会は12人", "12人のゼミは今年でやめた", "送別会は何人？"),
        ("送別会は今年", "ゼミは今年でやめた", "送別会はいつ？"),
        ("Practice is every Tuesday", "Left the office early on Tuesday", "When is practice?"),
        ("Finished Dune, loved it. Starting Piranesi next.", "Gave up on Piranesi", "What did I think of Dune?"),
        # What is about something else is not the latest about it.
        ("ギターをまだ習ってる", "猫がまた植木をたおした", "ギターまだ習ってる？"),
        ("Taking guitar lessons from Hugo", "Bought new strings on the way home", "Am I still taking guitar lessons?"),
    ],
)
def test_a_change_of_something_else_or_a_question_how_it_was_changes_no_order(say, contents, now, earlier, later, query):
    say(earlier)
    say(later, at=now + timedelta(days=1))
    assert contents(query)[0] == earlier


def test_a_change_is_found_among_others_by_what_it_ends(say, contents, now):
    say("車はプリウスに乗っている")
    for number in range(30):
        say(f"{number}人で{number}号室の鍵を探した")
    say("プリウスを手放してヤリスを買った", at=now + timedelta(days=1))
    assert contents("車は何に乗ってる？")[:2] == ["プリウスを手放してヤリスを買った", "車はプリウスに乗っている"]
    assert contents("前は車は何に乗ってた？")[:1] == ["車はプリウスに乗っている"]


def test_a_change_is_found_behind_many_newer_memories_with_the_name_of_its_user(say, contents, now):
    say("美咲の車はプリウス")
    say("プリウスを手放してヤリスを買った", at=now + timedelta(days=1))
    for number in range(30):
        say(f"美咲は{number}人で{number}号室の鍵を探した", at=now + timedelta(days=2))
    assert contents("美咲の車は何？")[0] == "プリウスを手放してヤリスを買った"
    assert contents("車は何に乗ってる？")[0] == "プリウスを手放してヤリスを買った"
