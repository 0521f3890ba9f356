"""Where sentences end in Japanese and English text. Every module that splits text into sentences uses these patterns."""

import re

# After a full stop that may end a sentence: not that of a title or of an abbreviation, of "No. 5", or of "etc." within a sentence.
_STOP = (
    "(?<=[.])"
    + "".join(rf"(?<!(?<![A-Za-z]){word}[.])" for word in "Mr Mrs Ms Dr Prof St vs cf e[.]g i[.]e".split())
    + r"(?!(?<=(?<![A-Za-z])No[.])\s+[0-9])(?!(?<=(?<![A-Za-z])etc[.])\s+[a-z])"
)
# A sentence or line with the quotes, brackets and spaces that follow it.
_END = re.compile(rf"[。．！？!?]+[」』）)\"']*\s*|\n+|{_STOP}\s+")
# English full stops are split separately, and only before a capital or quote, so that 3.30 and p.m. stay whole.
_SENTENCE = re.compile(r"[^。．！？!?\n]*[。．！？!?]+[」』）)\"']*|[^。．！？!?\n]+")
_ENGLISH_END = re.compile(rf"{_STOP}\s+(?=[A-Z\"'(])")
# The offset after a sentence; never before a closing quote or bracket.
_BREAK = re.compile(rf"(?<=[。．！？!?])(?![。．！？!?」』）)])|\n|{_STOP}\s")
_INNER_END = re.compile(r"[。.!?！？\n](?=.)")
_CUT = re.compile(rf"[。．！？!?]+[」』）)\"']*|[.]{_STOP}(?=\s)|(?=\n)")


def sentence_ends(text: str) -> list[int]:
    """The offsets after each sentence or line, including the quotes, brackets and spaces that follow it."""
    return [match.end() for match in _END.finditer(text)]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text without surrounding spaces. English ones end where a capital or a quote follows the full stop."""
    pieces = [piece.strip() for match in _SENTENCE.finditer(text) for piece in _ENGLISH_END.split(match.group())]
    return [piece for piece in pieces if piece]


def split_at_breaks(text: str) -> list[str]:
    """The parts of a text between the ends of sentences and lines; every full stop before a space is an end, except of a title or an abbreviation."""
    return _BREAK.split(text)


def is_single_sentence(text: str) -> bool:
    """Whether no sentence or line ends before the last character."""
    return _INNER_END.search(text) is None


def last_sentence_end(text: str) -> int | None:
    """The offset of the last end of a sentence or line; None if there is none."""
    ends = [match.end() for match in _CUT.finditer(text)]
    return ends[-1] if ends else None
