"""What goes to a model in one call: texts of like length, few enough that the call is soon over.

A call pads every text to its longest one, so mixed lengths are paid for twice. And a call that has begun can't be stopped:
eight texts of 2,000 characters would keep a worker for five seconds, and gain nothing over eight calls.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

Key = TypeVar("Key")

CHARACTERS = 2_000


def batches_by_length(texts: Mapping[Key, str], size: int, characters: int = CHARACTERS) -> Iterator[list[Key]]:
    """The keys, the longest text first, in batches of at most `size`, and of `characters` once padded. Long ones stand alone."""
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
