"""Batches for one model call: texts of similar length, few enough that the call ends soon.

A call pads every text to the longest, so that mixed lengths waste time. And a running call can't be stopped: eight texts of
2,000 characters would occupy a worker for five seconds and gain nothing over eight calls.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

Key = TypeVar("Key")

MAX_CHARACTERS = 2_000


def batches_by_length(texts: Mapping[Key, str], size: int, characters: int = MAX_CHARACTERS) -> Iterator[list[Key]]:
    """The keys, longest text first, in batches of at most `size` texts and `characters` characters after padding. A long text is a batch of its own."""
    batch: list[Key] = []
    longest = 0
    for key in sorted(texts, key=lambda key: -len(texts[key])):
        if batch and (len(batch) == size or longest * (len(batch) + 1) > characters):
            yield batch
            batch = []
        longest = len(texts[key]) if not batch else longest
        batch.append(key)
    if batch:
        yield batch
