"""Of the best matches, those that have the amount that a question asks for come before those that have none.

「ジム入会した、月8千ちょい」 for ジム代いくら？ before 「ジムで40kg上がった」, which has more of its words (docs/decisions/0056-asked-amounts.md).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from memory_mcp.domain import Candidate, Memory
from memory_mcp.language.amounts import asked_amount
from memory_mcp.language.tokens import normalise

# What lacks the amount comes before what has it only if this share of its score is higher.
LACKING_SHARE = 0.6


def amounts_first(ranked: Sequence[Candidate], memories: Mapping[int, Memory], query: str) -> list[Candidate]:
    """The candidates, best first; of those that were read, what lacks the asked amount behind what has it and matches nearly as well. Scores only rise."""
    amount = asked_amount(normalise(query))
    if amount is None:
        return list(ranked)
    read = [candidate for candidate in ranked if candidate.memory_id in memories]
    lacking = {candidate.memory_id for candidate in read if not amount.search(normalise(memories[candidate.memory_id].content))}
    if not 0 < len(lacking) < len(read):
        return list(ranked)
    ordered = sorted(read, key=lambda candidate: candidate.score * (LACKING_SHARE if candidate.memory_id in lacking else 1), reverse=True)
    for below, above in pairwise(reversed(ordered)):
        above.score = max(above.score, below.score)
    in_turn = iter(ordered)
    return [next(in_turn) if candidate.memory_id in memories else candidate for candidate in ranked]
