"""The sound of words: names in Latin letters and back (サクラ, さくら and Sakura), and the same word in kana and in Latin letters (グレタ and
Greta).

For the latter a word is its consonants, in classes that kana can tell apart (l and r are one), and the vowels between these. Consonants
have to be the same, so that they can be looked up; vowels are compared forgivingly, because kana need some that nobody writes (グ before レ),
and write others otherwise (マイク, Mike). Kanji have no sound without a dictionary.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice, product

from memory_mcp.characters import HIRAGANA
from memory_mcp.language.spelling import to_hiragana
from memory_mcp.lexicon import mapping, words

_ROWS = words("sounds", "syllables")
_SYLLABLES = dict(zip(_ROWS[::2], _ROWS[1::2], strict=True))
# The vowel of a small letter takes the place of the one before it: ファ fa, ティ ti, キャ kya, but シャ sha.
_SMALL = {**dict(zip("ぁぃぅぇぉ", "aiueo", strict=True)), **dict(zip("ゃゅょ", ("ya", "yu", "yo"), strict=True))}
_SYLLABLE = re.compile(f"([{HIRAGANA}])([{''.join(_SMALL)}]?)")
_SPELLINGS = tuple(zip(words("sounds", "spellings")[::2], words("sounds", "spellings")[1::2], strict=True))
_LONG = re.compile(r"([aiueo])(?:\1|ー|h(?![aiueoy]))+|(?<=o)u|[ー'’\-\s・=]")
_DOUBLED = re.compile(r"x(\w)|tch|([bcdfghjkmprstz])\2")

# Latin letters → hiragana, of Hepburn and Kunrei.
_KANA = {
    **{latin: kana for kana, latin in _SYLLABLES.items() if kana not in "ぁぃぅぇぉゃゅょゎっゐゑをぢづゔん"},
    **{
        start + vowel: kana + small
        for start, kana in zip("ky gy ny hy by py my ry sh sy ch ty j jy zy".split(), "きぎにひびぴみりししちちじじじ", strict=True)
        for vowel, small in zip("auo", "ゃゅょ", strict=True)
    },
    **dict(zip("si ti tu hu zi n".split(), "しちつふじん", strict=True)),
}
_LATIN_SYLLABLE = re.compile("|".join(sorted(_KANA, key=len, reverse=True)))
_DOUBLED_LATIN, _LONG_LATIN = re.compile(r"([kstcpgzjdb])(?=\1|(?<=t)ch)"), re.compile("ou|oo|oh(?![aeiouy])|uu")
_MAY_BE_LONG = re.compile("([こごそぞとどのほぼぽもよろおょくぐすずつぬふぶぷむゆるうゅ])")
LONG_VOWELS_LIMIT = 3


def in_hiragana(word: str) -> list[str]:
    """The ways to write a word in Hepburn or Kunrei romanization with hiragana, long vowels unwritten or not; none if it is not in
    either."""
    text = unicodedata.normalize("NFD", word.casefold().replace("'", ""))
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    if not text.isascii():
        return []
    text = re.sub("m(?=[bpm])", "n", _LONG_LATIN.sub(lambda match: match[0][0], text))
    kana = _LATIN_SYLLABLE.sub(lambda match: _KANA[match[0]], _DOUBLED_LATIN.sub("っ", text))
    if not kana or any(letter.isascii() for letter in kana):
        return []
    syllables = _MAY_BE_LONG.split(kana)
    choices = [(syllable, syllable + "う") if _MAY_BE_LONG.fullmatch(syllable) else (syllable,) for syllable in syllables]
    return ["".join(chosen) for chosen in islice(product(*choices), 2**LONG_VOWELS_LIMIT)]


def reading(name: str) -> str:
    """A name in lower-case Latin letters: kana as they are read, long vowels and doubled consonants as single ones.

    Two spellings of one Japanese name mostly have the same reading.
    """
    text = to_hiragana(unicodedata.normalize("NFKC", name)).casefold()
    text = _SYLLABLE.sub(_romanized, text)
    text = "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
    text = _DOUBLED.sub(lambda match: match[1] or match[2] or "ch", text)
    for spelling, usual in _SPELLINGS:
        text = text.replace(spelling, usual)
    return _LONG.sub(lambda match: match[1] or "", text)


def _romanized(match: re.Match[str]) -> str:
    syllable, small = _SYLLABLES.get(match[1], match[1]), _SMALL.get(match[2], "")
    if not small:
        return syllable
    stem = syllable[:-1]
    return stem + (small[-1] if stem in ("sh", "ch", "j") else small)


# The ways to read one word in Latin letters, and its letters that are read.
READINGS_LIMIT, LONGEST = 16, 24
# How much the vowels of words that sound alike may differ, for each consonant.
DIFFERENCE_PER_CONSONANT = 0.25

# The difference of vowels that can't be the same.
FAR = 3
_VOWELS = "aeiou"
# How the letters of a Latin word are read, one rule after the other. A capital letter is what has several readings, those of `_READ_AS`.
_LATIN = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"([^aeiou])\1+", r"\1"),
        (r"(?<=...)s$", "S"), (r"tsch|tch|cz|ts|tz", "t"), (r"sch|sh|sz", "s"), (r"ti(?=[aou])", "s"), (r"dge?(?=[aeiouy]|$)|dj", "j"), (r"ph", "f"),
        (r"ck|q", "k"), (r"ch", "C"), (r"th", "H"), (r"gh(?![aeiou])", ""), (r"gh", "g"), (r"^kn", "n"), (r"^wr", "r"), (r"wh", "w"), (r"x", "ks"),
        (r"c(?=[eiy])", "s"), (r"c", "k"), (r"g(?=[eiy])", "G"), (r"j", "J"), (r"m(?=[pbf])", "n"), (r"v", "b"), (r"y(?![aeiou])", "i"),
        (r"w(?=[aeiou])", "W"), (r"w", "u"), (r"h(?![aeiou])", ""), (r"z", "s"),
        (r"ar(?![aeiou])", "A"), (r"er(?![aeiou])", "E"), (r"ir(?![aeiou])", "I"), (r"or(?![aeiou])", "O"), (r"ur(?![aeiou])", "U"), (r"l", "r"),
    )
)  # fmt: skip
_READ_AS = {letter: tuple(read.replace("-", "") for read in readings.split()) for letter, readings in mapping("sounds", "read_as").items()}
_AMBIGUOUS = re.compile(f"([{''.join(_READ_AS)}])")
_IN_KANA = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in ((r"s[hf]", "s"), (r"c[hf]|ts", "t"), (r"(?<=[kgnhbpmr])y", "i"), (r"z", "s"), (r"([^aeiou])\1+", r"\1"))
)
_PARTS = re.compile(f"[^{_VOWELS}]|[{_VOWELS}]+")
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
    text = reading(word[:LONGEST])
    for pattern, sound in _IN_KANA:
        text = pattern.sub(sound, text)
    return _sound(text)


def of_latin(word: str) -> tuple[Sound, ...]:
    """The sounds that a word in Latin letters may have."""
    letters = unicodedata.normalize("NFD", word[:LONGEST].casefold())
    text = "".join(letter for letter in letters if letter.isascii() and letter.isalpha())
    if not any(vowel in text for vowel in f"{_VOWELS}y"):
        return ()  # an abbreviation
    for pattern, sound in _LATIN:
        text = pattern.sub(sound, text)
    parts = [_READ_AS.get(part, (part,)) for part in _AMBIGUOUS.split(text)]
    return tuple(dict.fromkeys(_sound("".join(read)) for read in islice(product(*parts), READINGS_LIMIT)))


def difference(kana: Sound, latin: Sound) -> float:
    """How much the vowels of two words with the same consonants differ."""
    before = ("", *kana.consonants)
    last = len(before) - 1
    return sum(
        _difference(vowels, written, consonant, is_last=index == last)
        for index, (vowels, written, consonant) in enumerate(zip(kana.vowels, latin.vowels, before, strict=True))
    )


def largest_difference(sound: Sound) -> float:
    """How much the vowels of one word may differ, written in kana and in Latin letters."""
    consonants = len(sound.consonants)
    return DIFFERENCE_PER_CONSONANT * consonants if consonants > 1 else 0


def _sound(text: str) -> Sound:
    consonants, vowels = [], [""]
    for part in _PARTS.findall(text):
        if part[0] in _VOWELS:
            vowels[-1] += part
        else:
            consonants.append(part)
            vowels.append("")
    return Sound("".join(consonants), tuple(vowels))


def _difference(kana: str, written: str, consonant: str, *, is_last: bool) -> float:
    usual = _USUAL.get(written, ())
    if kana == written or kana in usual[:1]:
        return 0
    if not written or (is_last and written == "e"):  # グ of グレタ, ド of Ingrid; e of Mike
        return 0 if not kana or (consonant and kana in _NEEDED.get(consonant, "u")) else FAR
    if kana in usual:
        return 0.5
    is_near = (
        kana[:1] in _RARE.get(written, "") if kana else written == "e",
        max(len(kana), len(written)) > 1 and bool(kana) and (kana[-1] == written[-1] or kana[0] == written[0]),
    )
    return 1 if any(is_near) else FAR
