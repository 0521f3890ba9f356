"""The order of the memories of a session, in SQL: by when each happened, and of equals by number."""

from typing import Literal


def time_of(table: str) -> str:
    """When a memory happened: with its session and its number what the index of sessions is over."""
    return f"coalesce({table}.occurred_at, {table}.created_at)"


def stands(one: str, sign: Literal["<", ">"], other: str) -> str:
    """Whether `one` comes before (`<`) or after (`>`) `other`.

    The time alone is asked for, too: a pair of values is not sought in an index, and the whole session would be walked, not only what
    happened in that moment.
    """
    return f"{time_of(one)} {sign}= {time_of(other)} AND ({time_of(one)}, {one}.id) {sign} ({time_of(other)}, {other}.id)"
