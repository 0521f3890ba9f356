"""The entities that a text names: marked by its writer, known already, or found by rules; of two that overlap the more trusted one.

Rules find names that nobody has marked and nothing knows yet: before さん, by the last part of a name, with a capital letter inside a sentence.
A wrong entity misleads every later search; a missed one costs little, since words find the memory too. So a word of the dictionary is no
name, and what is unsure is left to marks, relations, SudachiPy or a chat model.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from datetime import date

from memory_mcp.characters import is_japanese
from memory_mcp.dates.statements import DAY, NamedDay, Statement
from memory_mcp.language.analysis import Analysis
from memory_mcp.language.names import NAME_LIMIT, UNKNOWN_TYPE, Candidate, Match, Mention, bare, is_invisible, is_polite, without_overlaps
from memory_mcp.language.relation_notation import type_of_word
from memory_mcp.language.synonyms import is_word
from memory_mcp.language.tokens import is_function_word, normalise
from memory_mcp.lexicon import any_of, expressions, grouped, words
from memory_mcp.patterns import Needed

_IN_HONORIFICS = "さん さま 様 くん 君 ちゃん 氏 先生 先輩 長 教授".split()
# Words of the dictionary that are surnames as well end so: 小川, 青木, 平野.
_SURNAME_ENDS = "川木島野口山田村上井原崎橋沢"
_LONGEST = 8
_RELATIVE_OF = grouped("ja", "relatives")
_TYPE_OF, _FIRST_WORDS, _LAST_WORDS = (
    {word: type_.capitalize() for word, type_ in grouped(*table).items()}
    for table in (("ja", "name_ends"), ("en", "name_beginnings"), ("en", "name_ends"))
)
_TYPE_OF_GROUP = {"company": "Organization", "firm": "Organization", "project": "Task", "title": "Document"}
_IS = expressions(__file__, "names.toml", "names", relatives=any_of(_RELATIVE_OF), ends_of_names=any_of(_TYPE_OF))
_MAY_BE_ENGLISH = re.compile("[A-Z@]")
# A sentence begins behind these, and what may stand between its beginning and its first word.
_BEGINS, _BETWEEN = frozenset('.!?:\n。！？「『（("“•*#-'), " \t\n\r\"“'(*"
_BEFORE_SOMEBODY = tuple(f" {word} " for word in words("en", "before_somebody"))
_NO_NAMES, _NATIONAL = frozenset(words("en", "no_names")), ("ese", "ish")
# Characters around a name that are read, and the length from which a text shows by itself which words are everyday ones.
_REACH, _LONG = 60, 600


def mentions_by_rules(text: str, small: Set[str]) -> Iterator[Mention]:
    """What the rules find, overlaps included. `small`: the text's everyday words, see `small_words`."""
    named = _NEEDED.within(text)
    if named and is_japanese(text):
        for rule in sorted(named):
            yield from _JAPANESE_RULES[rule](text)
    if _MAY_BE_ENGLISH.search(text):
        yield from _english(text, small)


def small_words(text: str) -> frozenset[str]:
    """The words that a long English text writes in lower case: 'Make' in its headings is no name if it also has 'make'."""
    return frozenset(_IS["small_word"].findall(text)) if len(text) >= _LONG and not text.islower() else frozenset()


def _people(text: str) -> Iterator[Mention]:
    """Names with さん, ちゃん, 先生 and the like after them."""
    for match in _IS["person"].finditer(text):
        honorific = match["honorific"]
        name = _IS["before_name"].sub("", match["name"])
        start = match.end("name") - len(name)
        is_verb = len(name) == 1 and honorific == "くん" and text.startswith(("だ", "で"), match.end())  # 働くんだ
        is_polite_noun = text.endswith(("お", "ご"), 0, start) and not text.endswith("なお", 0, start)  # お客様, ご主人様
        if is_verb or is_polite_noun or not _is_somebody(name, honorific):
            continue
        called = (name + honorific,) if name.endswith(("っ", "ッ")) else (name, name + honorific)  # あっ is no name without its くん
        yield Mention(called[0], "Person", start, match.end(), "rule", aliases=called[1:])


def relatives(text: str) -> Iterator[Mention]:
    """The writer's own relatives, by one name each."""
    for match in _IS["relative"].finditer(text):
        name, word = _RELATIVE_OF[match[0]], match[0]
        yield Mention(name, "Person", match.start(), match.end(), "rule", subtype="family", aliases=(word,) * (word != name))


def _is_somebody(name: str, honorific: str) -> bool:
    if not name or _IS["nobody"].fullmatch(name) or is_word(name + honorific):
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
    for match in _IS["thing"].finditer(text):
        if last := match["last"]:
            own = _IS["before_name"].sub("", match["own"])
            if own and not is_word(own) and not is_word(own + last):
                yield Mention(own + last, _TYPE_OF[last], match.end("own") - len(own), match.end(), "rule")
        elif group := match.lastgroup:
            aliases = (match[0],) * (group == "company")
            yield Mention(match[group], _TYPE_OF_GROUP[group], match.start(), match.end(), "rule", aliases=aliases)


_JAPANESE_RULES = (_people, relatives, _things)
_NEEDED = Needed((_IN_HONORIFICS, _RELATIVE_OF, (*_TYPE_OF, "会社", "社", "プロジェクト", "『")))


def _english(text: str, small: Set[str]) -> Iterator[Mention]:
    """Handles, names with a title, and words with a capital letter that is not due to their place in the sentence."""
    for match in _IS["english"].finditer(text):
        if person := match["handle"] or match["titled"]:
            yield Mention(person, "Person", match.start(), match.end(), "rule", aliases=(match[0],))
            continue
        before, after = text[max(match.start() - _REACH, 0) : match.start()], text[match.end() : match.end() + _REACH]
        if name := _name_in_run(match["run"], before, after, small):
            said = _IS["after_name"].match(after)
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
    return "" if may_be_a_word and (is_word(name) or not _IS["after_name"].match(after)) else name


def _is_no_name(word: str) -> bool:
    return word.casefold() in _NO_NAMES or word.endswith(_NATIONAL)


def _type_of_thing(name: str) -> str | None:
    """The type that the first or the last word of a name shows; None for a single word."""
    first, *_, last = name.casefold().split() * 2
    return (_LAST_WORDS.get(last) or _FIRST_WORDS.get(first)) if first != last else None


# Only the beginning of a long text is searched for names: a pasted book is not an index of names.
TEXT_LIMIT = 20_000
# Without it a text has no marks, and no types need be read for it.
MARK_START = "[["
# [[健太]]さん is a person, [[みどり産業]]さん is not.
_NO_PERSON = words("ja", "group_ends")


def extract_mentions(
    text: str,
    types: Collection[str],
    known: Iterable[Match] = (),
    *,
    is_question: bool = False,
    stated_on: date | None = None,
    told: Statement | None = None,
) -> list[Mention]:
    """The mentions in a text, in its order.

    `types`: what a mark may give as a type. `known`: the known names in the text. `is_question`: an alias of several entities means the one
    mentioned most, instead of none. `stated_on`: the day from which the year of 10月17日 is reckoned. `told`: the text, if it was read.
    """
    small, known = small_words(text), list(known)
    by_rules = [*_days(told or Statement(text), stated_on), *mentions_by_rules(text, small)]
    by_rules = [mention for mention in by_rules if len(mention.name) <= NAME_LIMIT]
    marked = [_as_day(mention, text, by_rules) for mention in _marked(text, types)] if MARK_START in text else ()
    of_known = known_mentions(text, known, by_rules, small, is_question=is_question) if known else ()
    return without_overlaps([*marked, *of_known, *by_rules])


def relatives_and_days(read: Analysis) -> list[Mention]:
    """The writer's own relatives and the days that a text names: rules alone recognize them, they are in no gazetteer."""
    return [*relatives(read.text), *_days(Statement(read.text, read.recognized))]


def _days(told: Statement, stated_on: date | None = None) -> Iterator[Mention]:
    for day in told.days(stated_on):
        yield Mention(day.name, day.type, day.start, day.end, "rule", subtype=day.subtype, aliases=day.aliases)


def likely_type(name: str) -> str | None:
    """The type that the name itself shows: 京都大学 is an Organization. None where it shows none."""
    whole = (mention for mention in mentions_by_rules(name, frozenset()) if bare(mention.name) == bare(name))
    return next((mention.type for mention in whole if mention.type), None)


def _marked(text: str, types: Collection[str]) -> Iterator[Mention]:
    """The marked entities. What follows the bar is a type if one has that name, else another name of the entity."""
    for match in _IS["mark"].finditer(text):
        name, after = match["name"].strip(), (match["after"] or "").strip()
        if is_invisible(name) or len(name) > NAME_LIMIT:
            continue
        type_ = type_of_word(after, types) if after else None
        aliases = (after,) if not is_invisible(after) and type_ is None and after != name and len(after) <= NAME_LIMIT else ()
        is_person = _IS["honorific"].match(text, match.end()) or any(map(is_polite, (name, *aliases)))
        likely = "Person" if is_person and not name.endswith(_NO_PERSON) else None
        yield Mention(name, type_, match.start(), match.end(), "marked", aliases=aliases, likely=likely)


def _as_day(mark: Mention, text: str, by_rules: Iterable[Mention]) -> Mention:
    """A mark as the day that it names, if it names one: [[8月20日]] is the day that 8月20日 is in its sentence."""
    within = (rule for rule in by_rules if rule.subtype == DAY and mark.start < rule.start and rule.end < mark.end)
    day = next((rule for rule in within if text[rule.start : rule.end] == mark.name), None)
    return replace(day, start=mark.start, end=mark.end, method=mark.method) if day and mark.type in (None, NamedDay.type) else mark


# 東京タワー and 田中クリニック are other names; 田中コーチ and 札幌ラーメン are not.
_PLACES, _TITLES = words("ja", "katakana_places"), words("ja", "katakana_titles")
# Types that one name may have, but not one entity: 福島さん and the place, 株式会社ミドリ and ミドリさん. Toyotaさん is still the company.
_EXCLUDED_TYPES = {"Person": {"Location"}, "Location": {"Person"}, "Organization": {"Person", "Location", "Object"}}
# Characters before a name that are read, and of the longest finding of a rule.
_REACH_AROUND, _LONGEST_MENTION = 8, 2 * NAME_LIMIT


def known_mentions(
    text: str, known: Iterable[Match], by_rules: Iterable[Mention], small: Set[str], *, is_question: bool = False
) -> Iterator[Mention]:
    """A mention for each known name that means an entity, of two that begin at one offset the longer. `small`: the everyday words."""
    ordered = sorted(by_rules, key=lambda rule: rule.start)
    free, starts = 0, [rule.start for rule in ordered]
    for match in sorted(known, key=lambda match: (match.start, -match.end)):
        fitting = [candidate for candidate in match.candidates if _is_whole_name(text, match.start, match.end, candidate.type)]
        near = ordered[bisect_left(starts, match.end - _LONGEST_MENTION) : bisect_right(starts, match.start)]
        rules = [rule for rule in near if rule.end >= match.end]
        if match.start < free or not fitting or not all(_is_same(match, rule, text) for rule in rules):
            continue
        if not rules and text[match.start : match.end].casefold() in small and not any(map(_may_be_small, fitting)):
            continue
        free = match.end
        rule = max((rule for rule in rules if rule.type), key=lambda rule: rule.end - rule.start, default=None)
        choice = _choice(text, match, fitting, rule)
        if choice and (len(choice) == 1 or choice[0].is_own or is_question):
            entity = choice[0]
            likely = rule.type if rule and entity.type == UNKNOWN_TYPE else None
            yield Mention(entity.name, entity.type, match.start, match.end, "known", likely=likely, entity=entity.entity)


def _is_whole_name(text: str, start: int, end: int, type_: str) -> bool:
    """True if `text[start:end]` may be the whole name of an entity of this type, and not a part of a longer one."""
    name = text[start:end]
    if not _IS["kanji"].match(name[-1]):
        return True
    katakana = _IS["katakana"].match(text, end)
    if katakana and (katakana[0].endswith(_PLACES) or (type_ != "Location" and not katakana[0].startswith(_TITLES))):
        return False
    if not (2 <= len(name) <= 3 and _IS["kanji"].fullmatch(name)):  # 田中 in 田中花子 and 山田中学校 is a part of another name
        return True
    before = _IS["kanji"].findall(near := text[max(start - _REACH_AROUND, 0) : start])
    if before and near.endswith(before[-1]) and not _IS["before_name"].fullmatch(before[-1]):
        return False
    return _IS["kanji"].match(text, end) is None or _IS["may_follow"].match(text, end) is not None


def _may_be_small(candidate: Candidate) -> bool:
    """True if a name may be written as an everyday word is: that of a tool, and an alias."""
    return candidate.name.islower() or candidate.type == "Technology" or not candidate.is_own


def _is_same(match: Match, rule: Mention, text: str) -> bool:
    """True if a rule found the known name itself, and not a longer one that contains it: 東京大学 is not 東京, 田中花子 not 田中."""
    return bare(text[match.start : match.end]) == bare(rule.name) or (rule.start, rule.end) == (match.start, match.end)


def _choice(text: str, match: Match, fitting: Sequence[Candidate], rule: Mention | None) -> Sequence[Candidate]:
    """The candidates that may be meant, the likeliest first; none where the rule shows a new entity of that name."""
    likely = rule.type if rule else "Location" if _IS["like_a_place"].match(text, match.end) else None
    if rule and {candidate.type for candidate in fitting} <= _EXCLUDED_TYPES.get(str(likely), set()):
        return ()
    of_type = [candidate for candidate in fitting if candidate.type == likely]
    of_type = of_type or [candidate for candidate in fitting if likely and candidate.type == UNKNOWN_TYPE] or list(fitting)
    return [candidate for candidate in of_type if candidate.is_own] or of_type
