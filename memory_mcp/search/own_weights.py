"""The weights of the fusion that a persona has of its own, fitted to its judgements (`memory-mcp weights`)."""

import json
from collections.abc import Mapping

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.store import properties
from memory_mcp.store.sqlite.database import Database

_PROPERTY = "fusion_weights"
# What may be fitted.
FITTED = ("dense_weight", "session_weight", "graph_weight", "graph_weight_dense", "rerank_weight")


def own_weights(database: Database) -> Mapping[str, float]:
    """The weights that the persona has instead of those of config.json; usually none. Each search asks for them."""
    return database.kept("own weights", lambda: _read(database))


def set_own_weights(connection: apsw.Connection, weights: Mapping[str, float]) -> None:
    """Give the persona weights of its own; without any it has those of config.json again."""
    if weights:
        properties.put(connection, _PROPERTY, json.dumps(dict(weights)))
    else:
        properties.remove(connection, _PROPERTY)


def with_own_weights(database: Database, settings: Settings) -> Settings:
    """The settings with the persona's own weights."""
    own = own_weights(database)
    return with_weights(settings, own) if own else settings


def with_weights(settings: Settings, weights: Mapping[str, float]) -> Settings:
    """The settings with other weights of the fusion."""
    return settings.model_copy(update={"fusion": settings.fusion.model_copy(update=dict(weights))})


def _read(database: Database) -> Mapping[str, float]:
    with database.read_statement() as connection:
        stored = properties.value(connection, _PROPERTY)
    return {name: value for name, value in json.loads(stored).items() if name in FITTED} if stored else {}
