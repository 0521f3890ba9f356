"""Configurations for programs that work with cells: HAProxy leads calls to them, and Litestream copies them."""

import ipaddress
import json
import re
from pathlib import Path

from memory_mcp.errors import InvalidInput
from memory_mcp.personas.cells import PLACE

# The name as the server decodes it: `url_dec` alone fails on a stray `%`, and takes `+` for a blank after a `?`.
_DECODED = r"""'var(txn.name),regsub(\?,%3F,g),regsub("%(?![0-9A-Fa-f]{2})",%25,g),url_dec(0)'"""
_HAPROXY = """\
# Routes each call to the one server that has its persona: made by memory-mcp cell haproxy. HAProxy 2.6 or newer, with PCRE.
# The persona is that of the path /p/NAME/, else of X-Persona{of_claim}, else `{default}`. Its cell is crc32(name) modulo {of}, as the
# servers compute it. A cell that is down is 503, never another server: there the persona would be a new, empty one.
# /cell/N/ in front of a path leads to cell N: for what concerns no persona, and for clients that a 421 leads there.
defaults
    mode http
    timeout connect 5s
    timeout client 330s
    timeout server 330s
    timeout http-request 20s
    http-error status 503 content-type application/json string '{{"error": "The server of this persona is down. Try again in a moment; other personas are served."}}' hdr Retry-After 5
    default-server check inter 2s fall 2 rise 1{resolved}
    option httpchk
    http-check send meth GET uri /health ver HTTP/1.1 hdr Host localhost
{resolvers}
frontend memory
    bind {bind}
    monitor-uri /router
    http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
    http-request set-var(txn.name) str({default})
{claim}    http-request set-var(txn.name) req.fhdr(x-persona) if {{ req.fhdr(x-persona) -m found }}
    http-request set-var(txn.name) path,field(3,/) if {{ path_reg ^/p/[^/]*/ }}
    http-request set-var(txn.name) {decoded}
    http-request set-var(txn.cell) var(txn.name),crc32,mod({of})
    http-request set-var(txn.cell) path,field(3,/) if {{ path_reg ^/cell/[0-9]+/ }}
    http-request replace-path ^/cell/[0-9]+(/.*) \\1
    use_backend cell-%[var(txn.cell)]
    default_backend none

backend none

{backends}"""
_LITESTREAM = """\
# Copies every plain persona as it is written: made by memory-mcp cell litestream. Encrypted ones have backups instead.
logging: {{level: warn}}
snapshot: {{interval: 1h, retention: 24h}}
dbs:
  - dir: {data}
    pattern: memory.sqlite
    recursive: true
    watch: true
    replica: {replica}
"""
_RESOLVERS = """
resolvers dns
    parse-resolv-conf
    hold valid 5s
"""


def haproxy(of: int, server: str, bind: str, claim: str | None) -> str:
    """The configuration of a router to so many cells. `server`: HOST:PORT with `{cell}`, and `${NAME}` for a variable of HAProxy's environment; `claim`: of an OAuth token, names the persona.

    Raises:
        InvalidInput: an argument can't be written there.
    """
    if PLACE not in server or not re.fullmatch(r"(\$\{(?!cell\})\w+\}|[\w.:\[\]{}-])+", server):
        raise InvalidInput("{} is not the address of each cell", "", "Write it like memory-{cell}.memory:8000", repr(server))
    if claim and not re.fullmatch(r"[A-Za-z_][\w.]*", claim):
        raise InvalidInput("{} is not a claim that HAProxy can read", "", "Write a name, or a path with dots", repr(claim))
    named = _is_name(server.replace(PLACE, "0"))
    written = f'"{server}"' if "$" in server else server  # HAProxy expands variables of the environment within quotes alone
    backends = [f"backend cell-{cell}\n    server cell-{cell} {written.replace(PLACE, str(cell))}\n" for cell in range(of)]
    return _HAPROXY.format(
        of=of,
        bind=bind,
        default="default",
        of_claim=f", else of the claim `{claim}` of its token" if claim else "",
        claim=f"    http-request set-var(txn.name) http_auth_bearer,jwt_payload_query('$.{claim}')\n" if claim else "",
        decoded=_DECODED,
        resolved=" init-addr last,libc,none resolvers dns" if named else "",
        resolvers=_RESOLVERS if named else "",
        backends="\n".join(backends),
    )


def litestream(data: Path, to: str) -> str:
    """The configuration with which Litestream copies the plain personas of a data directory. `to`: a directory, or a URL such as s3://….

    What is erased is gone from the copies, too, once the snapshots from before it are over `retention` old.
    """
    replica = {"url": to} if "://" in to else {"type": "file", "path": str(Path(to).absolute())}
    return _LITESTREAM.format(data=json.dumps(str(data.absolute()), ensure_ascii=False), replica=json.dumps(replica, ensure_ascii=False))


def _is_name(address: str) -> bool:
    """Whether an address must be looked up."""
    try:
        ipaddress.ip_address(address.rpartition(":")[0].strip("[]"))
    except ValueError:
        return True
    return False
