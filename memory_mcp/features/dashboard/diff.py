"""What changed between two texts, as runs of characters or words that stayed, came and went."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

Change = tuple[Literal["same", "gone", "new"], str]

# Words of Latin letters and digits, blanks, and single characters of anything else: Japanese has no spaces between words.
_PIECE = re.compile(r"[A-Za-z0-9]+|\s+|.", re.DOTALL)
_SENTENCE = re.compile(r"[^。．.!?！？\n]*[。．.!?！？\n]+|[^。．.!?！？\n]+")
# Comparing takes up to the square of the number of pieces.
PIECES_LIMIT = 1_500


def changes(before: str, after: str) -> list[Change]:
    """Return the runs of both texts in order. Long texts are compared by sentences, and those of too many sentences as a whole."""
    for pattern in (_PIECE, _SENTENCE):
        old, new = pattern.findall(before), pattern.findall(after)
        if len(old) + len(new) <= PIECES_LIMIT:
            return _compared(old, new)
    return [("gone", before), ("new", after)] if before != after else [("same", after)]


def _compared(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    runs: list[Change] = []
    for tag, begin, end, new_begin, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            runs.append(("same", "".join(old[begin:end])))
            continue
        if end > begin:
            runs.append(("gone", "".join(old[begin:end])))
        if new_end > new_begin:
            runs.append(("new", "".join(new[new_begin:new_end])))
    return runs
