"""A graded run as a file, in one of several formats."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from vivavoce.errors import UsageError, VivavoceError, did_you_mean
from vivavoce.files.paths import whole_file
from vivavoce.plugins import Registry, lazy
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store
from vivavoce.user_code import foreign_code

T = TypeVar("T")
Out = TypeVar("Out")

MAX_CHARS = 50
"""Characters that are kept of a name; in UTF-8, with a suffix and an extension, they fit in the 255 bytes of a file
name."""


def file_names(targets: Iterable[str], used_names: Iterable[str] = ()) -> dict[str, str]:
    """Return a file name for each target: its name without characters that are not allowed in file names.

    If two names would be the same, also when case is ignored, or if a name is among the `used_names`, each gets its own
    suffix. No name can leave its folder.
    """
    plain = {target: _plain(target) for target in targets}
    claims = Counter(name.casefold() for name in [*plain.values(), *used_names])
    return {
        target: name if claims[name.casefold()] == 1 else f"{name}~{_mark(target)}" for target, name in plain.items()
    }


def _plain(target: str) -> str:
    name = re.sub(r"[^\w.-]", "-", unicodedata.normalize("NFKC", target))[:MAX_CHARS]
    return name.lstrip(".") or "target"


def _mark(target: str) -> str:
    return blake2b(encodable(target).encode(), digest_size=6).hexdigest()


TEXT_FORMATS: Mapping[str, str] = {
    "json": "vivavoce.report.json_file:write_json",
    "jsonl": "vivavoce.report.json_file:write_jsonl",
    "csv": "vivavoce.report.tables:write_csv",
    "junit": "vivavoce.report.junit:write_junit",
    "html": "vivavoce.report.html.one_file:write_html",
    "markdown": "vivavoce.report.markdown:write_markdown",
    "github": "vivavoce.report.github:write_github",
    "recordings": "vivavoce.report.json_file:write_recordings",
    "conversations": "vivavoce.report.capture:write_conversations",
    "baseline": "vivavoce.report.comparison.sides:write_baseline",
}
"""The module that writes each format; only the requested one is loaded."""
FOLDERS = ("letta",)
"""Formats of several files."""
FORMATS = (*TEXT_FORMATS, "parquet", *FOLDERS)
"""The built-in formats."""
SUFFIXES: Mapping[str, str] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".xml": "junit",
    ".html": "html",
    ".md": "markdown",
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format of text that a plugin adds.

    Attributes:
        write: writes a graded run to a text file.
        extension: the file extension, such as `.tsv`; `viva export --output` recognizes the format by it.
        content_type: the type that the server states.
    """

    write: Callable[[GradedRun, TextIO], None]
    extension: str = ".txt"
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class FolderExporter:
    """A format of several files that a plugin adds; `write` takes a graded run and a folder, and says what it did."""

    write: Callable[[GradedRun, Path], Sequence[str]]


_exporters: Registry[Exporter | FolderExporter] = Registry(
    "export format",
    {**TEXT_FORMATS, **dict.fromkeys(("parquet", *FOLDERS), "")},
    admit="vivavoce.report.export:admit_exporter",
)


def admit_exporter(name: str, loaded: object, plugin: str) -> Exporter | FolderExporter:
    """Return an exporter of a plugin; what its code raises becomes an error that names the plugin.

    Raises:
        UsageError: it is neither a function nor an `Exporter`, or its file extension or content type is malformed.
    """
    owner = f"the export format '{name}' of the plugin '{plugin}'"
    if isinstance(loaded, FolderExporter):
        return replace(loaded, write=partial(_write_foreign, loaded.write, owner))
    exporter = loaded if isinstance(loaded, Exporter) else Exporter(cast("Any", loaded))
    if isinstance(exporter.write, type) or not callable(exporter.write):
        raise UsageError(f"{owner} needs a function that takes a graded run and a text file; it is {loaded!r}")
    if not _EXTENSION.fullmatch(exporter.extension):
        raise UsageError(f"{owner} has the file extension {exporter.extension!r}; write one such as '.tsv'")
    if not _CONTENT_TYPE.fullmatch(exporter.content_type):
        raise UsageError(f"{owner} has the content type {exporter.content_type!r}; write one such as 'text/plain'")
    return replace(exporter, write=partial(_write_foreign, exporter.write, owner))


_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,16}")
_CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; charset=utf-8)?", re.ASCII)


def _write_foreign(write: Callable[[GradedRun, Out], T], owner: str, graded: GradedRun, out: Out) -> T:
    """Write a graded run with the code of a plugin, and return what that returns.

    Raises:
        UsageError: the code raised something else than an error of ours or of the file.
    """
    try:
        with foreign_code():
            return write(graded, out)
    except (VivavoceError, OSError):
        raise
    except Exception as error:
        raise UsageError(f"{owner} failed: {type(error).__name__}: {' '.join(str(error).split())}") from error


def export_formats() -> list[str]:
    """Return the names of all export formats: the built-in ones, then those of plugins."""
    return [*FORMATS, *_exporters.plugin_names()]


def file_formats() -> list[str]:
    """Return the names of the formats of plugins that are one file of text."""
    return [name for name, exporter in _exporters.entries(of_plugins=True) if isinstance(exporter, Exporter)]


def plugin_exporter(name: str) -> Exporter | FolderExporter | None:
    """Return the exporter that a plugin adds under a name, None where no plugin does.

    Raises:
        UsageError: the plugin cannot load it.
    """
    return _exporters.get(name) if name in _exporters.plugin_names() else None


def format_of(format_name: str | None, out: Path | None) -> str:
    """Return the format: the named one, else that of the file extension, else JSON.

    Raises:
        UsageError: there is no such format, or the file extension is unknown.
    """
    if format_name is not None:
        check_format(format_name)
        return format_name
    if out is None:
        return "json"
    match formats_of_extension(out.suffix):
        case [name]:
            return name
        case [_, *_] as names:
            raise UsageError(f"{out}: {', '.join(names)} have this file extension; name the format with --format")
        case _:
            pass
    raise UsageError(f"{out}: unknown file extension; name the format with --format: {', '.join(export_formats())}")


def formats_of_extension(extension: str) -> list[str]:
    """Return the formats that files with an extension may have: a built-in one, or else those of plugins."""
    extension = extension.lower()
    if extension in SUFFIXES:
        return [SUFFIXES[extension]]
    return [
        name
        for name, exporter in _exporters.entries(of_plugins=True)
        if isinstance(exporter, Exporter) and exporter.extension.lower() == extension
    ]


def check_format(name: str) -> None:
    """Check that there is an export format of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in FORMATS and name not in (names := export_formats()):
        raise UsageError(f"no export format '{name}'{did_you_mean(name, names)}")


def export(store: Store, run: Run, grading: Grading, format: str, out: Path | TextIO) -> list[str]:  # noqa: A002
    """Write a graded run in one of `export_formats()`, conversation by conversation, to a file or to a stream of text.

    A file appears whole or not at all, in UTF-8; its folder is made where it is missing. Those of `FOLDERS` write a
    folder. What the format says of what was written is returned, in words.

    Raises:
        UsageError: there is no such format, or the file cannot be written.
        MissingExtra: the format is Parquet and pyarrow is not installed.
    """
    check_format(format)
    graded = GradedRun(store, run, grading)
    if (write := _text_writer(format)) is not None:
        if not isinstance(out, Path):
            write(graded, out)
            return []
        with whole_file(out) as path, path.open("w", encoding="utf-8", newline="") as file:
            write(graded, file)
    elif not isinstance(out, Path):
        what = "parquet is not text; name a file" if format == "parquet" else f"{format} writes a folder; name one"
        raise UsageError(f"{what} with --output")
    elif format == "parquet":
        with whole_file(out) as path:
            lazy("vivavoce.report.tables:write_parquet_file")(graded, path)
    elif format == "letta":
        lazy("vivavoce.report.letta_files:write_letta_layout")(store, run, grading, out)
    elif isinstance(exporter := plugin_exporter(format), FolderExporter):
        return list(exporter.write(graded, out))
    return []


_publishers: Registry[Callable[[GradedRun], Sequence[str]]] = Registry("tool", {})


def published_to() -> list[str]:
    """Return the names of the tools that a run can be sent to."""
    return _publishers.names()


def publish(graded: GradedRun, to: str) -> list[str]:
    """Send a run with its scores to a tool, and return what was done, in words.

    Raises:
        UsageError: there is no such tool, it cannot be reached, or it refuses something.
        MissingExtra: its package is not installed.
    """
    return list(_publishers.get(to)(graded))


def _text_writer(name: str) -> Callable[[GradedRun, TextIO], None] | None:
    """Return what writes a format of text, None where it is not one."""
    if name in TEXT_FORMATS:
        return cast("Callable[[GradedRun, TextIO], None]", lazy(TEXT_FORMATS[name]))
    exporter = None if name in FORMATS else plugin_exporter(name)
    return exporter.write if isinstance(exporter, Exporter) else None
