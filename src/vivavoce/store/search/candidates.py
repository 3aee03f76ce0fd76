"""What the index of words offers for a query: passages with the words, the newest first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import Connection, text

from vivavoce.store.database.database import AnyRow, on_postgresql
from vivavoce.store.search.query import Query

Kind = Literal["conversation", "reason", "comment"]
"""What a hit is in: what was said in a conversation, the reasons of its scores, or comments, which are no passages."""

LAST = 2**63 - 1
"""No passage has a number above it."""

_COLUMNS = "p.id AS number, p.grading_id, a.id, a.run_id, a.sample_id, a.target, a.trial, a.position"
_IN_SQLITE = f"""
SELECT {_COLUMNS}
FROM passage_words JOIN passages p ON p.id = passage_words.rowid JOIN attempts a ON a.id = p.attempt_id
WHERE passage_words MATCH :wanted AND passage_words.rowid < :before {{also}}
ORDER BY passage_words.rowid DESC LIMIT :limit
"""
# SQLite takes the tables of a CROSS JOIN in this order, and so needs no sorting
_IN_EITHER = f"""
SELECT {_COLUMNS}
FROM passages p CROSS JOIN attempts a
WHERE a.id = p.attempt_id AND p.id < :before {{also}} ORDER BY p.id DESC LIMIT :limit
"""


class Candidates:
    """The passages that may be hits: with the words, of the right kind and target, and of some `runs` or of all."""

    def __init__(self, connection: Connection, query: Query, kind: Kind | None, runs: Sequence[str] | None) -> None:
        self._connection = connection
        self._values: dict[str, Any] = {}
        also = self._conditions(query, kind, runs)
        if on_postgresql(connection):
            if wanted := self._tsquery(query, runs):
                also += f" AND p.words @@ ({wanted})"
            self._statement = _IN_EITHER.format(also=also)
        else:
            match = _match(query, runs)
            self._statement = (_IN_SQLITE if match else _IN_EITHER).format(also=also)
            self._values |= {"wanted": match} if match else {}

    def before(self, number: int, limit: int) -> Sequence[AnyRow]:
        """Return the newest candidates with a number below this one."""
        return self._connection.execute(text(self._statement), {**self._values, "before": number, "limit": limit}).all()

    def _conditions(self, query: Query, kind: Kind | None, runs: Sequence[str] | None) -> str:
        found = ""
        conversations, reasons = query.finds
        if not conversations or kind == "reason":
            found += " AND p.grading_id <> ''"
        if not reasons or kind == "conversation":
            found += " AND p.grading_id = ''"
        if runs is not None:  # an index may still know passages of a run that is gone
            found += f" AND a.run_id IN ({self._bound('run', runs)})"
        if targets := query.unwanted("target"):
            found += f" AND a.target NOT IN ({self._bound('untarget', targets)})"
        return found

    def _tsquery(self, query: Query, runs: Sequence[str] | None) -> str:
        parts = [f"phraseto_tsquery('simple', {one})" for one in self._bound("word", query.words).split(", ") if one]
        parts += [
            f"!!phraseto_tsquery('simple', {one})" for one in self._bound("not", query.excluded).split(", ") if one
        ]
        if runs is not None:
            self._values["marks"] = " | ".join(f"'run:{mark_of(run)}'" for run in runs)
            parts.append("CAST(:marks AS tsquery)")
        return " && ".join(parts)

    def _bound(self, name: str, values: Sequence[str]) -> str:
        """Bind values, and return their placeholders."""
        named = {f"{name}_{number}": value for number, value in enumerate(values)}
        self._values |= named
        return ", ".join(f":{one}" for one in named)


def _match(query: Query, runs: Sequence[str] | None) -> str:
    """Return the expression of SQLite's index; empty where every passage fits."""
    parts: list[str] = []
    if query.words:
        parts.append("words : (" + " AND ".join(f'"{phrase}"' for phrase in query.words) + ")")
    if runs is not None:
        parts.append("run : (" + " OR ".join(f'"{mark_of(run)}"' for run in runs) + ")")
    match = " AND ".join(f"({part})" for part in parts)
    if match and query.excluded:
        match = f"({match}) NOT (words : (" + " OR ".join(f'"{phrase}"' for phrase in query.excluded) + "))"
    return match


def mark_of(run_id: str) -> str:
    """Return the token of a run in the index, so that a search in one run reads nothing else."""
    return hashlib.sha256(run_id.encode(errors="surrogatepass")).hexdigest()[:16]
