"""Patterns for API keys, tokens, passwords and private keys: by the forms of services, and by words such as "token" before them.

The forms are the rules of gitleaks (`rules/gitleaks.toml`, not ours) and a few more (`rules/further.toml`). A rule is tried only where one
of its keywords occurs; one Aho-Corasick automaton finds the keywords of all rules in one pass.
"""

import math
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Any

from ahocorasick_rs import AhoCorasick, MatchKind

from memory_mcp.language.privacy.randomness import is_random
from memory_mcp.patterns import bounded

Span = tuple[int, int]

PRIVATE_KEY = "PRIVATE KEY"  # without it a text has no block of one
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What a block without an end holds: base64, headers, and the signs of a quotation or of a string in a program.
_KEY_LINES = re.compile(r"[A-Za-z0-9+/=\s:,.>|\\\"'*-]*")

# Words for secrets, and the text between such a word and the secret. Here ー is a letter, not a dash.
_WORDS = (
    r"(?:api[ _-]?key(?:_[a-z0-9]{1,12}|[0-9]{1,2})?|access[ _-]?key|secret[ _-]?key|private[ _-]?key|client[ _-]?secret|secret|token|credentials?|passwo?r?d|passphrase|pwd|pw(?=[:=])|(?<![a-z0-9])pw(?![a-z0-9])"
    r"|bearer|authorization: ?basic|apiキー|アクセスキー|秘密鍵|シークレット|トークン|パスワード|ﾊﾟｽﾜ-ﾄﾞ|ﾊﾟｽﾜｰﾄﾞ|パスフレーズ|暗証番号|認証情報)s?"
)
# What each of these words has in it, and that of the next ones.
_IN_EVERY_WORD = (
    "key secret token credential pass pw bearer authorization キー 秘密鍵 シークレット トークン パス ﾊﾟｽ 暗証番号 認証情報".split()
)
# Words with other meanings name a secret only directly before a value: not bypass, パスタ and コンパス, and no public or primary key.
_SHORT_WORDS = r"pass(?=[:=])|(?<![a-z0-9])pass(?= ?[:=は「→]| is )|(?:(?<![ァ-ヴー])|(?<=ログイン))パス(?= ?[:=はがを「→])(?![ :=はがを「]{1,4}[!-~]{0,80}[/\\\\])"
_KEY = r"(?<![a-z0-9_-])(?<!public )key(?=[*]{0,3} ?[:=])"
_SECRET_WORDS = re.compile(f"{_WORDS}|{_SHORT_WORDS}|{_KEY}")  # in lower case: with IGNORECASE it takes twenty times as long
_BETWEEN = re.compile(
    r"""[*_]{0,3}["'’”」』]?[*_]{0,3}[ \t]{0,4}(?:[(][^()\n]{1,20}[)][ \t]{0,4})?(?:(?<=[ ])(?:for|of|on)[ ](?:[A-Z0-9'-]{1,15}[ ]){1,4})?"""
    r"""(?:(?<=[ \t])(?:is[ ]now|is|was|are|to|will[ ]be|should[ ]be)(?![A-Z0-9])|は|が|を|も|に|->|(?:string[ ])?[.?]?[:=>|→]{1,4}|「|『)?"""
    r"""(?:変わって|変えて|変更して|変更し)?[、,]?"""
    r"""[*_]{0,3}[ \t]{0,4}\n?[ \t]{0,4}["'‘“「『`<(*_]{0,3}""",
    re.IGNORECASE,
)
# What the word "key" alone precedes as well: the key of a memory, drawn, of an older server or of an import, and that of another program's record.
_KEY_OF_MEMORY = re.compile(
    "(?:(?:[a-z]{2}[0-9]{3}){2}|memory_[0-9a-z_]{1,60}|[a-z][a-z0-9-]{1,30}_[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![A-Za-z0-9_-])"
)
_VALUE_CHARACTERS = r"A-Za-z0-9_+/.~!@#$%^&*:?;,{}\[\]-"
_VALUE = re.compile(rf"[{_VALUE_CHARACTERS}]{{8,1024}}={{0,2}}")
_VALUE_BEFORE = re.compile(
    rf"(?<![{_VALUE_CHARACTERS}])(?P<value>[{_VALUE_CHARACTERS}]{{8,200}}={{0,2}})[\"'」』`]?[ \t]{{0,2}}"
    rf"(?:が|は|is[ ](?:the|my|our)(?:[ ]new)?)[ \t]{{0,2}}(?:{_WORDS})",
    re.IGNORECASE,
)
# A line end inside a token, with the signs of a quotation: what goes on after it is no word and no number, and not the name of a next
# value.
_LINE_END = re.compile(
    r"(?<=[A-Za-z0-9_/+#$%&@^~-])[ \t]{0,8}\r?\n[ \t>]{0,8}(?=[A-Za-z0-9_/+=#$%&@^~!*-]{0,80}?(?:[0-9][A-Za-z]|[A-Za-z][0-9]|[a-z][A-Z]))"
    r"(?![A-Za-z0-9_-]{1,80}[ \t]{0,2}[=:]{1,2}[ \t]{0,2}[^\s=])"
)
# A password that people can remember: a word and a number, such as sakura2024, in quotes also ねこがすき2024, and the digits of a PIN.
_PASSWORD_WORDS = re.compile(rf"passwo?r?ds?|passphrase|pwd|(?<![a-z0-9])pw(?![a-z0-9])|パスワード|ﾊﾟｽﾜ-ﾄﾞ|ﾊﾟｽﾜｰﾄﾞ|パスフレーズ|{_SHORT_WORDS}")
_PIN_WORDS = re.compile("暗証番号|パスコード")
_MEMORABLE = re.compile(
    r"(?=[A-Za-z_.!@#$%&*+-]{0,40}[0-9])(?=[0-9_.!@#$%&*+-]{0,40}[A-Za-z])[A-Za-z0-9_.!@#$%&*+-]{6,40}(?![A-Za-z0-9/])"
    r"|(?<=「)[^「」\s、。]{2,40}[0-9][!-/:-@_~]{0,4}(?=」)"
)
_PIN = re.compile("[0-9]{4,8}(?![0-9A-Za-z年月日桁文字回件])")
_SENTENCE_ENDS = ".!,;:?*"
# The points in what a rule without a keyword finds.
_POINTS_WITHOUT_KEYWORD = 2


def may_be_in(text: str) -> bool:
    """Whether a text has a keyword of a rule or a word for secrets, also across a line end: most texts have none, and need not be searched."""
    return _has_word(text) or ("\n" in text and _has_word(_LINE_END.sub("", text)))


def _has_word(text: str) -> bool:
    return text.count(".") >= _POINTS_WITHOUT_KEYWORD or bool(_rules().any_word.find_matches_as_indexes(lowered(text)))


def api_keys(text: str) -> Iterator[Span]:
    """API keys, tokens, passwords that look random, and PEM blocks of private keys. Where two overlap, the first is the better one."""
    spans = list(_keys(text))
    if "\n" in text:
        yield from _across_lines(text, spans)
    yield from spans


def _keys(text: str) -> Iterator[Span]:
    if PRIVATE_KEY in text:
        yield from private_keys(text)
    lower = lowered(text)
    yield from service_keys(text, lower)
    yield from _named_secrets(text, list(_SECRET_WORDS.finditer(lower)))


def _across_lines(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Keys with a line end inside them, as a terminal or a mail program wraps them."""
    line_ends = [match.span() for match in _LINE_END.finditer(text)]
    if not line_ends:
        return
    # Where each line begins in the joined text, and by how much its places are further on in the text.
    begins, further_on = [0], [0]
    for start, end in line_ends:
        begins.append(start - further_on[-1])
        further_on.append(further_on[-1] + end - start)
    keys_alone = {start for start, _ in spans}
    for start, end in _keys(_LINE_END.sub("", text)):
        first_line, last_line = bisect_right(begins, start) - 1, bisect_left(begins, end) - 1
        key = start + further_on[first_line], end + further_on[last_line]
        if first_line < last_line and keys_alone.isdisjoint(range(line_ends[first_line][1], key[1])):
            yield key


def names_secret(text: str) -> bool:
    """Whether a text, such as the name of a field, ends with a word for secrets."""
    named = f"{lowered(text).strip()}:"
    return any(match.end() == len(named) - 1 for match in _SECRET_WORDS.finditer(named))


def memorable_passwords(text: str) -> Iterator[Span]:
    """Words with a number that follow a word such as password, and PINs: flagged and not replaced, since some only occur near that word."""
    lower = lowered(text)
    for words, form in ((_PASSWORD_WORDS, _MEMORABLE), (_PIN_WORDS, _PIN)):
        for word in words.finditer(lower):
            between = _BETWEEN.match(text, word.end())
            value = form.match(text, between.end()) if between and between[0].strip() else None
            if value:
                yield value.span()


def private_keys(text: str) -> Iterator[Span]:
    offset = 0
    while begin := _BEGIN.search(text, offset):
        end = _END.search(text, begin.end())
        lines = _KEY_LINES.match(text, begin.end())
        offset = end.end() if end else lines.end() if lines else begin.end()
        yield begin.start(), offset
        if end is None:  # the search covered the rest of the text, so no later block ends either
            return


def _named_secrets(text: str, words: Sequence[re.Match[str]]) -> Iterator[Span]:
    for word in words:
        between = _BETWEEN.match(text, word.end())
        if between is None or between.end() == word.end():
            continue
        value = _VALUE.match(text, between.end())
        if word.group() == "key" and _KEY_OF_MEMORY.match(text, between.end()):
            continue
        if value and is_random(candidate := value.group().rstrip(_SENTENCE_ENDS)):
            yield value.start(), value.start() + len(candidate)
    for match in _VALUE_BEFORE.finditer(text) if words else ():
        if is_random(match["value"]):
            yield match.span("value")


_FILES = ("gitleaks.toml", "further.toml")
# Rules for source code that would take ordinary words or any commit for a secret, or read a text many times.
_FOR_CODE = frozenset({"generic-api-key", "curl-auth-header", "curl-auth-user", "sourcegraph-access-token"})
# `secrets` reads these itself, also without an end or without a signature.
_READ_ELSEWHERE = frozenset({"private-key", "jwt"})
# An identifier or public key opens nothing, and people are known by theirs: a Discord id has 18 digits.
_NOT_SECRET = re.compile(r"-(?:client-id|access-id|api-id|pub-key|pub-api-key|public-key)\Z")
# In `Airtable key = …` the value may be any word of the right length: it must mix letters and digits.
_ASSIGNED = "(?:=|>|:{1,3}=|"
_LEAST_ALTERNATIONS = 3

# What gitleaks has before a service's name and after a key. In a sentence other signs than quotation marks and spaces follow a key.
_ANY_BEFORE = r"[\w.-]{0,50}?"
_KEY_ENDS, _NO_MORE_OF_IT = r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"(?![A-Za-z0-9_(-]|\.[A-Za-z0-9])"
_ENDS_BEFORE = bounded(r"\(\?:\[\^([^]]+)\]\|\\z\)\Z")
# An underscore may precede a key, as in `_AKIA…`: only a letter or digit makes it a part of a word.
_NOT_IN_A_WORD = "(?<![A-Za-z0-9])"
# A repetition without an end gets one, so that no place of a text is visited more than this often by one attempt.
_LONGEST = 4_000
_OPENING = re.compile(r"(?:\(\?<!\[A-Za-z0-9\]\)|\\b|\(\?i?:|\()*")
_TOKENS = bounded(
    r"""(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\])|(?P<flag>\(\?i\))|(?P<open>\()|(?P<close>\))"""
    r"""|(?P<open_ended>\{(?P<least>\d+),\}|[+*])|(?P<other>(?s:.))"""
)
_REST_OF_TOKEN = re.compile("[A-Za-z0-9_-]*")


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule; `secret_group` is the group of its expression that is the secret, 0 for the first one that matched; `examples`
    are expressions for what has the form and is known to be none.
    """

    name: str
    regex: str
    keywords: tuple[str, ...]
    entropy: float = 0.0
    secret_group: int = 0
    examples: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when a text has a keyword: most rules never are."""
        return re.compile(translated(self.regex), re.ASCII)

    @cached_property
    def _examples(self) -> Sequence[re.Pattern[str]]:
        # `.+EXAMPLE$` begins anew at each character of a long text.
        quick = (f"(?<=.){example[2:]}" if example.startswith(".+") else example for example in self.examples)
        return [re.compile(translated(example), re.ASCII) for example in quick]

    @cached_property
    def begins_with_keyword(self) -> bool:
        """Whether every match begins with a keyword, so that it is tried only there."""
        first = _OPENING.sub("", translated(self.regex), count=1).replace("\\", "").lower().partition(")")[0]
        return all(alternative.startswith(self.keywords) for alternative in first.split("|"))

    def secret(self, match: re.Match[str]) -> Span | None:
        """Where the secret is in a match; None if it is too regular to be one."""
        group = self.secret_group or next((number for number in range(1, (match.lastindex or 0) + 1) if match[number]), 0)
        start, end = match.span(group)
        if _entropy(match[group]) <= self.entropy or (_ASSIGNED in self.regex and not _mixes(match[group])):
            return None
        if any(example.search(match[group]) for example in self._examples):
            return None
        # A key that is longer than its rule knows goes as a whole.
        rest = _REST_OF_TOKEN.match(match.string, end)
        return start, rest.end() if rest else end


@dataclass(frozen=True, slots=True)
class _Rules:
    everywhere: Sequence[Rule]
    of_keyword: Sequence[Sequence[Rule]]
    automaton: AhoCorasick
    any_word: AhoCorasick


def service_keys(text: str, lower: str) -> Iterator[Span]:
    """Keys in the form of a service; `lower` is the text as `lowered` gives it. Of keys that overlap, the longest comes first."""
    yield from sorted(set(_spans(text, lower)), key=lambda span: (span[0] - span[1], span[0]))


def _spans(text: str, lower: str) -> Iterator[Span]:
    rules = _rules()
    searched = dict.fromkeys(rules.everywhere)
    ends: dict[Rule, int] = {}
    for keyword, start, _ in rules.automaton.find_matches_as_indexes(lower, overlapping=True):
        for rule in rules.of_keyword[keyword]:
            if not rule.begins_with_keyword:
                searched[rule] = None
            # Not inside an earlier finding: a token of a thousand keys in a row is read to its end once.
            elif start >= ends.get(rule, 0) and (match := rule.pattern.match(text, start)):
                span = rule.secret(match)
                ends[rule] = max(match.end(), span[1] if span else 0)
                if span:
                    yield span
    for rule in searched:
        end = 0
        for match in rule.pattern.finditer(text):
            if match.start() >= end and (span := rule.secret(match)):
                end = span[1]
                yield span


@cache
def _rules() -> _Rules:
    directory = files(__package__) / "rules"
    rules = [rule for name in _FILES for rule in _read(tomllib.loads((directory / name).read_text("utf-8")))]
    of_keyword: dict[str, list[Rule]] = {}
    for rule in rules:
        for keyword in rule.keywords:
            of_keyword.setdefault(keyword, []).append(rule)
    automaton = AhoCorasick(list(of_keyword), matchkind=MatchKind.Standard)
    any_word = AhoCorasick([*of_keyword, *_IN_EVERY_WORD])
    return _Rules([rule for rule in rules if not rule.keywords], list(of_keyword.values()), automaton, any_word)


def _read(table: Mapping[str, Any]) -> Iterator[Rule]:
    """The rules of a file that can tell a secret in a sentence. A rule with a path is for files of that name."""
    for rule in table["rules"]:
        if "path" not in rule and rule["id"] not in _FOR_CODE | _READ_ELSEWHERE and not _NOT_SECRET.search(rule["id"]):
            keywords = tuple(keyword.lower() for keyword in rule.get("keywords", ()))
            examples = tuple(regex for allowed in rule.get("allowlists", ()) for regex in allowed.get("regexes", ()))
            yield Rule(rule["id"], rule["regex"], keywords, rule.get("entropy", 0.0), rule.get("secretGroup", 0), examples)


def translated(regex: str) -> str:
    """An expression of Go's RE2 as one of Python's `re`, for a sentence instead of source code, with an end to each repetition."""
    parts: list[str] = []
    closing = [""]  # for each open group what closes it besides its own parenthesis
    for token in _TOKENS.finditer(_ENDS_BEFORE.sub(r"(?![\1])", regex.replace(_ANY_BEFORE, "").replace(_KEY_ENDS, _NO_MORE_OF_IT))):
        part = token[0]
        match token.lastgroup:
            case "escape":
                leads = not _OPENING.sub("", "".join(parts))
                parts.append(_NOT_IN_A_WORD if part == "\\b" and leads else {"\\z": "\\Z"}.get(part, part))
            case "set":
                parts.append(part.replace("[:alnum:]", "A-Za-z0-9"))
            case "flag":  # it holds to the end of the group that it is in
                parts.append("(?i:")
                closing[-1] += ")"
            case "open":
                parts.append(part)
                closing.append("")
            case "close":
                parts.append(closing.pop() + part)
            case "open_ended":
                least = token["least"] or ("1" if part == "+" else "0")
                parts.append(f"{{{least},{_LONGEST}}}")
            case _:
                parts.append(part)
    return "".join(parts) + closing.pop()


def _entropy(value: str) -> float:
    """Shannon's, in bits per character, as gitleaks computes it."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def _mixes(value: str) -> bool:
    """Whether letters and digits alternate as they do in what was drawn at random."""
    kinds = [character.isdigit() for character in value if character.isalnum()]
    return sum(left != right for left, right in pairwise(kinds)) >= _LEAST_ALTERNATIONS


def lowered(text: str) -> str:
    """The text in lower case, as long as the original: İ is the only letter that is longer in lower case."""
    return text.replace("İ", "I").lower()
