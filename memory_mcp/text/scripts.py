"""The scripts of Japanese as classes of characters, and what a run of kanji carries before the name that it ends with."""

import re

from memory_mcp.characters import KANJI

# With those that hardly any name has; for what stands at the edge of one.
EVERY_KANJI = f"\u3400-\u4dbf{KANJI}"

# When: 昨日田中さん, 毎朝図書館. 今日子 and 明日香 are called so.
_TIMES = (
    "今日(?!子) 昨日 明日(?![香菜美葉奈]) 明後日 一昨日 今朝 今夜 今晩 昨夜 昨晩 先日 後日 当日 前日 翌日 翌朝 毎日 毎朝 毎晩 毎週 毎月 毎年 先週 来週 今週 再来週 先月 来月 今月 "
    "去年 昨年 今年 来年 再来年 最近 今度 今回 前回 次回 今後 以前 午前 午後 正午 朝方 夕方 深夜 早朝 週末 平日 休日 普段 将来 近々 先程 [月火水木金土日]曜日? [0-9０-９一二三四五六七八九十]+[時日月年分]半?"
).split()
# How: 結局田中さん, 一緒に and the like end in kana and need no place here.
_ADVERBS = (
    "結局 実際 全員 突然 多分 絶対 当然 正直 本当 一応 一番 最初 最後 大体 全部 勿論 時々 偶然 急遽 直接 至急 早速 現在 特別 同時".split()
)
# Who that is: 友人田中さん, 担当佐藤さん, 弁護士片山さん. 妹尾 and 姉崎 are surnames.
_ROLES = (
    "同僚 友人 上司 部下 親友 恋人 担当 先輩 後輩 隣人 主治医 医師 弁護士 税理士 作家 歌手 俳優 女優 声優 漫画家 友達 幼馴染 同級生 旧友 兄 姉(?![崎川小]) 弟(?!子) 妹(?!尾) 叔父 叔母 従兄弟 従姉妹 "
    "新人 前任 後任 営業 経理 総務 人事 開発 広報 社員 店員 代表 秘書"
).split()
# Surnames that end like a department: 服部半蔵さん is not 半蔵 of the department 服.
LIKE_A_PART = frozenset("服部 阿部 安部 渡部 岡部 矢部 磯部 園部 綾部 建部 長谷部 日下部 氷室 小室 仁科".split())
_PART = f"(?!{'|'.join(sorted(LIKE_A_PART))})[{KANJI}]{{1,4}}(?:部|課|社|店|係|班|組|室|科)(?=..)"
BEFORE_NAME = re.compile(f"(?:{'|'.join((*_TIMES, *_ADVERBS, *_ROLES, _PART))})+")


def without_what_stands_before(run: str) -> str:
    """The name that a run of kanji ends with: 昨日田中 → 田中. Empty where nothing is left of it: 昨日."""
    before = BEFORE_NAME.match(run)
    return run[before.end() :] if before else run
