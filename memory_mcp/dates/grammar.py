"""The grammar of dates: `expressions.toml` with the words of the lexicon filled in."""

import tomllib
from pathlib import Path

from memory_mcp.dates.spans import COUNT, KANJI_NUMBER, MONTHS, NUMBER, YEARS_BACK
from memory_mcp.lexicon import CLASSES, any_of, mapping, parts_of

_FILE = tomllib.loads(Path(__file__).with_name("expressions.toml").read_text("utf-8"))
ROWS = _FILE["expression"]
# Behind a name that ends so, another word may go on.
_GOES_ON = {"日": "曜常々差没記課", "分": "点曜常々"}


def _names(language: str, table: str) -> str:
    """A pattern for the names of a table, in the group `name`; none where it is the beginning of another word."""
    others = mapping(language, "not_before")
    named = []
    for name in sorted(mapping(language, table), key=len, reverse=True):
        behind = [*others.get(name, "").split(" "), *_GOES_ON.get(name[-1], "")]
        ends = "(?![a-z])" if name.isascii() else "(?![ァ-ヺー・])" if "ァ" <= name[-1] <= "ー" else ""
        stop = f"(?!{any_of(filter(None, behind)) if language == 'ja' else ' (?:' + any_of(filter(None, behind)) + ')'})"
        named.append(any_of([name]) + ends + (stop if any(behind) else ""))
    return f"(?P<name>{'|'.join(named)})"


# Parts of expressions, by name.
_KNOWN = {
    **CLASSES,
    **{f"{language}_{kind}": _names(language, f"named_{kind}") for language in ("ja", "en") for kind in ("days", "periods")},
    # A look at the first character makes the search several times faster.
    "first_of_days": "".join(sorted({name[0] for name in mapping("ja", "named_days")})),
    "year_starts": "".join(sorted({name[0] for name in YEARS_BACK})),
    "number": NUMBER,
    "kanji_number": KANJI_NUMBER,
    "count": COUNT,
    "months": any_of(MONTHS),
}
PARTS = parts_of(_FILE["parts"], _KNOWN)
