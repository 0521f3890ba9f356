"""What can't be stored or used as it came: characters that are no text, names that nobody filled in, and bytes in another encoding than
UTF-8."""

import codecs
import re
import unicodedata

from memory_mcp.errors import InvalidInput

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str, name: str) -> str:
    """Returns `text` unchanged.

    Raises:
        InvalidInput: it contains a character that can't be stored; the message names the field `name` and the offset.
    """
    match = UNSTORABLE.search(text)
    if match is None:
        return text
    character = "a NUL character" if match.group() == "\x00" else f"half of a surrogate pair (U+{ord(match.group()):04X})"
    raise InvalidInput(
        "{} holds {} at character {}",
        "it can't be stored or searched as text",
        "Remove it and send the call again",
        name,
        character,
        match.start() + 1,
    )


# How languages print a value that isn't there.
_NOTHING = frozenset({"null", "none", "undefined"})

# Inside a placeholder is what belongs there, which begins with a letter, or nothing: [._.] and <3 are names.
_INSIDE = r"\s*(?:[$#=@.]?[^\W\d_][^<>{}\[\]%]*)?"
_ENCLOSING = re.compile(
    rf"\A(?:<+{_INSIDE}>+|\{{+{_INSIDE}\}}+|\[+{_INSIDE}\]+|%{_INSIDE}%|\{{\d+\}}|\$\(.*\)|\$[A-Za-z_]\w*(?:[.:]\w+)*)",
)
# These no name has, wherever they stand: ${…}, #{…}, %{…}, {{word}}, <%…%>.
_ANYWHERE = re.compile(r"[$#%]\{|<%|\{\{\s*[$#=@.]?[^\W\d_][^{}]*\}\}")


def is_nothing(value: object) -> bool:
    """Whether a text is the name of nothing: null, None, undefined, in any case and with blanks around it."""
    return isinstance(value, str) and len(value) <= 80 and value.strip().casefold() in _NOTHING


def is_unfilled(name: str) -> bool:
    """Whether a name is nothing, or a placeholder: one of the syntaxes of templates encloses all of it, or it has one that no name has."""
    folded = unicodedata.normalize("NFKC", name[:400]).strip()
    return is_nothing(folded) or bool(_ENCLOSING.fullmatch(folded) or _ANYWHERE.search(folded))


# How many bytes after the first that is no UTF-8 are looked at.
_SEEN_BYTES = 4096
_JAPANESE = {"cp932": "Shift_JIS (CP932)", "euc_jp": "EUC-JP"}
_KANA, _HALF_WIDTH = re.compile("[ぁ-ヺー、。]"), re.compile("[\uff61-\uff9f]")
# In Japanese a character stands beside others of it; in Latin letters those beyond ASCII stand alone.
_RUN = re.compile("[^\x00-\x7f]{2}")
# ESC and how ISO-2022-JP says that kanji follow: ASCII, and so UTF-8, to the letter.
_JIS = re.compile(rb"\x1b\$[@B]")


def not_utf8(body: bytes) -> tuple[int, str] | None:
    """The number of the first byte that is no text in UTF-8, and the encoding that the text seems to be in, in words; empty if that can't
    be said. None for a text in UTF-8."""
    # A text of JSON begins with ASCII, so that UTF-16 and UTF-32 have a zero among its first bytes.
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in body[:2]:
        return 1, "UTF-32" if b"\0\0" in (body[:2], body[2:4]) else "UTF-16"
    if jis := _JIS.search(body):
        return jis.start() + 1, "ISO-2022-JP"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start + 1, _seeming(body[error.start : error.start + _SEEN_BYTES])
    return None


def _seeming(seen: bytes) -> str:
    likeness = {name: _likeness(seen, encoding) for encoding, name in _JAPANESE.items()}
    best = max(likeness, key=likeness.__getitem__)
    if likeness[best] > 0:
        return best
    return "Windows-1252 (Latin)" if any(map(str.isalpha, seen[:1].decode("cp1252", "ignore"))) else ""


def _likeness(seen: bytes, encoding: str) -> int:
    """How much like Japanese a text reads in an encoding; kana of half width are what others look like, and Latin letters don't begin with
    a byte below A0."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(seen)
    except UnicodeDecodeError:
        return 0
    lead = encoding == "cp932" and 0x81 <= seen[0] < 0xA0
    return 2 * len(_KANA.findall(text)) + len(_RUN.findall(text)) + lead - 2 * len(_HALF_WIDTH.findall(text))
