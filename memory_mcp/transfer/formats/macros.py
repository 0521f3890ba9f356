"""The placeholders that character cards and their chats have for names: {{char}}, {{user}}, <BOT>, <USER>."""

import re

from memory_mcp.characters import is_japanese

_NAMES = re.compile(r"\{\{\s{0,9}(?:(?P<char>char)|user)\s{0,9}\}\}|<(?:(?P<bot>BOT|CHAR)|USER)>", re.IGNORECASE)


def with_names(text: str, character: str, user: str) -> str:
    """The text with names in place of the placeholders. Of somebody without a name it says what they are, in the language of the text."""
    if not _NAMES.search(text):
        return text
    japanese = is_japanese(text)
    character, user = character or ("キャラクター" if japanese else "the character"), user or ("ユーザー" if japanese else "the user")
    return _NAMES.sub(lambda match: character if match["char"] or match["bot"] else user, text)
