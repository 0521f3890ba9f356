"""Kinds of values in config.json: addresses, names, time zones. Each error names what is allowed."""

import re
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator


def is_loopback(host: str) -> bool:
    """Whether a host's name or address, without its port, is one of this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _known_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("an IANA time zone such as Asia/Tokyo or UTC") from error
    return name


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("a model name or a directory; null for none")
    return name


def _secure_address(url: str) -> str:
    """Tokens and keys travel to this address: only on this machine they may do so unencrypted."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not (parts.scheme == "https" or is_local) or not parts.hostname or parts.username is not None or parts.fragment:
        raise ValueError("an https:// address; http:// only on this machine")
    return url


def _address_of_service(url: str) -> str:
    """Memories travel to this address, and a key may: unencrypted only to a machine that the internet doesn't know by this name."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    try:
        known_outside = ip_address(host).is_global
    except ValueError:
        known_outside = "." in host and host.rpartition(".")[2] not in _LOCAL_DOMAINS
    if parts.scheme not in ("http", "https") or not host or (parts.scheme == "http" and known_outside):
        raise ValueError("an https:// address; http:// only on this machine or in your own network")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("an address without a user, a password or anything after ? or #; a key belongs into the environment")
    return url.rstrip("/")


def _address_of_host(url: str) -> str:
    if urlsplit(_secure_address(url))._replace(scheme="", netloc="").geturl():
        raise ValueError("an address without a path, such as https://memory.example.org")
    return url


_LOCAL_DOMAINS = frozenset({"local", "internal", "lan", "svc", "home", "localhost"})


_VENDOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _vendor_name(name: str) -> str:
    if not _VENDOR.fullmatch(name):
        raise ValueError("the name of a vendor: letters, digits and . _ -, without a slash, which ends it in the name of a model")
    return name


_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")


def plain_path(path: str) -> str | None:
    """A path of plain segments, such as /memory, without the slash at its end; empty for the root, None for anything else."""
    first, *segments = path.removesuffix("/").split("/")
    is_plain = not first and all(_SEGMENT.fullmatch(segment) and segment not in (".", "..") for segment in segments)
    return path.removesuffix("/") if is_plain and len(path) <= 200 else None


def _path_of_proxy(path: str) -> str:
    plain = plain_path(path)
    if plain is None:
        raise ValueError("a path of letters, digits and . _ ~ -, such as /memory")
    return plain


Timezone = Annotated[str, AfterValidator(_known_timezone)]
VendorName = Annotated[str, AfterValidator(_vendor_name)]
ModelName = Annotated[str, AfterValidator(_not_blank)]
SecureAddress = Annotated[str, AfterValidator(_secure_address)]
ServiceAddress = Annotated[str, AfterValidator(_address_of_service)]
PublicPath = Annotated[str, AfterValidator(_path_of_proxy)]
HostAddress = Annotated[str, AfterValidator(_address_of_host)]
