"""The exception classes of the product.

    MemoryMCPError
    ├── InvalidInput            the caller sent something that can't be used
    │   ├── InvalidPersonaName  a persona name is not allowed
    │   ├── SettingsRefused     values for config.json are not allowed
    │   ├── BodyTooLong         a form has more bytes than may be sent to its address
    │   └── WrongMediaType      a form brings a file where none is expected
    ├── PersonaConflict         one request names two personas
    ├── PersonaRequired         the server requires a persona and the request names none
    ├── PersonaElsewhere        the persona belongs to another server, a cell of many
    ├── TokenRefused            the request has no valid token
    ├── NotAllowed              the token is valid but not for this (scopes, personas)
    ├── GrantRefused            an OAuth client asks for a token that it may not have
    ├── TooManyCalls            the caller has reached its rate limit; retry later
    ├── MemoryNotFound          no memory of this persona has that key
    ├── EntityNotFound          no entity of this persona has that name
    ├── ConversationNotFound    no conversation of this persona has that id
    ├── ConfigError             config.json (or an environment variable) can't be used
    ├── StartupError            the server can't start (port, address)
    │   └── DirectoryInUse      another server holds the lock of the data directory
    ├── StoreError              a persona's files can't be used
    │   ├── StoreDamaged        the database or another file is damaged
    │   ├── StoreReadOnly       the disk or the file is read-only
    │   ├── StoreFull           the disk is full
    │   └── KeyRefused          encrypted data can't be opened: no key, or the wrong one
    ├── EncoderFailed           a model failed (an API that is down, a device out of memory)
    ├── ChatFailed              a chat model failed, or can't be asked
    ├── ProxyUnusable           the environment names a proxy that can't be used
    ├── NotInstalled            this needs an optional part of the program that is not installed
    ├── ClockUnusable           the machine's clock shows a year in which dates can't be computed
    ├── AnalysisUnfinished      an analysis of the graph exceeded its time limit, or was ended
    ├── SearchUnfinished        a search exceeded its time limit, or its caller has gone
    ├── Overloaded              too many calls are waiting; retry later
    │   └── PersonaOverloaded   too many calls of one persona are waiting
    ├── IssuerUnreachable       the server that issued a token doesn't answer; retry later
    ├── BodyLate                the body of a call stopped arriving
    ├── ServerUnreachable       a client command found no usable server
    └── PersonaUnknown          the persona does not exist

An error states what happened, why, and what to do about it. All three are safe to show to a client:
no paths of other personas, no tracebacks, no links of libraries. `server/errors.py` maps them to the wire.
"""

import re
from collections.abc import Mapping
from typing import Any

from memory_mcp.wording import Sentence, clauses, filled, joined, masked, sentence

# The part of an address before its @: a user, and a password that may hold what no address may. After a port there is a path.
_USER_OF_ADDRESS = re.compile(
    r"""(?<=://)(?:[^\s/?#'"<>@]{0,256}@)+|(?<=://)[^\s/?#'"<>@:\[\]]{0,128}:(?![0-9]{0,5}[/?#])[^\s'"<>]{0,256}@"""
)


def without_passwords(text: str) -> str:
    """The text with the addresses in it as they may be shown: without their users and passwords."""
    return _USER_OF_ADDRESS.sub("", text) if "://" in text and "@" in text else text


class MemoryMCPError(Exception):
    """`what` happened, `why`, and what to `do`: each a clause, with {} for each of the values that follow. Passwords of addresses are left out.

    raise InvalidInput("{} is too long", "{} bytes are the limit", "Split it", name, limit)
    """

    def __init__(self, what: str, why: str = "", do: str = "", *values: object) -> None:
        self.what, self.why, self.do = what, why, do = [masked(clause, without_passwords) for clause in filled((what, why, do), values)]
        super().__init__(joined(what, *((": ", why) if why else ()), ".", *((" ", do, ".") if do else ())))

    @property
    def sentence(self) -> Sentence:
        """What `str` gives: the English words, with the id by which there are others, and the values in it."""
        words: Sentence = self.args[0]
        return words

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker process sends errors to the server: without this, pickle would make the sentence an argument of the constructor."""
        return type(self).__new__, (type(self), *self.args), vars(self)


class InvalidInput(MemoryMCPError):
    """The caller sent something that can't be used; nothing was changed."""


class BodyTooLong(InvalidInput):
    """The body of a call is longer than it may be here."""


class WrongMediaType(InvalidInput):
    """The body of a call is of a kind that is not taken here."""


class InvalidPersonaName(InvalidInput):
    """The persona name is not allowed."""


class SettingsRefused(InvalidInput):
    """Values for config.json are not allowed; `problems` has the reasons, by dotted key. The file was not changed."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(
            "settings were not changed", clauses([sentence("{}: {}", key, why) for key, why in problems.items()]), "Correct them"
        )
        self.problems = {key: without_passwords(why) for key, why in problems.items()}


class PersonaConflict(MemoryMCPError):
    """One request names two different personas."""


class PersonaRequired(MemoryMCPError):
    """The server is configured to require a persona, and the request names none."""


class PersonaElsewhere(MemoryMCPError):
    """The persona of this canonical name belongs to another server: to that of the cell `owner`, at `url` if that is known. Nothing was done."""

    def __init__(
        self, what: str, why: str = "", do: str = "", *values: object, persona: str = "", owner: int = 0, url: str | None = None
    ) -> None:
        super().__init__(what, why, do, *values)
        self.persona, self.owner, self.url = persona, owner, url


class TokenRefused(MemoryMCPError):
    """The server requires a token, and the request has no valid one."""


class NotAllowed(MemoryMCPError):
    """The token of the request is valid, but does not allow this."""


class GrantRefused(MemoryMCPError):
    """An OAuth client asks for a token that it may not have. `code`: the error's name in RFC 6749, 7591 or 8707."""

    def __init__(self, what: str, why: str = "", do: str = "", *values: object, code: str = "invalid_grant") -> None:
        super().__init__(what, why, do, *values)
        self.code = code


class TooManyCalls(MemoryMCPError):
    """The caller has reached its rate limit; the next call is possible after `retry_after_seconds`."""

    def __init__(self, what: str, why: str = "", retry_after_seconds: int = 1) -> None:
        super().__init__(what, why, sentence("Try again in {} s", retry_after_seconds))
        self.retry_after_seconds = retry_after_seconds


class MemoryNotFound(MemoryMCPError):
    """No memory of this persona has that key."""


class EntityNotFound(MemoryMCPError):
    """No entity of this persona has that name."""


class ConversationNotFound(MemoryMCPError):
    """No conversation of this persona has that id."""


class ConfigError(MemoryMCPError):
    """config.json, or a variable that overrides it, can't be used."""


class StartupError(MemoryMCPError):
    """The server can't start with these options on this machine."""


class DirectoryInUse(StartupError):
    """Another server holds the lock of the data directory."""


class StoreError(MemoryMCPError):
    """A persona's files can't be used."""


class StoreDamaged(StoreError):
    """A file of the persona is damaged. Other personas are not affected."""


class StoreReadOnly(StoreError):
    """The disk or the file is read-only."""


class StoreFull(StoreError):
    """The disk is full."""


class KeyRefused(StoreError):
    """Encrypted data can't be opened: the key is missing or wrong. Nothing is damaged."""


class EncoderFailed(MemoryMCPError):
    """A model failed. Recall goes on without it and reports that."""


class ChatFailed(MemoryMCPError):
    """A chat model failed, or can't be asked. Background work is done without one instead."""


class NotInstalled(MemoryMCPError):
    """This needs an optional part of the program, an `extra` of its package, that is not installed."""

    def __init__(self, what: str, extra: str = "models") -> None:
        super().__init__("{}", "the extra {} is not installed", "Run: {}", what, extra, install_command(extra))


class ProxyUnusable(MemoryMCPError):
    """The environment names a proxy that can't be used."""


def install_command(extra: str) -> str:
    """The command that installs an optional part of the program."""
    return f'pip install "persona-memory-mcp[{extra}]"'


class ClockUnusable(MemoryMCPError):
    """The machine's clock shows a year in which dates can't be computed; nothing was changed."""


class AnalysisUnfinished(MemoryMCPError):
    """An analysis of the graph exceeded its time limit, or its process was ended."""


class SearchUnfinished(MemoryMCPError):
    """A search exceeded its time limit, or its caller has gone."""


class Overloaded(MemoryMCPError):
    """Too many calls are waiting."""


class PersonaOverloaded(Overloaded):
    """Too many calls of one persona are waiting."""


class IssuerUnreachable(MemoryMCPError):
    """Whether a token is good can't be known, because the server that issued it doesn't answer."""


class BodyLate(MemoryMCPError):
    """The body of a call did not arrive in time."""


class ServerUnreachable(MemoryMCPError):
    """A client command found no usable server."""


class PersonaUnknown(MemoryMCPError):
    """The persona does not exist: nothing was ever stored for it."""
