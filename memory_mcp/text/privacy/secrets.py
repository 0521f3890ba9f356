"""Patterns for API keys, tokens, passwords and private keys: by the prefixes of services, and by words such as "token" before them."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

# The known prefixes with the characters that follow. Lengths are minimums: services tend to lengthen their keys.
_PREFIXED = (
    r"sk-(?:(?:ant-|proj-|or-v1-|svcacct-)[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",  # OpenAI, Anthropic, OpenRouter, DeepSeek
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,}",
    r"gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,}",  # GitLab
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
    r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",  # Google
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

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"[A-Za-z0-9+/=\s:,.-]*")

# Words for secrets, and the text between such a word and the secret. Here ー is a letter, not a dash.
_SECRET_WORDS = re.compile(
    r"(?:api[ _-]?key|access[ _-]?key|secret[ _-]?key|private[ _-]?key|client[ _-]?secret|secret|token|credentials?|passwo?r?d|passphrase|pwd"
    r"|bearer|authorization: ?basic|apiキー|アクセスキー|秘密鍵|シークレット|トークン|パスワード|パスフレーズ|暗証番号|認証情報)s?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"""["'’”」』]?[ \t]{0,4}(?:is|was|are|は|が|を|も|[:=>|]{1,3}|「|『)?[ \t]{0,4}["'‘“「『`<(]?""", re.IGNORECASE)
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+/.~!@#$%^&*-]{7,1023}={0,2}")
# The minimum length of a random value: shorter if it contains punctuation.
_LONG_CHARACTERS, _SHORT_CHARACTERS = 16, 10
_LEAST_CHANGES, _LEAST_BITS_PER_CHARACTER = 5, 3.0


def api_keys(text: str) -> Iterator[Span]:
    """API keys, tokens, passwords that look random, and PEM blocks of private keys."""
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    yield from (match.span() for match in _KNOWN.finditer(text))
    yield from _named_secrets(text)


def _private_keys(text: str) -> Iterator[Span]:
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
        if value and is_random(value.group().rstrip(".!")):
            yield value.start(), value.start() + len(value.group().rstrip(".!"))


def is_random(value: str) -> bool:
    """Whether a word looks random: letters and digits alternate often, and the characters have high entropy.

    The entropy is Shannon's, in bits per character. Words, names and paths rarely alternate between lower case, upper case and
    digits, even if they contain a year or a number.
    """
    letters = "".join(character for character in value if character.isalnum())
    classes = [0 if letter.isdigit() else 1 if letter.islower() else 2 for letter in letters]
    changes = sum(left != right for left, right in pairwise(classes))
    if changes < _LEAST_CHANGES or 0 not in classes:
        return False
    if len(letters) < _LONG_CHARACTERS:
        return len(value) >= _SHORT_CHARACTERS and len(set(classes)) == 3 and not value.isalnum()
    counts = Counter(letters)
    bits = -sum(count / len(letters) * math.log2(count / len(letters)) for count in counts.values())
    return bits >= _LEAST_BITS_PER_CHARACTER
