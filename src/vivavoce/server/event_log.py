"""The log of a server on standard error: requests and events, as lines for people or as JSON.

Each line has a time, a level, the name of an event, and fields. Queries of addresses, headers and bodies are never
logged, because they may hold tokens.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from dataclasses import dataclass
from typing import Literal

from vivavoce.records.redaction import without_keys
from vivavoce.safe_text import safe

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Field = str | int | float | bool | None

LOGGER = logging.getLogger("vivavoce.server")
LOGGER.addHandler(logging.NullHandler())
LOGGER.propagate = False

_LIBRARY_EVENTS = {"uvicorn": "http", "sqlalchemy": "database", "psycopg": "database"}
"""The events under which what libraries log is shown."""
_FIELDS = "vivavoce_fields"
_PLAIN = re.compile(r"[\w./:+@%-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a server logs."""

    format: LogFormat = "text"
    level: LogLevel = "info"

    def start(self) -> None:
        """Log to standard error from now on, in this process; also what the libraries for HTTP and databases say."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonLines() if self.format == "json" else _TextLines())
        LOGGER.handlers[:] = [handler]
        LOGGER.setLevel(self.level.upper())
        for name in _LIBRARY_EVENTS:
            library = logging.getLogger(name)
            library.handlers[:] = [handler]
            library.propagate = False
            library.setLevel(max(LOGGER.level, logging.WARNING))


def log(level: LogLevel, event: str, **fields: Field) -> None:
    """Log an event with its fields."""
    number = logging.getLevelNamesMapping()[level.upper()]
    if LOGGER.isEnabledFor(number):
        LOGGER.log(number, event, extra={_FIELDS: fields})


def _entry(record: logging.LogRecord) -> dict[str, Field]:
    """Return a record as named values; an exception is one of them."""
    fields: dict[str, Field] = dict(getattr(record, _FIELDS, {}))
    text = record.getMessage()
    library = _LIBRARY_EVENTS.get(record.name.partition(".")[0])
    entry: dict[str, Field] = {"event": text} if library is None else {"event": library, "detail": text}
    entry |= fields
    if record.exc_info:
        entry["exception"] = logging.Formatter().formatException(record.exc_info)
    return {name: without_keys(value) if isinstance(value, str) else value for name, value in entry.items()}


class _JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = {"at": f"{at}.{record.msecs:03.0f}Z", "level": record.levelname.lower()}
        return json.dumps({**head, **_entry(record)})


class _TextLines(logging.Formatter):
    """Lines for people: time, level, event, and `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        entry = _entry(record)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        event, exception = entry.pop("event"), entry.pop("exception", None)
        values = [f"{name}={_text(value)}" for name, value in entry.items() if value is not None]
        line = "  ".join((at, record.levelname.lower(), str(event), *values))
        return safe(line if exception is None else f"{line}\n{exception}")


def _text(value: Field) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
