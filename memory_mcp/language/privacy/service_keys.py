"""Keys of services by their forms: the rules of gitleaks (`rules/gitleaks.toml`, not ours) and a few more (`rules/further.toml`).

A rule is tried only where one of its keywords occurs; one Aho-Corasick automaton finds the keywords of all rules in one pass.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Any

from ahocorasick_rs import AhoCorasick, MatchKind

from memory_mcp.patterns import bounded

Span = tuple[int, int]

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
    return _Rules([rule for rule in rules if not rule.keywords], list(of_keyword.values()), automaton)


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
