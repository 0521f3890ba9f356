"""What a table of date expressions consists of: a pattern, the spans of days that it means, and examples for the grammar in docs/dates.md."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from memory_mcp.characters import is_japanese
from memory_mcp.dates.needed_words import needed_words
from memory_mcp.dates.spans import DaySpan
from memory_mcp.patterns import bounded

# The spans that a match may mean, as seen from today, the latest first. Raises ValueError or OverflowError where there is no such day.
Resolver = Callable[[re.Match[str], date], Iterator[DaySpan] | list[DaySpan]]

_WORD, _LETTER = re.compile("[a-z]{2}"), re.compile("[a-z]")
_REGEX_SYNTAX = bounded(r"\(\?P?<?[A-Za-z_]+\d*[>)]|\[[^\]]*\]|\\[A-Za-z]")


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One kind of date expression. `examples` are texts that it matches.

    `recurs_after`: of a word such as 金曜 or 17日, in how many days from today the latest such day is the next one. `figures_only`: it may match
    a text without a word of any language. `settled`: the spans are all that it may mean, also where something is to come.
    """

    kind: str
    pattern: re.Pattern[str]
    resolve: Resolver
    examples: tuple[str, ...]
    recurs_after: tuple[int, ...] = ()
    figures_only: bool = False
    settled: bool = False


def expression(
    kind: str,
    pattern: str,
    resolve: Resolver,
    *examples: str,
    recurs_after: tuple[int, ...] = (),
    figures_only: bool = False,
    settled: bool = False,
) -> Expression:
    return Expression(kind, bounded(pattern), resolve, examples, recurs_after, figures_only, settled)


def fixed(kind: str, pattern: str, span_from: Callable[[date], DaySpan], *examples: str, recurs_after: tuple[int, ...] = ()) -> Expression:
    """Words that mean one span, as seen from today."""
    return expression(kind, pattern, lambda match, today: [span_from(today)], *examples, recurs_after=recurs_after)


def of_kind(kind: str) -> tuple[Callable[..., Expression], Callable[..., Expression]]:
    """`expression` and `fixed` for one kind."""
    return partial(expression, kind), partial(fixed, kind)


class ExpressionTable:
    """Expressions in the order in which they are tried: an expression never takes text that an earlier one has taken.

    Only those that can occur in a text are tried: no Japanese expression in an English text, and none without a word that it needs.
    """

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self.expressions = tuple(expressions)
        needed = [(entry, needed_words(entry.pattern)) for entry in expressions]
        # Kanji, and of letters the last ones of the alphabet, are in fewer texts.
        self._all = [(entry, frozenset(map(max, words)), words) for entry, words in needed]
        languages = [
            (row, is_japanese(row[0].pattern.pattern), _WORD.search(_REGEX_SYNTAX.sub("", row[0].pattern.pattern)) is not None)
            for row in self._all
        ]
        self._without_english = [row for row, japanese, english in languages if japanese or not english]
        self._without_japanese = [row for row, japanese, english in languages if english or not japanese or row[0].figures_only]

    def for_text(self, plain: str) -> Sequence[Expression]:
        """The expressions that can occur in a normalized text."""
        rows = self._without_japanese if not is_japanese(plain) else self._all if _LETTER.search(plain) else self._without_english
        present = set(plain)
        return [
            entry
            for entry, characters, words in rows
            if not words or (not characters.isdisjoint(present) and any(word in plain for word in words))
        ]
