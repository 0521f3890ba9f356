"""The placeholders that character cards and their chats have for names: {{char}}, {{user}}, {{group}}, <BOT>, <USER>; and those that show nothing, such as
comments."""

import re

from memory_mcp.characters import is_japanese

_NAMES = re.compile(
    r"\{\{\s{0,9}(?:(?P<char>char)|(?P<group>group|charIfNotGroup)|user)\s{0,9}\}\}|<(?:(?P<bot>BOT|CHAR)|USER)>", re.IGNORECASE
)
# {{// a comment}}, {{setvar::name::value}}, and {{trim}} with the line breaks around it.
_SHOWS_NOTHING = re.compile(
    r"\n{0,9}\{\{trim\}\}\n{0,9}|\{\{(?://|(?:set|add)(?:global)?var::|comment::|noop(?=\}\}))[^{}]{0,4000}\}\}", re.IGNORECASE
)


def with_names(text: str, character: str, user: str, group: str = "") -> str:
    """The text with names in place of the placeholders, without what shows nothing. Of somebody without a name it says what they are, in the language of
    the text; without a `group`, the character alone is it."""
    japanese = is_japanese(text)
    character, user = character or ("キャラクター" if japanese else "the character"), user or ("ユーザー" if japanese else "the user")
    names = {"char": character, "bot": character, "group": group or character, None: user}
    return _SHOWS_NOTHING.sub("", _NAMES.sub(lambda match: names[match.lastgroup], text))
