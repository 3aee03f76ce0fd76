"""A graded run as a file, in one of several formats."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TextIO, cast

from vivavoce.errors import UsageError
from vivavoce.files.whole_file import whole_file
from vivavoce.plugins import lazy
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store

LONGEST = 50
"""Characters that are kept of a name; in UTF-8, with a suffix and an extension, they fit in the 255 bytes of a file
name."""


def file_names(targets: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a file name for each target: its name without characters that are not allowed in file names.

    If two names would be the same, also when case is ignored, or if a name is among the `taken`, each gets its own
    suffix. No name can leave its folder.
    """
    plain = {target: _plain(target) for target in targets}
    claims = Counter(name.casefold() for name in [*plain.values(), *taken])
    return {
        target: name if claims[name.casefold()] == 1 else f"{name}~{_mark(target)}" for target, name in plain.items()
    }


def _plain(target: str) -> str:
    name = re.sub(r"[^\w.-]", "-", unicodedata.normalize("NFKC", target))[:LONGEST]
    return name.lstrip(".") or "target"


def _mark(target: str) -> str:
    return blake2b(encodable(target).encode(), digest_size=6).hexdigest()


TEXT_FORMATS: Mapping[str, str] = {
    "json": "vivavoce.report.json_file:write_json",
    "jsonl": "vivavoce.report.json_file:write_jsonl",
    "csv": "vivavoce.report.csv_file:write_csv",
    "junit": "vivavoce.report.junit:write_junit",
    "html": "vivavoce.report.html.one_file:write_html",
    "markdown": "vivavoce.report.markdown:write_markdown",
    "github": "vivavoce.report.github:write_github",
    "recordings": "vivavoce.report.recordings:write_recordings",
    "conversations": "vivavoce.report.conversations:write_conversations",
    "baseline": "vivavoce.report.baseline:write_baseline",
}
"""The module that writes each format; only the requested one is loaded."""
FOLDERS = ("letta", "langfuse", "phoenix", "otel")
"""Formats of several files."""
FORMATS = (*TEXT_FORMATS, "parquet", *FOLDERS)
SUFFIXES: Mapping[str, str] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".xml": "junit",
    ".html": "html",
    ".md": "markdown",
    ".parquet": "parquet",
}


def format_of(named: str | None, out: Path | None) -> str:
    """Return the format: the named one, else that of the file extension, else JSON.

    Raises:
        UsageError: there is no such format, or the file extension is unknown.
    """
    if named is None and out is not None and out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{out}: unknown file extension; name the format with --format: {', '.join(FORMATS)}")
    found = named or ("json" if out is None else SUFFIXES[out.suffix.lower()])
    if found not in FORMATS:
        raise UsageError(f"no export format '{found}'; known: {', '.join(FORMATS)}")
    return found


def export(store: Store, run: Run, grading: Grading, format: str, out: Path | TextIO) -> list[str]:  # noqa: A002
    """Write a graded run in one of `FORMATS`, conversation by conversation, to a file or to a stream of text.

    A file appears whole or not at all, in UTF-8; its folder is made where it is missing. Those of `FOLDERS` write a
    folder. What the format says of what was written is returned, in words.

    Raises:
        UsageError: there is no such format, or the file cannot be written.
        MissingExtra: the format is Parquet and pyarrow is not installed.
    """
    format = format_of(format, None)  # noqa: A001
    graded = GradedRun(store, run, grading)
    if format in TEXT_FORMATS:
        write = cast("Callable[[GradedRun, TextIO], None]", lazy(TEXT_FORMATS[format]))
        if not isinstance(out, Path):
            write(graded, out)
            return []
        with whole_file(out) as path, path.open("w", encoding="utf-8", newline="") as file:
            write(graded, file)
    elif not isinstance(out, Path):
        what = f"{format} writes a folder; name one" if format in FOLDERS else "parquet is not text; name a file"
        raise UsageError(f"{what} with --output")
    elif format == "parquet":
        with whole_file(out) as path:
            lazy("vivavoce.report.parquet_file:write_parquet_file")(graded, path)
    elif format == "letta":
        lazy("vivavoce.report.letta_layout:write_letta_layout")(store, run, grading, out)
    else:
        return lazy("vivavoce.report.publish.conversation:write")(graded, format, out)
    return []
