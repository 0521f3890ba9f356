"""From any text to a persona's canonical name, and from there to its directory.

A name is canonical when it is in NFC and free of blanks at the ends and of characters that nobody sees. Two names that
differ have directories that differ, also on file systems that ignore case or normalise; `a/b`, `a_b`, `..` and `con` are
names like any other. The rule and what was tried against it: docs/decisions/0004-persona-names-and-directories.md.
"""

import hashlib
import re
import unicodedata

from memory_mcp.errors import InvalidPersonaName

NAME_LIMIT = 200

_PLAIN = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
_RESERVED_ON_WINDOWS = frozenset(["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))])
_INVISIBLE = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
# Letters, marks and a symbol that show nothing: Unicode's default ignorable code points of other categories, and the empty braille cell.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0]")
# They choose between pictures of one character (❤️, 葛󠄀), and keyboards add them unasked.
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# No character becomes more than four when it is decomposed. To compose takes the square of the length, so what is longer is not composed.
_MOST_DECOMPOSED = 4


def canonical_name(name: str) -> str:
    """The one spelling of a persona's name.

    Raises:
        InvalidPersonaName: empty, too long, blanks at the ends, or characters that nobody sees.
    """
    name = _VARIATION_SELECTORS.sub("", name)
    composed = unicodedata.normalize("NFC", name) if len(name) <= NAME_LIMIT * _MOST_DECOMPOSED else name
    if not composed.strip():
        raise InvalidPersonaName("the persona name is empty", "", "Send a name in X-Persona, such as nilou or さくら")
    if len(composed) > NAME_LIMIT:
        raise InvalidPersonaName(f"the persona name has {len(composed)} characters", f"{NAME_LIMIT} are the limit", "Choose a shorter one")
    if composed != composed.strip():
        raise InvalidPersonaName("the persona name begins or ends with a blank", "", "Send it without")
    for place, character in enumerate(composed, start=1):
        if unicodedata.category(character) in _INVISIBLE or _BLANK.match(character):
            raise InvalidPersonaName(
                f"the persona name holds the invisible character U+{ord(character):04X} at place {place}",
                "names that look the same must be the same",
                "Send the name without it",
            )
    return composed


def directory_name(canonical: str) -> str:
    """The directory of a canonical name: the name itself where that is safe everywhere, otherwise a readable part and a hash."""
    if _PLAIN.fullmatch(canonical) and "--" not in canonical and canonical not in _RESERVED_ON_WINDOWS:
        return canonical
    folded = unicodedata.normalize("NFKC", canonical).casefold()
    words = "".join(character if character.isalnum() else "-" for character in folded)
    slug = re.sub("-+", "-", words).encode()[:60].decode(errors="ignore").strip("-") or "p"
    # No canonical name has half of a character, but a file's name that is asked about may: it is nobody's.
    return f"{slug}~{hashlib.sha256(canonical.encode(errors='surrogatepass')).hexdigest()[:20]}"


def fold(name: str) -> str:
    """A name without the differences that a slip of the finger makes: width, case, and what surrounds it."""
    return unicodedata.normalize("NFKC", name).casefold().strip()
