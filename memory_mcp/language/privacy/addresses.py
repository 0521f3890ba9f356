"""Patterns for e-mail addresses, IP addresses, and the user and password inside a URL."""

import ipaddress
import re
from collections.abc import Iterator

Span = tuple[int, int]

# All repetitions are bounded: no text makes a pattern visit a character more than a few hundred times.
_EMAIL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9._%+'-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])")
# Versions (`node@20.1.0-rc.next`) and high-resolution images (`photo@2x.png`) look like addresses.
_VERSION = re.compile(r"[0-9]{1,63}\.[0-9]{1,63}\.")
_NO_DOMAIN = frozenset("png jpg jpeg gif svg webp pdf css js ts py service timer socket local localhost internal lan tgz whl".split())
_MACHINE_USERS = frozenset({"git"})

_CREDENTIALS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://([!-.0-9;=?A-~]{0,128}:[!#-&(-.0-~]{1,256})@")
# A password with kana, a slash or an at sign in it. After a user with a dot, or where only digits follow the colon, it is a host with its port.
_ODD_CREDENTIALS = re.compile(
    r"""(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s/:@."'<>「」（）()、。]{0,128}:(?![0-9]{1,5}[/?#])(?:(?!://)[^\s"'<>「」、。]){1,256})@"""
    r"""(?=[A-Za-z0-9.-]{1,253}(?:[:/?\s"'」、。]|\Z)|\[)"""
)
# Oracle's form: jdbc:oracle:thin:user/password@host.
_ORACLE = re.compile(r"jdbc:oracle:[a-z]{2,10}:([^\s/@:\"']{1,64}/[^\s@\"']{1,128})@", re.IGNORECASE)
# `name=password` among further settings of a connection, with `;`, `?`, `&` or blanks between them: of JDBC, ADO, ODBC, libpq, and in a query.
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
    """Passwords in the settings of a connection, whatever they are made of: `Server=db;Uid=bob;Pwd=…;`, `jdbc:mysql://db/x?user=bob&password=…`."""
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
