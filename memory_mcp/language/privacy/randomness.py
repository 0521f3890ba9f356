"""Whether a word was drawn at random: then it has fewer bits as such a draw than as a word that people or programs write.

The cost of each character after the one before it was counted in the words of Python's sources (`python -m benchmarks.character_costs`).
"""

import re
import string
from functools import cache
from math import log2

COST_DIGITS = string.digits + string.ascii_lowercase[:22]
# Before the first character, letters, digits, signs inside names, all other signs.
AFTER = f"{string.ascii_lowercase}0-_./:#"
BEFORE = f"^{AFTER}"
_TABLE = """
55455566597555548524576698464679h
8544975a5b6344c5b343677779698799h
3757488a44937745a5573b9a48586478f
386737935c3468279563579b8b695698g
4665277839a48747b55659997b673596g
574466798b935386733487747a7845a7i
4976548a3cc58738b5665cab7g6862a7g
587828554ca57467b446589ca8684476f
298728984d866739b5645aab7a784597f
6645565b8b944245a543b6c6c6aa88bah
497828b86868893588583b98795853b6b
58762867499495778647795b7a782487e
488522993c949837e85559ad699956a8g
259628aa4d865833c8565aaf6b895688f
484335395a668647a84356ab8c774597g
6544866a7b654254c3454657a9785699h
397637974d849844a364588c4d7955a7g
78878a988aa7968776680989aa6945a8c
3866275a4c765637e544668b6d894587h
696829754c767855a842597a6c894496h
486627a43d867846c455688859783597h
6456456b5da34374e3438ac9ca4d88bdf
287a18a94bb96868b887b98aaa5a5688e
387647852aa67448a3479958ba7745a8e
574646984bb75973a872999669274487e
765656886b9654629733776867763486e
498717a729b66747a8899b9964586588c
6666669a99aaa989ba999aa4aa166464g
5555558758856655954567678722a9acd
454444654975555485346659997f48eah
464555565975566484356768994d368cg
5455546668855674964556567838753bd
5555757868876776c75789879915a733c
555555555555555555555555555555555
"""
_COSTS = {
    (before, after): int(cost, 32)
    for before, row in zip(BEFORE, _TABLE.split(), strict=True)
    for after, cost in zip(AFTER, row, strict=True)
}
# The same for capitals ("u"), other letters ("l") and what is none ("x").
_CASE_COSTS = {("x", "u"): 2.7, ("x", "l"): 0.2, ("l", "u"): 5.8, ("l", "l"): 0.0, ("u", "u"): 0.5, ("u", "l"): 1.7}
_ANY_DIGIT, _ANY_SIGN = log2(10), log2(20)
_HEXADECIMAL = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")

# By how many bits a value must be likelier as a draw: without digits, and with the signs of a program, far more.
_LEAST, _LEAST_WITHOUT_DIGITS, _LEAST_OF_CODE = 20, 32, 60
_LEAST_CHARACTERS, _LEAST_DIFFERENT = 10, 6
# A value is judged by its beginning: a text of secret words without spaces has a value after each of them.
_JUDGED_CHARACTERS = 128
_CODE = re.compile(r"""[\[\]{}();,:?"'=<>|\\]""")
# As Apple's passwords are: three groups of six, with one digit and one capital.
_THREE_GROUPS = re.compile(r"(?=[^0-9]{0,19}[0-9][^0-9]{0,19}\Z)(?=[^A-Z]{0,19}[A-Z][^A-Z]{0,19}\Z)[A-Za-z0-9]{6}(?:-[A-Za-z0-9]{6}){2}")
# Lv99-Fire-Ice-Wind, ERC20/ERC721: words and numbers.
_WORD_OR_NUMBER = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)?[0-9]{0,4}")


def is_random(value: str) -> bool:
    """Whether a value looks drawn at random: a key, or a password that a program made."""
    if _THREE_GROUPS.fullmatch(value):
        return True
    value = value[:_JUDGED_CHARACTERS]
    if len(value) < _LEAST_CHARACTERS or len(set(value)) < _LEAST_DIFFERENT or "//" in value or _is_of_words(value):
        return False
    digits, letters = (any(map(holds, value)) for holds in (str.isdigit, str.isalpha))
    code = _CODE.search(value)
    if not letters or (code and not digits):
        return False
    least = _LEAST_OF_CODE if code else _LEAST if digits else _LEAST_WITHOUT_DIGITS
    return _bits_as_word(value) - _bits_as_draw(value) >= least


def kind_of(character: str) -> str:
    """What the table knows of a character: letters without their case, all digits as one, signs inside names, all other signs as one."""
    if character.isdigit():
        return "0"
    lower = character.lower()
    return lower if lower in AFTER and character != "#" else "#"


def case_of(character: str) -> str:
    """`u` for a capital, `l` for another letter, `x` for what is none."""
    return "u" if character.isupper() else "l" if character.isalpha() else "x"


def _is_of_words(value: str) -> bool:
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part]
    return len(parts) > 2 and all(map(_WORD_OR_NUMBER.fullmatch, parts)) and 2 * sum(len(part) > 3 for part in parts) >= len(parts)


def _bits_as_word(value: str) -> float:
    return sum(map(_bits_after, ["", *value], value))


@cache
def _bits_after(before: str, character: str) -> float:
    """What a character costs after another, or at the beginning."""
    kind, case = kind_of(character), case_of(character)
    bits = _COSTS[kind_of(before) if before else "^", kind] + _CASE_COSTS.get((case_of(before), case), 0)
    return bits + (_ANY_DIGIT if kind == "0" else _ANY_SIGN if kind == "#" else 0)


def _bits_as_draw(value: str) -> float:
    if _HEXADECIMAL.fullmatch(value):
        return 4.0 * len(value)
    sets = ((26, str.isupper), (26, str.islower), (10, str.isdigit), (10, lambda character: not character.isalnum()))
    return len(value) * log2(sum(size for size, holds in sets if any(map(holds, value))))
