"""A YAML file as plain data, with the place of every key, and what every part of a suite shares: how it is read.

The request of a target is left to the target, where a value can be neither a template nor stored. Texts that a model or
a reader gets are as they are: in a prompt or a row, `${…}` is something that somebody says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, ConfigDict, Field
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scalarbool import ScalarBoolean

from vivavoce.errors import Problem, UsageError
from vivavoce.safe_text import encodable
from vivavoce.settings import VARIABLE, fill, literal, unescape, unset_in
from vivavoce.validation import StrictInput
from vivavoce.wire.http import USER_IN_ADDRESS, holds_user

KeyPath = tuple[str | int, ...]
MAX_BYTES = 1_000_000
MAX_NODES = 20_000
"""A suite with more values is a mistake, or has an alias that multiplies itself."""
MAX_CHARS = 5_000_000
"""Characters of all values of a file, after its aliases are expanded."""
MAX_DEPTH = 60
"""Levels of a file."""
_LEVELS_OF_A_VALUE = 1
_TOO_MANY = f"has more than {MAX_NODES} values after its aliases are expanded"
_TOO_LONG = f"has more than {MAX_CHARS:,} characters after its aliases are expanded"
_TOO_DEEP = f"is nested too deeply; at most {MAX_DEPTH} levels are allowed"
_HINTS = {
    "'\\t'": "; indent with spaces, not with tabs",
    "cannot start any token": "; put a text that begins with this character in quotes",
    "but got '{'": '; put a text with { in it in quotes, such as "${NAME}"',
    "chomping": "; put a text that begins with > or | in quotes",
    "mapping values are not allowed": "; check the indentation, and put a text that contains ': ' in quotes",
}
_OTHER_FILES = {".py": "a Python file", **dict.fromkeys((".jsonl", ".ndjson", ".csv", ".parquet"), "a dataset")}


class _Constructor(RoundTripConstructor):
    """Reads a date, and a lone `=`, as text, as YAML 1.2 does; and a number that begins with 0, which is a code."""

    def construct_object(self, node: Any, deep: bool = False) -> object:
        """Return the value of a node, or say where a text does not fit its tag.

        Raises:
            ConstructorError: it does not.
        """
        try:
            return cast("object", super().construct_object(node, deep))  # pyright: ignore[reportUnknownMemberType]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            kind = str(node.tag).rpartition(":")[2]
            raise ConstructorError(None, None, f"the value does not fit its tag !!{kind}", node.start_mark) from error


class _Composer(Composer):
    """Counts values and levels while it reads, so that a file beyond a limit costs no more than one within it.

    A value that contains an alias of itself is refused: it has no end.
    """

    nodes = 0

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)  # pyright: ignore[reportUnknownMemberType]
        self._whole: dict[int, object] = {}  # anchored nodes by identity

    def compose_node(self, parent: Any, index: Any) -> Any:
        composer: Any = self
        event: Any = composer.parser.peek_event()
        anchor: str | None = event.anchor
        mark: Any = event.start_mark
        if not isinstance(event, AliasEvent):
            node = self._compose_counted(parent, index)
            if anchor is not None:
                self._whole[id(node)] = node
            return node
        original: object = composer.anchors.get(anchor)
        if original is not None and id(original) not in self._whole:
            raise ComposerError(None, None, f"the alias *{anchor} refers to a value that contains it", mark)
        return self._compose_counted(parent, index)

    def _compose_counted(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > 2 * MAX_NODES:  # keys are nodes, too
            raise _TooLarge(_TOO_MANY)
        if self.depth >= MAX_DEPTH + _LEVELS_OF_A_VALUE:
            raise _TooLarge(_TOO_DEEP)
        return cast("object", super().compose_node(parent, index))  # pyright: ignore[reportUnknownMemberType]


class _TooLarge(Exception):
    """A file has too many values or levels."""


def _as_written(constructor: Any, node: Any) -> object:
    return constructor.construct_scalar(node)


def _number_or_code(constructor: Any, node: Any) -> object:
    code = node.value.lstrip("+-").isdecimal() and node.value.lstrip("+-0") != node.value.lstrip("+-") != "0"
    return constructor.construct_scalar(node) if code else constructor.construct_yaml_int(node)


_Constructor.add_constructor("tag:yaml.org,2002:int", _number_or_code)  # pyright: ignore[reportUnknownMemberType]
for _tag in ("timestamp", "value", "str"):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _as_written)  # pyright: ignore[reportUnknownMemberType]


@dataclass(slots=True)
class Described:
    """Something described as data; if it is in no file, a problem names the value and no line.

    A command or a request describes it: `${NAME}` in it is text, and never a variable.
    """

    data: dict[str, Any]

    def problem(self, at: KeyPath, message: str) -> Problem:
        """Return a problem with the value at a path."""
        label = ".".join(str(part) for part in at)
        return Problem(f"{label}: {message}" if label else message)

    def problems_at(self, at: KeyPath, error: UsageError) -> list[Problem]:
        """Return the problems of an error as those of a value.

        A problem with a file of its own, such as a Python file that raises, keeps its place and names the value that
        uses it.
        """
        return [self._place_problem(at, problem) for problem in error.problems]

    def _place_problem(self, at: KeyPath, problem: Problem) -> Problem:
        if problem.file is None:
            return self.problem(at, problem.message)
        place = str(self.problem(at, "")).rstrip(": ")
        return Problem(f"{problem.message} (used by {place})", problem.file, problem.line, problem.column)


@dataclass(slots=True)
class SuiteRecord(Described):
    """A suite as a record has it; its variables are read only where they come from a file of the workspace."""

    is_from_file: bool


@dataclass(slots=True)
class Document(Described):
    """The data of a file; `places` maps the path of a value to its line and column, both from 1.

    The sections in `replaced` are in no file: the caller replaced those of the file.
    """

    path: Path
    places: dict[KeyPath, tuple[int, int]] = field(default_factory=dict[KeyPath, tuple[int, int]])
    replaced: set[str] = field(default_factory=set[str])

    def replace(self, section: str, data: object) -> None:
        """Replace a section of the file; None removes it."""
        self.data.pop(section, None)
        self.replaced.add(section)
        if data is not None:
            self.data[section] = data

    def problem(self, at: KeyPath, message: str) -> Problem:
        """Return a problem at the place of a value, or of the nearest value around it."""
        problem = Described.problem(self, at, message)
        if at and at[0] in self.replaced:
            return problem
        known = at
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        return Problem(problem.message, self.path, line, column)


def read_document(path: Path, kind: str = "suite", keys: str = "name, dataset, target and graders") -> Document:
    """Read a YAML file whose top is a mapping; `kind` is its name in errors, `keys` are examples of its keys.

    Raises:
        UsageError: the file is missing, of another kind, unreadable, not UTF-8, not YAML, too large, or not a mapping.
    """
    loaded = _load(path, kind)
    if not isinstance(loaded, Mapping):
        raise UsageError(Problem(f"must be a mapping with keys such as {keys}", path, 1))
    places: dict[KeyPath, tuple[int, int]] = {}
    data = _Plain(path, places).convert(cast("object", loaded), ())
    return Document(cast("dict[str, Any]", data), path, places)


def read_records(path: Path, kind: str) -> list[dict[str, Any]]:
    """Read a YAML file whose top is a list of mappings; `kind` is its name in errors.

    Raises:
        UsageError: the file is missing, of another kind, unreadable, not UTF-8, not YAML, too large, or no such list.
    """
    plain = _Plain(path, {})
    loaded = plain.convert(_load(path, kind), ())
    records = cast("list[object]", loaded) if isinstance(loaded, list) else []
    if not isinstance(loaded, list) or not all(isinstance(record, dict) for record in records):
        raise UsageError(Problem("must be a list of mappings, each with a dash and keys: - order: 1042", path, 1))
    return cast("list[dict[str, Any]]", records)


def _load(path: Path, kind: str) -> object:
    text = _read_text(path, kind)
    reader = YAML(typ="rt")
    reader.Constructor = _Constructor
    reader.Composer = _Composer
    try:
        return cast("object", reader.load(text))  # pyright: ignore[reportUnknownMemberType]
    except _TooLarge as error:
        raise UsageError(Problem(str(error), path)) from error
    except MarkedYAMLError as error:
        raise UsageError(_unreadable(path, error)) from error
    except ReaderError as error:
        raise UsageError(_unprintable(path, text, error)) from error
    except RecursionError as error:
        raise UsageError(Problem("is nested too deeply", path)) from error
    except ValueError as error:
        raise UsageError(Problem(f"is not YAML: {str(error).splitlines()[0]}", path)) from error


def _unprintable(path: Path, text: str, error: Any) -> Problem:
    line = text.count("\n", 0, error.position) + 1
    return Problem(f"contains an unprintable character (number {error.character})", path, line)


def _unreadable(path: Path, error: Any) -> Problem:
    mark = error.problem_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    message = str(error.problem or error.context).partition(" with value ")[0]
    if message.startswith("but "):
        message = f"{error.context}, {message}"
    hint = next((hint for sign, hint in _HINTS.items() if sign in message), "")
    return Problem(f"is not YAML: {message}{hint}", path, line, column)


def _read_text(path: Path, kind: str) -> str:
    if what := _OTHER_FILES.get(path.suffix.lower()):
        hint = " that names it; viva init writes one to start from" if kind == "suite" else ""
        raise UsageError(Problem(f"is {what}, not a {kind}; a {kind} is a YAML file{hint}", path))
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(Problem(f"cannot be read: {error.strerror}", path)) from error
    if len(raw) > MAX_BYTES:
        raise UsageError(Problem(f"is too large; a {kind} has at most {MAX_BYTES:,} bytes", path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            Problem("is not UTF-8; save it as UTF-8", path, raw[: error.start].count(b"\n") + 1)
        ) from error


@dataclass(slots=True)
class _Plain:
    path: Path
    places: dict[KeyPath, tuple[int, int]]
    nodes: int = 0
    chars: int = 0

    def convert(self, node: object, at: KeyPath) -> object:
        self.nodes += 1
        if len(at) > MAX_DEPTH:
            raise UsageError(Problem(_TOO_DEEP, self.path))
        if self.nodes > MAX_NODES:
            raise UsageError(Problem(_TOO_MANY, self.path))
        if isinstance(node, Mapping):
            return self._mapping(cast("Mapping[Any, object]", node), at)
        if isinstance(node, Sequence) and not isinstance(node, str | bytes):
            return [self._item(node, i, value, at) for i, value in enumerate(cast("Sequence[object]", node))]
        return self._scalar(node, at)

    def _mapping(self, node: Mapping[Any, object], at: KeyPath) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in node.items():
            here = (*at, encodable(str(key)))
            self._note(node, "key", key, here)
            self._check_characters(str(key), here)
            if isinstance(key, bool | ScalarBoolean) or not isinstance(key, str | int):
                raise self._refusal(at, "a key must be text; quote it, and quote any text that begins with {{")
            if str(key) in result:
                raise self._refusal(here, "duplicate key")
            result[str(key)] = self.convert(value, here)
        return result

    def _item(self, node: Any, index: int, value: object, at: KeyPath) -> object:
        here = (*at, index)
        self._note(node, "item", index, here)
        return self.convert(value, here)

    def _note(self, node: Any, method: str, key: Any, here: KeyPath) -> None:
        """Record the place of a value; a value merged in from elsewhere has no place here."""
        try:
            line, column = getattr(node.lc, method)(key)
        except (AttributeError, KeyError, TypeError):
            return
        self.places[here] = (line + 1, column + 1)

    def _scalar(self, node: object, at: KeyPath) -> object:
        """Return a plain value for a scalar class of the loader."""
        if isinstance(node, ScalarBoolean):
            return bool(node)
        if isinstance(node, str):
            self.chars += len(node)
            if self.chars > MAX_CHARS:
                raise UsageError(Problem(_TOO_LONG, self.path))
            self._check_characters(node, at)
        for kind in (bool, int, float, str):
            if isinstance(node, kind):
                return kind(node)
        if node is None:
            return None
        raise self._refusal(at, "is not text, a number, a list or a mapping; remove the tag (!)")

    def _check_characters(self, text: str, at: KeyPath) -> None:
        if not text.isascii() and encodable(text) != text:
            raise self._refusal(at, "has half a surrogate pair, which is not a character")

    def _refusal(self, at: KeyPath, message: str) -> UsageError:
        return UsageError(Document({}, self.path, self.places).problem(at, message))


OF_THE_TARGET = frozenset(("url", "base_url", "headers", "body", "settings", "api_key", "mcp"))
"""Keys of a target in which variables are read when it is made."""

_TEXTS_OF_TARGETS = frozenset(("system_prompt", "tools", "flags"))
_CODE_OF_HANDLERS = frozenset(("function", "recordings", "timeout"))
_TEXTS_OF_GRADERS = frozenset(("prompt", "system_prompt"))
_TEXTS_OF_TESTER = (("tester", "persona"), ("tester", "personas"), ("tester", "graph"))
_TEXTS = frozenset((("description",), ("dataset", "rows"), ("dataset", "policy"), *_TEXTS_OF_TESTER))


def fill_variables(document: Described) -> dict[str, Any]:
    """Return the data of a suite with the values of its variables, where a file may have any.

    Raises:
        UsageError: with every variable that is not set and has no default, each at its place.
    """
    problems: list[Problem] = []
    if isinstance(document, SuiteRecord) and not document.is_from_file:
        return cast("dict[str, Any]", _replace_variables(document.data, lambda _, text: unescape(text)))
    if not isinstance(document, SuiteRecord | Document):
        return document.data

    def value(at: KeyPath, text: str) -> str:
        for name in unset_in(text):
            rule = f"the environment variable {name} is not set; ${{{name}:-…}} gives a default"
            problems.append(document.problem(at, f"{rule}; write $${{{name}}} for literal text"))
        return fill(text)

    data = _replace_variables(document.data, value)
    if problems:
        raise UsageError(*problems)
    return data


def as_written(data: dict[str, Any], document: Described) -> dict[str, Any]:
    """Return a suite as data with its variables as they are written in a document, and not their values.

    What looks like a variable and is text, since no file describes the suite, is written as a suite has such text.
    """
    if not isinstance(document, SuiteRecord | Document):
        return literals(data)
    variables: dict[KeyPath, str] = {}

    def note(at: KeyPath, text: str) -> str:
        variables[("dataset", "path") if at == ("dataset",) else at] = text
        return text

    _replace_variables(document.data, note)
    return _restore(data, variables) if variables else data


def literals(data: dict[str, Any]) -> dict[str, Any]:
    """Return parts of a suite so that what looks like a variable in them is read as text."""
    return cast("dict[str, Any]", _replace_variables(data, lambda _, text: literal(text)))


def _restore(value: Any, variables: Mapping[KeyPath, str], at: KeyPath = ()) -> Any:
    """Return a structure with what is written at its places."""
    if at in variables:
        return variables[at]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _restore(inner, variables, (*at, key)) for key, inner in items}
    if isinstance(value, list):
        return [_restore(inner, variables, (*at, index)) for index, inner in enumerate(cast("list[Any]", value))]
    return value


def _replace_variables(value: Any, by: Callable[[KeyPath, str], str], at: KeyPath = ()) -> Any:
    """Return a structure with each text in which variables are read here replaced."""
    if _is_left(at):
        return value
    if isinstance(value, str):
        return by(at, value) if VARIABLE.search(value) else value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _replace_variables(inner, by, (*at, key)) for key, inner in items}
    if isinstance(value, list):
        return [_replace_variables(inner, by, (*at, index)) for index, inner in enumerate(cast("list[Any]", value))]
    return value


def _is_left(at: KeyPath) -> bool:
    """Return whether variables are not read at a place: in the request of a target, and in texts for readers."""
    if at[:1] in (("target",), ("targets",)):
        in_target = at[1:] if at[0] == "target" else at[2:]
        if in_target[:1] == ("handlers",):
            return len(in_target) == 3 and in_target[2] not in _CODE_OF_HANDLERS
        return len(in_target) == 1 and in_target[0] in OF_THE_TARGET | _TEXTS_OF_TARGETS
    return at in _TEXTS or (len(at) == 3 and at[0] == "graders" and at[2] in _TEXTS_OF_GRADERS)


SECRET = re.compile(
    r"(proxy-)?authorization|cookie|(x[-_])?(api[-_]?key|token|auth[-_]token|access[-_]token|secret)|password", re.I
)
"""Names of headers and settings that contain keys."""


ELSEWHERE = frozenset(("model", "models", "base_url", "api_base", "api_key_env", "max_retries", "request_timeout"))
"""Settings that would choose another model or address than the one that is named, priced and stored, or its retries."""

_NESTED = ("extra_body", "extra_headers")


def _check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    for place, part in [("", settings), *((f"{name}.", settings.get(name)) for name in _NESTED)]:
        if part is None:
            continue
        if not isinstance(part, dict):
            raise ValueError(f"{place.rstrip('.')} needs a mapping, got {type(part).__name__}")
        for name in cast("dict[str, Any]", part):
            if SECRET.fullmatch(name):
                raise ValueError(
                    f"{place}{name} is an API key, which would be stored; set it in the environment and name "
                    "the variable with api_key_env"
                )
            if name in ELSEWHERE:
                raise ValueError(
                    f"{place}{name} cannot be set here; it would change which model answers or how often it is asked"
                )
    return settings


SettingsOfModel = Annotated[dict[str, Any], AfterValidator(_check_settings)]


def _without_user(address: str) -> str:
    if holds_user(address):
        raise ValueError(USER_IN_ADDRESS)
    return address


Address = Annotated[str, AfterValidator(_without_user)]
"""A web address without a secret, because a suite is stored with its run."""


class Spec(StrictInput):
    """A part of a suite: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _can_fail(threshold: float | None) -> float | None:
    if threshold == 0:
        raise ValueError("with 0 every score passes; write a number above 0, or leave threshold out")
    return threshold


PassingThreshold = Annotated[float | None, Field(ge=0, le=1), AfterValidator(_can_fail)]
"""The lowest score, above 0 and up to 1, that passes; None for the default."""


def check_weights(weights: dict[str, float]) -> dict[str, float]:
    """Return weights that are finite numbers, not negative and not all 0, with a finite sum."""
    if not math.isfinite(sum(weights.values())):
        raise ValueError("weights must be finite numbers; got " + ", ".join(f"{k}: {v:g}" for k, v in weights.items()))
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError("weights must be 0 or more, and not all 0")
    return weights
