"""Japanese sentences that a character might remember: made up, repeatable, all different."""

import random

PEOPLE = (
    "田中さん 美咲 健太 母 祖父 店長 隣のおばあさん ニィロウ さくら 先輩 幼なじみ 担当医 弟 叔母 佐藤くん 小学校の先生 大家さん 後輩の由美 "
    "バンド仲間 図書館の司書 配達のお兄さん 娘 婚約者 部長 占い師 留学生のリン 祖母 従兄弟 花屋の主人 猫の獣医"
).split()
PLACES = (
    "京都 駅前の喫茶店 図書館 海辺の町 新しい職場 北海道 神社 台所 動物園 公園のベンチ 温泉 屋上 奈良の旅館 体育館 病院の待合室 川沿いの道 "
    "渋谷の映画館 実家の縁側 空港 水族館 美術館 スーパーの駐車場 山小屋 沖縄の離島 夜行バス 商店街 大学の研究室 ベランダ 港 蕎麦屋"
).split()
THINGS = (
    "苺のケーキ カレー ピアノの発表会 三毛猫 自転車 引っ越し 誕生日の手紙 資格試験 映画 紅茶 花火 古い写真 編み物 ギターの弦 漢方薬 将棋 "
    "確定申告 天体望遠鏡 味噌汁 盆栽 マラソン 方言 金魚 歯医者 年賀状 パン作り 源氏物語 折り紙 梅干し 剣道 電子工作 俳句 観葉植物 コーヒー豆 "
    "登山靴 ラジオ体操 落語 抹茶アイス 眼鏡 国勢調査 同窓会 着付け 珈琲占い 断捨離 焼き芋 手品 陶芸 鉄道模型 夜の散歩 台湾旅行"
).split()
TEMPLATES = (
    "{person}は{place}で{thing}のことを楽しそうに話した。",
    "{place}に行ったとき、{person}が{thing}をくれた。",
    "{person}、最近{thing}に夢中らしい。きっかけは{place}。",
    "{thing}が苦手だと{person}に打ち明けられたのは{place}だった。",
    "来月、{person}と{place}へ。目的は{thing}！",
    "{person}によれば、{place}の{thing}はもう終わったそうだ",
    "昔の{place}の思い出。{person}が泣いて、{thing}を置いて帰った。",
    "約束: {person}に{thing}を返す。{place}で待ち合わせ。",
)
QUESTIONS = (
    "{person}が{place}で話していた{thing}はどうなった？",
    "{thing}をくれたのは誰？",
    "{person}との約束って何だっけ",
    "{place}の思い出を教えて",
)


def sentence(number: int) -> str:
    """The `number`-th sentence, the same in every run; its number makes it unlike the others."""
    pick = random.Random(number)
    return pick.choice(TEMPLATES).format(**_words(pick)) + f"（記録{number}）"


def turn(number: int) -> str:
    """The `number`-th turn of chats with an assistant, of 1,000 to 2,000 characters: a user's story, or an answer in Markdown with what it repeats of it."""
    pick = random.Random(f"turn {number}")
    length, lines, told = pick.randint(1_000, 1_900), [f"## 記録{number}について"] if number % 2 else [], number * 100
    while sum(map(len, lines)) < length:
        told += 1
        person, place, thing = _words(pick).values()
        lines.append(
            f"- **{thing}**: {person}に相談してから、{place}で確かめておくと安心です。{sentence(told)}" if number % 2 else sentence(told)
        )
    return ("\n" if number % 2 else "").join(lines)


def question(number: int) -> str:
    """A question that several sentences answer more or less."""
    pick = random.Random(f"question {number}")
    return pick.choice(QUESTIONS).format(**_words(pick))


def _words(pick: random.Random) -> dict[str, str]:
    return {"person": pick.choice(PEOPLE), "place": pick.choice(PLACES), "thing": pick.choice(THINGS)}
