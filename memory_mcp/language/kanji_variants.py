"""The forms of one kanji: 髙 and 高, 澤 and 沢. Names are written with either, by the same person too (dictionaries/README.md)."""

import re
from importlib import resources

FILE = "variants.tsv"


def _table() -> dict[str, str]:
    file = resources.files("memory_mcp.language") / "dictionaries" / FILE
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else ()
    return {other: usual for usual, others in (line.split("\t") for line in lines) for other in others}


_USUAL = _table()
_OTHER_FORM = re.compile(f"[{''.join(_USUAL)}]" if _USUAL else "(?!)")


def with_usual_kanji(text: str) -> str:
    """The same text with the usual form of each kanji; as long as before."""
    return _OTHER_FORM.sub(lambda form: _USUAL[form[0]], text)
