"""What config.json is made of: groups of keys, and the keys that a feature brings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a feature: the type of each, with a `Field` that has its default and its description.

    `needs_restart`: keys that take effect only after a restart. `only_in_the_file`: dotted keys that can't be changed over HTTP. `secret`: dotted
    keys whose values may hold keys of services. `check`: raises ValueError for a whole tree of settings whose values don't go together.
    `extras`: the keys whose values need an extra of the package, each with its value and the name of the extra.
    """

    keys: Mapping[str, tuple[Any, Any]]
    needs_restart: frozenset[str] = frozenset()
    only_in_the_file: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    check: Callable[[Any], None] = lambda _: None
    extras: Callable[[Any], Iterable[tuple[str, str, str]]] = lambda _: ()
