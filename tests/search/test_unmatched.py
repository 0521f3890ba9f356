"""The words of a question that no memory holds."""

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.remember.forget import forget

KNOWN = "旅人は東京タワーでケーキを食べて、妹と図書館へ行った。Kenta deployed the API in Osaka."


@pytest.fixture
def unmatched(say, ask):
    """unmatched(query): what recall says of a question to a persona that knows a little."""
    say(KNOWN)

    def unmatched(query, **arguments):
        return list(ask(query, **arguments).unmatched)

    return unmatched


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("妹と喧嘩した理由は？", ["喧嘩", "理由"]),
        ("喧嘩", ["喧嘩"]),
        ("東京の図書館へ行ったのは誰？", []),
        ("東京都立図書館の閉館時間", ["都立", "閉館時間"]),
        ("ケーキとケーブルとアイス", ["ケーブル", "アイス"]),
        ("ｹｰﾌﾞﾙ", ["ケーブル"]),
        ("旅人は何を食べた？何時に？", []),
        ("苺を食べたい", ["苺"]),
        ("本の締め切りを教えて", ["本", "締め切り"]),
        ("奥さんの名前", ["奥さん", "名前"]),
        ("昨日、東京で喧嘩した？", ["昨日", "喧嘩"]),
        ("Where did Kenta deploy MapLibre?", ["MapLibre"]),
        ("Is Kenta's sister in OSAKA?", ["sister"]),
        ("What doesn't Kenta's sister want? Why can’t she find it?", ["sister"]),
        ("What kind of ramen is it, and what's wrong with it?", ["ramen"]),
        ("推し誰？", ["推し"]),
        ("もなかの誕生日はいつ？", ["もなか", "誕生日"]),
        ("ごまちゃんは元気？", ["ごま"]),
        ("ねえ、ぽちまるは誰？", ["ぽちまる"]),
        ("おかあさんは元気？", []),
        ("わたしの苺は？さっきの苺は？", ["苺"]),
        ("どうして？", []),
        ("ラーメン、ラーメン！", ["ラーメン"]),
        ("晩ごはんと朝ごはん", ["晩ごはん", "朝ごはん"]),
        ("子どもの前どこにいた？", ["子ども", "前"]),
        ("打ち合わせと引っ越し", ["打ち合わせ", "引っ越し"]),
        ("2025年の喧嘩", ["喧嘩"]),
        ("去年何を食べた？", ["去年"]),
        ("今日何を食べた？", []),
        ("来年、苺の予定は？", ["来年", "苺"]),
        ("来年の予定は？", ["来年"]),
        ("What did Kenta do last year?", ["last year"]),
        ("これからの予定は？", []),
        ("苺と" + "長" * 9_000, ["苺", "長" * 39 + "…"]),
        ("娘何歳？", ["娘"]),
        ("妹何歳？", []),
        ("義母何歳？", ["義母"]),
        ("東京何時？今何語？", []),
        ("幾何学は？", ["幾何学"]),
        ("靴いくら？", ["靴"]),
        ("妹、今いくつ？", []),
        ("傘いる？車いつ？仲いい？", ["傘", "車", "仲"]),
        ("思いつき", ["思い"]),
        ("お蕎麦食べられる？", ["蕎麦"]),
        ("大阪城行った？", ["大阪城"]),
        ("二日酔い", ["二日酔"]),
        ("喧嘩確認した？", ["喧嘩確認"]),
        ("手伝った？三回間違えた？", ["手伝", "三回間違"]),
    ],
)
def test_the_informative_words_that_no_memory_holds_are_named_as_they_were_written(unmatched, query, words):
    assert unmatched(query) == words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("INC-87って何？", []),
        ("INC-88って何？", ["INC-88"]),
        ("v2.4はいつ？", []),
        ("v2.5はいつ？", ["v2.5"]),
        ("Python3.12とPR#8とrun_5", ["Python3.12", "PR#8", "run_5"]),
        ("INC 87?", []),
        ("10.5と3-4", []),
    ],
)
def test_a_number_is_a_part_of_the_name_that_it_is_joined_to(say, ask, query, words):
    say("INC-87はv2.4で直した。runの5回目、PRは8")
    assert list(ask(query).unmatched) == words


def test_who_is_asked_for_is_no_word_that_no_memory_holds(say, ask):
    say("沢渡は北洋冷蔵の窓口")
    assert ask("沢渡はどんな人？").unmatched == ()


def test_what_only_a_forgotten_memory_holds_is_held_by_none(unmatched, say, nilou, now):
    gone, old = say("妹と喧嘩した").key, say("苺は食べられない").key
    assert unmatched("喧嘩と苺") == []
    forget(nilou, [gone], reason=None, dry_run=False, now=now, privacy=Privacy())
    say("なんでも食べる", supersedes=old)
    assert unmatched("喧嘩と苺") == ["喧嘩"]  # an answer says what なんでも食べる replaced
    forget(nilou, [old], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert unmatched("喧嘩と苺") == ["喧嘩", "苺"]


def test_a_secret_memory_counts_because_its_persona_is_shown_it(unmatched, say, ask):
    say("金庫の番号の話", privacy_level="secret")
    assert ask("金庫").hits
    assert unmatched("金庫") == []


def test_a_filter_does_not_make_a_known_word_unknown(unmatched):
    assert unmatched("図書館の喧嘩", tags=["食べ物"]) == ["喧嘩"]


def test_what_is_not_searched_by_words_names_none(unmatched, ask):
    assert unmatched(mode="recent", query="") == []
    assert unmatched("最近どう？") == []
    assert ask(keys=["memory_0"]).unmatched == ()


def test_a_long_question_names_a_few(unmatched):
    assert len(unmatched(" ".join(f"word{number}" for number in range(1000)))) == 8


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("明日の天気は晴れ", "あしたのてんきは？"),
        ("今日の天気は晴れ", "きょうのてんきは？"),
        ("犬の散歩は朝", "いぬのさんぽは？"),
        ("猫の名前はミケ", "うちのねこの名前は？"),
        ("猫の名前はミケ", "ねこのなまえは？"),
        ("あの人の名前は佐藤", "あのひとの名前は？"),
        ("私の名前はリン", "きみのなまえは？"),
        ("お客さんの名前は鈴木", "おきゃくさんの名前は？"),
        ("お客様の名前は鈴木", "おきゃくさまの名前は？"),
        ("子供の頃は泣き虫だった", "こどものころは何をした？"),
        ("前の旅行は京都", "このまえの旅行は？"),
        ("間に合った話", "このあいだの話は？"),
        ("嬉しい話を聞いた", "うれしいはなしは？"),
        ("母の誕生日は5月", "ははのたんじょうびは？"),
    ],
)
def test_a_question_in_hiragana_has_no_unmatched_word_where_the_memory_is_in_kanji(say, ask, memory, query):
    say(memory)
    assert ask(query).unmatched == ()
