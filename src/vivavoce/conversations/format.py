"""What a format of conversations is, which formats we know, and what a translation lost or guessed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, cast, get_args

from vivavoce.errors import Problem, UsageError, VivavoceError, did_you_mean
from vivavoce.extensions import WITHOUT, is_built_in, plugins
from vivavoce.files.json_document import BrokenDocument, JsonDocument
from vivavoce.files.rows import format_of, open_file, scan_lines, scan_rows
from vivavoce.plugins import Registry
from vivavoce.user_code import foreign_code


class Place(NamedTuple):
    """A place in a file; lines count from 1."""

    file: Path
    line: int


class Member(NamedTuple):
    """One record of a conversation, where the records of several are mixed.

    Attributes:
        place: where it stands.
        value: what the reader wants back of it, as plain data.
        trace: what it belongs to for certain: the trace of a span, the number of a conversation.
        conversation: what several traces have in common; it counts for the members of the trace that name none, and
            if a trace has several, for what is below the one that names it.
        identity: its own id within the trace; a record that comes again is kept once.
        parent: the id of the record that it is below.
        time: by which members are sorted, in any unit; members without come last, in the order of the files.
    """

    place: Place
    value: Any
    trace: str
    conversation: str | None = None
    identity: str | None = None
    parent: str | None = None
    time: float | None = None


class Record(NamedTuple):
    """One record, where it begins, and what stands next to the list that it is in, as far as that was read."""

    place: Place
    value: object
    beside: Mapping[str, Any] = MappingProxyType({})

    @property
    def fields(self) -> dict[str, Any] | None:
        """The value, if it is an object."""
        value: Any = self.value
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def scan_records(path: Path, lists: Collection[tuple[str, ...]] = ()) -> Iterator[Record | Problem]:
    """Yield each record of a JSONL, JSON, CSV, Parquet or Arrow file, and a `Problem` in place of a broken one.

    `lists` are the places within a JSON document where there may be a list of records; a document without any is a
    record.

    Raises:
        UsageError: the file cannot be opened, or its suffix is of no format that we read.
        MissingExtra: Parquet or Arrow without pyarrow.
    """
    match format_of(path):
        case "jsonl":
            with open_file(path) as file:
                yield from (_record(path, line, value) for line, value in scan_lines(file, path))
        case "json":
            with open_file(path) as file:
                yield from scan_document(JsonDocument(file), path, lists)
        case "csv" | "parquet" | "arrow":
            yield from (_record(path, line, row) for line, row in scan_rows(path))


def _record(path: Path, line: int, value: Any | Problem) -> Record | Problem:
    return value if isinstance(value, Problem) else Record(Place(path, line), value)


def scan_document(
    document: JsonDocument, path: Path, lists: Collection[tuple[str, ...]] = ()
) -> Iterator[Record | Problem]:
    """Yield each record of a JSON document, and a `Problem` where it breaks off."""
    try:
        for line, item in document.items(*lists):
            beside = {} if item is document.beside else document.beside
            yield Record(Place(path, line), item, beside)
    except BrokenDocument as error:
        yield Problem(str(error), path, error.line, error.column)


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
"""What each kind of entry says of a conversation, in the order in which they are reported."""

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
    1, and 0 says that lines do not count. What cannot be read goes to `on_broken`, where it is
    given, and not into the report.
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
        """Set the place for the reports that follow; the file counts where several are read."""
        self.line = place.line
        if self.file:
            self.file = place.file.name

    def add_broken(self, what: str) -> None:
        """Say that a record or a conversation could not be read, and why."""
        if self.on_broken is None:
            self._add("broken", what, None, 1)
        else:
            self.on_broken(what)

    def add_dropped(self, what: str, message: int | None = None, count: int = 1) -> None:
        """Say what was left out; `message` is the index in the conversation that is read."""
        self._add("dropped", what, message, count)

    def left_out(self, fields: Mapping[str, Any], keys: Iterable[str], message: int) -> None:
        """Say which of some keys of a message are left out, of those that hold something."""
        for key in keys:
            if fields.get(key) is not None:
                self.add_dropped(f"'{key}' of a message", message)

    def add_guess(self, what: str, message: int | None = None, count: int = 1) -> None:
        """Say what had to be made up."""
        self._add("guessed", what, message, count)

    def orphan_call(self, name: str, message: int | None = None) -> None:
        """Say that nothing answers a tool call in the middle of a conversation."""
        self._add("orphan_call", name, message, 1)

    def orphan_result(self, what: str, message: int | None = None) -> None:
        """Say that a result answers no tool call."""
        self._add("orphan_result", what, message, 1)

    def add_repeated(self, what: str, count: int = 1) -> None:
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


Row = dict[str, Any]
"""A conversation as a row of our datasets: `id`, `messages` in the shape of OpenAI's chat, and what is known of it.

What a format knows in addition to the messages has our names where it means the same (`goal`, `ground_truth`, `labels`,
…), and else its own in `metadata`. What a message has that ours cannot hold is in the message's own `metadata`, under
the name of the format, from where the writer takes it back.
"""

ROW_FIELDS = frozenset(
    (
        *("id", "trial", "input", "messages", "ground_truth", "reference_tool_calls", "expect"),
        *("goal", "instructions", "context", "policy", "must", "must_not", "scenario", "persona", "facts"),
        *("restrictions", "adversarial", "min_turns", "max_turns", "state", "tool_results", "approvals"),
        *("rubric", "rubric_vars", "agent_args", "extra_vars", "labels", "tags", "metadata"),
        *("sessions", "secrets", "history"),
    )
)
"""The fields that a row may have."""

Reader = Callable[[Iterable[Record], Loss], Iterator[tuple[Place, Row]]]
"""Yields each conversation with the place where it begins, and tells the loss report what is not kept."""

Writer = Callable[[Iterable[Row], Loss], Iterator[Any]]
"""Yields the records that a file of the format holds, and tells the loss report what it cannot hold."""

Fits = Callable[[Record], bool]

Records = Callable[[Path], Iterator[Record | Problem]]
"""Yields the records of a file, and a `Problem` in place of one that cannot be read."""


class Pieces(NamedTuple):
    """How a format is read whose records arrive one by one: what belongs to a conversation, and then its row."""

    members: Callable[[Iterable[Record], Loss], Iterator[Member]]
    conversations: Callable[[Iterable[Member], Loss], Iterator[tuple[Place, Row]]]


@dataclass(frozen=True, slots=True)
class Format:
    """One format of conversations.

    `fits` says of a record whether it is of this format for certain; of what another format could have written as well,
    it says no. `lists` are the places within a JSON document, by keys, where the format keeps its records. Where files
    are not JSON, JSONL, CSV or Parquet, `begins` are their first bytes, and `records` reads them; where several formats
    begin alike, `wrong_with` says why a file is not one, or returns None. `document` makes one JSON document
    of the records that the writer yields; without it they are the lines of a JSONL file.

    A format that `keeps_keys` writes what a message has in addition to our fields, such as `reasoning_content`, as it
    is; one that `keeps_agents` writes the tools of the agent of a message and to whom it hands over; one that
    `keeps_outcomes` writes how calls ended, where a result states it.

    The columns of a format that `is_row` are as the fields of our rows: where the user names some, it is read as these.
    A format that `is_general` is recognized only where no other fits. Of a table whose columns the user may name,
    `columns` are the parts of a message that have one, and `with_columns` returns the format that reads them there.

    Where conversations arrive in `pieces`, these read them. `write_message` writes a message as a record has it,
    with its index, where others send messages of the format.
    """

    name: str
    title: str
    fits: Fits
    read: Reader | None = None
    write: Writer | None = None
    lists: tuple[tuple[str, ...], ...] = ()
    begins: bytes | None = None
    wrong_with: Callable[[Path], str | None] | None = None
    records: Records | None = None
    document: Callable[[Iterator[Any]], Any] | None = None
    keeps_keys: bool = False
    keeps_agents: bool = False
    keeps_outcomes: bool = False
    is_row: bool = False
    is_general: bool = False
    columns: tuple[str, ...] = ()
    with_columns: Callable[[Format, Mapping[str, str]], Format] | None = None
    pieces: Pieces | None = None
    write_message: Callable[[dict[str, Any], int, Loss], Row] | None = None


SOURCE = "source"
"""The key in the metadata of a row that says what it was made of: a format, an id there, and a hash of the content."""
NATIVE = "vivavoce"
TABLE = "turns"

_OURS = {
    NATIVE: "vivavoce.conversations.own_rows:FORMAT",
    TABLE: "vivavoce.conversations.message_table:FORMAT",
}
"""What can be read without any plugin: our own rows, and tables with a message in each row."""

_formats: Registry[Format] = Registry("format", _OURS, admit="vivavoce.conversations.format:admit_format")


def names() -> list[str]:
    """Return the names of all formats: that of our rows first, that of tables last, between them those of plugins."""
    return [NATIVE, *_formats.plugin_names(), TABLE]


def format_named(name: str) -> Format:
    """Return the format of a name.

    Raises:
        UsageError: there is none, or a plugin cannot load it.
    """
    if name not in _OURS and name not in _formats.plugin_names():
        raise UsageError(no_format(name))
    return _formats.get(name)


def no_format(name: str) -> str:
    """Return what an error says of an unknown name."""
    return f"no format '{name}'{did_you_mean(name, names())} (see viva validate list formats){others_are_off()}"


def others_are_off() -> str:
    """Return the end of a sentence that says that formats of other tools are switched off; empty where none are."""
    off = _formats.switched_off()
    return f"; {WITHOUT}={','.join(off)} switches off the formats of other tools" if off else ""


def all_formats() -> Iterator[Format]:
    """Yield every format, in the order of the names; a plugin whose format cannot be loaded is switched off."""
    yield _formats.get(NATIVE)
    for _, format_ in _formats.entries(of_plugins=True):
        yield format_
    yield _formats.get(TABLE)


def admit_format(name: str, loaded: object, plugin: str) -> Format:
    """Return a format of a plugin; of an installed one, what its code raises becomes an error that names the plugin.

    Raises:
        UsageError: it is not a format, has another name, or can neither be read nor written.
    """
    owner = f"the format '{name}' of the plugin '{plugin}'"
    if not isinstance(loaded, Format):
        raise UsageError(f"{owner} is a {type(loaded).__name__}; it must be a vivavoce.conversations.format.Format")
    if loaded.name != name:
        raise UsageError(f"{owner} has the name '{loaded.name}'; both names must match")
    if loaded.read is None and loaded.write is None:
        raise UsageError(f"{owner} has neither a reader nor a writer")
    if is_built_in(plugin):
        return loaded
    return replace(
        loaded,
        fits=_guarded_fits(loaded.fits, owner, plugin),
        read=loaded.read and _guarded_rows(loaded.read, owner),
        write=loaded.write and _guarded_items(loaded.write, owner),
        records=loaded.records and _guarded_items(loaded.records, owner),
        wrong_with=loaded.wrong_with and _guard(loaded.wrong_with, owner),
        document=loaded.document and _guard(loaded.document, owner),
    )


P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def _naming(owner: str) -> Generator[None]:
    """Let errors of a plugin's code name their owner.

    Raises:
        UsageError: the code inside raised something else than an error of ours.
    """
    try:
        with foreign_code():
            yield
    except VivavoceError:
        raise
    except Exception as error:
        raise UsageError(f"{owner} failed: {type(error).__name__}: {' '.join(str(error).split())}") from error


def _guard(function: Callable[P, R], owner: str) -> Callable[P, R]:
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        with _naming(owner):
            return function(*arguments, **options)

    return call


def _guarded_fits(fits: Fits, owner: str, plugin: str) -> Fits:
    """Return a check that fits nothing once it failed: its plugin is switched off, and the other formats are tried."""
    guarded = _guard(fits, owner)

    def fits_or_not(record: Record) -> bool:
        try:
            return bool(guarded(record))
        except UsageError as error:
            plugins().switch_off(plugin, str(error))
            return False

    return fits_or_not


def _guarded_items(function: Callable[P, Iterator[R]], owner: str) -> Callable[P, Iterator[R]]:
    def items(*arguments: P.args, **options: P.kwargs) -> Iterator[R]:
        with _naming(owner):
            iterator = iter(function(*arguments, **options))
        while True:
            with _naming(owner):
                item = next(iterator, _END)
            if item is _END:
                return
            yield cast("R", item)

    return items


_END = object()


def _guarded_rows(read: Reader, owner: str) -> Reader:
    items = _guarded_items(read, owner)

    def rows(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
        for item in cast("Iterator[Any]", items(records, loss)):
            if not isinstance(item, tuple) or len(cast("tuple[Any, ...]", item)) != 2:
                kind = type(cast("object", item)).__name__
                raise UsageError(f"{owner}: its reader yields a {kind}, not a pair of place and row")
            place, row = cast("tuple[Any, Any]", item)
            if not (isinstance(place, Place) and isinstance(row, dict)):
                kinds = f"{type(place).__name__} and {type(row).__name__}"
                raise UsageError(f"{owner}: its reader yields a pair of {kinds}, not of Place and dict")
            yield place, cast("Row", row)

    return rows
