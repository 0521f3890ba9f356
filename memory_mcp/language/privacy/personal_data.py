"""Patterns for telephone numbers, credit card numbers, マイナンバー (Japan's individual numbers), US social security numbers, e-mail and IP
addresses, and the user and password inside a URL.

Digits are parsed into runs of groups (`090-1234-5678`) and each run is examined once, so that the time is linear in the text. The patterns
don't use `\\b` or `\\w`, which treat kana and kanji as letters: there would be no boundary between them and a number.
"""

import ipaddress
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import phonenumbers

Span = tuple[int, int]
Run = list[Span]

# Katakana ー and the minus sign are used between digits as often as a hyphen. The hyphen is last, so that it is literal inside [ ].
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u30fc\uff70-"
_RUN = re.compile(rf"\(?[0-9]+(?:(?:[ .{_DASHES}]|\) ?| ?\()[0-9]+)*")
_GROUP = re.compile("[0-9]+")

_CARD_SHAPES = frozenset({(4, 4, 4, 4), (8, 8), (4, 6, 5), (4, 6, 4), (14,), (15,), (16,), (19,), (6, 13), (4, 4, 4, 4, 3)})
# As printed, copied out of a table, or wrapped: two spaces or the end of a line may separate the groups of a card number.
_CARD_RUN = re.compile(rf"(?<![0-9])[2-6][0-9]{{3,}}(?:(?:[ ._{_DASHES}]|  | [{_DASHES}] | ?\r?\n ?)[0-9]{{2,}})*")
# The length of the security code that follows a card number, by the number's length.
_CARD_CODE_LENGTH = {15: 4, 16: 3}
# A number may follow these without a space: VISA4532…, card_4532…
_CARD_WORD = re.compile(
    r"(?<![A-Za-z])(?:visa|master|mastercard|amex|jcb|diners|discover|unionpay|(?:credit|debit)?[ _-]?card|cc|pan)(?:[ _-]?(?:no|num|number))?[-_/.:#=]{0,2}\Z",
    re.IGNORECASE,
)
_ID = re.compile(r"id[.:=# ]*\Z", re.IGNORECASE)
# Issuers: Visa, Mastercard (two ranges), American Express, JCB, Diners Club, Discover, UnionPay. Visa's old 13 digits are left out,
# since the bar code of every Japanese product has that form.
_ISSUER = re.compile(
    r"4[0-9]{15}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|3[47][0-9]{13}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|62[0-9]{14}(?:[0-9]{3})?"
)
# In groups of one length, or one group apart; with dots, dashes and middle dots, also doubled or with spaces, or a line end between them.
_MY_NUMBER_SHAPES = frozenset({(12,), (6, 6), (4, 4, 4), (3, 3, 3, 3), (2,) * 6, (1,) * 12, (4, 8), (8, 4)})
_MY_NUMBER_RUN = re.compile(rf"[0-9]+(?:(?:[ \t._・･·/|{_DASHES}]{{1,3}}| ?\r?\n ?)[0-9]+)*")
_SSN_SHAPES = frozenset({(3, 2, 4), (9,)})
# No number was ever given with these parts (SSA, POMS RM 10201.035); the last two are printed on sample cards.
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}(?<!078051120)(?<!219099999)")
_PHONE_DIGITS = range(8, 16)
_JAPANESE_MOBILE = re.compile("0[5789]0[1-9][0-9]{7}")
_COUNTING = frozenset({"0123456789", "01234567890"})

_MY_NUMBER_NEAR = re.compile(
    r"(?:マイ[・･ ]?ナ|まいな|ﾏｲ[･ ]?ﾅ)(?:ンバ|んば|ﾝﾊﾞ|ンハ゛|ー?カード|ｶｰﾄﾞ|ｶ-ﾄﾞ|かーど|の?番号|ばんごう|保険証|ポータル| ?no)|個人 ?番号|こじんばんごう|共通番号"
    r"|my[ _-]?num|my[ _-]?no[.:#]|individual[ _-]?num|マイナ(?= ?[:=は「(])",
    re.IGNORECASE,
)
_SSN_NEAR = re.compile(r"(?<![A-Za-z])ssn(?![A-Za-z])|social[ -]?security|社会保障番号|ソーシャル・?セキュリティ", re.IGNORECASE)
_CARD_NEAR = re.compile(r"カード|card|クレカ|visa|master|amex|jcb|クレジット|credit", re.IGNORECASE)
_PHONE_NEAR = re.compile(r"電話|tel|phone|携帯|連絡|mobile|cell|call|fax|ファックス|℡|☎|📞|かけて|ケータイ|スマホ", re.IGNORECASE)
# Words directly before a number that make it something other than a telephone or card number.
_OTHER_NUMBER = re.compile(
    r"(?:(?:注文|受注|発注|予約|会員|商品|契約|請求|学籍|社員|受験|患者|診察券|お客様)[^。、 　]{0,4}(?:番号|コード|no|id|№)|注文 ?[#＃№]|伝票|追跡"
    r"|(?:問い?合わ?せ|管理|整理|受付|登録|製造|口座)番号|型番|品番|シリアル)[^。、]{0,5}\Z"
    r"|(?<![a-z])(?:(?:order|tracking|invoice|serial|ref|sku|isbn|issn|jan|id)(?: ?(?:no|number|num|id|code))?"
    r"|(?:part|ticket|case|model|account|booking|customer|lot) ?(?:no|number|num|id|code|#))[.:=#]{0,2}(?: is)? ?#?\Z",
    re.IGNORECASE,
)
_BEFORE, _AROUND = 20, 40


_DIGIT = re.compile("[0-9]")


def has_number(text: str) -> bool:
    """Whether a text has as many digits as the shortest of these numbers."""
    return len(_DIGIT.findall(text)) >= _PHONE_DIGITS.start


@dataclass(frozen=True, slots=True)
class _Window:
    """Adjacent groups of a run that together may be a number. `is_part`: of a longer token, which `goes_on` after it."""

    start: int
    end: int
    digits: str
    shape: tuple[int, ...]
    separators: tuple[str, ...]
    before: str
    after: str
    after_digits: str
    is_part: bool
    goes_on: bool


def credit_cards(text: str) -> Iterator[Span]:
    """Numbers in the range and length of an issuer with a valid check digit (ISO/IEC 7812-1), with the code that follows."""
    runs = (_GROUP.finditer(text, *run.span()) for run in _CARD_RUN.finditer(text))
    for window in _windows(text, ([group.span() for group in run] for run in runs), (5, 4, 2, 3, 1), (14, 15, 16, 19), _begins_card):
        code = window.after.strip() and len(window.after_digits) == _CARD_CODE_LENGTH.get(len(window.digits))
        alone = not window.before.strip() and (code or not window.after.strip(" \r\n."))
        if not alone or window.shape not in _CARD_SHAPES or not _may_be_card(text, window):
            continue
        if _ISSUER.fullmatch(window.digits) and _luhn(window.digits):
            yield window.start, window.end + (len(window.after + window.after_digits) if code else 0)


def _may_be_card(text: str, window: _Window) -> bool:
    before = text[max(0, window.start - _BEFORE) : window.start]
    if sum("\n" in separator for separator in window.separators) > 1 and not _CARD_NEAR.search(before):
        return False  # a column of numbers
    if window.is_part and (window.goes_on or not _CARD_WORD.search(before)):
        return False
    # Who writes a number in the groups of a card after "ID:" means a card.
    return not _is_other_number(text, window, _CARD_NEAR) or (len(window.shape) > 1 and bool(_ID.search(before)))


def my_numbers(text: str) -> Iterator[Span]:
    """Twelve digits with a valid check digit near a word such as マイナンバー, in whatever groups people write them.

    The check digit is 11 − Σ(P·Q) mod 11, 0 for a remainder of 1 or less (総務省令第85号, 2014). One number in ten has it by chance.
    """
    if not _MY_NUMBER_NEAR.search(text):
        return
    within = ([group.span() for group in _GROUP.finditer(text, *run.span())] for run in _MY_NUMBER_RUN.finditer(text))
    for window in _windows(text, within, (3, 1, 2, 4, 6, 12), (12,), lambda _text, _start, length: length in (1, 2, 3, 4, 6, 8, 12)):
        # With another group on either side it is a longer number, such as a card number.
        if (
            window.is_part
            or window.shape not in _MY_NUMBER_SHAPES
            or (window.separators and {window.before, window.after} & set(window.separators))
        ):
            continue
        near = text[max(0, window.start - _AROUND) : window.end + _BEFORE]
        if _has_check_digit(window.digits) and _MY_NUMBER_NEAR.search(near):
            yield window.start, window.end


def social_security_numbers(text: str, within: Iterable[Run]) -> Iterator[Span]:
    """Nine digits in the ranges that were given out, near a word such as SSN."""
    for window in _windows(text, within, (3, 1), (9,), lambda _text, _start, length: length in (3, 9)):
        longer = {window.before, window.after} & {*_DASHES, ".", *window.separators}
        if window.is_part or window.shape not in _SSN_SHAPES or longer or len(set(window.separators)) > 1:
            continue
        near = text[max(0, window.start - _AROUND) : window.end + _AROUND]
        if _SSN.fullmatch(window.digits) and _SSN_NEAR.search(near):
            yield window.start, window.end


def phones(text: str, within: Iterable[Run]) -> Iterator[Span]:
    """Telephone numbers: Japanese and North American ones in national notation, and any that begins with + and a country code."""
    for window in _windows(text, within, (6, 5, 4, 3, 2, 1), _PHONE_DIGITS, _begins_phone):
        if window.is_part or _is_longer(text, window):
            continue
        if _is_phone(text, window) and not _is_other_number(text, window, _PHONE_NEAR):
            yield window.start - _has_plus(text, window), window.end


def _is_longer(text: str, window: _Window) -> bool:
    """Whether another group with the same separator makes it a longer number. After a space a time or a date may follow."""
    inner = window.separators[-1:] or (*_DASHES, ".")
    if window.before in inner:
        return True
    complete = _has_plus(text, window) or _JAPANESE_MOBILE.fullmatch(window.digits)
    return window.after in inner and not (window.after == " " and complete)


def _begins_card(text: str, start: int, length: int) -> bool:
    return text[start] in "23456" and length in (4, 6, 8, 14, 15, 16, 19)


def _begins_phone(text: str, start: int, length: int) -> bool:
    return text[start] == "0" or text[start - 1 : start] == "+" or (length == 3 or (length == 1 and text[start] == "1"))


def _is_phone(text: str, window: _Window) -> bool:
    if _has_plus(text, window):
        return _is_valid(f"+{window.digits}", None)
    if _JAPANESE_MOBILE.fullmatch(window.digits) and window.shape in ((11,), (3, 4, 4)):
        return True
    if window.digits.startswith("0"):
        plausible = len(window.digits) in (10, 11) and len(window.shape) in (1, 3) and window.digits not in _COUNTING
        return plausible and (len(window.shape) == 1 or window.shape[0] >= 2) and _is_valid(window.digits, "JP")
    american = window.shape in ((3, 3, 4), (1, 3, 3, 4)) and (len(window.shape) == 3 or window.digits[0] == "1")
    return american and _is_valid(window.digits, "US")


def _has_plus(text: str, window: _Window) -> bool:
    return window.start > 0 and not window.before and text[window.start - 1] == "+"


def _is_valid(number: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


def runs(text: str) -> list[Run]:
    """The runs of groups of digits that are long enough for a number, as the spans of their groups."""
    return [
        [group.span() for group in _GROUP.finditer(text, *run.span())]
        for run in _RUN.finditer(text)
        if run.end() - run.start() >= _PHONE_DIGITS.start
    ]


def _windows(
    text: str, within: Iterable[Run], sizes: Sequence[int], total: Container[int], may_begin: Callable[[str, int, int], bool]
) -> Iterator[_Window]:
    """Yields windows of adjacent groups: `sizes` groups (largest first) with `total` digits.

    `may_begin(text, start, length)` decides whether a group can be the first of a number, which rules out most groups early.
    """
    for groups in within:
        counted = [0, *accumulate(end - start for start, end in groups)]
        for first, (start, end) in enumerate(groups):
            for size in sizes if may_begin(text, start, end - start) else ():
                last = first + size
                if last <= len(groups) and counted[last] - counted[first] in total:
                    yield _window(text, groups, first, last)


def _window(text: str, groups: Run, first: int, last: int) -> _Window:
    chosen = groups[first:last]
    start, end = chosen[0][0], chosen[-1][1]
    before = text[groups[first - 1][1] : start] if first else ""
    after = text[end : groups[last][0]] if last < len(groups) else ""
    goes_on = not after and _continues_right(text, end)
    separators = tuple(text[left[1] : right[0]] for left, right in pairwise(chosen))
    opened = start > 0 and text[start - 1] == "(" and separators[:1] != () and separators[0].startswith(")")
    return _Window(
        start - opened,
        end,
        digits="".join(text[left:right] for left, right in chosen),
        shape=tuple(right - left for left, right in chosen),
        separators=separators,
        before=before,
        after=after,
        after_digits=text[slice(*groups[last])] if last < len(groups) else "",
        is_part=goes_on or (not before and _continues_left(text, start)),
        goes_on=goes_on,
    )


def _is_other_number(text: str, window: _Window, wanted_words: re.Pattern[str]) -> bool:
    """Whether the words before the number make it an order number, account number or the like."""
    before = text[max(0, window.start - _BEFORE) : window.start]
    return bool(_OTHER_NUMBER.search(before)) and not wanted_words.search(before)


def _luhn(digits: str) -> bool:
    total = sum(int(digit) for digit in digits[-1::-2])
    return (total + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])) % 10 == 0 and len(set(digits)) > 1


def _has_check_digit(digits: str) -> bool:
    weights = (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
    remainder = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False)) % 11
    return int(digits[-1]) == (0 if remainder <= 1 else 11 - remainder)


# All repetitions are bounded: no text makes a pattern visit a character more than a few hundred times.
_EMAIL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9._%+'-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])")
# Versions (`node@20.1.0-rc.next`) and high-resolution images (`photo@2x.png`) look like addresses.
_VERSION = re.compile(r"[0-9]{1,63}\.[0-9]{1,63}\.")
_NO_DOMAIN = frozenset("png jpg jpeg gif svg webp pdf css js ts py service timer socket local localhost internal lan tgz whl".split())
_MACHINE_USERS = frozenset({"git"})

_CREDENTIALS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://([!-.0-9;=?A-~]{0,128}:[!#-&(-.0-~]{1,256})@")
# A password with kana, a slash or an at sign in it. After a user with a dot, or where only digits follow the colon, it is a host with its
# port.
_ODD_CREDENTIALS = re.compile(
    r"""(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s/:@."'<>「」（）()、。]{0,128}:(?![0-9]{1,5}[/?#])(?:(?!://)[^\s"'<>「」、。]){1,256})@"""
    r"""(?=[A-Za-z0-9.-]{1,253}(?:[:/?\s"'」、。]|\Z)|\[)"""
)
# Oracle's form: jdbc:oracle:thin:user/password@host.
_ORACLE = re.compile(r"jdbc:oracle:[a-z]{2,10}:([^\s/@:\"']{1,64}/[^\s@\"']{1,128})@", re.IGNORECASE)
# `name=password` among further settings of a connection, with `;`, `?`, `&` or blanks between them: of JDBC, ADO, ODBC, libpq, and in a
# query.
_SETTING = re.compile(
    r"""(?:(?P<after>[;?&][ ]?)|(?<![A-Za-z0-9_.-]))(?:password|passwd|passphrase|pass|pwd)(?P<equals>[ ]?=[ ]?)"""
    r"""(?P<value>"[^"\n]{2,128}"|'[^'\n]{2,128}'|\{[^{}\n]{2,128}\}|(?![$<{%*\[(])[^\s;&"'(){}<>|、。「」]{3,128})(?P<before>[ ]?;[ ]?[A-Za-z][A-Za-z ]{1,30}=)?""",
    re.IGNORECASE,
)
_SETTING_NEAR = re.compile(
    r"(?<![A-Za-z])(?:server|data source|user id|uid|driver|initial catalog)[ ]?=|(?<![A-Za-z])(?:host|user|dbname)=", re.IGNORECASE
)
_SETTINGS_APART = 100
# What stands in the place of a password in an example.
_NO_PASSWORD = re.compile(
    r"\A(?:(?:your|my|the|new|old)?[_ .-]*(?:password|passwd|pass|pwd|secret|value|here)+|x{3,}|\*+|\.{3}|…+|null|none|true|false)",
    re.IGNORECASE,
)
_CURL_USER = re.compile(
    r"""(?<![A-Za-z0-9])curl(?=[ ])[^\n]{0,300}?[ ](?:-u[ ]?|--user[ =])["']?([^\s"':$<{][^\s"':]{0,63}:[^\s"'$<{][^\s"']{2,127})"""
)

_IPV4 = re.compile(r"(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9A-Za-z])")
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f:]{6,39}(?![0-9A-Za-z:])")
_VERSION_BEFORE = re.compile(
    r"(?:version|ver|release|build|rev|chapter|section|firmware|バージョン|版|第|節|章|§|v)[.:]? ?\Z", re.IGNORECASE
)
_ADDRESS_NEAR = re.compile(r"ip|アドレス|address|host|server|サーバ|ping|dns|接続|ネットワーク|ルータ|router|gateway", re.IGNORECASE)
_NEAR_CHARACTERS = 24


def emails(text: str) -> Iterator[Span]:
    """E-mail addresses."""
    if "@" not in text:
        return
    for match in _EMAIL.finditer(text):
        local, _, domain = match.group().partition("@")
        no_mailbox = local.lower() in _MACHINE_USERS or text.startswith("://", match.start() - 3)
        if not (no_mailbox or _VERSION.match(domain) or domain.rpartition(".")[2].lower() in _NO_DOMAIN):
            yield match.span()


def url_credentials(text: str) -> Iterator[Span]:
    """`user:password` in `scheme://user:password@host` and in `curl -u user:password`, without the rest."""
    if "://" in text and "@" in text:
        yield from (match.span(1) for pattern in (_CREDENTIALS, _ODD_CREDENTIALS) for match in pattern.finditer(text))
    if "@" in text and "racle:" in text:
        yield from (match.span(1) for match in _ORACLE.finditer(text))
    if "curl" in text:
        yield from (match.span(1) for match in _CURL_USER.finditer(text))


def connection_passwords(text: str) -> Iterator[Span]:
    """Passwords in the settings of a connection, whatever they are made of: `Server=db;Uid=bob;Pwd=…;`,
    `jdbc:mysql://db/x?user=bob&password=…`.
    """
    if "=" not in text:
        return
    for match in _SETTING.finditer(text):
        start, end = match.span("value")
        if text[start] in "\"'{":
            start, end = start + 1, end - 1
        value = text[start:end]
        is_template = text[start - 1] == "{" and value.isidentifier()
        if _is_setting(text, match) and not is_template and not _NO_PASSWORD.fullmatch(value) and "□" not in value:
            yield start, end


def _is_setting(text: str, match: re.Match[str]) -> bool:
    """Whether other settings of a connection are beside a password. A program also writes `password = x;`, and `(host=h, password=x)`."""
    beside, is_close = match["after"] or match["before"], match["equals"] == "="
    if beside and is_close:
        return True
    is_argument = text[max(0, match.start() - 4) : match.start()].rstrip(" ").endswith((",", "(")) or match["value"].endswith(",")
    near = text[max(0, match.start() - _SETTINGS_APART) : match.end() + _SETTINGS_APART]
    return bool(beside or (is_close and not is_argument)) and bool(_SETTING_NEAR.search(near))


def ip_addresses(text: str) -> Iterator[Span]:
    """IPv4 and IPv6 addresses, except loopback addresses and version numbers."""
    if text.count(".") >= 3:
        yield from (match.span() for match in _IPV4.finditer(text) if _is_ipv4(text, *match.span()))
    if text.count(":") >= 2:
        yield from (match.span() for match in _IPV6.finditer(text) if _is_ipv6(match.group()))


def _is_ipv4(text: str, start: int, end: int) -> bool:
    try:
        address = ipaddress.IPv4Address(text[start:end])
    except ValueError:  # a part such as 300, or a leading zero
        return False
    before = text[max(0, start - _NEAR_CHARACTERS) : start]
    if address.is_loopback or address.is_unspecified or _VERSION_BEFORE.search(before):
        return False
    if before.endswith(("-", "_", "/", "=")) and not (before[-2:-1].isdigit() or before.endswith(("//", "="))):
        return False  # package-1.2.3.4
    small = all(part < 10 for part in address.packed)
    return not small or bool(_ADDRESS_NEAR.search(before) or _ADDRESS_NEAR.search(text[end : end + _NEAR_CHARACTERS]))


def _is_ipv6(candidate: str) -> bool:
    try:
        address = ipaddress.IPv6Address(candidate)
    except ValueError:  # a time of day, a MAC address
        return False
    groups = [part for part in candidate.split(":") if part]
    return len(groups) >= 2 and any(character.isdigit() for character in candidate) and not (address.is_loopback or address.is_unspecified)


def _continues_left(text: str, start: int) -> bool:
    """Whether the number that begins here is the end of a longer token: `A123`, `a1-123`, `1.123`, `path/123`."""
    before = text[start - 1 : start]
    if _is_ascii_letter_or_digit(text, start - 1) or before == "_":
        return True
    beyond = text[start - 2 : start - 1] if start >= 2 else ""
    match before:
        case ".":
            return beyond.isdigit()
        case "/":
            return beyond.isascii() and beyond.isalpha()
        case _:
            return bool(before) and before in _DASHES and _is_ascii_letter_or_digit(text, start - 2)


def _continues_right(text: str, end: int) -> bool:
    """Whether the number that ends here is the beginning of a longer token: `123A`, `123-a1`, `123.4`, `123.html`."""
    after = text[end : end + 1]
    if _is_ascii_letter_or_digit(text, end) or after == "_":
        return True
    if after == ".":
        return _is_ascii_letter_or_digit(text, end + 1)
    return bool(after) and after in _DASHES and _is_ascii_letter_or_digit(text, end + 1)


def _is_ascii_letter_or_digit(text: str, offset: int) -> bool:
    """Whether the character at this offset is one; False outside the text."""
    return 0 <= offset < len(text) and text[offset].isascii() and text[offset].isalnum()
