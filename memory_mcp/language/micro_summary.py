"""The one-line summary of a memory, made of its own first sentences: the text that an index of memories shows."""

from memory_mcp.language.sentences import split_at_ends

LEAST, MOST = 50, 80
# Only this much of a long text is read for a line of 80 characters.
_READ_CHARACTERS = 2_000
# A shorter first sentence is a greeting, an answer or an interjection, and is skipped.
_FILLER_CHARACTERS = 10
_PAUSES = "、，,;；:： 　"


def micro_summary(content: str) -> str:
    """The content as one line if it fits into 80 characters, otherwise 50 to 80 characters of its first meaningful sentences."""
    whole = _line(content[:_READ_CHARACTERS])
    if len(whole) <= MOST:
        return whole
    sentences = [line for line in map(_line, split_at_ends(content[:_READ_CHARACTERS])) if line]
    first = next((index for index, line in enumerate(sentences) if len(line) >= _FILLER_CHARACTERS), 0)
    summary = ""
    for sentence in sentences[first:]:
        summary += f" {sentence}" if summary and summary[-1].isascii() else sentence
        if len(summary) >= LEAST:
            break
    return _cut(summary if len(summary) >= LEAST else whole)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(line: str) -> str:
    """Cuts a line to 80 characters, at a pause if there is one after the first 50."""
    if len(line) <= MOST:
        return line
    kept = line[: MOST - 1]
    pause = max(kept.rfind(mark) for mark in _PAUSES)
    return (kept[:pause] if pause >= LEAST else kept).rstrip(_PAUSES) + "…"
