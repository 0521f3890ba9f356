"""What a table of date expressions consists of: a pattern, the spans of days that it means, and examples for the grammar in docs/dates.md."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from memory_mcp.characters import is_japanese
from memory_mcp.dates.spans import DaySpan

# The spans that a match may mean, as seen from today, the latest first. Raises ValueError or OverflowError where there is no such day.
Resolver = Callable[[re.Match[str], date], Iterator[DaySpan] | list[DaySpan]]

_WORD, _LETTER = re.compile("[a-z]{2}"), re.compile("[a-z]")
_REGEX_SYNTAX = re.compile(r"\(\?P?<?[A-Za-z_]+\d*[>)]|\[[^\]]*\]|\\[A-Za-z]")


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One kind of date expression. `examples` are texts that it matches.

    `recurs_after`: of a word such as 金曜 or 17日, in how many days from today the latest such day is the next one. `figures_only`: it may match
    a text without a word of any language. `needs`: it is tried only on a text with one of these, which is faster than its pattern.
    """

    kind: str
    pattern: re.Pattern[str]
    resolve: Resolver
    examples: tuple[str, ...]
    recurs_after: tuple[int, ...] = ()
    figures_only: bool = False
    needs: tuple[str, ...] = ()

    def may_match(self, plain: str) -> bool:
        return not self.needs or any(word in plain for word in self.needs)


def expression(
    kind: str,
    pattern: str,
    resolve: Resolver,
    *examples: str,
    recurs_after: tuple[int, ...] = (),
    figures_only: bool = False,
    needs: tuple[str, ...] = (),
) -> Expression:
    return Expression(kind, re.compile(pattern), resolve, examples, recurs_after, figures_only, needs)


def fixed(kind: str, pattern: str, span_from: Callable[[date], DaySpan], *examples: str, recurs_after: tuple[int, ...] = ()) -> Expression:
    """Words that mean one span, as seen from today."""
    return expression(kind, pattern, lambda match, today: [span_from(today)], *examples, recurs_after=recurs_after)


def of_kind(kind: str) -> tuple[Callable[..., Expression], Callable[..., Expression]]:
    """`expression` and `fixed` for one kind."""
    return partial(expression, kind), partial(fixed, kind)


class ExpressionTable:
    """Expressions in the order in which they are tried: an expression never takes text that an earlier one has taken.

    Only those that can occur in a text are tried: no Japanese expression in an English text.
    """

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self.expressions = tuple(expressions)
        languages = [
            (entry, is_japanese(entry.pattern.pattern), _WORD.search(_REGEX_SYNTAX.sub("", entry.pattern.pattern)) is not None)
            for entry in expressions
        ]
        self._without_english = tuple(entry for entry, japanese, english in languages if japanese or not english)
        self._without_japanese = tuple(entry for entry, japanese, english in languages if english or not japanese or entry.figures_only)

    def for_text(self, plain: str) -> Sequence[Expression]:
        """The expressions that can occur in a normalized text."""
        if not is_japanese(plain):
            return self._without_japanese
        return self.expressions if _LETTER.search(plain) else self._without_english
