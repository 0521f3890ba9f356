"""The tables of the gateway: a row per turn, and the keys of memories that were put in at it or stored of it."""

_CONVERSATIONS = """
CREATE TABLE gateway_turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    parent INTEGER,
    said TEXT NOT NULL,
    answered TEXT NOT NULL,
    at TEXT NOT NULL,
    spoken_before TEXT,
    is_left INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX gateway_turns_by_conversation ON gateway_turns(conversation, id);
CREATE INDEX gateway_turns_by_words ON gateway_turns(said, answered);

CREATE TABLE gateway_keys (
    turn INTEGER NOT NULL,
    reason TEXT NOT NULL,
    place INTEGER NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    start INTEGER NOT NULL DEFAULT 0,
    "end" INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (turn, reason, place)
) WITHOUT ROWID;
CREATE INDEX gateway_keys_by_key ON gateway_keys(key);

CREATE TRIGGER gateway_forgets AFTER DELETE ON memories BEGIN
    UPDATE gateway_turns SET said = '', answered = ''
    WHERE id IN (SELECT turn FROM gateway_keys WHERE key = old.key AND reason IN ('user', 'answer'));
    DELETE FROM gateway_keys WHERE key = old.key;
END;
"""

MIGRATIONS = [("gateway 0001 conversations", _CONVERSATIONS)]
