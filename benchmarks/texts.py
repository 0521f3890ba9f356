"""Japanese sentences that a character might remember: made up, repeatable, all different."""

import random

PEOPLE = ["田中さん", "美咲", "健太", "母", "祖父", "店長", "隣のおばあさん", "ニィロウ", "さくら", "先輩", "幼なじみ", "担当医"]
PLACES = ["京都", "駅前の喫茶店", "図書館", "海辺の町", "新しい職場", "北海道", "神社", "台所", "動物園", "公園のベンチ", "温泉", "屋上"]
THINGS = [
    "苺のケーキ",
    "カレー",
    "ピアノの発表会",
    "三毛猫",
    "自転車",
    "引っ越し",
    "誕生日の手紙",
    "資格試験",
    "映画",
    "紅茶",
    "花火",
    "古い写真",
]
FEELINGS = [
    "とても楽しみにしている",
    "少し不安だと言っていた",
    "もうやめたいらしい",
    "大好きだと話した",
    "忘れられないそうだ",
    "苦手だと打ち明けた",
]
TIMES = ["月曜の朝", "先週の夜", "雨の日", "夏休み", "仕事の帰り", "年末", "昼休み", "昨日"]


def sentence(number: int) -> str:
    """The `number`-th sentence, the same in every run."""
    pick = random.Random(number)
    person, place, thing, feeling, time = (pick.choice(words) for words in (PEOPLE, PLACES, THINGS, FEELINGS, TIMES))
    return f"{time}、{person}は{place}で{thing}のことを{feeling}。番号は{number}番。"


def question(number: int) -> str:
    """A question that several sentences answer more or less."""
    pick = random.Random(f"question {number}")
    return f"{pick.choice(PEOPLE)}が{pick.choice(PLACES)}で話していた{pick.choice(THINGS)}はどうなった？"
