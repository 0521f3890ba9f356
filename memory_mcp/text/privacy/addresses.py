"""E-mail addresses, IP addresses, and the user and password inside a URL."""

import ipaddress
import re
from collections.abc import Iterator

Span = tuple[int, int]

# Bounded everywhere: no text makes them look at the same character more than some hundred times.
_EMAIL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9._%+'-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])")
# A version (`node@20.1.0-rc.next`) and a picture for fine screens (`photo@2x.png`) look like one.
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.")
_NO_DOMAIN = frozenset("png jpg jpeg gif svg webp pdf css js ts py service timer socket local localhost internal lan tgz whl".split())
_ROLES_OF_MACHINES = frozenset({"git"})

_CREDENTIALS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://([!-.0-9;=?A-~]{0,128}:[!-.0-~]{1,256})@")

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
    for found in _EMAIL.finditer(text):
        local, _, domain = found.group().partition("@")
        no_mailbox = local.lower() in _ROLES_OF_MACHINES or text.startswith("://", found.start() - 3)
        if not (no_mailbox or _VERSION.match(domain) or domain.rpartition(".")[2].lower() in _NO_DOMAIN):
            yield found.span()


def url_credentials(text: str) -> Iterator[Span]:
    """`user:password` in `scheme://user:password@host`, without what is around it."""
    if "://" in text and "@" in text:
        yield from (found.span(1) for found in _CREDENTIALS.finditer(text))


def ip_addresses(text: str) -> Iterator[Span]:
    """IPv4 and IPv6 addresses that are of somebody: not loopback, not what says of itself that it is a version."""
    if text.count(".") >= 3:
        yield from (found.span() for found in _IPV4.finditer(text) if _is_ipv4(text, *found.span()))
    if text.count(":") >= 2:
        yield from (found.span() for found in _IPV6.finditer(text) if _is_ipv6(found.group()))


def _is_ipv4(text: str, start: int, end: int) -> bool:
    try:
        address = ipaddress.IPv4Address(text[start:end])
    except ValueError:  # 300 in it, or a leading zero
        return False
    before = text[max(0, start - _NEAR_CHARACTERS) : start]
    if address.is_loopback or address.is_unspecified or _VERSION_BEFORE.search(before):
        return False
    if before.endswith(("-", "_", "/", "=")) and not (before[-2:-1].isdigit() or before.endswith(("//", "="))):
        return False  # package-1.2.3.4
    small = all(part < 10 for part in address.packed)
    return not small or bool(_ADDRESS_NEAR.search(before) or _ADDRESS_NEAR.search(text[end : end + _NEAR_CHARACTERS]))


def _is_ipv6(found: str) -> bool:
    try:
        address = ipaddress.IPv6Address(found)
    except ValueError:  # a time of day, a MAC address
        return False
    telling = [part for part in found.split(":") if part]
    return len(telling) >= 2 and any(character.isdigit() for character in found) and not (address.is_loopback or address.is_unspecified)
