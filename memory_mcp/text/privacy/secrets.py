"""Patterns for API keys, tokens, passwords and private keys: by the prefixes of services, and by words such as "token" before them."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

# The known prefixes with the characters that follow. Lengths are minimums: services tend to lengthen their keys.
_PREFIXED = (
    r"sk-(?:(?:ant-|proj-|or-v1-|svcacct-|admin-)[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",  # OpenAI, Anthropic, OpenRouter, DeepSeek
    r"(?:AKIA|ASIA)[A-Z0-9]{16}|ABSK[A-Za-z0-9+/]{40,}={0,2}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,}",
    r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|imt|oas)-[A-Za-z0-9_-]{20,}",  # GitLab
    r"xox[abcdeoprs]-(?=[A-Za-z%-]{0,40}[0-9])[A-Za-z0-9%-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
    r"https://hooks\.slack\.com/[a-z]{1,12}/[A-Za-z0-9/]{20,}|https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}",
    r"AIza[A-Za-z0-9_-]{35}|1//0[A-Za-z0-9_-]{30,}|AQ\.[A-Za-z0-9_-]{35,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",  # Google
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}",  # Stripe
    r"hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}",  # models
    r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}|dop_v1_[0-9a-f]{40,}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{30,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|lin_api_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{30,}|dapi[0-9a-f]{32}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",  # Telegram
    r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{25,}",  # Discord
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",  # JSON Web Tokens
    r"mmcp_[0-9a-f]{10}_[0-9a-f]{64}",  # this server's own
)
# A hyphen or underscore may precede a key (`key-ghp_…`); a letter means a word that ends like a prefix (`task-…`).
_KNOWN = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXED)})")

PRIVATE_KEY = "PRIVATE KEY"  # without it a text has no block of one
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What a block without an end holds: base64, headers, and the signs of a quotation or of a string in a program.
_KEY_LINES = re.compile(r"[A-Za-z0-9+/=\s:,.>|\\\"'*-]*")

# Words for secrets, and the text between such a word and the secret. Here ー is a letter, not a dash.
_WORDS = (
    r"(?:api[ _-]?key(?:_[A-Z0-9]{1,12}|[0-9]{1,2})?|access[ _-]?key|secret[ _-]?key|private[ _-]?key|client[ _-]?secret|secret|token|credentials?|passwo?r?d|passphrase|pwd|pw(?=[:=])|pass(?=[:=])"
    r"|bearer|authorization: ?basic|apiキー|アクセスキー|秘密鍵|シークレット|トークン|パスワード|ﾊﾟｽﾜ-ﾄﾞ|ﾊﾟｽﾜｰﾄﾞ|パスフレーズ|暗証番号|認証情報)s?"
)
_SECRET_WORDS = re.compile(_WORDS, re.IGNORECASE)
_BETWEEN = re.compile(
    r"""[*_]{0,3}["'’”」』]?[*_]{0,3}[ \t]{0,4}(?:[(][^()\n]{1,20}[)][ \t]{0,4})?(?:(?<=[ ])(?:for|of|on)[ ](?:[A-Z0-9'-]{1,15}[ ]){1,4})?"""
    r"""(?:(?<=[ \t])(?:is[ ]now|is|was|are|to|will[ ]be|should[ ]be)(?![A-Z0-9])|は|が|を|も|に|->|[:=>|→]{1,3}|「|『)?"""
    r"""(?:変わって|変えて|変更して|変更し)?[、,]?"""
    r"""[*_]{0,3}[ \t]{0,4}\n?[ \t]{0,4}["'‘“「『`<(*_]{0,3}""",
    re.IGNORECASE,
)
_VALUE_CHARACTERS = r"A-Za-z0-9_+/.~!@#$%^&*:?;,{}\[\]-"
_VALUE = re.compile(rf"[{_VALUE_CHARACTERS}]{{8,1024}}={{0,2}}")
_VALUE_BEFORE = re.compile(
    rf"(?<![{_VALUE_CHARACTERS}])(?P<value>[{_VALUE_CHARACTERS}]{{8,200}}={{0,2}})[\"'」』`]?[ \t]{{0,2}}"
    rf"(?:が|は|is[ ](?:the|my|our)(?:[ ]new)?)[ \t]{{0,2}}(?:{_WORDS})",
    re.IGNORECASE,
)
_SENTENCE_ENDS = ".!,;:?*"
# As Apple's passwords are: three groups of six, with one digit and one capital.
_THREE_GROUPS = re.compile(r"(?=[^0-9]*[0-9][^0-9]*\Z)(?=[^A-Z]*[A-Z][^A-Z]*\Z)[A-Za-z0-9]{6}(?:-[A-Za-z0-9]{6}){2}")
# Lv99-Fire-Ice-Wind, ERC20/ERC721: words and numbers.
_WORD_OR_NUMBER = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)?[0-9]{0,4}")
# The minimum length of a random value: shorter if it contains punctuation.
_LONG_CHARACTERS, _LONG_ENOUGH_OF_ALL, _SHORT_CHARACTERS = 16, 12, 10
_LEAST_CHANGES, _LEAST_BITS_PER_CHARACTER = 5, 3.0


def api_keys(text: str) -> Iterator[Span]:
    """API keys, tokens, passwords that look random, and PEM blocks of private keys."""
    if PRIVATE_KEY in text:
        yield from private_keys(text)
    yield from (match.span() for match in _KNOWN.finditer(text))
    yield from _named_secrets(text)


def private_keys(text: str) -> Iterator[Span]:
    offset = 0
    while begin := _BEGIN.search(text, offset):
        end = _END.search(text, begin.end())
        lines = _KEY_LINES.match(text, begin.end())
        offset = end.end() if end else lines.end() if lines else begin.end()
        yield begin.start(), offset
        if end is None:  # the search covered the rest of the text, so no later block ends either
            return


def _named_secrets(text: str) -> Iterator[Span]:
    for word in _SECRET_WORDS.finditer(text):
        between = _BETWEEN.match(text, word.end())
        if between is None or between.end() == word.end():
            continue
        value = _VALUE.match(text, between.end())
        if value and is_random(found := value.group().rstrip(_SENTENCE_ENDS)):
            yield value.start(), value.start() + len(found)
    for match in _VALUE_BEFORE.finditer(text):
        if is_random(match["value"]):
            yield match.span("value")


def is_random(value: str) -> bool:
    """Whether a word looks random: letters and digits alternate often, and the characters have high entropy.

    The entropy is Shannon's, in bits per character. Words, names and paths rarely alternate between lower case, upper case and
    digits, even if they contain a year or a number.
    """
    if _THREE_GROUPS.fullmatch(value):
        return True
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part]
    if len(parts) > 2 and all(map(_WORD_OR_NUMBER.fullmatch, parts)) and 2 * sum(len(part) > 3 for part in parts) >= len(parts):
        return False
    letters = "".join(character for character in value if character.isalnum())
    classes = [0 if letter.isdigit() else 1 if letter.islower() else 2 for letter in letters]
    changes = sum(left != right for left, right in pairwise(classes))
    if changes < _LEAST_CHANGES or 0 not in classes:
        return False
    if len(letters) < _LONG_CHARACTERS:
        return len(set(classes)) == 3 and len(value) >= (_LONG_ENOUGH_OF_ALL if value.isalnum() else _SHORT_CHARACTERS)
    counts = Counter(letters)
    bits = -sum(count / len(letters) * math.log2(count / len(letters)) for count in counts.values())
    return bits >= _LEAST_BITS_PER_CHARACTER
