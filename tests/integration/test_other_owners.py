"""Of whom or what a question asks for an attribute: what tells that of another comes behind what names the right one."""

import pytest

from memory_mcp.language.owners import asked_attribute, owners_of, plain


@pytest.mark.parametrize(
    ("query", "named", "other"),
    [
        ("犬の名前は？", "犬を飼い始めた、コタロウっていう", "義母の名前は和子"),
        ("陸の身長は？", "陸は保育園で身体測定、94cmになった", "美咲の身長は158cm"),
        ("慎吾の奥さんの名前は？", "慎吾が結婚した、相手はあかりさん", "大輔の奥さんの名前は真理さん"),
        ("父の趣味を教えて", "父は釣りばかりしている", "義父の趣味は盆栽"),
        ("What's Ken's job?", "Ken works at a bakery", "Emi's job is nursing"),
        ("What is the name of the cat?", "The cat is called Biscuit", "The name of Emi's dog is Rufus"),
        ("What is Ken's birthday?", "Ken turned 40 on June 9", "My birthday is May 1"),
    ],
)
def test_the_same_of_another_owner_comes_behind_what_names_the_right_one(found, query, named, other):
    assert found(query, other, named) == [named, other]


@pytest.mark.parametrize(
    ("query", "answer", "named"),
    [
        # The same in another word, named together elsewhere, or with the owner left out.
        ("母の誕生日は？", "お母さんの誕生日は5月2日", "母は膝が悪い"),
        ("犬の体重は？", "コタロウの体重は8kg", "犬を飼い始めた、コタロウっていう"),
        ("妻の身長は？", "美咲の身長は158cm", "妻の美咲は花粉症"),
        ("会社の飲み会の会場は？", "飲み会の会場は鳥源", "会社は品川に移った"),
        ("旦那の靴は？", "浩二が新しい靴を買った", "夫の浩二は背が高い"),
        # 大輔の奥さん is not whom the question means.
        ("奥さんの誕生日は？", "美咲の誕生日は9月3日", "大輔の奥さんは看護師"),
        (
            "What is my father's car?",
            "Dad's car is a silver Camry",
            "My father called about the roof, the garden and the neighbors last week",
        ),
    ],
)
def test_who_may_be_meant_is_no_other_owner(found, query, answer, named):
    assert found(query, named, answer)[0] == answer


@pytest.mark.parametrize(
    ("query", "named", "nobodys"),
    [
        ("大家さんの名前は？", "大家の轟さんは七十代、庭の柿をよく分けてくれる", "奈緒は黄色いインコを飼っている。名前はピースケ"),
        ("犬のえさは？", "犬は朝と夕方に缶詰を食べる", "ハムスターを飼い始めた。えさは毎朝あげる"),
    ],
)
def test_what_names_no_owner_comes_behind_what_names_the_right_one(say, ask, query, named, nobodys):
    for number in range(30):
        say(f"庭の木に{number}回水をやった")
    for content in (nobodys, named):
        say(content)
    assert ask(query).hits[0].memory.content == named


def test_nothing_changes_where_nothing_names_the_right_owner(found):
    assert found("陸の身長は？", "美咲の身長は158cm", "健太は背が高い")[0] == "美咲の身長は158cm"


def test_what_was_said_in_a_conversation_about_the_owner_is_about_the_owner(say, ask):
    for number in range(30):
        say(f"庭の木に{number}回水をやった")
    say("犬を病院に連れていった", session_id="1")
    say("病院で量った、今朝の体重は8kg", session_id="1")
    assert ask("犬の体重は？").hits[0].memory.content == "病院で量った、今朝の体重は8kg"


@pytest.mark.parametrize(
    "query",
    [
        "私の誕生日は？",
        "今の家賃は？",
        "昨日何を食べた？",
        "海の上でサーフボードに乗っている犬がいます。",
        "What's new?",
        "What is my job?",
    ],
)
def test_other_questions_ask_for_no_attribute_of_an_owner(query):
    assert asked_attribute(plain(query)) is None


@pytest.mark.parametrize(
    ("attribute", "text", "owners"),
    [
        ("身長", "大輔のお母さんの身長は高い", ["大輔", "お母"]),
        ("名前", "うちの子どもの名前", ["子ども"]),
        ("車", "父の車検は来月", []),
        ("仕事", "最後の仕事だ", []),
        ("job", "emi's job is nursing", ["emi"]),
        ("job", "the job of the baker", ["baker"]),
    ],
)
def test_the_owners_of_an_attribute_are_read_in_a_text(attribute, text, owners):
    assert [owner.text for owner in owners_of(attribute, text)] == owners
