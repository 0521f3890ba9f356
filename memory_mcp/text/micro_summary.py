"""One line that says what a memory is about, taken from its own words: what an index of memories shows of each."""

import re

LEAST, MOST = 50, 80
# What a line of 80 characters may be taken from: of a long text only the beginning is read.
_READ_CHARACTERS = 2_000
# A sentence as short as this is a greeting, an answer or an interjection; it says nothing without the next.
_FILLER_CHARACTERS = 10
_SENTENCE_END = re.compile(r"(?<=[。．！？!?])(?![。．！？!?」』）)])|\n|(?<=[.])\s")
_PAUSES = "、，,;；:： 　"


def micro_summary(content: str) -> str:
    """A text of at most 80 characters as one line; of a longer one its first sentences that say something, 50 to 80 characters."""
    whole = _line(content[:_READ_CHARACTERS])
    if len(whole) <= MOST:
        return whole
    sentences = [line for line in map(_line, _SENTENCE_END.split(content[:_READ_CHARACTERS])) if line]
    telling = next((place for place, line in enumerate(sentences) if len(line) >= _FILLER_CHARACTERS), 0)
    summary = ""
    for sentence in sentences[telling:]:
        summary += f" {sentence}" if summary and summary[-1].isascii() else sentence
        if len(summary) >= LEAST:
            break
    return _cut(summary if len(summary) >= LEAST else whole)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(line: str) -> str:
    """At most 80 characters, ended at a pause where there is one late enough."""
    if len(line) <= MOST:
        return line
    kept = line[: MOST - 1]
    pause = max(kept.rfind(mark) for mark in _PAUSES)
    return (kept[:pause] if pause >= LEAST else kept).rstrip(_PAUSES) + "…"
