"""What config.json is made of: groups of keys, and the keys that a feature brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class RateLimit(Group):
    """How many calls one token, or one address without a token, may make."""

    per_minute: int = Field(0, ge=0, le=1_000_000, description="Calls per minute, on average. 0: no limit.")
    burst: int = Field(100, ge=1, le=1_000_000, description="Calls that may come at once before the limit per minute applies.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a feature: the type of each, with a `Field` that has its default and its description.

    `needs_restart`: keys that take effect only after a restart. `only_in_the_file`: dotted keys that can't be changed over HTTP.
    """

    keys: Mapping[str, tuple[Any, Any]]
    needs_restart: frozenset[str] = frozenset()
    only_in_the_file: frozenset[str] = frozenset()
