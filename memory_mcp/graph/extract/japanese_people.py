"""Rules for people in Japanese: names with さん, 先生 or 部長, and the writer's own relatives."""

import re
from collections.abc import Iterator

from memory_mcp.characters import HIRAGANA, KANJI, KATAKANA
from memory_mcp.graph.extract.stopwords import TITLES, is_not_a_name, without_leading_words
from memory_mcp.language.mention import Mention
from memory_mcp.patterns import bounded

# 様子, 君主 and 氏名 are words of their own.
_POLITE = "さん|さま|様(?![々子式相態変])|くん|君(?![主臨子達津]|たち|が代)|ちゃん|氏(?![名族神])"
_KANA = f"{HIRAGANA}ー"
_SOFT = "(?=さん|さま|くん|ちゃん)"
_LATIN = "A-Za-zＡ-Ｚａ-ｚ"
# サチ子さん, ケン太郎くん, ドラえもんさん.
_NAME_END = "(?:[子太美江]|[太次]郎|えもん|の?すけ|[たじ]ろう)"
# A run of katakana is matched once, from its beginning: thousands of letters without さん would take seconds otherwise.
_PERSON = bounded(
    rf"(?P<name>(?<![{KATAKANA}])[{KATAKANA}]{{2}}{_NAME_END}{_SOFT}|(?<![{KATAKANA}])(?<![{KATAKANA}][・=＝])[{KATAKANA}](?:[・=＝]*[{KATAKANA}])++|[{KANJI}]{{1,7}}[{_KANA}]{{0,2}}{_SOFT}"
    rf"|[{KANJI}]{{1,7}}|(?<![{_LATIN}0-9])[{_LATIN}]+(?:-[A-Z][a-z]+){{0,2}}|[{HIRAGANA}](?:(?!くん[とや]|ちゃん[とや])[{_KANA}]){{1,6}}子?{_SOFT})(?P<honorific>{_POLITE}|{'|'.join(TITLES)})"
)
_IS_KANA = bounded(f"[{_KANA}]+子?")
_IS_KANJI = bounded(f"[{KANJI}]+")
_PARTICLE = bounded("[はがをにとものでやへ]")
_HONORIFIC_BEFORE = bounded("(?:さん|さま|くん|ちゃん)$")
_OTHER_SCRIPT = bounded(f"[{KANJI}{KATAKANA}A-Za-z0-9]$")
_RUN_BEFORE = bounded(f"[{KANJI}]+$")
_SURNAME_BEFORE = bounded(f"[{KANJI}]{{2,3}}$")
# In またゆいちゃん a word precedes the name.
_WORD_BEFORE = bounded(
    "(?:また|まだ|もう|でも|だから|そして|それで|きのうは?|きょうは?|あしたは?|いつも|もっと|きっと|やっと|まさか|たぶん|やっぱり|さっき|もし|ねえ|ほら|あと|いま|うちの)(?=..)"
)
# 幼なじみのたけしくん: a run too long for a name has one after a particle. しんのすけ is no such run.
_BEHIND_PARTICLE = bounded("^.{3,}?[のと](?P<name>.{2,4})$")
LONGEST_IN_KANA = 4
# さかなクンさん, くまモンさん: these end a name and are none by themselves.
_ONLY_AN_END = frozenset("クン チャン モン".split())
_PARTICLE_BEFORE = "[はがのとにもをで]"
_HIRAGANA_BEFORE = bounded(
    f"(?:^|[^{_KANA}](?:{_PARTICLE_BEFORE}(?=..))?+|(?:さん|くん|ちゃん){_PARTICLE_BEFORE})(?P<more>[{HIRAGANA}]{{2,3}})(?<![はがをにとものでやへ])$"
)
_HIRAGANA_REACH = 7
# After a surname of three kanji a name may have five or six: 長谷川健太.
_LONG_SURNAME = bounded("(?:長谷川|長谷部|佐々木|五十嵐|小笠原|宇都宮|久保田|大久保|佐久間|小野寺|日比野|阿久津|曽我部|日下部)")
# 描くんだ, 気付くんです: a verb and not a name.
_AFTER_VERB = bounded("くん(?:だ|で(?!す?も)|じゃ|なら|かな|だろ|です|ですよ)")
_VERB_END = bounded(
    "^.$|[付続働動驚頂描書聞聴開泣弾吹拭焼着届輝招導築就突巻]$|^(?:ある|はたら|つづ|うご|おどろ|いただ|ひら|えが|まね|みが|うなず|つまず)$"
)
# 見習いさん, 知り合いさん: the second half of a verb, not of a name.
_VERB_FORM = bounded(f"[{KANJI}][いりきしえれけちせげ]$")
# 彼のみさん: the name begins after the particle, and one letter is no name.
_PARTICLE_WITHIN = bounded(f"[{KANJI}]+[はがをにとものでやへ]")
_OTHERS = bounded("(?:[おご]|(?:この|その|あの|どの|いい|わる|よい|あか(?:$|い)|たく$|かわい))")

# A relative, and the words for one. 母の日 is a day, おかあさんといっしょ a programme, お母さんたち are many.
_KIN = {
    "母": "お母さん お母ちゃん 母さん 母ちゃん 母親 おかあさん おかあちゃん かあちゃん ママ 母",
    "父": "お父さん お父ちゃん 父さん 父ちゃん 父親 おとうさん おとうちゃん とうちゃん パパ 父",
    "姉": "お姉ちゃん お姉さん 姉さん 姉ちゃん 姉",
    "兄": "お兄ちゃん お兄さん 兄さん 兄ちゃん 兄貴 兄",
    "妹": "妹",
    "弟": "弟",
    "祖母": "おばあちゃん ばあちゃん おばあさん お婆ちゃん お婆さん 祖母",
    "祖父": "おじいちゃん じいちゃん おじいさん お爺ちゃん お爺さん 祖父",
}
_KIN_OF = {word: name for name, words in _KIN.items() for word in words.split()}
_KIN_WORD = bounded("|".join(_KIN_OF))
_NO_KIN_AFTER = bounded("の日(?![課常々本])|たち|がた|[達方]|さん|さま|様|くん|といっしょ(?!に)")
_LETTER = bounded(f"[{KANJI}{KATAKANA}]")
# 健太の母 is not the writer's mother; うちの母 is.
_OWN = tuple(
    "うちの ウチの 私の わたしの 僕の ぼくの 俺の 自分の あたしの 我が家の 実家の 田舎の 天国の 上の 下の 今日の 昨日の 最近の".split()
)
# 隣に座ったお姉さん, 優しいおばあさん: any woman. お姉ちゃん is one's own sister.
_STRANGER = bounded("[おばじ姉兄].*さん$")
_DESCRIBED = bounded("[たないる]$")


def people(text: str) -> Iterator[Mention]:
    """Names with さん, ちゃん, 先生 and the like after them."""
    for match in _PERSON.finditer(text):
        honorific = match["honorific"]
        name_and_start = _name(text, match)
        if name_and_start is None:
            continue
        name, start = name_and_start
        if name.endswith(("っ", "ッ")):
            yield Mention(name + honorific, "Person", start, match.end(), "rule")
            continue
        yield Mention(name, "Person", start, match.end(), "rule", aliases=(name + honorific,))


def _name(text: str, match: re.Match[str]) -> tuple[str, int] | None:
    """The name and its offset; None where the match is no name."""
    name, start, honorific = match["name"], match.start("name"), match["honorific"]
    if honorific == "くん" and _VERB_END.search(name) and _AFTER_VERB.match(text, match.end("name")):
        return None
    if _polite_before(text, start):
        return None
    if (
        name in _ONLY_AN_END
        and (before := _HIRAGANA_BEFORE.search(text[max(start - _HIRAGANA_REACH, 0) : start]))
        and not _WORD_BEFORE.match(before["more"] + name)
    ):
        name, start = before["more"] + name, start - len(before["more"])
    elif _IS_KANA.fullmatch(name):
        name, start = _of_kana(text, name, start)
    elif _IS_KANJI.match(name):
        rest = without_leading_words(name)
        name, start = rest, start + len(name) - len(rest)
        if honorific == "氏" and len(name) > 1:
            name = name.removesuffix("両")  # 鈴木両氏: he and another person
    return (name, start) if name and _is_name(name, honorific) else None


def _polite_before(text: str, start: int) -> bool:
    """お巡りさん, お客様, ご主人様 have a polite prefix and are no names. なお is a word."""
    return text.startswith(("お", "ご"), max(start - 1, 0)) and start > 0 and not text.endswith("なお", 0, start)


def _of_kana(text: str, name: str, start: int) -> tuple[str, int]:
    """A run of hiragana as a name: in 昨日はさくらさん and まいちゃんとゆいちゃん it begins with a particle, 相田みつを with a surname before it."""
    before = text[max(start - 4, 0) : start]
    word = _WORD_BEFORE.match(name)
    if word:
        return name[word.end() :], start + word.end()
    after_a_word = _HONORIFIC_BEFORE.search(before) or _OTHER_SCRIPT.search(before)
    if after_a_word and _PARTICLE.match(name):
        return (name[1:], start + 1) if len(name) > 2 else ("", start)
    behind = _BEHIND_PARTICLE.match(name) if len(name) > LONGEST_IN_KANA else None
    if behind:
        return behind["name"], start + behind.start("name")
    if not after_a_word:
        return name, start
    surname = _SURNAME_BEFORE.search(before)
    rest = without_leading_words(surname[0]) if surname and len(before) - surname.start() <= 3 else ""
    return (rest + name, start - len(rest)) if len(rest) > 1 else (name, start)


def _is_name(name: str, honorific: str) -> bool:
    if is_not_a_name(name, honorific):
        return False
    if _IS_KANA.fullmatch(name):
        return 2 <= len(name.removesuffix("子")) <= LONGEST_IN_KANA and not _OTHERS.match(name)
    if _IS_KANJI.fullmatch(name):
        return len(name) <= 4 or _LONG_SURNAME.match(name) is not None
    return not _VERB_FORM.search(name) and not _PARTICLE_WITHIN.match(name)


def relatives(text: str) -> Iterator[Mention]:
    """The writer's own relatives: 健太の母 is not one."""
    for match in _KIN_WORD.finditer(text):
        start, end, word = match.start(), match.end(), match[0]
        if _is_within_a_word(text, start, end, word) or _NO_KIN_AFTER.match(text, end):
            continue
        if text.endswith("の", 0, start) and not text.endswith(_OWN, 0, start):
            continue
        if _STRANGER.match(word) and _DESCRIBED.search(text[max(start - 1, 0) : start]):
            continue
        name = _KIN_OF[word]
        yield Mention(name, "Person", start, end, "rule", subtype="family", aliases=(word,) if word != name else ())


def _is_within_a_word(text: str, start: int, end: int, word: str) -> bool:
    """義母, 秩父, 母国, 兄弟 and ママレード are words of their own; 昨日母が is two."""
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if word in ("ママ", "パパ"):
        return _LETTER.search(before + after) is not None
    if _IS_KANJI.fullmatch(word) and _IS_KANJI.match(after):
        return True
    run = _RUN_BEFORE.search(text[max(start - 8, 0) : start]) if _IS_KANJI.match(word) else None
    return run is not None and (before in _KIN or without_leading_words(run[0]) != "")
