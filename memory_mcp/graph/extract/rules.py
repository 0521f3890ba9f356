"""Names that nobody has marked and nothing knows yet: before さん, by the last part of a name, with a capital letter inside a sentence.

A wrong entity misleads every later search; a missed one costs little, since words find the memory too. So a word of the dictionary is no
name, and what is unsure is left to marks, relations, SudachiPy or a chat model.
"""

from collections.abc import Iterator, Set

from memory_mcp.characters import HIRAGANA, KANJI, KATAKANA, is_japanese
from memory_mcp.language.names import Mention
from memory_mcp.language.synonyms import is_word
from memory_mcp.language.tokens import is_function_word, normalise
from memory_mcp.lexicon import grouped, words
from memory_mcp.patterns import bounded

# 様子, 君主 and 氏名 are words of their own.
HONORIFICS = "さん|さま|(?<![仕模同多異一])様(?![々子式])|くん|君(?![主が])|ちゃん|氏(?!名)|先生|先輩|[部課係社店]長|教授"
# A name in hiragana begins at a sign, or after a particle that ends another word: 昨日はさくらさん, ゆいちゃんとりこちゃん.
_KANA_BEGINS = rf"(?<![{HIRAGANA}ー\w])|(?<=[A-Za-z0-9])(?![はがをにとのもや])|(?<=[^{HIRAGANA}ー][はがをにとのもや])|(?<=[さくゃ]ん[はがをにとのもや])"
_LATIN = "A-Za-zＡ-Ｚａ-ｚ"
_PERSON = bounded(
    rf"(?P<name>(?<![{KANJI}])[{KANJI}]{{1,9}}[{KATAKANA}]{{0,8}}"
    rf"|(?<![{KATAKANA}・])[{KATAKANA}](?:[・=＝]?[{KATAKANA}])++[子太美江]?"
    rf"|(?<![{_LATIN}0-9])[{_LATIN}][{_LATIN}-]*"
    rf"|(?:{_KANA_BEGINS})[{HIRAGANA}ー]{{2,4}}子?(?=さん|ちゃん|くん(?!だ|で)|(?<=っ)くん))(?P<honorific>{HONORIFICS})"
)
# Words that precede a name without a particle: 昨日田中さん, 同僚佐藤さん, 営業部木村さん. 今日子 and 明日香 are names.
BEFORE_NAME = bounded(rf"\A(?:{'|'.join(words('ja', 'before_name'))}|[{KANJI}]{{2,3}}[部課社店係班](?=..))+")
# Anybody of an occupation, a relative, an animal: 看護師さん, 娘さん, 犬さん. Also 彼氏 and 同様.
_NOBODY = bounded(f"{'|'.join(words('ja', 'nobody'))}|[{KANJI}{KATAKANA}]*(?:{'|'.join(words('ja', 'occupations'))})")
# Words of the dictionary that are surnames as well end so: 小川, 青木, 平野.
_SURNAME_ENDS = "川木島野口山田村上井原崎橋沢"
_LONGEST = 8
# The writer's own relatives: 健太の母 is not one, and 宅配便のお兄さん or 優しいおばあさん may be anybody.
_RELATIVE_OF = grouped("ja", "relatives")
_RELATIVE = bounded(
    f"(?:(?<![{KANJI}{KATAKANA}のお])|(?<=うちの)|(?<=[私僕俺家舎]の))(?:{'|'.join(sorted(_RELATIVE_OF, key=len, reverse=True))})"
    f"(?![{KANJI}{KATAKANA}]|の日|たち|がた|さん|さま|くん|といっしょ)"
)
_TYPE_OF, _FIRST_WORDS, _LAST_WORDS = (
    {word: type_.capitalize() for word, type_ in grouped(*table).items()}
    for table in (("ja", "name_ends"), ("en", "name_beginnings"), ("en", "name_ends"))
)
_TYPE_OF_GROUP = {"company": "Organization", "firm": "Organization", "project": "Task", "title": "Document"}
_RUN = f"[{KANJI}{KATAKANA}A-Za-z0-9]"
_THING = bounded(
    f"(?:株式|有限|合同)会社(?P<company>{_RUN}+)|(?<!{_RUN})(?P<firm>[A-Z][A-Za-z]{{0,14}}社)(?!{_RUN})"
    f"|(?P<project>プロジェクト[A-Z0-9]+)(?![A-Za-z])|(?<!{_RUN})(?P<own>{_RUN}{{1,10}}?)(?P<last>{'|'.join(_TYPE_OF)})(?!{_RUN})"
    "|『(?P<title>[^『』\n]{1,50})』(?!と[言答聞叫思返]|って)"
)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)(?:uary|ruary|ch|il|ust|ember|ober)?"
_CAPITAL = rf"(?!{_MONTH}\b)[A-Z][A-Za-z]*[a-z][A-Za-z]*"
_ENGLISH = bounded(
    rf"(?<![\w.\]])@(?P<handle>[A-Za-z0-9_]{{2,30}}(?:-[A-Za-z0-9_]{{1,30}}){{0,4}})"
    rf"|\b(?:Mrs?|Ms|Miss|Dr|Prof|Professor|Doctor|Uncle|Aunt|Coach|Captain)\.?\s(?P<titled>{_CAPITAL}(?:\s{_CAPITAL})?)"
    rf"|(?<![A-Za-z0-9_@#/.|-])(?P<run>(?:{_CAPITAL}|[A-Z]{{2,}}(?=\s[A-Z][a-z]))(?:\.js)?"
    rf"(?:(?:\s(?:of|the|de|van|von)\s|[\s-])(?:{_CAPITAL}|[A-Z](?![A-Za-z]))){{0,6}})(?![A-Za-z0-9_@])"
)
# A sentence begins behind these, and what may stand between its beginning and its first word.
_BEGINS, _BETWEEN = frozenset('.!?:\n。！？「『（("“•*#-'), " \t\n\r\"“'(*"
_BEFORE_SOMEBODY = tuple(f" {word} " for word in words("en", "before_somebody"))
# What follows the first word of a sentence that is a name: Maria said, Yuki is, Anna's.
_AFTER_NAME = bounded(
    r"\s(?:(?P<person>and I|said|says|told|tells|thinks|likes|loves|hates|wants)|is|was|has|[a-z]{2,}(?:[a-z]s|ed))\b|['’]s\b"
)
_NO_NAMES, _NATIONAL = frozenset(words("en", "no_names")), ("ese", "ish")
_SMALL_WORD = bounded(r"(?<![A-Za-z0-9_@./'’-])[a-z]+(?![A-Za-z0-9_])")
# Characters around a name that are read, and the length from which a text shows by itself which words are everyday ones.
_REACH, _LONG = 60, 600


def mentions_by_rules(text: str, small: Set[str]) -> Iterator[Mention]:
    """What the rules find, overlaps included. `small`: the text's everyday words, see `small_words`."""
    if is_japanese(text):
        yield from _people(text)
        yield from relatives(text)
        yield from _things(text)
    yield from _english(text, small)


def small_words(text: str) -> frozenset[str]:
    """The words that a long English text writes in lower case: 'Make' in its headings is no name if it also has 'make'."""
    return frozenset(_SMALL_WORD.findall(text)) if len(text) >= _LONG and not text.islower() else frozenset()


def _people(text: str) -> Iterator[Mention]:
    """Names with さん, ちゃん, 先生 and the like after them."""
    for match in _PERSON.finditer(text):
        honorific = match["honorific"]
        name = BEFORE_NAME.sub("", match["name"])
        start = match.end("name") - len(name)
        is_verb = len(name) == 1 and honorific == "くん" and text.startswith(("だ", "で"), match.end())  # 働くんだ
        is_polite_noun = text.endswith(("お", "ご"), 0, start) and not text.endswith("なお", 0, start)  # お客様, ご主人様
        if is_verb or is_polite_noun or not _is_somebody(name, honorific):
            continue
        called = (name + honorific,) if name.endswith(("っ", "ッ")) else (name, name + honorific)  # あっ is no name without its くん
        yield Mention(called[0], "Person", start, match.end(), "rule", aliases=called[1:])


def relatives(text: str) -> Iterator[Mention]:
    """The writer's own relatives, by one name each."""
    for match in _RELATIVE.finditer(text):
        name, word = _RELATIVE_OF[match[0]], match[0]
        yield Mention(name, "Person", match.start(), match.end(), "rule", subtype="family", aliases=(word,) * (word != name))


def _is_somebody(name: str, honorific: str) -> bool:
    if not name or _NOBODY.fullmatch(name) or is_word(name + honorific):
        return False
    if normalise(name[0]).isascii():
        return len(name) == 1 or len(name) > 3 or not name.isupper()  # AIさん, PTA様
    if "ぁ" <= name[0] <= "ゖ" or name[0] == "ー":
        return name[0] not in "っゃゅょんー"
    if len(name) == 1:
        return honorific != "ちゃん"  # バス代ちゃんと払った
    return len(name) <= _LONGEST and (name[1:] in tuple(_SURNAME_ENDS) or not is_word(name))


def _things(text: str) -> Iterator[Mention]:
    """Names whose last part shows their type; companies, projects and titles."""
    for match in _THING.finditer(text):
        if last := match["last"]:
            own = BEFORE_NAME.sub("", match["own"])
            if own and not is_word(own) and not is_word(own + last):
                yield Mention(own + last, _TYPE_OF[last], match.end("own") - len(own), match.end(), "rule")
        elif group := match.lastgroup:
            aliases = (match[0],) * (group == "company")
            yield Mention(match[group], _TYPE_OF_GROUP[group], match.start(), match.end(), "rule", aliases=aliases)


def _english(text: str, small: Set[str]) -> Iterator[Mention]:
    """Handles, names with a title, and words with a capital letter that is not due to their place in the sentence."""
    for match in _ENGLISH.finditer(text):
        if person := match["handle"] or match["titled"]:
            yield Mention(person, "Person", match.start(), match.end(), "rule", aliases=(match[0],))
            continue
        before, after = text[max(match.start() - _REACH, 0) : match.start()], text[match.end() : match.end() + _REACH]
        if name := _name_in_run(match["run"], before, after, small):
            said = _AFTER_NAME.match(after)
            is_person = name == match["run"] and f" {' '.join(before.casefold().split())} ".endswith(_BEFORE_SOMEBODY)
            type_ = _type_of_thing(name) or ("Person" if is_person or (said and said["person"]) else None)
            yield Mention(name, type_, match.end() - len(name), match.end(), "rule")


def _name_in_run(run: str, before: str, after: str, small: Set[str]) -> str:
    """The name in words with capital letters; empty where there is none."""
    outside = len(before.rstrip(_BETWEEN))
    name, begins = run, outside == 0 or not _BEGINS.isdisjoint(before[outside - 1 :])
    while begins and " " in name:  # The Sakura Festival, Happy Birthday Caroline
        first, _, rest = name.partition(" ")
        if not (_is_no_name(first) or is_function_word(first) or (is_word(first) and not _type_of_thing(name))):
            break
        name = rest
    if " " in name:
        return name
    if name.casefold() in small or _is_no_name(name) or is_function_word(name):
        return ""
    may_be_a_word = begins and name == run and not is_japanese(after[:1])
    return "" if may_be_a_word and (is_word(name) or not _AFTER_NAME.match(after)) else name


def _is_no_name(word: str) -> bool:
    return word.casefold() in _NO_NAMES or word.endswith(_NATIONAL)


def _type_of_thing(name: str) -> str | None:
    """The type that the first or the last word of a name shows; None for a single word."""
    first, *_, last = name.casefold().split() * 2
    return (_LAST_WORDS.get(last) or _FIRST_WORDS.get(first)) if first != last else None
