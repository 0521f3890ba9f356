"""How a persona's name becomes canonical, and how the canonical name becomes a directory name.

A canonical name is in NFC, without blanks at the ends or invisible characters. Different names have different directories, also on
file systems that ignore case or normalize; `a/b`, `a_b`, `..`, and `con` are ordinary names. The rule and how it was tested:
docs/decisions/0004-persona-names-and-directories.md.
"""

import base64
import binascii
import hashlib
import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.language.labels import is_nothing

NAME_LIMIT = 200
# What the store of a pool is called among the stores of personas: no persona's name begins with a blank, and no persona's directory with @.
POOL_MARK = " @"
# After the names of all pools' stores, and before those of all personas.
LAST_POOL = f"{POOL_MARK}\U0010ffff"

# Before a name beyond Latin-1 that a client sends as Base64 of its UTF-8, as LibreChat does.
BASE64_MARK = "b64:"

_PLAIN = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
_RESERVED_ON_WINDOWS = frozenset(["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))])
_INVISIBLE = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
# Invisible letters, marks, and a symbol: Unicode's default ignorable code points of other categories, and the empty braille cell.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0]")
# They select a glyph of a character (❤️, 葛󠄀), and keyboards insert them by themselves.
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Inside a placeholder is what belongs there, which begins with a letter, or nothing: [._.] and <3 are names.
_INSIDE = r"\s*(?:[$#=@.]?[^\W\d_][^<>{}\[\]%]*)?"
# A whole name in the syntax of a template; and what no name has, wherever it is: ${…}, #{…}, %{…}, {{word}}, <%…%>.
_PLACEHOLDER = re.compile(
    rf"\A(?:<+{_INSIDE}>+|\{{+{_INSIDE}\}}+|\[+{_INSIDE}\]+|%{_INSIDE}%|\{{\d+\}}|\$\(.*\)|\$[A-Za-z_]\w*(?:[.:]\w+)*)\Z"
    r"|[$#%]\{|<%|\{\{\s*[$#=@.]?[^\W\d_][^{}]*\}\}"
)
# A character decomposes into at most four. Composing takes quadratic time, so longer texts aren't composed.
_MOST_DECOMPOSED = 4


def canonical_name(name: str) -> str:
    """The canonical spelling of a persona's name.

    Raises:
        InvalidPersonaName: the name is empty, too long, has blanks at the ends, or invisible characters.
    """
    name = _VARIATION_SELECTORS.sub("", name)
    composed = unicodedata.normalize("NFC", name) if len(name) <= NAME_LIMIT * _MOST_DECOMPOSED else name
    if not composed.strip():
        raise InvalidPersonaName("the persona name is empty", "", "Send a name in X-Persona, such as nilou or さくら")
    if len(composed) > NAME_LIMIT:
        raise InvalidPersonaName(
            "the persona name has {} characters", "{} are the limit", "Choose a shorter one", len(composed), NAME_LIMIT
        )
    if composed != composed.strip():
        raise InvalidPersonaName("the persona name begins or ends with a blank", "", "Send it without")
    for position, character in enumerate(composed, start=1):
        if unicodedata.category(character) in _INVISIBLE or _BLANK.match(character):
            raise InvalidPersonaName(
                "the persona name holds the invisible character U+{} at position {}",
                "names that look the same must be the same",
                "Send the name without it",
                f"{ord(character):04X}",
                position,
            )
    return composed


@lru_cache(maxsize=256)
def addressed_name(text: str) -> str:
    """The canonical name of the persona that somebody names: a client, a command, or a form for a new one.

    Raises:
        InvalidPersonaName: as `canonical_name`; or it is a placeholder that was not filled in, which all who forgot to would share.
    """
    name = canonical_name(_decoded(text) if text.startswith(BASE64_MARK) else text)
    if _is_unfilled(name):
        raise InvalidPersonaName(
            "the persona name is {}",
            "that is a placeholder which was not filled in",
            "Set what it stands for, or send the name itself",
            repr(name),
        )
    return name


def _decoded(text: str) -> str:
    encoded = text.removeprefix(BASE64_MARK)
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise InvalidPersonaName(
            "the persona name begins with {}",
            "what follows is not Base64 of a name in UTF-8",
            "Send it so, as {}44GV44GP44KJ is さくら, or percent-encoded",
            repr(BASE64_MARK),
            BASE64_MARK,
        ) from None


def sent_name(header: str) -> str:
    """The name in the value of a header that was read as Latin-1: UTF-8 bytes or percent-encoding. Bytes of another encoding could be the name
    of another persona in a third one.

    Raises:
        UnicodeError: it is neither.
    """
    return unquote(header.encode("latin-1").decode("utf-8"), errors="strict")


def name_of_older_directory(folder: str) -> str:
    """The canonical name of the persona for which an older server, which didn't decode the header, made a directory or file.

    Raises:
        InvalidPersonaName: no persona can have this name.
    """
    try:
        return canonical_name(sent_name(unicodedata.normalize("NFC", folder)))
    except (UnicodeError, InvalidPersonaName):
        return canonical_name(folder)


def pool_store(pool: str) -> str:
    """The name of a pool's store. A persona's store has the name of the persona."""
    return POOL_MARK + pool


def pool_of(name: str) -> str:
    """The pool that a store belongs to; empty for a persona's."""
    return name.removeprefix(POOL_MARK) if name.startswith(POOL_MARK) else ""


def key_in(pool: str, key: str) -> str:
    """The key of a pool's memory as a persona sees it: its own memories may have the same."""
    return f"{key}@{pool}"


def store_name(name: str) -> str:
    """The name of a store as a file states it: a pool's as it is, else the canonical name of a persona.

    Raises:
        InvalidPersonaName: no persona can have this name.
    """
    return pool_store(canonical_name(pool_of(name))) if pool_of(name) else canonical_name(name)


def directory_name(canonical: str) -> str:
    """The directory name of a canonical name: the name itself if it is safe on every system, otherwise a readable slug and a hash.

    That of a pool is always the second, after an @: it differs from those of older servers, which held any name.
    """
    pool = pool_of(canonical)
    if _PLAIN.fullmatch(canonical) and "--" not in canonical and canonical not in _RESERVED_ON_WINDOWS:
        return canonical
    folded = unicodedata.normalize("NFKC", canonical).casefold()
    words = "".join(character if character.isalnum() else "-" for character in folded)
    slug = re.sub("-+", "-", words).encode()[:60].decode(errors="ignore").strip("-") or "p"
    # Canonical names have no unpaired surrogates, but a file name passed here may; it matches no persona.
    return f"{'@' if pool else ''}{slug}~{hashlib.sha256(canonical.encode(errors='surrogatepass')).hexdigest()[:20]}"


def fold(name: str) -> str:
    """A name without differences in width, case, and surrounding blanks, to find similar names."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _is_unfilled(name: str) -> bool:
    folded = unicodedata.normalize("NFKC", name[:400]).strip()
    return is_nothing(folded) or _PLACEHOLDER.search(folded) is not None
