"""Whether a known name of two or three kanji is a whole word in its place: in 田中先生 and 毎日田中と it is, in 田中花子 and 山田中学校 it is a part
of another name. Longer names count everywhere."""

import re

from memory_mcp.characters import EVERY_KANJI, HIRAGANA
from memory_mcp.patterns import bounded

_SHORT = bounded(f"[{EVERY_KANJI}]{{2,3}}")
_ENDS_IN_KANJI, _BEGINS_WITH_KANJI = bounded(f"[{EVERY_KANJI}]$"), bounded(f"^[{EVERY_KANJI}]")
_KANJI_BEFORE = bounded(f"[{EVERY_KANJI}]+$")
# Characters before the name that are examined.
_REACH = 8

# Words that precede a name without a particle: times, relationships, places of work.
_WORD_BEFORE = bounded(
    "(?:今日|昨日|明日|今朝|今夜|今晩|昨夜|昨晩|先日|当日|翌日|前日|毎日|[先来今毎翌前][週月年]|去年|昨年|一昨年|[毎翌]朝|[毎翌]晩|午前|午後|最近|最後|最初|今度|今回|前回|"
    "次回|毎回|初回|以前|以後|以来|当時|同時|[春夏秋冬]休|年末|年始|週末|月末|月初|朝|夜|昼|晩|夕方|"
    "結局|突然|偶然|多分|全然|実際|勿論|大体|全部|全員|一緒|久々|相変|早速|無事|絶対|本当|流石|時々|度々|段々|普段|元々|"
    "同僚|友人|友達|親友|恋人|上司|部下|先輩|後輩|隣人|新人|前任|後任|[一二三四五六七八九十数何]人|他人|知人|主人|本人|大人|名人|犯人|担当|代表|"
    "兄|姉|弟|妹|叔父|叔母|伯父|伯母|祖父|祖母|従兄弟|従姉妹|幼馴染|同級生|旧友|営業|経理|総務|人事|開発|弁護士|作家|歌手|俳優|講師|医師|教授|選手|監督|"
    "[会社部課係店院校所学室班隊議首駅団局船組]長|[社店会部職委議駅][員]|[患筆記司編責]者|[一-龥]{2}者|[先恩]師|常連|"
    "[一-龥](?:部|課|社|店|係|班|室|科|[0-9]組)|[0-9一二三四五六七八九十][日月年時分回番])$"
)
_DIVISION = (
    "副|元|前|新|名誉|准|助|総務|経理|営業|人事|開発|技術|編集|企画|広報|法務|事業|製造|販売|数学|国語|英語|理科|社会|音楽|美術|体育"
)
# Titles, and other words that follow a person's name.
_AFTER_PERSON = (
    "様|君|氏|殿|先生|先輩|後輩|師匠|医師|弁護士|選手|監督|主将|投手|捕手|議員|首相|大臣|知事|[市町村区]長(?!田)|博士|教授|准教授|助教|講師|教諭|"
    f"(?:{_DIVISION})?[社部課係店班隊会院校所室駅団局組船]長|主任|専務|常務|取締役|代表|家(?![具電族庭財屋事])|宅(?!配|地|急)|夫妻|夫婦|夫人|兄弟|姉妹|親子|一家|本人|自身|"
    "両[氏名]|達|案|側|派|流|作(?!業)|著|訳|家族|嬢"
)
# Words that follow the name of a place: what one does there, and parts of it.
_AFTER_PLACE = (
    "[都道府県](?!民|庁|知事|立)|[市区町村](?![場役民庁長立])|行|旅行|出張|出身|在住|在勤|滞在|観光|生|育|着|発(?![電展表明])|方面|付近|周辺|近[郊辺隣く]|全[域体]|支[店社]|本[社店]|工場|"
    "土産|名[物産]|産(?!業)|時代|勤務|赴任|転勤|移住|遠征|帰|入|住|暮|内(?!山|田|藤)|側|地[方区]|往復|間|駐在|留学|生活|散[歩策]|見物|巡|案内|合宿|公演|開催|味噌|料理|野菜|銘菓|名菓"
)
_AFTER_ANY = (
    "以[外来降前後上下]|経由|前(?![田川島原野橋])|後(?!藤)|同[様士]|関[連係]|自体|次第|担当|参加|開[始催]|終了|完了|延期|中止|当日|前[日後]|翌日|直[前後]|初日|期間|向|用(?![意水心])|的|等|済|込|好|嫌|大[好嫌]|最[高低]|中(?![央学華部心村島山川田野井尾西沢嶋原国])|"
    "対応|対策|準備|提出|確認|相談|報告|説明|購入|使用|利用|変更|作成|予定|予約|希望|達成|目[標的]|不足|無[しい理料]|専[門用]|担任|場所|時間|日程|内容|結果|全[部員体]|初心者|仲間|教室|道具"
)
# A verb without a particle before it: 田中来た, 東京行った.
_VERB = f"[{EVERY_KANJI}][{HIRAGANA}](?<![はがをにでとものへやのか])"
_AFTER = {
    "Person": bounded(f"(?:{_AFTER_PERSON}|{_AFTER_ANY}|{_VERB})"),
    "Location": bounded(f"(?:{_AFTER_PLACE}|{_AFTER_ANY}|{_VERB})"),
}
_AFTER_OTHERS = bounded(f"(?:{_AFTER_PERSON}|{_AFTER_PLACE}|{_AFTER_ANY}|{_VERB})")
# 田中クリニック is not 田中, as 田中コーチ is; 東京タワー is not 東京, and 札幌ラーメン is of 札幌.
_GOES_ON = bounded("[\u30a1-\u30fa\u30fc]+")
_TITLE_IN_KATAKANA = bounded(
    "(?:サン|クン|チャン|サマ|センセイ|コーチ|リーダー|マネー?ジャー|チーフ|ディレクター|プロデューサー|ドクター|キャプテン|ファミリー|ママ|パパ|チーム|グループ)"
)
_PLACE_IN_KATAKANA = bounded(
    "(?:タワー|ツリー|ドーム|ランド|シー|ホテル|シティ|ヒルズ|プラザ|センター|ホール|アリーナ|スタジアム|メトロ|マラソン|ガーデン|パーク|ビル|モール|ミュージアム|ガス|バンク)$"
)


def is_whole_name(text: str, start: int, end: int, type_: str) -> bool:
    """Whether `text[start:end]` may be the whole name of an entity of this type, and not a part of a longer one."""
    name = text[start:end]
    if not _ENDS_IN_KANJI.search(name) and not _BEGINS_WITH_KANJI.match(name):
        return True
    if _ENDS_IN_KANJI.search(name) and _goes_on_in_katakana(text, end, type_):
        return False
    if not _SHORT.fullmatch(name):
        return True
    if _BEGINS_WITH_KANJI.match(text[start - 1 : start]) and not is_after_a_word(text, start):
        return False
    return not _BEGINS_WITH_KANJI.match(text[end : end + 1]) or _AFTER.get(type_, _AFTER_OTHERS).match(text, end) is not None


def _goes_on_in_katakana(text: str, end: int, type_: str) -> bool:
    katakana = _GOES_ON.match(text, end)
    if katakana is None:
        return False
    if type_ == "Location":
        return _PLACE_IN_KATAKANA.search(katakana[0]) is not None
    return type_ in ("Person", "Organization") and not _TITLE_IN_KATAKANA.match(katakana[0])


def is_of_a_title(after: str) -> bool:
    """Whether the text between a name and a title belongs to the title: 田中総務部長."""
    return re.fullmatch(_DIVISION, after) is not None


def is_after_a_word(text: str, start: int) -> bool:
    """Whether the kanji before a name are a word of their own: 毎日, 営業部, 社員."""
    before = _KANJI_BEFORE.search(text[max(start - _REACH, 0) : start])
    return before is not None and _WORD_BEFORE.search(before[0]) is not None
