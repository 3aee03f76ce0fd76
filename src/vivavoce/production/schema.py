"""The tables of a spool: what came in and is not judged yet, and what must be known of what was."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS span (
    number INTEGER PRIMARY KEY, bundle INTEGER NOT NULL, trace BLOB NOT NULL, identity BLOB NOT NULL, parent BLOB,
    conversation BLOB, time NUMERIC, value BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS span_once ON span (trace, identity);
CREATE INDEX IF NOT EXISTS span_of_bundle ON span (bundle);
CREATE TABLE IF NOT EXISTS name (kind INTEGER, name BLOB, bundle INTEGER NOT NULL, PRIMARY KEY (kind, name))
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS name_of_bundle ON name (bundle);
CREATE TABLE IF NOT EXISTS bundle (
    number INTEGER PRIMARY KEY, first REAL NOT NULL, last REAL NOT NULL, spans INTEGER NOT NULL,
    bytes INTEGER NOT NULL, own INTEGER NOT NULL, open INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS bundle_by_age ON bundle (open, last);
CREATE TABLE IF NOT EXISTS talk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, sample TEXT NOT NULL,
    digest BLOB NOT NULL, row TEXT, state TEXT NOT NULL, run TEXT, settled REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS talk_by_id ON talk (id, version);
CREATE INDEX IF NOT EXISTS talk_by_state ON talk (state, run, number);
CREATE TABLE IF NOT EXISTS period (run TEXT PRIMARY KEY, ends REAL NOT NULL, spent INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tally (hour INTEGER, what TEXT, number INTEGER NOT NULL, PRIMARY KEY (hour, what))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file (file TEXT PRIMARY KEY, offset INTEGER NOT NULL);
"""
"""A bundle is what belongs together by traces and conversations; a talk is a conversation that a bundle became.

A bundle is open as long as it may still grow. A talk is `waiting`, `given` to a run, `judged` once the store has it, or
`passed`: it was not judged, because a budget was spent or it could not be read.
A tally is how often something was counted in an hour, which begins at so many seconds since 1970.
"""
