"""Light rules for Japanese: who is called さん, what is called a station, a company, a festival, a project, a title in 『』.

They name what the text itself gives away and leave the rest: a katakana word alone may be a friend or a fruit.
"""

import re
from collections.abc import Iterator

from memory_mcp.text.entities.mention import Mention

_HIRAGANA = "\u3041-\u3096"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_KANJI = "\u4e00-\u9fff々"

_HONORIFIC = "さん|さま|様|くん|君|ちゃん|氏|先生|先輩|部長|課長|係長|主任|社長|店長|教授|博士|選手|監督|コーチ"
_PERSON = re.compile(
    rf"(?P<name>[{_KATAKANA}][{_KATAKANA}・=＝]*[{_KATAKANA}]|[{_KANJI}]{{1,7}}[{_HIRAGANA}]{{0,2}}(?=さん|くん|ちゃん)"
    rf"|[{_KANJI}]{{1,7}}|[A-Z][a-z]+|[{_HIRAGANA}]{{2,7}}(?=さん|くん|ちゃん))(?P<honorific>{_HONORIFIC})"
)
# What is said with さん and names nobody in particular.
_NOBODY = frozenset(
    "皆 みな みんな お客 客 お医者 医者 店員 お巡り お隣 隣 お向かい 大家 奥 旦那 お嬢 お子 子供 神 仏 王 お月 お日 お星 "
    "看護師 運転手 駅員 患者 学生 生徒 赤 猫 犬 馬 象 熊 サンタ 司会者 担任 主治医 新人 若者 大 たく お疲れ ご苦労 お世話 "
    "何 誰 各 他 同 一人 二人 三人 外国人 お姫 お殿 お稲荷 お地蔵 受付 管理人 審判 作者 著者 先方 相手 業者 職人 弟子 お弟子 "
    "お手伝い 配達員 警備員 販売員 講師 同窓 同僚 上司 部下 友達 お友達 親友 先輩 後輩 お相撲 おなか お子 お得意 取引先 オーナー "
    "マスター ドクター ママ パパ ファン ナース スタッフ ワン ニャン クマ ウサギ お父 お母 お兄 お姉 おじい おばあ お爺 お婆 おじ おば おっ 娘 息子 お孫 孫 嫁 婿 旦那 おとう おかあ おにい おねえ にい ねえ とう かあ".split()
)
# 仕様, 模様, 同様: words of their own.
_NOT_BEFORE_SAMA = frozenset("仕 模 同 多 異 有 一 左 今 別 外 図 紋 文 両".split())
# 描くんだ, 働くのです: a verb and not a name.
_AFTER_VERB = re.compile("くん(?:だ|で(?!す?も)|じゃ|なら|かな|だろ|です|ですよ)")
_GENERIC_END = re.compile("(?:屋|[一二三四五六七八九十数何]人|員|手|師|係)$")
# What a run of kanji may carry before a name: 昨日田中さん, 担当佐藤さん, 営業部鈴木さん.
_BEFORE_NAME = re.compile(
    "^(?:今日|昨日|明日|今朝|今夜|昨夜|先日|先週|来週|今週|先月|来月|今月|去年|今年|毎日|毎朝|毎週|最近|今度|午前|午後|同僚|友人|上司|部下|親友|恋人|"
    "担当|先輩|後輩|隣人|主治医|医師|弁護士|作家|歌手|俳優|友達|幼馴染|同級生|旧友|兄|姉|弟|妹|叔父|叔母|従兄弟|従姉妹|新人|前任|後任|営業|経理|総務|人事|開発|"
    "[一-龥]{1,4}(?:部|課|社|店|係|班|組|室|科)(?=..))+"
)
_ROLES = frozenset(
    "数学 国語 英語 理科 社会 音楽 美術 体育 料理 担任 専任 副 前 新 元 名誉 准 助 客員 大学 研究 営業 総務 人事 経理 開発 技術 編集 女性 男性 担当".split()
)

_KIN = {
    "母": "お母さん|母さん|母親|おかあさん|ママ|(?<![祖義叔伯父])母(?![校国乳音港子体艦系性数])",
    "父": "お父さん|父さん|父親|おとうさん|パパ|(?<![祖義叔伯])父(?![母子兄])",
    "姉": "お姉ちゃん|お姉さん|姉さん|(?<![従義])姉(?![妹弟])",
    "兄": "お兄ちゃん|お兄さん|兄さん|(?<![従義])兄(?![弟妹])",
    "妹": "(?<![姉従義兄])妹(?![さ])",
    "弟": "(?<![兄従義姉子])弟(?![子])",
    "祖母": "おばあちゃん|おばあさん|お婆さん|祖母",
    "祖父": "おじいちゃん|おじいさん|お爺さん|祖父(?!母)",
}
_KIN_WORDS = [(name, re.compile(f"(?:{words})")) for name, words in _KIN.items()]

_PREFECTURES = (
    "北海道 青森 岩手 宮城 秋田 山形 福島 茨城 栃木 群馬 埼玉 千葉 東京 神奈川 新潟 富山 石川 福井 山梨 長野 岐阜 静岡 愛知 三重 滋賀 京都 大阪 兵庫 奈良 "
    "和歌山 鳥取 島根 岡山 広島 山口 徳島 香川 愛媛 高知 福岡 佐賀 長崎 熊本 大分 宮崎 鹿児島 沖縄 札幌 仙台 横浜 川崎 名古屋 神戸 金沢 鎌倉 箱根 日光 軽井沢 "
    "渋谷 新宿 池袋 銀座 上野 浅草 秋葉原 吉祥寺 下北沢 原宿 梅田 難波 心斎橋 天神 博多 小樽 函館 倉敷 尾道 松山 那覇 熱海 草津 別府 "
    "アメリカ イギリス フランス ドイツ イタリア スペイン カナダ オーストラリア 韓国 台湾 中国 タイ ベトナム インド ハワイ パリ ロンドン ニューヨーク ソウル 台北 ローマ"
).split()
# Names that are surnames as often (山口, 石川) count as places only with what says so after them.
_ALSO_SURNAMES = frozenset(
    "青森 宮城 秋田 山形 福島 千葉 石川 福井 長野 三重 滋賀 奈良 山口 香川 高知 佐賀 長崎 熊本 大分 宮崎 福岡 岡山 松山 大阪 川崎 神戸 上野 浅草 日光 梅田 天神 金沢".split()
)
_PLACE_NAME = re.compile(
    rf"(?<![{_KANJI}])(?P<kanji>{'|'.join(name for name in _PREFECTURES if re.match(f'[{_KANJI}]', name))})(?P<kind>[都道府県市区])?(?:(?=旅行|出張|出身|在住|産|支店|本社|土産|行き|方面)|(?![{_KANJI}]))"
    rf"|(?<![{_KATAKANA}])(?P<kana>{'|'.join(name for name in _PREFECTURES if re.match(f'[{_KATAKANA}]', name))})(?![{_KATAKANA}])"
)
_PLACE_FOLLOWS = re.compile("(?:へ|に|で|から|まで|の(?!さん)|駅|旅行|出張|は(?:暑|寒|雨|雪|晴))")

_SUFFIXED = (
    (
        "Location",
        "駅|空港|公園|神社|大社|神宮|寺|城|温泉|動物園|水族館|美術館|博物館|図書館|病院|医院|歯科|市場|商店街|海岸|海水浴場|湖|島|大橋|通り|広場|ホテル|旅館|カフェ|喫茶店|食堂|書店|体育館|スタジアム|遊園地|ランド|塔|(?<=..)(?:山|岳|川)|県|市|区|(?:町|村)(?=へ|に行|に住|で|役場|民|立|出身)",
    ),
    (
        "Organization",
        "大学|高校|高等学校|中学校|中学|小学校|幼稚園|保育園|銀行|新聞|新聞社|出版|商事|工業|製作所|事務所|研究所|組合|楽団|劇団|電機|自動車|製薬|建設|不動産",
    ),
    (
        "Event",
        "祭|祭り|まつり|フェス|フェスタ|フェスティバル|花火大会|マラソン|コンクール|コンテスト|カップ|合宿|展覧会|博覧会|音楽会|学会|選手権",
    ),
    ("Task", "プロジェクト|計画|案件|作戦"),
)
_RUN = rf"[{_KANJI}{_KATAKANA}A-Za-z0-9ヶ・]"
_WITH_SUFFIX = [(type_, re.compile(rf"(?P<name>{_RUN}{{1,12}}?)(?P<suffix>{suffixes})(?!{_RUN})")) for type_, suffixes in _SUFFIXED]
# Before a suffix these make no name: 近所の公園 is some park, 今回の案件 some case.
_NO_NAME = frozenset(
    "近所 近く 駅前 最寄 最寄り 隣 地元 市立 私立 公立 国立 県立 区立 都立 総合 大 小 中 新 旧 古 本 同 当 各 全 某 母 女子 男子 人 我 他 今回 前回 次回 次 前 後 "
    "毎 新規 共同 長期 短期 年間 月間 週間 事業 生産 旅行 夏 冬 春 秋 無人 宅 事業計画 大型 個人 夜 朝 昼 動物 植物 水族 美術 博物 図書 観光 市 県 町 村 区 都 道 府 "
    "貸し 学 音楽 国際 世界 全国 地方 中央 食 温 文化 学園 体育 収穫 感謝 ビジネス シティ リゾート ラブ カプセル ネット フル ハーフ ネコ 猫 犬 ドッグ 冷凍 小劇場 人生 回遊 "
    "発 壁 学級 学校 校内 社内 電子 貯金 返済 勉強 学習 ダイエット 減量 改善 資金 予算 開発 販売 工事 移行 作業 営業 大口 小口 未定".split()
)
_COMPANY = re.compile(
    rf"(?:株式会社|有限会社|合同会社)(?P<after>{_RUN}{{1,20}})|(?P<before>{_RUN}{{1,20}})(?:株式会社|有限会社|合同会社)|(?<![{_KANJI}])(?P<short>[A-Z]|[{_KATAKANA}]{{2,10}}|[A-Za-z]{{2,15}})社(?![{_KANJI}])"
)
_PROJECT = re.compile(rf"プロジェクト(?P<name>[A-ZＡ-Ｚ0-9０-９]+|[{_KATAKANA}]+)")
_TITLE = re.compile("『(?P<name>[^『』\n]{1,50})』")
_DAY = re.compile(
    r"(?:(?P<year>[12][0-9]{3})[年/-])(?P<month>[01]?[0-9])[月/-](?P<day>[0-3]?[0-9])日?(?![0-9])|(?<![0-9年月])(?P<m>[01]?[0-9])月(?P<d>[0-3]?[0-9])日"
)


def found(text: str) -> Iterator[Mention]:
    """What the rules name in a text that has Japanese in it; they may overlap."""
    yield from _people(text)
    yield from _kin(text)
    yield from _places(text)
    yield from _things(text)
    yield from _days(text)


def _people(text: str) -> Iterator[Mention]:
    for match in _PERSON.finditer(text):
        name = match["name"]
        start = match.start("name")
        if len(name) == 1 and _AFTER_VERB.match(text, match.end("name")):
            continue
        if re.match(f"[{_HIRAGANA}]", name):
            name, start = _after_particle(text, name, start)
        else:
            cut = _BEFORE_NAME.match(name)
            if cut and cut.end() < len(name):
                name, start = name[cut.end() :], start + cut.end()
        if _is_name(name, match["honorific"]):
            yield Mention(name, "Person", start, match.end(), "rule", aliases=(name + match["honorific"],))


def _after_particle(text: str, name: str, start: int) -> tuple[str, int]:
    """In 昨日はさくらさんと the run of hiragana begins with a particle: where a run follows another script, it mostly does."""
    while len(name) > 2 and name[0] in "はがをにとものでやへ" and start and re.match(f"[{_KANJI}{_KATAKANA}A-Za-z0-9]", text[start - 1]):
        name, start = name[1:], start + 1
        break
    return name, start


def _is_name(name: str, honorific: str) -> bool:
    if honorific == "様" and name in _NOT_BEFORE_SAMA:
        return False
    if name in _NOBODY or _GENERIC_END.search(name) or re.search("^[おご][一-龥]$", name):
        return False
    if (
        honorific in ("先生", "先輩", "部長", "課長", "係長", "主任", "社長", "店長", "教授", "博士", "選手", "監督", "コーチ", "氏", "様")
        and name in _ROLES
    ):
        return False
    if re.fullmatch(f"[{_HIRAGANA}]+", name):
        return 2 <= len(name) <= 4 and not re.match("(?:お|ご|この|その|あの|どの|いい|わる|あか|たく)", name)
    return len(name) <= 4 or not re.fullmatch(f"[{_KANJI}]+", name)


def _kin(text: str) -> Iterator[Mention]:
    """The writer's own: 健太の母 is somebody else's."""
    for name, words in _KIN_WORDS:
        for match in words.finditer(text):
            if text[: match.start()].endswith("の") and not text[: match.start()].endswith(
                ("うちの", "私の", "わたしの", "僕の", "俺の", "あたしの")
            ):
                continue
            yield Mention(
                name, "Person", match.start(), match.end(), "rule", subtype="family", aliases=(match[0],) if match[0] != name else ()
            )


def _places(text: str) -> Iterator[Mention]:
    for match in _PLACE_NAME.finditer(text):
        name = match["kanji"] or match["kana"]
        doubtful = name in _ALSO_SURNAMES and not match["kind"]
        if doubtful and not _PLACE_FOLLOWS.match(text, match.end()):
            continue
        yield Mention(name, "Location", match.start(), match.end(), "rule", aliases=(match[0],) if match["kind"] else ())


def _things(text: str) -> Iterator[Mention]:
    for type_, pattern in _WITH_SUFFIX:
        for match in pattern.finditer(text):
            name = match["name"]
            cut = _BEFORE_NAME.match(name)
            before = cut.end() if cut and cut.end() < len(name) else 0
            name = name[before:]
            whole = name + match["suffix"]
            if (
                name in _NO_NAME
                or name.isdigit()
                or (len(name) == 1 and len(match["suffix"]) == 1 and match["suffix"] in "町村区市県島寺城湖")
            ):
                continue
            yield Mention(whole, type_, match.start("name") + before, match.end(), "rule")
    for match in _COMPANY.finditer(text):
        name = match["after"] or match["before"] or match["short"]
        yield Mention(
            name if not match["short"] else f"{name}社",
            "Organization",
            match.start(),
            match.end(),
            "rule",
            aliases=(match[0],) if not match["short"] else (),
        )
    for match in _PROJECT.finditer(text):
        yield Mention(match[0], "Task", match.start(), match.end(), "rule")
    for match in _TITLE.finditer(text):
        yield Mention(match["name"], "Document", match.start(), match.end(), "rule")


def _days(text: str) -> Iterator[Mention]:
    for match in _DAY.finditer(text):
        month, day = int(match["month"] or match["m"]), int(match["day"] or match["d"])
        if not (1 <= month <= 12 and 1 <= day <= 31):
            continue
        name = f"{match['year']}-{month:02}-{day:02}" if match["year"] else f"{month}月{day}日"
        yield Mention(name, "TimeUnit", match.start(), match.end(), "rule", aliases=(match[0],) if match[0] != name else ())
