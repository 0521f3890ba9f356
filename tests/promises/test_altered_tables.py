"""Databases that another program has changed: each alone is refused, with its name and a reason, and nothing is taken from the others."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing

import httpx2
import pytest
from processes import RunningServer, command, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONFIG = json.dumps({"embeddings_model": None, "reranker_model": None})
MIGRATIONS = "0021 few segments of the lexical index", "0022 times named by texts", "0023 expiry", "0027 feedback"

Harm = Callable[[sqlite3.Connection], object]


def script(sql: str) -> Harm:
    def harm(connection: sqlite3.Connection) -> object:
        connection.execute("PRAGMA writable_schema = ON")
        return connection.executescript(sql)

    return harm


def latest_records_lost(connection: sqlite3.Connection) -> object:
    return connection.execute("DELETE FROM migrations WHERE name >= '0025'")


# What is done to the tables, by the name of the persona. Each must be refused.
ALTERED: Mapping[str, Harm] = {
    **{f"lost-{name[:4]}": script(f"DELETE FROM migrations WHERE name = '{name}'") for name in MIGRATIONS},
    "latest-records-lost": latest_records_lost,
    "lexical-dropped": script("DROP TABLE lexical"),
    "memories-dropped": script("PRAGMA foreign_keys = OFF; DROP TABLE memories"),
    "entities-dropped": script("PRAGMA foreign_keys = OFF; DROP TABLE entities"),
    "properties-dropped": script("DROP TABLE properties"),
    "memories-a-view": script("ALTER TABLE memories RENAME TO kept; CREATE VIEW memories AS SELECT * FROM kept"),
    "chunks-a-view": script("ALTER TABLE chunks RENAME TO kept; CREATE VIEW chunks AS SELECT * FROM kept"),
    "column-renamed": script("ALTER TABLE memories RENAME COLUMN content TO text"),
    "unreadable-schema": script("UPDATE sqlite_schema SET sql = 'CREATE TABLE nonsense(' WHERE name = 'operations'"),
    "no-module": script("UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE lexical USING nothing(x)' WHERE name = 'lexical'"),
    "records-a-view": script("ALTER TABLE migrations RENAME TO kept; CREATE VIEW migrations AS SELECT name FROM kept"),
}
# What a server finds out only when it asks for it; doctor names it at once.
LACKING: Mapping[str, Harm] = {
    "column-dropped": script("ALTER TABLE operations DROP COLUMN error"),
    "entity-column-dropped": script("ALTER TABLE entities RENAME COLUMN description TO words"),
}
# What may be refused or not, but takes nothing from others.
ODD: Mapping[str, Harm] = {
    "records-dropped": script("DROP TABLE migrations"),
    "all-records-lost": script("DELETE FROM migrations"),
    "a-trigger-fails": script("CREATE TRIGGER t BEFORE INSERT ON memories BEGIN SELECT raise(ABORT, 'no'); END"),
    "a-table-more": script("CREATE TABLE mine(x); CREATE VIEW mine_too AS SELECT y FROM mine"),
    "times-are-words": script("UPDATE memories SET created_at = 'いつか', updated_at = x'ff'"),
    "versions-are-words": script("UPDATE properties SET value = 'いつか'"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> object:
    directory = tmp_path_factory.mktemp("altered")
    with serving(directory, CONFIG) as server:
        for name in ("healthy", *ALTERED, *LACKING, *ODD):
            body = json.dumps({"content": f"{name}の散歩、海辺"}).encode()
            assert httpx2.post(f"{server.url}/api/import", content=body, headers={"X-Persona": name}).status_code == 200
        assert server.stop() == 0
    for name, harm in {**ALTERED, **LACKING, **ODD}.items():
        with closing(sqlite3.connect(server.data / name / "memory.sqlite", isolation_level=None)) as connection:
            harm(connection)
    with serving(directory, CONFIG) as again:
        yield again


@pytest.mark.parametrize("name", ALTERED)
def test_a_database_that_was_altered_is_refused_with_a_reason_and_its_name(server: RunningServer, name: str) -> None:
    answer = httpx2.get(f"{server.url}/api/recall", params={"query": "散歩"}, headers={"X-Persona": name})
    assert answer.status_code == 500
    assert any(words in answer.json()["error"] for words in (f"tables of {name}", f"database of {name}")), answer.text


@pytest.mark.parametrize("path", ["/api/personas", "/ready", "/ui", "/p/healthy/ui/today", "/p/healthy/ui/memories", "/p/healthy/ui/house"])
def test_the_others_are_listed_and_served(server: RunningServer, path: str) -> None:
    answer = httpx2.get(f"{server.url}{path}", follow_redirects=True)
    assert answer.status_code == 200, answer.text
    if path == "/api/personas":
        listed = {persona["name"] for persona in answer.json()["personas"]}
        assert "healthy" in listed
    for name in (*ALTERED, *LACKING, *ODD):
        assert httpx2.get(f"{server.url}/api/recall", params={"query": "散歩"}, headers={"X-Persona": name}).status_code in (200, 500)
    found = httpx2.get(f"{server.url}/api/recall", params={"query": "散歩"}, headers={"X-Persona": "healthy"}).json()
    assert [hit["content"] for hit in found["hits"]] == ["healthyの散歩、海辺"]


def test_doctor_names_each(server: RunningServer) -> None:
    done = command("doctor", "--data", str(server.data), "--config", str(server.config))
    assert done.returncode == 1
    wrong = [line for line in (done.stdout + done.stderr).splitlines() if "healthy" not in line]
    assert [name for name in (*ALTERED, *LACKING) if not any(name in line for line in wrong)] == []
