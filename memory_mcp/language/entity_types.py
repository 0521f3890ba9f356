"""Words for the types of entities: 人物 and 人 mean Person, as in [[田中|人物]]."""

from collections.abc import Collection, Mapping

# Each word means one type; 場 or 件, which may mean several, are left out.
_WORDS = {
    "Person": "人物 人 人間 ひと キャラ キャラクター 登場人物 human character people",
    "Location": "場所 地名 地点 土地 建物 place spot building",
    "Event": "出来事 イベント 行事 催し 事件 happening occasion",
    "Concept": "概念 コンセプト 考え アイデア idea topic",
    "Object": "物体 物 もの モノ 品物 動物 生き物 ペット thing item animal pet",
    "Organization": "組織 会社 企業 団体 学校 グループ organisation company firm group school",
    "TimeUnit": "時間 日付 日時 時期 期間 日にち time date day period",
    "Task": "タスク 作業 仕事 プロジェクト 案件 project work todo",
    "Document": "文書 書類 資料 ファイル 本 書籍 作品 file book record",
    "Technology": "技術 テクノロジー ツール システム 道具 tool system software",
}
# As `type_of_word` takes them: display names, of which there are none here, by type.
STANDARD_TYPES: Mapping[str, str] = dict.fromkeys(_WORDS, "")
_TYPES = {word: type_ for type_, words in _WORDS.items() for word in words.split()}


def type_of_word(word: str, types: Collection[str]) -> str | None:
    """The type with this name, or for which this is another word; None where there is none.

    `types`: display names by type, or type names alone. The list of names may be incomplete, so other words are recognized with a mapping
    only.
    """
    wanted = word.strip().casefold()
    for known in types:
        if known.casefold() == wanted:
            return known
    if not isinstance(types, Mapping):
        return None
    shown = next((known for known, display_name in types.items() if str(display_name).casefold() == wanted), None)
    return shown or (synonym if (synonym := _TYPES.get(wanted)) in types else None)
