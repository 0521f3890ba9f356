"""The sound of words: names in Latin letters and back (サクラ, さくら and Sakura), and the same word in kana and in Latin letters (グレタ and
Greta).

For the latter a word is its consonants, in classes that kana can tell apart (l and r are one), and the vowels between these. Consonants
have to be the same, so that they can be looked up; vowels are compared forgivingly, because kana need some that nobody writes (グ before レ),
and write others otherwise (マイク, Mike). Kanji have no sound without a dictionary.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product

from memory_mcp.characters import HIRAGANA
from memory_mcp.language.synonyms import to_hiragana
from memory_mcp.lexicon import any_of, mapping, words


def _applied(rules: Sequence[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, written in rules:
        text = pattern.sub(written, text)
    return text


def _unmarked(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


_ROWS = words("sounds", "syllables")
_SYLLABLES = dict(zip(_ROWS[::2], _ROWS[1::2], strict=True))
# The vowel of a small letter takes the place of the one before it: ファ fa, ティ ti, キャ kya, but シャ sha.
_SMALL = {**dict(zip("ぁぃぅぇぉ", "aiueo", strict=True)), **dict(zip("ゃゅょ", ("ya", "yu", "yo"), strict=True))}
_SYLLABLE = re.compile(f"([{HIRAGANA}])([{''.join(_SMALL)}]?)")
_ROMANIZED, _ONE_LENGTH, _AS_IN_HIRAGANA, _OF_KANA, _OF_LATIN = (
    [(re.compile(pattern), written) for pattern, written in mapping("sounds", table).items()]
    for table in ("romanized", "one_length", "as_in_hiragana", "kana", "letters")
)
# Latin letters → hiragana, of Hepburn and Kunrei.
_KANA = dict(zip(words("sounds", "romanization")[::2], words("sounds", "romanization")[1::2], strict=True))
_LATIN_SYLLABLE = re.compile(any_of(_KANA))
_MAY_BE_LONG = "こごそぞとどのほぼぽもよろおょくぐすずつぬふぶぷむゆるうゅ"
LONG_VOWELS_LIMIT = 3


def in_hiragana(word: str) -> list[str]:
    """The ways to write a word in Hepburn or Kunrei romanization with hiragana, long vowels unwritten or not; none if it is not in
    either."""
    text = _unmarked(word.casefold().replace("'", ""))
    if not text.isascii():
        return []
    kana = _LATIN_SYLLABLE.sub(lambda match: _KANA[match[0]], _applied(_AS_IN_HIRAGANA, text))
    if any(letter.isascii() for letter in kana or "-"):
        return []
    choices = [(syllable, syllable + "う") if syllable in _MAY_BE_LONG else (syllable,) for syllable in kana]
    return ["".join(chosen) for chosen in islice(product(*choices), 2**LONG_VOWELS_LIMIT)]


def reading(name: str) -> str:
    """A name in lower-case Latin letters: kana as they are read, long vowels and doubled consonants as single ones, so that two spellings of
    one Japanese name mostly have the same reading."""
    text = to_hiragana(unicodedata.normalize("NFKC", name)).casefold()
    return _applied(_ONE_LENGTH, _applied(_ROMANIZED, _unmarked(_SYLLABLE.sub(_romanized, text))))


def _romanized(match: re.Match[str]) -> str:
    syllable, small = _SYLLABLES.get(match[1], match[1]), _SMALL.get(match[2], "")
    stem = syllable[:-1]
    return stem + (small[-1] if stem in ("sh", "ch", "j") else small) if small else syllable


# The ways to read one word in Latin letters, and its letters that are read.
READINGS_LIMIT, LONGEST = 16, 24
# How much the vowels of words that sound alike may differ, for each consonant.
DIFFERENCE_PER_CONSONANT = 0.25
# The difference of vowels that can't be the same.
FAR = 3
_VOWELS = "aeiou"
# What has several readings, as a capital letter, and these.
_READ_AS = {letter: tuple(read.replace("-", "") for read in readings.split()) for letter, readings in mapping("sounds", "read_as").items()}
_CONSONANT = re.compile(f"[^{_VOWELS}]")
# The vowels in kana of what is written in Latin letters, and those of a consonant that needs one.
_USUAL = {written: tuple(vowels.split()) for written, vowels in mapping("sounds", "usual_vowels").items()}
_RARE, _NEEDED = mapping("sounds", "rare_vowels"), mapping("sounds", "needed_vowels")


@dataclass(frozen=True, slots=True)
class Sound:
    """The consonants of a word, and the vowels before, between and after them."""

    consonants: str
    vowels: tuple[str, ...]


def of_kana(word: str) -> Sound:
    """The sound of a word in kana."""
    return _sound(_applied(_OF_KANA, reading(word[:LONGEST])))


def of_latin(word: str) -> tuple[Sound, ...]:
    """The sounds that a word in Latin letters may have."""
    text = "".join(letter for letter in unicodedata.normalize("NFD", word[:LONGEST].casefold()) if letter.isascii() and letter.isalpha())
    if not any(vowel in text for vowel in f"{_VOWELS}y"):
        return ()  # an abbreviation
    parts = [_READ_AS.get(letter, (letter,)) for letter in _applied(_OF_LATIN, text)]
    return tuple(dict.fromkeys(_sound("".join(read)) for read in islice(product(*parts), READINGS_LIMIT)))


def difference(kana: Sound, latin: Sound) -> float:
    """How much the vowels of two words with the same consonants differ."""
    parts = enumerate(zip(kana.vowels, latin.vowels, ("", *kana.consonants), strict=True))
    return sum(_difference(*part, is_last=index == len(kana.consonants)) for index, part in parts)


def largest_difference(sound: Sound) -> float:
    """How much the vowels of one word may differ, written in kana and in Latin letters."""
    consonants = len(sound.consonants)
    return DIFFERENCE_PER_CONSONANT * consonants if consonants > 1 else 0


def _sound(text: str) -> Sound:
    return Sound("".join(letter for letter in text if letter not in _VOWELS), tuple(_CONSONANT.split(text)))


def _difference(kana: str, written: str, consonant: str, *, is_last: bool) -> float:
    usual = _USUAL.get(written, ())
    if kana == written or kana in usual[:1]:
        return 0
    if not written or (is_last and written == "e"):  # グ of グレタ, ド of Ingrid; e of Mike
        return 0 if not kana or (consonant and kana in _NEEDED.get(consonant, "u")) else FAR
    if kana in usual:
        return 0.5
    is_rare = kana[:1] in _RARE.get(written, "") if kana else written == "e"
    shares_an_end = max(len(kana), len(written)) > 1 and kana and (kana[-1] == written[-1] or kana[0] == written[0])
    return 1 if is_rare or shares_an_end else FAR
