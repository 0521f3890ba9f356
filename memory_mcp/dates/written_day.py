"""A day or a month as it stands in a text, before anybody knows of which year it is."""

from typing import NamedTuple


class Written(NamedTuple):
    """`text[start:end]` is a day, or, with no `day`, a month. `years_on`: of which year it is, seen from when it was said. `joined`: it
    shares its month, and so its year, with the one before it: 19日 in 10月17日〜19日."""

    year: int | None
    month: int
    day: int | None
    start: int
    end: int
    years_on: int | None = None
    joined: bool = False
