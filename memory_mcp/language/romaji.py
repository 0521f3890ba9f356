"""The reading of a name in Latin letters, so that サクラ, さくら and Sakura can be compared, and back. Kanji have none without a dictionary."""

import re
import unicodedata
from itertools import islice, product

from memory_mcp.characters import HIRAGANA

_ROWS = """
    あ a い i う u え e お o か ka き ki く ku け ke こ ko さ sa し shi す su せ se そ so た ta ち chi つ tsu て te と to
    な na に ni ぬ nu ね ne の no は ha ひ hi ふ fu へ he ほ ho ま ma み mi む mu め me も mo や ya ゆ yu よ yo
    ら ra り ri る ru れ re ろ ro わ wa ゐ i ゑ e を o ん n ゔ vu が ga ぎ gi ぐ gu げ ge ご go ざ za じ ji ず zu ぜ ze ぞ zo
    だ da ぢ ji づ zu で de ど do ば ba び bi ぶ bu べ be ぼ bo ぱ pa ぴ pi ぷ pu ぺ pe ぽ po
    ぁ a ぃ i ぅ u ぇ e ぉ o ゃ ya ゅ yu ょ yo ゎ wa っ x
""".split()
_SYLLABLES = dict(zip(_ROWS[::2], _ROWS[1::2], strict=True))
# The vowel of a small letter takes the place of the one before it: ファ fa, ティ ti, キャ kya, but シャ sha.
_SMALL = {**dict(zip("ぁぃぅぇぉ", "aiueo", strict=True)), **dict(zip("ゃゅょ", ("ya", "yu", "yo"), strict=True))}
_SYLLABLE = re.compile(f"([{HIRAGANA}])([{''.join(_SMALL)}]?)")
_KATAKANA = {letter: letter - 0x60 for letter in range(ord("ァ"), ord("ヶ") + 1)}
# Several ways to write the same sound, as one: those of Hepburn, of Kunrei, and of people's names.
_SPELLINGS = (
    *(("sy", "sh"), ("ty", "ch"), ("zy", "j"), ("jy", "j"), ("si", "shi"), ("ti", "chi"), ("tu", "tsu"), ("hu", "fu"), ("zi", "ji")),
    *(("mb", "nb"), ("mp", "np"), ("mm", "nm"), ("l", "r"), ("v", "b")),
)
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
    """The ways to write a word in Hepburn or Kunrei romanization with hiragana, long vowels unwritten or not; none if it is not in either."""
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
    text = unicodedata.normalize("NFKC", name).translate(_KATAKANA).casefold()
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
