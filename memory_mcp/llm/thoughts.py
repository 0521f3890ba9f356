"""The thoughts that some servers and programs leave at the beginning of what a model said."""

import re

_ENDS = {tag: re.compile(f"</{tag}>", re.IGNORECASE) for tag in ("think", "thinking", "reasoning")}
_BEGINNING = re.compile(rf"\s{{0,9}}<({'|'.join(_ENDS)})>", re.IGNORECASE)


def without_thoughts(answer: str) -> str:
    """An answer without the thoughts at its beginning; the very same text where it begins with none, or where they never end."""
    beginning = _BEGINNING.match(answer)
    end = _ENDS[beginning[1].lower()].search(answer, beginning.end()) if beginning else None
    return answer[end.end() :].lstrip() if end else answer
