"""What programs send in place of a value that they have not filled in: the name of nothing, or a placeholder as it stood in a template."""

import re
import unicodedata

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
