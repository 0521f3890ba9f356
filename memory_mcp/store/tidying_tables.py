"""The tables of what was merged into what, and of what each summary is: a step of the schema."""

import apsw

_MERGES_AND_SUMMARIES = """
CREATE TABLE merges (key TEXT PRIMARY KEY, into_key TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX merges_by_into ON merges(into_key);

CREATE TABLE summaries (
    key TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    fingerprint TEXT,
    UNIQUE (scope, subject)
) WITHOUT ROWID;
CREATE TABLE memory_sources (
    summary TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (summary, source)
) WITHOUT ROWID;
CREATE INDEX memory_sources_by_source ON memory_sources(source);
CREATE TABLE summaries_due (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    touched_at TEXT NOT NULL,
    PRIMARY KEY (scope, subject)
) WITHOUT ROWID;
CREATE INDEX memories_that_are_summaries ON memories(id) WHERE kind = 'summary';

INSERT OR IGNORE INTO index_queue(memory_id) SELECT id FROM memories WHERE kind = 'summary';
DELETE FROM lexical WHERE rowid IN (SELECT id FROM memories WHERE kind = 'summary');
"""


def create(connection: apsw.Connection) -> None:
    """Makes them. A summary says again what its sources say, and searches do without it: those that there are leave the indexes."""
    connection.execute(_MERGES_AND_SUMMARIES)
