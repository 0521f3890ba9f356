"""Patterns for API keys, tokens, passwords and private keys: by the forms of services, and by words such as "token" before them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from memory_mcp.language.privacy.ascii_view import lowered
from memory_mcp.language.privacy.randomness import is_random
from memory_mcp.language.privacy.service_keys import service_keys

Span = tuple[int, int]

PRIVATE_KEY = "PRIVATE KEY"  # without it a text has no block of one
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What a block without an end holds: base64, headers, and the signs of a quotation or of a string in a program.
_KEY_LINES = re.compile(r"[A-Za-z0-9+/=\s:,.>|\\\"'*-]*")

# Words for secrets, and the text between such a word and the secret. Here ー is a letter, not a dash.
_WORDS = (
    r"(?:api[ _-]?key(?:_[a-z0-9]{1,12}|[0-9]{1,2})?|access[ _-]?key|secret[ _-]?key|private[ _-]?key|client[ _-]?secret|secret|token|credentials?|passwo?r?d|passphrase|pwd|pw(?=[:=])|(?<![a-z0-9])pw(?![a-z0-9])"
    r"|bearer|authorization: ?basic|apiキー|アクセスキー|秘密鍵|シークレット|トークン|パスワード|ﾊﾟｽﾜ-ﾄﾞ|ﾊﾟｽﾜｰﾄﾞ|パスフレーズ|暗証番号|認証情報)s?"
)
# Words with other meanings name a secret only directly before a value: not bypass, パスタ and コンパス, and no public or primary key.
_SHORT_WORDS = r"pass(?=[:=])|(?<![a-z0-9])pass(?= ?[:=は「→]| is )|(?:(?<![ァ-ヴー])|(?<=ログイン))パス(?= ?[:=はがを「→])(?![ :=はがを「]{1,4}[!-~]{0,80}[/\\\\])"
_KEY = r"(?<![a-z0-9_-])(?<!public )key(?= ?[:=])(?! ?[:=] ?[\"'`]?(?:memory_|[0-9a-f]{8}-[0-9a-f]{4}-))"
_SECRET_WORDS = re.compile(f"{_WORDS}|{_SHORT_WORDS}|{_KEY}")  # in lower case: with IGNORECASE it takes twenty times as long
_BETWEEN = re.compile(
    r"""[*_]{0,3}["'’”」』]?[*_]{0,3}[ \t]{0,4}(?:[(][^()\n]{1,20}[)][ \t]{0,4})?(?:(?<=[ ])(?:for|of|on)[ ](?:[A-Z0-9'-]{1,15}[ ]){1,4})?"""
    r"""(?:(?<=[ \t])(?:is[ ]now|is|was|are|to|will[ ]be|should[ ]be)(?![A-Z0-9])|は|が|を|も|に|->|(?:string[ ])?[.?]?[:=>|→]{1,4}|「|『)?"""
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
# A line end inside a token, with the signs of a quotation: what goes on after it is no word and no number, and not the name of a next value.
_LINE_END = re.compile(
    r"(?<=[A-Za-z0-9_/+#$%&@^~-])[ \t]{0,8}\r?\n[ \t>]{0,8}(?=[A-Za-z0-9_/+=#$%&@^~!*-]{0,80}?(?:[0-9][A-Za-z]|[A-Za-z][0-9]|[a-z][A-Z]))"
    r"(?![A-Za-z0-9_-]{1,80}[ \t]{0,2}[=:]{1,2}[ \t]{0,2}[^\s=])"
)
# A password that people can remember: a word and a number, such as sakura2024, in quotes also ねこがすき2024, and the digits of a PIN.
_PASSWORD_WORDS = re.compile(rf"passwo?r?ds?|passphrase|pwd|(?<![a-z0-9])pw(?![a-z0-9])|パスワード|ﾊﾟｽﾜ-ﾄﾞ|ﾊﾟｽﾜｰﾄﾞ|パスフレーズ|{_SHORT_WORDS}")
_PIN_WORDS = re.compile("暗証番号|パスコード")
_MEMORABLE = re.compile(
    r"(?=[A-Za-z_.!@#$%&*+-]{0,40}[0-9])(?=[0-9_.!@#$%&*+-]{0,40}[A-Za-z])[A-Za-z0-9_.!@#$%&*+-]{6,40}(?![A-Za-z0-9/])"
    r"|(?<=「)[^「」\s、。]{2,40}[0-9][!-/:-@_~]{0,4}(?=」)"
)
_PIN = re.compile("[0-9]{4,8}(?![0-9A-Za-z年月日桁文字回件])")
_SENTENCE_ENDS = ".!,;:?*"


def api_keys(text: str) -> Iterator[Span]:
    """API keys, tokens, passwords that look random, and PEM blocks of private keys. Where two overlap, the first is the better one."""
    spans = list(_keys(text))
    if "\n" in text:
        yield from _across_lines(text, spans)
    yield from spans


def _keys(text: str) -> Iterator[Span]:
    if PRIVATE_KEY in text:
        yield from private_keys(text)
    lower = lowered(text)
    yield from service_keys(text, lower)
    yield from _named_secrets(text, list(_SECRET_WORDS.finditer(lower)))


def _across_lines(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Keys with a line end inside them, as a terminal or a mail program wraps them."""
    line_ends = [match.span() for match in _LINE_END.finditer(text)]
    if not line_ends:
        return
    # Where each line begins in the joined text, and by how much its places are further on in the text.
    begins, further_on = [0], [0]
    for start, end in line_ends:
        begins.append(start - further_on[-1])
        further_on.append(further_on[-1] + end - start)
    keys_alone = {start for start, _ in spans}
    for start, end in _keys(_LINE_END.sub("", text)):
        first_line, last_line = bisect_right(begins, start) - 1, bisect_left(begins, end) - 1
        key = start + further_on[first_line], end + further_on[last_line]
        if first_line < last_line and keys_alone.isdisjoint(range(line_ends[first_line][1], key[1])):
            yield key


def names_secret(text: str) -> bool:
    """Whether a text, such as the name of a field, ends with a word for secrets."""
    named = f"{lowered(text).strip()}:"
    return any(match.end() == len(named) - 1 for match in _SECRET_WORDS.finditer(named))


def memorable_passwords(text: str) -> Iterator[Span]:
    """Words with a number that follow a word such as password, and PINs: flagged and not replaced, since some only occur near that word."""
    lower = lowered(text)
    for words, form in ((_PASSWORD_WORDS, _MEMORABLE), (_PIN_WORDS, _PIN)):
        for word in words.finditer(lower):
            between = _BETWEEN.match(text, word.end())
            value = form.match(text, between.end()) if between and between[0].strip() else None
            if value:
                yield value.span()


def private_keys(text: str) -> Iterator[Span]:
    offset = 0
    while begin := _BEGIN.search(text, offset):
        end = _END.search(text, begin.end())
        lines = _KEY_LINES.match(text, begin.end())
        offset = end.end() if end else lines.end() if lines else begin.end()
        yield begin.start(), offset
        if end is None:  # the search covered the rest of the text, so no later block ends either
            return


def _named_secrets(text: str, words: Sequence[re.Match[str]]) -> Iterator[Span]:
    for word in words:
        between = _BETWEEN.match(text, word.end())
        if between is None or between.end() == word.end():
            continue
        value = _VALUE.match(text, between.end())
        if value and is_random(candidate := value.group().rstrip(_SENTENCE_ENDS)):
            yield value.start(), value.start() + len(candidate)
    for match in _VALUE_BEFORE.finditer(text) if words else ():
        if is_random(match["value"]):
            yield match.span("value")
