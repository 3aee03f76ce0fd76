"""What a translation between formats lost, guessed or kept aside, counted and with its first places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from vivavoce.exchange.records import Place

Kind = Literal["broken", "dropped", "guessed", "orphan_call", "orphan_result", "repeated", "unknown", "aside"]

KINDS: Mapping[Kind, str] = {
    "broken": "could not be read",
    "dropped": "left out",
    "guessed": "guessed",
    "orphan_call": "tool calls without a result",
    "orphan_result": "results without a tool call",
    "repeated": "repeated, kept once",
    "unknown": "unknown keys, kept in the metadata",
    "aside": "kept in the metadata, where judges do not look",
}
"""What each kind of entry says of a conversation, in the order in which they are told."""

LOSSES: frozenset[Kind] = frozenset(("broken", "dropped", "guessed"))
"""The kinds after which a conversation is not what it was."""

PLACES_SHOWN = 3
"""Places that are kept of each entry."""

NO_MESSAGES = "a conversation without messages"
"""What is broken where nothing was said."""

assert tuple(KINDS) == get_args(Kind)


@dataclass(slots=True)
class Entry:
    """One thing that happened, how often, and where first."""

    kind: Kind
    what: str
    count: int = 0
    places: list[str] = field(default_factory=list[str])


class Loss:
    """The report of one translation; readers and writers add to it while they go.

    `format` is the title of the format that is read, `conversation` and `line` are where they are; `line` counts from
    1, and 0 says that lines do not count. With `on_broken`, what cannot be read is told there and is not a part of the
    report.
    """

    def __init__(self) -> None:
        self.format: str | None = None
        self.file = ""
        self.on_broken: Callable[[str], None] | None = None
        self.line = 0
        self.conversation: str | None = None
        self._entries: dict[tuple[Kind, str], Entry] = {}

    def at(self, row: Mapping[str, Any]) -> None:
        """Say which conversation is read or written, by the id of its row."""
        identity = row.get("id")
        self.conversation = None if identity is None else str(identity)

    def stands_at(self, place: Place) -> None:
        """Say where what is told of from now on stands; the file counts where several are read."""
        self.line = place.line
        if self.file:
            self.file = place.file.name

    def broken(self, what: str) -> None:
        """Say that a record or a conversation could not be read, and why."""
        if self.on_broken is None:
            self._add("broken", what, None, 1)
        else:
            self.on_broken(what)

    def dropped(self, what: str, message: int | None = None, count: int = 1) -> None:
        """Say what was left out; `message` is the index in the conversation that is read."""
        self._add("dropped", what, message, count)

    def left_out(self, fields: Mapping[str, Any], keys: Iterable[str], message: int) -> None:
        """Say which of some keys of a message are left out, of those that hold something."""
        for key in keys:
            if fields.get(key) is not None:
                self.dropped(f"'{key}' of a message", message)

    def guessed(self, what: str, message: int | None = None, count: int = 1) -> None:
        """Say what had to be made up."""
        self._add("guessed", what, message, count)

    def orphan_call(self, name: str, message: int | None = None) -> None:
        """Say that nothing answers a tool call in the middle of a conversation."""
        self._add("orphan_call", name, message, 1)

    def orphan_result(self, what: str, message: int | None = None) -> None:
        """Say that a result answers no tool call."""
        self._add("orphan_result", what, message, 1)

    def repeated(self, what: str, count: int = 1) -> None:
        """Say what occurred more than once and was kept once."""
        self._add("repeated", what, None, count)

    def unknown(self, key: str, message: int | None = None) -> None:
        """Say which key is unknown; its value is kept in the metadata."""
        self._add("unknown", key, message, 1)

    def aside(self, what: str, message: int | None = None, count: int = 1) -> None:
        """Say what was kept in the metadata only."""
        self._add("aside", what, message, count)

    @property
    def is_lossless(self) -> bool:
        """Whether every conversation is what it was."""
        return not any(kind in LOSSES for kind, _ in self._entries)

    def entries(self) -> list[Entry]:
        """Return what happened, by kind, the most frequent first."""
        order = list(KINDS)
        return sorted(self._entries.values(), key=lambda entry: (order.index(entry.kind), -entry.count, entry.what))

    def lines(self) -> Iterator[str]:
        """Yield the report in words, a line for each kind and its entries below."""
        kind = None
        for entry in self.entries():
            if entry.kind != kind:
                kind = entry.kind
                yield f"{KINDS[kind]}:"
            more = ", …" if entry.count > len(entry.places) and entry.places else ""
            where = f" ({'; '.join(entry.places)}{more})" if entry.places else ""
            yield f"  {entry.count:,} × {entry.what}{where}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data: whether it is lossless, and each entry."""
        entries = [
            {"kind": entry.kind, "what": entry.what, "count": entry.count, "places": list(entry.places)}
            for entry in self.entries()
        ]
        return {"lossless": self.is_lossless, "entries": entries}

    def _add(self, kind: Kind, what: str, message: int | None, count: int) -> None:
        entry = self._entries.setdefault((kind, what), Entry(kind, what))
        entry.count += count
        if len(entry.places) < PLACES_SHOWN and (place := self._place(message)) and place not in entry.places:
            entry.places.append(place)

    def _place(self, message: int | None) -> str:
        file = f"{self.file}:" if self.file else "line "
        parts = (
            f"{file}{self.line}" if self.line else self.file,
            "" if self.conversation is None else f"conversation '{self.conversation}'",
            "" if message is None else f"message {message}",
        )
        return ", ".join(filter(None, parts))
