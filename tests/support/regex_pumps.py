"""Texts on which a regular expression may try the same thing in many ways: a prefix, a pump that is repeated, and a suffix.

They are derived from the parsed expression: what stands before each repetition, what it repeats, what separates it from the next one, and ends that
keep the whole from matching.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product
from re import _compiler as compiler
from re import _constants as codes
from re import _parser as parser
from typing import Any, NamedTuple

# A repetition that ends sooner can't make a long text slow by itself.
MANY = 8
# Characters of the scripts and kinds that the expressions tell apart.
_PROBES = "aZzeé0９ \n\t\r_-.,:;/@#'\"()[]{}<>|*=あアー漢、。「」！\x00\u200b"
_OF_BYTES = "".join(letter for letter in _PROBES if ord(letter) < 128)
# Ends that hardly anything matches.
_ENDS = ("\x00", "\n\x00", "")
_PUMPS = 24
_Item = tuple[Any, Any]
_SETS = frozenset({codes.IN, codes.NOT_LITERAL, codes.ANY, codes.LITERAL})
_REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})


class Pumped(NamedTuple):
    """A text is `prefix`, many times `pump`, and `suffix`."""

    prefix: str
    pump: str
    suffix: str

    def text(self, length: int) -> str:
        """So many characters, or a few more."""
        return self.prefix + self.pump * max(length // len(self.pump), 1) + self.suffix


@dataclass(slots=True)
class _Found:
    """A repetition: the least text before it, and what it may repeat."""

    before: str
    bodies: list[str]


@dataclass(slots=True)
class _Walk:
    flags: int
    probes: str
    groups: dict[int, str] = field(default_factory=dict)
    found: list[_Found] = field(default_factory=list)
    known: dict[str, list[str]] = field(default_factory=dict)

    def accepted(self, item: _Item) -> list[str]:
        """The characters that a single part takes, one of each kind."""
        known = self.known.get(name := repr(item))
        if known is None:
            state = parser.State()
            state.flags = self.flags
            # What is compiled from a tree is for text; of bytes the same ASCII characters match.
            matches = compiler.compile(parser.SubPattern(state, [item]), self.flags).fullmatch
            known = self.known[name] = [letter for letter in self.probes if matches(letter)]
        return known

    def least(self, items: Iterable[_Item], most: int = 1) -> list[str]:
        """Texts that these parts match, up to `most`."""
        texts = [""]
        for item in items:
            texts = [before + part for before, part in islice(product(texts, self._least_of(item, most)), most)]
        return texts

    def _least_of(self, item: _Item, most: int) -> list[str]:
        code, argument = item
        if code is codes.LITERAL:
            return [chr(argument)]
        if code in _SETS:
            return self.accepted(item)[:most] or ["?"]
        if code in _REPEATS:
            return [text * argument[0] for text in self.least(argument[2], most)] if argument[0] else [""]
        match code:
            case codes.BRANCH:
                return [text for branch in argument[1] for text in self.least(branch, 1)][:most] or [""]
            case codes.SUBPATTERN:
                return self._of_group(argument, most)
            case codes.ATOMIC_GROUP:
                return self.least(argument, most)
            case codes.GROUPREF:
                return [self.groups.get(argument, "")]
            case codes.GROUPREF_EXISTS:
                return self.least(argument[1], most)
        return [""]

    def _of_group(self, group: Any, most: int) -> list[str]:
        texts = self.least(group[-1], most)
        if group[0] is not None:
            self.groups[group[0]] = texts[0]
        return texts

    def walk(self, items: Sequence[_Item], before: str) -> str:
        """Collects the repetitions among these parts, and returns the least text that they match, after `before`."""
        for item in items:
            code, argument = item
            if code in _REPEATS:
                if argument[1] >= MANY:
                    self.found.append(_Found(before, self._bodies(argument[2])))
                self.walk(argument[2], before)
            elif code is codes.SUBPATTERN:
                self.walk(argument[-1], before)
            elif code is codes.ATOMIC_GROUP:
                self.walk(argument, before)
            elif code is codes.BRANCH:
                for branch in argument[1]:
                    self.walk(branch, before)
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                self.walk(argument[1], before)
            before += self.least([item])[0]
        return before

    def _bodies(self, items: Sequence[_Item]) -> list[str]:
        items = list(items)
        while len(items) == 1 and items[0][0] is codes.SUBPATTERN:
            items = list(items[0][1][-1])
        if len(items) == 1 and items[0][0] in _SETS:
            return self.accepted(items[0])
        return list(dict.fromkeys([*self.least(items, 6), *(letter for item in items for letter in self._letters(item))]))

    def _letters(self, item: _Item) -> list[str]:
        code, argument = item
        if code in _SETS:
            return self.accepted(item)
        if code in _REPEATS:
            return [letter for each in argument[2] for letter in self._letters(each)]
        if code is codes.SUBPATTERN:
            return [letter for each in argument[-1] for letter in self._letters(each)]
        if code is codes.BRANCH:
            return [letter for branch in argument[1] for each in list(branch)[:1] for letter in self._letters(each)]
        return []


def pumps(pattern: re.Pattern[Any]) -> list[Pumped]:
    """The texts to try on a pattern."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    is_bytes = isinstance(pattern.pattern, bytes)
    flags = pattern.flags & ~re.UNICODE if is_bytes else pattern.flags
    tree = parser.parse(pattern.pattern, flags)
    tree_flags = tree.state.flags
    walk = _Walk(tree_flags, _probes(tree, _OF_BYTES if is_bytes else _PROBES))
    whole = walk.walk(list(tree), "")
    if not walk.found:
        return [Pumped("", whole or source[:1] or "a", "\x00")]
    return list(dict.fromkeys(_combined(walk, whole)))


def _combined(walk: _Walk, whole: str) -> Iterator[Pumped]:
    for each in walk.found:
        yield from _of_repetition(walk, each, whole)
    for letter in dict.fromkeys(body for each in walk.found for body in _one_of_each(walk, each.bodies)):
        yield Pumped("", letter, "\x00")
    for text in (whole, whole[:-1]):
        if text:
            yield Pumped("", text, "\x00")


def _of_repetition(walk: _Walk, repetition: _Found, whole: str) -> Iterator[Pumped]:
    """What one repetition takes, and what separates it from later ones, between what stands before it and several ends; and its beginning many times."""
    before = repetition.before
    bodies = _one_of_each(walk, repetition.bodies)
    later = dict.fromkeys(each.before.removeprefix(before) for each in walk.found if each.before.startswith(before))
    separators = [text for text in later if text][:4]
    for pump, suffix in product([*bodies, *separators], (*_ENDS, whole[len(before) : -1])):
        yield Pumped(before, pump, suffix)
    for body in bodies[:4]:
        yield Pumped("", before + body, "\x00")
    for pair in (*permutations(bodies[:4], 2), *product(separators, bodies[:2])):
        yield Pumped(before, "".join(pair), "\x00")


def _one_of_each(walk: _Walk, bodies: Sequence[str]) -> list[str]:
    """Of characters that the same repetitions take, the first."""
    sets = [frozenset(each.bodies) for each in walk.found]
    kinds: dict[tuple[bool, ...], str] = {}
    for body in bodies:
        if body:
            kinds.setdefault(tuple(body in some for some in sets), body)
    return list(kinds.values())[:_PUMPS]


def _probes(items: Iterable[_Item], further: str) -> str:
    """The characters that an expression names, the ends of its ranges, and some of every kind."""
    named: dict[str, None] = {}

    def walk(tree: Any) -> None:
        if isinstance(tree, parser.SubPattern):
            tree = tree.data
        if isinstance(tree, tuple) and len(tree) == 2:
            code, argument = tree
            if code in (codes.LITERAL, codes.NOT_LITERAL):
                named[chr(argument)] = None
            elif code is codes.RANGE:
                named.update(dict.fromkeys(map(chr, argument)))
        if isinstance(tree, list | tuple):
            for part in tree:
                walk(part)

    walk(items)
    return "".join(dict.fromkeys([*further, *islice(named, 80)]))
