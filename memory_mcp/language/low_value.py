"""Recognizes low-value texts: greetings, acknowledgements, error dumps, fragments. The result is computed on demand, never stored.

Such a memory is kept and can be recalled like any other; it is only left out of what the server selects by itself: the
latest memories of `get_context`, summaries, merge proposals. In doubt, a text is not of low value.
"""

import re
from collections.abc import Callable, Set
from typing import Literal

from memory_mcp.language.tokens import normalise
from memory_mcp.lexicon import words

LowValue = Literal["greeting", "nod", "error_dump", "too_short", "no_words", "repetition"]

LEAST_LETTERS, LEAST_UNSPACED_LETTERS = 4, 2
# A longer text is not just a greeting, even if it begins with one.
PHRASES_LIMIT = 120
REPETITION_LETTERS = 12

_NOT_WORDS, _LENGTHENED = re.compile(r"[\W_]+"), re.compile("[~〜ー]+")
_UNSPACED = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _squeezed(text: str) -> str:
    """Only letters and digits, with case, width and lengthened vowels unified."""
    return _of_letters(normalise(text))


def _of_letters(normal: str) -> str:
    return _NOT_WORDS.sub("", _LENGTHENED.sub("ー", normal))


_GREETINGS, _NODS = (
    frozenset(_squeezed(phrase) for language in ("ja", "en") for phrase in words(language, table)) for table in ("greetings", "nods")
)
_EITHER = _GREETINGS | _NODS
_LONGEST = max(map(len, _EITHER))
_BY_FIRST_LETTER = {letter: tuple(phrase for phrase in _EITHER if phrase[0] == letter) for letter in {phrase[0] for phrase in _EITHER}}
# What may follow a phrase: おはよーっ, うんうん, okw.
_ENDINGS, _ENDINGS_LIMIT = frozenset("ーっねよですまwh笑"), 3
# The addressee of a greeting: 「おはよう、ニィロウさん」, "Hello, Nilou!".
_ADDRESSEE = re.compile(r"(?<![、,，\s])[、,，\s]++[^、,，。\s\d]{1,12}?(?:さん|ちゃん|くん|君|様)?\s*+[!！。.〜~ー♪]*+\s*+$")

_TRACE_LINES = re.compile(
    r"""^[^\S\n]*+(?:
        Traceback\ \(most\ recent\ call\ last\)
      | File\ ".*",\ line\ \d+
      | at\ [\w.$<>\ /\[\]-]+\(.*\)
      | at\ .+:\d+:\d+
      | Caused\ by:
      | \.\.\.\ \d+\ more
      | goroutine\ \d+
      | thread\ '.*'\ panicked\ at
      | Segmentation\ fault
      | (?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning)\b(?::|\ in\ |$)
      | (?:Uncaught|Unhandled)\b.*(?:Error|Exception|rejection)
      | npm\ ERR!
      | (?:fatal|error|panic|warning)(?:\[\w+\])?:\s
      | (?:\[?\d{4}-\d\d-\d\d[T\ ][\d:.,]+Z?\]?\s+)?\[?(?:ERROR|FATAL|WARN(?:ING)?|CRITICAL)\]?[:\s\[]
      | (?:HTTP(?:/\d\.\d)?|status(?:\ code)?:?|エラー|エラーコード[:：]?)\s*[45]\d\d\b
      | Error:\s | Exception\ in\ thread
      | (?:エラー|例外)(?:が発生しました|[:：])
    )""",
    re.VERBOSE | re.MULTILINE,
)


def low_value(text: str, normal: str | None = None) -> LowValue | None:
    """The reason why a text is of low value; None if it may be worth showing. `normal`: the normalized text, if the caller has it."""
    squeezed = _of_letters(normalise(text) if normal is None else normal)
    if not any(letter.isalnum() for letter in squeezed):
        return "no_words"
    may_be_phrases = squeezed.startswith(_BY_FIRST_LETTER.get(squeezed[0], ()))
    rules: tuple[tuple[LowValue, Callable[[], bool]], ...] = (
        ("error_dump", lambda: _is_dump(text)),
        ("greeting", lambda: may_be_phrases and _is_all(_GREETINGS, text, squeezed)),
        ("nod", lambda: may_be_phrases and _is_all(_NODS, text, squeezed)),
        ("greeting", lambda: may_be_phrases and _is_all(_EITHER, text, squeezed)),
        ("repetition", lambda: _is_repetition(squeezed)),
        ("too_short", lambda: _is_short(squeezed)),
    )
    return next((name for name, holds in rules if holds()), None)


def _is_all(phrases: Set[str], text: str, squeezed: str) -> bool:
    if len(text) > PHRASES_LIMIT:
        return False
    if _consists_of(phrases, squeezed):
        return True
    without_name = _ADDRESSEE.sub("", text.strip())
    return phrases is not _NODS and without_name != text.strip() and _consists_of(_GREETINGS, _squeezed(without_name))


def _consists_of(phrases: Set[str], squeezed: str) -> bool:
    """Whether a text consists only of phrases and their endings. A regular expression would backtrack exponentially: both え and ええ
    are phrases, so that sixty え can be divided in about 10¹² ways."""
    reached = {0}
    for start in range(len(squeezed)):
        if start not in reached:
            continue
        for end in range(start + 1, min(start + _LONGEST, len(squeezed)) + 1):
            if squeezed[start:end] in phrases:
                reached.add(end)
                for further in range(end, min(end + _ENDINGS_LIMIT, len(squeezed))):
                    if squeezed[further] not in _ENDINGS:
                        break
                    reached.add(further + 1)
    return len(squeezed) > 0 and len(squeezed) in reached


def _is_dump(text: str) -> bool:
    """Whether the text begins with a line of a stack trace, and half of its lines or more are trace or indented lines."""
    if not _TRACE_LINES.match(text.lstrip()):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    traces = sum(bool(_TRACE_LINES.match(line)) for line in lines)
    indented = sum(line[:1].isspace() for line in lines)
    return 2 * traces + indented >= len(lines) and bool(_TRACE_LINES.match(lines[0]))


def _is_repetition(squeezed: str) -> bool:
    """Whether a few characters are repeated: ｗｗｗｗ, あああああ, test test test."""
    if len(set(squeezed[:REPETITION_LETTERS])) > 6:
        return False  # nearly every text
    return (len(squeezed) > LEAST_LETTERS and len(set(squeezed)) <= 2) or (
        len(squeezed) >= REPETITION_LETTERS and len(set(squeezed)) <= 6 and re.fullmatch(r"(.{1,6}?)\1{3,}", squeezed) is not None
    )


def _is_short(squeezed: str) -> bool:
    """Whether the text is too short for a fact: one character in Japanese, three in Latin script, three digits."""
    if squeezed.isdigit():
        return len(squeezed) < LEAST_LETTERS
    return len(squeezed) < (LEAST_UNSPACED_LETTERS if _UNSPACED.search(squeezed) else LEAST_LETTERS)
