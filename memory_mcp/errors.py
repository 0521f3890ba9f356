"""Every error that the product raises on purpose, on one page.

    MemoryMCPError
    ├── InvalidInput            the caller sent something that can't be used
    │   └── InvalidPersonaName
    ├── PersonaConflict         one request names two personas
    ├── PersonaRequired         the server wants a persona and the request names none
    ├── TokenRefused            the request has no token, or one that is not good
    ├── NotAllowed              the request's token does not reach so far (scopes, personas)
    ├── TooManyCalls            the caller has used up its calls for now; worth a retry
    ├── MemoryNotFound          no memory of this persona has that key
    ├── EntityNotFound          nobody and nothing that this persona's memories speak of is called so
    ├── ConfigError             config.json (or an environment variable) can't be used
    ├── StartupError            the server can't start here (port, lock, bind)
    ├── StoreError              a persona's files can't be used now
    │   ├── StoreDamaged        SQLite or a persona file is not what it should be
    │   ├── StoreReadOnly       the disk or the file refuses writing
    │   ├── StoreFull           the disk has no room
    │   └── KeyRefused          what is encrypted can't be opened: no key, or another one
    ├── EncoderFailed           a model could not be asked (an API that is down, a device out of memory)
    ├── ChatFailed              the chat model could not be asked; only upkeep does so
    ├── AnalysisUnfinished      an analysis of the graph took longer than one may, or broke off
    ├── Overloaded              more work is waiting than may wait; worth a retry
    │   └── TooManyOfOne        all of it is one persona's
    ├── ServerUnreachable       a client command found no usable server
    └── PersonaUnknown          somebody wants something of a persona that does not exist

An error says what happened, why, and what to do about it. All three are safe to show to a client:
no paths of other personas, no tracebacks, no library links. `server/errors.py` maps them to the wire.
"""


class MemoryMCPError(Exception):
    """`what` happened, `why`, and what to `do`; each a clause that reads well on its own."""

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        self.what, self.why, self.do = what, why, do
        fact = f"{what}: {why}." if why else f"{what}."
        super().__init__(f"{fact} {do}." if do else fact)


class InvalidInput(MemoryMCPError):
    """The caller sent something that can't be used; nothing was changed."""


class InvalidPersonaName(InvalidInput):
    """A persona name that can't become a canonical name."""


class PersonaConflict(MemoryMCPError):
    """One request names two different personas."""


class PersonaRequired(MemoryMCPError):
    """The server is configured to want a persona, and the request names none."""


class TokenRefused(MemoryMCPError):
    """The server wants a token, and the request has none that is good."""


class NotAllowed(MemoryMCPError):
    """The token of the request is good, but not for this."""


class TooManyCalls(MemoryMCPError):
    """The caller has used up its calls for now; after `retry_after_seconds` there is one again."""

    def __init__(self, what: str, why: str = "", retry_after_seconds: int = 1) -> None:
        super().__init__(what, why, f"Try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class MemoryNotFound(MemoryMCPError):
    """No memory of this persona has that key."""


class EntityNotFound(MemoryMCPError):
    """Nobody and nothing that this persona's memories speak of is called so."""


class ConfigError(MemoryMCPError):
    """config.json, or a variable that overrides it, can't be used."""


class StartupError(MemoryMCPError):
    """The server can't start on this machine as it was asked to."""


class StoreError(MemoryMCPError):
    """A persona's files can't be used at the moment."""


class StoreDamaged(StoreError):
    """A file of the persona is not what it should be. Other personas are not affected."""


class StoreReadOnly(StoreError):
    """The disk, or the file, refuses to be written."""


class StoreFull(StoreError):
    """The disk has no room left."""


class KeyRefused(StoreError):
    """What is encrypted can't be opened: there is no key, or it is another one. Nothing is damaged."""


class EncoderFailed(MemoryMCPError):
    """A model could not be asked. Recall goes on without it and says so."""


class ChatFailed(MemoryMCPError):
    """The configured chat model could not be asked. What is made without one is made instead."""


class AnalysisUnfinished(MemoryMCPError):
    """An analysis of the graph was given up, as it took longer than one may, or its process was ended."""


class Overloaded(MemoryMCPError):
    """More work is waiting than may wait."""


class TooManyOfOne(Overloaded):
    """The calls of one persona fill all the places that one may have."""


class ServerUnreachable(MemoryMCPError):
    """A client command found no server that it can talk to."""


class PersonaUnknown(MemoryMCPError):
    """Somebody wants something of a persona as which nothing was ever stored."""
