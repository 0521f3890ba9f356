"""Rules for places, companies, events and projects in Japanese: towns and countries, names in 駅, 銀行, 祭 or プロジェクト, titles in 『』."""

import re
from collections.abc import Iterator

from memory_mcp.characters import KANJI, KATAKANA
from memory_mcp.graph.extract.stopwords import NO_NAME, NO_STREET, NO_SUCH_NAME, without_leading_words
from memory_mcp.language.mention import Mention

_TOWNS = (
    "北海道 青森 岩手 宮城 秋田 山形 福島 茨城 栃木 群馬 埼玉 千葉 東京 神奈川 新潟 富山 石川 福井 山梨 長野 岐阜 静岡 愛知 三重 滋賀 京都 大阪 兵庫 奈良 "
    "和歌山 鳥取 島根 岡山 広島 山口 徳島 香川 愛媛 高知 福岡 佐賀 長崎 熊本 大分 宮崎 鹿児島 沖縄 札幌 仙台 横浜 川崎 名古屋 神戸 金沢 鎌倉 箱根 日光 軽井沢 "
    "渋谷 新宿 池袋 銀座 上野 浅草 秋葉原 吉祥寺 下北沢 原宿 梅田 難波 心斎橋 天神 博多 小樽 函館 倉敷 尾道 松山 那覇 熱海 草津 別府"
).split()
_ABROAD = "韓国 台湾 中国 台北".split()
_ABROAD_KANA = "アメリカ イギリス フランス ドイツ イタリア スペイン カナダ オーストラリア タイ ベトナム インド ハワイ パリ ロンドン ニューヨーク ソウル ローマ".split()
# Names that are surnames as often (山口, 石川), or words (三重に折る, 日光を浴びる, 大分よくなる, タイを焼く): places only before words that show it.
_ALSO_SURNAMES = frozenset(
    "青森 宮城 秋田 山形 福島 千葉 石川 福井 長野 滋賀 奈良 山口 香川 高知 佐賀 長崎 熊本 宮崎 福岡 岡山 松山 大阪 川崎 神戸 上野 浅草 梅田 天神 金沢".split()
)
_ALSO_WORDS = frozenset("三重 日光 大分 タイ".split())
_GOING = "旅行|出張|出身|在住|留学|滞在|駐在|行き|方面"
_KANJI_AFTER = f"{_GOING}|産|支店|本社|土産|市内|国内|現地"
# What may follow a name of kanji directly, and what may follow one of katakana: タイ料理 and カナダ人 are words of their own.
_PLACE = re.compile("|".join((*_TOWNS, *_ABROAD, *_ABROAD_KANA)))
_KIND = re.compile("[都道府県市区]")
_ENDS = re.compile(f"{_KANJI_AFTER}|(?![{KANJI}])")
_IS_KANJI, _IS_KATAKANA = re.compile(f"[{KANJI}]"), re.compile(f"[{KATAKANA}]")
# 山口に言う and 山口から電話 mean a person, 山口に住む and 山口から帰る a place.
_SURELY_THERE = re.compile(
    rf"へ(?!の)|に(?:は|も)?(?:行|い[きくっるた]|住|引っ越|越|旅|帰|戻|着|向|移|通|泊|来|寄|あ[るっり]|{_GOING})|{_GOING}|駅|支店|本社|土産"
    "|から(?:来|帰|戻|引っ越|上京|通|車|電車|新幹線|飛行機|移)|まで(?:行|車|電車|新幹線|飛行機|歩|$)"
)
_OF_A_PERSON = "さん|お?[母父姉兄]|[妹弟妻夫家話奴机席番件声顔子車]|やつ|せい|おかげ|ほう|意見|発言|担当|連絡|携帯|誕生日|結婚"
_LIKELY_THERE = re.compile(rf"で(?!す|し|な|は?な)|の(?!{_OF_A_PERSON}|おばちゃん|おばさん|おっちゃん)|は(?:暑|寒|雨|雪|晴|遠|近)")
# 大阪のおばちゃん are a kind of people, 沖縄そば and 広島焼き kinds of food, 韓国ドラマ a genre.
_KIND_AFTER = re.compile("の(?:おばちゃん|おばさん|おっちゃん)|そば|うどん|ちゃんぽん|まぜそば|みかん|りんご$|っぽ|[ぁ-ん]焼き")

# Last parts of names by the type that they show, the longer first.
_SUFFIXES = {
    "Location": (
        "駅 空港 公園 神社 大社 神宮 寺 城 温泉 動物園 水族館 美術館 博物館 図書館 病院 医院 歯科 市場 商店街 海岸 海水浴場 湖 島 大橋 通り 広場 ホテル 旅館 カフェ "
        "喫茶店 食堂 書店 体育館 スタジアム ドーム 遊園地 ランド 塔 山 岳 川 県 市 区 町 村"
    ),
    "Organization": (
        "大学 高校 高等学校 中学校 中学 小学校 幼稚園 保育園 銀行 新聞社 新聞 出版 商事 工業 製作所 事務所 研究所 組合 楽団 劇団 電機 自動車 製薬 建設 不動産"
    ),
    "Event": "祭り 祭 まつり フェスティバル フェスタ フェス 花火大会 マラソン コンクール コンテスト カップ 合宿 展覧会 博覧会 音楽会 学会 選手権",
    "Task": "プロジェクト 計画 案件 作戦",
}
_TYPE_OF = {suffix: type_ for type_, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_RUN = rf"[{KANJI}{KATAKANA}A-Za-z0-9ヶ・]"
_SUFFIX = re.compile(rf"(?:{'|'.join(_TYPE_OF)})(?!{_RUN})")
_RUN_BEFORE = re.compile(rf"{_RUN}{{1,12}}$")
_LONGEST_RUN = 12
_IN_A_TOWN = re.compile("へ|に行|に住|で|役場|民|立|出身")
_PREFECTURE = re.compile("^(?:..{1,2}[県府]|東京都|北海道)(?=.)")
# One letter before these makes a common word: 列島, 古寺, 地区, 登山.
_TWO_LETTERS = frozenset("町村区市県島寺城湖塔山岳川")
_COMPANY = re.compile(
    rf"(?:株式会社|有限会社|合同会社)(?P<after>{_RUN}{{1,20}})|(?P<before>{_RUN}{{1,20}})(?:株式会社|有限会社|合同会社)|(?<![{KANJI}])(?P<short>[A-Z]|[{KATAKANA}]{{2,10}}|[A-Za-z]{{2,15}})社(?![{KANJI}])"
)
_SOME_COMPANY = frozenset("ライバル メーカー ベンチャー グループ スポンサー クライアント IT".split())
_PROJECT = re.compile(
    rf"プロジェクト(?!マネ|リーダー|チーム|メンバー|ファイル|ルーム|ベース|オーナー)(?P<name>[A-ZＡ-Ｚ0-9０-９]+|[{KATAKANA}]+)"
)
# Speech and thoughts are quoted in 『』 too.
_TITLE = re.compile("『(?P<name>[^『』\n]{1,50})』(?!と(?:言|答|聞|叫|思|返|い[うっい])|って(?:言|聞|い[うっい]|思))")


def places(text: str) -> Iterator[Mention]:
    """Towns and countries by their names."""
    for match in _PLACE.finditer(text):
        name, end = match[0], match.end()
        script = _IS_KANJI if _IS_KANJI.match(name) else _IS_KATAKANA
        if script.match(text[max(match.start() - 1, 0) : match.start()]) or (script is _IS_KATAKANA and script.match(text, end)):
            continue
        kind = _KIND.match(text, end) if script is _IS_KANJI else None
        end = kind.end() if kind else end
        whole = text[match.start() : end]
        ends = _ENDS.match(text, end) or whole.endswith(("県", "府", "東京都"))
        if not ends or _KIND_AFTER.match(text, end) or (name in _ABROAD and _IS_KATAKANA.match(text, end)):
            continue
        if kind or (name not in _ALSO_SURNAMES and name not in _ALSO_WORDS) or _is_there(name, text, end):
            yield Mention(name, "Location", match.start(), end, "rule", aliases=(whole,) if kind else ())


def _is_there(name: str, text: str, end: int) -> bool:
    """Whether the words after an ambiguous name show that it is a place."""
    return _SURELY_THERE.match(text, end) is not None or (name in _ALSO_SURNAMES and _LIKELY_THERE.match(text, end) is not None)


def things(text: str) -> Iterator[Mention]:
    """Names whose last word shows their type; companies, projects and titles."""
    for match in _SUFFIX.finditer(text):
        suffix, start = match[0], match.start()
        run = _RUN_BEFORE.search(text[max(start - _LONGEST_RUN, 0) : start])
        name = _own_part(run[0], suffix) if run else ""
        if name and not (suffix in ("町", "村") and not _IN_A_TOWN.match(text, match.end())):
            yield Mention(name + suffix, _TYPE_OF[suffix], start - len(name), match.end(), "rule")
    yield from _companies(text) if "社" in text else ()
    for match in _PROJECT.finditer(text):
        yield Mention(match[0], "Task", match.start(), match.end(), "rule")
    for match in _TITLE.finditer(text):
        yield Mention(match["name"], "Document", match.start(), match.end(), "rule")


def _companies(text: str) -> Iterator[Mention]:
    for match in _COMPANY.finditer(text):
        short, name = match["short"], match["after"] or match["before"]
        if short and short not in _SOME_COMPANY:
            yield Mention(f"{short}社", "Organization", match.start(), match.end(), "rule")
        elif name:
            yield Mention(name, "Organization", match.start(), match.end(), "rule", aliases=(match[0],))


def _own_part(run: str, suffix: str) -> str:
    """The name before the suffix; empty where that is a common word: 近所の公園, 明日図書館で, 予定通り, マグカップ."""
    name = run if (run, suffix) == ("毎日", "新聞") else without_leading_words(run)
    if suffix in ("市", "区", "町", "村"):
        name = _PREFECTURE.sub("", name)  # 千葉県市川市 names two
    if name in NO_NAME or name.isdigit() or (len(name) == 1 and suffix in _TWO_LETTERS):
        return ""
    if NO_SUCH_NAME.search(name + suffix) or (suffix == "通り" and NO_STREET.search(name)):
        return ""
    return name
