"""A search by words finds what says the same in other words, in Japanese and in English."""

import hashlib
import re
import tomllib

import pytest
from places import ROOT

from memory_mcp.language import kanji, synonyms


@pytest.fixture
def without_dictionaries(monkeypatch, tmp_path):
    def read_anew():
        synonyms._dictionary.cache_clear()
        synonyms._of_word.cache_clear()

    monkeypatch.setattr(synonyms, "DIRECTORY", tmp_path)
    read_anew()
    yield
    monkeypatch.undo()
    read_anew()


@pytest.mark.parametrize(
    ("query", "memory"),
    [
        ("車はどこに停めた？", "Left the car behind the station"),
        ("Where is my car?", "車は駅の裏に停めた"),
        ("When is the wedding?", "結婚式は六月の土曜"),
        ("結婚式はいつ？", "The wedding is on a Saturday in June"),
        ("Who will take over the brewery?", "灰原くんが家業を引き継ぐ"),
        ("彼氏の職業は？", "恋人の朔は理学療法士"),
        ("版が遅れたのはなぜ？", "The release was delayed by the audit log"),
    ],
)
def test_a_word_finds_what_says_the_same_in_another_word_or_language(found, query, memory):
    assert found(query, memory) == [memory]


def test_a_synonym_of_two_katakana_is_not_looked_for_within_longer_words(found):
    assert found("車の車種は？", "クレジットカードの引き落としは27日") == []
    assert found("Where to buy bread?", "駅前でパンを買う")[0] == "駅前でパンを買う"


def test_in_a_store_of_one_memory_a_synonym_finds_it(say, ask):
    say("車は駅の裏に停めた")
    assert len(ask("Where is my car?").hits) == 1


def test_the_word_itself_comes_before_its_synonyms(found):
    memories = ("夕食はカレーだった", "夕飯はカレーだった", "ディナーはカレーだった")
    assert found("夕飯は何だった？", *memories)[0] == "夕飯はカレーだった"
    assert found("What was for dinner?", *memories, "Curry for dinner")[0] == "Curry for dinner"


def test_a_memory_that_has_the_word_gains_nothing_by_a_synonym(say, ask):
    for number in range(30):
        say(f"庭の木に{number}回水をやった")
    for memory in ("彼氏と恋人", "彼氏と先生"):
        say(memory)
    scores = {hit.memory.content: hit.score for hit in ask("彼氏").hits}
    assert scores["彼氏と恋人"] == scores["彼氏と先生"]


def test_where_somebody_used_the_word_a_far_synonym_is_no_hit(found):
    memories = ("北洋冷蔵との契約は月額42万円、更新は毎年三月", "みんなで決めた約束")
    assert found("北洋冷蔵との契約の更新はいつ？", *memories) == [memories[0]]


@pytest.mark.parametrize("query", ["これは何？", "どうしてですか", "バンドの曲", "ヤキトリ", "電車"])
def test_grammar_and_parts_of_words_have_no_synonyms_of_their_own(query):
    own = {each.word for each in synonyms.synonyms(query)}
    assert not own & {"これ", "何", "どう して", "キト", "車"}


def test_a_synonym_of_a_long_word_counts_more_than_a_short_word_beside_it(say, ask):
    for number in range(25):
        say(f"庭の木に{number}回水をやった")
    for name in ("古賀", "小宮", "沢渡"):
        say(f"{name}はやさしい人")
    say("社長は元は船会社の配船係")
    assert ask("経営者はどんな人？").hits[0].memory.content.startswith("社長")


def test_a_long_query_has_a_bounded_number_of_synonyms():
    words = " ".join(["車", "結婚式", "夕飯", "会社", "職業", "友達", "猫", "wedding", "dinner", "company", "friend", "trip", "doctor"] * 9)
    meant = synonyms.synonyms(words)
    assert len(meant) <= synonyms.WORDS_LIMIT
    assert max(len(each.others) for each in meant) <= synonyms.SYNONYMS_LIMIT


def test_a_synonym_that_many_memories_have_does_not_hide_a_rarer_one(say, ask):
    for number in range(80):
        say(f"{number}号車が通った")
    say("自動車を買った")
    assert ask("How much was the automobile?").hits[0].memory.content == "自動車を買った"


def test_without_its_dictionaries_a_search_finds_the_words_themselves(without_dictionaries, found):
    assert synonyms.synonyms("結婚式") == []
    assert found("結婚式はいつ？", "The wedding is in June", "結婚式は六月") == ["結婚式は六月"]


def test_a_dictionary_with_line_ends_of_windows_is_read_alike(without_dictionaries, tmp_path):
    tmp_path.joinpath(synonyms.FILES[0]).write_bytes("宴会\t飲み会\r\n自動車\t車\r\n".encode())
    assert [list(each.others) for each in synonyms.synonyms("飲み会")] == [[synonyms.phrase_of("宴会")]]
    assert [list(each.others) for each in synonyms.synonyms("自動車")] == [[synonyms.phrase_of("車")]]


def test_the_dictionaries_are_listed_with_version_license_and_digest():
    directory = ROOT / "memory_mcp" / "language" / "dictionaries"
    rows = re.findall(
        r"^\| `(\w+\.tsv)` \| .* \| \[[\w.-]+\]\((LICENSE\.\w+)\) \| `([0-9a-f]{64})` \|$",
        directory.joinpath("README.md").read_text(),
        re.MULTILINE,
    )
    files = {*synonyms.FILES, kanji.READINGS, kanji.VARIANTS}
    assert {name for name, _, _ in rows} == files
    assert {path.name for path in directory.iterdir()} == {"README.md", *files, *(license_ for _, license_, _ in rows)}
    assert all(hashlib.sha256(directory.joinpath(name).read_bytes()).hexdigest() == digest for name, _, digest in rows)
    declared = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert {f"memory_mcp/language/dictionaries/{license_}" for _, license_, _ in rows} <= set(declared)


def test_of_a_long_memory_the_part_with_the_synonym_is_shown(say, ask):
    before, after = "朝は海辺を歩いた。" * 120, "夜は宿で本を読んだ。" * 120
    say(f"{before}妹の結婚式は六月の土曜に決まった。{after}")
    shown = ask("When is the wedding?", max_tokens=200).hits[0]
    assert shown.truncated
    assert "結婚式は六月の土曜" in shown.text
