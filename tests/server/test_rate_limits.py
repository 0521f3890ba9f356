"""How many calls a caller has left."""

import pytest

from memory_mcp.config.settings import RateLimit
from memory_mcp.errors import TooManyCalls
from memory_mcp.server.rate_limits import CALLERS_KEPT, RateLimits

LIMIT = RateLimit(per_minute=60, burst=3)


def taken(limits, caller, now, limit=LIMIT):
    """How many calls in a row are let through at a moment."""
    for count in range(100):
        try:
            limits.take(caller, limit, now)
        except TooManyCalls:
            return count
    return 100


def test_so_many_may_come_at_once_and_one_a_second_after_that():
    limits = RateLimits()
    assert taken(limits, "nilou", 0) == 3
    assert taken(limits, "nilou", 0.5) == 0
    assert taken(limits, "nilou", 1) == 1
    assert taken(limits, "nilou", 1_000) == 3


def test_who_is_refused_is_told_when_there_is_a_call_again():
    limits = RateLimits()
    slow = RateLimit(per_minute=2, burst=1)
    limits.take("nilou", slow, 0)
    with pytest.raises(TooManyCalls, match=r"2 a minute are the limit, and 1 at once\. Try again in 30 s\.") as refused:
        limits.take("nilou", slow, 0)
    assert refused.value.retry_after_seconds == 30
    with pytest.raises(TooManyCalls):
        limits.take("nilou", slow, 29)
    limits.take("nilou", slow, 30)


def test_what_one_uses_up_another_keeps():
    limits = RateLimits()
    assert taken(limits, "nilou", 0) == 3
    assert taken(limits, "dehya", 0) == 3


def test_without_a_limit_nobody_is_refused_and_nothing_is_kept():
    limits = RateLimits()
    taken(limits, "nilou", 0)
    assert taken(limits, "nilou", 0, RateLimit()) == 100
    assert taken(limits, "nilou", 0) == 3


def test_a_limit_that_is_lowered_counts_from_the_next_call_on():
    limits = RateLimits()
    limits.take("nilou", RateLimit(per_minute=60, burst=50), 0)
    assert taken(limits, "nilou", 0, RateLimit(per_minute=60, burst=2)) == 2


def test_a_million_callers_are_not_all_kept():
    limits = RateLimits()
    for number in range(CALLERS_KEPT + 100):
        limits.take(f"address {number}", LIMIT, 0)
    assert taken(limits, "address 0", 0) == 3
    assert taken(limits, f"address {CALLERS_KEPT + 99}", 0) == 2
