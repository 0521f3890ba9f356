"""A persona's files opened for reading beside a server that may have them open too: for what must not wait until it is stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_mcp.personas.directories import DATABASE_NAME, checked_identity
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Persona
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.lexical.token_frequencies import WordCounts
from memory_mcp.store.operations import OperationsLog
from memory_mcp.store.sqlite.database import Database


@contextmanager
def opened_beside(data_directory: Path, name: str, keys: Keys) -> Iterator[Persona]:
    """The persona of a canonical name, which exists. It is not brought up to date; nothing is to be written to it.

    Raises:
        KeyRefused: it is encrypted, and its key is not there.
        StoreError: it can't be read.
    """
    directory = data_directory / directory_name(name)
    checked_identity(directory, name)
    key = keys.of(directory)
    database = Database(directory / DATABASE_NAME, key)
    log = OperationsLog(data_directory)
    try:
        yield Persona(name, database, PersonaContext(directory / CONTEXT_NAME, key), log, KnownNames(), WordCounts())
    finally:
        database.close()
        log.close()
